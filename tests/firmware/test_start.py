"""From reset to idle, and every state a command leads to (hardware reference, section 3)."""

import pytest

from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.robot.messages import Message, MessageType

from .bench import (
    BATTERY,
    BLUE,
    CHARGING,
    GREEN,
    IDLE,
    IDLE_PASS,
    MOVING,
    MS,
    OFF,
    RED,
    RUNNING,
    SLEEPING,
    TICK,
    YELLOW,
    Robot,
)


def test_boot_is_not_slower_than_the_public_library():
    robot = Robot("blink")
    robot.chip.run_until(symbol="kilo_start", max_cycles=10_000)
    assert robot.cycle < 2900
    assert robot.state == IDLE
    assert robot.chip.sreg & 0x80
    assert robot.chip.pin("PD2") == 1


def test_registers_after_boot():
    chip = Robot("blink").run(5000).chip
    registers = {
        "TCCR0A": 0, "TCCR0B": 5, "OCR0A": 255, "TIMSK0": 2, "TCCR1A": 0, "TCCR1B": 0, "TIMSK1": 2,
        "TCCR2A": 0xA1, "TCCR2B": 2, "ACSR": 0x0B, "DIDR1": 3, "ADCSRB": 1, "ADMUX": 0,
        "ADCSRA": 0xA3, "DDRB": 0, "PORTB": 0, "PORTC": 0, "PORTD": 4,
    }  # fmt: skip
    assert {name: chip.read(name) for name in registers} == registers
    assert chip.read("OCR1AL") | chip.read("OCR1AH") << 8 == 2959


def test_idle_blinks_green_every_201_ms():
    robot = Robot("blink")
    first = robot.wait_for_led(GREEN)
    off = robot.wait_for_led(OFF)
    second = robot.wait_for_led(GREEN)
    assert off - first == pytest.approx(1 * MS, abs=60)
    assert (second - first) / MS == pytest.approx(201.1, abs=0.02)


def test_nothing_is_sent_and_no_motor_runs_before_run():
    robot = Robot("speaker").run(40 * TICK)
    assert robot.frames() == []
    assert robot.motors == (None, None)


@pytest.mark.parametrize(
    ("command", "state"),
    [
        (MessageType.SLEEP, SLEEPING),
        (MessageType.WAKEUP, IDLE),
        (MessageType.CHARGE, CHARGING),
        (MessageType.VOLTAGE, BATTERY),
        (MessageType.RUN, RUNNING),
        (MessageType.READUID, MOVING),
        (MessageType.BOOTPGM_PAGE, IDLE),
        (MessageType.BOOTPGM_SIZE, IDLE),
        (0x8B, IDLE),
        (0xFF, IDLE),
        (MessageType.NORMAL, IDLE),
    ],
)
def test_each_command_leads_to_its_state(command, state):
    assert Robot("listener").obey(command).state == state


def test_a_wrong_checksum_is_not_obeyed():
    robot = Robot("listener")
    good = Message.make(MessageType.RUN)
    robot.run(robot.hear(Message(good.data, good.type, good.crc ^ 1)) + IDLE_PASS)
    assert robot.state == IDLE


def test_run_enables_the_motors_and_calls_the_program():
    robot = Robot("move").obey(MessageType.RUN).run(30 * MS)
    assert robot.led == GREEN
    assert robot.motors == (65, 62)


def test_pause_stops_the_motors_and_run_goes_on_where_it_was():
    robot = Robot("random_walk").obey(MessageType.RUN)
    robot.run(200 * TICK)
    steps = robot.value("steps", 2)
    assert steps >= 2
    robot.obey(MessageType.WAKEUP)
    assert robot.state == IDLE
    assert robot.motors == (None, None)
    robot.obey(MessageType.RUN, then=IDLE_PASS + 1000)
    assert robot.state == RUNNING
    assert robot.value("steps", 2) >= steps
    assert robot.motors != (None, None)


def test_a_pause_during_setup_is_not_forgotten():
    """In the public library the end of setup overwrites it (Q20)."""
    robot = Robot("distance_reporter").obey(MessageType.RUN, then=0)
    robot.chip.run_until(symbol="setup", max_cycles=IDLE_PASS)
    robot.obey(MessageType.WAKEUP, then=100 * MS)
    assert robot.state == IDLE
    assert robot.obey(MessageType.RUN).state == RUNNING
    assert robot.chip.uart.count(b"sender") == 1  # setup ran once


