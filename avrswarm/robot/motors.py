"""From the duty of OC2A and OC2B to the drive of two motors (a model; hardware reference 6).

Known: firmware starts a motor with 15 ms at 255, then sets a calibrated value of 50 to 90;
without the start a resting motor does not get going; below 10 per cent nothing moves; one motor
alone needs a higher value for its calibrated turn than each of both together for going straight.
Measured curves of speed against duty do not exist. The model takes a straight line through three
points:

    duty <= dead_duty      -> 0     10 per cent (library header)
    the calibrated value   -> 1     45 degrees/s alone, 10 mm/s with the other one
    255                    -> 2     90 degrees/s at full power (gym-kilobots)

The calibrated value of a motor slides from "turn" to "straight" as the other motor comes up.
``dead_duty = 60`` gives the slope that Kilombo assumes, (duty - 60) / 15 for a calibrated value of
75.

Motors are looked at once per step of the world. A start needs all but one step of the spin-up
time, because 15 ms cover only 3 or 4 looks that are 4 ms apart. Duties are taken as the firmware
wrote them; the timer makes them effective within half a millisecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.peripherals.timer_unit import TopSource, Waveform
from avrswarm.chip.registers import DDRB, DDRD, PORTB, PORTD
from avrswarm.chip.state import ChipRow
from avrswarm.jit import kernel

if TYPE_CHECKING:
    from avrswarm.robot.board import Boards

LEFT, RIGHT = 0, 1
MOTOR_BIT = 0x08  # PB3 = OC2A, PD3 = OC2B
SUPPLY_BIT = 0x04  # PD2 switches the supply of motors and analog parts (hardware reference 2.1)
FULL_DUTY = 255

SPIN_UP_S = 0.015
START_DUTY = 128
"""Assumption: half power gets a resting motor going within the spin-up time; calibrated values do
not."""
DEAD_DUTY = 26
FULL_POWER = 2.0
CALIBRATED = (73.0, 68.0, 65.0, 62.0)
"""Turn left, turn right, straight left, straight right; a thesis has 73.9, 67.6, 64.6, 61.6 for ten
robots."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class MotorState(NamedTuple):
    """Motors of all robots; arrays of two have left, right.

    Attributes
    ----------
    duty
        Last seen duty, 0 to 255.
    running
        1 once a motor has overcome static friction.
    spin_s
        For how long a motor at rest has had high duty.
    calibration
        Duties that give nominal speed: turn left, turn right, straight left, straight right.
    gain
        Speed of this robot's motor in relation to nominal.
    spin_up_s, start_duty, dead_duty, full_power
        What a start takes, below what nothing moves, drive at duty 255.
    """

    duty: Integers
    running: Integers
    spin_s: Floats
    calibration: Floats
    gain: Floats
    spin_up_s: float
    start_duty: float
    dead_duty: float
    full_power: float


def make_motors(
    count: int,
    calibration: Floats | None = None,
    gain: Floats | None = None,
    spin_up_s: float = SPIN_UP_S,
    start_duty: float = START_DUTY,
    dead_duty: float = DEAD_DUTY,
    full_power: float = FULL_POWER,
) -> MotorState:
    """Return resting motors; ``calibration`` has four columns, ``gain`` two."""
    values = CALIBRATED if calibration is None else calibration
    return MotorState(
        duty=np.zeros((count, 2), np.int64),
        running=np.zeros((count, 2), np.int64),
        spin_s=np.zeros((count, 2)),
        calibration=np.array(np.broadcast_to(values, (count, 4)), np.float64),
        gain=np.array(np.broadcast_to(1.0 if gain is None else gain, (count, 2)), np.float64),
        spin_up_s=float(spin_up_s),
        start_duty=float(start_duty),
        dead_duty=float(dead_duty),
        full_power=float(full_power),
    )


@kernel
def read_drives(
    boards: Boards,
    motors: MotorState,
    dt_s: float,
    out_left: Floats,
    out_right: Floats,
    first: int,
    end: int,
) -> None:
    """Look at the motor outputs of some robots' boards and write the drives for the next step."""
    for robot in range(first, end):
        for motor in range(2):
            motors.duty[robot, motor] = boards.duty[robot, motor]
            _start_or_stop(motors, robot, motor, dt_s)
        out_left[robot] = _drive(motors, robot, LEFT)
        out_right[robot] = _drive(motors, robot, RIGHT)


@kernel
def duty(c: ChipRow, motor: int) -> int:
    """Return which part of the time a motor is on, 0 to 255, from its pin, port and timer."""
    port_d = int(c.memory[PORTD]) & int(c.memory[DDRD])
    if not port_d & SUPPLY_BIT:
        return 0
    direction = int(c.memory[DDRB]) if motor == LEFT else int(c.memory[DDRD])
    if not direction & MOTOR_BIT:
        return 0
    timer = c.timers[2]
    mode = int(timer.output_mode[motor])
    if mode == 0:  # an ordinary output
        port = int(c.memory[PORTB]) if motor == LEFT else int(c.memory[PORTD])
        return FULL_DUTY if port & MOTOR_BIT else 0
    waveform = int(timer.waveform)
    if timer.divisor == 0 or waveform < Waveform.FAST:
        if mode == 1 and timer.divisor != 0:
            return FULL_DUTY // 2  # toggles at every match
        return FULL_DUTY if timer.level[motor] else 0
    compare = int(timer.buffer[motor])
    top = int(timer.buffer[0]) if timer.top_source == TopSource.OCRA else 0xFF
    if top == 0:
        top = 1
    value = min(compare * FULL_DUTY // top, FULL_DUTY)
    if mode == 1:
        return FULL_DUTY // 2
    return FULL_DUTY - value if mode == 3 else value


@kernel
def _start_or_stop(motors: MotorState, robot: int, motor: int, dt_s: float) -> None:
    now = motors.duty[robot, motor]
    if now <= motors.dead_duty:
        motors.running[robot, motor] = 0
        motors.spin_s[robot, motor] = 0.0
    elif motors.running[robot, motor] == 0:
        if now < motors.start_duty:
            motors.spin_s[robot, motor] = 0.0
            return
        motors.spin_s[robot, motor] += dt_s
        if motors.spin_s[robot, motor] > motors.spin_up_s - dt_s - 1e-9:
            motors.running[robot, motor] = 1


@kernel
def _drive(motors: MotorState, robot: int, motor: int) -> float:
    if motors.running[robot, motor] == 0:
        return 0.0
    other = 1 - motor
    together = 0.0
    if motors.running[robot, other]:
        together = min(motors.duty[robot, other] / motors.calibration[robot, 2 + other], 1.0)
    turn = motors.calibration[robot, motor]
    straight = motors.calibration[robot, 2 + motor]
    nominal = turn + (straight - turn) * together
    now = motors.duty[robot, motor]
    if now <= nominal:
        relative = (now - motors.dead_duty) / (nominal - motors.dead_duty)
    else:
        relative = 1.0 + (motors.full_power - 1.0) * (now - nominal) / (FULL_DUTY - nominal)
    return float(motors.gain[robot, motor] * relative)
