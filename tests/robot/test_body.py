"""LED, sensors, battery and distance tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.chip.registers import DDRC, DDRD, PORTC, PORTD
from avrswarm.chip.state import allocate
from avrswarm.robot import battery, distance_tables, sensors
from avrswarm.robot.board import allocate_boards, look_at_all
from avrswarm.robot.eeprom_map import HIGH_GAIN_EXAMPLE, LOW_GAIN_EXAMPLE

from .entries import apply_sensors, drain

pytestmark = pytest.mark.jit_off

PER_LUX = np.array([sensors.MICROVOLTS_PER_LUX])


def chip_with(colour=0, powered=True):
    """Return one chip whose pins show a colour, as set_color of the library drives them."""
    chips = allocate(1)
    red, green, blue = colour & 3, colour >> 2 & 3, colour >> 4 & 3
    chips[0].memory[DDRD] = (red & 1) << 5 | (red >> 1) << 4 | (0x04 if powered else 0)
    chips[0].memory[PORTD] = 0x04 if powered else 0
    chips[0].memory[DDRC] = (
        (green & 1) << 3 | (green >> 1) << 2 | (blue & 1) << 5 | (blue >> 1) << 4
    )
    return chips


def boards_of(chips):
    boards = allocate_boards(len(chips))
    look_at_all(chips, boards)
    return boards


def sense(chips, lux, volts, celsius):
    shown = np.full((1, 3), -1, np.int32)
    for light in (lux + 1, lux, lux):  # what is still so is left alone, what is not is written
        apply_sensors(
            chips, boards_of(chips), shown, np.array([light]), np.array([volts]), celsius, PER_LUX
        )


@pytest.mark.parametrize("colour", range(64))
def test_every_colour(colour):
    assert boards_of(chip_with(colour)).colour[0] == colour


def test_a_pin_that_drives_high_gives_no_light():
    chips = chip_with(0b111111)
    chips[0].memory[PORTD] |= 0x30
    chips[0].memory[PORTC] |= 0x3C
    assert boards_of(chips).colour[0] == 0


@pytest.mark.parametrize(
    ("lux", "volts", "celsius", "counts"),
    [
        (0.0, 4.0, 25.0, (682, 0, 292)),  # hardware reference 11
        (1.0, 3.8, 26.0, (648, 154, 293)),
        (100.0, 3.6, 85.0, (614, 1023, 353)),
        (-1.0, 3.2, -45.0, (546, 0, 225)),
    ],
)
def test_readings(lux, volts, celsius, counts):
    chips = chip_with()
    sense(chips, lux, volts, celsius)
    microvolts = chips[0].adc_microvolts.tolist()
    assert min(microvolts[6] * 1024 // 3_000_000, 1023) == counts[0]
    assert min(microvolts[7] * 1024 // 3_000_000, 1023) == counts[1]
    assert microvolts[8] * 1024 // 1_100_000 == counts[2]


def test_no_light_reading_without_supply():
    chips = chip_with(powered=False)
    sense(chips, 5.0, 4.0, 25.0)
    assert chips[0].adc_microvolts[7] == 0


def hours_to_empty(chips, duty=(0, 0), pulses_per_s=0):
    state = battery.make_batteries(1, 100.0)
    duties = np.array([duty], np.int64)
    pulses = np.array([pulses_per_s * 360], np.int64)
    for tenth in range(20_000):
        drain(boards_of(chips), state, duties, pulses, 360.0)
        if state.charge_mah[0] == 0:
            return tenth / 10
    return 2000


def test_run_times_are_those_published():
    """Hardware reference 2.1: up to 24 h at rest, 3 to 10 h in use, months asleep."""
    assert 20 < hours_to_empty(chip_with(), pulses_per_s=141) < 26
    assert 3 < hours_to_empty(chip_with(0b000011), duty=(65, 62), pulses_per_s=141) < 10
    asleep = chip_with(powered=False)
    asleep[0].asleep = 3
    assert hours_to_empty(asleep) > 1500


def test_charging_fills_and_stops():
    state = battery.make_batteries(1, 10.0, np.ones(1, np.int64))
    for _ in range(100):
        duty, pulses = np.zeros((1, 2), np.int64), np.zeros(1, np.int64)
        drain(boards_of(chip_with()), state, duty, pulses, 360.0)
    assert state.charge_mah[0] == battery.CAPACITY_MAH
    assert state.volts[0] == pytest.approx(4.18)


@given(st.floats(0, 100), st.floats(0, 100))
def test_voltage_rises_with_charge(a, b):
    state = battery.make_batteries(2, np.array([a, b]))
    assert (state.volts[0] < state.volts[1]) == (a < b) or abs(a - b) < 1e-9
    assert 3.2 <= state.volts.min() <= state.volts.max() <= 4.18


def test_gain_channels_agree_with_the_example_tables():
    high = np.zeros(14)
    distance_tables.fill_high_gain(np.array(LOW_GAIN_EXAMPLE, np.float64), high)
    assert high.tolist() == list(HIGH_GAIN_EXAMPLE)
    assert distance_tables.tables_for(LOW_GAIN_EXAMPLE) == (LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE)


@given(st.floats(0, 2000), st.floats(0, 2000))
def test_high_gain_rises_with_low_gain(a, b):
    high = np.zeros(2)
    distance_tables.fill_high_gain(np.array(sorted([a, b])), high)
    assert high[0] <= high[1]
    ends = np.zeros(2)
    distance_tables.fill_high_gain(np.array([0.0, 70 / 4.65]), ends)
    assert ends == pytest.approx([0, 70])


def test_useless_curves_get_the_example_tables():
    assert distance_tables.tables_for([150.0] * 14) == (LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE)
