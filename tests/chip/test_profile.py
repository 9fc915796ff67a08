"""A watched chip does what it would do alone, and what is written down agrees with hand counts."""

import numpy as np
import pytest

from avrswarm import Chip
from avrswarm.chip.profile import LISTS, Blackout, Call, Count, Kind, Served, Wait, make_ledger
from avrswarm.chip.profile import finish as finish_ledger
from avrswarm.jit import JIT_DISABLED
from avrswarm.program import Program, load_program
from tests.firmware.bench import FIRMWARE
from tests.reference import assemble as asm

pytestmark = pytest.mark.jit_off

MAIN = 0x40
TIMER0_COMPA, TIMER1_COMPA = 14, 11


class Watched:
    """A program that was watched for some cycles; lists are arrays of all rows."""

    def __init__(self, program, cycles, starts=(), rows=1 << 15, skip=0):
        self.chip = Chip(program)
        self.chip.run(cycles=skip)
        self.begin = self.chip.cycle
        ledger = self.ledger = make_ledger(starts, rows)
        parts = {name: [] for name in LISTS}

        def drain():
            for number, name in enumerate(LISTS):
                parts[name].append(getattr(ledger, name)[: ledger.counts[number]].copy())
                ledger.counts[number] = 0

        while not self.chip.run_watched(cycles, ledger):
            drain()
        finish_ledger(ledger, self.chip.cycle)
        drain()
        for name in LISTS:
            setattr(self, name, np.concatenate(parts[name]))

    def of(self, function):
        return self.calls[self.calls[:, Call.FUNCTION] == function]


def program(build):
    a = asm.Assembler()
    a.absolute(asm.jmp, "main")
    a.org(MAIN)
    a.label("main")
    a(asm.ldi(16, 0x08), asm.out(asm.SPH, 16), asm.ldi(16, 0xFF), asm.out(asm.SPL, 16))
    build(a)
    return a, Program.from_words(a.words())


def test_calls_are_counted_by_hand():
    def build(a):
        a.absolute(asm.call, "outer")  # 4
        a.label("end")
        a.branch(asm.rjmp, "end")
        a.label("outer")  # own: rcall 3 + nop 1 + ret 4
        a.branch(asm.rcall, "inner")
        a(asm.nop(), asm.ret())
        a.label("inner")  # 2 x nop + ret 4
        a(asm.nop(), asm.nop(), asm.ret())

    a, built = program(build)
    outer, inner = a.word_address("outer"), a.word_address("inner")
    seen = Watched(built, 100)
    (row,) = seen.of(outer)
    assert row[Call.INCLUSIVE] == 3 + 6 + 1 + 4
    assert row[Call.EXCLUSIVE] == 8
    assert row[Call.BEGIN] == 3 + 4 + 4  # jmp main, four instructions, call
    (row,) = seen.of(inner)
    assert (row[Call.INCLUSIVE], row[Call.EXCLUSIVE], row[Call.CALLER]) == (6, 6, outer)
    assert row[Call.SITE] == outer
    assert row[Call.FINISHED]
    assert seen.ledger.cycles.sum() == seen.chip.cycle == seen.ledger.counts[Count.OBSERVED]


def test_a_jump_to_a_function_returns_with_its_caller():
    def build(a):
        a.absolute(asm.call, "first")
        a.label("end")
        a.branch(asm.rjmp, "end")
        a.label("first")
        a(asm.nop())
        a.branch(asm.rjmp, "second")  # 2
        a.label("second")
        a(asm.nop(), asm.ret())  # 5

    a, built = program(build)
    first, second = a.word_address("first"), a.word_address("second")
    seen = Watched(built, 100, starts=[first, second])
    (row,) = seen.of(second)
    assert (row[Call.KIND], row[Call.INCLUSIVE], row[Call.CALLER]) == (Kind.JUMP, 5, first)
    (row,) = seen.of(first)
    assert (row[Call.INCLUSIVE], row[Call.EXCLUSIVE]) == (8, 3)


