"""Clock prescaler, calibration, power reduction, stopped clocks in sleep, MCUCR."""

import pytest

from avrswarm import Chip
from avrswarm.program import Program
from tests.chip.peripherals.memories import change_clock, chip_of, idle, steps, writes_apart
from tests.chip.section11 import BOOT, D, boot, nops, put, put_io, run_to, sled, vector
from tests.reference.assemble import (
    EIMSK,
    MCUCR,
    OCR0A,
    OSCCAL,
    PRR,
    SMCR,
    TCCR0B,
    TCCR1B,
    TCCR2B,
    TCNT0,
    TCNT1L,
    TCNT2,
    TIMSK0,
    WDTCSR,
    Assembler,
    in_,
    jmp,
    ldi,
    lds,
    out,
    reti,
    rjmp,
    sei,
    sleep,
    sts,
    wdr,
)

HERTZ = 8_000_000
LOOP = rjmp(-1)


def hertz(chip, cycles=1000):
    """Measure the CPU's clock with the world's."""
    cycle, seconds = chip.cycle, chip.seconds
    chip.run(cycles=cycles)
    return (chip.cycle - cycle) / (chip.seconds - seconds)


# ---- CLKPR ---------------------------------------------------------------------------------------

DIVIDERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 2, 4, 8, 16, 32, 64, 128]


@pytest.mark.jit_off
@pytest.mark.parametrize("select", range(16))
def test_every_divider(select):
    chip = boot(change_clock(select), sled())
    run_to(chip, 2 * len(change_clock(select)))
    assert chip.read("CLKPR") == select
    assert hertz(chip) == pytest.approx(HERTZ / DIVIDERS[select], rel=1e-9)


@pytest.mark.jit_off
@pytest.mark.parametrize("distance", range(8))
def test_clkpr_window(distance):
    got = writes_apart(idle(), "CLKPR", 0x80, 0x02, distance)
    assert got & 0x0F == (2 if 1 <= distance <= 3 else 0)


@pytest.mark.jit_off
def test_clkpce_reads_one_for_four_cycles_and_is_not_extended():
    chip = idle()
    chip.write("CLKPR", 0x80)
    seen = []
    for _ in range(6):
        seen.append(chip.read("CLKPR"))
        chip.step()
        if len(seen) < 3:
            chip.write("CLKPR", 0x80)
    assert seen == [0x80] * 4 + [0] * 2


def test_every_first_value():
    """CLKPCE takes only if all other bits are 0."""
    for value in range(256):
        got = writes_apart(idle(), "CLKPR", value, 0x03, 2)
        assert got == (3 if value == 0x80 else 0)


def test_the_change_closes_the_window():
    chip = idle()
    writes_apart(chip, "CLKPR", 0x80, 0x01, 1)
    chip.step()
    chip.write("CLKPR", 0x02)
    assert chip.read("CLKPR") == 1


def test_fuse_divides_by_eight():
    chip = chip_of(sled(), low=0x62)
    assert chip.read("CLKPR") == 3
    assert hertz(chip) == pytest.approx(HERTZ / 8, rel=1e-9)
    writes_apart(chip, "CLKPR", 0x80, 0, 1)
    assert hertz(chip) == pytest.approx(HERTZ, rel=1e-9)
    chip.reset()
    assert chip.read("CLKPR") == 3
    assert hertz(chip) == pytest.approx(HERTZ / 8, rel=1e-9)


def test_timers_count_the_divided_clock():
    chip = boot(change_clock(4), put_io(TCCR0B, 1), nops(10), in_(20, TCNT0), LOOP)
    chip.run(cycles=40)
    assert chip.registers[20] == 10


# ---- OSCCAL --------------------------------------------------------------------------------------


def curve():
    chip = idle()
    found = []
    for value in range(256):
        chip.write("OSCCAL", value)
        assert chip.read("OSCCAL") == value
        found.append(hertz(chip, 10))
    return found


@pytest.mark.jit_off
def test_osccal_model():
    found = curve()
    for first in (0x00, 0x80):  # rises within a range, by less than 2 % a step around 8 MHz
        steps_up = list(
            zip(found[first : first + 127], found[first + 1 : first + 128], strict=True)
        )
        assert all(a < b for a, b in steps_up)
        assert all(b / a < 1.02 for a, b in steps_up if 7.3e6 < a < 8.1e6)
    assert found[0x7F] > found[0x80]
    assert 3.5e6 < found[0x00] < 4.5e6
    assert 13e6 < found[0xFF] < 15e6


