"""Bodies and obstacles as arrays, and the work arrays that one step needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PAIRS_PER_BODY = 12
"""Room for pairs of bodies about to touch. A body has at most 9 neighbours that are no smaller than
itself, if it is no smaller than 5 mm (see ``collisions.MARGIN_MM``)."""


class WorldState(NamedTuple):
    """Everything that stands on the table. Bodies are robots first, then discs.

    Attributes
    ----------
    robots
        How many of the bodies are robots.
    x_mm, y_mm, heading_rad
        Where the bodies are. With ``blocked`` these are all that changes.
    radius_mm, inverse_mass
        All bodies are discs; inverse mass 0 means that nothing moves it. The unit of mass cancels.
    speed_mm_s, turn_rad_s
        Per robot: speed with both drives at 1, and rate of turning with one drive at 1.
    leg_ahead_mm, leg_aside_mm
        Per robot: where the rear legs touch the table, in the robot's own frame.
    speed_noise, heading_noise_rad
        Deviation of speed (as a fraction) and of heading, gathered in one second of motion.
    noise_key
        Key of the random numbers.
    bounds
        ``kind`` (0 none, 1 rectangle, 2 circle), half width or radius, half height.
    walls
        Segments x1, y1, x2, y2; both sides are walls.
    wall_frame
        Grid of cells over the walls: left, bottom, cell size, columns, rows.
    wall_first, wall_index
        For each cell the walls that a body with its centre there may touch.
    depth_mm
        From an image: distance to the nearest wall at pixel centres, negative inside walls.
    depth_frame
        Left and bottom pixel centre, pixel width and height.
    """

    robots: int
    x_mm: Floats
    y_mm: Floats
    heading_rad: Floats
    radius_mm: Floats
    inverse_mass: Floats
    speed_mm_s: Floats
    turn_rad_s: Floats
    leg_ahead_mm: Floats
    leg_aside_mm: Floats
    speed_noise: float
    heading_noise_rad: float
    noise_key: int
    bounds: Floats
    walls: Floats
    wall_frame: Floats
    wall_first: Integers
    wall_index: Integers
    depth_mm: Floats
    depth_frame: Floats


class Grid(NamedTuple):
    """Bodies sorted into square cells, for searches that are linear in their number."""

    frame: Floats  # left, bottom, cell size, columns, rows
    cell_of: Integers
    first: Integers  # per cell: where its bodies begin in `order`
    order: Integers


class WorkSpace(NamedTuple):
    """Arrays that ``advance_world`` works in; no part of the state, rebuilt when needed."""

    grid: Grid
    pair_count: Integers  # one number: pairs in the list; -1 = the list must be built
    pair_a: NDArray[np.int32]
    pair_b: NDArray[np.int32]
    listed_x_mm: Floats  # positions for which the list was built
    listed_y_mm: Floats
    start_x_mm: Floats
    start_y_mm: Floats
    shift_x: Integers
    shift_y: Integers
    contacts: Integers
    state: Integers


NO_BOUNDS, RECTANGLE, CIRCLE = 0, 1, 2


def allocate_grid(count: int) -> Grid:
    """Return a grid for up to ``count`` bodies."""
    return Grid(
        frame=np.zeros(5),
        cell_of=np.zeros(count, np.int64),
        first=np.zeros(2 * count + 65, np.int64),
        order=np.zeros(count, np.int64),
    )


def allocate_workspace(world: WorldState) -> WorkSpace:
    """Return the work arrays for a world."""
    bodies = len(world.x_mm)
    pairs = PAIRS_PER_BODY * bodies + 64
    return WorkSpace(
        grid=allocate_grid(bodies),
        pair_count=np.array([-1], np.int64),
        pair_a=np.zeros(pairs, np.int32),
        pair_b=np.zeros(pairs, np.int32),
        listed_x_mm=np.zeros(bodies),
        listed_y_mm=np.zeros(bodies),
        start_x_mm=np.zeros(bodies),
        start_y_mm=np.zeros(bodies),
        shift_x=np.zeros(bodies, np.int64),
        shift_y=np.zeros(bodies, np.int64),
        contacts=np.zeros(bodies, np.int64),
        state=np.zeros(bodies, np.int64),
    )