def test_a_table_jump_comes_back_to_its_function():
    """avr-gcc's switch jumps to a library routine, which jumps back into the middle."""

    def build(a):
        a.absolute(asm.call, "chooser")
        a.label("end")
        a.branch(asm.rjmp, "end")
        a.label("chooser")
        a.branch(asm.rjmp, "table")  # 2
        a.label("case")
        a(asm.nop(), asm.ret())  # 5
        a.label("table")
        a(asm.nop())
        a.branch(asm.rjmp, "case")  # 2

    a, built = program(build)
    chooser, table = a.word_address("chooser"), a.word_address("table")
    seen = Watched(built, 100, starts=[MAIN, chooser, table])
    (row,) = seen.of(chooser)
    assert (row[Call.INCLUSIVE], row[Call.EXCLUSIVE]) == (10, 7)
    (row,) = seen.of(table)
    assert (row[Call.INCLUSIVE], row[Call.CALLER]) == (3, chooser)


def test_functions_that_jump_to_each_other_for_ever_do_not_fill_the_stack():
    def build(a):
        a.absolute(asm.call, "ping")
        a.label("ping")
        a(asm.nop())
        a.branch(asm.rjmp, "pong")
        a.label("pong")
        a(asm.nop())
        a.branch(asm.rjmp, "ping")

    a, built = program(build)
    seen = Watched(built, 10_000, starts=[a.word_address("ping"), a.word_address("pong")])
    assert seen.ledger.counts[Count.TOO_DEEP] == 0
    assert len(seen.of(a.word_address("pong"))) > 1000


def test_room_made_by_a_call_is_no_call_and_a_computed_return_is_no_return():
    def build(a):
        a.absolute(asm.call, "function")
        a.label("end")
        a.branch(asm.rjmp, "end")
        a.label("function")
        a(asm.rcall(0), asm.pop(0), asm.pop(0))  # 3 + 2 + 2, as avr-gcc makes room
        a(asm.ldi(16, 0), asm.push(16), asm.push(16))
        a(asm.pop(16), asm.pop(16), asm.ret())

    a, built = program(build)
    seen = Watched(built, 100)
    assert len(seen.of(a.word_address("function"))) == 1
    assert seen.of(a.word_address("function"))[0, Call.INCLUSIVE] == 7 + 1 + 4 + 4 + 4
    assert len(seen.calls) == 2  # and the program itself


def interrupted(handler_nops):
    """Timer 0 interrupts every 256 cycles; the main program calls a function of 1000 cycles."""

    def build(a):
        a(asm.ldi(16, 0xFF), asm.out(asm.OCR0A, 16), asm.ldi(16, 2), asm.sts(asm.TIMSK0, 16))
        a(asm.ldi(16, 1), asm.out(asm.TCCR0B, 16), asm.sei())
        a.label("again")
        a.branch(asm.rcall, "work")
        a.branch(asm.rjmp, "again")
        a.label("work")
        a(asm.ldi(24, 0xF9), asm.ldi(25, 0))  # 249 turns of 4 cycles, less one
        a.label("loop")
        a(asm.sbiw(24, 1))
        a.branch(asm.brne, "loop")
        a(asm.ret())
        a.label("handler")
        a(*[asm.nop()] * handler_nops, asm.reti())

    a = asm.Assembler()
    a.absolute(asm.jmp, "main")
    a.org(2 * TIMER0_COMPA)
    a.absolute(asm.jmp, "handler")
    a.org(MAIN)
    a.label("main")
    a(asm.ldi(16, 0x08), asm.out(asm.SPH, 16), asm.ldi(16, 0xFF), asm.out(asm.SPL, 16))
    build(a)
    return a, Program.from_words(a.words())


