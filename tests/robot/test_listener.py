"""Frames and messages from pulses, against section 4 of the hardware reference."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.jit import entry
from avrswarm.robot.listener import (
    BAD_CRC,
    BROKEN,
    FRAME,
    MESSAGE,
    NOTHING,
    SILENCE_CYCLES,
    allocate_listeners,
    allocate_speakers,
    deafen,
    hear,
    slot_of,
    speak,
    speaker_timeout,
)
from avrswarm.robot.messages import LAST_STOP_CYCLE, Message, pulse_cycles

pytestmark = pytest.mark.jit_off

MESSAGES = [
    Message.make(0),
    Message.make(0x88),
    Message.make(0, bytes(range(9))),
    Message.make(0x7F, b"\xff" * 9),
    Message.make(1, b"\x55\xaa" * 4),
]


@entry
def run_hear(listeners, edges, low, high, results):
    for k in range(len(edges)):
        results[k] = hear(listeners[0], edges[k], low[k], high[k])


@entry
def run_speak(speakers, pulses, results):
    for k in range(len(pulses)):
        results[k] = speak(speakers[0], pulses[k])


@entry
def run_timeout(speakers, cycle):
    return speaker_timeout(speakers[0], cycle)


@entry
def run_deafen(listeners, until):
    deafen(listeners[0], until)


@entry
def run_slots(results):
    for elapsed in range(len(results)):
        results[elapsed] = slot_of(elapsed)


def hears(edges, listeners=None):
    """What a listener says to these edges: [(result, bytes)] without the nothings."""
    listeners = allocate_listeners(1) if listeners is None else listeners
    heard = []
    for edge in edges:  # one by one, so that the row can be looked at
        result = np.zeros(1, np.int64)
        low, high = np.array([edge % 101]), np.array([edge % 103])
        run_hear(listeners, np.array([edge]), low, high, result)
        if result[0] != NOTHING:
            heard.append((int(result[0]), bytes(listeners[0].message)))
    return heard


def speaks(pulses, speakers=None):
    speakers = allocate_speakers(1) if speakers is None else speakers
    said = []
    for pulse in pulses:
        result = np.zeros(1, np.int64)
        run_speak(speakers, np.array([pulse]), result)
        if result[0] != NOTHING:
            row = speakers[0]
            numbers = (int(n) for n in (result[0], row.start, row.end, row.pulses))
            said.append((*numbers, bytes(row.message)))
    return said


def at_ratio(cycles, ratio, phase=0):
    """The receiver's cycles for those of a transmitter: edges fall into whole cycles."""
    return [int(cycle * Fraction(ratio) + Fraction(phase)) + 1000 for cycle in cycles]


def test_slots_are_those_of_the_reference():
    """But for the ends of the stop bit, where real readings vary by 4 or 5 cycles."""
    results = np.zeros(3000, np.int64)
    run_slots(results)
    ends = [402, 671, 939, 1208, 1476, 1745, 2014, 2282 + 4, 2554 - 5]
    starts = [135, *(end + 1 for end in ends[:-1])]
    expected = np.full(3000, -1)
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        expected[start + 16 : end + 17] = k
    assert np.array_equal(results, expected)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_heard_with_its_gains(message):
    listeners = allocate_listeners(1)
    edges = at_ratio(pulse_cycles(message.pack()), 1)
    assert hears(edges, listeners) == [(MESSAGE, message.pack())]
    assert listeners[0].start == 1000
    assert listeners[0].high_gain == edges[0] % 103
    assert listeners[0].low_gain == edges[1] % 101


@given(st.binary(min_size=9, max_size=9), st.integers(0, 255), st.integers(0, 3000))
def test_any_message_twice(data, kind, pause):
    frame = Message.make(kind, data).pack()
    first = pulse_cycles(frame)
    again = [cycle + LAST_STOP_CYCLE + 560 + pause for cycle in first]
    assert hears(first + again) == [(MESSAGE, frame)] * 2
    assert speaks(first + again) == [
        (FRAME, cycles[0], cycles[-1], len(cycles), frame) for cycles in (first, again)
    ]


@pytest.mark.parametrize("ratio", ["0.952", "0.96", "0.98", "1", "1.02", "1.04", "1.054"])
@pytest.mark.parametrize("message", MESSAGES)
def test_clocks_that_understand_each_other(message, ratio):
    for phase in ("0", "0.5", "0.99"):
        edges = at_ratio(pulse_cycles(message.pack()), ratio, phase)
        assert hears(edges) == [(MESSAGE, message.pack())]


@pytest.mark.parametrize("ratio", ["0.950", "0.93", "1.056", "1.08"])
@pytest.mark.parametrize("message", MESSAGES)
def test_clocks_that_do_not(message, ratio):
    for phase in ("0", "0.5", "0.99"):
        edges = at_ratio(pulse_cycles(message.pack()), ratio, phase)
        assert not any(result == MESSAGE for result, _ in hears(edges))


def test_a_wrong_bit_is_a_bad_crc():
    frame = bytearray(Message.make(0, b"\x01\x02\x03").pack())
    frame[1] ^= 0x40
    assert hears(pulse_cycles(bytes(frame))) == [(BAD_CRC, bytes(frame))]


