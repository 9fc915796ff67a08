"""INT0/1, PCINT and the log of pin changes (DS 13, 14; timing reference 9)."""

import pytest

from avrswarm import Chip
from avrswarm.chip.peripherals import gpio
from avrswarm.program import Program
from tests.chip.peripherals.bench import first_seen, go_to, idle_chip
from tests.chip.peripherals.memories import in_boot_section, set_z, strobe
from tests.chip.section11 import Assembler, D, boot, nops, put, put_io, run_to, sled, vector
from tests.reference.assemble import (
    DDRB,
    DDRD,
    EIMSK,
    OCR0A,
    OCR1AL,
    OCR2A,
    PORTB,
    SPMCSR,
    TCCR0A,
    TCCR0B,
    TCCR1A,
    TCCR1B,
    TCCR2A,
    TCCR2B,
    UBRR0L,
    UCSR0A,
    UCSR0B,
    UDR0,
    brne,
    cli,
    dec,
    inc,
    jmp,
    ldi,
    lds,
    nop,
    out,
    reti,
    rjmp,
    sbrs,
    sei,
    spm,
    sts,
)

INT0, PCINT0 = 1, 3
LOW, ANY, FALLING, RISING = range(4)  # ISCn1:0, DS table 13-1


# ---- latency: pin to flag, as the named constants say --------------------------------------------


@pytest.mark.jit_off
@pytest.mark.parametrize(("number", "pin"), [(0, "PD2"), (1, "PD3")])
@pytest.mark.parametrize("sense", [ANY, FALLING, RISING])
def test_flag_of_an_edge(number, pin, sense):
    """The selected edge sets the flag after the synchroniser; the other one does not."""
    chip = idle_chip()
    before = 0 if sense == RISING else 1
    chip.set_pin(pin, before)
    go_to(chip, 10)
    chip.write("EICRA", sense << 2 * number)
    for edge, level in ((100, 1 - before), (200, before)):
        chip.set_pin(pin, level, at=edge)
        seen = level == 1 - before or sense == ANY
        if seen:
            first_seen(chip, edge + gpio.INT_DELAY, lambda: chip.read("EIFR") == 1 << number)
            chip.write("EIFR", 1 << number)
        go_to(chip, edge + 50)
        assert chip.read("EIFR") == 0


@pytest.mark.jit_off
@pytest.mark.parametrize(("port", "pin"), [(0, "PB5"), (1, "PC3"), (2, "PD7")])
@pytest.mark.parametrize("level", [0, 1])
def test_flag_of_a_pin_change(port, pin, level):
    chip = idle_chip()
    chip.set_pin(pin, 1 - level)
    go_to(chip, 10)
    chip.write(f"PCMSK{port}", 1 << int(pin[2]))
    chip.set_pin(pin, level, at=100)
    first_seen(chip, 100 + gpio.PCINT_DELAY, lambda: chip.read("PCIFR") == 1 << port)


# ---- low level -----------------------------------------------------------------------------------


def level_chip(*main):
    """INT0 by level and on; the routine counts in r20, the main program runs these parts."""
    chip = boot(put_io(EIMSK, 1), ldi(21, 0), *main, isr={INT0: inc(20) + reti()})
    chip.set_pin("PD2", 1)
    return chip


@pytest.mark.jit_off
def test_low_level_asks_again_after_each_instruction():
    """Section 2.2: the routine is entered as long as the pin is low, and after each RETI one
    instruction of the main program runs.
    """
    chip = level_chip(sei(), inc(21) * 100, rjmp(-1))
    chip.set_pin("PD2", 0, at=20)
    chip.set_pin("PD2", 1, at=300)
    chip.run(cycles=100)
    per_round = 1 + D + 1 + 4  # INC of the main program, entry, INC, RETI
    counted, passed = chip.registers[20:22]
    assert counted > 5
    chip.run(cycles=10 * per_round)
    assert chip.registers[20:22] == [counted + 10, passed + 10]
    chip.run(cycles=150)
    stopped = chip.registers[20]
    chip.run(cycles=200)
    assert chip.registers[20] == stopped


@pytest.mark.jit_off
def test_low_level_request_passes_the_synchroniser():
    chip = level_chip(sei(), sled())
    chip.set_pin("PD2", 0, at=100)
    # seen in cycle 102, the last one of the NOP that then runs
    assert run_to(chip, vector(INT0)) == 100 + gpio.INT_DELAY + 1 + D


@pytest.mark.jit_off
@pytest.mark.parametrize("length", range(1, 8))
def test_low_level_must_last_to_the_end_of_the_instruction(length):
    """A 2-cycle loop samples every other cycle: a pulse of one cycle may be missed, of two not."""
    entered = []
    for start in (100, 101):
        chip = level_chip(sei(), rjmp(-1))
        chip.set_pin("PD2", 0, at=start)
        chip.set_pin("PD2", 1, at=start + length)
        chip.run(cycles=200)
        entered.append(chip.registers[20])
    assert min(entered) == 0 if length == 1 else min(entered) >= 1
    assert max(entered) >= 1


@pytest.mark.jit_off
def test_low_level_has_no_flag():
    chip = idle_chip()
    chip.set_pin("PD2", 1)
    go_to(chip, 10)
    chip.set_pin("PD2", 0, at=20)
    go_to(chip, 50)
    assert chip.read("EIFR") == 0


@pytest.mark.jit_off
@pytest.mark.parametrize("number", [0, 1])
def test_choosing_the_level_clears_the_flag(number):
    """DS 13.2.3: the flag is always cleared with a level selected."""
    chip = idle_chip()
    pin = ("PD2", "PD3")[number]
    chip.write("EICRA", ANY << 2 * number)
    chip.set_pin(pin, 1, at=20)
    go_to(chip, 50)
    assert chip.read("EIFR") == 1 << number
    chip.write("EICRA", LOW)
    assert chip.read("EIFR") == 0
    chip.write("EICRA", ANY << 2 * number)
    assert chip.read("EIFR") == 0


