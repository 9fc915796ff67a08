"""Packets from a PC to the overhead controller, and what the controller sends for each.

A packet is 132 bytes at 38400 baud: 0x55, packet type, 129 bytes of payload, and a checksum that
makes the exclusive or of all bytes zero. The controller turns it into infrared messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import reduce
from operator import xor
from typing import NamedTuple

import numpy as np

from avrswarm.errors import UsageError
from avrswarm.program import Program
from avrswarm.robot.messages import CalibrationMode, Message, MessageType

HEADER = 0x55
PACKET_BYTES = 132
PAYLOAD_BYTES = PACKET_BYTES - 3

PAGE_BYTES = 128
WORDS_PER_PAGE = 64
WORDS_PER_MESSAGE = 3
MESSAGES_PER_PAGE = 22
MAX_PAGES = 220
BOOTLOADER_START = 0x7000

GPS_RECORDS = 16


class PacketType(IntEnum):
    """Second byte of a packet."""

    STOP = 0
    LEDTOGGLE = 1
    FORWARDMSG = 2
    FORWARDRAWMSG = 3
    BOOTPAGE = 4
    GPSFRAME = 5
    FORWARDMSGSINGLE = 6


class Packet(NamedTuple):
    """A packet's type and its 129 payload bytes (bytes 2 to 130)."""

    type: int
    payload: bytes


class Position(NamedTuple):
    """One record of a GPSFRAME."""

    id: int
    x: int
    y: int
    theta: int


def checksum(content: bytes | bytearray) -> int:
    """Exclusive or of all bytes."""
    return reduce(xor, content, 0)


def _field(name: str, value: int, size: int = 1, *, signed: bool = False) -> bytes:
    """Give a number as packets hold it: so many bytes, low byte first."""
    half = 1 << 8 * size - 1
    low, high = (-half, half - 1) if signed else (0, 2 * half - 1)
    if not low <= value <= high:
        raise UsageError(f"{name} {value} is not in {low}..{high}")
    return int(value).to_bytes(size, "little", signed=signed)


def pack(type: int, payload: bytes = b"") -> bytes:
    """132 bytes for the serial line; the payload is filled up with zeros."""
    if len(payload) > PAYLOAD_BYTES:
        raise UsageError(f"packet payload has {len(payload)} bytes, at most {PAYLOAD_BYTES} fit")
    content = bytes([HEADER]) + _field("packet type", type) + payload.ljust(PAYLOAD_BYTES, b"\0")
    return content + bytes([checksum(content)])


def unpack(packet: bytes) -> Packet:
    """Type and payload of a packet whose header and checksum are right."""
    if len(packet) != PACKET_BYTES:
        raise UsageError(f"a packet has {PACKET_BYTES} bytes, not {len(packet)}")
    if packet[0] != HEADER:
        raise UsageError(f"packet begins with 0x{packet[0]:02X}, not 0x{HEADER:02X}")
    if checksum(packet) != 0:
        raise UsageError(
            f"packet checksum is 0x{packet[-1]:02X}, 0x{checksum(packet[:-1]):02X} fits"
        )
    return Packet(packet[1], packet[2:-1])


# ---- the packets ------------------------------------------------------------------------------


def stop() -> bytes:
    """End a repeated message."""
    return pack(PacketType.STOP)


def led_toggle() -> bytes:
    """Toggle the controller's own LED."""
    return pack(PacketType.LEDTOGGLE)


def forward(type: int, data: bytes = b"", *, once: bool = False) -> bytes:
    """Make the controller send a message, again and again until the next packet, or once."""
    message = Message.make(type, data)
    kind = PacketType.FORWARDMSGSINGLE if once else PacketType.FORWARDMSG
    return pack(kind, message.data + bytes([message.type]))


def forward_raw(message: Message) -> bytes:
    """Make the controller send a message with the checksum it has, right or wrong, repeatedly."""
    return pack(PacketType.FORWARDRAWMSG, message.pack())


def boot_page(page: int, content: bytes) -> bytes:
    """Make the controller send one flash page (128 bytes) as 22 messages."""
    return pack(PacketType.BOOTPAGE, _page_payload(page, content))


def _page_payload(page: int, content: bytes) -> bytes:
    if len(content) != PAGE_BYTES:
        raise UsageError(f"a flash page has {PAGE_BYTES} bytes, not {len(content)}")
    return _field("flash page", page) + content


