"""SLEEP in every mode: who wakes the chip, how long it takes, and what stands still meanwhile.

The table is section 8.1 of the timing reference. Timer 2 has no crystal to run from, so that it
wakes from idle only.
"""

import pytest

from tests.chip.peripherals.memories import chip_of
from tests.chip.section11 import Assembler, D, nops, put, put_io, run_to, vector
from tests.reference.assemble import (
    ACSR,
    ADCSRA,
    EECR,
    EICRA,
    EIMSK,
    PCICR,
    PCMSK1,
    SMCR,
    SPMCSR,
    TCCR0B,
    TCCR1B,
    TCCR2B,
    TIMSK0,
    TIMSK1,
    TIMSK2,
    UCSR0B,
    WDTCSR,
    jmp,
    ldi,
    reti,
    rjmp,
    sbi,
    sei,
    sleep,
    sts,
)

pytestmark = pytest.mark.jit_off

IDLE, ADC_NOISE, POWER_DOWN, POWER_SAVE, STANDBY, EXTENDED_STANDBY = 0, 1, 2, 3, 6, 7
DEEP = {POWER_DOWN, POWER_SAVE, STANDBY, EXTENDED_STANDBY}
ALL = {IDLE, ADC_NOISE} | DEEP
SPI_ON = sts(0x4C, 16)  # SPCR

# source: vector, set-up, what the outside does at cycle 300, modes that it ends
SOURCES = {
    "INT0 level": (1, put(EIMSK, 1), ("pin", "PD2", 0), ALL),
    "INT1 edge": (2, [*put(EICRA, 8), *put(EIMSK, 2)], ("pin", "PD3", 0), ALL),
    "PCINT1": (4, [*put(PCMSK1, 4), *put(PCICR, 2)], ("pin", "PC2", 0), ALL),
    "WDT": (6, put(WDTCSR, 0x40), None, ALL),
    "TIMER2 OVF": (9, [*put(TIMSK2, 1), *put(TCCR2B, 1)], None, {IDLE}),
    "TIMER1 COMPA": (11, [*put(TIMSK1, 2), *put(TCCR1B, 1)], None, {IDLE}),
    "TIMER1 CAPT": (10, [*put(TIMSK1, 0x20), *put(TCCR1B, 1)], ("pin", "PB0", 0), {IDLE}),
    "TIMER0 OVF": (16, [*put(TIMSK0, 1), *put(TCCR0B, 1)], None, {IDLE}),
    "SPI STC": (17, [*ldi(16, 0xD0), *SPI_ON, *put(0x4E, 1)], None, {IDLE}),
    "USART UDRE": (19, put(UCSR0B, 0x28), None, {IDLE}),
    "ADC": (21, put(ADCSRA, 0x8B), None, {IDLE, ADC_NOISE}),
    "EE READY": (22, [*sbi(EECR, 2), *sbi(EECR, 1), *sbi(EECR, 3)], None, {IDLE, ADC_NOISE}),
    "ANALOG COMP": (23, put(ACSR, 0x0B), ("comparator", 1), {IDLE}),
    "SPM READY": (25, put(SPMCSR, 0x80), None, {IDLE, ADC_NOISE}),
}


def sleeper(mode, set_up):
    """A chip that goes to sleep in this mode; its vectors do nothing but return."""
    a = Assembler()
    a(jmp(0x80))
    for number in range(1, 26):
        a.org(2 * number)(rjmp(-1))
    a.org(0x80)(put_io(SMCR, mode << 1 | 1), set_up, sei())
    a.label("sleep")(sleep(), rjmp(-1))
    chip = chip_of(a.words())
    for pin in ("PB0", "PC2", "PD2", "PD3"):
        chip.set_pin(pin, 1)
    return chip, 2 * a.word_address("sleep")


