"""Timing reference, section 11.6: pins, USART, registers. Tests are named after the rows."""
# ruff: noqa: F403, F405

import pytest

from tests.chip.section11 import (
    MAIN,
    bit,
    boot,
    first_cycle,
    nops,
    put,
    put_io,
    register,
    registers,
    run_steps,
    run_to,
    sled,
    vector,
)
from tests.reference.assemble import *

pytestmark = pytest.mark.jit_off

LOOP = rjmp(-1)
PCINT0_VECTOR, INT0_VECTOR, WATCHDOG_VECTOR = 3, 1, 6


# ---- pins ----------------------------------------------------------------------------------------


def test_P01_own_output_is_read_one_cycle_late():
    chip = boot(
        put_io(DDRB, 0xFF), ldi(16, 0xFF), out(PORTB, 16), in_(20, PINB), in_(21, PINB), LOOP
    )
    chip.run(cycles=10)
    assert registers(chip, 20, 21) == [0x00, 0xFF]


@pytest.mark.parametrize("direction", [0x00, 0xFF, 0x3C])
def test_P02_writing_pin_toggles_port(direction):
    chip = boot(
        put_io(DDRB, direction),
        put_io(PORTB, 0xF3),
        put_io(PINB, 0x0F),
        in_(20, PORTB),
        put_io(PINB, 0x00),
        in_(21, PORTB),
        LOOP,
    )
    chip.run(cycles=20)
    assert registers(chip, 20, 21) == [0xFC, 0xFC]


def test_P03_pull_up_reads_1():
    chip = boot(
        put_io(PORTB, 0x05),
        nops(3),
        in_(20, PINB),
        put_io(MCUCR, 0x10),
        nops(3),
        in_(21, PINB),
        LOOP,
    )
    chip.run(cycles=20)
    assert register(chip, 20) == 0x05
    assert register(chip, 21) == 0x00  # PUD switches the pull-ups off; an open input reads 0 here


@pytest.mark.parametrize(("sense", "levels"), [(1, (1, 0)), (1, (0, 1)), (2, (1, 0)), (3, (0, 1))])
def test_P04_int0_edge_is_recorded_while_masked(sense, levels):
    chip = boot(put(EICRA, sense), nops(5), sei(), sled(100), isr={INT0_VECTOR: inc(20) + reti()})
    chip.set_pin("PD2", levels[0])
    run_steps(chip, 9)
    chip.write("EIFR", 3)
    chip.set_pin("PD2", levels[1], at=chip.cycle + 10)
    chip.run(cycles=40)
    assert chip.read("EIFR") == 1
    assert register(chip, 20) == 0
    # masked, not lost
    chip.write("EIMSK", 1)
    chip.run(cycles=20)
    assert register(chip, 20) == 1
    assert chip.read("EIFR") == 0


@pytest.mark.parametrize(("sense", "levels"), [(2, (0, 1)), (3, (1, 0))])
def test_P04_not_the_other_edge(sense, levels):
    chip = boot(put(EICRA, sense), sled(100))
    chip.set_pin("PD2", levels[0])
    run_steps(chip, 9)
    chip.write("EIFR", 3)
    chip.set_pin("PD2", levels[1], at=chip.cycle + 10)
    chip.run(cycles=40)
    assert chip.read("EIFR") == 0


def test_P05_pcmsk_only_masks():
    """PCMSK chooses pins for the flag; the interrupt needs PCICR."""
    chip = boot(put(PCMSK0, 0x01), sei(), sled(200), isr={PCINT0_VECTOR: inc(20) + reti()})
    run_steps(chip, 5)
    chip.set_pin("PB1", 1, at=chip.cycle + 5)  # not chosen
    chip.run(cycles=30)
    assert chip.read("PCIFR") == 0
    chip.set_pin("PB0", 1, at=chip.cycle + 5)
    chip.run(cycles=30)
    assert chip.read("PCIFR") == 1
    assert register(chip, 20) == 0
    chip.write("PCICR", 1)
    chip.run(cycles=30)
    assert register(chip, 20) == 1


