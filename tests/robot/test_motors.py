"""Motors: what makes them start, and how fast they run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.chip.chip import Chip
from avrswarm.chip.peripherals.timer_unit import TopSource, Waveform
from avrswarm.chip.registers import DDRB, DDRD, PORTB, PORTD
from avrswarm.chip.state import allocate
from avrswarm.program import load_program
from avrswarm.robot.board import allocate_boards, look_at_all
from avrswarm.robot.motors import CALIBRATED, make_motors
from avrswarm.scene.shipped import shipped_folder

from .entries import update_drives

pytestmark = pytest.mark.jit_off

DT_S = 0.004


class Bench:
    """One chip with motors, set up as the Kilobot library does."""

    def __init__(self, **options):
        self.chips = allocate(1)
        self.c = self.chips[0]
        self.boards = allocate_boards(1)
        self.motors = make_motors(1, **options)
        self.left, self.right = np.zeros(1), np.zeros(1)
        self.c.memory[PORTD] = 0x04
        self.c.memory[DDRD] = 0x0C
        self.c.memory[DDRB] = 0x08
        timer = self.c.timers[2]
        timer.waveform, timer.divisor = Waveform.PHASE, 8
        timer.output_mode[:] = 2

    def set(self, left, right):
        self.c.timers[2].buffer[:] = left, right

    def look(self, times=1, dt_s=DT_S):
        for _ in range(times):
            look_at_all(self.chips, self.boards)
            update_drives(self.boards, self.motors, dt_s, self.left, self.right)
        return float(self.left[0]), float(self.right[0])

    def start(self, left, right):
        self.set(255, 255)
        self.look(4)
        self.set(left, right)
        return self.look()


def test_calibrated_values_give_one():
    assert Bench().start(73, 0) == (1, 0)
    assert Bench().start(0, 68) == (0, 1)
    assert Bench().start(65, 62) == (1, 1)


def test_full_power_is_faster():
    assert Bench().start(255, 0) == (2, 0)
    assert Bench(full_power=3).start(255, 255) == (3, 3)


def test_a_resting_motor_needs_spin_up():
    bench = Bench()
    bench.set(73, 0)
    assert bench.look(20) == (0, 0)
    assert bench.start(73, 0) == (1, 0)


@pytest.mark.parametrize("dt_ms", [0.5, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("phase", [0.01, 0.5, 0.99])
def test_15_ms_start_a_motor_on_every_grid_and_10_ms_on_none(dt_ms, phase):
    for spin_ms, starts in [(15, True), (15 - 2.01 * dt_ms, False)]:
        bench = Bench()
        looks = np.arange(phase * dt_ms, 40, dt_ms)
        for time in looks:
            bench.set(255 if time < spin_ms else 73, 0)
            drive = bench.look(dt_s=dt_ms / 1000)
        assert (drive[0] > 0) == starts


def test_a_motor_keeps_running_down_to_the_dead_duty():
    bench = Bench()
    bench.start(73, 0)
    bench.set(27, 0)
    assert 0 < bench.look()[0] < 0.1
    bench.set(26, 0)
    assert bench.look() == (0, 0)
    bench.set(73, 0)
    assert bench.look(10) == (0, 0)  # at rest again


@given(st.integers(0, 255), st.integers(0, 255))
def test_drive_grows_with_duty_and_stays_in_bounds(duty, other):
    lower = Bench().start(max(0, duty - 1), other)[0]
    drive = Bench().start(duty, other)[0]
    assert 0 <= lower <= drive <= 2


def test_gain_and_calibration_belong_to_a_robot():
    bench = Bench(calibration=np.array([80.0, 68, 65, 62]), gain=np.array([0.9, 1.1]))
    assert bench.start(80, 0)[0] == pytest.approx(0.9)
    assert bench.start(0, 68)[1] == pytest.approx(1.1)


def test_kilombos_slope():
    bench = Bench(dead_duty=60, calibration=np.array([75.0] * 4))
    assert bench.start(75, 0) == (1, 0)
    assert bench.start(68, 0)[0] == pytest.approx(8 / 15)


@pytest.mark.parametrize("register", [DDRB, PORTD])
def test_pin_direction_and_supply_switch_motors_off(register):
    bench = Bench()
    bench.start(73, 68)
    bench.c.memory[register] = 0
    left, right = bench.look()
    assert left == 0
    assert (right == 0) == (register == PORTD)


def test_other_outputs_of_the_timer():
    bench = Bench()
    bench.set(100, 200)
    timer = bench.c.timers[2]
    timer.output_mode[:] = 3  # inverting
    bench.look()
    assert bench.motors.duty[0].tolist() == [155, 55]
    timer.output_mode[:] = 0  # plain ports
    bench.c.memory[PORTB] = 0x08
    bench.look()
    assert bench.motors.duty[0].tolist() == [255, 0]
    timer.output_mode[:] = 2
    timer.top_source = TopSource.OCRA  # OCR2A is TOP, OCR2B a part of it
    bench.set(200, 100)
    bench.look()
    assert bench.motors.duty[0].tolist() == [255, 127]
    timer.divisor = 0  # stopped: the pin stays as it is
    timer.level[:] = 1, 0
    bench.look()
    assert bench.motors.duty[0].tolist() == [255, 0]


def test_defaults_are_those_of_the_eeprom():
    from avrswarm.robot.eeprom_map import EepromMap

    robot = EepromMap()
    stored = (robot.turn_left, robot.turn_right, robot.straight_left, robot.straight_right)
    assert stored == CALIBRATED


def test_duty_of_a_real_chip():
    chip = Chip(load_program(shipped_folder("firmware") / "blink" / "blink.hex"))
    chip.write("DDRB", 0x08)
    chip.write("DDRD", 0x0C)
    chip.write("PORTD", 0x04)
    chip.write("TCCR2A", 0xA1)  # as the library does: phase correct, non-inverting
    chip.write("TCCR2B", 0x02)
    chip.write("OCR2A", 255)
    chip.write("OCR2B", 70)
    motors = make_motors(1)
    boards = allocate_boards(1)
    look_at_all(chip._chips, boards)
    update_drives(boards, motors, DT_S, np.zeros(1), np.zeros(1))
    assert motors.duty[0].tolist() == [255, 70]