@pytest.mark.parametrize("clock", [7_300_000, 8_000_000, 8_123_456.7])
def test_the_factory_value_gives_the_chip_its_own_clock(clock):
    chip = Chip(Program.from_words(sled()), clock_hz=clock)
    factory = chip.read("OSCCAL")
    fresh = int(chip._c.period)
    chip.write("OSCCAL", factory ^ 0x11)
    assert int(chip._c.period) != fresh
    chip.write("OSCCAL", factory)
    assert int(chip._c.period) == fresh


def test_osccal_returns_at_reset():
    chip = idle()
    factory = chip.read("OSCCAL")
    chip.write("OSCCAL", 0x20)
    assert hertz(chip) < 7e6
    chip.reset()
    assert chip.read("OSCCAL") == factory
    assert hertz(chip) == pytest.approx(HERTZ, rel=1e-9)


def test_world_time_is_the_sum_of_its_stretches():
    chip = boot(nops(100), put(OSCCAL, 0x40), nops(100), change_clock(2), nops(100), LOOP)
    run_to(chip, 2 * 103)
    first = chip.seconds
    assert first == pytest.approx(103 / HERTZ, rel=1e-9)
    slow = hertz(chip, 50)
    run_to(chip, 2 * (103 + 100 + 6))
    assert chip.seconds == pytest.approx(first + (100 + 6) / slow, rel=1e-9)
    assert hertz(chip, 50) == pytest.approx(slow / 4, rel=1e-9)


# ---- PRR -----------------------------------------------------------------------------------------


def test_prr_mask():
    for value in range(256):
        chip = idle()
        chip.write("PRR", value)
        assert chip.read("PRR") == value & 0xEF


@pytest.mark.jit_off
@pytest.mark.parametrize(
    ("bit", "control", "counter"),
    [(5, TCCR0B, TCNT0), (3, TCCR1B, TCNT1L), (6, TCCR2B, TCNT2)],
)
def test_prr_freezes_a_timer(bit, control, counter):
    """Started at edge e; stopped from 5 to 25 cycles later: those 20 edges are missing."""
    setup = ldi(16, 1) + ldi(17, 1 << bit) + ldi(18, 0)
    run = sts(control, 16) + nops(3) + sts(PRR, 17) + nops(18) + sts(PRR, 18)
    chip = boot(setup, run, nops(10), lds(20, counter), LOOP)
    chip.run(cycles=60)
    plain = boot(setup, sts(control, 16), nops(3), nops(2), nops(10), lds(20, counter), LOOP)
    plain.run(cycles=60)
    assert chip.registers[20] == plain.registers[20] == 16


@pytest.mark.parametrize("bit", [0, 1, 2, 7])
def test_prr_of_other_blocks_leaves_timers_alone(bit):
    chip = boot(put_io(TCCR0B, 1), put(PRR, 1 << bit), nops(5), in_(20, TCNT0), LOOP)
    chip.run(cycles=30)
    assert chip.registers[20] == 8


@pytest.mark.jit_off
@pytest.mark.parametrize("at", [0, 700])
def test_prr_freezes_a_conversion(at):
    """DS 10.10: the state is frozen, and goes on when the clock returns."""
    chip = idle()
    chip.write("ADCSRA", 0xC6)  # clk/64, first conversion: 25 ADC clocks from the start on
    chip.run(cycles=at)
    chip.write("PRR", 1)
    chip.run(cycles=10_000)
    assert chip.read("ADCSRA") == 0xC6
    chip.write("PRR", 0)
    chip.run(cycles=25 * 64 - at - 1)
    assert chip.read("ADCSRA") == 0xC6
    chip.step()
    assert chip.read("ADCSRA") == 0x96


STOPPED = {
    "TCCR0A": 5, "TCCR0B": 5, "TCNT0": 5, "OCR0A": 5, "OCR0B": 5, "TIMSK0": 5,
    "TCCR1A": 3, "TCCR1B": 3, "TCNT1": 3, "OCR1A": 3, "OCR1B": 3, "TIMSK1": 3,
    "TCCR2A": 6, "TCCR2B": 6, "TCNT2": 6, "OCR2A": 6, "OCR2B": 6, "TIMSK2": 6, "ASSR": 6,
    "ADCSRA": 0, "ADCSRB": 0, "ADMUX": 0, "UCSR0B": 1, "UBRR0L": 1, "SPCR": 2, "TWBR": 7,
}  # fmt: skip