# ---- USART ---------------------------------------------------------------------------------------

BIT = 208  # cycles: UBRR = 12, 38400 baud at 8 MHz
RXC, TXC, UDRE, FE, DOR = 0x80, 0x40, 0x20, 0x10, 0x08
RXEN, TXEN = 0x10, 0x08


def usart(enable):
    return put(UBRR0L, 12) + put(UCSR0B, enable)


def test_U01_two_bytes_back_to_back():
    before = usart(TXEN) + ldi(17, 0x55) + ldi(18, 0xA3)
    chip = boot(before, sts(UDR0, 17), nops(4), sts(UDR0, 18), sled())
    run_to(chip, 2 * len(before))
    chip.step()
    start = chip.cycle
    run_steps(chip, 4)
    assert chip.read("UCSR0A") & UDRE, "back within a few cycles"
    chip.step()
    assert chip.read("UCSR0A") & (UDRE | TXC) == 0
    again = first_cycle(chip, lambda: chip.read("UCSR0A") & UDRE)
    assert again - start == 10 * BIT
    assert chip.read("UCSR0A") & TXC == 0
    done = first_cycle(chip, lambda: chip.read("UCSR0A") & TXC)
    assert done - start == 20 * BIT
    assert bytes(chip.uart) == b"\x55\xa3"


