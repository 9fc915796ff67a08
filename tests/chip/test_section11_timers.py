"""Timing reference, section 11.3: timers. Tests are named after the rows."""
# ruff: noqa: F403, F405

from itertools import pairwise

import pytest

from tests.chip.section11 import (
    MAIN,
    bit,
    boot,
    first_cycle,
    nops,
    put,
    put_io,
    register,
    registers,
    run_steps,
    run_to,
    sled,
    vector,
)
from tests.reference.assemble import *

pytestmark = pytest.mark.jit_off

LOOP = rjmp(-1)
TIMER0_COMPA = 14


def run_all(*parts, cycles=200):
    chip = boot(*parts, LOOP)
    chip.run(cycles=cycles)
    return chip


def test_T01_start_timer2_nop_read():
    chip = run_all(ldi(16, 1), sts(TCCR2B, 16), nop(), lds(20, TCNT2))
    assert register(chip, 20) == 2


def test_T02_start_timer2_read():
    chip = run_all(ldi(16, 1), sts(TCCR2B, 16), lds(20, TCNT2))
    assert register(chip, 20) == 1


def test_T03_start_stop_timer2_read():
    chip = run_all(
        ldi(16, 1), ldi(17, 0), sts(TCCR2B, 16), sts(TCCR2B, 17), nop(), nop(), lds(20, TCNT2)
    )
    assert register(chip, 20) == 2


def test_T04_write_running_tcnt0_read():
    chip = run_all(ldi(17, 0x30), put_io(TCCR0B, 1), nops(9), out(TCNT0, 17), in_(20, TCNT0))
    assert register(chip, 20) == 0x30


def test_T05_write_running_tcnt0_nop_read():
    chip = run_all(ldi(17, 0x30), put_io(TCCR0B, 1), nops(9), out(TCNT0, 17), nop(), in_(20, TCNT0))
    assert register(chip, 20) == 0x31


def test_T06_start_keeps_tcnt0():
    chip = run_all(put_io(TCNT0, 0x30), ldi(16, 1), out(TCCR0B, 16), in_(20, TCNT0), in_(21, TCNT0))
    assert registers(chip, 20, 21) == [0x30, 0x31]


@pytest.mark.parametrize("clock_select", [0, 2, 3, 4, 5])
def test_T07_changing_the_clock_keeps_tcnt0(clock_select):
    chip = boot(
        ldi(17, clock_select), put_io(TCCR0B, 1), nops(50), out(TCCR0B, 17), in_(20, TCNT0), LOOP
    )
    chip.run(cycles=56)
    # counts at the 51 edges after the one of the first write, the one of the second write included
    assert register(chip, 20) == 51


