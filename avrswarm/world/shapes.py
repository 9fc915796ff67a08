"""Walls, boxes, polygons and images, made into what collisions work with.

A closed outline keeps robots out (or in): its edges are walls on both sides. An image becomes the
distance to the nearest dark pixel at every pixel, so that one look tells whether a body touches,
and which way is out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from avrswarm.jit import entry
from avrswarm.world.collisions import MARGIN_MM
from avrswarm.world.state import Floats, Integers

Point = tuple[float, float]

_FAR = 1e15


def polygon_walls(corners: Sequence[Point]) -> Floats:
    """Return the edges of a closed polygon as rows x1, y1, x2, y2."""
    points = np.asarray(corners, np.float64).reshape(-1, 2)
    return np.hstack([points, np.roll(points, -1, axis=0)])


def box_corners(
    x_mm: float, y_mm: float, width_mm: float, height_mm: float, angle_deg: float = 0.0
) -> list[Point]:
    """Return the corners of a turned rectangle, counter-clockwise."""
    cosine, sine = math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg))
    return [
        (
            x_mm + (sx * width_mm * cosine - sy * height_mm * sine) / 2,
            y_mm + (sx * width_mm * sine + sy * height_mm * cosine) / 2,
        )
        for sx, sy in [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    ]


def is_inside(corners: Sequence[Point], x_mm: float, y_mm: float) -> bool:
    """Tell whether a point is inside a closed polygon (even-odd rule)."""
    inside = False
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if (y1 > y_mm) != (y2 > y_mm) and x_mm < x1 + (y_mm - y1) * (x2 - x1) / (y2 - y1):
            inside = not inside
    return inside


def is_simple(corners: Sequence[Point]) -> bool:
    """Tell whether the sides of a closed polygon meet at its corners only, and none folds back."""
    sides = list(zip(corners, [*corners[1:], corners[0]], strict=True))
    for one, other in combinations(range(len(sides)), 2):
        (a, b), (c, d) = sides[one], sides[other]
        if other - one in (1, len(sides) - 1):
            along = (b[0] - a[0]) * (d[0] - c[0]) + (b[1] - a[1]) * (d[1] - c[1])
            if along < 0 and _turn(a, b, (b[0] + d[0] - c[0], b[1] + d[1] - c[1])) == 0:
                return False
        elif _touch(a, b, c, d):
            return False
    return True


def _touch(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Tell whether two straight lines, a to b and c to d, have a point in common."""
    return (
        all(
            max(a[k], b[k]) >= min(c[k], d[k]) and max(c[k], d[k]) >= min(a[k], b[k])
            for k in (0, 1)
        )
        and _turn(a, b, c) * _turn(a, b, d) <= 0
        and _turn(c, d, a) * _turn(c, d, b) <= 0
    )


def _turn(a: Point, b: Point, c: Point) -> float:
    """Return which way it goes at b from a to c: positive to the left, 0 straight on or back."""
    return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])


def distance_to_walls(walls: Floats, x_mm: float, y_mm: float) -> float:
    """Return the distance from a point to the nearest of the walls."""
    if len(walls) == 0:
        return math.inf
    along = walls[:, 2:] - walls[:, :2]
    to_point = np.array([x_mm, y_mm]) - walls[:, :2]
    square = np.maximum((along**2).sum(axis=1), 1e-300)
    share = np.clip((along * to_point).sum(axis=1) / square, 0.0, 1.0)
    return float(np.sqrt(((to_point - share[:, None] * along) ** 2).sum(axis=1)).min())


