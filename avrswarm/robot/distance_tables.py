"""Both gain channels of the receiver, and the tables that turn readings into distances.

The example tables of a real robot (hardware reference 5.3) tie the channels together: for each
low-gain count they have a high-gain count, 4.5 to 4.7 times as much until the amplifier
saturates. Below the tables the line goes on to the comparator's limit (70 counts at a ratio of
4.65) and to zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from avrswarm.jit import entry, kernel
from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE, TABLE_POINTS

FIRST_DISTANCE_MM, DISTANCE_STEP_MM = 33.0, 5.0
DISTANCES_MM = tuple(FIRST_DISTANCE_MM + DISTANCE_STEP_MM * k for k in range(TABLE_POINTS))

LIMIT_HIGH, RATIO = 70.0, 4.65

# rising: nothing, the comparator's limit, 70 mm of gap (beyond the firmware's table), then the
# table
_LOW = np.array([0.0, LIMIT_HIGH / RATIO, 113.0, *LOW_GAIN_EXAMPLE[::-1]])
_HIGH = np.array([0.0, LIMIT_HIGH, 531.0, *HIGH_GAIN_EXAMPLE[::-1]], np.float64)


@kernel
def high_gain_counts(low_counts: float) -> float:
    """Return the high-gain counts that go with an amplitude in low-gain counts, not clipped."""
    last = len(_LOW) - 1
    number = 1
    while number < last and _LOW[number] < low_counts:
        number += 1
    share = (low_counts - _LOW[number - 1]) / (_LOW[number] - _LOW[number - 1])
    return float(_HIGH[number - 1] + share * (_HIGH[number] - _HIGH[number - 1]))


@entry
def fill_high_gain(low_counts: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Write the high-gain counts for every low-gain count."""
    for k in range(len(out)):
        out[k] = high_gain_counts(low_counts[k])


def tables_for(amplitudes: Sequence[float]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return both tables of a robot that reads these low-gain counts at ``DISTANCES_MM``.

    Firmware needs falling tables; where amplitudes do not fall the example is returned.
    """
    low = np.round(np.asarray(amplitudes, np.float64))
    high = np.empty(len(low))
    fill_high_gain(np.asarray(amplitudes, np.float64), high)
    high = np.round(high)
    if (np.diff(low) >= 0).any() or (np.diff(high) >= 0).any():
        return LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE
    return tuple(int(v) for v in low), tuple(int(v) for v in high)
