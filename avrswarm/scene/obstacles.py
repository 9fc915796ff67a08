"""Everything in a scene that robots cannot enter, and how far a place is from it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.scene.model import Box, Disc, Polygon, Scene, Wall
from avrswarm.scene.picture import read_grey
from avrswarm.world import shapes
from avrswarm.world.state import CIRCLE, NO_BOUNDS, RECTANGLE

Floats = NDArray[np.float64]


class Obstacles(NamedTuple):
    """Rim, walls, closed outlines (also part of ``walls``), discs, and the walls of an image."""

    bounds: tuple[int, float, float]
    walls: Floats
    outlines: list[list[tuple[float, float]]]
    discs: list[Disc]
    depth_mm: Floats
    depth_frame: Floats

    def clearance_mm(self, x_mm: Floats, y_mm: Floats) -> Floats:
        """Return how far places are from the nearest obstacle; negative inside one."""
        kind, half_width, half_height = self.bounds
        clear = np.full(len(x_mm), math.inf)
        if kind == RECTANGLE:
            clear = np.minimum(half_width - np.abs(x_mm), half_height - np.abs(y_mm))
        elif kind == CIRCLE:
            clear = half_width - np.sqrt(x_mm**2 + y_mm**2)
        for x1, y1, x2, y2 in self.walls:
            clear = np.minimum(clear, _to_segment(x_mm, y_mm, x1, y1, x2, y2))
        for outline in self.outlines:
            inside = np.array(
                [shapes.is_inside(outline, x, y) for x, y in zip(x_mm, y_mm, strict=True)], bool
            )
            clear = np.where(inside, -np.abs(clear), clear)
        for disc in self.discs:
            away = np.sqrt((x_mm - disc.x_mm) ** 2 + (y_mm - disc.y_mm) ** 2) - disc.radius_mm
            clear = np.minimum(clear, away)
        if self.depth_mm.size:
            clear = np.minimum(clear, self._depth_at(x_mm, y_mm))
        return clear

    def _depth_at(self, x_mm: Floats, y_mm: Floats) -> Floats:
        left, bottom, across, up = self.depth_frame
        rows, columns = self.depth_mm.shape
        u = np.clip((x_mm - left) / across, 0, columns - 1.001)
        v = np.clip((y_mm - bottom) / up, 0, rows - 1.001)
        column, row = u.astype(np.int64), v.astype(np.int64)
        u, v = u - column, v - row
        d = self.depth_mm
        low = d[row, column] * (1 - u) + d[row, column + 1] * u
        high = d[row + 1, column] * (1 - u) + d[row + 1, column + 1] * u
        return np.asarray(low * (1 - v) + high * v)


def _to_segment(x: Floats, y: Floats, x1: float, y1: float, x2: float, y2: float) -> Floats:
    along_x, along_y = x2 - x1, y2 - y1
    square = along_x**2 + along_y**2
    share = ((x - x1) * along_x + (y - y1) * along_y) / square if square > 0 else np.zeros_like(x)
    share = np.clip(share, 0, 1)
    return np.asarray(np.sqrt((x - x1 - share * along_x) ** 2 + (y - y1 - share * along_y) ** 2))


def obstacles_of(scene: Scene) -> Obstacles:
    """Return the obstacles of a scene."""
    arena = scene.arena
    kind = {"open": NO_BOUNDS, "rectangle": RECTANGLE, "circle": CIRCLE}[arena.shape]
    half_height = arena.width_mm / 2 if kind == CIRCLE else arena.height_mm / 2
    walls: list[Floats] = []
    outlines: list[list[tuple[float, float]]] = []
    discs: list[Disc] = []
    for thing in scene.objects:
        if isinstance(thing, Disc):
            discs.append(thing)
        elif isinstance(thing, Wall):
            walls.append(np.array([[*thing.from_mm, *thing.to_mm]], np.float64))
        else:
            outlines.append(_corners(thing))
            walls.append(shapes.polygon_walls(outlines[-1]))
    depth, frame = np.zeros((0, 0)), np.zeros(4)
    if arena.image is not None:
        grey = read_grey(arena.image)
        if kind == CIRCLE and arena.width_mm != arena.height_mm:
            raise scene.error("arena.image", "in a circle, width_mm and height_mm must be equal")
        if not (grey >= arena.image_wall_below).any():
            raise scene.error(
                "arena.image",
                f"{arena.image} has no floor: nothing in it is as light as"
                f" image_wall_below = {arena.image_wall_below:g}",
            )
        depth, frame = shapes.image_depth(
            grey, arena.width_mm, arena.height_mm, arena.image_wall_below
        )
    return Obstacles(
        bounds=(kind, arena.width_mm / 2, half_height),
        walls=np.vstack(walls) if walls else np.zeros((0, 4)),
        outlines=outlines,
        discs=discs,
        depth_mm=depth,
        depth_frame=frame,
    )


def _corners(thing: Box | Polygon) -> list[tuple[float, float]]:
    if isinstance(thing, Box):
        return shapes.box_corners(
            thing.x_mm, thing.y_mm, thing.width_mm, thing.height_mm, thing.angle_deg
        )
    return [(float(x), float(y)) for x, y in thing.points_mm]
