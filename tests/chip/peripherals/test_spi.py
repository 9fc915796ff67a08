"""SPI with MOSI wired to MISO, or a fixed byte coming in, and the chip as a slave's registers."""

import pytest

from tests.chip.peripherals.bench import first_seen, go_to, idle_chip
from tests.chip.section11 import boot, put_io, register, run_to, sled, vector
from tests.reference.assemble import (
    DDRB,
    SPCR,
    SPDR,
    SPSR,
    in_,
    inc,
    ldi,
    out,
    reti,
    rjmp,
    sbrs,
    sei,
)

SPIE, SPE, DORD, MSTR = 0x80, 0x40, 0x20, 0x10
SPIF, WCOL, SPI2X = 0x80, 0x40, 0x01
SS = 0x04
SPI_VECTOR = 17


def master(control=0, double=0):
    chip = idle_chip()
    chip.write("DDRB", SS)
    chip.write("SPSR", double)
    chip.write("SPCR", SPE | MSTR | control)
    return chip


def flag(chip):
    return chip.data[0x4D] & SPIF  # looked at without arming anything


@pytest.mark.jit_off
@pytest.mark.parametrize("double", [0, 1])
@pytest.mark.parametrize(("rate", "divider"), [(0, 4), (1, 16), (2, 64), (3, 128)])
def test_transfer_takes_eight_periods(rate, divider, double):
    chip = master(rate, double)
    go_to(chip, 20)
    for byte in (0x00, 0xA5, 0xFF):
        start = chip.cycle
        chip.write("SPDR", byte)
        first_seen(chip, start + 8 * divider // (1 + double), lambda: flag(chip))
        assert chip.read("SPSR") == SPIF | double
        assert chip.read("SPDR") == byte
        assert chip.read("SPSR") == double


def test_what_comes_from_outside():
    chip = master(DORD)
    chip._c.spi_input = 0x3C
    chip.write("SPDR", 0xFF)
    chip.run(cycles=40)
    assert chip.read("SPDR") == 0x3C


def test_flag_needs_both_accesses_in_order():
    chip = master()
    chip.write("SPDR", 0x11)
    chip.run(cycles=40)
    chip.read("SPDR")  # not preceded by a read of SPSR that showed SPIF
    assert flag(chip)
    assert chip.read("SPSR") & SPIF
    assert flag(chip)
    chip.write("SPDR", 0x22)  # a write counts as an access too, and starts the next transfer
    assert not flag(chip)
    first_seen(chip, chip.cycle + 32, lambda: flag(chip))
    assert chip.read("SPDR") == 0x22


@pytest.mark.jit_off
def test_write_collision():
    chip = master()
    start = chip.cycle
    chip.write("SPDR", 0x11)
    go_to(chip, start + 16)
    chip.write("SPDR", 0x99)
    assert chip.read("SPSR") == WCOL
    first_seen(chip, start + 32, lambda: flag(chip))
    assert chip.read("SPDR") == 0x11  # clears WCOL, which SPSR has shown; SPIF it has not
    assert chip.read("SPSR") == SPIF
    chip.read("SPDR")
    assert chip.read("SPSR") == 0


def test_write_that_lands_with_the_end_is_no_collision():
    chip = master()
    start = chip.cycle
    chip.write("SPDR", 0x11)
    go_to(chip, start + 32)
    chip.write("SPDR", 0x22)
    assert chip.read("SPSR") == SPIF
    go_to(chip, start + 64)
    assert chip.read("SPDR") == 0x22


def test_switching_off_ends_the_transfer():
    chip = master()
    chip.write("SPDR", 0x11)
    chip.run(cycles=10)
    chip.write("SPCR", MSTR)
    chip.write("SPCR", MSTR | SPE)
    chip.run(cycles=100)
    assert chip.read("SPSR") == 0


def test_nothing_is_sent_while_off():
    chip = idle_chip()
    chip.write("SPCR", MSTR)
    chip.write("SPDR", 0x11)
    chip.run(cycles=100)
    assert chip.read("SPSR") == 0


def test_low_slave_select_takes_the_bus():
    """SS as an input: the master becomes a slave and SPIF tells it (DS 18.3.2)."""
    chip = idle_chip()
    chip.set_pin("PB2", 1)
    chip.run(cycles=5)
    chip.write("SPCR", SPE | MSTR)
    chip.write("SPDR", 0x55)
    chip.run(cycles=10)
    assert chip.read("SPCR") == SPE | MSTR
    chip.set_pin("PB2", 0)
    chip.run(cycles=5)
    assert chip.read("SPCR") == SPE
    assert chip.read("SPSR") == SPIF
    chip.run(cycles=100)
    chip.set_pin("PB2", 1)
    chip.run(cycles=5)
    assert chip.read("SPCR") == SPE  # MSTR has to be set again by the program
    chip.write("SPCR", SPE | MSTR)
    assert chip.read("SPCR") == SPE | MSTR


def test_low_slave_select_interrupts():
    """The pin alone does it: no access to the SPI is needed."""
    setup = put_io(SPCR, SPIE | SPE | MSTR) + sei()
    chip = boot(setup, sled(), isr={SPI_VECTOR: inc(20) + reti()})
    chip.set_pin("PB2", 1)
    chip.run(cycles=50)
    assert register(chip, 20) == 0
    chip.set_pin("PB2", 0, at=chip.cycle + 20)
    chip.run(cycles=60)
    assert register(chip, 20) == 1
    assert chip.read("SPCR") == SPIE | SPE


def test_stopped_clock_stretches_the_transfer():
    chip = master()
    start = chip.cycle
    chip.write("SPDR", 0x11)
    go_to(chip, start + 10)
    chip.write("PRR", 0x04)
    go_to(chip, start + 110)
    chip.write("PRR", 0x00)
    first_seen(chip, start + 132, lambda: flag(chip))


def test_reset_keeps_what_is_wired_outside():
    chip = master()
    chip._c.spi_input = 0x3C
    chip.reset()
    chip.run_to_wake(max_cycles=1_000_000)
    chip.write("DDRB", SS)
    chip.write("SPCR", SPE | MSTR)
    chip.write("SPDR", 0xFF)
    chip.run(cycles=40)
    assert chip.read("SPDR") == 0x3C


def test_slave_select_as_an_output_is_free():
    chip = master()
    assert chip.pin("PB2") == 0
    chip.run(cycles=10)
    assert chip.read("SPCR") == SPE | MSTR


def test_registers_hold_what_they_can():
    chip = idle_chip()
    chip.write("DDRB", SS)
    chip.write("SPCR", 0xFF)
    chip.write("SPSR", 0xFF)
    assert (chip.read("SPCR"), chip.read("SPSR")) == (0xFF, SPI2X)


def test_polling_program():
    setup = put_io(DDRB, SS) + put_io(SPCR, SPE | MSTR | 3) + put_io(SPDR, 0x77)
    poll = in_(16, SPSR) + sbrs(16, 7) + rjmp(-3)
    chip = boot(setup, poll, in_(20, SPDR), in_(21, SPSR), rjmp(-1))
    chip.run(cycles=6 + 1024 - 1)
    assert register(chip, 20) == 0
    chip.run(cycles=20)
    assert (register(chip, 20), register(chip, 21)) == (0x77, 0)


def test_interrupt_at_the_end_of_a_transfer():
    """Once: its vector clears SPIF."""
    setup = put_io(DDRB, SS) + put_io(SPCR, SPIE | SPE | MSTR) + sei() + ldi(17, 0x4D)
    chip = boot(
        setup, out(SPDR, 17), sled(), isr={SPI_VECTOR: inc(20) + in_(21, SPDR) + inc(22) + reti()}
    )
    start = run_to(chip, 0x200 + 2 * len(setup)) + 1
    assert run_to(chip, vector(SPI_VECTOR)) == start + 32 + 1 + 3
    chip.run(cycles=500)
    assert [register(chip, n) for n in (20, 21, 22)] == [1, 0x4D, 1]
    assert chip.read("SPSR") == 0
