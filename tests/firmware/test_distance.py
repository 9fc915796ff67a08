"""estimate_distance against the algorithm as the hardware reference restates it (5.2, 5.3, 5.5)."""

import random

import pytest

from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE, EepromMap

from .bench import Robot

SCRATCH = 0x700  # free SRAM for a measurement


def gap(table, reading, beyond):
    """Gap in mm by one table, or None where a flat piece gives no answer."""
    if reading > table[0]:
        return 0
    i = next((i for i in range(1, 14) if reading > table[i]), None)
    if i is None:
        if beyond is not None:
            return beyond
        i = 13
    slope = table[i - 1] - table[i]
    if slope == 0:
        return None
    return int(5 * (i - 1) + 5 * (table[i - 1] - reading) / slope) & 0xFF


def expected(low_table, high_table, low, high):
    by_high = gap(high_table, high, None) if high < 900 else None
    by_low = gap(low_table, low, 90) if high > 700 else None
    if by_high == 255:
        by_high = None
    if by_high is not None and by_low is not None:
        return 33 + (by_high * (900 - high) + by_low * (high - 700)) // 200 & 0xFF
    known = by_high if by_high is not None else by_low
    return 33 + (255 if known is None else known) & 0xFF


class Estimator:
    def __init__(self, eeprom):
        self.robot = Robot("orbit_planet", eeprom).run(5000)
        self.start = self.robot.chip.snapshot()

    def __call__(self, low, high):
        chip = self.robot.chip
        chip.restore(self.start)
        for i, byte in enumerate(low.to_bytes(2, "little") + high.to_bytes(2, "little")):
            chip.poke(SCRATCH + i, byte)
        result, self.cycles = self.robot.call("estimate_distance", SCRATCH, byte=True)
        return result


@pytest.fixture(scope="module")
def estimate():
    return Estimator(EepromMap())


def test_table_points_give_33_to_98(estimate):
    for i, (low, high) in enumerate(zip(LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE, strict=True)):
        assert estimate(low, min(high, 1023)) == 33 + 5 * i


@pytest.mark.parametrize(
    ("high", "mm"), [(500, 104), (400, 114), (300, 124), (200, 134), (100, 143), (0, 153)]
)
def test_beyond_the_table_it_extrapolates(estimate, high, mm):
    assert estimate(100, high) == mm


def test_every_reading_of_the_example_tables(estimate):
    for high in range(0, 1024, 3):
        low = round(high / 4.65)
        assert estimate(low, high) == expected(LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE, low, high), high


def test_random_falling_tables():
    draw = random.Random(5)
    for _ in range(12):
        high_table = tuple(sorted(draw.sample(range(80, 1150), 14), reverse=True))
        low_table = tuple(sorted(draw.sample(range(15, 400), 14), reverse=True))
        estimate = Estimator(EepromMap(low_gain=low_table, high_gain=high_table))
        for _ in range(60):
            low, high = draw.randrange(0, 420), draw.randrange(0, 1024)
            assert estimate(low, high) == expected(low_table, high_table, low, high), (low, high)


def test_tables_of_erased_eeprom():
    estimate = Estimator(b"\xff" * 1024)
    assert {estimate(200, high) for high in range(701, 1024, 40)} == {123}
    assert {estimate(200, high) for high in range(0, 701, 50)} == {32}


def test_tables_of_zeros():
    estimate = Estimator(bytes(1024))
    assert {estimate(200, high) for high in (1, 500, 700, 701, 899, 900, 1023)} == {33}
    assert estimate(200, 0) == 32


def test_cost_is_below_the_public_librarys(estimate):
    estimate(122, 600)
    assert estimate.cycles < 1350
    estimate(175, 800)
    assert estimate.cycles < 4500
