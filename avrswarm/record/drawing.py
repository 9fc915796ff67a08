"""The stage as a picture: arena, obstacles and light to scale, robots as discs with their LEDs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection, PatchCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle
from numpy.typing import NDArray

from avrswarm.record.run_folder import Run
from avrswarm.robot.led import BRIGHTNESS
from avrswarm.scene.build import make_scene_light
from avrswarm.scene.model import Lamp, Scene
from avrswarm.scene.obstacles import Obstacles, obstacles_of
from avrswarm.world.build import make_world
from avrswarm.world.light import illuminate
from avrswarm.world.state import CIRCLE, NO_BOUNDS

Floats = NDArray[np.float64]

WALL = "#4d4d4d"
FLOOR = "#ffffff"
LED_OFF = (0.87, 0.87, 0.87)
PATH_OFF = (0.75, 0.75, 0.75)
LUMINANCE = np.array([0.3, 0.59, 0.11])
LINE_LUMINANCE = 0.5  # luminance that a line on white may have at most
BODY_EDGE = "#333333"
LAMP: Any = {"marker": "*", "color": "#ffb000", "markeredgecolor": "#5c3d00"}
LIGHT_COLOURS = LinearSegmentedColormap.from_list("light", ["#ffffff", "#fff3c4", "#ffd873"])

STYLE: Any = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.dpi": 150,
    "savefig.dpi": 200,
}


def new_figure(width_in: float, height_in: float) -> Figure:
    """Return a figure that does not touch pyplot's state; use it inside ``rc_context(STYLE)``."""
    return Figure(figsize=(width_in, height_in), layout="constrained")


class Window(NamedTuple):
    """The part of the table that is shown, in mm."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def width(self) -> float:
        """Size along x."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Size along y."""
        return self.top - self.bottom

    @property
    def inches_per_mm(self) -> float:
        """Scale of pictures."""
        return 5.6 / max(self.width, self.height)

    def figure(self) -> Figure:
        """Return a figure of this shape, with room for labels."""
        scale = self.inches_per_mm
        return new_figure(scale * self.width + 0.9, scale * self.height + 0.9)


class Drawn(NamedTuple):
    """What was drawn: light for a colour bar (None in the dark), and the pushable discs."""

    light: Any
    discs: EllipseCollection