def sort_walls(walls: Floats, radius_mm: float) -> tuple[Floats, Integers, Integers]:
    """Sort walls into a grid of cells: frame, start of each cell's list, and the lists.

    A cell lists the walls that a body of up to ``radius_mm`` with its centre in the cell may touch.
    """
    if len(walls) == 0:
        return np.array([0.0, 0.0, 1.0, 0.0, 0.0]), np.zeros(1, np.int64), np.zeros(1, np.int64)
    reach = radius_mm + MARGIN_MM
    low = walls.reshape(-1, 2).min(axis=0) - reach
    high = walls.reshape(-1, 2).max(axis=0) + reach
    cell = max(2 * reach, float((high - low).max()) / 256)
    columns, rows = (int(n) + 1 for n in (high - low) // cell)
    centres_x = low[0] + (np.arange(columns) + 0.5) * cell
    centres_y = low[1] + (np.arange(rows) + 0.5) * cell
    lists: list[list[int]] = [[] for _ in range(columns * rows)]
    limit = reach + cell * math.sqrt(0.5)
    for number, wall in enumerate(walls):
        first_column, last_column = _span(wall[0], wall[2], limit, centres_x)
        first_row, last_row = _span(wall[1], wall[3], limit, centres_y)
        for row in range(first_row, last_row):
            for column in range(first_column, last_column):
                if distance_to_walls(wall[None], centres_x[column], centres_y[row]) <= limit:
                    lists[row * columns + column].append(number)
    first = np.zeros(columns * rows + 1, np.int64)
    first[1:] = np.cumsum([len(numbers) for numbers in lists])
    index = np.array([number for numbers in lists for number in numbers], np.int64)
    return np.array([low[0], low[1], cell, columns, rows]), first, index


def _span(a: float, b: float, limit: float, centres: Floats) -> tuple[int, int]:
    """Return which cells of one row may be near a wall that reaches from ``a`` to ``b``."""
    near = np.flatnonzero((centres >= min(a, b) - limit) & (centres <= max(a, b) + limit))
    return (int(near[0]), int(near[-1]) + 1) if len(near) else (0, 0)


def image_depth(
    grey: Floats, width_mm: float, height_mm: float, wall_below: float = 0.5
) -> tuple[Floats, Floats]:
    """Return depth and frame for a grey image (1 = white floor, 0 = black wall) over the arena.

    The first row of the image is the top. Outside the image everything is wall, by the arena's
    bounds.
    """
    wall = np.ascontiguousarray(grey[::-1] < wall_below)
    rows, columns = wall.shape
    pixel_x, pixel_y = width_mm / columns, height_mm / rows
    to_wall = _distances(wall, pixel_x, pixel_y)
    to_floor = _distances(~wall, pixel_x, pixel_y)
    half = (pixel_x + pixel_y) / 4  # the edge of a wall is half a pixel before its centre
    depth = np.where(wall, half - to_floor, to_wall - half)
    frame = np.array([(pixel_x - width_mm) / 2, (pixel_y - height_mm) / 2, pixel_x, pixel_y])
    return np.ascontiguousarray(np.clip(depth, -1e6, 1e6)), frame


def _distances(
    mask: np.ndarray[tuple[int, int], np.dtype[np.bool_]], dx: float, dy: float
) -> Floats:
    """Return the distance of every pixel to the nearest one in the mask."""
    square = np.where(mask, 0.0, _FAR)
    longest = max(square.shape)
    work = np.zeros((4, longest + 1))
    square_distances(square, dx, dy, work)
    return np.sqrt(square)


@entry
def square_distances(square: Floats, dx: float, dy: float, work: Floats) -> None:
    """Replace 0 (in) and far (out) by the square of the distance to the nearest 0.

    Lower envelope of parabolas along columns, then rows (Felzenszwalb and Huttenlocher, 2012).
    """
    rows, columns = square.shape
    for axis in range(2):
        lines = columns if axis == 0 else rows
        length = rows if axis == 0 else columns
        pitch = dy if axis == 0 else dx
        for line in range(lines):
            for k in range(length):
                work[0, k] = square[k, line] if axis == 0 else square[line, k]
            last = 0
            work[1, 0] = 0.0  # which parabolas form the envelope
            work[2, 0] = -math.inf  # from where each is the lowest
            work[2, 1] = math.inf
            for k in range(1, length):
                while True:
                    p = int(work[1, last])
                    crossing = ((work[0, k] - work[0, p]) / (pitch * pitch) + k * k - p * p) / (
                        2.0 * (k - p)
                    )
                    if crossing > work[2, last]:
                        break
                    last -= 1
                last += 1
                work[1, last] = k
                work[2, last] = crossing
                work[2, last + 1] = math.inf
            current = 0
            for k in range(length):
                while work[2, current + 1] < k:
                    current += 1
                away = pitch * (k - work[1, current])
                work[3, k] = away * away + work[0, int(work[1, current])]
            for k in range(length):
                if axis == 0:
                    square[k, line] = work[3, k]
                else:
                    square[line, k] = work[3, k]
