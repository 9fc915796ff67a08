"""Messages rebuilt from pulses, as an onlooker with perfect attention sees them.

What a robot says and hears is decided by its firmware. For records and pictures we look at the same
pulses a second time. ``speak`` turns the pulses of one LED into frames, ``hear`` the edges of one
comparator into messages, by the receiver rules of the hardware reference (4.3), but never too late
for an interrupt. A message that ``hear`` gets and the firmware does not was lost in the firmware,
not on the way.

Each robot has one row of each kind; rows hold all state, so a copy of them is a snapshot. Times are
cycles of the chip whose pulses or edges these are.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.state import record_dtype
from avrswarm.jit import kernel
from avrswarm.robot.messages import MESSAGE_BYTES

TIMER_LAG = 16
"""A receiver's timer shows this much less than the cycles between two edges."""

FIRST_SLOT = 134
"""A bit is later than this by the receiver's timer; anything earlier is a stray pulse."""

SLOT_FACTOR = 244
STOP_SLOT = 8
"""Bit number = ((t - FIRST_SLOT) * SLOT_FACTOR) >> 16, slots of 268.6 cycles; 8 is the stop bit."""

STOP_FROM = 2283 + 4
STOP_BEFORE = 2555 - 5
"""A stop bit, by the receiver's timer. Real timers show up to 4 or 5 cycles less or more than the
nominal value, because interrupts wait for the end of an instruction. Bits have wide margins, but
stop bits decide between which clocks a message passes: what depends on luck does not count here, so
that 0.952 to 1.054 is the range, as measured (hardware reference, section 1)."""

TIMEOUT = 2959
"""By the receiver's timer, after a start bit."""

SILENCE_CYCLES = 3000
"""An incomplete frame is over after so much silence; within a frame there are at most 2519."""

NOTHING = 0
FRAME = 1  # speak: all twelve bytes were sent
BROKEN = 2  # speak, speaker_timeout: a frame ended before its time, or was none
MESSAGE = 1  # hear: twelve bytes with the right checksum
BAD_CRC = 2  # hear: twelve bytes with a wrong one


class SpeakerRow:
    """A transmitter; ``start``, ``end``, ``pulses``, ``message`` are of the last frame reported."""

    start: int  # rising edge of the first pulse
    end: int  # rising edge of the last pulse
    pulses: int
    first: int  # the same for the frame being sent
    last: int
    count: int  # 0 = not sending
    garbled: int  # 1: the pulses do not make a frame; wait for silence
    expects_start: int  # 1: the next pulse is a start bit
    byte_start: int
    byte_value: int
    byte_index: int  # -1 = leading byte
    message: Annotated[NDArray[np.uint8], (MESSAGE_BYTES,)]
    content: Annotated[NDArray[np.uint8], (MESSAGE_BYTES,)]  # of the frame being sent


class ListenerRow:
    """A receiver; ``message``, the gains and ``start`` are of the message reported last."""

    high_gain: int  # counts, at the first pulse
    low_gain: int  # counts, at the second pulse
    start: int  # edge of the first pulse
    awaiting: int  # 1: between messages, the next pulse begins a leading byte
    expects_start: int  # 1: the next pulse is a start bit
    byte_start: int
    byte_value: int
    byte_index: int  # -1 = leading byte
    deaf_until: int  # edges before this cycle are not heard
    first: int  # the same as start and the gains, for the message being received
    first_high_gain: int
    second_low_gain: int
    message: Annotated[NDArray[np.uint8], (MESSAGE_BYTES,)]
    content: Annotated[NDArray[np.uint8], (MESSAGE_BYTES,)]  # of the message being received


SPEAKER_DTYPE = record_dtype(SpeakerRow)
LISTENER_DTYPE = record_dtype(ListenerRow)

Speakers = np.recarray[Any, Any]
Listeners = np.recarray[Any, Any]


def allocate_speakers(count: int) -> Speakers:
    """Return the rows of ``count`` silent transmitters."""
    return np.zeros(count, SPEAKER_DTYPE).view(np.recarray)


def allocate_listeners(count: int) -> Listeners:
    """Return the rows of ``count`` receivers that have heard nothing yet."""
    listeners = np.zeros(count, LISTENER_DTYPE).view(np.recarray)
    listeners.awaiting = 1
    listeners.expects_start = 1
    return listeners


@kernel
def slot_of(elapsed: int) -> int:
    """Return which bit is so many cycles after a start bit: 0 to 7, 8 = stop bit, -1 = none."""
    t = elapsed - TIMER_LAG
    if t <= FIRST_SLOT or t >= STOP_BEFORE:
        return -1
    if t >= STOP_FROM:
        return STOP_SLOT
    return min(((t - FIRST_SLOT) * SLOT_FACTOR) >> 16, STOP_SLOT - 1)


