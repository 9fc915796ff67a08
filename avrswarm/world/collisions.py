"""Bodies that touch push each other; walls do not give way (a model).

After robots have moved as if alone, overlaps are shared out by mass, a few times over. All
corrections of a pass are worked out from the same positions and added up in whole nanometres, so
the outcome does not depend on the order of robots, to the last bit. What is still too close after
the last pass (a crowd that pushes against itself) goes back to where it was before the step: bodies
never overlap by more than ``TOLERANCE_MM`` if they did not at the start.
"""

from __future__ import annotations

import math

from avrswarm.jit import kernel
from avrswarm.world.neighbours import sort_into_cells
from avrswarm.world.state import CIRCLE, RECTANGLE, WorkSpace, WorldState

TOLERANCE_MM = 0.05
GOOD_ENOUGH_MM = 0.01
PASSES = 16
MARGIN_MM = 4.0
"""Pairs are listed when this close to touching. A list holds until a body has moved a quarter of
it."""
LONGEST_STEP_MM = MARGIN_MM / 4
"""No body goes farther in one step, pushed or driven: no pair can touch that was not listed."""

_UNITS_PER_MM = 1e6  # corrections are added up in nanometres
_FREE, _BACK = 0, 1


@kernel
def keep_pairs_listed(world: WorldState, work: WorkSpace) -> int:
    """Build the list of pairs that may touch, unless it holds; return -1 if it has no room."""
    bodies = len(world.x_mm)
    if work.pair_count[0] >= 0:
        limit = LONGEST_STEP_MM * LONGEST_STEP_MM
        for body in range(bodies):
            dx = world.x_mm[body] - work.listed_x_mm[body]
            dy = world.y_mm[body] - work.listed_y_mm[body]
            if dx * dx + dy * dy > limit:
                work.pair_count[0] = -1
                break
    if work.pair_count[0] < 0:
        for body in range(bodies):
            work.listed_x_mm[body] = world.x_mm[body]
            work.listed_y_mm[body] = world.y_mm[body]
        work.pair_count[0] = _list_pairs(world, work)
    return int(work.pair_count[0])


@kernel
def _list_pairs(world: WorldState, work: WorkSpace) -> int:
    bodies = len(world.x_mm)
    small = 0.0  # robots are sorted into cells; each larger disc is compared with everybody
    for robot in range(world.robots):
        small = max(small, world.radius_mm[robot])
    if world.robots == 0:
        small = 20.0
    sort_into_cells(world.x_mm, world.y_mm, bodies, 2.0 * small + MARGIN_MM, work.grid)
    columns = int(work.grid.frame[3])
    rows = int(work.grid.frame[4])
    count = 0
    for a in range(bodies):
        if world.radius_mm[a] > small:
            for b in range(bodies):
                if a < b or world.radius_mm[b] <= small:
                    count = _list_pair(world, work, count, a, b)
            continue
        cell = work.grid.cell_of[a]
        row = cell // columns
        column = cell - row * columns
        for r in range(max(0, row - 1), min(rows, row + 2)):
            low = r * columns + max(0, column - 1)
            high = r * columns + min(columns - 1, column + 1)
            for k in range(work.grid.first[low], work.grid.first[high + 1]):
                b = work.grid.order[k]
                if a < b and world.radius_mm[b] <= small:
                    count = _list_pair(world, work, count, a, b)
    return count if count <= len(work.pair_a) else -1


@kernel
def _list_pair(world: WorldState, work: WorkSpace, count: int, a: int, b: int) -> int:
    if world.inverse_mass[a] == 0.0 and world.inverse_mass[b] == 0.0:
        return count
    dx = world.x_mm[b] - world.x_mm[a]
    dy = world.y_mm[b] - world.y_mm[a]
    near = world.radius_mm[a] + world.radius_mm[b] + MARGIN_MM
    if dx * dx + dy * dy > near * near:
        return count
    if count < len(work.pair_a):
        work.pair_a[count] = a
        work.pair_b[count] = b
    return count + 1


@kernel
def push_apart(world: WorldState, work: WorkSpace) -> None:
    """Resolve overlaps after a move; ``work.start_*`` hold the positions before it."""
    for _ in range(PASSES):
        if _relax(world, work) <= GOOD_ENOUGH_MM:
            break
    _limit_steps(world, work)
    for body in range(len(world.x_mm)):
        work.state[body] = _FREE
    while _take_back(world, work):
        pass


