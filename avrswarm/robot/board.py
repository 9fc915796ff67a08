"""What can be seen of a robot's board from outside, in a few bytes.

The world looks at all robots in every step. A chip's record is large, and most chips have done
nothing that could be seen; so whoever runs a chip writes down here how its board stands thereafter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.state import ChipRow, Chips
from avrswarm.jit import entry, kernel
from avrswarm.robot import led, motors, sensors


class Boards(NamedTuple):
    """How boards stand; arrays have an entry for every robot."""

    duty: NDArray[np.uint8]  # [robot, motor], 0 to 255
    colour: NDArray[np.uint8]  # red | green << 2 | blue << 4
    powered: NDArray[np.uint8]  # 1: motors, infrared and light sensor have current
    asleep: NDArray[np.uint8]


def allocate_boards(count: int) -> Boards:
    """Return boards as they are after power-on."""
    return Boards(
        duty=np.zeros((count, 2), np.uint8),
        colour=np.zeros(count, np.uint8),
        powered=np.zeros(count, np.uint8),
        asleep=np.zeros(count, np.uint8),
    )


@kernel
def _put(signs: NDArray[np.uint8], place: int, sign: int) -> None:
    """Write a byte if it changes: threads would fight for cache lines that many robots share."""
    if signs[place] != sign:
        signs[place] = sign


@kernel
def look(c: ChipRow, boards: Boards, robot: int) -> None:
    """Write down how a robot's board stands."""
    duty = boards.duty[robot]
    _put(duty, motors.LEFT, motors.duty(c, motors.LEFT))
    _put(duty, motors.RIGHT, motors.duty(c, motors.RIGHT))
    _put(boards.colour, robot, led.colour(c))
    _put(boards.powered, robot, int(sensors.is_powered(c)))
    _put(boards.asleep, robot, int(c.asleep != 0))


@entry
def look_at_all(chips: Chips, boards: Boards) -> None:
    """Write down how all boards stand."""
    for robot in range(len(chips)):
        look(chips[robot], boards, robot)