@kernel
def is_intact(content: NDArray[np.uint8]) -> bool:
    """Tell whether the last two of twelve bytes are the checksum of the others."""
    crc = 0xFFFF
    for k in range(MESSAGE_BYTES - 2):
        crc ^= int(content[k])
        for _ in range(8):
            crc = (crc >> 1) ^ 0x8408 if crc & 1 else crc >> 1
    return crc == int(content[MESSAGE_BYTES - 2]) | int(content[MESSAGE_BYTES - 1]) << 8


# ---- transmitters ----------------------------------------------------------------------------


@kernel
def speak(s: SpeakerRow, cycle: int) -> int:
    """Take the rising edge of a pulse; return NOTHING, FRAME, or BROKEN for the frame before."""
    result = speaker_timeout(s, cycle)
    s.last = cycle
    s.count += 1
    if s.count == 1:
        s.first = cycle
        s.garbled = 0
        s.byte_index = -1
        _begin_sent_byte(s, cycle)
        return result
    if s.garbled:
        return NOTHING
    if s.expects_start:
        _begin_sent_byte(s, cycle)
        return NOTHING
    slot = slot_of(cycle - s.byte_start)
    if slot < 0:
        s.garbled = 1
    elif slot < STOP_SLOT:
        s.byte_value |= 1 << slot
    elif s.byte_index < 0 and s.byte_value != 0:
        s.garbled = 1
    else:
        if s.byte_index >= 0:
            s.content[s.byte_index] = s.byte_value
        s.byte_index += 1
        s.expects_start = 1
        if s.byte_index == MESSAGE_BYTES:
            _report_sent(s)
            return FRAME
    return NOTHING


@kernel
def speaker_timeout(s: SpeakerRow, cycle: int) -> int:
    """Return BROKEN if a frame ended before its time, as known at this cycle, otherwise NOTHING."""
    if s.count == 0 or cycle - s.last <= SILENCE_CYCLES:
        return NOTHING
    _report_sent(s)
    return BROKEN


@kernel
def _begin_sent_byte(s: SpeakerRow, cycle: int) -> None:
    s.expects_start = 0
    s.byte_start = cycle
    s.byte_value = 0


@kernel
def _report_sent(s: SpeakerRow) -> None:
    """Make the frame being sent the reported one; bytes that were not sent are 0."""
    s.start = s.first
    s.end = s.last
    s.pulses = s.count
    sent = 0 if s.garbled else s.byte_index
    for k in range(MESSAGE_BYTES):
        s.message[k] = s.content[k] if k < sent else 0
    s.count = 0


# ---- receivers -------------------------------------------------------------------------------


@kernel
def hear(l: ListenerRow, cycle: int, low_counts: int, high_counts: int) -> int:  # noqa: E741
    """Take a rising edge of the comparator; return NOTHING, MESSAGE or BAD_CRC.

    ``low_counts`` and ``high_counts`` are what the two gains would show for this pulse.
    """
    if cycle < l.deaf_until:
        return NOTHING
    if not l.awaiting and cycle - l.byte_start - TIMER_LAG >= TIMEOUT:
        _await_message(l)
    if l.expects_start:
        l.expects_start = 0
        l.byte_start = cycle
        l.byte_value = 0
        if l.awaiting:
            l.awaiting = 0
            l.byte_index = -1
            l.first = cycle
            l.first_high_gain = high_counts
        return NOTHING
    slot = slot_of(cycle - l.byte_start)
    if slot < 0:
        _await_message(l)
    elif slot < STOP_SLOT:
        l.byte_value |= 1 << slot
    elif l.byte_index < 0:
        l.second_low_gain = low_counts
        l.byte_index = 0
        l.expects_start = 1
        if l.byte_value != 0:
            _await_message(l)
    else:
        l.content[l.byte_index] = l.byte_value
        l.byte_index += 1
        l.expects_start = 1
        if l.byte_index == MESSAGE_BYTES:
            return _report_heard(l)
    return NOTHING


@kernel
def deafen(l: ListenerRow, until_cycle: int) -> None:  # noqa: E741
    """Hear nothing before ``until_cycle``, because the robot transmits; drop what was begun.

    Telling it the same again does nothing, so it may be told at every edge.
    """
    if until_cycle > l.deaf_until:
        l.deaf_until = until_cycle
        _await_message(l)


@kernel
def _report_heard(l: ListenerRow) -> int:  # noqa: E741
    _await_message(l)
    l.start = l.first
    l.high_gain = l.first_high_gain
    l.low_gain = l.second_low_gain
    for k in range(MESSAGE_BYTES):
        l.message[k] = l.content[k]
    return MESSAGE if is_intact(l.content) else BAD_CRC


@kernel
def _await_message(l: ListenerRow) -> None:  # noqa: E741
    l.awaiting = 1
    l.expects_start = 1
