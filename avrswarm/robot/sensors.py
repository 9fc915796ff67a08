"""What the robot senses, as voltages on the chip's ADC inputs (a model; hardware reference 11).

ADC6  battery through 2 MOhm : 2 MOhm, so half of it ADC7  phototransistor TEPT5700 to 3.0 V, 604
kOhm to ground: in proportion to light, up to the supply MUX8  temperature sensor inside the chip

The light sensor is dead while PD2 switches its supply off. Noise of readings belongs to the
chip's ADC (``adc_noise_microvolts``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.registers import DDRD, PORTD
from avrswarm.chip.state import ChipRow, Chips
from avrswarm.jit import kernel
from avrswarm.robot.motors import SUPPLY_BIT

if TYPE_CHECKING:
    from avrswarm.robot.board import Boards

BATTERY_CHANNEL, LIGHT_CHANNEL, TEMPERATURE_CHANNEL = 6, 7, 8
SUPPLY_MICROVOLTS = 3_000_000

MICROAMPERE_PER_LUX = 0.75
"""TEPT5700 at 20 to 100 lux, typical (data sheet: 75 uA at 100 lux); units differ by a factor of
two."""
LIGHT_RESISTOR_OHM = 604_000.0
MICROVOLTS_PER_LUX = MICROAMPERE_PER_LUX * LIGHT_RESISTOR_OHM
"""0.453 V per lux: full scale at 6.6 lux, as hard to use in a lit room as the real one."""

SENSOR_ANGLE_DEG = 100.0
SENSOR_RADIUS_MM = 14.0
"""Where the light sensor is: ARGoS says 100 degrees left of the heading, others "behind"; the
radius is a guess."""

# DS 24.8 table 24-2: typical sensor voltage
_COLD_C, _ROOM_C, _HOT_C = -45.0, 25.0, 85.0
_COLD_UV, _ROOM_UV, _HOT_UV = 242_000.0, 314_000.0, 380_000.0


@kernel
def light_microvolts(lux: float, microvolts_per_lux: float) -> int:
    """Return the voltage on ADC7; the transistor cannot lift it above its supply."""
    return int(min(max(lux, 0.0) * microvolts_per_lux, SUPPLY_MICROVOLTS))


@kernel
def temperature_microvolts(celsius: float) -> int:
    """Return the voltage of the chip's temperature sensor: lines through three typical points."""
    if celsius < _ROOM_C:
        slope = (_ROOM_UV - _COLD_UV) / (_ROOM_C - _COLD_C)
    else:
        slope = (_HOT_UV - _ROOM_UV) / (_HOT_C - _ROOM_C)
    return int(_ROOM_UV + slope * (celsius - _ROOM_C))


@kernel
def is_powered(c: ChipRow) -> bool:
    """Tell whether PD2 switches motors, infrared and light sensor on."""
    return (int(c.memory[PORTD]) & int(c.memory[DDRD]) & SUPPLY_BIT) != 0


@kernel
def put_sensors(
    chips: Chips,
    boards: Boards,
    shown: NDArray[np.int32],
    lux: NDArray[np.float64],
    battery_v: NDArray[np.float64],
    temperature_c: float,
    microvolts_per_lux: NDArray[np.float64],
    first: int,
    end: int,
) -> None:
    """Write ADC6, ADC7 and the temperature channel of some robots' chips (arrays: per robot).

    ``shown`` (three columns) has what was written the last time: what is still so is left alone.
    """
    temperature = temperature_microvolts(temperature_c)
    for robot in range(first, end):
        light = 0
        if boards.powered[robot]:
            light = light_microvolts(lux[robot], microvolts_per_lux[robot])
        battery = int(battery_v[robot] * 500_000.0)
        now = shown[robot]
        if now[0] == battery and now[1] == light and now[2] == temperature:
            continue
        now[0], now[1], now[2] = battery, light, temperature
        c = chips[robot]
        c.adc_microvolts[BATTERY_CHANNEL] = battery
        c.adc_microvolts[LIGHT_CHANNEL] = light
        c.adc_microvolts[TEMPERATURE_CHANNEL] = temperature
