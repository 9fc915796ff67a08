"""EEPROM beyond section 11: windows to the cycle, every address and mode, interrupts, clocks."""

import pytest

from tests.chip.peripherals.memories import (
    change_clock,
    chip_of,
    idle,
    in_boot_section,
    set_z,
    steps,
    strobe,
)
from tests.chip.section11 import D, boot, first_cycle, nops, put, put_io, run_to, sled, vector
from tests.reference.assemble import (
    EEARH,
    EEARL,
    EECR,
    EEDR,
    SPMCSR,
    Assembler,
    add,
    adiw,
    brne,
    cbi,
    cp,
    cpi,
    in_,
    ldi,
    lds,
    nop,
    out,
    reti,
    rjmp,
    sbi,
    sbic,
    sei,
    spm,
)

EERIE, EEMPE, EEPE, EERE = 8, 4, 2, 1
EE_READY = 22
ATOMIC, SPLIT = 26368, 14400
LOOP = rjmp(-1)


def select(address, value):
    return put_io(EEARL, address & 0xFF) + put_io(EEARH, address >> 8) + put_io(EEDR, value)


def start(mode=0, extra=0):
    """The timed sequence; the second OUT lands one cycle after the first."""
    bits = mode << 4 | extra
    first, second = ldi(16, bits | EEMPE), ldi(17, bits | EEMPE | EEPE)
    return first + second + out(EECR, 16) + out(EECR, 17)


def wait():
    return sbic(EECR, 1) + rjmp(-2)


@pytest.mark.jit_off
@pytest.mark.parametrize("distance", range(9))
def test_write_enable_is_open_for_landing_distances_one_to_three(distance):
    chip = idle()
    chip.write("EEAR", 7)
    chip.write("EEDR", 0x42)
    chip.write("EECR", EEMPE)
    steps(chip, distance)
    chip.write("EECR", EEPE)
    works = 1 <= distance <= 3
    assert bool(chip.read("EECR") & EEPE) == works
    assert chip.eeprom[7] == (0x42 if works else 0xFF)


@pytest.mark.jit_off
def test_eempe_reads_one_for_four_cycles():
    chip = idle()
    chip.write("EECR", EEMPE)
    seen = []
    for _ in range(7):
        seen.append(chip.read("EECR"))
        chip.step()
    assert seen == [EEMPE] * 4 + [0] * 3


@pytest.mark.jit_off
def test_both_bits_in_one_write_neither_start_nor_arm():
    chip = idle()
    chip.write("EECR", EEMPE | EEPE)
    assert chip.read("EECR") == 0
    chip.step()
    chip.write("EECR", EEPE)
    assert chip.read("EECR") == 0


@pytest.mark.jit_off
@pytest.mark.parametrize("between", [out(EECR, 20), cbi(EECR, 3), sbi(EECR, 3)])
def test_a_zero_written_to_eempe_leaves_the_window_open(between):
    setup = select(9, 0x5A) + ldi(20, 0) + ldi(16, EEMPE) + ldi(17, EEPE)
    chip = boot(setup, out(EECR, 16), between, out(EECR, 17), LOOP)
    chip.run(cycles=40)
    assert chip.read("EECR") & EEPE
    assert chip.eeprom[9] == 0x5A


@pytest.mark.parametrize("gap", range(5))
def test_sbi_pair(gap):
    """SBI lands two cycles after it starts, so SBI, gap NOPs, SBI are 2 + gap apart."""
    chip = boot(select(3, 0x24), sbi(EECR, 2), nops(gap), sbi(EECR, 1), LOOP)
    chip.run(cycles=40)
    assert bool(chip.read("EECR") & EEPE) == (2 + gap <= 3)


def test_every_address_is_written_and_read():
    """A program writes 7 n + 1 to every address n, reads it back and stops at a difference."""
    a = Assembler()
    a(ldi(26, 0), ldi(27, 0), ldi(20, 1))
    a.label("next")
    a(out(EEARL, 26), out(EEARH, 27), out(EEDR, 20), sbi(EECR, 2), sbi(EECR, 1), wait())
    a(ldi(21, 0), out(EEDR, 21), sbi(EECR, 0), in_(24, EEDR))
    a(cp(24, 20))
    a.branch(brne, "wrong")
    a(ldi(22, 7), add(20, 22))
    a(adiw(26, 1))
    a(cpi(27, 4))
    a.branch(brne, "next")
    a.label("done")(LOOP)
    a.label("wrong")(LOOP)
    chip = chip_of(a.words())
    run_to(chip, 2 * a.word_address("done"), max_cycles=40_000_000)
    assert [int(byte) for byte in chip.eeprom] == [(7 * n + 1) & 0xFF for n in range(1024)]


def test_address_has_ten_bits():
    chip = idle()
    chip.write("EEARH", 0xFF)
    chip.write("EEARL", 0xFE)
    assert chip.read("EEAR") == 0x3FE


@pytest.mark.parametrize("mode", range(4))
def test_modes_on_every_old_value(mode):
    expected = {0: lambda old: 0xA5, 1: lambda old: 0xFF, 2: lambda old: old & 0xA5}
    for old in range(256):
        chip = idle()
        chip.eeprom[5] = old
        chip.write("EEAR", 5)
        chip.write("EEDR", 0xA5)
        chip.write("EECR", mode << 4 | EEMPE)
        chip.step()
        chip.write("EECR", mode << 4 | EEPE)
        assert chip.eeprom[5] == expected.get(mode, lambda old: old)(old)


