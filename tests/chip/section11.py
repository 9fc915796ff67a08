"""What the tests of section 11 of the timing reference share: small programs, and time.

Time is the chip's cycle count. At an instruction boundary, `chip.read(name)` shows the state of
the cycle in which the next instruction starts, so stepping through NOPs shows a register cycle by
cycle.
"""

from collections.abc import Callable, Mapping

from avrswarm import Chip
from avrswarm.program import Program
from tests.reference.assemble import Assembler, jmp, ldi, nop, out, rjmp, sts

D = 3  # dead cycles of interrupt entry (timing reference 2.2: recommended 3)
MAIN = 0x100  # word address of the main program when there are interrupt routines
ROUTINES = 0x80  # word address of interrupt routines that do not fit into their vector
START_UP = 14 + 512_000  # from a reset to the first instruction: SUT = 10, 8192 cycles of 128 kHz
BOOT = 0x3800  # first word of the boot section for BOOTSZ = 00, as in the default fuses


def boot(*parts: list[int], isr: Mapping[int, list[int]] | None = None, main: int = MAIN) -> Chip:
    """A chip with a program that starts at once (cycle 0), or with interrupt routines.

    With `isr` (vector number -> instructions) the reset vector jumps to the main program, cycle 3.
    A routine of up to two words stands in the vector itself, a longer one is jumped to.
    """
    a = Assembler()
    if isr is not None:
        a(jmp(main))
        routine = ROUTINES
        for number, words in isr.items():
            a.org(2 * number)
            if len(words) <= 2:
                a(words)
            else:
                a(jmp(routine)).org(routine)(words)
                routine += len(words)
        a.org(main)
    a(*parts)
    return Chip(Program.from_words(a.words()))


def boot_section(*parts: list[int], rest: Mapping[int, list[int]] | None = None) -> Chip:
    """A chip whose reset vector jumps to a program in the boot section; `rest` is other flash
    content.
    """
    a = Assembler()
    a(jmp(BOOT))
    for address, words in (rest or {}).items():
        a.org(address)(words)
    a.org(BOOT)(*parts)
    return Chip(Program.from_words(a.words()))


def put(register: int, value: int, using: int = 16) -> list[int]:
    """LDI and STS: 3 cycles, lands at the end."""
    return ldi(using, value) + sts(register, using)


def put_io(register: int, value: int, using: int = 16) -> list[int]:
    """LDI and OUT: 2 cycles, lands at the end."""
    return ldi(using, value) + out(register, using)


def nops(count: int) -> list[int]:
    return nop() * count


def sled(count: int = 1000) -> list[int]:
    """NOPs in a loop: a main program in which nearly every cycle is an instruction boundary."""
    return nops(count) + rjmp(-count - 1)


def vector(number: int) -> int:
    """Byte address of an interrupt vector."""
    return 4 * number


def run_to(chip: Chip, pc: int, max_cycles: int = 1_000_000) -> int:
    """Run to a byte address, which must be reached, and return the cycle."""
    chip.run_until(pc=pc, max_cycles=max_cycles)
    assert chip.pc == pc, f"stopped at {chip.pc:#06x} in cycle {chip.cycle}, wanted {pc:#06x}"
    return chip.cycle


def run_steps(chip: Chip, count: int) -> None:
    for _ in range(count):
        chip.step()


def register(chip: Chip, number: int) -> int:
    return int(chip.data[number])


def registers(chip: Chip, first: int, last: int) -> list[int]:
    return [int(value) for value in chip.data[first : last + 1]]


def first_cycle(
    chip: Chip, condition: Callable[[], object], near: int | None = None, within: int = 3000
) -> int:
    """The cycle in which `condition` is first true, seen cycle by cycle in a sled.

    With `near`, the chip first runs to a little before that cycle, where it must not be true yet.
    """
    if near is not None and near - 20 > chip.cycle:
        chip.run(cycles=near - 20 - chip.cycle)
    assert not condition(), f"already true in cycle {chip.cycle}"
    for _ in range(within):
        before = chip.cycle
        chip.step()
        if condition():
            assert chip.cycle == before + 1, "not seen to the cycle: the step was longer"
            return chip.cycle
    raise AssertionError(f"did not happen up to cycle {chip.cycle}")


def bit(chip: Chip, name: str, number: int) -> int:
    """A register bit, looked at without side effects."""
    return chip.read(name) >> number & 1
