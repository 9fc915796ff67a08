"""What library firmware makes of the two gains of a message: a distance (hardware reference 5.2).

This is the algorithm of ``estimate_distance``, for many readings at once, so that records and
studies can say what a robot believed without asking it. High gain is used alone up to 700 counts,
low gain alone from 900, both between. Firmware knows gaps between bodies of 33 mm; distances here
are between centres, as the firmware's result is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from avrswarm.robot.eeprom_map import HIGH_GAIN_TABLE, LOW_GAIN_TABLE, TABLE_POINTS

CONTACT_MM = 33
STEP_MM = 5
HIGH_ALONE_UP_TO, LOW_ALONE_FROM = 700, 900
BEYOND_LOW_TABLE_MM = 90
UNKNOWN = 255

Integers = NDArray[np.int64]


def estimate_distances(
    low_gain: ArrayLike, high_gain: ArrayLike, low_table: ArrayLike, high_table: ArrayLike
) -> Integers:
    """Return the distances in mm that firmware computes.

    Parameters
    ----------
    low_gain, high_gain
        Readings, one per message.
    low_table, high_table
        Fourteen counts from a robot's EEPROM, or one row of them per reading.

    >>> from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE
    >>> estimate_distances([171, 100], [777, 300], LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE).tolist()
    [73, 124]
    """
    low = np.asarray(low_gain, np.int64)
    high = np.asarray(high_gain, np.int64)
    by_high = _gaps(high, np.asarray(high_table, np.int64), beyond=None)
    by_low = _gaps(low, np.asarray(low_table, np.int64), beyond=BEYOND_LOW_TABLE_MM)
    has_high = (high < LOW_ALONE_FROM) & (by_high != UNKNOWN)
    has_low = (high > HIGH_ALONE_UP_TO) & (by_low != UNKNOWN)
    both = by_high * (LOW_ALONE_FROM - high) + by_low * (high - HIGH_ALONE_UP_TO)
    gap = np.select(
        [has_high & has_low, has_high, has_low],
        [both // (LOW_ALONE_FROM - HIGH_ALONE_UP_TO), by_high, by_low],
        UNKNOWN,
    )
    return np.asarray(CONTACT_MM + gap & 0xFF)


def tables_of(eeprom: NDArray[np.uint8]) -> tuple[Integers, Integers]:
    """Return the low and high tables in the EEPROMs of many robots (one row of bytes each)."""
    low, high = (
        eeprom[:, start : start + 2 * TABLE_POINTS].reshape(-1, TABLE_POINTS, 2).astype(np.int64)
        for start in (LOW_GAIN_TABLE, HIGH_GAIN_TABLE)
    )
    return low[:, :, 0] << 8 | low[:, :, 1], high[:, :, 0] << 8 | high[:, :, 1]


def _gaps(readings: Integers, tables: Integers, beyond: int | None) -> Integers:
    """Return the gap in mm by one table; ``UNKNOWN`` where the table is flat."""
    rows = np.broadcast_to(tables, (*readings.shape, TABLE_POINTS))
    above = readings[..., None] > rows[..., 1:]
    found = above.any(axis=-1)
    point = np.where(found, above.argmax(axis=-1) + 1, TABLE_POINTS - 1)[..., None]
    before = np.take_along_axis(rows, point - 1, axis=-1)[..., 0]
    fall = before - np.take_along_axis(rows, point, axis=-1)[..., 0]
    fallen = (point[..., 0] - 1) * fall + before - readings
    gap = _truncated(STEP_MM * fallen, np.where(fall == 0, 1, fall)) & 0xFF
    gap = np.where(fall == 0, UNKNOWN, gap)
    if beyond is not None:
        gap = np.where(found, gap, beyond)
    return np.where(readings > rows[..., 0], 0, gap)


def _truncated(dividend: Integers, divisor: Integers) -> Integers:
    """Return the quotients without their fractions, towards zero as in C."""
    size = np.abs(dividend) // np.abs(divisor)
    return np.asarray(np.where((dividend < 0) == (divisor < 0), size, -size))
