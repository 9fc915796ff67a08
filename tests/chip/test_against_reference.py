"""The package against the slow reference model of tests/reference.

Both the rows of the timing reference's section 11 and seeded random programs are run.
AVRSWARM_REFERENCE_SEEDS sets the number of seeds, AVRSWARM_REFERENCE_FIRST_SEED the first one.  A
failure prints its seed; to look at one alone:

    AVRSWARM_REFERENCE_FIRST_SEED=17 AVRSWARM_REFERENCE_SEEDS=1 pytest -k random_program \\
        tests/chip/test_against_reference.py
"""

import pytest

from tests.reference import assemble as asm
from tests.reference.generate import Case, generate
from tests.reference.rows import ROWS
from tests.seeds import REFERENCE_SEEDS

from . import former_faults, waiting_programs
from .lockstep import compare, make_chip


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
        if self.chip.pc != 2 * word:
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


@pytest.mark.parametrize("seed", REFERENCE_SEEDS)
def test_random_program(seed):
    compare(generate(seed))


@pytest.mark.parametrize("seed", REFERENCE_SEEDS[: len(REFERENCE_SEEDS) // 5])
def test_waiting_program(seed):
    """Long delays and polling at slow clocks: what idle skipping jumps over."""
    compare(generate(seed, cycles=60_000, themes=WAITING[seed % len(WAITING)]))


WAITING = (
    ("wait", "timers"),
    ("wait", "timers", "interrupts", "sleep", "timer 1", "gtccr"),
    ("wait", "timers", "adc", "eeprom", "comparator"),
    ("wait", "timers", "interrupts", "pins", "adc", "comparator", "eeprom", "flags", "tcnt"),
)


@pytest.mark.parametrize("clock", [2, 3], ids=["often", "seldom"])
@pytest.mark.parametrize("name", waiting_programs.PROGRAMS)
def test_what_is_waited_for(name, clock):
    compare(waiting_programs.build(name, clock))


@pytest.mark.parametrize("name", former_faults.PROGRAMS)
def test_former_fault(name):
    compare(former_faults.build(name))


def test_watchdog_and_power_down():
    """Interrupt mode in power-down and then both modes up to the reset, to the cycle."""
    a = asm.Assembler()
    a.absolute(asm.jmp, "main")
    a.org(12)(asm.inc(20), asm.reti())
    a.org(0x40).label("main")
    a(asm.in_(22, asm.MCUSR), asm.sbrc(22, 3)).label("done").branch(asm.rjmp, "done")
    a(asm.ldi(16, 2), asm.out(asm.TCCR0B, 16), asm.sts(asm.TCCR1B, 16), asm.sts(asm.TCCR2B, 16))
    a(asm.ldi(16, 5), asm.out(asm.SMCR, 16), asm.wdr(), asm.ldi(16, 0x40), asm.sts(asm.WDTCSR, 16))
    a(asm.sei(), asm.sleep(), asm.inc(21), asm.wdr(), asm.ldi(16, 0x18), asm.sts(asm.WDTCSR, 16))
    a(asm.ldi(16, 0x48), asm.sts(asm.WDTCSR, 16))
    a.label("loop")(asm.in_(23, asm.TCNT0)).branch(asm.rjmp, "loop")
    compare(
        Case(
            seed=0, words=a.words(), stimuli=[], eeprom=[], cycles=910_000, themes=set(), listing=[]
        )
    )
