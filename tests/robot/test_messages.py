"""Messages against the vectors and the time line of the hardware reference (4.1, 4.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.errors import UsageError
from avrswarm.robot.messages import (
    BIT_CYCLES,
    BYTE_CYCLES,
    LAST_STOP_CYCLE,
    SENSE_CYCLES,
    Message,
    MessageType,
    frame_from_pulses,
    pulse_cycles,
)

CRC_VECTORS = [
    (b"", 0x00, 0x9C87),
    (bytes(range(9)), 0x00, 0x4DDC),
    (b"\xff" * 9, 0x00, 0x881D),
    (b"", MessageType.BOOT, 0x188F),
    (b"", MessageType.RESET, 0x2A14),
    (b"", MessageType.SLEEP, 0x5EAB),
    (b"", MessageType.WAKEUP, 0x4F22),
    (b"", MessageType.CHARGE, 0x7DB9),
    (b"", MessageType.VOLTAGE, 0x6C30),
    (b"", MessageType.RUN, 0x94C7),
]


@pytest.mark.parametrize(("data", "type", "crc"), CRC_VECTORS)
def test_crc_has_the_published_values(data, type, crc):
    message = Message.make(type, data)
    assert message.crc == crc
    assert message.is_intact


def test_bytes_are_data_type_and_crc_low_byte_first():
    message = Message.make(MessageType.RUN, bytes(range(1, 10)))
    frame = message.pack()
    assert frame[:10] == bytes(range(1, 10)) + b"\x88"
    assert frame[10] | frame[11] << 8 == message.crc
    assert Message.unpack(frame) == message


def test_a_changed_bit_breaks_the_message():
    frame = bytearray(Message.make(MessageType.RUN).pack())
    frame[3] ^= 0x10
    assert not Message.unpack(bytes(frame)).is_intact


def test_frame_times_are_those_of_the_reference():
    cycles = pulse_cycles(bytes(12))
    assert cycles[:3] == [0, 2420, 2706]
    assert cycles[3] == 2706 + 2430
    assert cycles[4] - cycles[3] == 282
    assert cycles[4] - cycles[2] == BYTE_CYCLES == 2712
    assert cycles[-1] == LAST_STOP_CYCLE == 34_968
    assert len(cycles) == 26
    assert len(pulse_cycles(b"\xff" * 12)) == 122


def test_data_bits_go_low_bit_first():
    cycles = pulse_cycles(b"\x05" + bytes(11))
    assert cycles[2:6] == [2706, 2706 + BIT_CYCLES, 2706 + 3 * BIT_CYCLES, 2706 + 9 * BIT_CYCLES]


def test_carrier_sense_looks_235_times():
    assert len(SENSE_CYCLES) == 235
    assert (SENSE_CYCLES[0], SENSE_CYCLES[-1]) == (533, 2405)


@given(st.binary(min_size=12, max_size=12), st.floats(0.96, 1.04), st.integers(0, 10**9))
def test_pulses_read_back_at_another_clock(frame, ratio, origin):
    cycles = [origin + round(cycle * ratio) for cycle in pulse_cycles(frame)]
    assert frame_from_pulses(cycles) == frame
    assert frame_from_pulses([*cycles, cycles[-1] + 600]) == frame


def test_what_is_not_a_frame_is_not_read():
    cycles = pulse_cycles(bytes(range(12)))
    assert frame_from_pulses([]) is None
    assert frame_from_pulses(cycles[:-1]) is None
    assert frame_from_pulses(cycles[1:]) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: Message.make(0, bytes(10)),
        lambda: Message.make(256),
        lambda: Message.unpack(bytes(11)),
        lambda: pulse_cycles(bytes(13)),
    ],
)
def test_wrong_sizes_are_refused(call):
    with pytest.raises(UsageError):
        call()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((bytes(8), 0, 0), "message data has 8 bytes, not 9"),
        ((bytes(10), 0, 0), "message data has 10 bytes, not 9"),
        ((bytes(9), 256, 0), "message type 256 is not in 0..255"),
        ((bytes(9), 0, 0x10000), "message crc 65536 is not in 0..65535"),
        ((bytes(9), 0, -1), "message crc -1 is not in 0..65535"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused(fields, words):
    with pytest.raises(UsageError, match=words):
        Message(*fields)
