"""How a battery empties (a model).

160 mAh of lithium (hardware reference 2.1). Currents are estimates from data sheets, checked
against the published run times: 24 h at rest (6.7 mA), 3 to 10 h in use, months asleep (55 uA).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.jit import entry, kernel
from avrswarm.robot.led import BRIGHTNESS

if TYPE_CHECKING:
    from avrswarm.robot.board import Boards

CAPACITY_MAH = 160.0
CHIP_MA = 3.2  # ATmega328P active, 8 MHz, 3 V (DS figure 29-1)
ANALOG_MA = 3.5  # four op-amps, threshold divider, two regulators
MOTOR_MA = 75.0  # coin vibration motor at full duty; 20 mA at a calibrated value
LED_MA = 0.7  # one colour at its lowest step: about 1.1 V across 1.6 kOhm
PULSE_MAH = 0.7e3 * 1.125e-6 / 3600  # 0.7 A for 9 cycles of 8 MHz (hardware reference 4.6)
SLEEP_MA = 0.055  # measured by the makers of the first firmware
CHARGE_MA = 40.0  # full in about 4 h

# Open-circuit voltage of a lithium cell at 0, 10, ... 100 per cent of charge; a typical discharge
# curve.
VOLTS = (3.20, 3.55, 3.63, 3.68, 3.72, 3.76, 3.82, 3.90, 3.98, 4.07, 4.18)

Floats = NDArray[np.float64]


class BatteryState(NamedTuple):
    """Batteries of all robots: charge left, voltage now, and 1 for those on a charger."""

    charge_mah: Floats
    volts: Floats
    charging: NDArray[np.int64]
    capacity_mah: float


def make_batteries(
    count: int,
    percent: float | Floats = 80.0,
    charging: NDArray[np.int64] | None = None,
    capacity_mah: float = CAPACITY_MAH,
) -> BatteryState:
    """Return batteries with some charge."""
    filled = np.array(np.broadcast_to(np.asarray(percent, np.float64), (count,))) / 100
    battery = BatteryState(
        charge_mah=filled * capacity_mah,
        volts=np.zeros(count),
        charging=np.zeros(count, np.int64) if charging is None else charging,
        capacity_mah=float(capacity_mah),
    )
    set_volts(battery)
    return battery


@entry
def set_volts(battery: BatteryState) -> None:
    """Work out all voltages from the charges."""
    for robot in range(len(battery.volts)):
        battery.volts[robot] = _volts_at(battery.charge_mah[robot] / battery.capacity_mah)


@kernel
def _volts_at(filled: float) -> float:
    place = min(max(filled, 0.0), 1.0) * (len(VOLTS) - 1)
    number = min(int(place), len(VOLTS) - 2)
    return VOLTS[number] + (VOLTS[number + 1] - VOLTS[number]) * (place - number)


@kernel
def drain_batteries(
    boards: Boards,
    battery: BatteryState,
    duty: NDArray[np.int64],
    pulses: NDArray[np.int64],
    dt_s: float,
    first: int,
    end: int,
) -> None:
    """Take one step's charge from the batteries of some robots.

    ``duty`` is ``MotorState.duty``; ``pulses`` counts the infrared pulses a robot sent in the step.
    """
    for robot in range(first, end):
        current = SLEEP_MA if boards.asleep[robot] else CHIP_MA
        if boards.powered[robot]:
            current += ANALOG_MA
            current += MOTOR_MA * (duty[robot, 0] + duty[robot, 1]) / 255.0
        shown = int(boards.colour[robot])
        for part in range(3):
            current += LED_MA * BRIGHTNESS[(shown >> 2 * part) & 3]
        if battery.charging[robot]:
            current -= CHARGE_MA
        left = battery.charge_mah[robot] - current * dt_s / 3600.0 - pulses[robot] * PULSE_MAH
        left = min(max(left, 0.0), battery.capacity_mah)
        battery.charge_mah[robot] = left
        battery.volts[robot] = _volts_at(left / battery.capacity_mah)