@kernel
def _relax(world: WorldState, work: WorkSpace) -> float:
    """Do one pass; return the largest overlap it found."""
    bodies = len(world.x_mm)
    worst = 0.0
    for body in range(bodies):
        work.shift_x[body] = 0
        work.shift_y[body] = 0
        work.contacts[body] = 0
        if world.inverse_mass[body] > 0.0:
            worst = max(worst, _meet_bounds(world, work, body))
            worst = max(worst, _meet_walls(world, work, body))
            worst = max(worst, _meet_image(world, work, body))
    for pair in range(work.pair_count[0]):
        worst = max(worst, _meet_body(world, work, int(work.pair_a[pair]), int(work.pair_b[pair])))
    if worst > GOOD_ENOUGH_MM:
        for body in range(bodies):
            if work.contacts[body] > 0:  # the mean of all corrections: a crowd stays calm
                scale = 1.0 / (_UNITS_PER_MM * work.contacts[body])
                world.x_mm[body] += work.shift_x[body] * scale
                world.y_mm[body] += work.shift_y[body] * scale
    return worst


@kernel
def _correct(work: WorkSpace, body: int, x_mm: float, y_mm: float) -> None:
    work.shift_x[body] += round(x_mm * _UNITS_PER_MM)
    work.shift_y[body] += round(y_mm * _UNITS_PER_MM)
    work.contacts[body] += 1


@kernel
def _overlap(world: WorldState, a: int, b: int) -> float:
    """Return by how much two bodies overlap; negative if they do not."""
    dx = world.x_mm[b] - world.x_mm[a]
    dy = world.y_mm[b] - world.y_mm[a]
    return float(world.radius_mm[a] + world.radius_mm[b] - math.sqrt(dx * dx + dy * dy))


@kernel
def _meet_body(world: WorldState, work: WorkSpace, a: int, b: int) -> float:
    overlap = _overlap(world, a, b)
    if overlap <= 0.0:
        return 0.0
    dx = world.x_mm[b] - world.x_mm[a]
    dy = world.y_mm[b] - world.y_mm[a]
    distance = math.sqrt(dx * dx + dy * dy)
    if distance == 0.0:  # no direction is better than another
        dx = distance = 1.0
    push = overlap / (distance * (world.inverse_mass[a] + world.inverse_mass[b]))
    for_a = push * world.inverse_mass[a]
    for_b = push * world.inverse_mass[b]
    if for_a > 0.0:
        _correct(work, a, -for_a * dx, -for_a * dy)
    if for_b > 0.0:
        _correct(work, b, for_b * dx, for_b * dy)
    return overlap


@kernel
def _meet_bounds(world: WorldState, work: WorkSpace, body: int) -> float:
    kind = int(world.bounds[0])
    x = world.x_mm[body]
    y = world.y_mm[body]
    radius = world.radius_mm[body]
    if kind == RECTANGLE:
        limit_x = max(0.0, world.bounds[1] - radius)
        limit_y = max(0.0, world.bounds[2] - radius)
        out_x = max(abs(x) - limit_x, 0.0)
        out_y = max(abs(y) - limit_y, 0.0)
        if out_x > 0.0 or out_y > 0.0:
            _correct(work, body, -out_x if x > 0.0 else out_x, -out_y if y > 0.0 else out_y)
        return float(max(out_x, out_y))
    if kind == CIRCLE:
        distance = math.sqrt(x * x + y * y)
        out = distance - max(0.0, world.bounds[1] - radius)
        if out > 0.0 and distance > 0.0:
            _correct(work, body, -out * x / distance, -out * y / distance)
            return float(out)
    return 0.0


@kernel
def _meet_walls(world: WorldState, work: WorkSpace, body: int) -> float:
    if world.walls.shape[0] == 0:
        return 0.0
    cell = wall_cell(world, world.x_mm[body], world.y_mm[body])
    if cell < 0:
        return 0.0
    worst = 0.0
    for k in range(world.wall_first[cell], world.wall_first[cell + 1]):
        wall = world.wall_index[k]
        dx, dy = from_wall(world, wall, world.x_mm[body], world.y_mm[body])
        distance = math.sqrt(dx * dx + dy * dy)
        overlap = world.radius_mm[body] - distance
        if overlap > 0.0 and distance > 0.0:
            _correct(work, body, overlap * dx / distance, overlap * dy / distance)
            worst = max(worst, overlap)
    return worst


@kernel
def wall_cell(world: WorldState, x_mm: float, y_mm: float) -> int:
    """Return the cell of the wall grid at a place; -1 where no wall is near."""
    column = math.floor((x_mm - world.wall_frame[0]) / world.wall_frame[2])
    row = math.floor((y_mm - world.wall_frame[1]) / world.wall_frame[2])
    columns = int(world.wall_frame[3])
    if column < 0 or row < 0 or column >= columns or row >= int(world.wall_frame[4]):
        return -1
    return int(row) * columns + int(column)