@pytest.mark.parametrize("nops", [0, 10, 60])
def test_interrupts_are_kept_apart(nops):
    a, built = interrupted(nops)
    work, handler = a.word_address("work"), a.word_address("handler")
    seen = Watched(built, 8_000, starts=[handler])
    calls = seen.of(work)
    calls = calls[calls[:, Call.FINISHED] == 1]
    assert len(calls) >= 4
    assert set(calls[:, Call.INCLUSIVE]) == {2 + 249 * 4 - 1 + 4}
    duration = 3 + 3 + nops + 4  # entry, jmp, nops, reti
    gross = calls[:, Call.END] - calls[:, Call.BEGIN]
    assert (gross - calls[:, Call.INCLUSIVE] == calls[:, Call.INTERRUPTED]).all()
    assert (calls[:, Call.INTERRUPTED] % duration == 0).all()
    assert (calls[:, Call.INTERRUPTED] >= 3 * duration).all()

    served = seen.served
    assert (served[:, Served.VECTOR] == TIMER0_COMPA).all()
    assert (served[:, Served.FUNCTION] == handler).all()
    assert (served[:, Served.OWN] == duration).all()
    assert (np.diff(served[:, Served.RAISED]) == 256).all()
    latency = served[:, Served.ENTERED] - served[:, Served.RAISED]
    assert latency.min() >= 4  # the flag is seen a cycle later, entry takes 3
    assert latency.max() <= 4 + 3  # no instruction here is longer than 4 cycles

    off = seen.blackouts[1:]  # the first is the time before SEI
    assert seen.blackouts[0, Blackout.VECTOR] == 0
    assert (off[:, Blackout.VECTOR] == TIMER0_COMPA).all()
    off = off[off[:, Blackout.FINISHED] == 1]
    assert (off[:, Blackout.END] - off[:, Blackout.BEGIN] == duration).all()

    waits = seen.waits
    assert len(waits) == len(calls)
    lasted = waits[:, Wait.END] - waits[:, Wait.BEGIN] - waits[:, Wait.INTERRUPTED]
    assert set(lasted) == {249 * 4 - 1}


def test_latency_of_a_flag_that_rose_while_interrupts_were_off():
    a = asm.Assembler()
    a.absolute(asm.jmp, "main")
    a.org(2 * TIMER1_COMPA)
    a(asm.reti())
    a.org(MAIN)
    a.label("main")
    a(asm.ldi(16, 0x08), asm.out(asm.SPH, 16), asm.ldi(16, 0xFF), asm.out(asm.SPL, 16))
    a(asm.ldi(16, 20), asm.sts(asm.OCR1AL, 16), asm.ldi(16, 2), asm.sts(asm.TIMSK1, 16))
    a(asm.ldi(16, 1), asm.sts(asm.TCCR1B, 16))
    a(*[asm.nop()] * 100)
    a(asm.sei(), asm.nop(), asm.nop())
    a.label("end")
    a.branch(asm.rjmp, "end")
    seen = Watched(Program.from_words(a.words()), 400)
    started = 3 + 4 + 1 + 2 + 1 + 2 + 1 + 2  # the edge at which TCCR1B was written
    (row,) = seen.served[:1]
    assert row[Served.RAISED] == started + 21  # the count is 20 after 20, its flag a cycle later
    assert row[Served.ENTERED] == started + 100 + 2 + 3  # sei and the instruction after it
    assert row[Served.OWN] == 3 + 4


@pytest.mark.parametrize("name", ["timing_probe", "bench_compute", "bench_adc"])
def test_watching_changes_nothing(name):
    built = load_program(FIRMWARE / name / f"{name}.elf")
    cycles = 3_000 if JIT_DISABLED else 3_000_000
    alone = Chip(built)
    alone.run(cycles=cycles)
    seen = Watched(built, cycles, rows=1024)
    assert seen.chip.digest() == alone.digest()


def test_sleep_is_passed_over_and_counted():
    a = asm.Assembler()
    a(asm.ldi(16, 1), asm.out(asm.SMCR, 16), asm.sleep())
    a.label("end")
    a.branch(asm.rjmp, "end")
    built = Program.from_words(a.words())
    seen = Watched(built, 50_000_000)
    assert seen.ledger.counts[Count.ASLEEP] == 50_000_000 - 3
    assert seen.chip.cycle == 50_000_000


