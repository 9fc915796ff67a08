"""A window that shows a run while it goes on (``avrswarm run --live``)."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
from matplotlib import rc_context
from numpy.typing import NDArray

from avrswarm.errors import UsageError
from avrswarm.record.drawing import STYLE, Stage
from avrswarm.record.moving_picture import TRAIL_S, TRAILED_ROBOTS, MovingPicture
from avrswarm.record.run_folder import RecordedSimulation, pushable_discs, radii_mm
from avrswarm.scene.obstacles import obstacles_of

Floats = NDArray[np.float64]

FRAMES_PER_SECOND = 25.0
MARGIN_MM = 120.0
"""Of an arena that is much larger than the swarm, or has no rim, so much is shown around it."""


def check_screen() -> None:
    """Raise an error that says what is missing if no window can be opened here."""
    from matplotlib import pyplot

    figure = pyplot.figure()  # matplotlib looks for a screen and a toolkit
    toolkit = getattr(figure.canvas, "required_interactive_framework", None)
    pyplot.close(figure)
    if toolkit is not None:
        return
    raise UsageError(
        "--live needs a screen and a window toolkit such as Debian's python3-tk, and found none"
        f" (matplotlib's backend is {pyplot.get_backend()}); --film needs neither"
    )


class LiveWindow:
    """Shows a simulation in a window; call ``update`` after each step of the world.

    The run waits where it would be faster than the scene's ``record.film_speed``. Who closes the
    window lets the run go on without it.

    Attributes
    ----------
    spent_s
        Wall time that ``update`` took for drawing and waiting: no part of the simulation's speed.
    """

    def __init__(self, simulation: RecordedSimulation) -> None:
        from matplotlib import pyplot

        scene = simulation.scene
        self._count = len(simulation.robots)
        self._discs = self._count + np.array(list(pushable_discs(scene)), np.int64)
        self._name = scene.scene.name
        self._speed = scene.record.film_speed
        self._trails: deque[tuple[float, Floats]] = deque()
        stage = Stage(scene, obstacles_of(scene))
        world = simulation.world
        window = stage.window(world.x_mm[: self._count], world.y_mm[: self._count], MARGIN_MM)
        shape = window.figure().get_size_inches()
        with rc_context({**STYLE, "figure.dpi": 100, "toolbar": "None"}):
            self._figure = pyplot.figure(f"avrswarm: {self._name}", shape, layout="constrained")
            self._figure.show()
            self._canvas: Any = self._figure.canvas
            radius = radii_mm(simulation)
            title = self._words(scene.scene.seconds)
            self._picture = MovingPicture(self._figure, stage, window, radius, title)
        self._open = True
        self._canvas.mpl_connect("close_event", self._closed)
        self._start_s = simulation.time_s
        self._shown_at = -np.inf
        self._draw(simulation)
        self._started = time.perf_counter()
        self.spent_s = 0.0

    def update(self, simulation: RecordedSimulation) -> None:
        """Show where robots are now, if the last picture is old enough."""
        if not self._open:
            return
        begin = time.perf_counter()
        if begin - self._shown_at >= 1 / FRAMES_PER_SECOND:
            self._draw(simulation)
        due = self._started + (simulation.time_s - self._start_s) / self._speed
        time.sleep(max(0.0, due - time.perf_counter()))
        self.spent_s += time.perf_counter() - begin

    def hold(self) -> None:
        """Wait until the window is closed."""
        from matplotlib import pyplot

        if self._open:
            pyplot.show(block=True)

    def close(self) -> None:
        """Close the window."""
        from matplotlib import pyplot

        pyplot.close(self._figure)

    def _draw(self, simulation: RecordedSimulation) -> None:
        world, n = simulation.world, self._count
        here = np.column_stack([world.x_mm[:n], world.y_mm[:n]])
        if n <= TRAILED_ROBOTS:
            self._trails.append((simulation.time_s, here))
            while self._trails[0][0] < simulation.time_s - TRAIL_S:
                self._trails.popleft()
        ways = np.stack([place for _, place in self._trails] or [here], axis=1)
        discs = np.column_stack([world.x_mm[self._discs], world.y_mm[self._discs]])
        heading = world.heading_rad[:n]
        title = self._words(simulation.time_s)
        self._picture.show(
            title, here[:, 0], here[:, 1], heading, simulation.led_colours(), discs, list(ways)
        )
        self._canvas.blit(self._figure.bbox)
        self._canvas.flush_events()
        self._shown_at = time.perf_counter()

    def _words(self, time_s: float) -> str:
        return f"{self._name} {time_s:6.1f} s"

    def _closed(self, _: object) -> None:
        self._open = False
