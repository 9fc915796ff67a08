"""A chip full of NOPs: every cycle is an instruction boundary, and the bench does the work."""

from avrswarm import Chip
from avrswarm.program import Program


def idle_chip():
    return Chip(Program.from_words([0] * 0x4000))


def go_to(chip, cycle):
    """Run to exactly this cycle."""
    if cycle > chip.cycle:
        chip.run(cycles=cycle - chip.cycle)
    assert chip.cycle == cycle


def first_seen(chip, cycle, condition):
    """Check that `condition` is false in the cycle before `cycle` and true in it."""
    go_to(chip, cycle - 1)
    assert not condition(), f"too early: already in cycle {cycle - 1}"
    go_to(chip, cycle)
    assert condition(), f"too late: not yet in cycle {cycle}"