@pytest.mark.jit_off
@pytest.mark.parametrize("name", STOPPED)
def test_registers_of_a_stopped_block_cannot_be_written(name):
    """DS 10.10. Without the bit the same write does land."""
    value = 0x20 if name == "ASSR" else 1
    chip = idle()
    chip.write("PRR", 1 << STOPPED[name])
    chip.write(name, value)
    assert chip.read(name) == 0
    chip.write("PRR", 0)
    assert chip.read(name) == 0
    chip.write(name, value)
    assert chip.read(name) == value
    chip = idle()
    chip.write("PRR", 0xEF & ~(1 << STOPPED[name]))
    chip.write(name, value)
    assert chip.read(name) == value


def test_high_bytes_of_a_stopped_timer_cannot_be_written():
    chip = idle()
    chip.write("OCR1A", 0x1234)
    chip.write("PRR", 0x08)
    chip.write("OCR1AH", 0x56)  # TEMP
    chip.write("PRR", 0)
    chip.write("OCR1AL", 0x78)
    assert chip.read("OCR1A") == 0x1278


def test_prr_freezes_the_usart():
    chip = idle()
    chip.write("UBRR0", 12)
    chip.write("UCSR0B", 0x08)
    chip.write("UDR0", 0x55)
    chip.run(cycles=1000)
    chip.write("PRR", 2)
    chip.run(cycles=10_000)
    chip.write("PRR", 0)
    begun = chip.cycle
    while not chip.read("UCSR0A") & 0x40:
        chip.step()
    assert chip.cycle - begun == pytest.approx(2080 - 1000, abs=3)


@pytest.mark.parametrize("stopped", ["UCSR0B", "SPCR", "TWBR", "ADMUX", "TCCR0A"])
def test_a_block_can_be_stopped_at_cycle_0(stopped):
    chip = idle()
    chip.write("PRR", 0xEF)
    chip.write(stopped, 1)
    assert (chip.cycle, chip.read(stopped)) == (0, 0)
    chip.run(cycles=10)
    chip.write(stopped, 1)
    assert chip.read(stopped) == 0


def test_the_comparator_has_no_multiplexer_while_the_adc_is_stopped():
    """DS 10.11.3. ADC0 is above the band gap, AIN1 below it."""
    chip = idle()
    chip.set_adc("ADC0", 2.0)
    chip.write("ADCSRB", 0x40)
    chip.write("ACSR", 0x40)
    chip.run(cycles=10)
    assert not chip.read("ACSR") & 0x20
    chip.write("PRR", 1)
    chip.run(cycles=10)
    assert chip.read("ACSR") & 0x20


# ---- stopped clocks in sleep ---------------------------------------------------------------------

WATCHDOG = 6


def sleeper(mode, prescaler, wait):
    """Timer 0 runs; sleep until the watchdog wakes; read the timer first thing in the routine."""
    a = Assembler()
    a(jmp(0x40)).org(2 * WATCHDOG)(in_(20, TCNT0), reti())
    a.org(0x40)(put(WDTCSR, 0x40), ldi(16, mode << 1 | 1), out(SMCR, 16), put_io(TCCR0B, prescaler))
    a(nops(wait), sei())
    a.label("sleep")(sleep(), LOOP)
    return chip_of(a.words()), 2 * a.word_address("sleep")


