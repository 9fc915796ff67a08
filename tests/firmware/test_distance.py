"""estimate_distance against the algorithm as the hardware reference restates it (5.2, 5.3, 5.5)."""

import random

import pytest

from avrswarm.robot.distance import estimate_distances
from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE, EepromMap

from ..robot.test_distance import restated
from .bench import Robot

SCRATCH = 0x700  # free SRAM for a measurement


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
        assert estimate(low, high) == restated(low, high, LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE), high


def compare(low_table, high_table, readings):
    """The chip, the package and the algorithm in floating point say the same."""
    estimate = Estimator(EepromMap(low_gain=low_table, high_gain=high_table))
    for low, high in readings:
        here = int(estimate_distances([low], [high], low_table, high_table)[0])
        wanted = restated(low, high, low_table, high_table)
        assert (estimate(low, high), here) == (wanted, wanted), (low, high, low_table, high_table)
        assert estimate.cycles <= cost_limit(high), (low, high, low_table, high_table)


def cost_limit(high):
    """Most cycles of the public library (5.2): one table, or both."""
    return 4700 if 700 < high < 900 else 1750


def draw_readings(draw, count=60):
    return [(draw.randrange(0, 420), draw.randrange(0, 1024)) for _ in range(count)]


def test_random_falling_tables():
    draw = random.Random(5)
    for _ in range(12):
        high_table = tuple(sorted(draw.sample(range(80, 1150), 14), reverse=True))
        low_table = tuple(sorted(draw.sample(range(15, 400), 14), reverse=True))
        compare(low_table, high_table, draw_readings(draw))


@pytest.mark.parametrize("largest", [1023, 13107, 13108, 65535])
def test_random_tables_in_no_order(largest):
    draw = random.Random(largest)
    for _ in range(8):
        low_table, high_table = (
            tuple(draw.randrange(largest + 1) for _ in range(14)) for _ in range(2)
        )
        compare(low_table, high_table, draw_readings(draw, 40))


LARGE = tuple(range(65535, 65535 - 14 * 4000, -4000))
ODD_TABLES = {
    "some entries erased": (*HIGH_GAIN_EXAMPLE[:6], 0xFFFF, 0xFFFF, *HIGH_GAIN_EXAMPLE[8:]),
    "first entry erased": (0xFFFF, *HIGH_GAIN_EXAMPLE[1:]),
    "last entry erased": (*HIGH_GAIN_EXAMPLE[:13], 0xFFFF),
    "all but the last erased": (0xFFFF,) * 13 + (500,),
    "a rising end": (*HIGH_GAIN_EXAMPLE[:12], 568, 619),
    "an end that rises by one": (*HIGH_GAIN_EXAMPLE[:12], 700, 701),
    "a flat end": (*HIGH_GAIN_EXAMPLE[:12], 600, 600),
    "a last step of one": (*HIGH_GAIN_EXAMPLE[:12], 601, 600),
    "large values": LARGE,
    "large values, rising": LARGE[::-1],
    "one steep step": (60000,) * 7 + (10,) * 7,
}


@pytest.mark.parametrize("table", ODD_TABLES.values(), ids=ODD_TABLES)
def test_tables_that_no_calibration_writes(table):
    readings = [(low, high) for high in range(0, 1024, 37) for low in (0, high // 5, high)]
    compare(table, table, readings)


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
    estimate(300, 1000)  # above the table
    assert estimate.cycles < 130
