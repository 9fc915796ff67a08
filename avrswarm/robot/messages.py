"""Infrared messages: twelve bytes, their checksum, and the light pulses they become.

A message is data[0..8], type, CRC (low byte first). On the air a one is a light pulse and a zero is
none. A frame begins with a leading byte (two pulses only; between them the sender listens), then
twelve bytes follow, each of a start bit, eight data bits low bit first, and a stop bit. Times here
are cycles of the transmitter's own clock, counted from the rising edge of the first pulse.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from avrswarm.errors import UsageError

DATA_BYTES = 9
MESSAGE_BYTES = 12

PULSE_CYCLES = 9
BIT_CYCLES = 270
BYTE_CYCLES = 2712
LEADING_GAP_CYCLES = 2420
FIRST_BYTE_CYCLE = 2706
LAST_STOP_CYCLE = FIRST_BYTE_CYCLE + (MESSAGE_BYTES - 1) * BYTE_CYCLES + 9 * BIT_CYCLES
FRAME_CYCLES = LAST_STOP_CYCLE + PULSE_CYCLES

# Carrier sense: the sender looks at its comparator in these cycles (start, end, step).
SENSE_CYCLES = range(533, 2406, 8)

# Half a slot: a pulse is taken for a bit if it is at most this far from the bit's time.
SLOT_TOLERANCE_CYCLES = BIT_CYCLES // 2


class MessageType(IntEnum):
    """Types with a meaning to the library; 0x00-0x7F go to the user's callback."""

    NORMAL = 0x00
    GPS = 0x01
    BOOT = 0x80
    BOOTPGM_PAGE = 0x81
    BOOTPGM_SIZE = 0x82
    RESET = 0x83
    SLEEP = 0x84
    WAKEUP = 0x85
    CHARGE = 0x86
    VOLTAGE = 0x87
    RUN = 0x88
    READUID = 0x89
    CALIB = 0x8A


class CalibrationMode(IntEnum):
    """First data byte of a CALIB message."""

    SAVE = 0
    UID = 1
    TURN_LEFT = 2
    TURN_RIGHT = 3
    STRAIGHT = 4


def crc16(content: bytes) -> int:
    """CRC-16 with polynomial 0x8408 (reflected), start 0xFFFF, no final inversion."""
    crc = 0xFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x8408 if crc & 1 else 0)
    return crc


@dataclass(frozen=True)
class Message:
    """One message as it is on the air.

    Attributes
    ----------
    data
        Nine bytes.
    type
        0..255, see ``MessageType``.
    crc
        As received or to be sent; ``is_intact`` tells whether it fits.
    """

    data: bytes
    type: int
    crc: int

    def __post_init__(self) -> None:
        if len(self.data) != DATA_BYTES:
            raise UsageError(f"message data has {len(self.data)} bytes, not {DATA_BYTES}")
        _check("message type", self.type, 0xFF)
        _check("message crc", self.crc, 0xFFFF)

    @classmethod
    def make(cls, type: int, data: bytes = b"") -> Message:
        """Message with its checksum; ``data`` is filled up with zeros."""
        if len(data) > DATA_BYTES:
            raise UsageError(f"message data has {len(data)} bytes, at most {DATA_BYTES} fit")
        _check("message type", type, 0xFF)
        data = bytes(data).ljust(DATA_BYTES, b"\0")
        return cls(data, int(type), crc16(data + bytes([type])))

    @classmethod
    def unpack(cls, frame: bytes) -> Message:
        """Message from its twelve bytes; the checksum is taken as it is."""
        if len(frame) != MESSAGE_BYTES:
            raise UsageError(f"a message has {MESSAGE_BYTES} bytes, not {len(frame)}")
        return cls(bytes(frame[:9]), frame[9], frame[10] | frame[11] << 8)

    def pack(self) -> bytes:
        """Twelve bytes in air order."""
        return self.data + bytes([self.type, self.crc & 0xFF, self.crc >> 8])

    @property
    def is_intact(self) -> bool:
        """Whether a receiver accepts it."""
        return crc16(self.data + bytes([self.type])) == self.crc


def pulse_cycles(frame: bytes) -> list[int]:
    """Rising edges of all pulses of a frame; each pulse is ``PULSE_CYCLES`` long."""
    if len(frame) != MESSAGE_BYTES:
        raise UsageError(f"a message has {MESSAGE_BYTES} bytes, not {len(frame)}")
    cycles = [0, LEADING_GAP_CYCLES]
    for n, byte in enumerate(frame):
        slots = 1 | byte << 1 | 1 << 9
        start = FIRST_BYTE_CYCLE + BYTE_CYCLES * n
        cycles += [start + BIT_CYCLES * slot for slot in range(10) if slots >> slot & 1]
    return cycles


def frame_from_pulses(cycles: Sequence[int]) -> bytes | None:
    """Twelve bytes from the rising edges of one frame, or None if they do not make a frame.

    For looking at what a transmitter sent, undisturbed; a receiver is what its firmware does.
    ``cycles`` may start anywhere and may have more pulses after the frame. Each byte is timed
    from its own start bit, as receivers do.
    """
    if len(cycles) < 2 or not _near(cycles[1] - cycles[0], LEADING_GAP_CYCLES):
        return None
    frame = bytearray()
    at = 2
    for _ in range(MESSAGE_BYTES):
        if at >= len(cycles):
            return None
        start = cycles[at]
        end = bisect_left(cycles, start + BIT_CYCLES * 9 + SLOT_TOLERANCE_CYCLES, at)
        slots = 0
        for cycle in cycles[at:end]:
            slots |= 1 << (cycle - start + SLOT_TOLERANCE_CYCLES) // BIT_CYCLES
        if not slots >> 9 & 1:
            return None
        frame.append(slots >> 1 & 0xFF)
        at = end
    return bytes(frame)


def _check(name: str, value: int, largest: int) -> None:
    if not 0 <= value <= largest:
        raise UsageError(f"{name} {value} is not in 0..{largest}")


def _near(cycles: int, expected: int) -> bool:
    return abs(cycles - expected) <= SLOT_TOLERANCE_CYCLES
