"""Who is within a range of whom: bodies are sorted into cells, the search is linear."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.jit import entry, kernel
from avrswarm.world.state import Floats, Grid, Integers, allocate_grid


class Neighbours(NamedTuple):
    """For each robot a list of others: ``index[first[r]:first[r + 1]]``, rising."""

    grid: Grid
    first: Integers
    index: NDArray[np.int32]  # type: ignore[assignment] # hides tuple.index

    def of(self, robot: int) -> NDArray[np.int32]:
        """Return the neighbours of one robot."""
        return self.index[self.first[robot] : self.first[robot + 1]]


def allocate_neighbours(count: int, per_robot: int = 16) -> Neighbours:
    """Return empty lists for ``count`` robots; ``find_neighbours`` grows them when needed."""
    room = max(1, count * per_robot)
    return Neighbours(
        grid=allocate_grid(count),
        first=np.zeros(count + 1, np.int64),
        index=np.zeros(room, np.int32),
    )


def find_neighbours(
    x_mm: Floats, y_mm: Floats, count: int, range_mm: float, lists: Neighbours
) -> Neighbours:
    """List, for each of the first ``count`` bodies, the others whose centres are within a range.

    Returns ``lists``, or larger ones if its arrays were too small.
    """
    needed = list_neighbours(x_mm, y_mm, count, range_mm, lists)
    if needed > len(lists.index):
        room = needed + needed // 4
        lists = lists._replace(index=np.zeros(room, np.int32))
        list_neighbours(x_mm, y_mm, count, range_mm, lists)
    return lists


@kernel
def are_near(x_mm: Floats, y_mm: Floats, then_x_mm: Floats, then_y_mm: Floats, mm: float) -> bool:
    """Tell whether no body is further than ``mm`` from where it was then."""
    for body in range(len(then_x_mm)):
        dx = x_mm[body] - then_x_mm[body]
        dy = y_mm[body] - then_y_mm[body]
        if not dx * dx + dy * dy <= mm * mm:
            return False
    return True


@entry
def list_neighbours(
    x_mm: Floats, y_mm: Floats, count: int, range_mm: float, lists: Neighbours
) -> int:
    """Fill the lists and return how many entries there are; more than fit are only counted."""
    return fill_lists(x_mm, y_mm, count, range_mm, lists)


@kernel
def fill_lists(x_mm: Floats, y_mm: Floats, count: int, range_mm: float, lists: Neighbours) -> int:
    """Fill the lists (compiled code calls this one)."""
    sort_into_cells(x_mm, y_mm, count, range_mm, lists.grid)
    columns = int(lists.grid.frame[3])
    rows = int(lists.grid.frame[4])
    reach = math.ceil(range_mm / lists.grid.frame[2])
    room = len(lists.index)
    total = 0
    for robot in range(count):
        lists.first[robot] = total
        begin = total
        cell = lists.grid.cell_of[robot]
        row = cell // columns
        column = cell - row * columns
        for r in range(max(0, row - reach), min(rows, row + reach + 1)):
            low = r * columns + max(0, column - reach)
            high = r * columns + min(columns - 1, column + reach)
            for k in range(lists.grid.first[low], lists.grid.first[high + 1]):
                other = lists.grid.order[k]
                dx = x_mm[other] - x_mm[robot]
                dy = y_mm[other] - y_mm[robot]
                square = dx * dx + dy * dy
                if other == robot or square > range_mm * range_mm:
                    continue
                if total < room:
                    _insert(lists, begin, total, other)
                total += 1
    lists.first[count] = total
    return total


@kernel
def _insert(lists: Neighbours, begin: int, end: int, other: int) -> None:
    """Put a neighbour at its place in a rising list."""
    place = end
    while place > begin and lists.index[place - 1] > other:
        lists.index[place] = lists.index[place - 1]
        place -= 1
    lists.index[place] = other


@kernel
def sort_into_cells(x_mm: Floats, y_mm: Floats, count: int, cell_mm: float, grid: Grid) -> None:
    """Sort the first bodies into cells of ``cell_mm`` or, if those were too many, larger."""
    left = bottom = math.inf
    right = top = -math.inf
    for body in range(count):
        left = min(left, x_mm[body])
        right = max(right, x_mm[body])
        bottom = min(bottom, y_mm[body])
        top = max(top, y_mm[body])
    if count == 0:
        left = right = bottom = top = 0.0
    room = len(grid.first) - 1
    while ((right - left) // cell_mm + 1.0) * ((top - bottom) // cell_mm + 1.0) > room:
        cell_mm *= 1.25
    columns = int((right - left) // cell_mm) + 1
    rows = int((top - bottom) // cell_mm) + 1
    grid.frame[0] = left
    grid.frame[1] = bottom
    grid.frame[2] = cell_mm
    grid.frame[3] = columns
    grid.frame[4] = rows

    for cell in range(columns * rows + 1):
        grid.first[cell] = 0
    for body in range(count):
        column = int((x_mm[body] - left) // cell_mm)
        row = int((y_mm[body] - bottom) // cell_mm)
        cell = row * columns + column
        grid.cell_of[body] = cell
        grid.first[cell + 1] += 1
    for cell in range(columns * rows):
        grid.first[cell + 1] += grid.first[cell]
    for body in range(count - 1, -1, -1):  # from the back, so that cells list their bodies in order
        cell = grid.cell_of[body]
        grid.first[cell + 1] -= 1
        grid.order[grid.first[cell + 1]] = body
    # now first[cell + 1] is where `cell` begins: move the table down by one
    for cell in range(columns * rows):
        grid.first[cell] = grid.first[cell + 1]
    grid.first[columns * rows] = count
