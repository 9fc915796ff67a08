"""Deep sleep and how robots are woken (hardware reference, 3.2, Q13)."""

import pytest

from avrswarm.robot.messages import Message, MessageType, pulse_cycles

from .bench import IDLE, IDLE_PASS, MS, OFF, RED, SLEEPING, WHITE, Robot

SECOND = 8_000_000
REPEAT = round(10.4 * MS)  # the overhead controller's pace


@pytest.fixture
def asleep():
    robot = Robot("blink").obey(MessageType.SLEEP)
    assert robot.state == SLEEPING
    assert robot.chip.asleep
    return robot


def test_asleep_everything_is_off(asleep):
    chip = asleep.chip
    assert chip.pin("PD2") == 0
    assert [chip.read(name) for name in ("DDRB", "DDRC", "DDRD", "PORTD")] == [0] * 4
    assert chip.read("ADCSRA") & 0x80 == 0
    assert chip.read("ACSR") & 0x08 == 0


def test_white_flash_of_10_ms_every_8_seconds(asleep):
    flashes = []
    for _ in range(2):
        flashes.append(asleep.wait_for_led(WHITE, limit=9 * SECOND))
        off = asleep.wait_for_led(OFF)
        assert off - flashes[-1] == pytest.approx(10 * MS, abs=200)
    assert (flashes[1] - flashes[0]) / SECOND == pytest.approx(8.2, abs=0.25)  # 8 s nominal


def test_the_controller_wakes_a_sleeping_robot(asleep):
    frame = pulse_cycles(Message.make(MessageType.WAKEUP).pack())
    start = asleep.cycle + round(7.9 * SECOND)
    for n in range(60):  # 0.6 s of repeated WAKEUP around the next look
        asleep.light([start + n * REPEAT + cycle for cycle in frame])
    asleep.wait_for_led(WHITE, limit=9 * SECOND)
    asleep.run(250 * MS)
    assert asleep.state == IDLE
    assert asleep.run(IDLE_PASS).chip.pin("PD2") == 1


@pytest.mark.parametrize("offset_ms", [0.3, 2, 5, 8, 9.9])
def test_wherever_the_window_falls_one_look_is_enough(asleep, offset_ms):
    frame = pulse_cycles(Message.make(MessageType.WAKEUP).pack())
    woken = asleep.wait_for_led(WHITE, limit=9 * SECOND)
    first = woken + round(offset_ms * MS) - REPEAT
    for n in range(1, 12):
        asleep.light(
            [first + n * REPEAT + cycle for cycle in frame if first + n * REPEAT + cycle > woken]
        )
    asleep.run(130 * MS)
    assert asleep.state == IDLE


def test_light_without_a_message_shows_red_and_sleeps_on(asleep):
    woken = asleep.wait_for_led(WHITE, limit=9 * SECOND)
    asleep.light([woken + 3 * MS])
    red = asleep.wait_for_led(RED)
    assert asleep.wait_for_led(OFF) - red == pytest.approx(100 * MS, abs=800)
    asleep.run(1 * MS)
    assert asleep.chip.asleep
    assert asleep.state == SLEEPING


def test_a_command_other_than_wakeup_works_too():
    robot = Robot("move").obey(MessageType.SLEEP)
    robot.wait_for_led(WHITE, limit=9 * SECOND)
    robot.obey(MessageType.RUN, then=140 * MS)
    assert robot.motors == (65, 62)
