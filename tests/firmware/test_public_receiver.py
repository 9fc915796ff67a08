"""What we send, as the public library's receiver sees it (hardware reference, 4.3)."""

import random

import pytest

from avrswarm.robot.messages import Message, MessageType

from .bench import TICK, Robot


def decode(pulses, late=0):
    """Frame that the rules of 4.3 find in these cycles of the receiver's clock, None without one.

    ``late``: by how much the interrupt of a bit comes later than that of its start bit.
    """
    frame, start, value = bytearray(), 0, 0
    expect_start = leading = True
    for pulse in pulses:
        t = pulse - start - 16 + late
        if t >= 2959:  # timer 1 has given up meanwhile
            expect_start = leading = True
        if expect_start:
            start, value, expect_start = pulse, 0, False
        elif t <= 134 or t >= 2555:  # stray
            expect_start = leading = True
        elif (index := (t - 134) * 244 >> 16) < 8:
            value |= 1 << index
        elif leading:
            expect_start, leading, frame = True, value != 0, bytearray()
        else:
            expect_start = True
            frame.append(value)
            if len(frame) == 12:
                return bytes(frame)
    return None


def frames():
    draw = random.Random(43)
    yield from (Message.make(0), Message.make(0x7F, b"\xff" * 9), Message.make(0x55, b"\xaa" * 9))
    yield from (Message.make(draw.randrange(0x80), draw.randbytes(9)) for _ in range(25))


@pytest.fixture(scope="module")
def sent():
    """Frames and the cycles of their pulses on the pin."""
    robot = Robot("speaker").obey(MessageType.RUN)
    start = robot.program.symbols.find("message").address
    snapshot = robot.chip.snapshot()
    result = []
    for message in frames():
        robot.chip.restore(snapshot)
        for i, byte in enumerate(message.pack()):
            robot.chip.poke(start + i, byte)
        robot.run(18 * TICK)
        first = robot.edges("PB0")[0]
        pulses = [cycle - first for cycle in robot.edges("PB0") if cycle < first + 36_000]
        result.append((message.pack(), pulses))
    return result


@pytest.mark.parametrize("late", [-4, 0, 4])
@pytest.mark.parametrize("ratio", [0.953, 0.96, 0.97, 0.98, 0.99, 1, 1.01, 1.02, 1.03, 1.04, 1.053])
def test_the_public_library_understands_every_frame(sent, ratio, late):
    for frame, pulses in sent:
        assert decode([round(cycle * ratio) for cycle in pulses], late) == frame


@pytest.mark.parametrize("ratio", [0.94, 1.065])
def test_the_model_can_fail(sent, ratio):
    decoded = [decode([round(cycle * ratio) for cycle in pulses]) for _, pulses in sent]
    assert all(found != frame for found, (frame, _) in zip(decoded, sent, strict=True))