@pytest.mark.parametrize("foreign", [0x81, 0x82, 0x8B, 0xF0, MessageType.RUN, MessageType.NORMAL])
def test_motors_keep_running_when_somebody_else_is_programmed(foreign):
    robot = Robot("move").obey(MessageType.RUN).run(30 * MS)
    before = robot.motors
    robot.obey(foreign, then=1000)
    assert robot.state == RUNNING
    assert robot.motors == before == (65, 62)


@pytest.mark.parametrize(
    ("counts", "color"),
    [(700, GREEN), (683, GREEN), (682, BLUE), (649, BLUE), (648, YELLOW), (614, RED), (0, RED)],
)
def test_voltage_is_shown_as_a_colour(counts, color):
    robot = Robot("blink")
    robot.set_counts(battery=counts)
    assert robot.obey(MessageType.VOLTAGE).led == color


def test_voltage_does_not_flicker_while_messages_arrive():
    robot = Robot("blink").obey(MessageType.VOLTAGE)
    end = robot.hear(Message.make(MessageType.NORMAL, b"\x55" * 9))
    colors = set()
    while robot.cycle < end + 1000:
        robot.run(37)
        colors.add(robot.led)
    assert colors == {GREEN}


def test_charging_blinks_dim_red():
    robot = Robot("blink").obey(MessageType.CHARGE)
    assert robot.run(IDLE_PASS).led == OFF
    robot.chip.set_pin("PD0", 0)
    on = robot.wait_for_led((1, 0, 0))
    off = robot.wait_for_led(OFF)
    assert off - on == pytest.approx(1 * MS, abs=60)
    again = robot.wait_for_led((1, 0, 0))
    assert again - on == pytest.approx(201.1 * MS, abs=600)


def test_reset_starts_over_but_keeps_the_phase_of_the_ticks():
    robot = Robot("random_walk").obey(MessageType.RUN)
    robot.run(100 * TICK)
    end = robot.hear(Message.make(MessageType.RESET))
    robot.chip.run_until(symbol="kilo_init", max_cycles=end + 5000)
    before = robot.chip.read("TCNT0")
    robot.run(3000)
    assert robot.state == IDLE
    assert robot.value("kilo_ticks", 4) == 0
    assert robot.value("steps", 2) == 0
    assert robot.motors == (None, None)
    assert (robot.chip.read("TCNT0") - before) % 256 <= 4


def test_reset_is_a_jump_that_the_serial_port_and_the_oscillator_survive():
    """Q19: a byte under way goes out, settings stay until the program sets them again."""
    robot = Robot("distance_reporter", EepromMap()).obey(MessageType.RUN).run(50 * MS)
    robot.chip.write("OSCCAL", 0x77)
    end = robot.hear(Message.make(MessageType.RESET))
    robot.run(end - robot.cycle - 100)
    before = robot.chip.uart
    robot.chip.write("UDR0", 0x41)
    robot.chip.run_until(symbol="kilo_init", max_cycles=2000)
    settings = {"UBRR0L": 12, "UBRR0H": 0, "UCSR0B": 8, "UCSR0C": 6, "OSCCAL": 0x77}
    assert {name: robot.chip.read(name) for name in settings} == settings
    robot.run(3000)
    assert robot.state == IDLE
    assert robot.chip.uart == before + b"A"
    assert robot.chip.read("OSCCAL") == 0x77


def test_calibration_of_the_oscillator_is_loaded_unless_erased():
    assert Robot("blink", EepromMap(osccal=0x90)).run(5000).chip.read("OSCCAL") == 0x90
    factory = Robot("blink").chip.read("OSCCAL")
    assert Robot("blink", b"\xff" * 1024).run(5000).chip.read("OSCCAL") == factory


def test_an_erased_eeprom():
    robot = Robot("move", b"\xff" * 1024).run(5000)
    assert robot.value("kilo_uid", 2) == 65535
    assert robot.value("kilo_tx_mask") == 0x01
    assert robot.obey(MessageType.RUN).motors == (255, 255)


@pytest.mark.parametrize(
    ("stored", "used"), [(0xC7, 0xC7), (0x81, 0x81), (0x00, 0x00), (0x09, 1), (0x30, 1)]
)
def test_transmit_mask_is_checked(stored, used):
    assert Robot("blink", EepromMap(tx_mask=stored)).run(5000).value("kilo_tx_mask") == used
