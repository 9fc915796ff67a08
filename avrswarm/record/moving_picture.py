"""The stage with robots that move: what films and the live window show."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from avrswarm.record.drawing import (
    Stage,
    Window,
    add_robots,
    led_rgb,
    nose_colours,
    nose_lines,
)

Floats = NDArray[np.float64]

TRAIL_S = 10.0
TRAILED_ROBOTS = 300
"""Ways of the last seconds are shown for at most so many robots."""


class MovingPicture:
    """A figure of which only the robots, pushable discs, trails and title are drawn again.

    Parameters
    ----------
    figure
        Where to draw; its canvas must be able to copy regions (Agg and what builds on it).
    stage, window
        What stays, and the part of it that is shown.
    radius_mm
        One per robot.
    title
        The longest title that will be shown.
    """

    def __init__(
        self, figure: Figure, stage: Stage, window: Window, radius_mm: Floats, title: str
    ) -> None:
        self._figure = figure
        self._canvas: Any = figure.canvas
        self._radius_mm = radius_mm
        nowhere = np.zeros(len(radius_mm))
        axes = figure.subplots()
        self._discs = stage.draw(axes, window).discs
        dark = led_rgb(np.zeros(len(radius_mm), np.int64))
        self._bodies, self._noses = add_robots(axes, nowhere, nowhere, nowhere, radius_mm, dark)
        self._trails = LineCollection([], colors="#44729e", linewidths=0.8, alpha=0.6, zorder=2)
        axes.add_collection(self._trails)
        self._title = axes.set_title(title)
        self._moving: list[Any] = [
            self._trails,
            self._discs,
            self._bodies,
            self._noses,
            self._title,
        ]
        self._canvas.draw()  # lays everything out
        figure.set_layout_engine("none")
        for artist in self._moving:
            artist.set_animated(True)
        self._canvas.mpl_connect("draw_event", self._drawn)
        self._canvas.draw()

    def show(
        self,
        title: str,
        x_mm: Floats,
        y_mm: Floats,
        heading_rad: Floats,
        led: NDArray[np.int64],
        discs_mm: Floats,
        trails: list[Floats],
    ) -> None:
        """Draw robots and pushable discs (rows of x, y) where they are now."""
        rgb = led_rgb(led)
        self._bodies.set_offsets(np.column_stack([x_mm, y_mm]))
        self._bodies.set_facecolor([tuple(row) for row in rgb.tolist()])
        self._noses.set_segments(list(nose_lines(x_mm, y_mm, heading_rad, self._radius_mm)))
        self._noses.set_color([tuple(row) for row in nose_colours(rgb).tolist()])
        self._trails.set_segments(trails)
        self._discs.set_offsets(discs_mm)
        self._title.set_text(title)
        self._canvas.restore_region(self._background)
        self._draw_moving()

    def _drawn(self, _: object) -> None:
        """Keep what stays, at the beginning and whenever a window has got another size."""
        self._background = self._canvas.copy_from_bbox(self._figure.bbox)
        self._draw_moving()

    def _draw_moving(self) -> None:
        for artist in self._moving:
            self._figure.draw_artist(artist)
