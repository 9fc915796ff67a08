"""Long pure-CPU runs against Debian's simavr 1.6: random instruction streams and compiled C
programs.

Registers, SREG, SP, PC, all of SRAM and the cycle count must be equal at every checkpoint. What
simavr 1.6 is known to get wrong is listed in tests/oracle/simavr.py and is not generated; nothing
is compared loosely.

The seeds are part of the test names and stand in the header of a run.  AVRSWARM_SEED=12345 runs
other random programs.
"""

from itertools import pairwise

import numpy as np
import pytest

from avrswarm import Chip, load_program
from avrswarm.program import Program
from tests.oracle import compiled, simavr
from tests.oracle.random_program import INSTRUCTIONS, random_program
from tests.seeds import SIMAVR_SEEDS

pytestmark = [
    pytest.mark.needs_simavr,
    pytest.mark.skipif(bool(simavr.missing()), reason=simavr.missing() or "present"),
]

INSTRUCTIONS_PER_SEED = 12_000  # 192 000 in all


def differences(chip: Chip, expected: np.void) -> list[str]:
    """What is not as simavr has it, in words."""
    found = []
    for name, ours in (
        ("cycle", chip.cycle),
        ("pc", chip.pc),
        ("sp", chip.sp),
        ("sreg", chip.sreg),
    ):
        if ours != expected[name]:
            found.append(f"{name} is {ours:#x}, simavr has {int(expected[name]):#x}")
    data = np.asarray(chip.data)
    for start, theirs in ((0, expected["registers"]), (0x100, expected["sram"])):
        ours = data[start : start + len(theirs)]
        found += [
            f"data[{start + i:#05x}] is {ours[i]:#04x}, simavr has {theirs[i]:#04x}"
            for i in np.flatnonzero(ours != theirs)
        ]
    return found


def compare(flash: bytes, *, every: int, count: int, until: int | None = None) -> np.ndarray:
    """Run both, stop at the first checkpoint that differs and narrow it down to the instruction."""
    checkpoints = simavr.run(flash, every=every, count=count, until=until)
    chip = Chip(Program.from_bytes(flash))
    for checkpoint in checkpoints:
        if chip.cycle < checkpoint["cycle"]:
            chip.run(cycles=int(checkpoint["cycle"]) - chip.cycle)
        if differences(chip, checkpoint):
            pytest.fail(first_difference(flash, int(checkpoint["instruction"])))
    return checkpoints


def first_difference(flash: bytes, count: int) -> str:
    """Step both through `count` instructions and describe the first one that ends differently."""
    chip = Chip(Program.from_bytes(flash))
    before = "at reset"
    for checkpoint in simavr.run(flash, every=1, count=count):
        if found := differences(chip, checkpoint):
            return f"after instruction {checkpoint['instruction']}, {before}: " + "; ".join(
                found[:8]
            )
        word = int.from_bytes(flash[chip.pc : chip.pc + 2], "little")
        before = f"word {word:04x} at {chip.pc:#06x} from cycle {chip.cycle}, sreg {chip.sreg:#04x}"
        chip.step()
    return f"no difference when single-stepped through {count} instructions, but when run"


def test_random_programs_contain_every_instruction():
    executed = set()
    for seed in SIMAVR_SEEDS:
        program = random_program(seed)
        trace = simavr.run(program.flash, every=1, count=3000)
        executed |= {program.placed[int(pc) // 2] for pc in trace["pc"]}
    assert executed == INSTRUCTIONS


@pytest.mark.parametrize("seed", SIMAVR_SEEDS)
def test_random_instructions(seed):
    # close together: in random code a wrong value is often overwritten after a few instructions
    checkpoints = compare(random_program(seed).flash, every=3, count=INSTRUCTIONS_PER_SEED)
    assert checkpoints[-1]["instruction"] == INSTRUCTIONS_PER_SEED
    assert INSTRUCTIONS_PER_SEED * len(SIMAVR_SEEDS) >= 100_000


@pytest.mark.jit_off
def test_random_instructions_single_stepped():
    """`step` ends where `run` ends; 1500 instructions one by one."""
    flash = random_program(SIMAVR_SEEDS[0]).flash
    assert first_difference(flash, 1500).startswith("no difference")


@pytest.mark.needs_avr_gcc
@pytest.mark.parametrize("optimisation", compiled.OPTIMISATIONS)
@pytest.mark.parametrize("name", compiled.NAMES)
def test_c_program(name, optimisation):
    program = compiled.compile_c(name, optimisation)
    assert not wrongly_skipped_by_simavr(program.words), "C09: simavr 1.6 cannot run this program"
    checkpoints = compare(
        program.flash, every=4999, count=20_000_000, until=program.symbols["finished"]
    )
    assert len(checkpoints) > 5
    # and in one go, from the ELF file
    chip = Chip(load_program(program.elf))
    chip.run_until(symbol="finished", max_cycles=100_000_000)
    assert not differences(chip, checkpoints[-1])


def wrongly_skipped_by_simavr(words: list[int]) -> list[int]:
    """Places of C09: a skip before an ADIW or SBIW whose constant has a low nibble of C to F."""
    found = []
    for place, (word, following) in enumerate(pairwise(words)):
        skip = (
            word & 0xFC00 == 0x1000  # CPSE
            or word & 0xFC08 == 0xFC00  # SBRC, SBRS
            or word & 0xFD00 == 0x9900  # SBIC, SBIS
        )
        if skip and following & 0xFE00 == 0x9600 and following & 0x0F >= 0x0C:
            found.append(place)
    return found
