"""Idle skipping changes no bit: every program runs with it and without it, and both are compared.

Programs are all that we ship, counted delay loops of every kind, and random loops made of what
programs do while they wait. AVRSWARM_IDLE_SEEDS sets how many random loops are tried,
AVRSWARM_IDLE_FIRST_SEED the first one; seeds are part of the test names.
"""

import os
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from avrswarm import Chip
from avrswarm.chip.chip import StopReason
from avrswarm.engine import Translation
from avrswarm.program import Program
from avrswarm.robot.messages import Message, MessageType
from tests.firmware.bench import FIRMWARE, Robot
from tests.reference import assemble as asm
from tests.reference.generate import generate

from .lockstep import make_chip
from .section11 import START_UP

FIRST = int(os.environ.get("AVRSWARM_IDLE_FIRST_SEED", "0"))
SEEDS = int(os.environ.get("AVRSWARM_IDLE_SEEDS", "150"))
SHIPPED = sorted(path.stem for path in FIRMWARE.glob("*/*.elf"))

TIMER0_COMPA = 14
MAIN = 0x40


def pair(words):
    program = Program.from_words(words)
    return Chip(program), Chip(program, skip_idle=False)


def assert_same(skipping, plain, where=""):
    """Compare the readable things first, so that a failure says what is wrong."""
    for name in ("cycle", "pc", "sp", "sreg", "registers", "uart", "pin_log"):
        assert getattr(skipping, name) == getattr(plain, name), f"{name} {where}"
    assert bytes(skipping.data) == bytes(plain.data), f"data space {where}"
    assert skipping.digest() == plain.digest(), f"digest {where}"


# ---- what we ship --------------------------------------------------------------------------------


def disturbances(seed, until):
    """Light pulses at random cycles, most of them alone, some as dense as a frame."""
    chance = random.Random(seed)
    cycle = 4000
    while cycle < until:
        cycle += int(chance.choice([50_000, 400_000, 900]) * chance.random()) + 300
        yield cycle, chance.randrange(1, 290)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_program(name):
    chance = random.Random(name)
    robots = [Robot(name, skip_idle=skip) for skip in (True, False)]
    for robot in robots:
        end = robot.hear(Message.make(MessageType.RUN), after=300_000)
        for cycle, high in disturbances(name, 6_000_000):
            if not 290_000 < cycle < end + 1000:
                robot.light([cycle], high)
        for cycle in range(0, 8_000_000, 777_777):
            robot.chip.set_adc("ADC7", cycle % 3_000_000 / 1e6, at=cycle)
    skipping, plain = (robot.chip for robot in robots)
    while skipping.cycle < 12_000_000:
        cycles = int(chance.choice([10, 1000, 100_000, 2_000_000]) * chance.random()) + 1
        skipping.run(cycles)
        plain.run(cycles)
        assert_same(skipping, plain, f"at cycle {plain.cycle}")


