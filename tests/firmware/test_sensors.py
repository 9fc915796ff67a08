"""Battery, temperature and hard random numbers (hardware reference, 11, 13, Q2, Q12)."""

import random

import pytest

from avrswarm.robot.messages import Message, MessageType

from .bench import MS, Robot, compiled

INTERRUPTS_ON = 0x80

TEMPERATURE_PROGRAM = r"""
#include <kilolib.h>

volatile int16_t reading;

void setup(void) {}
void loop(void) { reading = get_temperature(); }

int main(void) {
    kilo_init();
    kilo_start(setup, loop);
    return 0;
}
"""


@pytest.fixture(scope="module")
def thermometer(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("temperature"), TEMPERATURE_PROGRAM)


@pytest.mark.parametrize("counts", [0, 1, 547, 614, 1023])
def test_get_voltage_reads_the_battery_channel(counts):
    robot = Robot("listener").run(5000)
    robot.set_counts(battery=counts, light=222, high_gain=333, low_gain=444)
    voltage, cycles = robot.call("get_voltage")
    assert voltage == counts
    assert 150 <= cycles <= 160


@pytest.mark.needs_avr_gcc
@pytest.mark.parametrize("counts", [292, 107, 0])
def test_get_temperature_reads_channel_8_against_1_1_volts(thermometer, counts):
    robot = Robot(thermometer).run(5000)
    robot.chip.set_adc("ADC8", (counts + 0.5) * 1.1 / 1024)
    temperature, cycles = robot.call("get_temperature")
    assert temperature == counts
    assert 1600 <= cycles <= 1850


@pytest.mark.needs_avr_gcc
def test_the_program_gets_the_temperature_too(thermometer):
    robot = Robot(thermometer)
    robot.chip.set_adc("ADC8", 314.5 * 1.1 / 1024)
    assert robot.obey(MessageType.RUN).value("reading", 2) == 314


@pytest.mark.parametrize("function", ["get_voltage", "rand_hard"])
@pytest.mark.parametrize("interrupts", [False, True])
def test_the_interrupt_flag_is_left_as_it_was(function, interrupts):
    """The public library switches interrupts on here (Q12)."""
    robot = Robot("disperse").run(5000)
    robot.call(function, interrupts=interrupts)
    assert robot.chip.sreg & INTERRUPTS_ON == (INTERRUPTS_ON if interrupts else 0)


@pytest.mark.needs_avr_gcc
@pytest.mark.parametrize("interrupts", [False, True])
def test_the_interrupt_flag_is_left_as_it_was_by_get_temperature(thermometer, interrupts):
    robot = Robot(thermometer).run(5000)
    robot.call("get_temperature", interrupts=interrupts)
    assert robot.chip.sreg & INTERRUPTS_ON == (INTERRUPTS_ON if interrupts else 0)


def test_no_voltage_while_a_message_comes_in():
    robot = Robot("listener").run(5000)
    robot.light([robot.cycle + 100])
    robot.run(400)
    assert robot.call("get_voltage")[0] == 0xFFFF


def amplitudes(robot):
    """Low gain, high gain."""
    content = robot.bytes("kilo_rx_distance", 4)
    return int.from_bytes(content[:2], "little"), int.from_bytes(content[2:], "little")


def test_after_get_voltage_the_converter_waits_for_a_pulse_again():
    """In the public library the next message has the battery count as high gain (Q2)."""
    robot = Robot("listener").run(5000)
    robot.set_counts(battery=650, high_gain=800, low_gain=175)
    robot.call("get_voltage")
    registers = {"ADMUX": 0, "ADCSRB": 1, "ADCSRA": 0xA3}
    assert {name: robot.chip.read(name) & ~0x10 for name in registers} == registers  # ADIF or not


@pytest.mark.parametrize("shift", range(0, 320, 7))
def test_a_message_during_voltage_readings_has_its_own_amplitudes(shift):
    robot = Robot("listener").obey(MessageType.VOLTAGE)
    robot.set_counts(battery=650, high_gain=800, low_gain=175)
    robot.chip.run_until(symbol="get_voltage", max_cycles=1 * MS)
    message = Message.make(MessageType.NORMAL, b"\x31" * 9)
    end = robot.hear(message, after=shift)
    robot.run(end - robot.cycle + 1000)
    assert robot.bytes("kilo_rx_message", 12) == message.pack()
    assert amplitudes(robot) == (175, 800)


def rand_hard(robot, noise):
    """What it makes of these lowest bits of the battery reading; all of them must be asked for."""
    robot.enter("rand_hard")
    for bit in noise:
        robot.chip.run_until(symbol="get_voltage", max_cycles=1000)
        robot.set_counts(battery=700 + bit)
    start = robot.cycle
    value = robot.leave(byte=True)
    assert robot.cycle - start < 300
    return value


def noise_for(value, draw):
    """Pairs: equal ones are thrown away, the first of different ones counts; first bit on top."""
    for place in reversed(range(8)):
        for _ in range(draw.randrange(4)):
            yield from [draw.randrange(2)] * 2
        bit = value >> place & 1
        yield from (bit, 1 - bit)


@pytest.mark.parametrize("value", [0x00, 0xFF, 0xA5, 0x01, 0x80, 0x6C])
def test_rand_hard_takes_the_first_of_two_different_bits(value):
    robot = Robot("disperse").run(5000)
    assert rand_hard(robot, list(noise_for(value, random.Random(value)))) == value


@pytest.mark.parametrize(("battery", "value"), [(700, 0x00), (701, 0xFF)])
def test_rand_hard_gives_up_without_noise(battery, value):
    """After 128 tries per bit (Q12)."""
    robot = Robot("disperse").run(5000)
    robot.set_counts(battery=battery)
    robot.enter("rand_hard")
    readings = 0
    while robot.chip.run_until(symbol="get_voltage", max_cycles=1000) == "breakpoint":
        readings += 1
        if readings == 8 * 128 * 2:
            break
    assert robot.leave(byte=True) == value


def test_rand_hard_waits_for_the_end_of_a_message():
    robot = Robot("disperse").run(5000)
    end = robot.hear(Message.make(MessageType.NORMAL, b"\x55" * 9), after=100)
    robot.run(400)
    robot.call("rand_hard", interrupts=True)
    assert robot.cycle > end
    assert robot.bytes("kilo_rx_message", 12) == Message.make(0, b"\x55" * 9).pack()
