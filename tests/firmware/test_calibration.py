"""Calibration by messages: motion, saving, reading the id (hardware reference, 3.3, 8.4)."""

import pytest

from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.robot.messages import CalibrationMode, Message, MessageType

from .bench import IDLE, IDLE_PASS, MOVING, MS, OFF, Robot


def calibrate(robot, mode, *values, then=IDLE_PASS):
    return robot.obey(MessageType.CALIB, bytes([mode, *values]), then=then)


@pytest.mark.parametrize(
    ("mode", "values", "spin", "motors"),
    [
        (CalibrationMode.TURN_LEFT, (0, 0, 77), (255, 0), (77, 0)),
        (CalibrationMode.TURN_RIGHT, (0, 0, 0, 66), (0, 255), (0, 66)),
        (CalibrationMode.STRAIGHT, (0, 0, 0, 0, 55, 44), (255, 255), (55, 44)),
        (CalibrationMode.UID, (0x34, 0x12), (0, 0), (0, 0)),
    ],
)
def test_modes_spin_up_then_run_at_the_value(mode, values, spin, motors):
    robot = Robot("blink")
    calibrate(robot, CalibrationMode.UID, 0, 0)
    calibrate(robot, mode, *values, then=5 * MS)
    assert robot.state == MOVING
    assert robot.led == OFF
    assert robot.motors == spin
    assert robot.run(15 * MS).motors == motors


def test_the_same_value_does_not_spin_up_again():
    robot = Robot("blink")
    calibrate(robot, CalibrationMode.TURN_LEFT, 0, 0, 77).run(20 * MS)
    calibrate(robot, CalibrationMode.TURN_LEFT, 0, 0, 77, then=2 * MS)
    assert robot.motors == (77, 0)
    calibrate(robot, CalibrationMode.TURN_LEFT, 0, 0, 78, then=2 * MS)
    assert robot.motors == (255, 0)


def test_save_writes_the_eeprom():
    robot = Robot("blink", b"\xff" * 1024)
    calibrate(robot, CalibrationMode.UID, 0x34, 0x12)
    calibrate(robot, CalibrationMode.TURN_LEFT, 0, 0, 71)
    calibrate(robot, CalibrationMode.TURN_RIGHT, 0, 0, 0, 72)
    calibrate(robot, CalibrationMode.STRAIGHT, 0, 0, 0, 0, 73, 74)
    for _ in range(3):  # the controller repeats it
        calibrate(robot, CalibrationMode.SAVE, then=6 * MS)
    robot.run(40 * MS)
    stored = EepromMap.unpack(bytes(robot.chip.eeprom))
    assert stored.uid == 0x1234
    assert (stored.turn_left, stored.turn_right) == (71, 72)
    assert (stored.straight_left, stored.straight_right) == (73, 74)
    assert robot.state == IDLE
    assert robot.motors == (None, None)
    changed = {i for i, byte in enumerate(robot.chip.eeprom) if byte != 0xFF}
    assert changed == {0x05, 0x09, 0x0C, 0x14, 0xB0, 0xB1}


def test_save_counts_only_while_calibrating():
    robot = Robot("blink", b"\xff" * 1024)
    calibrate(robot, CalibrationMode.SAVE)
    assert set(robot.chip.eeprom) == {0xFF}
    assert robot.state == IDLE


def test_saved_values_are_there_after_reset():
    robot = Robot("move", b"\xff" * 1024)
    calibrate(robot, CalibrationMode.STRAIGHT, 0, 0, 0, 0, 73, 74)
    calibrate(robot, CalibrationMode.SAVE)
    robot.obey(MessageType.RESET).obey(MessageType.RUN).run(30 * MS)
    assert robot.motors == (73, 74)


def test_messages_are_heard_while_saving():
    """The public library is deaf for 20 ms here (Q18)."""
    robot = Robot("listener", b"\xff" * 1024)
    calibrate(robot, CalibrationMode.STRAIGHT, 1, 2, 3, 4, 5, 6)
    calibrate(robot, CalibrationMode.SAVE, then=0)
    end = robot.hear(Message.make(0), after=500)
    robot.run(end - robot.cycle + 1000)
    assert robot.value("new_message") == 1


@pytest.mark.parametrize("uid", [0xA5C3, 0x0001])
def test_read_uid_turns_left_for_each_one(uid):
    robot = Robot("blink", EepromMap(uid=uid))
    robot.obey(MessageType.READUID, b"\0")
    bits = []
    for bit in range(16):
        robot.obey(MessageType.READUID, bytes([bit]), then=20 * MS)
        assert robot.state == MOVING
        bits.append(robot.motors == (73, 0))
    assert sum(bit << i for i, bit in enumerate(bits)) == uid


def test_run_leaves_calibration():
    robot = Robot("move")
    calibrate(robot, CalibrationMode.TURN_LEFT, 0, 0, 77)
    assert robot.obey(MessageType.RUN, then=30 * MS).motors == (65, 62)