@pytest.mark.parametrize("name", ["blink", "timing_probe", "speaker"])
def test_snapshot_restore_run_is_run(name):
    chance = random.Random(name)
    straight = Robot(name)
    straight.hear(Message.make(MessageType.RUN), after=100_000)
    broken = Chip.restore(straight.chip.snapshot())
    for _ in range(25):
        cycles = int(chance.choice([100, 10_000, 900_000]) * chance.random()) + 1
        straight.run(cycles)
        before = broken.snapshot()
        broken.run(cycles // 2)  # this is thrown away
        broken = Chip.restore(before) if chance.random() < 0.5 else broken.restore(before)
        stops_at = broken.cycle + cycles
        broken.run(cycles)
        assert broken.cycle >= stops_at
        assert_same(broken, straight.chip, f"at cycle {straight.cycle}")


# ---- waits for a bit, or for a timer's count -----------------------------------------------------

UCSR0A, UCSR0B, UDR0, UBRR0L = 0xC0, 0xC1, 0xC6, 0xC4
SPMCSR = asm.Address(0x57)


def put(register, value):
    return asm.ldi(16, value) + asm.sts(register, 16)


BIT_WAITS = {  # what begins it, register, bit, whether the loop waits while it is set
    "ADSC": (put(asm.ADCSRA, 0xC5), asm.ADCSRA, 6, True),
    "ADSC, fast": (put(asm.ADCSRA, 0xC2), asm.ADCSRA, 6, True),
    "ADIF": (put(asm.ADCSRA, 0xD4), asm.ADCSRA, 4, False),
    "EEPE": (
        asm.cli() + asm.sbi(asm.EECR, 2) + asm.sbi(asm.EECR, 1) + asm.sei(), asm.EECR, 1, True,
    ),
    "EEMPE": (asm.sbi(asm.EECR, 2), asm.EECR, 2, True),
    "UDRE": (put(UDR0, 0x55) + put(UDR0, 0xAA), UCSR0A, 5, False),
    "TXC": (put(UCSR0A, 0x40) + put(UDR0, 0x0F), UCSR0A, 6, False),
    "SPMEN": (put(SPMCSR, 0x01), SPMCSR, 0, True),
    "OCF0B": (put(asm.OCR0B, 30) + asm.sbi(asm.TIFR0, 2), asm.TIFR0, 2, False),
    "TOV2": (put(asm.TCCR2B, 3) + put(asm.TIFR2, 1), asm.TIFR2, 0, False),
    "ACO": ([], asm.ACSR, 5, False),
}  # fmt: skip


def bit_waits(register, bit, while_set):
    """The loops that compilers make of a wait: a list of words each."""
    back = {1: 0xCFFE, 2: 0xCFFD, 3: 0xCFFC}  # rjmp over so many words
    test = (asm.sbrc if while_set else asm.sbrs)(17, bit)
    yield asm.lds(17, register) + test + [back[3]]
    if register < 0x60:
        yield asm.in_(17, register) + test + [back[2]]
    if register < 0x40:
        yield [*(asm.sbic if while_set else asm.sbis)(register, bit), back[1]]


BRNE, BRLO, BRSH = 0xF401, 0xF000, 0xF400  # with an offset of 0


def count_waits(count):
    """Waits for TCNT0, TCNT2 and TCNT1 to get to, or not to be, ``count``."""

    def branch(condition, words):
        return [condition | (-(words + 1) & 0x7F) << 3]

    for condition in (BRNE, BRLO, BRSH):
        yield asm.in_(17, asm.TCNT0) + asm.cpi(17, count) + branch(condition, 2)
        yield asm.lds(17, asm.TCNT2) + asm.cp(17, 18) + branch(condition, 3)
        wide = asm.lds(22, asm.TCNT1L) + asm.lds(23, asm.TCNT1H)
        yield wide + asm.cp(22, 18) + asm.cpc(23, 19) + branch(condition, 6)
        yield wide + asm.cpi(22, count) + asm.cpc(23, 19) + branch(condition, 6)


def run_waits(begin, wait, seed, clock):
    """Begin and wait again and again under a timer's interrupts and comparator edges."""
    a = asm.Assembler()
    a.absolute(asm.jmp, "main")
    for vector in range(1, 26):
        a.org(2 * vector)(asm.inc(20), asm.reti())
    a.org(MAIN).label("main")
    a(put(UBRR0L, 3), put(UCSR0B, 8), put(asm.OCR0A, 97), put(asm.TIMSK0, 2))
    a(put(asm.TCCR1B, 2), put(asm.TCCR2B, 2), put(asm.TCCR0B, clock), asm.ldi(18, 60), asm.sei())
    a.label("again")(begin, wait, asm.inc(21)).branch(asm.rjmp, "again")
    program = Program.from_words(a.words())
    native = Translation(program.flash, wait=True)
    chips = Chip(program), Chip(program, native=native), Chip(program, skip_idle=False)
    chance = random.Random(seed)
    for chip in chips:
        for cycle in range(700, 60_000, 5003):
            chip.set_comparator(cycle & 1, at=cycle)
    while chips[0].cycle < 60_000:
        cycles = chance.randrange(1, chance.choice([20, 400, 9000]))
        for chip in chips:
            chip.run(cycles)
        assert_same(chips[0], chips[2], f"at cycle {chips[2].cycle}")
        assert_same(chips[1], chips[2], f"at cycle {chips[2].cycle}, translated")
    assert chips[0].registers[20] or chips[0].registers[21]


@pytest.mark.parametrize("clock", [1, 4])
@pytest.mark.parametrize("name", BIT_WAITS)
def test_wait_for_a_bit(name, clock):
    begin, *what = BIT_WAITS[name]
    for number, wait in enumerate(bit_waits(*what)):
        run_waits(begin, wait, f"{name} {number}", clock)


@pytest.mark.parametrize("clock", [1, 4])
@pytest.mark.parametrize("count", [0, 60, 97, 98, 255])
def test_wait_for_a_count(count, clock):
    for number, wait in enumerate(count_waits(count)):
        run_waits(asm.ldi(18, count) + asm.ldi(19, count & 3), wait, number, clock)


@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_breakpoint_in_a_wait_is_seen(place):
    """Byte addresses of the read, the test and the jump."""
    begin, *what = BIT_WAITS["ADSC"]
    wait = next(iter(bit_waits(*what)))
    program = Program.from_words([*begin, *wait, *asm.nop(), 0xCFFF])
    chip = Chip(program)
    for _ in range(3):
        assert chip.run_until(pc=2 * (len(begin) + place), max_cycles=100) == "breakpoint"


# ---- counted delay loops -------------------------------------------------------------------------


class Delay:
    """One counted loop: its instructions, the registers that count, and how long it lasts."""

    def __init__(self, kind, registers, count):
        self.kind = kind
        self.registers = registers
        self.count = count

    def __repr__(self):
        return f"{self.kind} r{self.registers} from {self.count}"

    def words(self):
        """Loads and loop."""
        load = []
        for place, register in enumerate(self.registers):
            load += asm.ldi(31, self.count >> 8 * place & 0xFF) + asm.mov(register, 31)
            if register == 31:
                assert place == len(self.registers) - 1
        if self.kind == "dec":
            body = asm.dec(self.registers[0])
        elif self.kind == "sbiw":
            body = asm.sbiw(self.registers[0], 1)
        else:
            body = asm.subi(self.registers[0], 1)
            for register in self.registers[1:]:
                body = body + asm.sbci(register, 0)
        return load + body + asm.brne(-len(body) - 1)

    def cycles(self):
        """By the formula of the instruction set: the last branch falls through."""
        bits = 8 * len(self.registers)
        iterations = self.count or 1 << bits
        step = {"dec": 3, "sbiw": 4}.get(self.kind, len(self.registers) + 2)
        return 2 * len(self.registers) + iterations * step - 1


def counts(bits):
    edge = st.sampled_from([0, 1, 2, 255, 256, 257, (1 << bits) - 1, 0xFF00])
    return st.one_of(edge, st.integers(0, 5000)).map(lambda n: n % (1 << min(bits, 18)))


@st.composite
def delays(draw):
    kind = draw(st.sampled_from(["dec", "sbiw", "subi"]))
    if kind == "dec":
        return Delay(kind, [draw(st.integers(0, 30))], draw(counts(8)))
    if kind == "sbiw":
        low = draw(st.sampled_from([24, 26, 28, 30]))
        return Delay(kind, [low, low + 1], draw(counts(16)))
    size = draw(st.integers(2, 4))
    registers = draw(st.permutations(range(16, 31)))[:size]
    return Delay(kind, registers, draw(counts(8 * size)))


def delay_program(loops, compare, prescaler, busy):
    """Loops one after the other for ever, interrupted by Timer/Counter0 at every compare match."""
    a = asm.Assembler()
    a.absolute(asm.jmp, "main")
    a.org(2 * TIMER0_COMPA)
    a.absolute(asm.jmp, "tick")
    a.org(MAIN).label("main")
    a(asm.ldi(16, 2), asm.out(asm.TCCR0A, 16), asm.sts(asm.TIMSK0, 16))
    a(asm.ldi(16, compare), asm.out(asm.OCR0A, 16))
    a(asm.ldi(16, prescaler), asm.out(asm.TCCR0B, 16), asm.sei())
    a.label("again")
    for number, loop in enumerate(loops):
        a(loop.words(), asm.in_(31, asm.SREG), asm.sts(0x120 + number, 31))
    a.absolute(asm.jmp, "again")
    a.label("tick")
    a(asm.push(16), asm.in_(16, asm.SREG), asm.push(16), asm.push(17))
    a(asm.lds(16, 0x100), asm.inc(16), asm.sts(0x100, 16), asm.nop() * busy)
    a(asm.pop(17), asm.pop(16), asm.out(asm.SREG, 16), asm.pop(16), asm.reti())
    return a.words()


@settings(max_examples=int(os.environ.get("AVRSWARM_IDLE_EXAMPLES", "60")))
@given(
    loops=st.lists(delays(), min_size=1, max_size=4),
    compare=st.integers(0, 255),
    prescaler=st.integers(1, 5),
    busy=st.integers(0, 8),
    stops=st.lists(st.integers(1, 20_000), min_size=1, max_size=12),
)
@example([Delay("dec", [5], 0), Delay("dec", [5], 1)], 200, 3, 0, [1, 2, 3, 20_000])
@example([Delay("sbiw", [24, 25], 0)], 255, 1, 1, [20_000] * 6)
@example([Delay("sbiw", [30, 31], 1), Delay("subi", [18, 20], 1)], 255, 5, 0, [7] * 12)
@example([Delay("subi", [18, 24, 25], 0x10000), Delay("subi", [24, 25], 0)], 99, 2, 3, [20_000] * 9)
@example([Delay("subi", [16, 17, 18, 19], 0)], 255, 5, 3, [20_000] * 9)
def test_delay_loops(loops, compare, prescaler, busy, stops):
    words = delay_program(loops, compare, prescaler, busy)
    skipping, plain = pair(words)
    for cycles in stops:
        skipping.run(cycles)
        plain.run(cycles)
        assert_same(skipping, plain, f"at cycle {plain.cycle}")
    # and every interrupt, where a loop was broken off
    skipping, plain = pair(words)
    for _ in range(6):
        for chip in (skipping, plain):
            chip.run_until(pc=4 * TIMER0_COMPA, max_cycles=300_000)
        assert_same(skipping, plain, f"at the interrupt in cycle {plain.cycle}")


@settings(max_examples=int(os.environ.get("AVRSWARM_IDLE_EXAMPLES", "60")))
@given(delays())
@example(Delay("subi", [16, 17, 18, 19], 0))
def test_length_of_a_delay(delay):
    words = delay.words()
    chip = Chip(Program.from_words(words + asm.rjmp(-1)))
    assert chip.run_until(pc=2 * len(words), max_cycles=1 << 35) == StopReason.BREAKPOINT
    assert chip.cycle == delay.cycles()
    assert [chip.registers[register] for register in delay.registers] == [0] * len(delay.registers)
    assert chip.sreg & 0x02


@pytest.mark.parametrize("count", [0, 1, 0x100, 0x10000])
@pytest.mark.parametrize("kind", ["dec", "sbiw", "subi 2", "subi 3", "subi 4"])
def test_delay_entered_at_its_branch(kind, count):
    """With Z clear the branch is taken whatever the count is: 0 counts all the way round."""
    size = {"dec": 1, "sbiw": 2}.get(kind) or int(kind[-1])
    delay = Delay(kind.split()[0], list(range(24, 24 + size)), count)
    words = delay.words()
    load, loop = words[: 4 * size // 2], words[4 * size // 2 :]
    words = load + asm.clz() + asm.rjmp(len(loop) - 1) + loop
    skipping, plain = pair(words + asm.rjmp(-1))
    for cycles in (5, 6, 7, 8, 100, 777, 100_000, 600_000):
        skipping.run(cycles)
        plain.run(cycles)
        assert_same(skipping, plain, f"at cycle {plain.cycle}")


NOT_DELAYS = {
    "dec of a register that another one copies": asm.dec(16) + asm.mov(17, 16) + asm.brne(-3),
    "sbiw by 2": asm.sbiw(24, 2) + asm.brne(-2),
    "sbiw by 0": asm.sbiw(24, 0) + asm.brne(-2),
    "subi by 3": asm.subi(24, 3) + asm.sbci(25, 0) + asm.brne(-3),
    "sbci by 1": asm.subi(24, 1) + asm.sbci(25, 1) + asm.brne(-3),
    "sbci twice": asm.subi(24, 1) + asm.sbci(25, 0) + asm.sbci(25, 0) + asm.brne(-4),
    "subi and sbci of one register": asm.subi(24, 1) + asm.sbci(24, 0) + asm.brne(-3),
    "sbci first": asm.sbci(24, 1) + asm.sbci(25, 0) + asm.brne(-3),
    "breq": asm.dec(16) + asm.breq(-2),
    "inc": asm.inc(16) + asm.brne(-2),
    "branch into the middle": asm.subi(24, 1) + asm.sbci(25, 0) + asm.brne(-2),
    "branch over two": asm.nop() + asm.dec(16) + asm.brne(-3),
}


@pytest.mark.parametrize("what", NOT_DELAYS)
@pytest.mark.parametrize("value", [0, 1, 2, 3, 0x80, 0xFF])
def test_loops_that_only_look_like_delays(what, value):
    load = asm.ldi(16, value) + asm.ldi(17, value) + asm.ldi(24, value) + asm.ldi(25, value)
    skipping, plain = pair(load + NOT_DELAYS[what] + asm.inc(20) + asm.rjmp(-1))
    for cycles in (1, 2, 3, 5, 7, 400, 900, 1000, 300_000):
        skipping.run(cycles)
        plain.run(cycles)
        assert_same(skipping, plain, f"at cycle {plain.cycle}")


# ---- breakpoints ---------------------------------------------------------------------------------

WAITING_LOOPS = {
    "delay": asm.program(
        asm.ldi(24, 0xFF), asm.ldi(25, 0xFF), asm.sbiw(24, 1), asm.brne(-2), asm.rjmp(-5)
    ),
    "long delay": asm.program(
        asm.ldi(24, 48),
        asm.subi(18, 1),
        asm.sbci(24, 0),
        asm.sbci(25, 0),
        asm.brne(-4),
        asm.rjmp(-6),
    ),
    "short delay": asm.program(asm.ldi(20, 200), asm.dec(20), asm.brne(-2), asm.rjmp(-4)),
    "idle": asm.program(asm.nop() * 5, asm.lds(16, 0x100), asm.nop() * 5, asm.rjmp(-13)),
    "comparator": asm.program(
        asm.nop() * 3, asm.in_(17, asm.ACSR), asm.sbrc(17, 5), asm.nop(), asm.rjmp(-7)
    ),
}


@pytest.mark.parametrize("name", WAITING_LOOPS)
@pytest.mark.parametrize("before", [0, 1, 2, 3, 17, 5000, 30_001])
def test_breakpoints_in_a_waiting_loop(name, before):
    words = WAITING_LOOPS[name]
    for place in range(len(words)):
        skipping, plain = pair(words)
        for chip in (skipping, plain):
            chip.run(before)
            chip.run_until(pc=2 * place, max_cycles=2_000_000)
            chip.run_until(pc=2 * place, max_cycles=2_000_000)
        assert_same(skipping, plain, f"at word {place}")


def test_steps_in_a_proven_loop():
    skipping, plain = pair(WAITING_LOOPS["idle"])
    for chip in (skipping, plain):
        chip.run(100_003)
    for _ in range(40):
        assert_same(skipping, plain)
        skipping.step()
        plain.step()


def put_sram(chip):
    chip.poke(0x100, 1)


def put_t_flag(chip):
    chip.write("SREG", 0x40)


def put_pc(chip):
    chip.set_pc(0)


def put_register(chip):
    chip.write("GPIOR0", 1)


def pull_reset(chip):
    chip.reset()


@pytest.mark.parametrize("meddle", [put_sram, put_t_flag, put_pc, put_register, pull_reset])
@pytest.mark.parametrize("stop", [50_000, 50_005])
def test_the_bench_meddles_with_a_proven_loop(meddle, stop):
    a = asm.Assembler()
    a(asm.inc(20)).label("wait")(asm.lds(16, 0x100), asm.tst(16), asm.nop() * 5)
    a.branch(asm.brne, "out").branch(asm.brts, "out")(asm.sbis(asm.GPIOR0, 0))
    a.branch(asm.rjmp, "wait")
    a.label("out")(asm.inc(21), asm.nop() * 9).branch(asm.rjmp, "out")
    skipping, plain = pair(a.words())
    for chip in (skipping, plain):
        chip.run(stop)
        meddle(chip)
    for cycles in (5, 6, 7, 3000, START_UP, 60_000):
        skipping.run(cycles)
        plain.run(cycles)
        assert_same(skipping, plain, f"at cycle {plain.cycle}")
    assert skipping.registers[20] == (2 if meddle in (put_pc, pull_reset) else 1)


# ---- loops that look at the outside --------------------------------------------------------------

POLLS = {
    "comparator": (asm.in_(17, asm.ACSR) + asm.sbrs(17, 5), "comparator"),
    "comparator flag": (asm.in_(17, asm.ACSR) + asm.sbrs(17, 4), "comparator"),
    "comparator by LDS": (asm.lds(17, asm.ACSR) + asm.sbrs(17, 5), "comparator"),
    "pin": (asm.sbis(asm.PIND, 3), "pin"),
    "pin by IN": (asm.in_(17, asm.PIND) + asm.sbrs(17, 3), "pin"),
    "pin change flag": (asm.sbis(asm.PCIFR, 2), "pin"),
    "timer": (asm.in_(17, asm.TCNT0) + asm.cpi(17, 200) + asm.brsh(1), None),
    "timer flag": (asm.sbis(asm.TIFR0, 0), None),
    "conversion": (asm.lds(17, asm.ADCSRA) + asm.sbrs(17, 4), None),
}


@pytest.mark.parametrize("name", POLLS)
@pytest.mark.parametrize("body", [0, 1, 2, 5])
@pytest.mark.parametrize("phase", range(0, 12, 3))
def test_polling(name, body, phase):
    """What ends a wait is seen in the very iteration in which it happens."""
    test, stimulus = POLLS[name]
    a = asm.Assembler()
    a(asm.ldi(16, 0xFF), asm.sts(asm.PCMSK2, 16), asm.ldi(16, 3), asm.out(asm.TCCR0B, 16))
    a(asm.ldi(16, 0xC7), asm.sts(asm.ADCSRA, 16))
    a.label("wait")(asm.nop() * body, test)
    a.branch(asm.rjmp, "wait")
    a(asm.inc(20), asm.sei(), asm.inc(21), asm.nop() * 30)
    a.label("done")(asm.inc(22)).branch(asm.rjmp, "done")
    skipping, plain = pair(a.words())
    for chip in (skipping, plain):
        for cycle, level in ((50_000 + phase, 1), (50_400, 0)):
            if stimulus == "comparator":
                chip.set_comparator(level, at=cycle)
            elif stimulus == "pin":
                chip.set_pin("PD3", level, at=cycle)
    for cycles in (*(60,) * 30, 40_000, 8000, *(17,) * 40, *(41,) * 40, 40_000):
        skipping.run(cycles)
        plain.run(cycles)
        assert_same(skipping, plain, f"at cycle {plain.cycle}")
    assert skipping.registers[21] == 1  # it did get out


@pytest.mark.parametrize("phase", range(24))
@pytest.mark.parametrize("stop", [40_000 + 7 * n for n in range(3)])
def test_comparator_changes_while_it_is_read(phase, stop):
    """An event that a read itself brings about, and then a stop: the proof must not outlive it."""
    a = asm.Assembler()
    a.label("wait")(asm.nop() * 7, asm.in_(17, asm.ACSR), asm.ldi(17, 0))
    a(asm.in_(18, asm.ACSR), asm.sbrs(18, 5))
    a.branch(asm.rjmp, "wait")
    a.label("out")(asm.inc(20), asm.adc(21, 20), asm.sei(), asm.cli()).branch(asm.rjmp, "out")
    skipping, plain = pair(a.words())
    for chip in (skipping, plain):
        chip.set_comparator(1, at=40_000 + phase)
        chip.run(stop + phase - 10)
    for _ in range(60):
        assert_same(skipping, plain, f"at cycle {plain.cycle}")
        skipping.run(3)
        plain.run(3)
    skipping.run(10_000)
    plain.run(10_000)
    assert_same(skipping, plain, f"at cycle {plain.cycle}")


# ---- random loops --------------------------------------------------------------------------------


class RandomLoop:
    """A main loop of what waiting programs do, with interrupts that change what it reads."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.assembler = asm.Assembler()
        self.number = 0

    def label(self):
        self.number += 1
        return f"l{self.number}"

    def words(self):
        a, chance = self.assembler, self.chance
        a.absolute(asm.jmp, "main")
        for vector in (TIMER0_COMPA, 11, 23):  # Timer/Counter0 and 1, comparator
            a.org(2 * vector)
            a.absolute(asm.jmp, f"isr{vector}")
        a.org(MAIN).label("main")
        for register in range(16, 26):
            a(asm.ldi(register, chance.randrange(256)))
        a(asm.ldi(30, chance.choice([0, 2])), asm.sts(asm.TIMSK0, 30))
        a(asm.ldi(30, chance.choice([0, 2])), asm.sts(asm.TIMSK1, 30))
        a(asm.ldi(30, chance.choice([0, 2])), asm.out(asm.TCCR0A, 30))
        a(asm.ldi(30, chance.randrange(40, 256)), asm.out(asm.OCR0A, 30))
        a(asm.ldi(30, chance.randrange(256)), asm.sts(asm.OCR1AH, 30), asm.sts(asm.OCR1AL, 30))
        a(asm.ldi(30, chance.choice([1, 2, 9, 10])), asm.sts(asm.TCCR1B, 30))
        a(asm.ldi(30, chance.randrange(3, 6)), asm.out(asm.TCCR0B, 30))
        a(asm.ldi(30, chance.choice([0, 8, 0x0A, 0x0B])), asm.out(asm.ACSR, 30))
        a(asm.sei() if chance.random() < 0.7 else asm.nop())
        for loop in range(2):
            a.label(f"loop{loop}")
            for _ in range(chance.choice([1, 2, 4, 8])):
                self.statement(loop)
            a.absolute(asm.jmp, f"loop{loop}")
        self.subroutine()
        for vector in (TIMER0_COMPA, 11, 23):
            self.routine(vector)
        return a.words()

    def statement(self, loop):
        a, chance = self.assembler, self.chance
        register = chance.randrange(16, 26)
        match chance.randrange(14):
            case 0:
                a(asm.nop() * chance.choice([1, 3, 20, 300, 450]))
            case 1:
                a(asm.lds(register, 0x100), asm.cpi(register, chance.randrange(256)))
            case 2:
                a(asm.ldi(register, chance.randrange(256)), asm.sts(0x110 + register, register))
            case 3:
                a(asm.ldi(register, chance.choice([0, 1, 20])))
                a(asm.dec(register), asm.brne(-2))
            case 4:
                a(asm.ldi(24, chance.randrange(256)), asm.ldi(25, chance.choice([0, 1, 9])))
                a(asm.sbiw(24, 1), asm.brne(-2))
            case 5:  # a wait for the comparator that leads on, or is ignored
                a(asm.in_(register, asm.ACSR), asm.sbrc(register, chance.choice([4, 5])))
                over = self.label()
                a.branch(asm.rjmp, over)
                a.label(over)
            case 6:
                over = self.label()
                a(asm.in_(register, asm.ACSR), asm.sbrs(register, 5))
                a.branch(asm.rjmp, over)
                a.absolute(asm.jmp, f"loop{1 - loop}")
                a.label(over)
            case 7:
                a(asm.in_(register, asm.ACSR), asm.ldi(register, 7))
            case 8:
                a(asm.cli(), asm.nop() * chance.randrange(3), asm.sei())
            case 9:
                a(asm.ldi(register, chance.choice([0, 0, 5])), asm.out(asm.PORTB, register))
            case 10:
                a.absolute(asm.call, "subroutine")
            case 11:
                a(asm.push(register), asm.in_(register, asm.SREG), asm.out(asm.SREG, register))
                a(asm.pop(register))
            case 12:
                a(asm.in_(register, chance.choice([asm.PINB, asm.TCNT0, asm.TIFR0, asm.GPIOR0])))
            case 13:
                a(asm.com(register), asm.com(register), asm.wdr() if chance.random() < 0.1 else [])

    def subroutine(self):
        a = self.assembler
        a.label("subroutine")
        a(asm.push(16), asm.ldi(16, 9), asm.dec(16), asm.brne(-2), asm.pop(16), asm.ret())

    def routine(self, vector):
        a, chance = self.assembler, self.chance
        a.label(f"isr{vector}")
        a(asm.push(28), asm.in_(28, asm.SREG), asm.push(28), asm.lds(28, 0x100))
        if chance.random() < 0.5:
            a(asm.inc(28), asm.sts(0x100, 28))
        if chance.random() < 0.2:
            a(asm.sbi(asm.PINB, 1))
        if chance.random() < 0.2:
            a(asm.inc(17))
        a(asm.pop(28), asm.out(asm.SREG, 28), asm.pop(28), asm.reti())


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_random_loop(seed):
    chance = random.Random(-seed - 1)
    skipping, plain = pair(RandomLoop(seed).words())
    for chip in (skipping, plain):
        edges = random.Random(f"edges {seed}")
        cycle = 0
        for number in range(edges.choice([0, 3, 60])):
            cycle += int(edges.choice([20, 3000, 60_000]) * edges.random()) + 1
            chip.set_comparator(1 - number % 2, at=cycle)
    for _ in range(40):
        cycles = int(chance.choice([5, 700, 20_000]) * chance.random()) + 1
        skipping.run(cycles)
        plain.run(cycles)
        assert_same(skipping, plain, f"at cycle {plain.cycle}")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS // 5))
def test_program_of_the_reference_tests(seed):
    """Random programs with all peripherals, as tests/reference generates them."""
    case = generate(seed, cycles=60_000)
    chips = [make_chip(case.words, case.stimuli, case.eeprom) for _ in range(2)]
    chips[1]._c.skip_idle = 0
    while chips[0].cycle < case.cycles:
        for chip in chips:
            chip.run(3001)
        assert_same(*chips, f"at cycle {chips[1].cycle}")