def gps_frame(positions: Iterable[Position]) -> bytes:
    """Make the controller send up to 16 positions, one GPS message each."""
    records = b"".join(
        _field("id", id, 2)
        + _field("x", x, 2, signed=True)
        + _field("y", y, 2, signed=True)
        + _field("theta", theta, signed=True)
        + b"\0"
        for id, x, y, theta in positions
    )
    if len(records) > 8 * GPS_RECORDS:
        raise UsageError(f"a GPS frame holds {GPS_RECORDS} positions, not {len(records) // 8}")
    return pack(PacketType.GPSFRAME, records)


def calibration(
    mode: CalibrationMode,
    *,
    uid: int = 0,
    turn_left: int = 0,
    turn_right: int = 0,
    straight_left: int = 0,
    straight_right: int = 0,
) -> bytes:
    """Calibration command; the robot looks only at the values that belong to the mode."""
    data = (
        _field("mode", mode)
        + _field("uid", uid, 2)
        + _field("turn_left", turn_left)
        + _field("turn_right", turn_right)
        + _field("straight_left", straight_left)
        + _field("straight_right", straight_right)
    )
    return forward(MessageType.CALIB, data)


# ---- upload -------------------------------------------------------------------------------------


def application_image(program: Program) -> bytes:
    """Bytes of the application: everything below the bootloader, zeros where nothing was given."""
    given = np.flatnonzero(program.programmed[: BOOTLOADER_START // 2])
    if given.size == 0:
        raise UsageError("the program has nothing below the bootloader to upload")
    words = np.where(program.programmed, program.flash, 0)[: given[-1] + 1]
    return words.astype("<u2").tobytes()


def page_total(image: bytes) -> int:
    """Tell how many pages the upload announces: full pages and one more, at most 220."""
    return min(len(image) // PAGE_BYTES + 1, MAX_PAGES)


def upload(image: bytes) -> list[bytes]:
    """One pass of an upload: the size, then every page. The PC repeats it until it is stopped."""
    if len(image) > MAX_PAGES * PAGE_BYTES:
        raise UsageError(
            f"the program has {len(image)} bytes, an upload takes {MAX_PAGES * PAGE_BYTES}"
        )
    total = page_total(image)
    padded = image.ljust(total * PAGE_BYTES, b"\0")
    pages = [padded[i * PAGE_BYTES : (i + 1) * PAGE_BYTES] for i in range(total)]
    size = forward(MessageType.BOOTPGM_SIZE, bytes([total]))
    return [size, *(boot_page(i, page) for i, page in enumerate(pages))]


# ---- the controller's side ----------------------------------------------------------------------


def page_messages(page: int, content: bytes) -> list[Message]:
    """Give the 22 messages of a page: page number, word offset, three words (in the last one)."""
    payload = _page_payload(page, content)
    padded = payload[1:].ljust(2 * WORDS_PER_MESSAGE * MESSAGES_PER_PAGE, b"\0")
    return [
        Message.make(
            MessageType.BOOTPGM_PAGE,
            payload[:1] + bytes([offset]) + padded[2 * offset : 2 * offset + 6],
        )
        for offset in range(0, WORDS_PER_PAGE, WORDS_PER_MESSAGE)
    ]


def messages(packet: Packet) -> list[Message]:
    """Tell what the controller sends for a packet (FORWARDMSG and FORWARDRAWMSG repeat it)."""
    payload = packet.payload
    match packet.type:
        case PacketType.FORWARDMSG | PacketType.FORWARDMSGSINGLE:
            return [Message.make(payload[9], payload[:9])]
        case PacketType.FORWARDRAWMSG:
            return [Message.unpack(payload[:12])]
        case PacketType.BOOTPAGE:
            return page_messages(payload[0], payload[1:129])
        case PacketType.GPSFRAME:
            return [Message.make(MessageType.GPS, record) for record in _records(payload)]
        case _:
            return []


def _records(payload: bytes) -> Iterator[bytes]:
    """GPS records up to the first that is all zero."""
    for i in range(GPS_RECORDS):
        record = payload[8 * i : 8 * i + 8]
        if not any(record):
            return
        yield record


class PacketReader:
    """Finds packets in a stream of bytes, as the controller does.

    The last 132 bytes are a packet when the oldest is the header and their exclusive or is zero, so
    the reader falls into step by itself after lost or extra bytes.
    """

    def __init__(self) -> None:
        self._window = bytearray()

    def feed(self, content: bytes) -> list[Packet]:
        """Take bytes; give the packets that end in them."""
        found = []
        for byte in content:
            self._window.append(byte)
            del self._window[:-PACKET_BYTES]
            if (
                len(self._window) == PACKET_BYTES
                and self._window[0] == HEADER
                and checksum(self._window) == 0
            ):
                found.append(unpack(bytes(self._window)))
                self._window.clear()
        return found
