"""The distance estimate against the figures of the hardware reference (5.3, 5.5)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.robot.distance import estimate_distances, tables_of
from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE, EepromMap

ERASED = (0xFFFF,) * 14
ZERO = (0,) * 14


def one(low, high, low_table=LOW_GAIN_EXAMPLE, high_table=HIGH_GAIN_EXAMPLE):
    return int(estimate_distances([low], [high], low_table, high_table)[0])


def restated(low, high, low_table, high_table):
    """5.2 in floating point, one reading at a time."""

    def gap(reading, table, beyond):
        if reading > table[0]:
            return 0
        for i in range(1, 14):
            if reading > table[i]:
                break
        else:
            if beyond is not None:
                return beyond
        if table[i - 1] == table[i]:
            return None
        return int(5.0 * (i - 1) + 5.0 * (table[i - 1] - reading) / (table[i - 1] - table[i])) % 256

    by_high = gap(high, high_table, None) if high < 900 else None
    by_low = gap(low, low_table, 90) if high > 700 else None
    by_high = None if by_high == 255 else by_high
    by_low = None if by_low == 255 else by_low
    if by_high is None or by_low is None:
        known = by_low if by_high is None else by_high
        return (33 + (255 if known is None else known)) % 256
    return (33 + (by_high * (900 - high) + by_low * (high - 700)) // 200) % 256


def test_table_points_give_33_to_98():
    high = np.minimum(HIGH_GAIN_EXAMPLE, 1023)
    estimates = estimate_distances(LOW_GAIN_EXAMPLE, high, LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE)
    assert estimates.tolist() == list(range(33, 99, 5))


@pytest.mark.parametrize(
    ("high", "mm"), [(500, 104), (400, 114), (300, 124), (200, 134), (100, 143), (0, 153)]
)
def test_beyond_the_table_it_extrapolates(high, mm):
    assert one(100, high) == mm


@pytest.mark.parametrize(("high", "mm"), [(701, 123), (1023, 123), (700, 32), (100, 32)])
def test_erased_tables(high, mm):
    assert one(150, high, ERASED, ERASED) == mm


@pytest.mark.parametrize(("low", "high", "mm"), [(150, 1, 33), (150, 800, 33), (0, 0, 32)])
def test_tables_of_zeros(low, high, mm):
    assert one(low, high, ZERO, ZERO) == mm


def test_every_reading_of_the_example():
    high = np.arange(1024)
    low = np.round(high / 4.65).astype(int)
    estimates = estimate_distances(low, high, LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE)
    for k in range(1024):
        assert estimates[k] == restated(low[k], high[k], LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE), k


def falling(largest):
    return st.lists(st.integers(0, largest), min_size=14, max_size=14).map(
        lambda table: sorted(table, reverse=True)
    )


any_table = st.lists(st.integers(0, 1200) | st.integers(0, 65535), min_size=14, max_size=14)
reading = st.integers(0, 1023)


@given(falling(1200), falling(400), reading, reading)
def test_any_falling_table(high_table, low_table, high, low):
    assert one(low, high, low_table, high_table) == restated(low, high, low_table, high_table)


@given(any_table, any_table, reading, reading)
def test_any_table_at_all(high_table, low_table, high, low):
    assert one(low, high, low_table, high_table) == restated(low, high, low_table, high_table)


def test_behind_a_rising_end_the_line_goes_the_other_way():
    table = (1000,) * 12 + (700, 703)
    assert one(0, 650, table, table) == 33 + 60 - 83
    assert one(0, 699, table, table) == 33 + 58  # 60 - 1.7, truncated after the subtraction


def test_each_robot_reads_its_own_tables():
    other = tuple(count - 20 for count in LOW_GAIN_EXAMPLE)
    eeprom = np.array([list(EepromMap().pack()), list(EepromMap(low_gain=other).pack())], np.uint8)
    low, high = tables_of(eeprom)
    assert low.tolist() == [list(LOW_GAIN_EXAMPLE), list(other)]
    assert high[0].tolist() == list(HIGH_GAIN_EXAMPLE)
    estimates = estimate_distances([231, 211], [1014, 1014], low, high)
    assert estimates.tolist() == [53, 53]


def test_no_readings_give_no_distances():
    assert estimate_distances([], [], LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE).shape == (0,)
