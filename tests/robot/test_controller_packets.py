"""Controller packets against section 8 of the hardware reference."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.errors import UsageError
from avrswarm.program import Program
from avrswarm.robot import controller_packets as cp
from avrswarm.robot.messages import CalibrationMode, Message, MessageType

CHECKSUMS = [
    (MessageType.BOOT, 0xD7),
    (MessageType.RESET, 0xD4),
    (MessageType.SLEEP, 0xD3),
    (MessageType.WAKEUP, 0xD2),
    (MessageType.VOLTAGE, 0xD0),
    (MessageType.RUN, 0xDF),
    (MessageType.CHARGE, 0xD1),
]


@pytest.mark.parametrize(("type", "checksum"), CHECKSUMS)
def test_commands_have_the_published_checksums(type, checksum):
    packet = cp.forward(type)
    assert len(packet) == 132
    assert (packet[0], packet[1], packet[11], packet[131]) == (0x55, 2, type, checksum)
    assert sum(packet) == 0x55 + 2 + type + checksum


def test_packets_without_payload():
    assert cp.led_toggle()[131] == 0x54
    assert cp.stop()[131] == 0x55


def test_size_packet_of_an_upload():
    packet = cp.upload(bytes(7400))[0]
    assert (packet[1], packet[2], packet[11]) == (2, 58, 0x82)
    assert packet[131] == 0x55 ^ 2 ^ 58 ^ 0x82
    assert len(cp.upload(bytes(7400))) == 59


@pytest.mark.parametrize(("size", "pages"), [(1, 1), (127, 1), (128, 2), (7400, 58), (28160, 220)])
def test_page_total_has_one_page_too_many_for_exact_multiples(size, pages):
    assert cp.page_total(bytes(size)) == pages


def test_pages_carry_the_image_and_zeros_behind_it():
    image = bytes(range(1, 200))
    _, first, second = cp.upload(image)
    assert cp.unpack(first).payload == b"\0" + image[:128]
    assert cp.unpack(second).payload == b"\1" + image[128:].ljust(128, b"\0")


def test_page_messages_cover_the_page():
    page = bytes(range(128))
    messages = cp.page_messages(7, page)
    assert len(messages) == 22
    assert [m.data[1] for m in messages] == list(range(0, 64, 3))
    assert {m.data[0] for m in messages} == {7}
    assert b"".join(m.data[2:8] for m in messages)[:128] == page
    assert cp.messages(cp.unpack(cp.boot_page(7, page))) == messages


def test_calibration_fields():
    payload = cp.unpack(
        cp.calibration(CalibrationMode.STRAIGHT, straight_left=65, straight_right=62)
    ).payload
    assert payload[:10] == bytes([4, 0, 0, 0, 0, 65, 62, 0, 0, 0x8A])
    payload = cp.unpack(cp.calibration(CalibrationMode.UID, uid=0x1234)).payload
    assert payload[:3] == bytes([1, 0x34, 0x12])


def test_gps_frame_ends_at_a_zero_record():
    packet = cp.unpack(cp.gps_frame([cp.Position(3, -100, 250, -5), cp.Position(4, 1, 2, 3)]))
    messages = cp.messages(packet)
    assert [m.type for m in messages] == [MessageType.GPS] * 2
    assert messages[0].data == bytes([3, 0, 0x9C, 0xFF, 250, 0, 0xFB, 0, 0])


def test_raw_messages_keep_their_checksum():
    broken = Message(bytes(9), 0x88, 0x1234)
    assert cp.messages(cp.unpack(cp.forward_raw(broken))) == [broken]


def test_single_and_repeated_messages_differ_in_type_only():
    once, again = cp.forward(0x88, once=True), cp.forward(0x88)
    assert (once[1], again[1]) == (6, 2)
    assert cp.messages(cp.unpack(once)) == cp.messages(cp.unpack(again)) == [Message.make(0x88)]


def test_application_image_leaves_the_bootloader_out():
    program = Program.from_words([0x1234, 0xABCD])
    assert cp.application_image(program) == b"\x34\x12\xcd\xab"


@given(st.binary(max_size=300), st.integers(0, 6), st.binary(max_size=129))
def test_reader_falls_into_step(noise, type, payload):
    packet = cp.pack(type, payload)
    reader = cp.PacketReader()
    reader.feed(noise)
    found = reader.feed(packet * 3)
    assert found[-1] == cp.Packet(type, payload.ljust(129, b"\0"))


def test_a_damaged_packet_is_refused():
    packet = bytearray(cp.forward(0x88))
    packet[20] ^= 1
    with pytest.raises(UsageError, match="checksum"):
        cp.unpack(bytes(packet))
    assert cp.PacketReader().feed(bytes(packet)) == []


OUT_OF_RANGE = [
    (lambda: cp.pack(256), "packet type 256 is not in 0..255"),
    (lambda: cp.pack(-1), "packet type -1 is not in 0..255"),
    (lambda: cp.forward(256), "message type 256 is not in 0..255"),
    (lambda: cp.boot_page(256, bytes(128)), "flash page 256 is not in 0..255"),
    (lambda: cp.page_messages(-1, bytes(128)), "flash page -1 is not in 0..255"),
    (lambda: cp.page_messages(0, bytes(129)), "a flash page has 128 bytes, not 129"),
    (lambda: cp.gps_frame([cp.Position(65536, 0, 0, 0)]), "id 65536 is not in 0..65535"),
    (lambda: cp.gps_frame([cp.Position(1, -32769, 0, 0)]), "x -32769 is not in -32768..32767"),
    (lambda: cp.gps_frame([cp.Position(1, 0, 32768, 0)]), "y 32768 is not in -32768..32767"),
    (lambda: cp.gps_frame([cp.Position(1, 0, 0, 180)]), "theta 180 is not in -128..127"),
    (lambda: cp.calibration(CalibrationMode.UID, uid=-1), "uid -1 is not in 0..65535"),
    (lambda: cp.calibration(CalibrationMode.UID, uid=65536), "uid 65536 is not in 0..65535"),
    *(
        (
            lambda name=name: cp.calibration(CalibrationMode.SAVE, **{name: 256}),
            f"{name} 256 is not",
        )
        for name in ("turn_left", "turn_right", "straight_left", "straight_right")
    ),
    (lambda: cp.calibration(300), "mode 300 is not in 0..255"),
]


@pytest.mark.parametrize(("make", "words"), OUT_OF_RANGE, ids=[words for _, words in OUT_OF_RANGE])
def test_values_that_do_not_fit_are_named_with_their_range(make, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        make()


def test_the_ends_of_every_range_fit():
    positions = [cp.Position(0, -32768, 32767, -128), cp.Position(65535, 32767, -32768, 127)]
    payload = cp.unpack(cp.gps_frame(positions)).payload
    assert payload[:8] == bytes([0, 0, 0, 0x80, 0xFF, 0x7F, 0x80, 0])
    assert payload[8:16] == bytes([0xFF, 0xFF, 0xFF, 0x7F, 0, 0x80, 0x7F, 0])
    packet = cp.calibration(CalibrationMode.STRAIGHT, uid=65535, straight_left=255)
    assert cp.unpack(packet).payload[:7] == bytes([4, 255, 255, 0, 0, 255, 0])
