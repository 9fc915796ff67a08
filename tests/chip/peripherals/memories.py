"""What the tests of EEPROM, self-programming, watchdog and clock share: programs and stepping.

Bench writes (`chip.write`) land in the cycle the chip stands at, so a distance of n cycles between
two writes is n NOPs between them.
"""

from dataclasses import replace

from avrswarm import Chip
from avrswarm.program import Program
from avrswarm.program.image import Fuses
from tests.chip.section11 import BOOT, sled
from tests.reference.assemble import CLKPR, Assembler, jmp, ldi, out, sts

LOW, LOCK, EXTENDED, HIGH = 0xE2, 0xFF, 0xFF, 0xD9  # the default fuses


def chip_of(words, **fuses) -> Chip:
    """A chip with these words from address 0 on, and other fuses or lock bits if given."""
    program = Program.from_words(words)
    lock = fuses.pop("lock", LOCK)
    settings = Fuses(**({"low": LOW, "high": HIGH, "extended": EXTENDED} | fuses))
    return Chip(replace(program, fuses=settings, lock=lock))


def idle(**fuses) -> Chip:
    """A chip that runs NOPs: one step, one cycle."""
    return chip_of(sled(), **fuses)


def in_boot_section(*parts, rest=None, **fuses) -> Chip:
    """A chip whose reset vector jumps to these instructions in the boot section."""
    a = Assembler()
    a(jmp(BOOT))
    for address, words in (rest or {}).items():
        a.org(address)(words)
    a.org(BOOT)(*parts)
    return chip_of(a.words(), **fuses)


def steps(chip, count):
    for _ in range(count):
        chip.step()


def writes_apart(chip, name, first, second, distance):
    """Make two bench writes so many cycles apart; return what is read back after them."""
    chip.write(name, first)
    steps(chip, distance)
    chip.write(name, second)
    return chip.read(name)


def set_z(byte_address):
    return ldi(30, byte_address & 0xFF) + ldi(31, byte_address >> 8)


def change_clock(select, using=16):
    """The timed sequence of CLKPR."""
    return ldi(using, 0x80) + ldi(using + 1, select) + sts(CLKPR, using) + sts(CLKPR, using + 1)


def strobe(register, value, using=16):
    return ldi(using, value) + out(register, using)
