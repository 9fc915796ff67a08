"""Ticks, the message schedule, and every pulse of a frame (hardware reference, 3.4, 4.1, 4.8)."""

import itertools

import pytest

from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.robot.messages import Message, MessageType, pulse_cycles

from ..robot.test_messages import CRC_VECTORS
from .bench import TICK, VECTOR_TICK, Robot

PERIOD = 16 * TICK


@pytest.fixture
def speaker():
    return Robot("speaker", EepromMap(uid=0x1234)).obey(MessageType.RUN)


def test_tick_period_is_262144_cycles():
    robot = Robot("blink")
    cycles = []
    for _ in range(9):
        assert robot.chip.run_until(pc=VECTOR_TICK, max_cycles=2 * TICK) == "breakpoint"
        cycles.append(robot.cycle)
    assert all(abs(b - a - TICK) <= 3 for a, b in itertools.pairwise(cycles))
    assert cycles[-1] - cycles[0] == pytest.approx(8 * TICK, abs=3)
    assert robot.value("kilo_ticks", 4) == 8


def test_ticks_carry_into_all_four_bytes():
    robot = Robot("blink").run(5000)
    start = robot.program.symbols.find("kilo_ticks").address
    for i, byte in enumerate((0xFF, 0xFF, 0xFF, 0x00)):
        robot.chip.poke(start + i, byte)
    assert robot.run(TICK).value("kilo_ticks", 4) == 0x01000000


def test_a_message_every_16_ticks(speaker):
    speaker.run(5 * PERIOD)
    starts = [start for start, _ in speaker.frames()]
    assert len(starts) in (5, 6)
    assert all(abs(b - a - PERIOD) <= 4 for a, b in itertools.pairwise(starts))


def test_pulses_are_where_the_public_library_puts_them_to_the_cycle(speaker):
    speaker.run(PERIOD)
    rises, falls = speaker.edges("PB0"), speaker.edges("PB0", 0)
    frame = Message.make(MessageType.NORMAL, b"\x34\x12").pack()
    expected = pulse_cycles(frame)
    assert [cycle - rises[0] for cycle in rises[: len(expected)]] == expected
    assert {fall - rise for rise, fall in zip(rises, falls, strict=True)} == {9}
    assert speaker.frames()[0][1] == frame


@pytest.mark.parametrize("mask", [0x01, 0x81, 0xC7])
def test_only_pins_of_the_mask_are_driven_and_only_while_sending(mask):
    robot = Robot("speaker", EepromMap(tx_mask=mask)).obey(MessageType.RUN, then=0)
    robot.chip.watch_pins("PB1", "PB2", "PB6", "PB7")
    robot.run(2 * PERIOD)
    driven = 0
    for _, port, levels in robot.chip.pin_log:
        driven |= levels if port == 0 else 0
    assert driven & 0xC7 == mask
    assert robot.chip.read("DDRB") & 0xC7 == 0
    assert robot.chip.read("PORTB") == 0


def test_a_robot_with_mask_zero_is_mute_but_believes_it_sends():
    robot = Robot("speaker", EepromMap(tx_mask=0)).obey(MessageType.RUN)
    assert robot.run(2 * PERIOD).frames() == []
    robot.wait_for_led((3, 0, 3), limit=2 * PERIOD)


def test_messages_stop_when_paused(speaker):
    speaker.run(PERIOD).obey(MessageType.WAKEUP)
    sent = len(speaker.frames())
    assert len(speaker.run(3 * PERIOD).frames()) == sent


def find_next_frame(robot):
    """Cycle of the next first pulse, found on a copy of the chip."""
    snapshot, sent = robot.chip.snapshot(), len(robot.edges("PB0"))
    robot.run(PERIOD + TICK)
    start = robot.edges("PB0")[sent]
    robot.chip.restore(snapshot)
    return start


@pytest.mark.parametrize("delta", [534, 1000, 2200, 2403])
def test_light_from_somebody_else_ends_the_attempt(speaker, delta):
    speaker.run(PERIOD)
    sent = len(speaker.frames())
    start = find_next_frame(speaker)
    speaker.light([start + delta])
    ticks = speaker.value("kilo_ticks", 4)
    begun = speaker.cycle
    speaker.run(start + 30 * TICK - speaker.cycle)
    (first, aborted), (again, whole), *_ = speaker.frames()[sent:]
    assert (first, aborted) == (start, None)
    assert whole is not None
    assert 2000 < again - first < 1.1 * TICK  # a random part of a lap of timer 0
    assert speaker.value("kilo_ticks", 4) - ticks == round((speaker.cycle - begun) / TICK)


