"""What firmware can do wrong: reports of what the chip survives, faults for what has no meaning."""

from dataclasses import replace

import numpy as np
import pytest

from avrswarm import Chip
from avrswarm.chip.faults import Fault
from avrswarm.errors import ChipFault
from avrswarm.program import Program
from avrswarm.program.space import Space
from avrswarm.program.symbols import Kind, Symbol, Symbols
from tests.reference.assemble import (
    SPH,
    SPL,
    Assembler,
    brne,
    dec,
    ld,
    ldi,
    lds,
    nop,
    out,
    pop,
    push,
    rcall,
    rjmp,
    st,
    sts,
)

LOOP = rjmp(-1)
WORK = 4  # byte address of the function that goes wrong


def chip_of(*parts, **options):
    """A chip with two NOPs and then the function `work`."""
    program = Program.from_words([*nop(), *nop(), *(word for part in parts for word in part)])
    names = Symbols([Symbol("work", WORK, 0x100, Kind.FUNCTION, Space.FLASH)])
    return Chip(replace(program, symbols=names), **options)


def undefined_words():
    """The families of section 1.4 of the timing reference, bit by bit."""
    words = set(range(0x0001, 0x0100))
    for d in range(32):
        words |= {0x9000 | d << 4 | low for low in (0x3, 0x6, 0x7, 0x8, 0xB)}
        words |= {0x9200 | d << 4 | low for low in (0x3, 0x4, 0x5, 0x6, 0x7, 0x8, 0xB)}
        words |= {0x9400 | d << 4 | low for low in (0x4, 0xB)}
    words |= {high << 8 | x << 4 | 9 for high in (0x94, 0x95) for x in range(1, 16)}
    defined = {0x08, 0x18, 0x88, 0x98, 0xA8, 0xC8, 0xE8}
    words |= {0x9500 | x << 4 | 8 for x in range(16) if x << 4 | 8 not in defined}
    words |= {word for word in range(0xF800, 0x10000) if word & 0x08}
    return words


def test_every_undefined_word_is_a_fault():
    words = undefined_words()
    assert len(words) == 1766
    listed = sorted(words - {0xFFFF})  # erased flash runs, and is reported
    chip = Chip(Program.from_words([word for each in listed for word in (0, each)]))
    start = chip.snapshot()
    for number, word in enumerate(listed):
        chip.restore(start)
        chip.set_pc(4 * number)  # at the NOP before it
        place = 4 * number + 2
        with pytest.raises(ChipFault, match=f"undefined opcode: address {place:#06x} at cycle 1"):
            chip.run(cycles=10)
        assert (chip.pc, chip.cycle) == (place, 1), hex(word)


def test_fault_tells_program_place_function_instruction_and_a_hint():
    with pytest.raises(ChipFault) as caught:
        chip_of(nop(), [0x00FF]).run(cycles=10)
    assert caught.value.exit_code == 4
    assert str(caught.value) == (
        "the program: undefined opcode: address 0x0006 at cycle 3, pc 0x0006 "
        "(work+0x2: .word 0x00ff ; ????); the program counter ran into data or a corrupt image; "
        "check stack and function pointers"
    )


def test_a_chip_that_has_stopped_stays_stopped():
    chip = chip_of([0x0001])
    for _ in range(2):
        with pytest.raises(ChipFault):
            chip.run(cycles=10)
        assert chip.cycle == 2


STRAY = {
    Fault.READ_OUTSIDE: (lds(16, 0x0900), 0x0900, "lds r16, 0x0900"),
    Fault.WRITE_OUTSIDE: (sts(0xFFFF, 16), 0xFFFF, "sts 0xFFFF, r16"),
    Fault.RESERVED_READ: (lds(16, 0x63), 0x63, "lds r16, 0x0063"),
    Fault.RESERVED_WRITE: (sts(0xFF, 16), 0xFF, "sts 0x00FF, r16"),
}


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", STRAY, ids=lambda kind: kind.name)
def test_stray_access_is_reported_and_goes_on(kind):
    words, address, instruction = STRAY[kind]
    chip = chip_of(ldi(16, 0xA5), words, ldi(17, 1), LOOP)
    chip.run(cycles=100)
    (report,) = chip.reports
    assert (report.kind, report.pc, report.address) == (kind, WORK + 2, address)
    assert report.function == "work+0x2"
    assert report.instruction.partition(";")[0].strip() == instruction
    assert 3 <= report.cycle <= 5  # LDS reads in its second cycle, STS lands after it
    assert chip.registers[16] == (0xA5 if "WRITE" in kind.name else 0)
    assert chip.registers[17] == 1


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", STRAY, ids=lambda kind: kind.name)
def test_strict_makes_a_report_a_fault(kind):
    words, *_ = STRAY[kind]
    chip = chip_of(ldi(16, 0xA5), words, ldi(17, 1), LOOP, strict=True)
    with pytest.raises(ChipFault, match=r"pc 0x0006 \(work\+0x2: ..s "):
        chip.run(cycles=100)
    assert chip.registers[17] == 0
    assert chip.fault_pc == WORK + 2
    chip.reset()
    with pytest.raises(ChipFault, match=r"pc 0x0006"):  # again, though the place is known
        chip.run(cycles=1_000_000)