def test_a_stray_pulse_ends_everything_and_the_next_message_is_heard():
    frame = Message.make(0, bytes(range(9))).pack()
    cycles = pulse_cycles(frame)
    spoiled = sorted([*cycles, cycles[2] + 150])  # 134 by the receiver's timer
    assert hears(spoiled) == []
    later = [cycle + 60_000 for cycle in cycles]
    assert hears(spoiled + later) == [(MESSAGE, frame)]


def test_a_lonely_pulse_is_forgotten_after_the_timeout():
    frame = Message.make(0, b"\x2a").pack()
    cycles = pulse_cycles(frame)
    before_timeout = [cycle + 2959 + 15 for cycle in cycles]
    assert hears([0, *before_timeout]) == []  # taken for a late bit: a stray pulse
    after_timeout = [cycle + 2959 + 16 for cycle in cycles]
    assert hears([0, *after_timeout]) == [(MESSAGE, frame)]


def test_a_leading_byte_with_a_bit_in_it_is_a_collision():
    frame = Message.make(0, b"\xff").pack()
    cycles = pulse_cycles(frame)
    assert hears(sorted([*cycles, 700])) == []


def test_a_zero_byte_passes_for_a_leading_byte():
    """A robot that joins late may lock onto it; what it then hears is shifted (4.3)."""
    first = Message.make(0, b"\x00" * 9)
    second = Message.make(0, b"\x01" * 9).pack()
    late = pulse_cycles(first.pack())[2:]  # both pulses of the leading byte missed
    follows = [cycle + LAST_STOP_CYCLE + 600 for cycle in pulse_cycles(second)]
    results = hears(late + follows)
    assert (MESSAGE, first.pack()) not in results


def test_a_transmitting_robot_is_deaf():
    frame = Message.make(0, b"\x2a").pack()
    cycles = pulse_cycles(frame)
    listeners = allocate_listeners(1)
    assert hears(cycles[:10], listeners) == []
    run_deafen(listeners, cycles[20])
    assert hears(cycles[10:], listeners) == []
    later = [cycle + 50_000 for cycle in cycles]
    assert hears(later, listeners) == [(MESSAGE, frame)]
    run_deafen(listeners, 200_000)
    run_deafen(listeners, 150_000)  # an earlier end does not make it hear again
    assert hears([cycle + 160_000 for cycle in cycles], listeners) == []
    later = [cycle + 200_000 for cycle in cycles]
    assert hears(later[:10], listeners) == []
    run_deafen(listeners, 200_000)  # nor does the same end make it forget what it hears now
    assert hears(later[10:], listeners) == [(MESSAGE, frame)]


# ---- transmitters ----------------------------------------------------------------------------


@pytest.mark.parametrize("pitch", [263, 270, 279])
@pytest.mark.parametrize("leading_gap", [2346, 2420, 2519])
@pytest.mark.parametrize("pause", [200, 282, 440])
def test_frames_within_the_limits_of_q16(pitch, leading_gap, pause):
    frame = Message.make(0x33, b"\x00\xff\x55\xaa\x80\x01\x7e\xfe\x10").pack()
    pulses = [0, leading_gap]
    start = leading_gap + pause
    for byte in frame:
        slots = 1 | byte << 1 | 1 << 9
        pulses += [start + pitch * k for k in range(10) if slots >> k & 1]
        start += 9 * pitch + pause
    assert speaks(pulses) == [(FRAME, 0, pulses[-1], len(pulses), frame)]


@pytest.mark.parametrize("sent", [1, 2, 3, 10, 40])
def test_a_frame_that_ends_early_is_broken(sent):
    frame = Message.make(0, bytes(range(9))).pack()
    cycles = pulse_cycles(frame)
    speakers = allocate_speakers(1)
    assert speaks(cycles[:sent], speakers) == []
    last = cycles[sent - 1]
    assert run_timeout(speakers, last + SILENCE_CYCLES) == NOTHING
    assert run_timeout(speakers, last + SILENCE_CYCLES + 1) == BROKEN
    assert (speakers[0].start, speakers[0].end, speakers[0].pulses) == (0, last, sent)
    assert run_timeout(speakers, last + 2 * SILENCE_CYCLES) == NOTHING
    complete = len([c for c in cycles[:sent] if (c - 2706) % 2712 == 2430])
    assert bytes(speakers[0].message) == frame[:complete].ljust(12, b"\0")


def test_the_next_frame_reports_the_broken_one_if_nobody_asked():
    frame = Message.make(0, bytes(range(9))).pack()
    cycles = pulse_cycles(frame)
    again = [cycle + 20_000 for cycle in cycles]
    said = speaks([*cycles[:2], *again])
    assert [entry[:4] for entry in said] == [
        (BROKEN, 0, 2420, 2),
        (FRAME, 20_000, 20_000 + LAST_STOP_CYCLE, len(cycles)),
    ]
    assert said[1][4] == frame


def test_silence_after_a_complete_frame_is_no_news():
    speakers = allocate_speakers(1)
    cycles = pulse_cycles(Message.make(0).pack())
    assert len(speaks(cycles, speakers)) == 1
    assert run_timeout(speakers, cycles[-1] + 10 * SILENCE_CYCLES) == NOTHING
    assert bytes(speakers[0].message) == Message.make(0).pack()


def test_pulses_of_another_protocol_are_one_broken_frame():
    speakers = allocate_speakers(1)
    assert speaks(range(0, 50_000, 100), speakers) == []
    assert run_timeout(speakers, 60_000) == BROKEN
    assert speakers[0].pulses == 500
    assert bytes(speakers[0].message) == bytes(12)
