"""One step of the world: robots move as if alone, then whatever overlaps is pushed apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.jit import kernel
from avrswarm.world.collisions import keep_pairs_listed, push_apart
from avrswarm.world.motion import move_robots
from avrswarm.world.state import WorkSpace, WorldState

NO_ROOM = -1
"""``advance_world`` found more pairs of close bodies than can be: the bodies overlap badly."""


@kernel
def advance_world(
    world: WorldState,
    work: WorkSpace,
    drives_left: NDArray[np.float64],
    drives_right: NDArray[np.float64],
    dt_s: float,
    step_number: int,
) -> int:
    """Advance all bodies by one step.

    Returns 1 if anything moved, 0 if everything stands as before, ``NO_ROOM`` if nothing was done.
    """
    resting = True
    for robot in range(world.robots):
        if drives_left[robot] > 0.0 or drives_right[robot] > 0.0:
            resting = False
            break
    if resting:  # bodies have no momentum: what nobody pushes stands still
        return 0
    if keep_pairs_listed(world, work) < 0:
        return NO_ROOM
    for body in range(len(world.x_mm)):
        work.start_x_mm[body] = world.x_mm[body]
        work.start_y_mm[body] = world.y_mm[body]
    move_robots(world, drives_left, drives_right, dt_s, step_number)
    push_apart(world, work)
    return 1
