"""Ring buffers on the callbacks (hardware reference, 13): 16 in, 4 out, the oldest gives way."""

import pytest

from avrswarm.robot.messages import Message, MessageType

from .bench import MS, TICK, Robot, compiled

pytestmark = pytest.mark.needs_avr_gcc

BUFFERED_PROGRAM = r"""
#include <kilolib.h>
#include <message_buffered.h>

uint8_t take, give;
uint8_t taken[32], given;
int16_t high_gain;

void setup(void) {}

void loop(void) {
    message_t message = {{0}, NORMAL, 0};
    distance_measurement_t distance;
    if (take && buffered_receive(&message, &distance)) {
        taken[taken[0] + 1] = message.data[0];
        taken[0]++;
        high_gain = distance.high_gain;
    }
    while (given < give) {
        message.data[0] = ++given;
        buffered_send(&message);
    }
}

int main(void) {
    kilo_init();
    kilo_tx_period = 0;
    buffered_init();
    kilo_start(setup, loop);
    return 0;
}
"""


@pytest.fixture(scope="module")
def buffered_program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("buffered"), BUFFERED_PROGRAM)


@pytest.fixture
def buffered(buffered_program):
    return Robot(buffered_program).obey(MessageType.RUN)


def tell(robot, numbers):
    for number in numbers:
        end = robot.hear(Message.make(MessageType.NORMAL, bytes([number])))
        robot.run(end - robot.cycle + 1000)


def put(robot, name, value):
    robot.chip.poke(robot.program.symbols.find(name).address, value)


def taken(robot):
    count, *numbers = robot.bytes("taken", 32)
    return numbers[:count]


def test_buffered_messages_come_in_order_with_their_amplitudes(buffered):
    put(buffered, "take", 1)
    assert taken(buffered) == []
    buffered.set_counts(high_gain=812)
    tell(buffered, [1, 2])
    assert taken(buffered) == [1, 2]
    assert buffered.value("high_gain", 2) == 812
    put(buffered, "take", 0)
    tell(buffered, range(3, 19))
    put(buffered, "take", 1)
    assert taken(buffered.run(1 * MS)) == list(range(1, 19))


def test_the_oldest_of_too_many_messages_gives_way(buffered):
    tell(buffered, range(1, 21))
    put(buffered, "take", 1)
    assert taken(buffered.run(1 * MS)) == list(range(5, 21))
    tell(buffered, [99])
    assert taken(buffered)[-1] == 99


def test_a_message_that_gives_way_while_it_is_copied_is_not_taken(buffered):
    """The ring is full and another message ends at every place of the copying."""
    tell(buffered, range(1, 17))
    snapshot = buffered.chip.snapshot()
    for shift in range(0, 400, 7):
        buffered.chip.restore(snapshot)
        end = buffered.hear(Message.make(MessageType.NORMAL, b"\x11"))
        buffered.run(end - buffered.cycle + 60 - shift)
        put(buffered, "take", 1)
        numbers = taken(buffered.run(1 * MS))
        assert numbers in (list(range(1, 18)), list(range(2, 18))), shift


def sent_numbers(robot):
    return [Message.unpack(frame).data[0] for _, frame in robot.frames()]


def test_buffered_messages_go_out_once_each_in_order(buffered):
    put(buffered, "give", 3)
    buffered.run(8 * TICK)
    assert sent_numbers(buffered) == [1, 2, 3]
    assert all(Message.unpack(frame).is_intact for _, frame in buffered.frames())
    put(buffered, "give", 4)
    assert sent_numbers(buffered.run(4 * TICK)) == [1, 2, 3, 4]


def test_the_oldest_of_too_many_to_send_gives_way(buffered):
    put(buffered, "give", 6)
    assert sent_numbers(buffered.run(10 * TICK)) == [3, 4, 5, 6]


def test_a_message_that_met_a_collision_is_sent_again(buffered):
    put(buffered, "give", 1)
    snapshot = buffered.chip.snapshot()
    start, _ = buffered.run(2 * TICK).frames()[0]
    buffered.chip.restore(snapshot)
    buffered.light([start + 1000])
    frames = buffered.run(6 * TICK).frames()
    assert frames[0] == (start, None)
    assert [frame is not None for _, frame in frames[1:]] == [True]
