"""Timing reference, section 11.5: EEPROM, flash, watchdog. Tests are named after the rows."""
# ruff: noqa: F403, F405

from itertools import pairwise

import pytest

from tests.chip.section11 import (
    BOOT,
    START_UP,
    D,
    bit,
    boot,
    boot_section,
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
EERIE, EEMPE, EEPE, EERE = 8, 4, 2, 1
EE_READY, WATCHDOG = 22, 6
WRITE_CYCLES, ERASE_CYCLES = 26368, 14400  # RC cycles; the second is 1.8 ms at 8 MHz
PAGE_CYCLES = 32000  # our choice within 3.7 to 4.5 ms


# ---- EEPROM --------------------------------------------------------------------------------------


def ee_address(address, value):
    return put_io(EEARL, address & 0xFF) + put_io(EEARH, address >> 8) + put_io(EEDR, value)


def test_E01_read_halts_four_cycles():
    before = ee_address(5, 0)
    chip = boot(before, out(GPIOR0, 16), sbi(EECR, 0), out(GPIOR0, 16), in_(20, EEDR), LOOP)
    chip.eeprom[5] = 0xA7
    first = run_to(chip, 2 * len(before))
    assert run_to(chip, 2 * len(before) + 4) == first + 7
    run_steps(chip, 2)
    assert register(chip, 20) == 0xA7


def test_E02_write_start_halts_two_cycles():
    before = ee_address(5, 0x42)
    chip = boot(before, sbi(EECR, 2), sbi(EECR, 1), nops(3), LOOP)
    first = run_to(chip, 2 * len(before) + 2)
    assert run_to(chip, 2 * len(before) + 4) == first + 4


def test_E03_programming_time():
    before = ee_address(0x123, 0x42)
    chip = boot(before, sbi(EECR, 2), sbi(EECR, 1), sled())
    landed = run_to(chip, 2 * len(before) + 2) + 2
    run_to(chip, 2 * len(before) + 4)
    assert chip.read("EECR") & EEPE
    done = first_cycle(chip, lambda: not chip.read("EECR") & EEPE, near=landed + WRITE_CYCLES)
    assert WRITE_CYCLES <= done - landed <= 27200  # 3.3 to 3.4 ms
    assert done - landed == WRITE_CYCLES
    assert chip.eeprom[0x123] == 0x42


@pytest.mark.parametrize(
    ("distance", "works"), [(1, True), (2, True), (3, True), (6, False), (8, False)]
)
def test_E04_window_of_the_write_enable(distance, works):
    chip = boot(
        ee_address(7, 0x42),
        ldi(16, EEMPE),
        ldi(17, EEMPE | EEPE),
        out(EECR, 16),
        nops(distance - 1),
        out(EECR, 17),
        LOOP,
    )
    chip.run(cycles=40)
    assert bool(chip.read("EECR") & EEPE) == works
    chip.run(cycles=30_000)
    assert chip.eeprom[7] == (0x42 if works else 0xFF)


def ee_write(mode):
    """EEPM and EEMPE, then EEPE."""
    return (
        ldi(16, mode << 4 | EEMPE)
        + ldi(17, mode << 4 | EEMPE | EEPE)
        + out(EECR, 16)
        + out(EECR, 17)
    )


@pytest.mark.parametrize(
    ("mode", "result", "cycles"),
    [(0, 0x0F, WRITE_CYCLES), (1, 0xFF, ERASE_CYCLES), (2, 0x03, ERASE_CYCLES)],
)
def test_E05_split_programming_modes(mode, result, cycles):
    before = ee_address(7, 0x0F) + ee_write(mode)
    chip = boot(before, sled())
    chip.eeprom[7] = 0x33
    landed = run_to(chip, 2 * len(before) - 2) + 1
    chip.step()
    done = first_cycle(chip, lambda: not chip.read("EECR") & EEPE, near=landed + cycles)
    assert done - landed == cycles
    assert chip.eeprom[7] == result


def test_E06_ready_interrupt_repeats():
    chip = boot(put_io(EECR, EERIE), sei(), inc(20), LOOP, isr={EE_READY: inc(21) + reti()})
    chip.run(cycles=300)
    assert register(chip, 21) > 10


def test_E07_registers_cannot_change_during_a_write():
    chip = boot(
        ee_address(7, 0x42),
        ee_write(0),
        nops(5),
        ee_address(9, 0x99),
        sbi(EECR, 0),
        nop(),
        in_(20, EEARL),
        in_(21, EEDR),
        LOOP,
    )
    chip.eeprom[9] = 0x11
    chip.run(cycles=100)
    assert registers(chip, 20, 21) == [7, 0x42]
    chip.run(cycles=30_000)
    assert (chip.eeprom[7], chip.eeprom[9]) == (0x42, 0x11)


# ---- self-programming ----------------------------------------------------------------------------

FILL, ERASE, WRITE, LOCK, ENABLE, SIGNATURE = 0x01, 0x03, 0x05, 0x09, 0x11, 0x21
SPMEN, RWWSB = 0x01, 0x40


def z_to(byte_address):
    return ldi(30, byte_address & 0xFF) + ldi(31, byte_address >> 8)


def command(code, byte_address=None):
    """SPMCSR and SPM right after."""
    return (
        (z_to(byte_address) if byte_address is not None else [])
        + ldi(16, code)
        + out(SPMCSR, 16)
        + spm()
    )


def wait_ready():
    return in_(17, SPMCSR) + sbrc(17, 0) + rjmp(-3)


def fill(byte_address, word):
    return (
        ldi(18, word & 0xFF)
        + mov(0, 18)
        + ldi(18, word >> 8)
        + mov(1, 18)
        + command(FILL, byte_address)
    )


PAGE = 0x0400  # byte address of a page in the RWW section
CONTENT = {PAGE // 2 - 1: [0x1111], PAGE // 2: [0x1234] * 64, PAGE // 2 + 64: [0x2222]}


def page(chip, byte_address=PAGE):
    """The 64 words of a page with one neighbour on each side."""
    return [int(word) for word in chip.flash[byte_address // 2 - 1 : byte_address // 2 + 65]]


def test_F01_erase_takes_the_whole_aligned_page():
    chip = boot_section(command(ERASE, PAGE + 0x36), wait_ready(), LOOP, rest=CONTENT)
    chip.run(cycles=40_000)
    assert page(chip) == [0x1111] + [0xFFFF] * 64 + [0x2222]


@pytest.mark.parametrize("code", [ERASE, WRITE])
@pytest.mark.parametrize("end", [ENABLE, FILL])
def test_F02_busy_flags(code, end):
    before = command(code, PAGE)
    chip = boot_section(before, sled(), rest=CONTENT)
    run_to(chip, 2 * (BOOT + len(before)))
    start = chip.cycle
    assert chip.read("SPMCSR") & (SPMEN | RWWSB) == SPMEN | RWWSB
    done = first_cycle(chip, lambda: not chip.read("SPMCSR") & SPMEN, near=start + PAGE_CYCLES - 10)
    assert 29600 <= done - start <= 36000
    assert abs(done - start - PAGE_CYCLES) <= 1
    chip.run(cycles=5000)
    assert chip.read("SPMCSR") & RWWSB
    # and once more with what ends it
    chip = boot_section(
        before,
        wait_ready(),
        in_(20, SPMCSR),
        command(end, PAGE),
        nops(4),
        in_(21, SPMCSR),
        LOOP,
        rest=CONTENT,
    )
    chip.run(cycles=40_000)
    assert register(chip, 20) & RWWSB
    assert register(chip, 21) & (RWWSB | SPMEN) == 0


def test_F02_flash_in_the_rww_section_is_not_readable_while_busy():
    """Our choice for the undefined data is FF."""
    before = command(ERASE, PAGE)
    chip = boot_section(
        before,
        z_to(PAGE + 128),
        lpm(20),
        wait_ready(),
        z_to(PAGE + 128),
        lpm(21),
        command(ENABLE),
        z_to(PAGE + 128),
        lpm(22),
        LOOP,
        rest=CONTENT,
    )
    chip.run(cycles=40_000)
    assert registers(chip, 20, 22) == [0xFF, 0xFF, 0x22]


def test_F03_second_fill_of_a_word_is_ignored():
    chip = boot_section(
        command(ERASE, PAGE),
        wait_ready(),
        fill(PAGE + 6, 0xABCD),
        fill(PAGE + 6, 0x0000),
        fill(PAGE + 8, 0x5678),
        command(WRITE, PAGE),
        wait_ready(),
        LOOP,
        rest=CONTENT,
    )
    chip.run(cycles=80_000)
    expected = [0xFFFF] * 64
    expected[3:5] = [0xABCD, 0x5678]
    assert page(chip) == [0x1111, *expected, 0x2222]


def test_F04_write_without_erase_can_only_clear_bits():
    chip = boot_section(
        fill(PAGE, 0xF00F),
        fill(PAGE + 126, 0x00FF),
        command(WRITE, PAGE),
        wait_ready(),
        LOOP,
        rest=CONTENT,
    )
    chip.run(cycles=40_000)
    expected = [0x1234 & 0xF00F] + [0x1234] * 62 + [0x1234 & 0x00FF]
    assert page(chip) == [0x1111, *expected, 0x2222]


def read_special(code, z, d):
    return z_to(z) + ldi(16, code) + out(SPMCSR, 16) + lpm(d)


def test_F05_signature_and_fuses():
    chip = boot_section(
        *(read_special(SIGNATURE, z, 20 + n) for n, z in enumerate((0, 2, 4))),
        nops(5),
        in_(23, SPMCSR),
        LOOP,
    )
    chip.run(cycles=60)
    assert registers(chip, 20, 23) == [0x1E, 0x95, 0x0F, 0]
    chip = boot_section(*(read_special(LOCK, z, 20 + z) for z in range(4)), LOOP)
    chip.run(cycles=60)
    low, lock, extended, high = registers(chip, 20, 23)
    assert (lock, extended) == (0xFF, 0xFF)
    assert high & 0x06 == 0  # BOOTSZ = 00
    assert low & 0x80  # CKDIV8 off, as CLKPR says
    assert chip.read("CLKPR") == 0


def test_F05_osccal_byte_is_the_reset_value():
    chip = boot_section(read_special(SIGNATURE, 1, 20), lds(21, OSCCAL), LOOP)
    chip.run(cycles=30)
    assert register(chip, 20) == register(chip, 21)


def test_F05_only_within_three_cycles():
    chip = boot_section(z_to(0), ldi(16, SIGNATURE), out(SPMCSR, 16), nops(6), lpm(20), LOOP)
    chip.run(cycles=40)
    assert register(chip, 20) == jmp(BOOT)[0] & 0xFF


def test_F06_spm_below_the_boot_section_does_nothing():
    a = command(ERASE, PAGE) + wait_ready() + fill(PAGE, 0x1000) + command(WRITE, PAGE) + LOOP
    chip = boot(a, nops(PAGE // 2 - len(a) - 1), [0x1111], [0x1234] * 64, [0x2222])
    chip.run(cycles=100_000)
    assert page(chip) == [0x1111] + [0x1234] * 64 + [0x2222]
    assert chip.read("SPMCSR") & (SPMEN | RWWSB) == 0


def test_F07_spmen_clears_itself():
    chip = boot_section(ldi(16, FILL), out(SPMCSR, 16), sled(50))
    run_steps(chip, 3)
    start = chip.cycle
    assert chip.read("SPMCSR") == FILL
    cleared = first_cycle(chip, lambda: not chip.read("SPMCSR") & SPMEN)
    assert cleared - start == 4
    chip = boot_section(
        z_to(PAGE), ldi(16, ERASE), out(SPMCSR, 16), nops(6), spm(), LOOP, rest=CONTENT
    )
    chip.run(cycles=40_000)
    assert page(chip) == [0x1111] + [0x1234] * 64 + [0x2222]


def test_F08_nrww_erase_halts_the_cpu():
    last_page = 0x7F80
    before = command(ERASE, last_page)
    chip = boot_section(before, inc(20), LOOP, rest={last_page // 2: [0x1234] * 64})
    start = run_to(chip, 2 * (BOOT + len(before)) - 2)
    chip.step()
    assert chip.pc == 2 * (BOOT + len(before))
    assert 29600 <= chip.cycle - start <= 36000
    assert abs(chip.cycle - start - PAGE_CYCLES) <= 2
    assert chip.read("SPMCSR") & (SPMEN | RWWSB) == 0
    assert [int(word) for word in chip.flash[last_page // 2 :]] == [0xFFFF] * 64


# ---- watchdog ------------------------------------------------------------------------------------

WDIF, WDIE, WDCE, WDE = 0x80, 0x40, 0x10, 0x08
TIMEOUT = 128_000  # cycles at 8 MHz for WDP = 0


def sequence(value, wait=0):
    """The timed change of WDTCSR; the two STS are 2 + wait cycles apart."""
    return ldi(16, WDCE | WDE) + ldi(17, value) + sts(WDTCSR, 16) + nops(wait) + sts(WDTCSR, 17)


def test_W01_plain_write_does_not_change_the_prescaler():
    chip = boot(put(WDTCSR, WDIE | 0x07), lds(20, WDTCSR), LOOP)
    chip.run(cycles=20)
    assert register(chip, 20) == WDIE


@pytest.mark.parametrize("wait", [0, 1])
def test_W02_timed_sequence(wait):
    chip = boot(sequence(WDIE | 0x21, wait), lds(20, WDTCSR), LOOP)
    chip.run(cycles=20)
    assert register(chip, 20) == WDIE | 0x21


def test_W03_late_sequence():
    """8 cycles late: WDE was set by the first write, WDP stays."""
    chip = boot(sequence(0x01), lds(20, WDTCSR), sequence(0x42, wait=6), lds(21, WDTCSR), LOOP)
    chip.run(cycles=40)
    assert registers(chip, 20, 21) == [0x01, 0x49]


def test_W04_interrupt_mode_repeats():
    chip = boot(put(WDTCSR, WDIE), sei(), sled(), isr={WATCHDOG: reti()})
    times = []
    for _ in range(4):
        times.append(run_to(chip, vector(WATCHDOG)))
        assert chip.read("WDTCSR") == WDIE
        chip.step()
    assert [b - a for a, b in pairwise(times)] == [TIMEOUT] * 3


def test_W05_interrupt_then_reset():
    main = in_(20, MCUSR) + sbrc(20, 3) + rjmp(20)
    chip = boot(main, sequence(WDE | WDIE | 0x01), sei(), sled(), isr={WATCHDOG: reti()})
    chip.run(cycles=30)
    first = run_to(chip, vector(WATCHDOG))
    chip.step()
    assert chip.read("WDTCSR") == WDE | 0x01
    reset = run_to(chip, 0)
    # the interrupt response takes a few cycles, the reset none
    assert 2 * TIMEOUT - 4 - D <= reset - START_UP - first <= 2 * TIMEOUT
    assert chip.read("MCUSR") & 0x08
    assert chip.read("WDTCSR") == WDE
    assert chip.sreg == 0


def test_W05_reset_if_the_vector_never_ran():
    chip = boot(sequence(WDE | WDIE), cli(), LOOP)
    chip.run(cycles=TIMEOUT + 1000)
    assert chip.read("WDTCSR") & (WDIF | WDIE) == WDIF | WDIE
    assert run_to(chip, 0) > 2 * TIMEOUT - 1000
    assert chip.read("MCUSR") & 0x08


def test_W06_nominal_timeout():
    before = sequence(WDIE) + nops(1000)
    chip = boot(before, wdr(), sled())
    run_to(chip, 2 * len(before))
    chip.step()
    restarted = chip.cycle
    flag = first_cycle(chip, lambda: bit(chip, "WDTCSR", 7), near=restarted + TIMEOUT)
    assert flag - restarted == TIMEOUT


def test_W07_wde_stays_while_wdrf_is_set():
    main = in_(20, MCUSR) + sbrc(20, 3) + rjmp(9)
    after = (
        sequence(0x00)
        + lds(21, WDTCSR)
        + put_io(MCUSR, 0)
        + sequence(0x00)
        + lds(22, WDTCSR)
        + LOOP
    )
    first = sequence(WDE) + LOOP + nops(2)
    assert len(main + first) == 12
    chip = boot(main, first, after)
    chip.run(cycles=100)
    run_to(chip, 0)
    chip.run(cycles=60)
    assert registers(chip, 21, 22) == [WDE, 0]