def test_once_per_place_with_the_first_cycle():
    chip = chip_of(ldi(16, 200), lds(17, 0x1000), lds(18, 0x1000), dec(16), brne(-6), LOOP)
    chip.run(cycles=20_000)
    assert chip.registers[16] == 0
    assert [(report.pc, report.cycle) for report in chip.reports] == [(6, 4), (10, 6)]


@pytest.mark.jit_off
def test_through_pointers_too():
    chip = chip_of(ldi(26, 0), ldi(27, 9), st("X+", 16), ld(17, "X"), LOOP)
    chip.run(cycles=100)
    assert [(report.kind, report.address) for report in chip.reports] == [
        (Fault.WRITE_OUTSIDE, 0x900),
        (Fault.READ_OUTSIDE, 0x901),
    ]


def test_more_places_than_are_kept():
    eight = chip_of(*[lds(16, 0x900)] * 8, LOOP)
    nine = chip_of(*[lds(16, 0x900)] * 9, LOOP)
    for chip in (eight, nine):
        chip.run(cycles=100)
    assert (len(eight.reports), eight.reports_lost) == (8, False)
    assert (len(nine.reports), nine.reports_lost) == (8, True)


@pytest.mark.jit_off
def test_stack_that_leaves_sram_is_reported_and_pushes_go_where_it_points():
    a = Assembler()
    a(nop(), nop(), ldi(16, 0x00), out(SPH, 16), ldi(16, 0x1F), out(SPL, 16))
    a(ldi(17, 0x5A), push(17), pop(18)).branch(rcall, "deep").label("deep")(LOOP)
    chip = Chip(Program.from_words(a.words()))
    chip.run(cycles=100)
    assert chip.registers[31] == a.word_address("deep")  # low byte of the return address
    assert chip.registers[30] == 0
    assert chip.registers[18] == 0x5A
    assert {report.kind for report in chip.reports} == {Fault.STACK_OUTSIDE}
    assert [report.address for report in chip.reports] == [0x1F, 0x1F, 0x1F]
    assert chip.sp == 0x1D


def test_erased_flash_runs_like_sbrs_and_is_reported_where_it_was_entered():
    """Q1 and section 1.4: r31 bit 7 clear makes one word a cycle, to the wrap at 0x3FFF."""
    chip = chip_of(nop())
    assert chip.run(cycles=3 + 16384 - 3) == "cycles"
    assert (chip.pc, chip.cycle) == (0, 16384)
    chip.run(cycles=3 * 16384)
    assert chip.pc == 0
    (report,) = chip.reports
    assert (report.kind, report.pc, report.cycle) == (Fault.ERASED_FLASH, 6, 3)


@pytest.mark.jit_off
@pytest.mark.parametrize("words", [0, 1, 2, 3, 4])
def test_running_off_a_short_program_is_reported(words):
    chip = Chip(Program.from_words(nop() * words))
    chip.run(cycles=10)
    (report,) = chip.reports
    assert (report.kind, report.pc, report.cycle) == (Fault.ERASED_FLASH, 2 * words, words)


def test_erased_flash_skips_with_bit_7_of_r31():
    chip = chip_of(ldi(31, 0x80))
    chip.run(cycles=100)
    assert (chip.pc - 6) // 2 == chip.cycle - 3  # two cycles for two words
    with pytest.raises(ChipFault, match="running erased flash"):
        chip_of(ldi(31, 0x80), strict=True).run(cycles=100)


@pytest.mark.jit_off
def test_sram_and_registers_are_zero_unless_a_seed_asks_for_noise():
    plain = chip_of(LOOP)
    assert not plain.data[:0x20].any()
    assert not plain.data[0x100:].any()
    one, again, other = (chip_of(LOOP, sram_seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.data, again.data)
    assert (one.data[0x100:] != other.data[0x100:]).mean() > 0.98
    assert (one.data[:0x20] != other.data[:0x20]).any()
    np.testing.assert_array_equal(one.data[0x20:0x100], plain.data[0x20:0x100])
    counts = np.bincount(one.data[0x100:], minlength=256)
    assert counts.max() < 30  # 8 on average: noise, not a pattern