def sleeper(vector, *setup):
    """Main sets up, then sleeps and calls a function of 9 cycles, again and again."""
    a = asm.Assembler()
    a.absolute(asm.jmp, "main")
    a.org(2 * vector)
    a.absolute(asm.jmp, "handler")
    a.org(MAIN)
    a.label("main")
    a(asm.ldi(16, 0x08), asm.out(asm.SPH, 16), asm.ldi(16, 0xFF), asm.out(asm.SPL, 16))
    a(*setup, asm.sei())
    a.label("again")
    a(asm.sleep())
    a.branch(asm.rcall, "work")
    a.branch(asm.rjmp, "again")
    a.label("work")
    a(*[asm.nop()] * 5, asm.ret())
    a.label("handler")
    a(asm.nop(), asm.reti())
    return a, Program.from_words(a.words())


def test_waking_from_idle_sleep_is_seen():
    """Timer 1 wakes the chip every 4001 cycles; then come the handler, the function, and sleep."""
    a, built = sleeper(
        TIMER1_COMPA,
        *(asm.ldi(16, 0x0F), asm.sts(asm.OCR1AH, 16)),
        *(asm.ldi(16, 0xA0), asm.sts(asm.OCR1AL, 16)),
        *(asm.ldi(16, 2), asm.sts(asm.TIMSK1, 16), asm.ldi(16, 9), asm.sts(asm.TCCR1B, 16)),
        *(asm.ldi(16, 1), asm.out(asm.SMCR, 16)),
    )
    work, handler = a.word_address("work"), a.word_address("handler")
    cycles = 10 * 4001 + 2000
    seen = Watched(built, cycles, starts=[MAIN, work, handler])
    served = seen.served
    assert len(served) == 10
    assert (np.diff(served[:, Served.RAISED]) == 4001).all()
    assert set(served[:, Served.OWN]) == {3 + 3 + 1 + 4}  # entry, jmp, nop, reti
    # The flag is seen a cycle later; the CPU stands still for four more; entry takes three.
    assert set(served[:, Served.ENTERED] - served[:, Served.RAISED]) == {1 + 4 + 3}
    assert set(seen.of(work)[:, Call.INCLUSIVE]) == {9}
    assert len(seen.of(work)) == 10
    awake = 10 * (11 + 1 + 3 + 9 + 2)  # handler, sleep, rcall, work, rjmp
    begins = served[0, Served.RAISED] - 4000  # of the timer
    alone = Chip(built)
    alone.run(cycles=cycles)
    assert seen.chip.digest() == alone.digest()
    counts = seen.ledger.counts
    assert counts[Count.ASLEEP] + seen.ledger.cycles.sum() == cycles == counts[Count.OBSERVED]
    assert seen.ledger.cycles.sum() == pytest.approx(awake + begins, abs=10)