class Tracks(NamedTuple):
    """A trajectory as arrays: one row per time, one column per robot or pushable disc."""

    times_s: Floats
    x_mm: Floats
    y_mm: Floats
    heading_rad: Floats
    led: NDArray[np.int64]
    disc_x_mm: Floats
    disc_y_mm: Floats

    @classmethod
    def of(cls, run: Run) -> Tracks:
        """Return the trajectory of a run."""
        names = ["time_s", "x_mm", "y_mm", "heading_rad", "led"]
        table = run.table("trajectory", names)
        count = run.info["robots"]
        rows = table.num_rows // count * count
        times, x, y, heading, led = (
            table[name].to_numpy()[:rows].reshape(-1, count) for name in names
        )
        discs = run.table("objects", ["x_mm", "y_mm"])
        disc_x, disc_y = (
            discs[name]
            .to_numpy()[: discs.num_rows // max(1, len(times)) * len(times)]
            .reshape(len(times), -1)
            for name in ("x_mm", "y_mm")
        )
        return cls(times[:, 0], x, y, heading, led.astype(np.int64), disc_x, disc_y)


class Stage(NamedTuple):
    """Everything about the table that pictures show."""

    scene: Scene
    obstacles: Obstacles

    @classmethod
    def of(cls, run: Run) -> Stage:
        """Return the stage of a run."""
        return cls(run.stage, obstacles_of(run.stage))

    def window(self, x_mm: Floats, y_mm: Floats, margin_mm: float) -> Window:
        """Return what to show: the arena, or where robots were if that is much less."""
        left, right = float(x_mm.min()) - margin_mm, float(x_mm.max()) + margin_mm
        bottom, top = float(y_mm.min()) - margin_mm, float(y_mm.max()) + margin_mm
        kind, half_width, half_height = self.obstacles.bounds
        if kind != NO_BOUNDS:
            if max(right - left, top - bottom) > 0.7 * 2 * min(half_width, half_height):
                rim = 0.02 * max(half_width, half_height)
                return Window(
                    -half_width - rim, half_width + rim, -half_height - rim, half_height + rim
                )
            left, right = max(left, -half_width), min(right, half_width)
            bottom, top = max(bottom, -half_height), min(top, half_height)
        # not thinner than 2 : 1
        width, height = right - left, top - bottom
        more_x, more_y = max(0.0, height / 2 - width) / 2, max(0.0, width / 2 - height) / 2
        return Window(left - more_x, right + more_x, bottom - more_y, top + more_y)

    def draw(self, axes: Axes, window: Window, discs_mm: Floats | None = None) -> Drawn:
        """Draw everything but robots; ``discs_mm`` has rows x, y for pushable discs, in order."""
        light = self._draw_light(axes, window) if self.scene.lights else None
        self._draw_rim(axes)
        self._draw_image(axes)
        axes.plot(*self.lamps_in(window).T, linestyle="", **LAMP, markersize=13, zorder=3.5)
        discs = self.obstacles.discs
        solid: list[Any] = [Polygon(outline) for outline in self.obstacles.outlines]
        solid += [Circle((d.x_mm, d.y_mm), d.radius_mm) for d in discs if not d.pushable]
        axes.add_collection(PatchCollection(solid, facecolor="#b3b3b3", edgecolor=WALL, lw=1.0))
        loose = [disc for disc in discs if disc.pushable]
        if discs_mm is None or len(discs_mm) == 0:
            discs_mm = np.array([[d.x_mm, d.y_mm] for d in loose]).reshape(-1, 2)
        diameters = [2 * disc.radius_mm for disc in loose]
        moving = EllipseCollection(
            diameters,
            diameters,
            [0.0] * len(loose),
            units="xy",
            offsets=discs_mm,
            offset_transform=axes.transData,
            facecolors="#d9c3a5",
            edgecolors="#7a5c33",
        )
        axes.add_collection(moving)
        walls = [
            [tuple(thing.from_mm), tuple(thing.to_mm)]
            for thing in self.scene.objects
            if thing.kind == "wall"
        ]
        axes.add_collection(LineCollection(walls, colors=WALL, linewidths=2.0))
        axes.set_aspect("equal")
        axes.set_xlim(window.left, window.right)
        axes.set_ylim(window.bottom, window.top)
        if self.obstacles.bounds[0] != NO_BOUNDS and window.width >= 2 * self.obstacles.bounds[1]:
            axes.spines[:].set_visible(False)  # the arena has a rim of its own
        axes.set_xlabel("x (mm)")
        axes.set_ylabel("y (mm)")
        return Drawn(light, moving)

    def lamps_in(self, window: Window) -> Floats:
        """Return where lamps hang that are shown, rows of x and y."""
        places = [(lamp.x_mm, lamp.y_mm) for lamp in self.scene.lights if isinstance(lamp, Lamp)]
        x, y = np.array(places).reshape(-1, 2).T
        inside = (window.left <= x) & (x <= window.right) & (window.bottom <= y) & (y <= window.top)
        return np.column_stack([x, y])[inside]

    def _draw_light(self, axes: Axes, window: Window) -> Any:
        columns, rows = 160, 160
        kind, half_width, half_height = self.obstacles.bounds
        if kind != NO_BOUNDS:  # light is shown within the arena
            left, right = max(window.left, -half_width), min(window.right, half_width)
            bottom, top = max(window.bottom, -half_height), min(window.top, half_height)
            window = Window(left, right, bottom, top)
        x, y = np.meshgrid(
            np.linspace(window.left, window.right, columns),
            np.linspace(window.bottom, window.top, rows),
        )
        lux = np.zeros(x.size)
        sensors = make_world(x.ravel(), y.ravel(), np.zeros(x.size))
        illuminate(sensors, make_scene_light(self.scene), 0.0, 0.0, lux)
        if lux.max() <= 0:
            return None
        image = axes.imshow(
            lux.reshape(rows, columns),
            extent=(window.left, window.right, window.bottom, window.top),
            origin="lower",
            cmap=LIGHT_COLOURS,
            vmin=0.0,
            interpolation="bilinear",
            zorder=-2,
        )
        if kind == CIRCLE:
            image.set_clip_path(Circle((0, 0), half_width, transform=axes.transData))
        return image

    def _draw_rim(self, axes: Axes) -> None:
        kind, half_width, half_height = self.obstacles.bounds
        if kind == NO_BOUNDS:
            return
        style: dict[str, Any] = {"fill": False, "edgecolor": WALL, "linewidth": 2.0, "zorder": 1}
        if kind == CIRCLE:
            axes.add_patch(Circle((0, 0), half_width, **style))
        else:
            corner = (-half_width, -half_height)
            axes.add_patch(Rectangle(corner, 2 * half_width, 2 * half_height, **style))

    def _draw_image(self, axes: Axes) -> None:
        """Draw the dark parts of an arena's image as walls."""
        depth = self.obstacles.depth_mm
        if depth.size == 0:
            return
        left, bottom, across, up = self.obstacles.depth_frame
        rows, columns = depth.shape
        wall = np.zeros((rows, columns, 4))
        wall[depth < 0] = (0.3, 0.3, 0.3, 1.0)
        extent = (
            left - across / 2,
            left + (columns - 0.5) * across,
            bottom - up / 2,
            bottom + (rows - 0.5) * up,
        )
        axes.imshow(wall, extent=extent, origin="lower", interpolation="nearest", zorder=-1)


def led_rgb(colours: NDArray[Any]) -> Floats:
    """Return red, green and blue for a screen, one row per robot; light grey where it is off."""
    parts = np.stack([colours >> shift & 3 for shift in (0, 2, 4)], axis=-1).astype(np.int64)
    bright = np.array(BRIGHTNESS)[parts] / BRIGHTNESS[3]
    rgb = np.sqrt(bright)  # as bright as it looks
    rgb[(parts == 0).all(axis=-1)] = LED_OFF
    return rgb


def path_colours(colours: NDArray[Any]) -> Floats:
    """Return colours of LEDs for lines on white: bright ones darker, light grey where it is off."""
    rgb = led_rgb(colours)
    luminance = rgb @ LUMINANCE
    rgb *= np.minimum(1.0, LINE_LUMINANCE / luminance)[:, None]
    rgb[np.asarray(colours) == 0] = PATH_OFF
    return rgb


def add_robots(
    axes: Axes, x_mm: Floats, y_mm: Floats, heading_rad: Floats, radius_mm: Floats, rgb: Floats
) -> tuple[EllipseCollection, LineCollection]:
    """Draw robots to scale; a line from the centre shows where each is heading."""
    thin = 0.8 if len(x_mm) <= 200 else 0.4
    bodies = EllipseCollection(
        2 * radius_mm,
        2 * radius_mm,
        np.zeros(len(x_mm)),
        units="xy",
        offsets=np.column_stack([x_mm, y_mm]),
        offset_transform=axes.transData,
        facecolors=rgb,
        edgecolors=BODY_EDGE,
        linewidths=thin,
        zorder=4,
    )
    noses = LineCollection(
        list(nose_lines(x_mm, y_mm, heading_rad, radius_mm)),
        colors=nose_colours(rgb),
        linewidths=2 * thin,
        capstyle="round",
        zorder=5,
    )
    axes.add_collection(bodies)
    axes.add_collection(noses)
    return bodies, noses


def nose_colours(rgb: Floats) -> Floats:
    """Return dark lines for bright robots and bright lines for dark ones."""
    bright = rgb @ LUMINANCE > 0.45
    return np.where(bright[:, None], 0.2, 1.0) * np.ones(3)


def nose_lines(x_mm: Floats, y_mm: Floats, heading_rad: Floats, radius_mm: Floats) -> Floats:
    """Return for each robot a line from halfway to its rim."""
    direction = np.column_stack([np.cos(heading_rad), np.sin(heading_rad)]) * radius_mm[:, None]
    centre = np.column_stack([x_mm, y_mm])
    return np.stack([centre + 0.45 * direction, centre + 0.95 * direction], axis=1)
