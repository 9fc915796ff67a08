"""The bench around a chip: what a test or a notebook can do with it, and what it refuses."""

import numpy as np
import pytest

from avrswarm import Chip
from avrswarm.chip.registers import REGISTERS
from avrswarm.errors import UsageError
from avrswarm.program import Program
from tests.chip.section11 import boot, nops, put, run_to, sled
from tests.reference.assemble import DDRB, PORTB, TCCR0B, Assembler, call, ldi, nop, ret, rjmp

LOOP = rjmp(-1)

pytestmark = pytest.mark.jit_off


def test_run_ends_at_the_first_boundary_at_or_after():
    chip = boot(nop(), LOOP)
    assert chip.run(cycles=4) == "cycles"
    assert chip.cycle == 5  # RJMP takes two
    assert chip.run(cycles=0) == "cycles"
    assert chip.cycle == 5
    chip.step()
    assert (chip.cycle, chip.pc) == (7, 2)


def test_run_until_stops_before_the_place_and_moves_on_from_it():
    a = Assembler()
    a.label("again")(nop(), nop()).branch(rjmp, "again")
    chip = Chip(Program.from_words(a.words()))
    cycles = []
    for _ in range(3):
        assert chip.run_until(pc=2) == "breakpoint"
        cycles.append(chip.cycle)
    assert cycles == [1, 5, 9]
    assert chip.run_until(pc=0x100, max_cycles=50) == "cycles"


def test_a_breakpoint_leaves_no_trace():
    chip = boot(sled())
    other = boot(sled())
    chip.run_until(pc=100)
    other.run(cycles=50)
    assert chip.digest() == other.digest()


def test_registers_by_name():
    chip = boot(sled())
    for name in ("GPIOR0", "OCR0A", "EEDR", "DDRB", "TWBR"):
        chip.write(name, 0xA5)
        assert chip.read(name) == 0xA5
        assert chip.data[REGISTERS[name]] == 0xA5
    chip.write("OCR1A", 0x1234)
    assert chip.read("OCR1A") == 0x1234
    assert (chip.read("OCR1AL"), chip.read("OCR1AH")) == (0x34, 0x12)
    chip.write("SP", 0x4FF)
    assert (chip.sp, chip.read("SP"), chip.read("SPL")) == (0x4FF, 0x4FF, 0xFF)
    chip.write("SREG", 0x81)
    assert chip.sreg == chip.read("SREG") == 0x81


def test_data_is_looked_at_without_side_effects():
    chip = boot(put(TCCR0B, 1), sled())
    chip.write("ADCSRA", 0xC0)
    chip.run(cycles=100)
    before = chip.digest()
    seen = chip.data
    assert chip.digest() == before
    assert seen[REGISTERS["TCNT0"]] == chip.read("TCNT0")
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        chip.flash[0] = 1


def test_poke_and_set_pc():
    chip = boot(nops(4), ldi(16, 1), LOOP)
    chip.poke(0x0100, 7)
    chip.poke(31, 9)
    chip.set_pc(8)
    chip.step()
    assert (chip.data[0x100], chip.registers[31], chip.registers[16], chip.cycle) == (7, 9, 1, 1)


def test_pins_from_inside_and_outside():
    chip = boot(put(DDRB, 1), put(PORTB, 3), sled())
    chip.run(cycles=20)
    assert (chip.pin("PB0"), chip.pin("PB1"), chip.pin("PB2")) == (1, 1, 0)  # output, pull-up, open
    chip.set_pin("PB1", 0)
    chip.set_pin("PB2", 1, at=100)
    chip.set_pin("PB0", 0)  # the chip drives it
    assert (chip.pin("PB0"), chip.pin("PB1"), chip.pin("PB2")) == (1, 0, 0)
    chip.run(cycles=90)
    assert chip.pin("PB2") == 1
    chip.set_pin("PB1", None)
    assert chip.pin("PB1") == 1


def test_watched_pins_are_logged_with_their_cycles():
    chip = boot(put(DDRB, 2), nops(10), put(PORTB, 2), nops(5), put(PORTB, 0), sled())
    chip.watch_pins("PB1")
    chip.run(cycles=100)
    assert chip.pin_log == [(16, 0, 2), (24, 0, 0)]


def test_uart_send_is_received():
    chip = boot(put(0xC4, 12), put(0xC1, 0x10), sled())  # UBRR0L, RXEN
    chip.run(cycles=20)
    end = chip.uart_send(b"ok")
    chip.run(cycles=end - chip.cycle + 100)
    assert [chip.read("UDR0"), chip.read("UDR0")] == list(b"ok")