@pytest.mark.parametrize("mode", sorted(ALL))
@pytest.mark.parametrize("source", SOURCES)
def test_who_wakes(source, mode):
    number, set_up, outside, modes = SOURCES[source]
    chip, place = sleeper(mode, set_up)
    assert run_to(chip, place) < 300
    if outside is not None:
        kind, *values = outside
        drive = chip.set_pin if kind == "pin" else chip.set_comparator
        drive(*values, at=300)
    chip.run(cycles=140_000)  # the watchdog's time-out is 128 000
    assert chip.asleep == (mode not in modes)
    assert chip.pc == (vector(number) if mode in modes else place + 2)


@pytest.mark.parametrize("mode", sorted(ALL))
def test_time_to_wake_by_a_pin(mode):
    """The flag 3 cycles after the change; 6 cycles of start-up from the modes that stop the
    oscillator; 4 of halt and 4 of response.
    """
    _, set_up, *_ = SOURCES["PCINT1"]
    chip, place = sleeper(mode, set_up)
    run_to(chip, place)
    chip.set_pin("PC2", 0, at=1000)
    start_up = 6 if mode in DEEP else 0
    assert run_to(chip, vector(4)) == 1000 + 3 + start_up + 4 + 1 + D


@pytest.mark.parametrize("mode", sorted(ALL))
def test_short_comparator_pulse_is_seen_only_while_clk_io_runs(mode):
    """A pulse in deep sleep that is over before the chip wakes leaves nothing behind."""
    chip, place = sleeper(mode, [*put(PCMSK1, 4), *put(PCICR, 2), *put(ACSR, 0x03)])
    run_to(chip, place)
    chip.pulse_comparator([1000], high_cycles=100)
    chip.set_pin("PC2", 0, at=2000)
    run_to(chip, vector(4))
    assert chip.read("ACSR") == (0x13 if mode == IDLE else 0x03)


@pytest.mark.parametrize("mode", sorted(ALL))
def test_comparator_level_that_stays_is_an_edge_after_waking(mode):
    chip, place = sleeper(mode, [*put(PCMSK1, 4), *put(PCICR, 2), *put(ACSR, 0x03)])
    run_to(chip, place)
    chip.set_comparator(1, at=1000)
    chip.set_pin("PC2", 0, at=2000)
    run_to(chip, vector(4))
    assert chip.read("ACSR") == 0x33


@pytest.mark.parametrize("mode", sorted(ALL))
@pytest.mark.parametrize("edges", [1, 2, 3])
def test_external_clock_and_capture_stand_still(mode, edges):
    """T1 counts falls of PD5, and PB0 is captured: in deep sleep only what remains at the end."""
    chip, place = sleeper(mode, [*put(PCMSK1, 4), *put(PCICR, 2), *put(TCCR1B, 0x06)])
    chip.set_pin("PD5", 1)
    run_to(chip, place)
    level = 1
    for number in range(edges):
        level ^= 1
        for pin in ("PD5", "PB0"):
            chip.set_pin(pin, level, at=1000 + 100 * number)
    chip.set_pin("PC2", 0, at=2000)
    run_to(chip, vector(4))
    falls = (edges + 1) // 2
    fell_for_good = level == 0
    assert chip.read("TCNT1") == (falls if mode == IDLE else int(fell_for_good))
    assert chip.read("TIFR1") >> 5 == int(mode == IDLE or fell_for_good)


def test_sleep_goes_on_after_the_interrupt_returns():
    """Execution resumes behind SLEEP."""
    a = Assembler()
    a(jmp(0x80)).org(2 * 6)(reti())
    a.org(0x80)(put_io(SMCR, 0x05), put(WDTCSR, 0x40), sei(), sleep())
    a.label("behind")(nops(1), rjmp(-1))
    chip = chip_of(a.words())
    assert run_to(chip, 2 * a.word_address("behind")) > 128_000


def test_no_interrupt_no_waking():
    """With I clear nothing but a reset ends it; the watchdog in reset mode does."""
    chip, place = sleeper(POWER_DOWN, [*put(EIMSK, 1), *put(WDTCSR, 0x08)])
    run_to(chip, place)
    chip.write("SREG", 0)
    chip.set_pin("PD2", 0, at=300)
    chip.run(cycles=100_000)
    assert chip.asleep
    run_to(chip, 0)
    assert chip.read("MCUSR") == 0x09