def test_U01_line_carries_the_frame():
    before = usart(TXEN) + ldi(17, 0xA3)
    chip = boot(before, sts(UDR0, 17), LOOP)
    run_to(chip, 2 * len(before))
    assert chip.pin("PD1") == 1
    chip.step()
    start = chip.cycle
    bits = []
    for number in range(11):
        chip.run(cycles=start + number * BIT + BIT // 2 - chip.cycle)
        bits.append(chip.pin("PD1"))
    assert bits == [0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1]


def test_U02_ucsr0b_after_reset():
    chip = boot(lds(20, UCSR0B), lds(21, UCSR0A), lds(22, UCSR0C), LOOP)
    run_steps(chip, 3)
    assert registers(chip, 20, 22) == [0x00, 0x20, 0x06]


def test_U03_writing_txc_keeps_udre():
    chip = boot(put(UCSR0A, 0x40), lds(20, UCSR0A), put(UCSR0A, 0x00), lds(21, UCSR0A), LOOP)
    chip.run(cycles=20)
    assert registers(chip, 20, 21) == [0x20, 0x20]


def send(chip, byte, at):
    """A frame of 8N1 into PD0 from cycle `at` on; returns its end."""
    levels = [0, *(byte >> n & 1 for n in range(8)), 1]
    for number, level in enumerate(levels):
        chip.set_pin("PD0", level, at=at + number * BIT)
    return at + len(levels) * BIT


def test_U04_four_bytes_overrun():
    read = (
        lds(20, UCSR0A)
        + lds(21, UDR0)
        + lds(22, UCSR0A)
        + lds(23, UDR0)
        + lds(24, UCSR0A)
        + lds(25, UDR0)
    )
    chip = boot(usart(RXEN), sbis(GPIOR0, 0), rjmp(-2), read, lds(26, UCSR0A), LOOP)
    chip.set_pin("PD0", 1)
    chip.run(cycles=100)
    at = chip.cycle + 100
    for number, byte in enumerate(b"ABCD"):
        at = send(chip, byte, at)
        chip.run(cycles=at - 10 - chip.cycle)
        assert chip.read("UCSR0A") & RXC
        if number < 3:
            assert (
                chip.read("UCSR0A") & DOR == 0
            )  # the third waits in the shifter: nothing lost yet
    chip.write("GPIOR0", 1)
    chip.run(cycles=100)
    states = [register(chip, r) for r in (20, 22, 24)]
    assert [state & RXC for state in states] == [RXC] * 3
    assert bytes(register(chip, r) for r in (21, 23, 25)) == b"ABC"
    assert any(state & DOR for state in states)
    assert register(chip, 26) & (RXC | DOR) == 0


@pytest.mark.parametrize("byte", [0x00, 0x55, 0xFF])
def test_U05_receive_complete_after_the_stop_bit_vote(byte):
    chip = boot(usart(RXEN), nops(3000), LOOP)
    chip.set_pin("PD0", 1)
    run_steps(chip, 100)
    start = chip.cycle + 50
    send(chip, byte, start)
    done = first_cycle(chip, lambda: chip.read("UCSR0A") & RXC)
    # (9 * 16 + 10) * 13 = 2002, give or take one sampling clock
    assert abs(done - start - 2002) <= 13 + 3
    assert chip.read("UDR0") == byte
    assert chip.read("UCSR0A") & (FE | DOR) == 0


# ---- registers -----------------------------------------------------------------------------------

RESET_VALUES = {
    "DDRB": 0, "PORTB": 0, "DDRC": 0, "PORTC": 0, "DDRD": 0, "PORTD": 0, "TIFR0": 0, "TIFR1": 0,
    "TIFR2": 0, "PCIFR": 0, "EIFR": 0, "EIMSK": 0, "GPIOR0": 0, "GPIOR1": 0, "GPIOR2": 0,
    "EECR": 0, "EEDR": 0, "GTCCR": 0, "TCCR0A": 0, "TCCR0B": 0, "TCNT0": 0, "OCR0A": 0,
    "OCR0B": 0, "SPCR": 0, "SPSR": 0, "ACSR": 0, "SMCR": 0, "MCUCR": 0, "SPMCSR": 0, "SPL": 0xFF,
    "SPH": 0x08, "SREG": 0, "WDTCSR": 0, "CLKPR": 0, "PRR": 0, "PCICR": 0, "EICRA": 0,
    "PCMSK0": 0, "PCMSK1": 0, "PCMSK2": 0, "TIMSK0": 0, "TIMSK1": 0, "TIMSK2": 0, "ADCL": 0,
    "ADCH": 0, "ADCSRA": 0, "ADCSRB": 0, "ADMUX": 0, "DIDR0": 0, "DIDR1": 0, "TCCR1A": 0,
    "TCCR1B": 0, "TCCR1C": 0, "TCNT1L": 0, "TCNT1H": 0, "ICR1L": 0, "ICR1H": 0, "OCR1AL": 0,
    "OCR1AH": 0, "OCR1BL": 0, "OCR1BH": 0, "TCCR2A": 0, "TCCR2B": 0, "TCNT2": 0, "OCR2A": 0,
    "OCR2B": 0, "ASSR": 0, "TWBR": 0, "TWSR": 0xF8, "TWAR": 0xFE, "TWDR": 0xFF, "TWCR": 0,
    "TWAMR": 0, "UCSR0A": 0x20, "UCSR0B": 0, "UCSR0C": 0x06, "UBRR0L": 0, "UBRR0H": 0, "UDR0": 0,
    "MCUSR": 0x01,
}  # fmt: skip
READABLE_BITS = {
    "TIMSK0": 0x07, "TIMSK1": 0x27, "TIMSK2": 0x07, "SMCR": 0x0F, "PCICR": 0x07, "EICRA": 0x0F,
    "PCMSK1": 0x7F, "EIMSK": 0x03, "ADMUX": 0xEF, "DIDR0": 0x3F, "DIDR1": 0x03, "TCCR1A": 0xF3,
    "TCCR1B": 0xDF, "TCCR1C": 0x00, "PORTC": 0x7F, "DDRC": 0x7F, "UBRR0H": 0x0F, "EEARH": 0x03,
    "ADCSRB": 0x47,
}  # fmt: skip


@pytest.mark.parametrize("name", RESET_VALUES)
def test_R01_reset_values(name):
    chip = boot(lds(20, REGISTERS[name]), LOOP)
    assert chip.read(name) == RESET_VALUES[name]
    chip.step()
    assert register(chip, 20) == RESET_VALUES[name]


@pytest.mark.parametrize("name", READABLE_BITS)
def test_R01_unused_bits_read_0(name):
    chip = boot(put(REGISTERS[name], 0xFF), lds(20, REGISTERS[name]), LOOP)
    chip.run(cycles=5)
    assert register(chip, 20) == READABLE_BITS[name]


def test_R01_osccal_and_pins():
    chip = boot(lds(20, OSCCAL), in_(21, PINB), LOOP)
    chip.run(cycles=3)
    assert register(chip, 20) not in (0x00, 0xFF)
    assert register(chip, 21) == 0


EEPROM_CYCLES = 26368


def eeprom_time(*parts, expected):
    """CPU cycles that an EEPROM write takes; it counts RC cycles, before the divider."""
    program = [word for part in parts for word in part]
    program += put_io(EEDR, 0x42) + sbi(EECR, 2) + sbi(EECR, 1)
    chip = boot(program, sled())
    landed = run_to(chip, 2 * len(program) - 2) + 2
    chip.step()
    done = first_cycle(chip, lambda: not bit(chip, "EECR", 1), near=landed + expected)
    return done - landed, chip


@pytest.mark.parametrize("setting", range(9))
def test_R02_clkpr_divides_the_clock(setting):
    change = ldi(16, 0x80) + ldi(17, setting) + sts(CLKPR, 16) + sts(CLKPR, 17) + nops(600)
    cycles, chip = eeprom_time(change, expected=EEPROM_CYCLES >> setting)
    assert chip.read("CLKPR") == setting
    assert abs(cycles - EEPROM_CYCLES / 2**setting) <= 1


def test_R02_clkpr_needs_the_timed_sequence():
    for change in (
        put(CLKPR, 0x03),
        put(CLKPR, 0x80) + nops(8) + put(CLKPR, 0x03),
        put(CLKPR, 0x83),
    ):
        chip = boot(change, lds(20, CLKPR), nops(10), lds(21, CLKPR), LOOP)
        chip.run(cycles=50)
        assert register(chip, 20) & 0x0F == 0
        assert register(chip, 21) == 0


def watchdog_time(osccal_step):
    """CPU cycles of a watchdog timeout, whose oscillator does not know of OSCCAL."""
    change = lds(16, OSCCAL) + subi(16, -osccal_step & 0xFF) + sts(OSCCAL, 16) + nops(20)
    program = put(WDTCSR, 0x40) + change + sei() + wdr()
    chip = boot(program, sled(), isr={WATCHDOG_VECTOR: reti()})
    start = run_to(chip, 2 * (MAIN + len(program)))
    return run_to(chip, vector(WATCHDOG_VECTOR)) - start - 4  # flag to vector: four cycles


def test_R03_osccal_changes_the_frequency():
    slow, normal, fast = (watchdog_time(step) for step in (-8, 0, 8))
    assert abs(normal - 128_000) <= 2
    assert slow < normal < fast
    # below 2 % per step
    assert fast < normal * 1.02**8
    assert slow > normal / 1.02**8


@pytest.mark.parametrize(
    ("prr", "start", "count"),
    [
        (0x20, put_io(TCCR0B, 1), "TCNT0"),
        (0x08, put(TCCR1B, 1), "TCNT1L"),
        (0x40, put(TCCR2B, 1), "TCNT2"),
    ],
)
def test_R04_prr_freezes_a_timer(prr, start, count):
    chip = boot(start, nops(20), put(PRR, prr), nops(50), put(PRR, 0), sled(100))
    run_steps(chip, 2 + 20 + 2)
    frozen = chip.read(count)
    assert 0 < frozen < 30
    run_steps(chip, 50)
    assert chip.read(count) == frozen
    run_steps(chip, 2)
    before = chip.read(count)
    assert before <= frozen + 4
    run_steps(chip, 10)
    assert chip.read(count) == before + 10


def test_R04_prr_freezes_the_adc():
    chip = boot(put(ADCSRA, 0xC3), nops(50), put(PRR, 0x01), LOOP)
    chip.run(cycles=2000)
    assert bit(chip, "ADCSRA", 4) == 0
