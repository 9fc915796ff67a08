"""Programs written for the public library: compiled as they are, and run on the chip."""

import itertools

import pytest

from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.robot.messages import CalibrationMode, Message, MessageType

from .bench import MS, RUNNING, TICK, Robot, compiled

pytestmark = pytest.mark.needs_avr_gcc

LAB_PROGRAM = r"""
#include <avr/io.h>
#include <kilolib.h>
#ifdef WITH_DEBUG
#define DEBUG
#endif
#include <debug.h>

#define STOP 0
#define LEFT 1

int last_light = 0;
int temperature = 0;
message_t message;
int message_sent = 0;
int new_message = 0;
distance_measurement_t distance;
uint32_t last_motion_ticks = 0;

void set_motion(int new_motion) {
    if (new_motion == STOP) {
        set_motors(0, 0);
    } else {
        spinup_motors();
        set_motors(kilo_turn_left, kilo_turn_right);
    }
}

message_t *message_tx() { return message_sent ? 0 : &message; }
void message_tx_success() { message_sent = 1; }
void message_rx(message_t *m, distance_measurement_t *d) {
    if (m->type == NORMAL && m->data[0] == 7) new_message = 1;
    distance = *d;
}

void setup() {
    message.type = NORMAL;
    message.data[0] = kilo_uid;
    message.crc = message_crc(&message);
    rand_seed(rand_hard());
    temperature = get_temperature();
    kilo_tx_period = 500;
    last_motion_ticks = kilo_ticks + 2 * TICKS_PER_SEC + rand_soft() % 8;
}

void loop() {
    if (new_message) {
        new_message = 0;
        int d = estimate_distance(&distance);
        set_color(RGB(d < 50, d > 50 ? 3 : 0, 0));
        printf("%d %d %d\n", d, distance.low_gain, distance.high_gain);
        set_motion(d < 50 ? STOP : LEFT);
        set_motors(kilo_straight_left, kilo_straight_right);
        delay(200);
    }
    last_light = get_ambientlight() + get_voltage();
}

int main() {
    kilo_init();
    debug_init();
    kilo_message_rx = message_rx;
    kilo_message_tx = message_tx;
    kilo_message_tx_success = message_tx_success;
    kilo_start(setup, loop);
    return 0;
}
"""

BIT_CYCLES = 208  # 8 MHz / 38 462 baud


def running(program, uid=0x2A):
    robot = Robot(program, EepromMap(uid=uid))
    robot.chip.watch_pins("PD1")
    return robot.obey(MessageType.RUN).run(100 * MS)


@pytest.fixture(params=[".c", ".cpp"], ids=["C", "C++"])
def suffix(request):
    return request.param


@pytest.mark.parametrize("debug", [True, False], ids=["debug", "no debug"])
def test_an_existing_program_compiles_unchanged_and_does_what_it_says(tmp_path, debug, suffix):
    """Every name of the public library, used the way programs use it."""
    flags = ["-Wno-extra", *(["-DWITH_DEBUG"] if debug else [])]
    robot = running(compiled(tmp_path, LAB_PROGRAM, *flags, suffix=suffix))
    assert robot.state == RUNNING
    (_, frame), *more = robot.run(10 * TICK).frames()
    assert frame == Message.make(MessageType.NORMAL, b"\x2a").pack()
    assert more == []  # message_tx_success was called, so nothing else goes out
    assert robot.value("last_light", 2) == 100 + 700

    robot.set_counts(low_gain=176, high_gain=800)  # 70 mm
    end = robot.hear(Message.make(MessageType.NORMAL, b"\x08"))
    robot.run(end - robot.cycle + 30 * MS)
    assert robot.led == (0, 0, 0)  # not a message for this program
    end = robot.hear(Message.make(MessageType.NORMAL, b"\x07"))
    robot.run(end - robot.cycle + 30 * MS)
    assert robot.led == (0, 3, 0)
    assert robot.motors == (65, 62)
    assert robot.chip.uart == (b"70 176 800\n" if debug else b"")


def test_serial_debug_is_38400_8n1_on_pd1(tmp_path):
    robot = running(compiled(tmp_path, LAB_PROGRAM, "-Wno-extra", "-DWITH_DEBUG"))
    assert robot.chip.read("UBRR0L") | robot.chip.read("UBRR0H") << 8 == 12
    assert robot.chip.read("UCSR0C") == 6  # 8 bits, no parity, one stop bit
    assert robot.chip.read("UCSR0A") & 2 == 0  # not double speed
    assert robot.chip.read("UCSR0B") == 8  # transmitter only, no interrupts
    assert robot.chip.pin("PD1") == 1
    robot.set_counts(low_gain=176, high_gain=800)
    end = robot.hear(Message.make(MessageType.NORMAL, b"\x07"))
    robot.run(end - robot.cycle + 30 * MS)

    changes = [(cycle, 1) for cycle in robot.edges("PD1", 1)]
    changes += [(cycle, 0) for cycle in robot.edges("PD1", 0)]
    changes = sorted(change for change in changes if change[0] > end)
    gaps = [b - a for (a, _), (b, _) in itertools.pairwise(changes)]
    assert min(gaps) == BIT_CYCLES
    assert all(gap % BIT_CYCLES == 0 for gap in gaps if gap < 10 * BIT_CYCLES)
    assert serial_text(changes) == b"70 176 800\n"


def serial_text(changes):
    """Bytes on a line that idles high: start bit, eight bits low first, stop bit."""
    level = lambda cycle: [1, *(l for c, l in changes if c <= cycle)][-1]  # noqa: E731, E741
    text, cycle = bytearray(), 0
    for fall in (c for c, l in changes if l == 0):  # noqa: E741
        if fall >= cycle:
            bits = [level(fall + BIT_CYCLES * k + BIT_CYCLES // 2) for k in range(10)]
            assert (bits[0], bits[9]) == (0, 1)
            text.append(sum(bit << k for k, bit in enumerate(bits[1:9])))
            cycle = fall + 9 * BIT_CYCLES + 1
    return bytes(text)


CALIBRATION_PROGRAM = r"""
#include <kilolib.h>

message_t message;

message_t *message_tx() { return &message; }

void setup() {
    calibmsg_t *calibration = (calibmsg_t *)&message.data;
    calibration->mode = CALIB_STRAIGHT;
    calibration->uid = 0x1234;
    calibration->turn_left = 5;
    calibration->turn_right = 6;
    calibration->straight_left = 7;
    calibration->straight_right = 8;
    message.type = CALIB;
    message.crc = message_crc(&message);
}

void loop() {}

int main() {
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_start(setup, loop);
    return 0;
}
"""


def test_calibration_messages_are_laid_over_the_data(tmp_path, suffix):
    robot = running(compiled(tmp_path, CALIBRATION_PROGRAM, suffix=suffix)).run(20 * TICK)
    data = bytes([CalibrationMode.STRAIGHT, 0x34, 0x12, 5, 6, 7, 8, 0, 0])
    assert robot.frames()[0][1] == Message.make(MessageType.CALIB, data).pack()