def test_eeprom_is_writable_and_given():
    content = bytes(range(256)) * 4
    chip = Chip(Program.from_words(LOOP), eeprom=content)
    assert bytes(chip.eeprom) == content
    chip.eeprom[3] = 0xEE
    assert chip.eeprom[3] == 0xEE


def test_reset_pin():
    chip = boot(put(TCCR0B, 1), put(PORTB, 0x55), sled())
    chip.run(cycles=100)
    chip.poke(0x200, 0x77)
    chip.reset()
    assert (chip.pc, chip.sp, chip.read("PORTB"), chip.read("TCCR0B")) == (0, 0x8FF, 0, 0)
    assert chip.read("MCUSR") == 0x03  # power-on, and the pin
    assert chip.data[0x200] == 0x77


def test_snapshot_is_independent_of_the_chip():
    a = Assembler()
    a.label("top").absolute(call, "work").branch(rjmp, "top").label("work")(nops(3), ret())
    chip = Chip(Program.from_words(a.words()))
    chip.set_pin("PD2", 1, at=700)
    chip.run(cycles=333)
    saved = chip.snapshot()
    digest = chip.digest()
    chip.run(cycles=1000)
    ahead = chip.digest()
    chip.poke(0x300, 1)
    twin = Chip.restore(saved)
    assert twin.digest() == digest
    twin.run(cycles=1000)
    assert twin.digest() == ahead
    assert chip.restore(saved) is chip
    assert chip.digest() == digest


def test_clock_and_seconds():
    chip = Chip(Program.from_words(nop() * 100 + rjmp(-101)), clock_hz=16_000_000)
    chip.run(cycles=1600)
    assert chip.seconds == pytest.approx(chip.cycle / 16e6, rel=1e-12)


def test_halted():
    """Asleep, or in an empty loop, with interrupts off: nothing more can happen."""
    chip = Chip(Program.from_words(nop() + LOOP), stop_when_halted=True)
    assert chip.run(cycles=1_000_000) == "halted"
    assert chip.cycle < 10
    assert run_to(boot(sled()), 20) == 10


def test_idle_skipping_can_be_switched_off():
    fast, slow = (Chip(Program.from_words(nop() + LOOP), skip_idle=on) for on in (True, False))
    for chip in (fast, slow):
        chip.run(cycles=20_001)
    assert fast.digest() == slow.digest()
    np.testing.assert_array_equal(fast.data, slow.data)


REFUSED = {
    "no register 'TCNT3'; did you mean TCNT": lambda chip: chip.read("TCNT3"),
    "no register 'PORTE'": lambda chip: chip.write("PORTE", 0),
    "8-bit register; 256 does not fit": lambda chip: chip.write("OCR0A", 256),
    "16-bit register; -1 does not fit": lambda chip: chip.write("OCR1A", -1),
    "no pin 'PC7'": lambda chip: chip.pin("PC7"),
    "no pin 'B0'": lambda chip: chip.set_pin("B0", 1),
    "0, 1 or None": lambda chip: chip.set_pin("PB0", 2),
    "no analog input 'ADC9'": lambda chip: chip.set_adc("ADC9", 1.0),
    "ADC3: nan V is not within 1000 V": lambda chip: chip.set_adc("ADC3", float("nan")),
    "cycle 5 is past": lambda chip: chip.set_pin("PB0", 1, at=5),
    "cycle 3 is past": lambda chip: chip.pulse_comparator([3], 10),
    "either pc=BYTE_ADDRESS or symbol=NAME": lambda chip: chip.run_until(),
    "pc=0x3 is no instruction address": lambda chip: chip.run_until(pc=3),
    "pc=0x8000 is no instruction address": lambda chip: chip.run_until(pc=0x8000),
    "no symbol 'main'": lambda chip: chip.run_until(symbol="main"),
    "0x7 is no instruction address": lambda chip: chip.set_pc(7),
    "poke takes register or SRAM addresses, not 0x900": lambda chip: chip.poke(0x900, 1),
    "poke takes register or SRAM addresses, not 0x25": lambda chip: chip.poke(0x25, 1),
    "clock_hz must be": lambda chip: Chip(chip.program, clock_hz=0),
    "an EEPROM image has 1024 bytes, not 3": lambda chip: Chip(chip.program, eeprom=b"abc"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_the_bench_refuses(message):
    chip = boot(sled())
    chip.run(cycles=10)
    with pytest.raises(UsageError) as caught:
        REFUSED[message](chip)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2
