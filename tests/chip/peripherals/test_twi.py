"""TWI as the only master, with the bench's slave of 16 bytes on the bus, or with nobody."""

import pytest

from tests.chip.peripherals.bench import first_seen, go_to, idle_chip
from tests.chip.section11 import boot, put, register, run_to, sled, vector
from tests.reference.assemble import TWBR, TWCR, inc, ldi, lds, reti, rjmp, sbrs, sei, sts

TWINT, TWEA, TWSTA, TWSTO, TWWC, TWEN, TWIE = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x01
GO = TWINT | TWEN
SLAVE = 0x42
WRITE, READ = SLAVE << 1, SLAVE << 1 | 1
TWI_VECTOR = 24
TWCR_ADDRESS = 0xBC


def bus(slave=SLAVE, twbr=0, twps=0):
    chip = idle_chip()
    chip._c.twi_slave = slave
    chip.write("TWBR", twbr)
    chip.write("TWSR", twps)
    return chip


def flag(chip):
    return chip.read("TWCR") & TWINT


def operate(chip, control, data=None):
    """Start one operation, wait for TWINT; return the status and how long it took."""
    if data is not None:
        chip.write("TWDR", data)
    start = chip.cycle
    chip.write("TWCR", GO | control)
    assert not flag(chip)
    while not flag(chip):
        chip.run(cycles=1)
        assert chip.cycle < start + 1_000_000, "TWINT never came"
    return chip.read("TWSR") & 0xF8, chip.cycle - start


def statuses(chip, *operations):
    return [operate(chip, *operation)[0] for operation in operations]


@pytest.mark.parametrize(("twbr", "twps"), [(0, 0), (12, 0), (72, 0), (1, 1), (3, 2), (2, 3)])
def test_durations(twbr, twps):
    """A byte takes nine SCL periods; START one (assumption)."""
    period = 16 + 2 * twbr * 4**twps
    chip = bus(twbr=twbr, twps=twps)
    assert operate(chip, TWSTA) == (0x08, period)
    assert operate(chip, 0, WRITE) == (0x18, 9 * period)
    assert operate(chip, 0, 0x00) == (0x28, 9 * period)
    assert operate(chip, TWSTA) == (0x10, period)
    assert operate(chip, 0, READ) == (0x40, 9 * period)
    assert operate(chip, TWEA) == (0x50, 9 * period)
    assert operate(chip, 0) == (0x58, 9 * period)
    assert chip.read("TWSR") & 3 == twps


@pytest.mark.jit_off
def test_slave_remembers():
    """Index, then bytes; after a repeated START they come back, wrapping round at 16."""
    chip = bus()
    content = [0xDE, 0xAD, 0xBE]
    writes = [(0, value) for value in (WRITE, 14, *content)]
    assert statuses(chip, (TWSTA,), *writes) == [0x08, 0x18, 0x28, 0x28, 0x28, 0x28]
    assert statuses(chip, (TWSTA,), (0, WRITE), (0, 14)) == [0x10, 0x18, 0x28]
    assert statuses(chip, (TWSTA,), (0, READ)) == [0x10, 0x40]
    found = []
    for control in (TWEA, TWEA, 0):
        operate(chip, control)
        found.append(chip.read("TWDR"))
    assert found == content
    assert chip._c.twi_memory[14:].tolist() + chip._c.twi_memory[:1].tolist() == content


@pytest.mark.parametrize("slave", [-1, SLAVE + 1])
def test_nobody_answers(slave):
    chip = bus(slave)
    assert statuses(chip, (TWSTA,), (0, WRITE), (0, 0x55)) == [0x08, 0x20, 0x30]
    assert statuses(chip, (TWSTA,), (0, READ)) == [0x10, 0x48]
    assert chip._c.twi_memory.tolist() == [0] * 16


@pytest.mark.jit_off
def test_stop():
    """TWSTO goes when it is done, TWINT does not come, and the next START is a first one."""
    chip = bus()
    statuses(chip, (TWSTA,), (0, WRITE))
    start = chip.cycle
    chip.write("TWCR", GO | TWSTO)
    first_seen(chip, start + 16, lambda: not chip.read("TWCR") & TWSTO)
    assert chip.read("TWCR") == TWEN
    assert chip.read("TWSR") == 0xF8
    assert operate(chip, TWSTA) == (0x08, 16)


def test_stop_then_start_at_once():
    chip = bus()
    statuses(chip, (TWSTA,), (0, WRITE))
    assert operate(chip, TWSTO | TWSTA) == (0x08, 32)