@pytest.mark.parametrize("wait", range(8))
def test_T08_tcnt0_ff_overflows_at_the_next_tick(wait):
    chip = boot(ldi(17, 0xFF), put_io(TCCR0B, 2), nops(30 + wait), out(TCNT0, 17), sled(50))
    run_steps(chip, 3 + 30 + wait + 1)
    written = chip.cycle
    assert chip.read("TCNT0") == 0xFF
    overflow = first_cycle(chip, lambda: bit(chip, "TIFR0", 0))
    assert overflow == (written // 8 + 1) * 8
    assert chip.read("TCNT0") == 0


@pytest.mark.parametrize("wait", [0, 1, 500, 1015, 1016])
def test_T09_time_to_overflow_from_half(wait):
    """128 ticks of /1024, less what the free-running prescaler has already counted (phase 0 at
    power-on).
    """
    chip = boot(put_io(TCNT0, 128), nops(wait), put_io(TCCR0B, 5), sled())
    run_steps(chip, 2 + wait + 2)
    started = chip.cycle
    expected = (started // 1024 + 128) * 1024
    assert 131072 - 1024 <= expected - started <= 131072
    assert first_cycle(chip, lambda: bit(chip, "TIFR0", 0), near=expected) == expected


def test_T10_compare_flag_one_clock_after_equality():
    flags = [in_(r, TIFR0) for r in range(16)]
    chip = run_all(put_io(OCR0A, 5), put_io(TCCR0B, 1), *flags)
    assert [value >> 1 & 1 for value in registers(chip, 0, 15)] == [0] * 6 + [1] * 10
    counts = [in_(r, TCNT0) for r in range(16)]
    chip = run_all(put_io(OCR0A, 5), put_io(TCCR0B, 1), *counts)
    assert registers(chip, 0, 15) == list(range(16))


def test_T11_compare_flag_at_1024_when_ff_becomes_00():
    chip = boot(put_io(OCR0A, 0xFF), put_io(TCCR0B, 5), sled())
    expected = 256 * 1024
    assert first_cycle(chip, lambda: bit(chip, "TIFR0", 1), near=expected) == expected
    assert chip.read("TCNT0") == 0
    assert bit(chip, "TIFR0", 0) == 1


def test_T12_ctc_counts_to_top_and_restarts():
    counts = [in_(r, TCNT0) for r in range(8)]
    chip = run_all(put_io(OCR0A, 5), put_io(TCCR0A, 2), put_io(TCCR0B, 1), *counts)
    assert registers(chip, 0, 7) == [0, 1, 2, 3, 4, 5, 0, 1]


def test_T13_ctc_below_max_never_overflows():
    chip = run_all(put_io(OCR0A, 5), put_io(TCCR0A, 2), put_io(TCCR0B, 1), cycles=2000)
    assert bit(chip, "TIFR0", 1) == 1
    assert bit(chip, "TIFR0", 0) == 0


def test_T14_ctc_compare_above_top_never_matches():
    chip = run_all(
        put_io(OCR0A, 5), put_io(OCR0B, 6), put_io(TCCR0A, 2), put_io(TCCR0B, 1), cycles=2000
    )
    assert chip.read("TIFR0") == 0x02


def test_T15_ctc_top_lowered_below_the_count():
    chip = boot(
        put_io(OCR0A, 200),
        put_io(TCCR0A, 2),
        put_io(TCCR0B, 1),
        nops(100),
        put_io(OCR0A, 50),
        sled(),
    )
    run_steps(chip, 6 + 100 + 2)
    count = chip.read("TCNT0")
    assert count == 102
    seen = []
    for _ in range(300):
        seen.append((chip.read("TCNT0"), chip.read("TIFR0") & 3))
        chip.step()
    to_max = [(n, 0) for n in range(count, 256)]
    once = [(n, 1) for n in range(51)]  # TOV0 from leaving FF on
    again = [(n, 3) for n in range(51)]  # OCF0A from leaving 50 on
    expected = to_max + once + again + again
    assert seen[: len(expected)] == expected[: len(seen)]


def test_T16_tcnt_written_equal_to_compare_does_not_match():
    chip = boot(put_io(OCR0A, 0x40), put_io(TCCR0B, 1), nops(20), put_io(TCNT0, 0x40), sled(600))
    run_steps(chip, 4 + 20 + 2)
    assert chip.read("TCNT0") == 0x40
    run_steps(chip, 200)
    assert bit(chip, "TIFR0", 1) == 0
    run_steps(chip, 57)  # after the wrap it matches as ever
    assert chip.read("TCNT0") == 0x41
    assert bit(chip, "TIFR0", 1) == 1


def test_T16_also_when_written_while_stopped():
    """A TCNT write blocks the match of the next timer clock, also when the timer stands."""
    chip = run_all(
        put_io(OCR0A, 0x40), put_io(TCNT0, 0x40), put_io(TCCR0B, 1), nops(20), in_(20, TIFR0)
    )
    assert register(chip, 20) >> 1 & 1 == 0


def test_T17_tcnt_written_one_below_compare():
    flags = [in_(r, TIFR0) for r in range(5)]
    chip = run_all(put_io(OCR0A, 0x40), put_io(TCCR0B, 1), nops(20), put_io(TCNT0, 0x3F), *flags)
    assert [value >> 1 & 1 for value in registers(chip, 0, 4)] == [0, 0, 1, 1, 1]


def test_T18_compare_written_equal_to_the_count():
    chip = boot(put_io(TCCR0B, 5), sled())
    first_cycle(chip, lambda: chip.read("TCNT0") == 3, near=3 * 1024)
    chip.run(cycles=500)
    chip.write("TIFR0", 0x07)  # OCR0A was 0, so the first tick matched
    chip.write("OCR0A", 3)
    assert chip.read("TCNT0") == 3
    assert first_cycle(chip, lambda: bit(chip, "TIFR0", 1), near=4 * 1024) == 4 * 1024
    assert chip.read("TCNT0") == 4


@pytest.mark.parametrize("phase", range(8))
def test_T19_first_count_at_the_shared_prescaler_edge(phase):
    chip = boot(nops(phase), put_io(TCCR0B, 2), sled(50))
    run_steps(chip, phase + 2)
    started = chip.cycle
    first = first_cycle(chip, lambda: chip.read("TCNT0") == 1)
    assert first == (started // 8 + 1) * 8
    assert 1 <= first - started <= 8
    assert first_cycle(chip, lambda: chip.read("TCNT0") == 2) == first + 8


def test_T20_timers_on_the_same_tap_step_together():
    chip = boot(put_io(TCCR0B, 3), nops(100), put(TCCR1B, 3), sled())
    run_steps(chip, 2 + 100 + 2)
    steps = {"TCNT0": [], "TCNT1L": []}
    last = {name: chip.read(name) for name in steps}
    for _ in range(700):
        chip.step()
        for name, edges in steps.items():
            if chip.read(name) != last[name]:
                edges.append(chip.cycle)
                last[name] = chip.read(name)
    assert steps["TCNT0"] == steps["TCNT1L"]
    assert len(steps["TCNT0"]) >= 10
    assert all(edge % 64 == 0 for edge in steps["TCNT0"])


@pytest.mark.parametrize("wait", range(8))
def test_T21_prescaler_reset(wait):
    chip = boot(
        put_io(TCCR0B, 2), ldi(16, 1), nops(wait + 10), out(GTCCR, 16), in_(20, GTCCR), sled(60)
    )
    run_steps(chip, 3 + wait + 10 + 1)
    reset = chip.cycle
    count = chip.read("TCNT0")
    chip.step()
    assert register(chip, 20) == 0
    # the next tick comes N cycles after the release (+/-1 is U; exactly N is our choice)
    assert first_cycle(chip, lambda: chip.read("TCNT0") == count + 1) == reset + 8
    assert first_cycle(chip, lambda: chip.read("TCNT0") == count + 2) == reset + 16


def test_T21_resets_only_its_own_prescaler():
    chip = boot(put(TCCR2B, 2), nops(3), put_io(GTCCR, 1), sled(60))
    run_steps(chip, 2 + 3 + 2)
    count = chip.read("TCNT2")
    assert first_cycle(chip, lambda: chip.read("TCNT2") == count + 1) % 8 == 0


def test_T22_tsm_freezes_the_timers():
    chip = boot(put_io(TCCR0B, 5), put(TCCR1B, 2), put(TCCR2B, 2), put_io(GTCCR, 0x83), LOOP)
    chip.run(cycles=20)
    before = [chip.read(name) for name in ("TCNT0", "TCNT1L", "TCNT2")]
    chip.run(cycles=4096)
    assert [chip.read(name) for name in ("TCNT0", "TCNT1L", "TCNT2")] == before
    assert chip.read("GTCCR") == 0x83


def test_T22_released_by_clearing_tsm():
    chip = boot(put_io(TCCR0B, 2), put_io(GTCCR, 0x81), nops(100), put_io(GTCCR, 0), sled(100))
    run_steps(chip, 4 + 100 + 2)
    released = chip.cycle
    assert chip.read("GTCCR") == 0
    count = chip.read("TCNT0")
    assert first_cycle(chip, lambda: chip.read("TCNT0") == count + 1) == released + 8


def test_T23_timer2_phase_correct_counting():
    chip = boot(put(TCCR2A, 1), put(TCCR2B, 2), sled())
    run_steps(chip, 4)
    first = (chip.cycle // 8 + 1) * 8  # the first tick
    for ticks in (1, 128, 255, 256, 384, 509, 510, 511, 638, 1020):
        chip.run(cycles=first + 8 * (ticks - 1) - chip.cycle)
        position = ticks % 510
        assert chip.read("TCNT2") == (position if position <= 255 else 510 - position)


def test_T23_128_then_256_ticks():
    chip = boot(put(TCCR2A, 1), put(TCCR2B, 2), sled())
    run_steps(chip, 4)
    first = (chip.cycle // 8 + 1) * 8
    chip.run(cycles=first + 8 * 127 - chip.cycle)
    assert chip.read("TCNT2") == 0x80
    chip.run(cycles=8 * 256)
    assert chip.read("TCNT2") == 0x7E


def phase_correct_timer2(compare, com=2):
    """T2 in mode 1 at clk/1, OC2A on PB3 as output, ready in a sled."""
    return boot(
        put_io(DDRB, 8),
        put(OCR2A, compare),
        put(TCCR2A, com << 6 | 1),
        put(TCCR2B, 1),
        nops(8000),
        LOOP,
    )


def levels(chip, cycles):
    """(TCNT2, level of PB3) for each cycle."""
    seen = []
    end = chip.cycle + cycles
    while chip.cycle < end:
        seen.append((chip.read("TCNT2"), chip.pin("PB3")))
        chip.step()
    return seen


@pytest.mark.parametrize(
    ("compare", "com", "level"), [(0x00, 2, 0), (0xFF, 2, 1), (0x00, 3, 1), (0xFF, 3, 0)]
)
def test_T24_phase_correct_extremes_are_constant(compare, com, level):
    chip = phase_correct_timer2(compare, com)
    chip.run(cycles=1200)  # two periods, so that compare has been loaded and the pin has its level
    assert {seen for _, seen in levels(chip, 1100)} == {level}


def ramp(chip, count, down):
    """Step to the cycle in which TCNT2 is `count`, counting down or up."""
    before = chip.read("TCNT2")
    for _ in range(1200):
        chip.step()
        now = chip.read("TCNT2")
        if now == count and (now < before) == down:
            return
        before = now
    raise AssertionError("not reached")


def pin_changes(chip, cycles):
    """(TCNT2, new level) at each change of PB3."""
    seen = levels(chip, cycles)
    return [now for last, now in pairwise(seen) if now[1] != last[1]]


def test_T25_compare_leaves_max():
    chip = phase_correct_timer2(0xFF)
    chip.run(cycles=1100)
    ramp(chip, 0x20, down=False)
    assert chip.pin("PB3") == 1
    chip.write("OCR2A", 0x40)
    # loaded on the edge that leaves TOP: low with TCNT2 = FE, high again when the down match
    # (leaving 40) happens
    assert pin_changes(chip, 600) == [(0xFE, 0), (0x3F, 1), (0x41, 0)]


def test_T26_compare_written_in_mid_ramp_waits_for_top():
    chip = phase_correct_timer2(0x80)
    chip.run(cycles=1100)
    ramp(chip, 0x20, down=False)
    chip.write("OCR2A", 0x40)
    assert chip.read("OCR2A") == 0x40  # the CPU sees the buffer
    assert pin_changes(chip, 700) == [(0x81, 0), (0x3F, 1), (0x41, 0)]


def test_T27_phase_correct_overflow_on_leaving_bottom():
    chip = phase_correct_timer2(0x80)
    chip.run(cycles=100)
    chip.write("TIFR2", 0x07)
    ramp(chip, 1, down=True)
    assert bit(chip, "TIFR2", 0) == 0
    chip.step()
    assert (chip.read("TCNT2"), bit(chip, "TIFR2", 0)) == (0, 0)
    chip.step()
    assert (chip.read("TCNT2"), bit(chip, "TIFR2", 0)) == (1, 1)


def test_T28_one_temp_for_all_16_bit_registers():
    chip = run_all(
        put(OCR1AH, 0x11),
        put(OCR1AL, 0x22),
        put(OCR1AH, 0xAB),
        put(OCR1BL, 0xCD),
        lds(20, OCR1AL),
        lds(21, OCR1AH),
        lds(22, OCR1BL),
        lds(23, OCR1BH),
    )
    assert registers(chip, 20, 23) == [0x22, 0x11, 0xCD, 0xAB]


def test_T29_tcnt1_read_through_temp():
    chip = run_all(
        put(TCNT1H, 0x00),
        put(TCNT1L, 0xFD),
        ldi(16, 1),
        sts(TCCR1B, 16),
        lds(20, TCNT1L),
        lds(21, TCNT1H),
        lds(22, TCNT1L),
        lds(23, TCNT1H),
    )
    assert registers(chip, 20, 23) == [0xFE, 0x00, 0x02, 0x01]


def test_T30_force_compare_toggles_the_pin():
    chip = boot(
        put_io(DDRD, 0x40),
        put_io(TCCR0A, 0x40),
        put_io(TCCR0B, 0x80),
        in_(20, TCCR0B),
        in_(21, TIFR0),
        put_io(TCCR0B, 0x80),
        nops(3),
        LOOP,
    )
    run_steps(chip, 4)
    assert chip.pin("PD6") == 0
    run_steps(chip, 2)
    assert chip.pin("PD6") == 1
    run_steps(chip, 2)
    assert registers(chip, 20, 21) == [0, 0]
    assert chip.read("TCNT0") == 0
    run_steps(chip, 2)
    assert chip.pin("PD6") == 0


def test_T31_first_tick_matches_compare_zero():
    flags = [in_(r, TIFR1) for r in range(4)]
    chip = run_all(put(TCCR1B, 1), *flags)
    assert [value >> 2 & 1 for value in registers(chip, 0, 3)] == [0, 1, 1, 1]


def test_T32_period_of_the_kilobot_tick():
    chip = boot(
        put_io(OCR0A, 0xFF),
        put(TIMSK0, 2),
        put_io(TCCR0B, 5),
        sei(),
        sled(),
        isr={TIMER0_COMPA: reti()},
    )
    first = run_to(chip, vector(TIMER0_COMPA))
    assert first == 256 * 1024 + 4
    for number in (1, 2, 3):
        chip.step()
        assert chip.pc >= 2 * MAIN
        assert run_to(chip, vector(TIMER0_COMPA)) == first + number * 262144
