"""The receiver: clock tolerance, amplitudes, cost of a pulse (hardware reference, 1, 4.3-4.5)."""

import random

import pytest

from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.robot.messages import Message, MessageType, pulse_cycles

from .bench import (
    IDLE_PASS,
    MS,
    TICK,
    VECTOR_COMPARATOR,
    VECTOR_TIMER1,
    Robot,
)

RECEIVER_IDLE = 7
LEADING_FLAG = 2

RUN = Message.make(MessageType.RUN)


def received(robot):
    return robot.bytes("kilo_rx_message", 12)


def amplitudes(robot):
    """Low gain, high gain."""
    content = robot.bytes("kilo_rx_distance", 4)
    return int.from_bytes(content[:2], "little"), int.from_bytes(content[2:], "little")


def random_frames(count, seed=1):
    draw = random.Random(seed)
    return [Message.make(draw.randrange(0x80), draw.randbytes(9)) for _ in range(count)]


@pytest.mark.parametrize("ratio", [0.952, 0.96, 0.98, 1.0, 1.02, 1.05, 1.054])
def test_messages_arrive_from_faster_and_slower_clocks(ratio):
    robot = Robot("listener").run(5000)
    frames = [
        Message.make(0),
        Message.make(0, b"\xff" * 9),
        Message.make(0x7F, b"\x80\x01" * 4),
        *random_frames(20),
    ]
    for message in frames:
        end = robot.hear(message, after=2000, ratio=ratio)
        robot.run(end - robot.cycle + 2000)
        assert received(robot) == message.pack()
        assert robot.value("new_message") == 1
        robot.chip.poke(robot.program.symbols.find("new_message").address, 0)


@pytest.mark.parametrize("ratio", [0.9, 0.94, 1.065, 1.1])
def test_much_faster_or_slower_clocks_are_not_understood(ratio):
    robot = Robot("listener").run(5000)
    for message in random_frames(5):
        end = robot.hear(message, ratio=ratio)
        robot.run(end - robot.cycle + 4000)
        assert robot.value("new_message") == 0
        assert robot.chip.read("GPIOR0") == RECEIVER_IDLE


@pytest.mark.parametrize("ratio", [0.96, 1.0, 1.05])
def test_from_the_pin_of_one_robot_into_the_comparator_of_another(ratio):
    speaker = Robot("random_walk", EepromMap(uid=0xBEEF)).obey(MessageType.RUN).run(40 * TICK)
    rises = speaker.edges("PB0")
    listener = Robot("listener").run(5000)
    start, frame = speaker.frames()[0]
    cycles = [cycle - start for cycle in rises if start <= cycle < start + 35_000]
    listener.light([10_000 + round(cycle * ratio) for cycle in cycles])
    listener.run(60_000)
    assert received(listener) == frame
    message = Message.unpack(received(listener))
    assert message.is_intact
    assert message.data[:2] == b"\xef\xbe"
    assert listener.value("new_message") == 1
    assert listener.value("last_sender", 2) == 0xBEEF


def test_high_gain_is_taken_at_the_first_pulse_and_low_gain_at_the_second():
    robot = Robot("listener").run(5000)
    robot.set_counts(high_gain=10, low_gain=11)
    start = robot.cycle + 1000
    volts = 3.0 / 1024
    robot.chip.set_adc("ADC0", 812.5 * volts, at=start)
    robot.chip.set_adc("ADC0", 12.5 * volts, at=start + 100)
    robot.chip.set_adc("ADC1", 177.5 * volts, at=start + 2420)
    robot.chip.set_adc("ADC1", 13.5 * volts, at=start + 2520)
    end = robot.hear(Message.make(0))
    robot.run(end - robot.cycle + 1000)
    assert amplitudes(robot) == (177, 812)


@pytest.mark.parametrize("shift", range(0, 4200, 61))
def test_a_message_that_begins_during_a_sensor_reading_is_measured_all_the_same(shift):
    """The public library reports the light or battery count as amplitude here (Q2)."""
    robot = Robot("move_to_light").obey(MessageType.RUN, then=0)
    robot.set_counts(light=300, high_gain=800, low_gain=175)
    robot.chip.run_until(symbol="get_ambientlight", max_cycles=IDLE_PASS + 100 * MS)
    end = robot.hear(Message.make(0, b"\x31" * 9), after=1000 + shift)
    robot.run(end - robot.cycle + 1000)
    assert received(robot) == Message.make(0, b"\x31" * 9).pack()
    assert amplitudes(robot) == (175, 800)
    assert robot.chip.read("ADMUX") in (0, 7)


def test_sensors_say_minus_one_while_a_message_comes_in():
    robot = Robot("move_to_light").run(5000)
    robot.set_counts(light=321)
    robot.run(1000)
    assert robot.call("get_ambientlight")[0] == 321
    robot = Robot("move_to_light").run(5000)
    robot.light([robot.cycle + 100])
    robot.run(400)
    assert robot.call("get_ambientlight")[0] == 0xFFFF


def test_a_message_cut_short_is_forgotten_after_2959_cycles():
    robot = Robot("listener").run(5000)
    cycles = pulse_cycles(Message.make(0, b"\x55" * 9).pack())[:20]
    last_start = max(c for c in cycles if c >= 2706 and (c - 2706) % 2712 == 0)
    start = robot.cycle + 1000
    robot.light([start + cycle for cycle in cycles])
    robot.run(start + last_start + 2950 - robot.cycle)
    assert robot.chip.read("GPIOR0") != RECEIVER_IDLE
    robot.run(100)
    assert robot.chip.read("GPIOR0") == RECEIVER_IDLE
    assert robot.chip.read("TCCR1B") == 0
    assert robot.chip.read("ADMUX") == 0
    end = robot.hear(Message.make(0))
    robot.run(end - robot.cycle + 1000)
    assert robot.value("new_message") == 1


