"""Self-programming beyond section 11: every command value, page and word, locks, interrupts."""

import numpy as np
import pytest

from avrswarm.chip.cpu import Stop
from avrswarm.chip.idle import SCRATCH_SIZE
from avrswarm.chip.kernels import Bench, bench
from avrswarm.chip.native import NO_BLOCKS
from tests.chip.peripherals.memories import (
    change_clock,
    chip_of,
    in_boot_section,
    set_z,
    steps,
    strobe,
)
from tests.chip.section11 import BOOT, D, first_cycle, nops, put_io, run_to, sled, vector
from tests.reference.assemble import (
    EEARL,
    EECR,
    EEDR,
    MCUCR,
    SPMCSR,
    Assembler,
    icall,
    in_,
    jmp,
    ldi,
    lpm,
    mov,
    nop,
    out,
    ret,
    reti,
    rjmp,
    sbi,
    sbic,
    sbrc,
    sei,
    spm,
    sts,
)

SPMIE, RWWSB, SPMEN = 0x80, 0x40, 0x01
FILL, ERASE, WRITE, LOCK, ENABLE, SIGNATURE = 0x01, 0x03, 0x05, 0x09, 0x11, 0x21
SPM_READY = 25
DURATION = 32_000
PAGE = 0x0400  # byte address
OLD = 0x7BDE
LOOP = rjmp(-1)
REST = {PAGE // 2: [OLD] * 64}


def data(word):
    return ldi(18, word & 0xFF) + mov(0, 18) + ldi(18, word >> 8) + mov(1, 18)


def command(code):
    return strobe(SPMCSR, code) + spm()


def fill(byte_address, word):
    return set_z(byte_address) + data(word) + command(FILL)


def ready():
    return in_(17, SPMCSR) + sbrc(17, 0) + rjmp(-3)


def page(chip, byte_address=PAGE):
    return [int(word) for word in chip.flash[byte_address // 2 : byte_address // 2 + 64]]


@pytest.mark.jit_off
@pytest.mark.parametrize("distance", range(8))
@pytest.mark.parametrize("store", ["out", "sts"])
def test_spm_must_start_within_four_cycles(store, distance):
    begin = out(SPMCSR, 16) if store == "out" else sts(SPMCSR, 16)
    chip = in_boot_section(
        set_z(PAGE), ldi(16, ERASE), begin, nops(distance), spm(), LOOP, rest=REST
    )
    chip.run(cycles=60)
    assert page(chip) == [0xFFFF if distance < 4 else OLD] * 64


@pytest.mark.jit_off
@pytest.mark.parametrize("distance", range(8))
def test_lpm_of_signature_must_start_within_three_cycles(distance):
    chip = in_boot_section(
        set_z(2), ldi(16, SIGNATURE), out(SPMCSR, 16), nops(distance), lpm(20), LOOP
    )
    chip.run(cycles=60)
    assert chip.registers[20] == (0x95 if distance < 3 else jmp(BOOT)[1] & 0xFF)


@pytest.mark.jit_off
@pytest.mark.parametrize("code", range(64))
def test_every_command_value(code):
    """A word waits in the page buffer; what does SPM do then?"""
    before = fill(PAGE + 2, 0x1234) + set_z(PAGE) + data(0xFFC3)
    chip = in_boot_section(before, command(code), in_(20, SPMCSR), nops(3), in_(21, SPMCSR), sled(),
                           rest=REST)  # fmt: skip
    chip.run(cycles=60)
    written = [OLD, OLD & 0x1234] + [OLD] * 62
    busy = {ERASE: ERASE | RWWSB, WRITE: WRITE | RWWSB, LOCK: LOCK}
    expected = {ERASE: [0xFFFF] * 64, WRITE: written}
    assert page(chip) == expected.get(code, [OLD] * 64)
    assert chip._c.fuses[1] == (0xC3 if code == LOCK else 0xFF)
    works = code in (FILL, ERASE, WRITE, LOCK, ENABLE)
    unspent = (
        0 if works or not code & SPMEN else code
    )  # a command that is none waits out the window
    assert chip.registers[20:22] == [busy.get(code, unspent), busy.get(code, 0)]


@pytest.mark.parametrize("code", [ERASE, WRITE])
def test_every_page(code):
    """All pages but the first, where the program starts, and the one where SPM stands."""
    pages = [n for n in range(1, 256) if n != BOOT // 64]
    program = ready() + command(ENABLE) + data(0) + command(FILL) + ldi(16, code) + out(SPMCSR, 16)
    chip = in_boot_section(
        program, spm(), ready(), LOOP, rest={64 * n: [n + 1] * 64 for n in pages}
    )
    end = 2 * (BOOT + len(program) + 1 + len(ready()))
    expected = [int(word) for word in chip.flash]
    for n in pages:
        z = 128 * n + 2 * (n % 64) + n % 2 | 0x8000 * (n % 3 == 0)  # bits 15 and 0 do not count
        chip.poke(30, z & 0xFF)
        chip.poke(31, z >> 8)
        chip.set_pc(2 * BOOT)
        run_to(chip, end)
        if code == ERASE:
            expected[64 * n : 64 * n + 64] = [0xFFFF] * 64
        else:
            expected[64 * n + n % 64] = 0
        assert [int(word) for word in chip.flash] == expected


def test_every_word_of_the_buffer():
    fills = [part for n in range(64) for part in fill(PAGE + 2 * n, 0x0101 * n)]
    chip = in_boot_section(set_z(PAGE), command(ERASE), ready(), fills, command(WRITE), LOOP)
    chip.run(cycles=40_000)
    assert page(chip) == [0x0101 * n for n in range(64)]


@pytest.mark.parametrize("loss", ["enable", "write", "eeprom", "reset"])
def test_what_loses_the_page_buffer(loss):
    store = put_io(EEARL, 5) + put_io(EEDR, 1) + sbi(EECR, 2) + sbi(EECR, 1)
    between = {
        "enable": command(ENABLE),
        "write": set_z(PAGE + 0x80) + command(WRITE) + ready(),
        "eeprom": store + sbic(EECR, 1) + rjmp(-2),
        "reset": nop(),
    }[loss]
    loaded = fill(PAGE + 4, 0x1111) + fill(PAGE + 6, 0x2222)
    rest = fill(PAGE + 6, 0x7777) + set_z(PAGE) + command(WRITE)
    chip = in_boot_section(loaded, between, rest, LOOP, rest=REST)
    if loss == "reset":
        run_to(chip, 2 * (BOOT + len(loaded)))
        chip.reset()
        run_to(chip, 0)
        chip.set_pc(2 * (BOOT + len(loaded)))
    chip.run(cycles=80_000)
    assert page(chip) == [OLD, OLD, OLD, OLD & 0x7777] + [OLD] * 60


def test_erase_keeps_the_page_buffer():
    chip = in_boot_section(
        fill(PAGE, 0xABCD), command(ERASE), ready(), command(WRITE), LOOP, rest=REST
    )
    chip.run(cycles=80_000)
    assert page(chip) == [0xABCD] + [0xFFFF] * 63


@pytest.mark.jit_off
def test_new_code_is_executed():
    routine = ldi(20, 0x77) + ret()
    fills = [part for n, word in enumerate(routine) for part in fill(PAGE + 2 * n, word)]
    use = command(ENABLE) + set_z(PAGE // 2) + icall() + mov(21, 20) + LOOP
    chip = in_boot_section(
        set_z(PAGE), command(ERASE), ready(), fills, command(WRITE), ready(), use, rest=REST
    )
    chip.run(cycles=80_000)
    assert chip.registers[21] == 0x77


def test_a_two_word_instruction_over_the_edge_of_a_page():
    """The first word is in the page before the one that is written."""
    before = {PAGE // 2 - 1: [jmp(0)[0]], PAGE // 2: [0xFFFF] * 64, 0x0300: ldi(20, 0x31) + ret()}
    use = command(ENABLE) + set_z(PAGE // 2 - 1) + icall() + mov(21, 20) + LOOP
    chip = in_boot_section(fill(PAGE, 0x0300), command(WRITE), ready(), use, rest=before)
    chip.run(cycles=40_000)
    assert chip.registers[21] == 0x31


@pytest.mark.parametrize("divider", range(9))
def test_duration_counts_undivided_cycles(divider):
    setup = change_clock(divider) + set_z(PAGE) + command(ERASE)
    chip = in_boot_section(setup, sled(), rest=REST)
    begun = run_to(chip, 2 * (BOOT + len(setup)))
    length = DURATION >> divider
    done = first_cycle(chip, lambda: not chip.read("SPMCSR") & SPMEN, near=begun + length)
    assert done - begun == length


@pytest.mark.parametrize("code", [ERASE, WRITE])
def test_nrww_page_halts_for_the_whole_time(code):
    setup = set_z(0x7F80) + command(code)
    chip = in_boot_section(setup, in_(20, SPMCSR), LOOP, rest={0x3FC0: [OLD] * 64})
    begun = run_to(chip, 2 * (BOOT + len(setup) - 1))
    assert run_to(chip, 2 * (BOOT + len(setup))) - begun == 1 + DURATION
    chip.step()
    assert chip.registers[20] == 0


def test_while_busy_only_spmie_can_be_written():
    setup = set_z(PAGE) + command(ERASE)
    chip = in_boot_section(setup, sled(), rest=REST)
    run_to(chip, 2 * (BOOT + len(setup)))
    for value, expected in ((0xFF, 0xC3), (ENABLE, 0x43), (0, 0x43)):
        chip.write("SPMCSR", value)
        steps(chip, 6)
        assert chip.read("SPMCSR") == expected


def test_a_write_without_spmen_closes_the_window():
    chip = in_boot_section(
        set_z(PAGE), strobe(SPMCSR, ERASE), strobe(SPMCSR, 0x02), spm(), LOOP, rest=REST
    )
    chip.run(cycles=60)
    assert page(chip) == [OLD] * 64
    assert chip.read("SPMCSR") == 0


def test_nothing_is_accepted_during_an_eeprom_write():
    store = put_io(EEDR, 1) + sbi(EECR, 2) + sbi(EECR, 1)
    tries = set_z(PAGE) + strobe(SPMCSR, ERASE) + in_(20, SPMCSR) + spm()
    fuse = set_z(0) + strobe(SPMCSR, LOCK) + lpm(21)
    chip = in_boot_section(store, tries, fuse, LOOP, rest=REST)
    chip.run(cycles=80)
    assert page(chip) == [OLD] * 64
    assert chip.registers[20:22] == [0, jmp(BOOT)[0] & 0xFF]


# ---- fuses, signature, lock bits -----------------------------------------------------------------


@pytest.mark.jit_off
def test_fuses_and_signature_row():
    reads = {}
    for code, places in ((LOCK, range(4)), (SIGNATURE, (0, 1, 2, 3, 4, 5))):
        for z in places:
            chip = in_boot_section(
                set_z(z), strobe(SPMCSR, code), lpm(20), in_(21, SPMCSR), LOOP,
                low=0x62, high=0xD1, extended=0xFD, lock=0xEF,
            )  # fmt: skip
            chip.run(cycles=20)
            reads[code, z] = chip.registers[20]
            assert chip.registers[21] == 0  # the bits clear with the reading
    assert [reads[LOCK, z] for z in range(4)] == [0x62, 0xEF, 0xFD, 0xD1]
    assert [reads[SIGNATURE, z] for z in (0, 2, 4)] == [0x1E, 0x95, 0x0F]
    assert reads[SIGNATURE, 1] == chip.read("OSCCAL")


def test_lock_bits_can_only_be_cleared():
    first, second = data(0x00F7), data(0x003B)
    chip = in_boot_section(
        first, command(LOCK), ready(), second, command(LOCK), ready(), set_z(1),
        strobe(SPMCSR, LOCK), lpm(20), LOOP,
    )  # fmt: skip
    chip.run(cycles=80_000)
    assert chip.registers[20] == 0xF7 & (0x3B | 0xC0)


def test_a_lock_bit_write_takes_its_time_but_the_flash_stays_readable():
    setup = data(0x00FF) + command(LOCK)
    chip = in_boot_section(setup, set_z(PAGE), lpm(20), sled(), rest=REST)
    begun = run_to(chip, 2 * (BOOT + len(setup)))
    steps(chip, 3)
    assert chip.registers[20] == OLD & 0xFF
    assert chip.read("SPMCSR") == LOCK
    done = first_cycle(chip, lambda: not chip.read("SPMCSR"), near=begun + DURATION)
    assert done - begun == DURATION


@pytest.mark.parametrize("lock", [0xFF, 0xFB, 0xEF, 0xEB, 0xF7, 0xDF])
@pytest.mark.parametrize("code", [ERASE, WRITE])
@pytest.mark.parametrize("target", [PAGE, 0x7F80])
def test_lock_bits_forbid_writing(lock, code, target):
    """BLB01 (bit 2) protects the application section, BLB11 (bit 4) the boot section."""
    allowed = lock & (0x04 if target == PAGE else 0x10)
    chip = in_boot_section(
        fill(target, 0), command(code), in_(20, SPMCSR), LOOP,
        rest={target // 2: [OLD] * 64}, lock=lock,
    )  # fmt: skip
    chip.run(cycles=40_000)
    changed = [0xFFFF] * 64 if code == ERASE else [0] + [OLD] * 63
    assert page(chip, target) == (changed if allowed else [OLD] * 64)
    if not allowed:
        assert chip.registers[20] == 0


@pytest.mark.parametrize("size", [2048, 1024, 512, 256])
def test_spm_works_from_the_boot_section_on(size):
    """In the second case the SPM itself is the first word inside."""
    high = {2048: 0xD9, 1024: 0xDB, 512: 0xDD, 256: 0xDF}[size]
    code = set_z(PAGE) + command(ERASE) + LOOP
    start = 0x4000 - size
    for at, works in ((start - 5, False), (start - 4, True), (start, True)):
        words = Assembler().org(PAGE // 2)([OLD] * 64).org(at)(code).words()
        chip = chip_of(words, high=high)
        chip.set_pc(2 * at)
        chip.run(cycles=6)
        assert page(chip) == [0xFFFF if works else OLD] * 64


# ---- reading and interrupts ----------------------------------------------------------------------


def test_what_can_be_read_while_the_rww_section_is_busy():
    """Every 128th byte: FF below the NRWW section, the flash above."""
    setup = set_z(PAGE) + command(ERASE)
    content = {64 * n + 10: [0x1234] for n in range(1, 256) if n != BOOT // 64}
    chip = in_boot_section(setup, lpm(20), rjmp(-2), rest=content)
    run_to(chip, 2 * (BOOT + len(setup)))
    for word in (10 + 64 * n for n in range(1, 256) if n != BOOT // 64):
        chip.poke(30, 2 * word & 0xFF)
        chip.poke(31, 2 * word >> 8)
        steps(chip, 2)
        assert chip.registers[20] == (0xFF if word < 0x3800 else 0x34)


def test_ready_interrupt_follows_spmen():
    """It waits for the window, and for the end of the erase."""
    isr = in_(20, SPMCSR) + put_io(SPMCSR, 0) + reti()
    vectors = {BOOT + 2 * SPM_READY: jmp(BOOT + 0x100), BOOT + 0x100: isr}
    ivsel = ldi(16, 1) + ldi(17, 2) + out(MCUCR, 16) + out(MCUCR, 17)
    main = ivsel + sei() + set_z(PAGE) + strobe(SPMCSR, SPMIE | ERASE)

    chip = in_boot_section(
        rjmp(0x200 - 1), rest={**vectors, BOOT + 0x200: main + spm() + sled(200), **REST}
    )
    begun = run_to(chip, 2 * (BOOT + 0x200 + len(main) + 1))
    entered = run_to(chip, 2 * BOOT + vector(SPM_READY))
    assert entered - begun == DURATION + 1 + D

    chip = in_boot_section(
        rjmp(0x200 - 1), rest={**vectors, BOOT + 0x200: main + sled(200), **REST}
    )
    landed = run_to(chip, 2 * (BOOT + 0x200 + len(main)))
    entered = run_to(chip, 2 * BOOT + vector(SPM_READY))
    assert entered - landed == 4 + 1 + D
    chip.run(cycles=20)
    assert chip.registers[20] == SPMIE
    assert page(chip) == [OLD] * 64


# ---- images --------------------------------------------------------------------------------------


@pytest.mark.jit_off
@pytest.mark.parametrize(
    "bits", [ERASE, FILL, WRITE, ENABLE], ids=["erase", "fill", "write", "rww"]
)
def test_a_shared_image_and_its_page_buffer_are_not_changed(bits):
    setup = set_z(PAGE) + strobe(SPMCSR, bits)
    chip = in_boot_section(setup, spm(), LOOP, rest=REST)
    chip._c.private_image = 0
    before = chip._flash.copy(), chip._code.copy()
    scratch = np.zeros(SCRATCH_SIZE, np.int64)
    where = chip._chips, 0, chip._flash, chip._code, NO_BLOCKS, chip._tape, scratch
    for _ in range(2):  # asking again gets the same answer
        assert bench(*where, Bench.RUN, 0, 40) == Stop.IMAGE
        assert (chip.pc, chip.cycle) == (2 * (BOOT + len(setup)), 3 + len(setup))
        assert (chip._flash == before[0]).all()
        assert (chip._code == before[1]).all()
        assert not chip._c.page_loaded.any()
    chip._c.private_image = 1
    chip.run(cycles=20)
    assert (page(chip) == [0xFFFF] * 64) == (
        bits == ERASE
    )  # an empty buffer leaves what was written
    assert chip._c.page_loaded.any() == (bits == FILL)
