"""Where the robots of a scene stand at the start.

Patterns are worked out, random places are drawn from the scene's seed, and then everything is
checked: robots must not overlap each other, nor anything else.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.jit import entry, kernel
from avrswarm.randomness import Stream, draw_uniform
from avrswarm.scene.model import (
    At,
    Disc,
    FilePattern,
    GridPattern,
    HexPattern,
    LinePattern,
    RandomPattern,
    RingPattern,
    RobotGroup,
    Scene,
)
from avrswarm.scene.obstacles import Obstacles, obstacles_of
from avrswarm.world.neighbours import allocate_neighbours, find_neighbours

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOUCHING_MM = 1e-6
"""Robots may stand rim to rim; this much is rounding."""
_ROUNDS = 40
_DARTS = 8  # candidates per wanted robot and round
_HEADINGS, _JITTER, _DARTS_X = 0, 1, 16  # which numbers of a group are drawn for what
_SETS_PER_GROUP = 256


class Placed(NamedTuple):
    """Position, heading and group (index into ``scene.robots``) of every robot."""

    x_mm: Floats
    y_mm: Floats
    heading_rad: Floats
    group: Integers


def place_robots(scene: Scene) -> Placed:
    """Return where robots stand; SceneError if they cannot stand there."""
    obstacles = obstacles_of(scene)
    x = np.zeros(0)
    y = np.zeros(0)
    heading = np.zeros(0)
    radius = np.zeros(0)
    group_of = np.zeros(0, np.int64)
    for number, group in enumerate(scene.robots):
        count = group.places
        if isinstance(group.placement, RandomPattern):
            own_x, own_y = _darts(scene, number, group, obstacles, x, y, radius)
            own_heading = None
        else:
            own_x, own_y, own_heading = _pattern(scene, number, group)
        x = np.concatenate([x, own_x])
        y = np.concatenate([y, own_y])
        heading = np.concatenate([heading, _headings(scene, number, own_x, own_y, own_heading)])
        radius = np.concatenate([radius, np.full(count, group.radius_mm)])
        group_of = np.concatenate([group_of, np.full(count, number, np.int64)])
    placed = Placed(x, y, heading, group_of)
    _check_discs(scene, obstacles)
    _check_obstacles(scene, placed, radius, obstacles)
    _check_overlaps(scene, placed, radius)
    return placed


# ---- patterns ------------------------------------------------------------------------------------


def _pattern(scene: Scene, number: int, group: RobotGroup) -> tuple[Floats, Floats, Floats | None]:
    """Return places and, where the scene gives them, headings in degrees (NaN = not given)."""
    placement = group.placement
    n = np.arange(group.places)
    if isinstance(placement, At):
        poses = np.array([[*p, math.nan][:3] for p in placement.points_mm], np.float64)
        return poses[:, 0], poses[:, 1], poses[:, 2]
    if isinstance(placement, FilePattern):
        columns = placement.columns()
        heading = columns.get("heading_deg")
        return (
            np.array(columns["x_mm"]),
            np.array(columns["y_mm"]),
            None if heading is None else np.array(heading),
        )
    if isinstance(placement, GridPattern):
        columns_n = placement.columns or math.ceil(math.sqrt(len(n)))
        rows_n = math.ceil(len(n) / columns_n)
        x = (n % columns_n - (min(columns_n, len(n)) - 1) / 2) * placement.pitch_mm
        y = (n // columns_n - (rows_n - 1) / 2) * placement.pitch_mm
        if placement.jitter_mm:
            first = number * _SETS_PER_GROUP + _JITTER
            key = scene.scene.seed
            x = (
                x
                + (2 * draw_uniform(key, Stream.PLACEMENT, len(n), first) - 1) * placement.jitter_mm
            )
            y = (
                y
                + (2 * draw_uniform(key, Stream.PLACEMENT, len(n), first + 1) - 1)
                * placement.jitter_mm
            )
    elif isinstance(placement, LinePattern):
        along = (n - (len(n) - 1) / 2) * placement.pitch_mm
        x = along * math.cos(math.radians(placement.direction_deg))
        y = along * math.sin(math.radians(placement.direction_deg))
    elif isinstance(placement, RingPattern):
        angle = math.radians(placement.start_deg) + 2 * np.pi * n / len(n)
        x, y = placement.radius_mm * np.cos(angle), placement.radius_mm * np.sin(angle)
    else:
        assert isinstance(placement, HexPattern)
        x, y = _hexagon(len(n), placement.pitch_mm)
    return _settled(placement.x_mm + x), _settled(placement.y_mm + y), None


def _settled(values: NDArray[np.floating]) -> Floats:
    """Round to 1e-9: the last bits of library functions differ between machines."""
    return np.asarray(np.round(values, 9), np.float64)


def _hexagon(count: int, pitch_mm: float) -> tuple[Floats, Floats]:
    """Return the first places of a spiral of hexagonal rings."""
    places = [(0.0, 0.0)]
    ring = 0
    while len(places) < count:
        ring += 1
        corners = [(math.cos(k * math.pi / 3), math.sin(k * math.pi / 3)) for k in range(7)]
        for (x1, y1), (x2, y2) in pairwise(corners):
            for k in range(ring):
                share = k / ring
                places.append((ring * (x1 + share * (x2 - x1)), ring * (y1 + share * (y2 - y1))))
    points = np.array(places[:count]) * pitch_mm
    return points[:, 0], points[:, 1]


def _headings(
    scene: Scene, number: int, x_mm: Floats, y_mm: Floats, given_deg: Floats | None
) -> Floats:
    group = scene.robots[number]
    wanted = group.heading_deg
    if isinstance(wanted, float | int):
        degrees = np.full(len(x_mm), float(wanted))
    elif wanted == "random":
        first = number * _SETS_PER_GROUP + _HEADINGS
        degrees = 360 * draw_uniform(scene.scene.seed, Stream.PLACEMENT, len(x_mm), first)
    else:
        middle_x = getattr(group.placement, "x_mm", 0.0)
        middle_y = getattr(group.placement, "y_mm", 0.0)
        outward = np.rad2deg(np.arctan2(y_mm - middle_y, x_mm - middle_x))
        turn = {"outward": 0, "inward": 180, "clockwise": -90, "counterclockwise": 90}[wanted]
        degrees = outward + turn
    if given_deg is not None:
        degrees = np.where(np.isnan(given_deg), degrees, given_deg)
    radians = np.asarray(np.deg2rad(degrees), np.float64)
    return _settled(np.mod(radians + np.pi, 2 * np.pi) - np.pi)


# ---- random places -------------------------------------------------------------------------------


def _darts(
    scene: Scene,
    number: int,
    group: RobotGroup,
    obstacles: Obstacles,
    x_mm: Floats,
    y_mm: Floats,
    radius_mm: Floats,
) -> tuple[Floats, Floats]:
    """Return random places that overlap nothing: candidates are taken if there is room."""
    placement = group.placement
    assert isinstance(placement, RandomPattern)
    count, radius = group.places, group.radius_mm
    half_x, half_y = _region(scene, number, placement, radius)
    before = len(x_mm)
    x = np.concatenate([x_mm, np.zeros(count)])
    y = np.concatenate([y_mm, np.zeros(count)])
    all_radii = np.concatenate([radius_mm, np.full(count, radius)])
    cell = 2 * float(all_radii.max()) + placement.gap_mm
    extent = max(half_x, half_y, float(np.abs(x).max()), float(np.abs(y).max())) + cell
    extent += abs(placement.x_mm) + abs(placement.y_mm)
    cells = min(max(int(2 * extent / cell), 1), 1024)  # cells are no smaller than `cell`
    heads = np.full((cells, cells), -1, np.int64)
    nexts = np.full(before + count, -1, np.int64)
    filled = before
    size = _DARTS * count + 64
    for attempt in range(_ROUNDS):
        first = number * _SETS_PER_GROUP + _DARTS_X + 2 * attempt
        u = 2 * draw_uniform(scene.scene.seed, Stream.PLACEMENT, size, first) - 1
        v = 2 * draw_uniform(scene.scene.seed, Stream.PLACEMENT, size, first + 1) - 1
        if placement.radius_mm is not None:
            keep = u * u + v * v <= 1
            u, v = u[keep], v[keep]
        dart_x, dart_y = placement.x_mm + u * half_x, placement.y_mm + v * half_y
        free = obstacles.clearance_mm(dart_x, dart_y) >= radius
        filled = take_free_places(
            np.ascontiguousarray(dart_x[free]),
            np.ascontiguousarray(dart_y[free]),
            x,
            y,
            all_radii,
            before if attempt == 0 else 0,
            filled,
            placement.gap_mm,
            extent,
            heads,
            nexts,
        )
        if filled == before + count:
            return x[before:], y[before:]
    raise scene.error(
        f"robots.{number}.placement",
        f"there is room for only {filled - before} of {count} robots at random"
        f" (radius {radius:g} mm, gap_mm {placement.gap_mm:g}); a larger arena"
        ' or region, a smaller gap_mm, fewer robots, or kind = "hex" helps',
    )


def _region(
    scene: Scene, number: int, placement: RandomPattern, radius: float
) -> tuple[float, float]:
    """Return half the size of the region that centres may be in."""
    if placement.radius_mm is not None:
        return placement.radius_mm, placement.radius_mm
    arena = scene.arena
    if arena.shape == "open" and (placement.width_mm is None or placement.height_mm is None):
        raise scene.error(
            f"robots.{number}.placement", "an open arena has no size: give width_mm and height_mm"
        )
    height = arena.width_mm if arena.shape == "circle" else arena.height_mm
    half_x = (placement.width_mm or arena.width_mm) / 2
    half_y = (placement.height_mm or height) / 2
    if placement.width_mm is None:
        half_x = max(half_x - radius, 0.0)
    if placement.height_mm is None:
        half_y = max(half_y - radius, 0.0)
    return half_x, half_y


@entry
def take_free_places(
    dart_x: Floats,
    dart_y: Floats,
    x: Floats,
    y: Floats,
    radius: Floats,
    known: int,
    filled: int,
    gap_mm: float,
    extent: float,
    heads: Integers,
    nexts: Integers,
) -> int:
    """Add places that keep the gap to all before them; return how many robots stand then.

    ``heads`` and ``nexts`` are lists of robots per cell; the first ``known`` are entered first.
    """
    cells = len(heads)
    scale = cells / (2.0 * extent)
    for robot in range(known):
        _enter(x, y, robot, extent, scale, heads, nexts)
    for dart in range(len(dart_x)):
        if filled == len(x):
            break
        column = int((dart_x[dart] + extent) * scale)
        row = int((dart_y[dart] + extent) * scale)
        free = True
        for r in range(max(0, row - 1), min(cells, row + 2)):
            for c in range(max(0, column - 1), min(cells, column + 2)):
                other = heads[r, c]
                while other >= 0:
                    dx = x[other] - dart_x[dart]
                    dy = y[other] - dart_y[dart]
                    least = radius[other] + radius[filled] + gap_mm
                    if dx * dx + dy * dy < least * least:
                        free = False
                    other = nexts[other]
        if free:
            x[filled] = dart_x[dart]
            y[filled] = dart_y[dart]
            _enter(x, y, filled, extent, scale, heads, nexts)
            filled += 1
    return filled


@kernel
def _enter(
    x: Floats,
    y: Floats,
    robot: int,
    extent: float,
    scale: float,
    heads: Integers,
    nexts: Integers,
) -> None:
    column = int((x[robot] + extent) * scale)
    row = int((y[robot] + extent) * scale)
    nexts[robot] = heads[row, column]
    heads[row, column] = robot


# ---- checks --------------------------------------------------------------------------------------


def _check_discs(scene: Scene, obstacles: Obstacles) -> None:
    """Nothing may stand where a pushable disc is: it would be thrown off at the start."""
    for number, disc in enumerate(scene.objects):
        if not isinstance(disc, Disc) or not disc.pushable:
            continue
        others = [other for other in obstacles.discs if other is not disc]
        place = np.array([disc.x_mm], np.float64), np.array([disc.y_mm], np.float64)
        clear = float(obstacles._replace(discs=others).clearance_mm(*place)[0])
        if clear < disc.radius_mm - TOUCHING_MM:
            raise scene.error(
                f"objects.{number}",
                f"the disc at x = {disc.x_mm:g} mm, y = {disc.y_mm:g} mm is"
                f" {disc.radius_mm - clear:.1f} mm too close to a wall, another object or the rim",
            )


def _check_obstacles(scene: Scene, placed: Placed, radius: Floats, obstacles: Obstacles) -> None:
    clear = obstacles.clearance_mm(placed.x_mm, placed.y_mm)
    bad = np.flatnonzero(clear < radius - TOUCHING_MM)
    if len(bad):
        robot = int(bad[0])
        more = f" (and {len(bad) - 1} more robots)" if len(bad) > 1 else ""
        arena = scene.arena
        size = {"open": "", "circle": f"; the arena is a circle of {arena.width_mm:g} mm"}.get(
            arena.shape,
            f"; the arena is {arena.width_mm:g} x {arena.height_mm:g} mm round the origin",
        )
        raise scene.error(
            f"robots.{placed.group[robot]}.placement",
            f"{_where(placed, robot)} is {radius[robot] - clear[robot]:.1f} mm too close to a wall,"
            f" an object or the rim{more}{size}",
        )


def _check_overlaps(scene: Scene, placed: Placed, radius: Floats) -> None:
    count = len(placed.x_mm)
    near = find_neighbours(
        placed.x_mm, placed.y_mm, count, 2 * float(radius.max()), allocate_neighbours(count)
    )
    for robot in range(count):
        for other in near.of(robot).tolist():
            distance = math.dist(
                (placed.x_mm[robot], placed.y_mm[robot]), (placed.x_mm[other], placed.y_mm[other])
            )
            needed = radius[robot] + radius[other]
            if other > robot and distance < needed - TOUCHING_MM:
                raise scene.error(
                    f"robots.{placed.group[other]}.placement",
                    f"{_where(placed, other)} overlaps {_where(placed, robot)} of"
                    f" robots.{placed.group[robot]}: their centres are {distance:.1f} mm apart,"
                    f" {needed:g} mm are needed",
                )


def _where(placed: Placed, robot: int) -> str:
    return f"robot {robot} at x = {placed.x_mm[robot]:.1f} mm, y = {placed.y_mm[robot]:.1f} mm"