def test_start_asked_for_while_the_stop_is_on_its_way():
    chip = bus()
    statuses(chip, (TWSTA,), (0, WRITE))
    start = chip.cycle
    chip.write("TWCR", GO | TWSTO)
    go_to(chip, start + 5)
    chip.write("TWCR", GO | TWSTA)
    assert chip.read("TWCR") == TWSTA | TWSTO | TWEN
    first_seen(chip, start + 32, lambda: flag(chip))
    assert chip.read("TWSR") == 0x08


def test_flag_stays_until_1_is_written():
    chip = bus()
    operate(chip, TWSTA)
    chip.write("TWCR", TWEN)
    assert flag(chip)
    chip.run(cycles=1000)
    assert chip.read("TWSR") == 0x08


def test_data_register_is_writable_only_with_the_flag():
    chip = bus()
    chip.write("TWDR", 0x12)
    assert chip.read("TWDR") == 0xFF
    assert chip.read("TWCR") & TWWC
    operate(chip, TWSTA)
    chip.write("TWDR", WRITE)
    assert not chip.read("TWCR") & TWWC
    chip.write("TWCR", GO)
    chip.write("TWDR", 0x34)
    assert chip.read("TWCR") == TWEN | TWWC
    chip.run(cycles=200)
    assert chip.read("TWSR") == 0x18
    assert chip.read("TWDR") == WRITE


def test_switching_off_leaves_the_bus():
    chip = bus()
    operate(chip, TWSTA)
    chip.write("TWDR", WRITE)
    chip.write("TWCR", GO)
    chip.run(cycles=10)
    chip.write("TWCR", 0)
    chip.run(cycles=1000)
    assert (chip.read("TWCR"), chip.read("TWSR")) == (0, 0xF8)
    assert operate(chip, TWSTA) == (0x08, 16)


def test_nothing_happens_while_off():
    chip = bus()
    chip.write("TWCR", TWINT | TWSTA)
    chip.run(cycles=1000)
    assert chip.read("TWCR") == TWSTA


def test_stopped_clock_stretches_the_byte():
    chip = bus()
    operate(chip, TWSTA)
    chip.write("TWDR", WRITE)
    start = chip.cycle
    chip.write("TWCR", GO)
    go_to(chip, start + 50)
    chip.write("PRR", 0x80)
    go_to(chip, start + 150)
    chip.write("PRR", 0x00)
    first_seen(chip, start + 9 * 16 + 100, lambda: flag(chip))


def test_reset_keeps_what_is_wired_outside():
    chip = bus()
    statuses(chip, (TWSTA,), (0, WRITE), (0, 5), (0, 0x99))
    chip.reset()
    chip.run_to_wake(max_cycles=1_000_000)
    assert chip.read("TWSR") == 0xF8
    assert statuses(chip, (TWSTA,), (0, WRITE), (0, 5), (TWSTA,), (0, READ)) == [
        0x08,
        0x18,
        0x28,
        0x10,
        0x40,
    ]
    operate(chip, 0)
    assert chip.read("TWDR") == 0x99


def test_polling_program():
    poll = lds(16, TWCR) + sbrs(16, 7) + rjmp(-4)
    chip = boot(put(TWBR, 100), put(TWCR, GO | TWSTA), poll, inc(20), rjmp(-1))
    chip.run(cycles=6 + 216 - 1)
    assert register(chip, 20) == 0
    chip.run(cycles=20)
    assert register(chip, 20) == 1


def test_registers_hold_what_they_can():
    chip = idle_chip()
    for name in ("TWBR", "TWSR", "TWAR", "TWAMR"):
        chip.write(name, 0xFF)
    found = [chip.read(name) for name in ("TWBR", "TWSR", "TWAR", "TWAMR")]
    assert found == [0xFF, 0xFB, 0xFF, 0xFE]


def test_interrupt_repeats_until_the_flag_is_cleared():
    setup = sei() + ldi(17, GO | TWSTA | TWIE)
    chip = boot(setup, sts(TWCR, 17), sled(), isr={TWI_VECTOR: inc(20) + reti()})
    start = run_to(chip, 0x200 + 2 * len(setup)) + 2
    assert run_to(chip, vector(TWI_VECTOR)) == start + 16 + 1 + 3
    chip.run(cycles=500)
    assert register(chip, 20) > 10


def test_interrupt_that_clears_the_flag_comes_once():
    clear = put(TWCR, GO | TWIE)  # in the state after START this sends TWDR, which is 0xFF
    chip = boot(
        sei(), put(TWCR, GO | TWSTA | TWIE), sled(), isr={TWI_VECTOR: inc(20) + clear + reti()}
    )
    chip.run(cycles=100)
    assert register(chip, 20) == 1
    chip.run(cycles=200)
    assert register(chip, 20) == 2
    assert chip.read("TWSR") == 0x48  # nobody is 0x7F