@pytest.mark.jit_off
def test_a_mask_opened_while_the_pin_is_low():
    chip = boot(sei(), sled(), isr={INT0: reti()})
    chip.run(cycles=50)
    chip.write("EIMSK", 1)
    assert run_to(chip, vector(INT0), max_cycles=20) == 50 + 1 + D


# ---- what is watched is never lost ---------------------------------------------------------------


def toggling(*then):
    """Timers 0, 1 and 2 toggle PD6, PB1 and PB3 at every cycle, with interrupts off."""
    return [
        *put_io(DDRB, 0xFF), *put_io(DDRD, 0xFF),
        *put_io(TCCR0A, 0x42), *put(TCCR1A, 0x40), *put(TCCR2A, 0x42),
        *put_io(OCR0A, 0), *put(OCR1AL, 0), *put(OCR2A, 0),
        *put_io(TCCR0B, 1), *put(TCCR1B, 0x09), *put(TCCR2B, 1),
        *(word for part in then for word in part),
    ]  # fmt: skip


def edges(chip, pin):
    """Cycles of the edges of a watched pin, in order."""
    port, bit = "BCD".index(pin[1]), int(pin[2])
    level, found = 0, []
    for cycle, _, levels in sorted(entry for entry in chip.pin_log if entry[1] == port):
        if levels >> bit & 1 != level:
            level = levels >> bit & 1
            found.append(cycle)
    return found


LONG = {
    "loop": rjmp(-1),
    "work": [*ldi(16, 0), *dec(16), *brne(-2), *dec(17), *brne(-4), *rjmp(-6)],
    "stream": nops(3000),
    "interrupts on": [*sei(), *rjmp(-1)],
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("skip_idle", [True, False])
def test_every_edge_of_watched_timers_is_recorded(name, skip_idle):
    start = toggling()
    program = Program.from_words([*start, *LONG[name]])
    chip = Chip(program, skip_idle=skip_idle)
    chip.watch_pins("PD6", "PB1", "PB3")
    chip.run(cycles=2500)
    for pin in ("PD6", "PB1", "PB3"):
        seen = edges(chip, pin)
        first, last = seen[0], chip.cycle - 10
        assert [cycle for cycle in seen if cycle < last] == list(range(first, last))
        assert first < 45


def test_serial_bytes_among_many_edges():
    sent = [*put(UCSR0A, 2), *put(UBRR0L, 0), *put(UCSR0B, 8)]
    loop = [*lds(16, UCSR0A), *sbrs(16, 5), *rjmp(-4), *sts(UDR0, 17), *inc(17), *rjmp(-8)]
    chip = Chip(Program.from_words(toggling(sent, ldi(17, 0), loop)))
    chip.watch_pins("PD6", "PB1", "PB3", "PD1")
    chip.run(cycles=5000)
    assert len(chip.uart) > 50
    assert chip.uart == bytes(range(len(chip.uart)))
    seen = [cycle for cycle in edges(chip, "PD6") if cycle < chip.cycle - 10]
    assert seen == list(range(seen[0], chip.cycle - 10))


def test_edges_while_the_cpu_is_halted():
    """A page erase in the section that code runs from halts the CPU for 4 ms: 32 000 cycles."""
    erase = [*set_z(2 * 0x3F00), *strobe(SPMCSR, 0x03), *spm(), *rjmp(-1)]
    chip = in_boot_section(toggling(erase))
    chip.watch_pins("PD6", "PB1", "PB3")
    chip.run(cycles=31_000)
    assert chip.cycle > 30_000
    chip.run(cycles=100)
    seen = [cycle for cycle in edges(chip, "PB3") if cycle < 30_000]
    assert seen == list(range(seen[0], 30_000))


def test_many_stimuli_at_once_and_a_level_of_no_length():
    chip = Chip(Program.from_words([*cli(), *rjmp(-1)]))
    chip.watch_pins(*(f"PB{bit}" for bit in range(8)), *(f"PD{bit}" for bit in range(8)))
    for _ in range(50):
        for level in (1, 0):
            for pin in ("PB0", "PD0"):
                chip.set_pin(pin, level, at=100)
    for cycle in range(200, 600):
        chip.set_pin("PB1", cycle & 1, at=cycle)
    chip.run(cycles=1000)
    assert [levels for cycle, _, levels in chip.pin_log if cycle == 100] == [0, 0]
    assert edges(chip, "PB1")[-399:] == list(range(201, 600))


@pytest.mark.jit_off
def test_a_change_that_finds_no_room_is_an_error():
    """The bench alone can do it: nobody empties the log between two of its writes."""
    chip = idle_chip()
    chip._c.log_count = len(chip._c.log)
    chip._c.log[:] = -1
    chip._c.logged_pins[0] = 1
    chip._bench(2, 0x24, 1)  # DDRB
    chip._bench(2, 0x25, 1)  # PORTB
    with pytest.raises(Exception, match="more pin changes within one instruction than can be kept"):
        chip.run(cycles=1)


@pytest.mark.jit_off
def test_pins_of_a_port_written_by_the_program():
    a = Assembler()
    a(jmp(0x40)).org(0x40)(put_io(DDRB, 1), ldi(16, 1), ldi(17, 0))
    a.label("loop")(out(PORTB, 16), nop(), out(PORTB, 17)).branch(rjmp, "loop")
    chip = Chip(Program.from_words(a.words()))
    chip.watch_pins("PB0")
    chip.run(cycles=5 * 200)
    assert len(edges(chip, "PB0")) == pytest.approx(400, abs=5)