@pytest.mark.parametrize("delta", [-16, 9, 200, 300, 2410])
def test_outside_the_window_a_sender_is_deaf(speaker, delta):
    """Our own echo must not stop us, and what comes after the second pulse is not looked for."""
    speaker.run(PERIOD)
    sent = len(speaker.frames())
    start = find_next_frame(speaker)
    speaker.light([start + delta])
    speaker.run(start + 40_000 - speaker.cycle)
    if delta > 0:
        assert speaker.frames()[sent][1] is not None
    else:
        assert len(speaker.frames()) == sent  # heard at the last moment: not started at all


def test_a_frame_is_sent_in_spite_of_its_own_echo(speaker):
    speaker.run(PERIOD)
    start = find_next_frame(speaker)
    frame = speaker.frames()[0][1]
    speaker.light([start + cycle + 2 for cycle in pulse_cycles(frame)])
    speaker.run(start + 40_000 - speaker.cycle)
    assert speaker.frames()[-1] == (start, frame)
    assert speaker.chip.read("GPIOR0") == 7  # nothing of it was taken for a message


def test_no_attempt_while_a_message_comes_in(speaker):
    """The slot is given up; the next tick tries again."""
    speaker.run(PERIOD)
    start = find_next_frame(speaker)
    incoming = pulse_cycles(Message.make(0, b"\xa5" * 9).pack())
    speaker.light([start - 20_000 + cycle for cycle in incoming])
    sent = len(speaker.frames())
    speaker.run(start + 2 * TICK - speaker.cycle)
    frames = speaker.frames()[sent:]
    assert len(frames) == 1
    assert frames[0][0] - start == pytest.approx(TICK, abs=4)


def test_back_off_differs_between_robots():
    delays = set()
    for uid in range(1, 7):
        robot = Robot("speaker", EepromMap(uid=uid)).obey(MessageType.RUN).run(PERIOD)
        start = find_next_frame(robot)
        robot.light([start + 1000])
        robot.run(start + 3 * TICK - robot.cycle)
        delays.add(robot.frames()[-1][0] - start)
    assert len(delays) >= 5


def test_no_message_no_transmission():
    robot = Robot("gradient", EepromMap(uid=9)).obey(MessageType.RUN)
    assert robot.run(300 * TICK).frames() == []  # longer than it takes an unguarded clock to wrap


def test_first_message_comes_at_the_next_tick_after_long_idling():
    robot = Robot("speaker").run(260 * TICK).obey(MessageType.RUN, then=0)
    robot.run(9 * TICK)
    assert robot.frames()


@pytest.mark.parametrize(("data", "type", "crc"), CRC_VECTORS)
def test_checksum_on_the_chip(data, type, crc):
    robot = Robot("speaker").run(5000)
    for i, byte in enumerate(bytes(data).ljust(9, b"\0") + bytes([type])):
        robot.chip.poke(0x700 + i, byte)
    assert robot.call("message_crc", 0x700)[0] == crc


def test_cost_of_a_tick_while_receiving():
    robot = Robot("blink").run(5000)
    robot.chip.run_until(pc=VECTOR_TICK, max_cycles=2 * TICK)
    robot.light([robot.cycle + TICK - 1000])
    assert max(robot.interrupts(VECTOR_TICK, until=robot.cycle + 2 * TICK)) <= 121


def test_cost_of_a_tick():
    """Hardware reference 4.4: 132 not due, 161 due but nothing to say, 35442 sending."""
    idle = Robot("blink").interrupts(VECTOR_TICK, until=20 * TICK)
    assert max(idle) <= 132
    silent = Robot("gradient", EepromMap(uid=9)).obey(MessageType.RUN).run(20 * TICK)
    assert max(silent.interrupts(VECTOR_TICK, until=silent.cycle + 5 * TICK)) <= 161
    speaker = Robot("speaker").obey(MessageType.RUN).run(PERIOD)
    assert max(speaker.interrupts(VECTOR_TICK, until=speaker.cycle + PERIOD)) <= 35_442