@pytest.mark.parametrize("at", [60, 120, 2580, 2700])
def test_a_stray_pulse_resets_the_receiver(at):
    robot = Robot("listener").run(5000)
    start = robot.cycle + 1000
    robot.light([start, start + 2420, start + 2706, start + 2706 + at], high=30)
    robot.run(1000 + 2706 + at + 400)
    assert robot.chip.read("GPIOR0") == RECEIVER_IDLE


@pytest.mark.parametrize("missed", [1, 3, 8])
def test_a_zero_byte_is_taken_for_a_leading_byte_by_a_robot_that_joins_late(missed):
    """Q15: it takes the rest for data, finds too few bytes and is soon itself again."""
    robot = Robot("listener").run(5000)
    pulses = pulse_cycles(Message.make(0).pack())
    rest = [cycle for cycle in pulses if cycle >= 2706 + 2712 * missed]
    start = robot.cycle + 1000
    robot.light([start + cycle - rest[0] for cycle in rest])
    robot.run(1000 + 2430 + 300)
    assert robot.chip.read("GPIOR0") & LEADING_FLAG == 0
    robot.run(rest[-1] - rest[0] + 1000)
    assert robot.chip.read("GPIOR0") == RECEIVER_IDLE
    assert robot.value("new_message") == 0
    end = robot.hear(Message.make(0, b"\x12"))
    robot.run(end - robot.cycle + 1000)
    assert robot.value("new_message") == 1


def test_light_inside_the_leading_byte_is_a_collision():
    robot = Robot("listener").run(5000)
    start = robot.cycle + 1000
    robot.light([start, start + 810, start + 2420])
    robot.run(4000)
    assert robot.chip.read("GPIOR0") == RECEIVER_IDLE


def test_a_bad_checksum_does_not_reach_the_program():
    robot = Robot("listener").run(5000)
    frame = bytearray(Message.make(0, b"\x12").pack())
    frame[4] ^= 1
    end = robot.hear(bytes(frame))
    robot.run(end - robot.cycle + 1000)
    assert robot.value("new_message") == 0


def pulse_costs(robot, message, ratio=1.0):
    """(kind, cost) of every pulse of a message, in order."""
    start_free = robot.cycle
    end = robot.hear(message, ratio=ratio)
    costs = robot.interrupts(VECTOR_COMPARATOR, until=end + 2000)
    kinds = []
    for cycle in pulse_cycles(message.pack()):
        slot = (cycle - 2706) % 2712 // 270
        kinds.append(slot)
    kinds[0], kinds[1] = "leading start", "leading stop"
    assert len(costs) == len(kinds)
    assert start_free < end
    return list(zip(kinds, costs, strict=True))


def test_interrupts_cost_no_more_than_in_the_public_library():
    robot = Robot("listener").run(5000)
    limits = {"leading start": 172, "leading stop": 184, 0: 108, 9: 158}
    limits |= {slot: 152 + 5 * (slot - 1) for slot in range(1, 9)}
    message = Message.make(0, b"\xff" * 9)
    *pulses, (_, last) = pulse_costs(robot, message)
    for kind, cost in pulses:
        assert cost <= limits[kind], kind
    assert last <= 401
    assert sum(cost for _, cost in pulses) + last <= 11_900


def test_last_pulse_with_a_bad_checksum_and_with_run():
    robot = Robot("blink").run(5000)
    assert pulse_costs(robot, Message(RUN.data, RUN.type, RUN.crc ^ 1))[-1][1] <= 380
    assert pulse_costs(robot, RUN)[-1][1] <= 435


def test_a_whole_run_message():
    assert sum(cost for _, cost in pulse_costs(Robot("blink").run(5000), RUN)) <= 5540


@pytest.mark.parametrize(
    ("low", "high", "limit"), [(138, 630, 1200), (176, 800, 4700), (255, 960, 1200)]
)
def test_last_pulse_when_the_callback_estimates_the_distance(low, high, limit):
    """Hardware reference 4.4: +1200 with one table, up to +4700 with both."""
    robot = Robot("disperse").run(5000)
    robot.set_counts(low_gain=low, high_gain=high)
    _, last = pulse_costs(robot, Message.make(0))[-1]
    assert robot.value("closest") < 255
    assert last <= 401 + limit


def test_timeout_and_stray_cost():
    robot = Robot("blink").run(5000)
    robot.light([robot.cycle + 100])
    (cost,) = robot.interrupts(VECTOR_TIMER1, until=robot.cycle + 5000)
    assert cost <= 54
    robot.light([robot.cycle + 100 + cycle for cycle in (0, 2420, 2706, 2786)], high=30)
    assert robot.interrupts(VECTOR_COMPARATOR, until=robot.cycle + 4000)[3] <= 123


def test_an_overheard_message_survives_our_own_aborted_attempt():
    """In the public library the pulse that made us give up is lost with its message (Q9)."""
    robot = Robot("random_walk", EepromMap(uid=3)).obey(MessageType.RUN).run(20 * TICK)
    snapshot, sent = robot.chip.snapshot(), len(robot.edges("PB0"))
    robot.run(17 * TICK)
    start = robot.edges("PB0")[sent]
    robot.chip.restore(snapshot)
    message = Message.make(0, b"\x77" * 9)
    robot.light([start + 900 + cycle for cycle in pulse_cycles(message.pack())])
    robot.run(start + 45_000 - robot.cycle)
    assert received(robot) == message.pack()
    assert robot.edges("PB0")[sent + 1 :] == [] or robot.edges("PB0")[sent + 1] > start + 36_000
