"""Watchdog beyond section 11: every register value, every timeout, other clocks, fuses."""

import pytest

from tests.chip.peripherals.memories import change_clock, chip_of, idle, steps, writes_apart
from tests.chip.section11 import START_UP, D, boot, first_cycle, nops, put, run_to, sled, vector
from tests.reference.assemble import (
    OSCCAL,
    SMCR,
    WDTCSR,
    Assembler,
    jmp,
    ldi,
    out,
    reti,
    rjmp,
    sei,
    sleep,
    sts,
    wdr,
)

WDIF, WDIE, WDCE, WDE = 0x80, 0x40, 0x10, 0x08
WATCHDOG = 6
TIMEOUT = 128_000  # cycles at 8 MHz for WDP = 0
SECONDS = 0.016
LOOP = rjmp(-1)
POWER_DOWN = 0x05  # SMCR


def timed(value):
    """The sequence; the two STS land two cycles apart."""
    return ldi(16, WDCE | WDE) + ldi(17, value) + sts(WDTCSR, 16) + sts(WDTCSR, 17)


def prescaler(wdp):
    return wdp & 7 | (wdp & 8) << 2


@pytest.mark.jit_off
@pytest.mark.parametrize("distance", range(9))
def test_window_is_open_for_landing_distances_one_to_three(distance):
    got = writes_apart(idle(), "WDTCSR", WDCE | WDE, 0x21, distance)
    if 1 <= distance <= 3:
        assert got == 0x21
    else:
        assert got & ~WDCE == WDE


@pytest.mark.jit_off
def test_wdce_reads_one_for_four_cycles():
    chip = idle()
    chip.write("WDTCSR", WDCE | WDE)
    seen = []
    for _ in range(6):
        seen.append(chip.read("WDTCSR"))
        chip.step()
    assert seen == [WDCE | WDE] * 4 + [WDE] * 2


def test_every_value_of_a_plain_write():
    for value in range(256):
        chip = idle()
        chip.write("WDTCSR", value)
        arms = value & (WDCE | WDE) == WDCE | WDE
        assert chip.read("WDTCSR") == value & (WDIE | WDE) | (WDCE if arms else 0)
        steps(chip, 4)
        assert chip.read("WDTCSR") == value & (WDIE | WDE)


def test_every_value_of_a_timed_write():
    for value in range(256):
        chip = idle()
        got = writes_apart(chip, "WDTCSR", WDCE | WDE, value, 2)
        if value & WDCE:  # the change must be written with WDCE 0
            assert got & ~WDCE == WDE | value & WDIE
        else:
            assert got == value & ~WDIF
        steps(chip, 4)
        assert chip.read("WDTCSR") == got & ~WDCE


@pytest.mark.jit_off
def test_the_change_closes_the_window():
    chip = idle()
    writes_apart(chip, "WDTCSR", WDCE | WDE, 0x01, 1)
    chip.step()
    chip.write("WDTCSR", 0x02)
    assert chip.read("WDTCSR") == 0x01


@pytest.mark.parametrize("wdp", range(16))
def test_every_timeout(wdp):
    """Slept through in power-down: the watchdog counts on. 10 to 15 are taken for 9."""
    a = Assembler()
    a(jmp(0x40)).org(2 * WATCHDOG)(reti())
    a.org(0x40)(timed(WDIE | prescaler(wdp)), ldi(16, POWER_DOWN), out(SMCR, 16), sei(), wdr())
    a.label("again")(sleep())
    a.branch(rjmp, "again")
    chip = chip_of(a.words())
    restarted = run_to(chip, 2 * a.word_address("again"))
    due = restarted
    for _ in range(3):
        due += TIMEOUT << min(wdp, 9)
        entered = run_to(chip, vector(WATCHDOG), max_cycles=100_000_000)
        assert entered == due + 1 + 6 + 4 + D  # boundary, start-up, wake-up, entry
        chip.step()


def flag_cycle(chip, near):
    return first_cycle(chip, lambda: chip.read("WDTCSR") & WDIF, near=near)


@pytest.mark.parametrize("divider", range(9))
def test_the_system_clock_does_not_matter(divider):
    setup = change_clock(divider) + put(WDTCSR, WDIE)
    chip = boot(setup, wdr(), sled())
    restarted = run_to(chip, 2 * (len(setup) + 1))
    begun = chip.seconds
    flag = flag_cycle(chip, restarted + (TIMEOUT >> divider))
    assert flag - restarted == TIMEOUT >> divider
    assert chip.seconds - begun == pytest.approx(SECONDS, abs=1e-9)


@pytest.mark.jit_off
@pytest.mark.parametrize("osccal", [0x00, 0x40, 0x7F, 0x80, 0xC0, 0xFF])
@pytest.mark.parametrize("wait", [0, 777])
def test_a_change_of_the_clock_while_counting(osccal, wait):
    """The deadline is a moment in world time; the flag rises with the first edge at or after it."""
    setup = put(WDTCSR, WDIE) + wdr()
    change = nops(wait) + put(OSCCAL, osccal) + nops(100) + change_clock(3)
    chip = boot(setup, change, sled())
    run_to(chip, 2 * len(setup))
    begun = chip.seconds
    run_to(chip, 2 * len(setup + change))
    period = int(chip._c.period) / 1e14
    near = chip.cycle + int((begun + SECONDS - chip.seconds) / period)
    flag_cycle(chip, near)
    assert 0 <= chip.seconds - begun - SECONDS < period + 1e-13


