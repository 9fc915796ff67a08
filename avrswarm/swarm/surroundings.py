"""What robots and their surroundings do to each other at the ends of a step of the world.

Before the chips run they are shown what their sensors see; afterwards what their motors were told
becomes motion, and what all of it cost is taken from batteries. Threads share the robots, block
by block; only to push apart what overlaps is the leader's work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.state import Chips
from avrswarm.jit import kernel
from avrswarm.robot.battery import BatteryState, drain_batteries
from avrswarm.robot.board import Boards
from avrswarm.robot.motors import MotorState, read_drives
from avrswarm.robot.sensors import put_sensors
from avrswarm.world.light import Light, light_robots
from avrswarm.world.motion import move_robots
from avrswarm.world.state import WorkSpace, WorldState

BLOCK = 64
"""Robots that a thread takes in one go."""


class Surroundings(NamedTuple):
    """The world's state and what connects robots with it; arrays are per robot."""

    world: WorldState
    work: WorkSpace
    motors: MotorState
    battery: BatteryState
    light: Light
    drive_left: NDArray[np.float64]
    drive_right: NDArray[np.float64]
    lux: NDArray[np.float64]
    microvolts_per_lux: NDArray[np.float64]
    shown: NDArray[np.int32]  # what sensors were last written as
    listed_x_mm: NDArray[np.float64]  # where robots were when it was listed who may hear whom
    listed_y_mm: NDArray[np.float64]
    slack_mm: float  # how far they may go before the lists do not hold any more
    sensor_ahead_mm: float
    sensor_aside_mm: float
    temperature_c: float
    dt_s: float


@kernel
def blocks_of(robots: int) -> int:
    """Return how many blocks there are."""
    return (robots + BLOCK - 1) // BLOCK


@kernel
def show_block(chips: Chips, boards: Boards, s: Surroundings, moved: int, block: int) -> None:
    """Show the chips of a block what their sensors see; robots have moved, or not."""
    first, end = block * BLOCK, min((block + 1) * BLOCK, len(chips))
    if moved:
        light_robots(s.world, s.light, s.sensor_ahead_mm, s.sensor_aside_mm, s.lux, first, end)
    put_sensors(
        chips,
        boards,
        s.shown,
        s.lux,
        s.battery.volts,
        s.temperature_c,
        s.microvolts_per_lux,
        first,
        end,
    )


@kernel
def drive_block(
    boards: Boards,
    s: Surroundings,
    dead: NDArray[np.uint8],
    pulses: NDArray[np.int64],
    block: int,
) -> None:
    """Work out what the motors of a block do in this step, and what everything has cost."""
    first, end = block * BLOCK, min((block + 1) * BLOCK, len(pulses))
    read_drives(boards, s.motors, s.dt_s, s.drive_left, s.drive_right, first, end)
    for robot in range(first, end):
        if dead[robot]:
            s.drive_left[robot] = s.drive_right[robot] = 0.0
    drain_batteries(boards, s.battery, s.motors.duty, pulses, s.dt_s, first, end)
    for robot in range(first, end):
        pulses[robot] = 0


@kernel
def move_block(s: Surroundings, step: int, block: int) -> None:
    """Move the robots of a block by one step as if each were alone."""
    first, end = block * BLOCK, min((block + 1) * BLOCK, len(s.lux))
    move_robots(s.world, s.drive_left, s.drive_right, s.dt_s, step, first, end)