@kernel
def from_wall(world: WorldState, wall: int, x_mm: float, y_mm: float) -> tuple[float, float]:
    """Return the vector from the nearest point of a wall to a place."""
    x1 = world.walls[wall, 0]
    y1 = world.walls[wall, 1]
    along_x = world.walls[wall, 2] - x1
    along_y = world.walls[wall, 3] - y1
    length = along_x * along_x + along_y * along_y
    share = 0.0
    if length > 0.0:
        share = ((x_mm - x1) * along_x + (y_mm - y1) * along_y) / length
        share = min(max(share, 0.0), 1.0)
    return x_mm - x1 - share * along_x, y_mm - y1 - share * along_y


@kernel
def image_depth_at(world: WorldState, x_mm: float, y_mm: float) -> tuple[float, float, float]:
    """Return the distance to the nearest wall of the image, and its slope in x and y."""
    rows, columns = world.depth_mm.shape
    u = (x_mm - world.depth_frame[0]) / world.depth_frame[2]
    v = (y_mm - world.depth_frame[1]) / world.depth_frame[3]
    u = min(max(u, 0.0), columns - 1.001)
    v = min(max(v, 0.0), rows - 1.001)
    column = int(u)
    row = int(v)
    u -= column
    v -= row
    a = world.depth_mm[row, column]
    b = world.depth_mm[row, column + 1]
    c = world.depth_mm[row + 1, column]
    d = world.depth_mm[row + 1, column + 1]
    depth = (a * (1.0 - u) + b * u) * (1.0 - v) + (c * (1.0 - u) + d * u) * v
    slope_x = ((b - a) * (1.0 - v) + (d - c) * v) / world.depth_frame[2]
    slope_y = ((c - a) * (1.0 - u) + (d - b) * u) / world.depth_frame[3]
    return depth, slope_x, slope_y


@kernel
def _meet_image(world: WorldState, work: WorkSpace, body: int) -> float:
    if world.depth_mm.shape[0] < 2:
        return 0.0
    depth, slope_x, slope_y = image_depth_at(world, world.x_mm[body], world.y_mm[body])
    overlap = world.radius_mm[body] - depth
    slope = math.sqrt(slope_x * slope_x + slope_y * slope_y)
    if overlap <= 0.0:
        return 0.0
    if slope > 1e-9:  # zero in the middle of a corridor that is too narrow
        _correct(work, body, overlap * slope_x / slope, overlap * slope_y / slope)
    return float(overlap)


@kernel
def _limit_steps(world: WorldState, work: WorkSpace) -> None:
    """Let no body go farther than ``LONGEST_STEP_MM`` from where it was before the step."""
    for body in range(len(world.x_mm)):
        dx = world.x_mm[body] - work.start_x_mm[body]
        dy = world.y_mm[body] - work.start_y_mm[body]
        square = dx * dx + dy * dy
        if square > LONGEST_STEP_MM * LONGEST_STEP_MM:
            scale = LONGEST_STEP_MM / math.sqrt(square)
            world.x_mm[body] = work.start_x_mm[body] + dx * scale
            world.y_mm[body] = work.start_y_mm[body] + dy * scale


@kernel
def _take_back(world: WorldState, work: WorkSpace) -> bool:
    """Put back bodies that overlap by more than the tolerance; tell whether there were any.

    Both bodies of such a pair go back. Ends, because each round puts at least one more back, and
    with all of them back everything is as it was.
    """
    found = False
    bodies = len(world.x_mm)
    for body in range(bodies):
        work.contacts[body] = 0
        if work.state[body] == _FREE and world.inverse_mass[body] > 0.0:
            work.shift_x[body] = work.shift_y[body] = 0
            out = _meet_bounds(world, work, body)
            out = max(out, _meet_walls(world, work, body))
            out = max(out, _meet_image(world, work, body))
            work.contacts[body] = 1 if out > TOLERANCE_MM else 0
    for pair in range(work.pair_count[0]):
        a = int(work.pair_a[pair])
        b = int(work.pair_b[pair])
        if _overlap(world, a, b) > TOLERANCE_MM:
            work.contacts[a] = 1
            work.contacts[b] = 1
    for body in range(bodies):
        if work.contacts[body] > 0 and work.state[body] == _FREE:
            work.state[body] = _BACK
            world.x_mm[body] = work.start_x_mm[body]
            world.y_mm[body] = work.start_y_mm[body]
            found = True
    return found
