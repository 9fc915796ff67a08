"""A step of the world: ``begin_motion``, ``move_robots`` as if each were alone, ``push_apart``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.jit import kernel
from avrswarm.world.collisions import keep_pairs_listed
from avrswarm.world.state import WorkSpace, WorldState

REST, MOTION, NO_ROOM = 0, 1, -1
"""What ``begin_motion`` finds; ``NO_ROOM``: more pairs of close bodies than can be, so the bodies
overlap badly."""


@kernel
def begin_motion(
    world: WorldState,
    work: WorkSpace,
    drives_left: NDArray[np.float64],
    drives_right: NDArray[np.float64],
) -> int:
    """Prepare a step; return whether anything will move, and can."""
    resting = True
    for robot in range(world.robots):
        if drives_left[robot] > 0.0 or drives_right[robot] > 0.0:
            resting = False
            break
    if resting:  # bodies have no momentum: what nobody pushes stands still
        return REST
    if keep_pairs_listed(world, work) < 0:
        return NO_ROOM
    for body in range(len(world.x_mm)):
        work.start_x_mm[body] = world.x_mm[body]
        work.start_y_mm[body] = world.y_mm[body]
    return MOTION
