"""The package against the slow reference model of tests/reference.

Both the rows of the timing reference's section 11 and seeded random programs are run.
AVRSWARM_REFERENCE_SEEDS sets the number of seeds, AVRSWARM_REFERENCE_FIRST_SEED the first one.  A
failure prints its seed; to look at one alone:

    AVRSWARM_REFERENCE_FIRST_SEED=17 AVRSWARM_REFERENCE_SEEDS=1 pytest -k random_program \\
        tests/chip/test_against_reference.py
"""

import os

import pytest

from tests.reference.generate import generate
from tests.reference.rows import ROWS

from .lockstep import compare, make_chip

FIRST = int(os.environ.get("AVRSWARM_REFERENCE_FIRST_SEED", "0"))
SEEDS = int(os.environ.get("AVRSWARM_REFERENCE_SEEDS", "150"))


class ChipView:
    """avrswarm.Chip as a bench for the rows."""

    def __init__(self, words, stimuli=(), eeprom=()):
        self.chip = make_chip(words, stimuli, eeprom)

    @property
    def cycle(self):
        return self.chip.cycle

    def run(self, cycles):
        self.chip.run(cycles=cycles)

    def until(self, word, limit=300_000):
        self.chip.run_until(pc=2 * word, max_cycles=limit)
        assert self.chip.pc == 2 * word
        return self.chip.cycle

    def data(self, address):
        return int(self.chip.data[address])

    def pin(self, name):
        return int(self.chip.pin(name))

    def eeprom(self, address):
        return int(self.chip.eeprom[address])


@pytest.mark.parametrize(
    "check", [function for _, function in ROWS], ids=[name for name, _ in ROWS]
)
def test_row(check):
    check(ChipView)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_random_program(seed):
    compare(generate(seed))