def test_wdr_restarts():
    chip = boot(put(WDTCSR, WDIE), nops(1000), wdr(), nops(900), wdr(), sled())
    restarted = run_to(chip, 2 * (3 + 1000 + 1 + 900 + 1))
    assert flag_cycle(chip, restarted + TIMEOUT) - restarted == TIMEOUT


def test_counting_begins_at_the_reset_and_goes_on_while_disabled():
    chip = boot(nops(1000), put(WDTCSR, WDIE), sled())
    assert flag_cycle(chip, TIMEOUT) == TIMEOUT
    chip = boot(sled())
    chip.run(cycles=5 * TIMEOUT // 2)
    chip.write("WDTCSR", WDIE)
    assert not chip.read("WDTCSR") & WDIF  # nothing is flagged while disabled
    assert flag_cycle(chip, 3 * TIMEOUT) == 3 * TIMEOUT


def test_a_new_timeout_counts_from_the_last_restart():
    chip = boot(nops(100), wdr(), nops(1000), timed(WDIE | 0x02), sled())
    restarted = 101
    due = restarted + 4 * TIMEOUT
    assert flag_cycle(chip, due) == due


def test_a_shorter_timeout_than_what_has_passed():
    """The tap of the running counter comes next: no timeout at once."""
    chip = boot(timed(WDIE | 0x03), wdr(), sled())
    chip.run(cycles=1000)
    restarted = 7
    chip.run(cycles=5 * TIMEOUT // 2 - chip.cycle)
    writes_apart(chip, "WDTCSR", WDCE | WDE | WDIE, WDIE, 1)
    assert not chip.read("WDTCSR") & WDIF
    assert flag_cycle(chip, restarted + 3 * TIMEOUT) == restarted + 3 * TIMEOUT


def test_flag_is_cleared_by_writing_one():
    chip = boot(put(WDTCSR, WDIE), sled())
    chip.run(cycles=TIMEOUT + 10)
    for value, expected in ((0, WDIF), (WDIE, WDIF | WDIE), (WDIF, 0), (WDIE, WDIE)):
        chip.write("WDTCSR", value)
        assert chip.read("WDTCSR") == expected


def test_enabling_with_the_flag_set_interrupts():
    chip = boot(put(WDTCSR, WDIE), sled(), isr={WATCHDOG: reti()})
    chip.run(cycles=TIMEOUT + 10)
    chip.write("WDTCSR", 0)
    chip.step()
    chip.write("SREG", 0x80)
    chip.run(cycles=1000)
    assert chip.read("WDTCSR") == WDIF
    chip.write("WDTCSR", WDIE)
    run_to(chip, vector(WATCHDOG), max_cycles=20)
    assert chip.read("WDTCSR") == WDIE


def test_reset_mode():
    chip = boot(put(WDTCSR, WDE), wdr(), nops(1000), sled())
    chip.run(cycles=500)
    chip.poke(20, 0x5A)
    chip.poke(0x123, 0xA5)
    begun = 4
    chip.run(cycles=TIMEOUT - 600)
    assert chip.read("MCUSR") == 0x01
    reset = run_to(chip, 0)
    assert 0 <= reset - START_UP - (begun + TIMEOUT) <= 3
    assert chip.read("MCUSR") == 0x09
    assert chip.read("WDTCSR") == WDE
    assert (chip.registers[20], int(chip.data[0x123])) == (0x5A, 0xA5)
    again = run_to(chip, 0)  # nobody feeds it: the next one comes
    assert again - reset - START_UP == pytest.approx(TIMEOUT, abs=5)


def test_reset_wakes_from_power_down_even_without_interrupts():
    chip = boot(put(WDTCSR, WDE), ldi(16, POWER_DOWN), out(SMCR, 16), sleep(), LOOP)
    chip.run(cycles=1000)
    assert chip.asleep
    run_to(chip, 0)
    assert not chip.asleep
    assert chip.cycle - START_UP == pytest.approx(TIMEOUT, abs=5)


def test_wdrf_keeps_wde_until_it_is_cleared():
    chip = boot(put(WDTCSR, WDE), sled())
    chip.run(cycles=10)
    run_to(chip, 0)
    assert writes_apart(chip, "WDTCSR", WDCE | WDE, 0, 0) & WDE
    steps(chip, 10)
    assert writes_apart(chip, "WDTCSR", WDCE | WDE, 0x02, 2) == WDE | 0x02
    chip.write("MCUSR", 0)
    steps(chip, 1)
    assert chip.read("WDTCSR") == WDE | 0x02
    assert writes_apart(chip, "WDTCSR", WDCE | WDE, 0, 1) == 0


def test_fuse_makes_it_always_reset():
    """WDTON programmed: WDE is locked to 1 and WDIE to 0, WDP can change."""
    chip = chip_of(nops(1) + sled(), high=0xC9)
    assert chip.read("WDTCSR") == WDE
    for value in range(256):
        chip.write("WDTCSR", value)
        assert chip.read("WDTCSR") & (WDIE | WDE) == WDE
        steps(chip, 5)
    assert writes_apart(chip, "WDTCSR", WDCE | WDE, 0x41, 2) == WDE | 0x01
    run_to(chip, 0)
    assert chip.cycle - START_UP == pytest.approx(2 * TIMEOUT, abs=5)
    assert chip.read("MCUSR") & 0x08