@pytest.mark.parametrize("mode", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("wait", range(18))
@pytest.mark.parametrize(("prescaler", "divisor"), [(1, 1), (2, 8), (3, 64)])
def test_io_clock_stands_still_in_deep_sleep(mode, wait, prescaler, divisor):
    """The edges that count: up to the one SLEEP ends at, and those after the start-up."""
    chip, place = sleeper(mode, prescaler, wait)
    asleep = run_to(chip, place) + 1
    started = asleep - 2 - wait  # edge at which the clock select landed
    assert chip.read("TCNT0") == (asleep - 1) // divisor - started // divisor
    entered = run_to(chip, vector(WATCHDOG))
    chip.step()
    awake = 4 + D  # wake-up and entry after the clock runs again
    running = asleep + awake
    assert chip.registers[20] == (running // divisor - started // divisor) & 0xFF
    start_up = 0 if mode == 1 else 6
    assert entered == 128_000 + 1 + start_up + awake


@pytest.mark.parametrize("wait", range(18))
def test_io_clock_runs_on_in_idle(wait):
    chip, place = sleeper(0, 2, wait)
    asleep = run_to(chip, place) + 1
    entered = run_to(chip, vector(WATCHDOG))
    chip.step()
    assert chip.registers[20] == (entered // 8 - (asleep - 2 - wait) // 8) & 0xFF


def test_adc_conversion_stands_still_in_power_down():
    a = Assembler()
    a(jmp(0x40)).org(2 * WATCHDOG)(nops(1), reti())
    a.org(0x40)(put(WDTCSR, 0x40), put_io(SMCR, 0x05), wdr(), sei())
    a.label("sleep")(sleep(), sled(500))
    chip = chip_of(a.words())
    run_to(chip, 2 * a.word_address("sleep"))
    chip.write("ADCSRA", 0xC6)  # clk/64: 25 ADC clocks
    begun = chip.cycle
    woken = run_to(chip, vector(WATCHDOG))
    while chip.read("ADCSRA") & 0x40:
        chip.step()
    slept = woken - 4 - D - (begun + 1)
    assert chip.cycle - begun - slept == pytest.approx(25 * 64, abs=3)


# ---- MCUCR ---------------------------------------------------------------------------------------

IVSEL, IVCE, PUD = 0x02, 0x01, 0x10


@pytest.mark.jit_off
@pytest.mark.parametrize("distance", range(8))
def test_ivsel_window(distance):
    chip = idle()
    got = writes_apart(chip, "MCUCR", IVCE, IVSEL, distance)
    works = 1 <= distance <= 3
    assert got & IVSEL == (IVSEL if works else 0)
    assert int(chip._c.vector_base) == (BOOT if works else 0)


def test_every_value_of_mcucr():
    for value in range(256):
        chip = idle()
        chip.write("MCUCR", value)
        assert chip.read("MCUCR") == value & (PUD | IVCE)
        steps(chip, 4)
        assert chip.read("MCUCR") == value & PUD
    for value in range(256):
        got = writes_apart(idle(), "MCUCR", IVCE, value, 2)
        if value & IVCE:  # the change must be written with IVCE 0
            assert got == value & PUD | IVCE
        else:
            assert got == value & (PUD | IVSEL)


@pytest.mark.parametrize("high", [0xD9, 0xDB, 0xDD, 0xDF])
def test_vectors_move_to_the_boot_section(high):
    start = {0xD9: 0x3800, 0xDB: 0x3C00, 0xDD: 0x3E00, 0xDF: 0x3F00}[high]
    a = Assembler()
    timer = put(TIMSK0, 2) + put_io(OCR0A, 50) + put_io(TCCR0B, 1)
    a(jmp(0x40)).org(0x40)(ldi(16, IVCE), ldi(17, IVSEL), out(MCUCR, 16), out(MCUCR, 17))
    a(timer, sei(), sled(100)).org(start + 2 * 14)(LOOP)
    chip = chip_of(a.words(), high=high)
    run_to(chip, 2 * start + vector(14), max_cycles=200)
    chip.reset()
    assert chip.read("MCUCR") == 0
    assert int(chip._c.vector_base) == 0


def pending(*parts):
    """A chip with INT0 requested (level low) that runs these parts with interrupts on."""
    a = Assembler()
    a(jmp(0x40)).org(2)(LOOP)
    a.org(BOOT + 2)(LOOP)
    a.org(0x40)(ldi(16, IVCE), ldi(17, IVSEL), ldi(18, 1), sei(), *parts, sled(50))
    chip = chip_of(a.words())
    chip.set_pin("PD2", 0)
    return chip


@pytest.mark.jit_off
@pytest.mark.parametrize("instructions", range(6))
def test_ivce_alone_holds_interrupts_for_four_cycles(instructions):
    """INT0 is enabled by an OUT right after, or some NOPs after, the one that sets IVCE."""
    chip = pending(out(MCUCR, 16), nops(instructions), out(EIMSK, 18))
    landed = 3 + 4 + 1  # JMP, three LDI, SEI, OUT
    enabled = landed + instructions + 1
    entered = run_to(chip, vector(1), max_cycles=100)
    first_boundary = max(landed + 5, enabled + 1)
    assert entered == first_boundary + D


def test_interrupts_are_held_until_after_the_instruction_that_follows_the_change():
    chip = pending(out(MCUCR, 16), out(EIMSK, 18), out(MCUCR, 17))
    changed = 3 + 4 + 3
    entered = run_to(chip, 2 * BOOT + vector(1), max_cycles=100)
    assert entered == changed + 1 + D


@pytest.mark.jit_off
def test_pull_up_disable():
    chip = idle()
    chip.write("PORTB", 0x01)
    chip.write("PORTD", 0x80)
    steps(chip, 2)
    assert (chip.pin("PB0"), chip.pin("PD7")) == (1, 1)
    chip.write("MCUCR", PUD)
    steps(chip, 2)
    assert (chip.pin("PB0"), chip.pin("PD7")) == (0, 0)
    assert chip.read("PINB") & 1 == 0
    chip.write("DDRB", 0x01)
    steps(chip, 2)
    assert chip.pin("PB0") == 1
    chip.write("MCUCR", 0)
    steps(chip, 2)
    assert chip.pin("PD7") == 1