@pytest.mark.parametrize(("mode", "cycles"), [(0, ATOMIC), (1, SPLIT), (2, SPLIT), (3, ATOMIC)])
@pytest.mark.parametrize("divider", range(9))
def test_programming_time_counts_undivided_cycles(mode, cycles, divider):
    setup = change_clock(divider) + select(1, 0)
    chip = boot(setup, start(mode), sled())
    landed = run_to(chip, 2 * (len(setup) + 3)) + 1
    chip.step()
    length = -(-cycles // 2**divider)
    near = landed + length if length > 100 else None
    done = first_cycle(chip, lambda: not chip.read("EECR") & EEPE, near=near)
    assert done - landed == length


def test_a_change_of_the_clock_during_programming():
    setup = select(1, 0) + start()
    chip = boot(setup, nops(1000), change_clock(2), sled())
    landed = run_to(chip, 2 * len(setup)) - 2
    changed = run_to(chip, 2 * (len(setup) + 1000 + 6))
    left = ATOMIC - (changed - landed)
    done = first_cycle(chip, lambda: not chip.read("EECR") & EEPE, near=changed + left // 4)
    assert done - changed == -(-left // 4)


@pytest.mark.jit_off
def test_eepm_and_data_keep_during_programming_but_eerie_does_not():
    chip = idle()
    chip.write("EEDR", 0x42)
    chip.write("EECR", 0x10 | EEMPE)
    chip.step()
    chip.write("EECR", 0x10 | EEPE)
    chip.write("EECR", 0x20 | EERIE)
    steps(chip, 4)
    assert chip.read("EECR") == 0x10 | EERIE | EEPE
    chip.write("EECR", 0)
    assert chip.read("EECR") == 0x10 | EEPE
    chip.write("EEDR", 0)
    chip.write("EEAR", 0x123)
    assert (chip.read("EEDR"), chip.read("EEAR")) == (0x42, 0)


def test_read_and_write_requests_during_programming_cost_nothing():
    before = select(1, 0) + start()
    request = ldi(16, EERE) + out(EECR, 16) + start()
    chip = boot(before, request, nop(), LOOP)
    begin = run_to(chip, 2 * len(before))
    assert run_to(chip, 2 * (len(before) + len(request))) - begin == len(request)


def test_reads_are_possible_while_flash_is_programmed_but_writes_are_not():
    erase = set_z(0x400) + strobe(SPMCSR, 3) + spm()
    chip = in_boot_section(
        erase,
        select(4, 0x11),
        sbi(EECR, 0),
        in_(20, EEDR),
        put_io(EEDR, 0x11),
        start(),
        nops(4),
        in_(21, EECR),
        LOOP,
    )
    chip.eeprom[4] = 0x77
    chip.run(cycles=100)
    assert (chip.registers[20], chip.registers[21] & EEPE) == (0x77, 0)
    assert chip.eeprom[4] == 0x77


@pytest.mark.jit_off
def test_reading_costs_four_cycles_by_out_too():
    chip = boot(ldi(16, EERE), out(EECR, 16), nop(), LOOP)
    begin = run_to(chip, 2)
    assert run_to(chip, 4) - begin == 5


# ---- the ready interrupt -------------------------------------------------------------------------


def test_ready_interrupt_comes_when_programming_ends():
    setup = sei() + select(1, 0)
    begin = start(extra=EERIE)[1:]  # LDI of the second value only: arm without EERIE
    chip = boot(
        setup,
        ldi(16, EEMPE),
        begin,
        sled(),
        isr={EE_READY: in_(20, EECR) + put_io(EECR, 0) + reti()},
    )
    main = 0x100
    landed = run_to(chip, 2 * (main + len(setup) + 3)) + 1
    entered = run_to(chip, vector(EE_READY))
    assert entered - landed == ATOMIC + 1 + D
    chip.run(cycles=100)
    assert chip.registers[20] == EERIE


def test_ready_interrupt_waits_for_flash_programming():
    erase = set_z(0x400) + strobe(SPMCSR, 3) + spm()
    chip = in_boot_section(
        erase, put_io(EECR, EERIE), in_(20, SPMCSR), LOOP, rest={2 * EE_READY: LOOP}
    )
    chip.run(cycles=30)
    requested = 1 << EE_READY
    assert not chip._c.requests & requested
    chip.run(cycles=32_100)
    assert chip._c.requests & requested


# ---- reset ---------------------------------------------------------------------------------------


def test_a_reset_does_not_stop_programming():
    chip = boot(select(0x155, 0x66), start(2, EERIE), sled())
    chip.run(cycles=40)
    begun = chip.cycle
    chip.reset()
    assert chip.read("EECR") == 0x20 | EEPE
    assert chip.read("EEDR") == 0
    assert chip.eeprom[0x155] == 0x66
    while chip.read("EECR") & EEPE:
        chip.run(cycles=100)
        chip.reset()
    assert SPLIT - 200 < chip.cycle - begun < SPLIT + 200
    assert chip.read("EECR") in (0, 0x20)


def test_a_reset_closes_the_window():
    chip = idle()
    chip.write("EECR", EEMPE | EERIE)
    chip.reset()
    chip.run_to_wake(max_cycles=1_000_000)
    chip.write("EECR", EEPE)
    assert chip.read("EECR") == 0


def test_data_space_and_bit_instructions_see_the_same_register():
    stores = put(EECR, 0x38) + lds(20, EECR)
    bits = sbi(EECR, 2) + in_(21, EECR) + cbi(EECR, 3) + in_(22, EECR)
    chip = boot(stores, bits, LOOP)
    chip.run(cycles=20)
    assert chip.registers[20:23] == [0x38, 0x3C, 0x34]
