"""Run one program on avrswarm.Chip and on the reference chip side by side and compare their states.

The package runs in stretches from checkpoint to checkpoint, so that its jumps over quiet time are
exercised; the reference goes cycle by cycle.  If a checkpoint differs, both are run again with a
checkpoint after every instruction from the last good one on, and the first difference is reported
with the instructions before it.
"""

import random
from collections import deque

from avrswarm import Chip
from avrswarm.engine import Translation
from avrswarm.program import Program
from tests.reference.assemble import REGISTERS
from tests.reference.machine import RefChip

# I/O registers compared at every checkpoint.  EECR apart from EEMPE: when it stops reading 1 is not
# known to the cycle.
COMPARED = [
    *("PINB", "DDRB", "PORTB", "PINC", "DDRC", "PORTC", "PIND", "DDRD", "PORTD", "TIFR0", "TIFR1"),
    *("TIFR2", "PCIFR", "EIFR", "EIMSK", "GPIOR0", "GPIOR1", "EECR", "EEDR", "EEARL", "EEARH"),
    *("GTCCR", "TCCR0A", "TCCR0B", "TCNT0", "OCR0A", "OCR0B", "ACSR", "SMCR", "PCICR", "EICRA"),
    *("PCMSK0", "PCMSK1", "PCMSK2", "TIMSK0", "TIMSK1", "TIMSK2", "ADCL", "ADCH", "ADCSRA"),
    *("ADCSRB", "ADMUX", "TCCR1A", "TCCR1B", "TCCR1C", "TCNT1L", "ICR1L", "OCR1AL", "OCR1AH"),
    *("OCR1BL", "OCR1BH", "TCCR2A", "TCCR2B", "TCNT2", "OCR2A", "OCR2B", "SPL", "SPH", "SREG"),
    *("WDTCSR", "MCUCR"),
]
MASKS = {"EECR": 0xFB}
OC_PINS = ["PD6", "PD5", "PB1", "PB2", "PB3", "PD3"]


def make_chip(words, stimuli=(), eeprom=(), translated=False):
    program = Program.from_words(words)
    chip = Chip(program, native=Translation(program.flash, wait=True) if translated else None)
    for address, value in enumerate(eeprom):
        chip.eeprom[address] = value
    for cycle, kind, which, value in stimuli:
        if kind == "comparator":
            chip.set_comparator(bool(value), at=cycle)
        elif kind == "adc":
            chip.set_adc(f"ADC{which}", value, at=cycle)
        else:
            chip.set_pin(which, value, at=cycle)
    return chip


class Difference(AssertionError):
    pass


def differences(chip, reference, everything):
    """A list of texts, empty if the two agree; `everything` includes SRAM and EEPROM."""
    found = []

    def check(what, got, expected):
        if got != expected:
            found.append(f"{what}: package {got:#x}, reference {expected:#x}")

    check("cycle", chip.cycle, reference.cycle)
    check("pc", chip.pc, 2 * reference.pc)
    data = bytes(chip.data)
    for r in range(32):
        check(f"r{r}", data[r], reference.r[r])
    check("sreg", chip.sreg, reference.sreg)
    check("sp", chip.sp, reference.sp)
    for name in COMPARED:
        mask = MASKS.get(name, 0xFF)
        address = REGISTERS[name]
        check(name, data[address] & mask, reference.peek(address) & mask)
    for name in OC_PINS:
        check(name, int(chip.pin(name)), reference.pin(name))
    if everything:
        if data[0x100:0x900] != bytes(reference.sram):
            for address in range(0x100, 0x900):
                check(f"SRAM {address:#05x}", data[address], reference.sram[address - 0x100])
        if not reference.eeprom.busy:
            for address in range(256):
                check(
                    f"EEPROM {address}", int(chip.eeprom[address]), reference.eeprom.memory[address]
                )
    return found


NEAR = (4, 40, 100)  # longest number of steps between two checkpoints
FAR = (200, 3000, 20_000)


class Runner:
    """The package on its way from checkpoint to checkpoint."""

    def __init__(self, case, distances, translated):
        self.chip = make_chip(case.words, case.stimuli, case.eeprom, translated)
        self.choose = random.Random(case.seed)
        self.distances = distances
        self.left = 1  # steps of the reference to the next checkpoint
        self.count = 0
        self.last_good = 0

    def check(self, reference, everything):
        """Go to where the reference is and compare."""
        self.left = self.choose.randint(1, self.choose.choice(self.distances))
        self.count += 1
        self.chip.run(cycles=reference.cycle - self.chip.cycle)
        found = differences(self.chip, reference, everything or self.count % 8 == 0)
        if not found:
            self.last_good = reference.cycle
        return found


def run_side_by_side(case, plan, fine_from=None):
    """Run the reference once and package chips beside it: `plan` has (distances, translated).

    Each is compared at random checkpoints and at the end, from cycle `fine_from` on after every
    step.  Gives the cycle of the last good checkpoint, the differences at the first bad one, and
    the last steps before it.
    """
    reference = RefChip(case.words, case.stimuli, case.eeprom)
    runners = [Runner(case, *way) for way in plan]
    steps = deque(maxlen=25)
    while reference.cycle < case.cycles and reference.sp >= 0x780:  # or it has gone wild
        steps.append((reference.cycle, reference.pc))
        reference.step()
        ends = reference.cycle >= case.cycles
        fine = ends or (fine_from is not None and reference.cycle >= fine_from)
        for runner in runners:
            runner.left -= 1
            if (runner.left > 0 or reference.asleep) and not fine:
                continue
            found = runner.check(reference, everything=fine)
            if found:
                return runner.last_good, found, steps
    return case.cycles, [], steps


def compare(case):
    """Raise `Difference` with a report if package and reference do not agree on a program."""
    last_good, found, steps = run_side_by_side(case, ((NEAR, False), (FAR, False), (FAR, True)))
    if not found:
        return
    note = "(only when run from there in one go)"
    good, found_fine, steps_fine = run_side_by_side(case, ((NEAR, False),), fine_from=last_good)
    if found_fine:
        last_good, found, steps, note = good, found_fine, steps_fine, ""
    lines = {address: text for address, text in case.listing if not text.endswith(":")}
    history = [f"cycle {cycle:7d}  {pc:04X}  {lines.get(pc, '?')}" for cycle, pc in steps]
    raise Difference(
        "\n  ".join(
            [
                f"seed {case.seed} ({', '.join(sorted(case.themes))})",
                f"last agreement at cycle {last_good}; then {note}",
                *found[:20],
                "last steps:",
                *history,
            ]
        )
    )