def test_the_watchdog_wakes_from_power_down():
    a, built = sleeper(
        6,
        *(asm.ldi(16, 0x40), asm.sts(asm.WDTCSR, 16), asm.ldi(16, 5), asm.out(asm.SMCR, 16)),
    )
    seen = Watched(built, 600_000, starts=[MAIN, a.word_address("work"), a.word_address("handler")])
    assert len(seen.served) == 4  # every 16 ms
    assert set(np.diff(seen.served[:, Served.RAISED])) == {2048 * 8_000_000 // 128_000}
    assert set(seen.served[:, Served.ENTERED] - seen.served[:, Served.RAISED]) == {1 + 6 + 4 + 3}
    assert len(seen.of(a.word_address("work"))) == 4
    assert seen.ledger.counts[Count.ASLEEP] > 599_000


def test_a_reset_out_of_sleep_starts_anew():
    _, built = sleeper(
        6, asm.ldi(16, 0x08), asm.sts(asm.WDTCSR, 16), asm.ldi(16, 5), asm.out(asm.SMCR, 16)
    )
    seen = Watched(built, 1_400_000, starts=[0, MAIN])
    starts = seen.calls[seen.calls[:, Call.FUNCTION] == MAIN]
    assert len(starts) == 3  # after power-on and two resets, 16 ms and a start-up of 64 ms each
    off = seen.blackouts
    assert off[:, Blackout.PLACE].tolist()[1:] == [-1, -1]
    assert off[:, Blackout.FINISHED].all()


def test_interrupts_that_stay_off_are_listed_as_unfinished():
    def build(a):
        a(asm.sei(), asm.nop())
        a.label("off")
        a(asm.cli())
        a.label("end")
        a.branch(asm.rjmp, "end")

    a, built = program(build)
    seen = Watched(built, 1000)
    started, last = seen.blackouts
    assert started[Blackout.FINISHED]
    assert last.tolist() == [3 + 4 + 3, seen.chip.cycle, a.word_address("off"), 0, 0]


def test_recursion_has_one_outermost_call():
    def build(a):
        a(asm.ldi(24, 3))
        a.branch(asm.rcall, "again")
        a.label("end")
        a.branch(asm.rjmp, "end")
        a.label("again")
        a(asm.dec(24), asm.sbrs(24, 7))
        a.branch(asm.rcall, "again")
        a(asm.ret())

    a, built = program(build)
    calls = Watched(built, 200).of(a.word_address("again"))
    assert len(calls) == 4
    outermost = calls[calls[:, Call.OUTERMOST] == 1]
    assert outermost[:, Call.DEPTH].tolist() == [1]
    (row,) = outermost
    assert row[Call.INCLUSIVE] == calls[:, Call.EXCLUSIVE].sum()


def nested():
    """Main calls outer again and again, which calls inner of 1000 cycles twice, once by a jump."""

    def build(a):
        a.label("again")
        a.branch(asm.rcall, "outer")
        a.branch(asm.rjmp, "again")
        a.label("outer")
        a(asm.push(16))
        a.branch(asm.rcall, "inner")
        a(asm.pop(16))
        a.branch(asm.rjmp, "inner")
        a.label("inner")
        a(asm.ldi(24, 0xF9), asm.ldi(25, 0))
        a.label("loop")
        a(asm.sbiw(24, 1))
        a.branch(asm.brne, "loop")
        a(asm.ret())

    a, built = program(build)
    return built, {name: a.word_address(name) for name in ("main", "outer", "inner")}


@pytest.mark.parametrize("skipped", [300, 1005, 1012, 1500, 2030])
def test_watching_from_the_middle_of_a_program(skipped):
    built, places = nested()
    own = []
    for skip in (0, skipped):
        seen = Watched(built, 40_000 + skip, starts=[0, *places.values()], skip=skip)
        names = {word: name for name, word in places.items()}
        assert {names.get(f, "start") for f in seen.calls[:, Call.FUNCTION]} <= {*places, "start"}
        watched = seen.calls[:, Call.EXCLUSIVE].sum()
        own.append([seen.of(word)[:, Call.EXCLUSIVE].sum() / watched for word in places.values()])
        inner = seen.of(places["inner"])
        inner = inner[inner[:, Call.FINISHED] == 1]
        assert set(inner[:, Call.CALLER]) == {places["outer"]}
        assert set(inner[:, Call.INCLUSIVE]) == {2 + 249 * 4 - 1 + 4}
        if skip:
            assert watched == seen.chip.cycle - seen.begin
            assert set(seen.of(places["outer"])[:, Call.CALLER]) <= {places["main"], -1}
    assert own[1] == pytest.approx(own[0], abs=0.02)


def test_a_reset_starts_the_stack_anew():
    def build(a):
        a.absolute(asm.call, "function")
        a.label("function")
        a.absolute(asm.jmp, "start")

    a = asm.Assembler()
    a.label("start")
    a.absolute(asm.jmp, "main")
    a.org(MAIN)
    a.label("main")
    build(a)
    seen = Watched(Program.from_words(a.words()), 1000, starts=[0])
    calls = seen.of(a.word_address("function"))
    assert len(calls) > 50
    assert not calls[:, Call.FINISHED].any()
    assert seen.calls[:, Call.DEPTH].max() == 1
