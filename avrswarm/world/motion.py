"""From two motor drives to a new position (a model; hardware reference 6).

A Kilobot stands on three stiff legs and shakes itself forward. With one motor running it turns
about the rear leg on the inside of the turn: "left" turns left about the left rear leg. With both
it goes straight. In between, the smaller drive moves it forward and the rest turns it:

    forward = speed * min(left, right)        turn = rate * (left - right)

A drive of 1 is what a calibrated motor value gives. For robots with wheels put the legs at 90
degrees: they then turn about one wheel.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from avrswarm.jit import kernel
from avrswarm.portable_math import cosine_sine, wrap_angle
from avrswarm.randomness import Stream, gaussian
from avrswarm.world.state import WorldState

STREAM = int(Stream.MOTION)


@kernel
def move_robots(
    world: WorldState,
    drives_left: NDArray[np.float64],
    drives_right: NDArray[np.float64],
    dt_s: float,
    step_number: int,
    first: int,
    end: int,
) -> None:
    """Move some robots by one step as if each were alone."""
    for robot in range(first, end):
        left = drives_left[robot]
        right = drives_right[robot]
        if left > 0.0 or right > 0.0:
            _move(world, robot, left, right, dt_s, step_number)


@kernel
def _move(
    world: WorldState, robot: int, left: float, right: float, dt_s: float, step_number: int
) -> None:
    forward = world.speed_mm_s[robot] * min(left, right) * dt_s
    turn = world.turn_rad_s[robot] * (left - right) * dt_s
    wander = 0.0
    if world.speed_noise > 0.0:  # white noise: its effect over a second is the same for any step
        scale = 1.0 + world.speed_noise / math.sqrt(dt_s) * gaussian(
            world.noise_key, STREAM, 2 * robot, step_number
        )
        forward *= scale
        turn *= scale
    if world.heading_noise_rad > 0.0:
        wander = (
            world.heading_noise_rad
            * math.sqrt(dt_s)
            * gaussian(world.noise_key, STREAM, 2 * robot + 1, step_number)
        )
    x = world.x_mm[robot]
    y = world.y_mm[robot]
    heading = world.heading_rad[robot] + wander
    cosine, sine = cosine_sine(heading)
    new_x = x + forward * cosine
    new_y = y + forward * sine
    if turn != 0.0:
        ahead = world.leg_ahead_mm[robot]
        aside = world.leg_aside_mm[robot] if left > right else -world.leg_aside_mm[robot]
        pivot_x = new_x + cosine * ahead - sine * aside
        pivot_y = new_y + sine * ahead + cosine * aside
        heading += turn
        cosine, sine = cosine_sine(heading)
        new_x = pivot_x - (cosine * ahead - sine * aside)
        new_y = pivot_y - (sine * ahead + cosine * aside)
    world.x_mm[robot] = new_x
    world.y_mm[robot] = new_y
    world.heading_rad[robot] = wrap_angle(heading)
