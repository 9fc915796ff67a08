"""Timing reference, sections 11.1 and 11.2: core and interrupts. Tests are named after the rows.

C12 (executing FFFF) is marked U there and has no test here.
"""
# ruff: noqa: F403, F405

import pytest

from avrswarm import Chip
from avrswarm.program import Program
from tests.chip.section11 import (
    BOOT,
    MAIN,
    D,
    bit,
    boot,
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

C_, Z_, N_, V_, S_, H_, T_, I_ = (1 << n for n in range(8))
LOOP = rjmp(-1)


def flags_after(instruction, d=0, r=0, before=0):
    """Result in r16 and SREG after `instruction` with r16 = d, r17 = r and SREG = before."""
    chip = boot(ldi(18, before), ldi(16, d), ldi(17, r), out(SREG, 18), instruction, LOOP)
    run_steps(chip, 5)
    return register(chip, 16), chip.sreg


# ---- 11.1 core -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "d", "r", "before", "result", "after"),
    [
        (add(16, 17), 0x7F, 0x01, 0, 0x80, H_ | V_ | N_),
        (adc(16, 17), 0xFF, 0x00, C_, 0x00, H_ | Z_ | C_),
        (sub(16, 17), 0x80, 0x01, 0, 0x7F, H_ | S_ | V_),
        (com(16), 0xFF, 0, H_, 0x00, H_ | Z_ | C_),
        (inc(16), 0x7F, 0, C_, 0x80, V_ | N_ | C_),
        (dec(16), 0x80, 0, H_, 0x7F, H_ | S_ | V_),
        (lsr(16), 0x01, 0, 0, 0x00, S_ | V_ | Z_ | C_),
        (ror(16), 0x00, 0, C_, 0x80, N_ | V_),
        (asr(16), 0x81, 0, 0, 0xC0, S_ | N_ | C_),
    ],
)
def test_C01_alu_samples(instruction, d, r, before, result, after):
    """Worked by hand from 1.4; all operands and flags are in tests/isa/test_alu_exhaustive.py."""
    assert flags_after(instruction, d, r, before) == (result, after)


@pytest.mark.parametrize(
    ("instruction", "d", "r", "before", "half"),
    [
        (add(16, 17), 0x01, 0x01, H_, 0),
        (add(16, 17), 0x0F, 0x01, 0, 1),
        (adc(16, 17), 0x0F, 0x00, C_, 1),
        (adc(16, 17), 0x01, 0x00, C_, 0),
        (sub(16, 17), 0x11, 0x10, H_, 0),
        (sub(16, 17), 0x10, 0x01, 0, 1),
        (sbc(16, 17), 0x10, 0x00, C_, 1),
        (sbc(16, 17), 0x12, 0x01, C_, 0),
        (cp(16, 17), 0x10, 0x01, 0, 1),
        (cp(16, 17), 0x11, 0x01, H_, 0),
        (cpc(16, 17), 0x10, 0x00, C_, 1),
        (cpc(16, 17), 0x11, 0x00, C_ | H_, 0),
        (subi(16, 0x01), 0x10, 0, 0, 1),
        (subi(16, 0x01), 0x11, 0, H_, 0),
        (sbci(16, 0x00), 0x10, 0, C_, 1),
        (sbci(16, 0x00), 0x11, 0, C_ | H_, 0),
        (cpi(16, 0x01), 0x10, 0, 0, 1),
        (cpi(16, 0x01), 0x11, 0, H_, 0),
        (neg(16), 0x01, 0, 0, 1),
        (neg(16), 0x10, 0, H_, 0),
    ],
)
def test_C02_half_carry_is_of_bit_3(instruction, d, r, before, half):
    _, after = flags_after(instruction, d, r, before)
    assert bool(after & H_) == bool(half)


def test_C03_neg_80():
    result, after = flags_after(neg(16), 0x80)
    assert result == 0x80
    assert after & (V_ | N_ | S_ | C_) == V_ | N_ | C_


@pytest.mark.parametrize(
    ("d", "r", "zero"), [(0x00, 0x55, 1), (0x55, 0x00, 1), (0xFF, 0x01, 0), (2, 3, 0)]
)
def test_C04_fmulsu_zero_flag(d, r, zero):
    for before in (0, Z_):
        _, after = flags_after(fmulsu(16, 17), d, r, before)
        assert bool(after & Z_) == bool(zero)


@pytest.mark.parametrize("instruction", [sbc(16, 17), sbci(16, 0xFF), cpc(16, 17)])
def test_C05_subtract_with_carry_keeps_zero(instruction):
    _, after = flags_after(instruction, 0x00, 0xFF, C_ | Z_)
    assert after & (Z_ | C_ | H_) == Z_ | C_ | H_
    _, after = flags_after(instruction, 0x00, 0xFF, C_)
    assert after & (Z_ | C_) == C_


@pytest.mark.parametrize("before", [0, H_])
def test_C06_sbiw_leaves_half_carry(before):
    chip = boot(ldi(18, before), ldi(24, 0x10), ldi(25, 0x01), out(SREG, 18), sbiw(24, 0x31), LOOP)
    run_steps(chip, 5)
    assert registers(chip, 24, 25) == [0xDF, 0x00]
    assert chip.sreg & H_ == before


POINTERS = (
    ldi(26, 0x00) + ldi(27, 0x02) + ldi(28, 0x00) + ldi(29, 0x02) + ldi(30, 0x00) + ldi(31, 0x02)
)
ONE_CYCLE = {
    "add": add(16, 17), "adc": adc(16, 17), "sub": sub(16, 17), "sbc": sbc(16, 17),
    "and": and_(16, 17), "or": or_(16, 17), "eor": eor(16, 17), "cp": cp(16, 17),
    "cpc": cpc(16, 17), "mov": mov(16, 17), "movw": movw(16, 18), "subi": subi(16, 1),
    "sbci": sbci(16, 1), "cpi": cpi(16, 1), "andi": andi(16, 1), "ori": ori(16, 1),
    "ldi": ldi(16, 1), "com": com(16), "neg": neg(16), "swap": swap(16), "inc": inc(16),
    "dec": dec(16), "asr": asr(16), "lsr": lsr(16), "ror": ror(16), "bset": sec(), "bclr": clc(),
    "bst": bst(16, 3), "bld": bld(16, 3), "in": in_(16, GPIOR0), "out": out(GPIOR0, 16),
    "nop": nop(), "wdr": wdr(), "cpse no skip": cpse(16, 27) + nop(),
    "sbrc no skip": sbrc(27, 1) + nop(), "sbrs no skip": sbrs(27, 0) + nop(),
    "sbic no skip": sbic(PORTB, 0) + nop(), "sbis no skip": sbis(PORTC, 0) + nop(),
    "brbs not taken": breq(1) + nop(), "brbc not taken": sez() + brne(1) + nop(),
}  # fmt: skip
CYCLES = {
    **dict.fromkeys(ONE_CYCLE, 1),
    **dict.fromkeys(["adiw", "sbiw", "mul", "muls", "mulsu", "fmul", "fmuls", "fmulsu"], 2),
    **dict.fromkeys(["lds", "ld X", "ld X+", "ld -X", "ld Y+", "ld -Y", "ld Z+", "ld -Z"], 2),
    **dict.fromkeys(["ldd Y", "ldd Z", "std Y", "std Z", "ld Y", "ld Z"], 2),
    **dict.fromkeys(["sts", "st X", "st X+", "st -X", "st Y+", "st -Y", "st Z+", "st -Z"], 2),
    **dict.fromkeys(["push", "pop", "sbi", "cbi", "rjmp", "ijmp", "brbs taken", "brbc taken"], 2),
    **dict.fromkeys(["lpm", "lpm d", "lpm Z+", "rcall", "icall", "jmp"], 3),
    **dict.fromkeys(["call", "ret", "reti"], 4),
    **dict.fromkeys(["cpse", "sbrc", "sbrs", "sbic", "sbis"], 2),
}
OTHERS = {
    "adiw": adiw(24, 1), "sbiw": sbiw(24, 1), "mul": mul(16, 17), "muls": muls(16, 17),
    "mulsu": mulsu(16, 17), "fmul": fmul(16, 17), "fmuls": fmuls(16, 17),
    "fmulsu": fmulsu(16, 17), "lds": lds(16, 0x200), "ldd Y": ldd(16, "Y", 5),
    "ldd Z": ldd(16, "Z", 5), "std Y": std("Y", 5, 16), "std Z": std("Z", 5, 16),
    "sts": sts(0x200, 16), "push": push(16), "pop": pop(16), "sbi": sbi(GPIOR0, 1),
    "cbi": cbi(GPIOR0, 1), "rjmp": rjmp(3), "ijmp": ijmp(), "lpm": lpm(), "lpm d": lpm(16),
    "lpm Z+": lpm(16, "Z+"), "rcall": rcall(3), "icall": icall(), "jmp": jmp(40),
    "call": call(40), "ret": ret(), "reti": reti(),
    # PORTB is 1 and r27 is 2 here, SREG is 0
    "brbs taken": sec() + brcs(3), "brbc taken": brcc(3), "cpse": cpse(16, 16) + nop(),
    "sbrc": sbrc(27, 0) + nop(), "sbrs": sbrs(27, 1) + nop(), "sbic": sbic(PORTC, 0) + nop(),
    "sbis": sbis(PORTB, 0) + nop(),
    **{f"ld {mode}": ld(16, mode) for mode in ("X", "X+", "-X", "Y", "Y+", "-Y", "Z", "Z+", "-Z")},
    **{f"st {mode}": st(mode, 16) for mode in ("X", "X+", "-X", "Y+", "-Y", "Z+", "-Z")},
}  # fmt: skip


@pytest.mark.parametrize("name", CYCLES)
def test_C07_cycles_of_every_instruction(name):
    instruction = (ONE_CYCLE | OTHERS)[name]
    prelude = POINTERS + ldi(16, 1) + out(PORTB, 16) + push(16) + push(16)
    prelude += clr(16) + out(SREG, 16)
    chip = boot(prelude, instruction, nops(20))
    run_to(chip, 2 * len(prelude))
    if name in ("brbs taken", "brbc not taken"):
        chip.step()  # the SEC or SEZ in front
    start = chip.cycle
    chip.step()
    assert chip.cycle - start == CYCLES[name]


def test_C07_table_is_complete():
    assert set(CYCLES) == set(ONE_CYCLE) | set(OTHERS)


@pytest.mark.parametrize("instruction", [cbi(PORTB, 0), cbi(GPIOR0, 7), sbi(PORTB, 0)])
def test_C08_cbi_takes_two_cycles(instruction):
    chip = boot(instruction, nops(3))
    chip.step()
    assert chip.cycle == 2


@pytest.mark.parametrize("k", range(64))
@pytest.mark.parametrize("make", [adiw, sbiw])
def test_C09_skip_over_word_immediate_is_one_word(make, k):
    for skip in (cpse(2, 3), sbrc(2, 0), sbic(GPIOR0, 0)):
        chip = boot(skip, make(24, k), nops(4))
        chip.step()
        assert (chip.cycle, chip.pc) == (2, 4)
        assert registers(chip, 24, 25) == [0, 0]


SKIPS = {
    "cpse": cpse(2, 3), "sbrc": sbrc(2, 0), "sbrs": sbrs(16, 0), "sbic": sbic(PORTC, 0),
    "sbis": sbis(GPIOR0, 0),
}  # fmt: skip


@pytest.mark.parametrize("two_words", [lds(20, 0x100), sts(0x100, 20), jmp(0x200), call(0x200)])
@pytest.mark.parametrize("skip", SKIPS.values(), ids=SKIPS.keys())
def test_C10_skip_over_two_words_takes_three_cycles(skip, two_words):
    chip = boot(ldi(16, 1), out(GPIOR0, 16), skip, two_words, nops(4))
    run_steps(chip, 3)
    assert (chip.cycle, chip.pc) == (5, 2 * 5)
    assert chip.sp == 0x8FF


@pytest.mark.parametrize("where", [0, BOOT])
def test_C11_spm_without_spmen_does_nothing(where):
    """Cycles are U, so only that nothing changes."""
    a = Assembler()
    if where:
        a(jmp(where)).org(where)
    a(ldi(30, 0x00), ldi(31, 0x02), ldi(16, 0x12), mov(0, 16), mov(1, 16), spm(), nops(3))
    chip = Chip(Program.from_words(a.words()))
    before = list(chip.flash)
    run_steps(chip, 9 if where else 8)
    assert list(chip.flash) == before
    assert chip.read("SPMCSR") == 0
    assert registers(chip, 0, 1) == [0x12, 0x12]
    assert registers(chip, 30, 31) == [0x00, 0x02]


def test_C13_pc_wraps_at_the_end_of_flash():
    a = Assembler()
    a(inc(20), jmp(0x3FFE)).org(0x3FFE)(nop(), inc(21))
    chip = Chip(Program.from_words(a.words()))
    run_steps(chip, 4)
    assert (chip.pc, chip.cycle) == (0, 6)
    chip.step()
    assert registers(chip, 20, 21) == [2, 1]


def test_C14_break_is_a_one_cycle_no_op():
    chip = boot(ldi(16, 5), break_(), inc(16), LOOP)
    run_steps(chip, 2)
    assert (chip.cycle, chip.pc) == (2, 4)
    chip.step()
    assert register(chip, 16) == 6
    assert chip.sreg == 0


def test_C15_sleep_without_se_is_a_no_op():
    chip = boot(sleep(), inc(16), LOOP)
    run_steps(chip, 2)
    assert (chip.cycle, register(chip, 16)) == (2, 1)


def test_C16_sbi_pin_toggles_one_pin():
    chip = boot(
        put_io(DDRB, 0xFF), put_io(PORTB, 0xF0), nop(), in_(20, PINB), sbi(PINB, 0), nop(), LOOP
    )
    run_steps(chip, 8)
    assert register(chip, 20) == 0xF0
    assert chip.read("PORTB") == 0xF1
    assert chip.pin("PB0") == 1
    assert chip.pin("PB4") == 1


def three_timer0_flags() -> list[int]:
    """Timer 0 stopped, with TOV0, OCF0A and OCF0B set: it ran through FF, 00 and 01."""
    start = put_io(OCR0A, 0xFE) + put_io(OCR0B, 0xFF) + put_io(TCNT0, 0xFD) + put_io(TCCR0B, 1)
    return start + nops(5) + put_io(TCCR0B, 0)


def test_C17_sbi_on_a_flag_register_clears_one_flag():
    chip = boot(three_timer0_flags(), in_(20, TIFR0), sbi(TIFR0, 0), in_(21, TIFR0), LOOP)
    chip.run(cycles=40)
    assert registers(chip, 20, 21) == [0x07, 0x06]


def test_C18_registers_and_sram_survive_a_watchdog_reset():
    program = []
    for number in (0, 5, 15):
        program += ldi(16, 0x40 + number) + mov(number, 16)
    program += ldi(31, 0x5A) + sts(0x0100, 31) + sts(0x08FF, 31)
    program += put(WDTCSR, 0x18) + put(WDTCSR, 0x08, using=17) + LOOP
    chip = boot(program)
    chip.run(cycles=1000)
    assert chip.read("WDTCSR") & 0x08
    before = [int(value) for value in chip.data[:32]], bytes(chip.data[0x100:0x900])
    running = chip.cycle
    cycle = run_to(chip, 0)
    assert cycle > running + 100_000
    assert ([int(value) for value in chip.data[:32]], bytes(chip.data[0x100:0x900])) == before
    assert chip.read("MCUSR") & 0x08
    assert (chip.sp, chip.sreg) == (0x8FF, 0)


# ---- 11.2 interrupts -----------------------------------------------------------------------------

TIMER0_COMPA, TIMER0_COMPB, TIMER0_OVF, TIMER1_COMPA = 14, 15, 16, 11
STAMPS = [out(GPIOR0, r) for r in (17, 18, 19, 20)]
NUMBERS = ldi(17, 1) + ldi(18, 2) + ldi(19, 3) + ldi(20, 4)


def overflow_pending() -> list[int]:
    """TOV0 set and enabled, I = 0, timer stopped."""
    return put(TIMSK0, 1) + put_io(TCNT0, 0xFE) + put_io(TCCR0B, 1) + nops(4) + put_io(TCCR0B, 0)


@pytest.mark.parametrize("how", ["SEI", "OUT", "STS"])
def test_I01_I02_one_instruction_runs_after_interrupts_are_enabled(how):
    """Flag pending, SEI (I01) or a write of SREG (I02) that ends at n: OUT at n runs, vector at n +
    1 + d.
    """
    enable = {"SEI": sei(), "OUT": out(SREG, 21), "STS": sts(SREG, 21)}[how]
    before = overflow_pending() + NUMBERS + ldi(21, 0x80)
    chip = boot(before, enable, *STAMPS, LOOP, isr={TIMER0_OVF: reti()})
    run_to(chip, 2 * MAIN + 2 * len(before))
    chip.step()
    n = chip.cycle
    assert run_to(chip, vector(TIMER0_OVF)) == n + 1 + D
    assert chip.read("GPIOR0") == 1
    # the second OUT is where RETI goes back to
    chip.step()
    assert chip.pc == 2 * (MAIN + len(before) + len(enable) + 1)


def test_I03_one_main_instruction_between_two_interrupts():
    flags = put_io(OCR0A, 0xFE) + put_io(OCR0B, 0xFE) + put_io(TCNT0, 0xFD) + put_io(TCCR0B, 1)
    flags += nops(5) + put_io(TCCR0B, 0) + put_io(TIFR0, 1) + put(TIMSK0, 6)
    chip = boot(
        flags, clr(20), sei(), inc(20) * 20, LOOP, isr={TIMER0_COMPA: reti(), TIMER0_COMPB: reti()}
    )
    first = run_to(chip, vector(TIMER0_COMPA))
    assert register(chip, 20) == 1
    assert run_to(chip, vector(TIMER0_COMPB)) == first + 4 + 1 + D
    assert register(chip, 20) == 2
    chip.step()
    chip.step()
    assert register(chip, 20) == 3


@pytest.mark.parametrize("by_steps", [False, True])
def test_I03_also_with_interrupts_on_already(by_steps):
    """RETI with I set, as in a nested routine: still one instruction first."""
    flags = put_io(OCR0A, 0xFE) + put_io(OCR0B, 0xFE) + put_io(TCNT0, 0xFD) + put_io(TCCR0B, 1)
    flags += nops(5) + put_io(TCCR0B, 0) + put_io(TIFR0, 1)
    a = Assembler()
    a(jmp(0x80)).org(2 * TIMER0_COMPA)(reti()).org(0x80)(flags, clr(20), sei())
    a.absolute(call, "nested")(inc(20) * 20, LOOP)
    a.label("nested")(reti())
    chip = Chip(Program.from_words(a.words()))
    run_to(chip, 2 * a.word_address("nested"))
    chip.write("TIMSK0", 2)
    chip._c.held_until = chip.cycle + 1  # as after an instruction that holds interrupts
    begun = chip.cycle
    if by_steps:
        chip.step()
    assert run_to(chip, vector(TIMER0_COMPA)) == begun + 4 + 1 + D
    assert register(chip, 20) == 1


def test_I04_entry_takes_d_cycles_and_four_from_the_flag():
    """T0 at clk/1 overflows among NOPs: TCNT0 is the number of cycles since the flag became
    visible.
    """
    chip = boot(
        put(TIMSK0, 1),
        put_io(TCNT0, 0xC0),
        put_io(TCCR0B, 1),
        sei(),
        sled(),
        isr={TIMER0_OVF: reti()},
    )
    run_to(chip, vector(TIMER0_OVF))
    assert chip.read("TCNT0") == 1 + D
    assert chip.sreg & 0x80 == 0
    assert bit(chip, "TIFR0", 0) == 0
    assert chip.sp == 0x8FD
    # the return address, low byte at the higher place
    address = int(chip.data[0x8FF]) | int(chip.data[0x8FE]) << 8
    chip.step()
    assert chip.pc == 2 * address
    assert chip.sreg & 0x80


def test_I05_receive_timer_to_the_cycle():
    setup = put(OCR1AH, 0x0B) + put(OCR1AL, 0x8F) + put(TIMSK1, 2) + sei() + ldi(16, 1)
    setup += nops(24 - 3 - (3 * 3 + 2))
    isr = {TIMER1_COMPA: rjmp(0x80 - 2 * TIMER1_COMPA - 1)}
    a = Assembler()
    a(jmp(MAIN)).org(2 * TIMER1_COMPA)(isr[TIMER1_COMPA])
    a.org(0x80)(out(GPIOR0, 16), lds(18, TCNT1L), lds(19, TCNT1H), LOOP)
    a.org(MAIN)(setup, sts(TCCR1B, 16), nop(), rjmp(-2))
    chip = Chip(Program.from_words(a.words()))
    assert run_to(chip, 2 * (MAIN + len(setup))) == 24
    assert run_to(chip, 2 * 0x80) == 2992 - 3 + D
    run_steps(chip, 3)
    assert register(chip, 18) | register(chip, 19) << 8 == 0x0B98 - 3 + D


def test_I06_enabling_a_set_flag_interrupts_at_once():
    before = (
        put_io(TCNT0, 0xFE)
        + put_io(TCCR0B, 1)
        + nops(4)
        + put_io(TCCR0B, 0)
        + sei()
        + nops(4)
        + ldi(16, 1)
    )
    chip = boot(before, sts(TIMSK0, 16), inc(20) * 5, LOOP, isr={TIMER0_OVF: reti()})
    run_to(chip, 2 * (MAIN + len(before)))
    chip.step()
    n = chip.cycle
    # the enable lands at n and is seen by the boundary after that, as for SEI
    assert run_to(chip, vector(TIMER0_OVF)) == n + 1 + D
    assert register(chip, 20) == 1


def test_I07_lowest_vector_first():
    flags = three_timer0_flags()
    flags += put(OCR1AL, 0x02) + put(TCCR1B, 1) + nops(6) + put(TCCR1B, 0)
    enable = put(TIMSK1, 2) + put(TIMSK0, 7) + ldi(26, 0x00) + ldi(27, 0x01)
    numbers = (TIMER0_OVF, TIMER0_COMPB, TIMER0_COMPA, TIMER1_COMPA)
    isr = {number: ldi(16, number) + st("X+", 16) + reti() for number in numbers}
    chip = boot(flags, enable, sei(), LOOP, isr=isr)
    chip.run(cycles=400)
    assert [int(n) for n in chip.data[0x100:0x105]] == [
        TIMER1_COMPA,
        TIMER0_COMPA,
        TIMER0_COMPB,
        TIMER0_OVF,
        0,
    ]


def test_I08_cleared_flag_is_forgotten():
    chip = boot(
        overflow_pending(),
        in_(20, TIFR0),
        put_io(TIFR0, 1),
        in_(21, TIFR0),
        sei(),
        sled(50),
        isr={TIMER0_OVF: inc(22) + reti()},
    )
    chip.run(cycles=200)
    assert register(chip, 20) & 1 == 1
    assert register(chip, 21) & 1 == 0
    assert register(chip, 22) == 0


@pytest.mark.parametrize("phase", range(6))
def test_I09_interrupt_waits_for_the_end_of_call(phase):
    """The flag becomes visible `phase` cycles after the start of a CALL."""
    # main starts in cycle 3; the timer is started in the cycle called `start`
    before = put(TIMSK0, 1) + sei()
    start = 3 + 4 + 2 + 2
    k = start + 30  # start of CALL
    before += put_io(TCNT0, (256 - (k + phase - start)) & 0xFF) + put_io(TCCR0B, 1) + nops(30)
    chip = boot(
        before,
        call(0x180),
        nops(0x180 - MAIN - len(before) - 2),
        nops(20),
        LOOP,
        isr={TIMER0_OVF: reti()},
    )
    assert run_to(chip, 2 * (MAIN + len(before))) == k
    end = k + 4 if phase < 4 else k + phase + 1
    assert run_to(chip, vector(TIMER0_OVF)) == end + D
    chip.step()
    assert chip.pc == 2 * 0x180 + 2 * (end - k - 4)


def test_I10_ivsel_moves_the_vectors_to_the_boot_section():
    a = Assembler()
    a(jmp(MAIN)).org(2 * TIMER0_OVF)(LOOP)
    a.org(MAIN)(put(TIMSK0, 1), put_io(TCNT0, 0xC0), put_io(TCCR0B, 1))
    a(ldi(16, 1), ldi(17, 2), out(MCUCR, 16), out(MCUCR, 17), sei(), sled(200))
    a.org(BOOT + 2 * TIMER0_OVF)(inc(20), reti())
    chip = Chip(Program.from_words(a.words()))
    run_to(chip, 2 * (BOOT + 2 * TIMER0_OVF))
    assert chip.read("TCNT0") == 1 + D
    assert chip.read("MCUCR") == 2


def test_I11_ivce_alone_holds_interrupts_for_four_cycles():
    """IVCE reads 1 in the four cycles from its landing edge e; the first sample after them enters
    at e + 5.
    """
    before = overflow_pending() + ldi(16, 1) + sei()
    chip = boot(before, out(MCUCR, 16), inc(20) * 12, LOOP, isr={TIMER0_OVF: reti()})
    run_to(chip, 2 * (MAIN + len(before)))
    chip.step()
    e = chip.cycle
    assert chip.read("MCUCR") & 1
    assert run_to(chip, vector(TIMER0_OVF)) == e + 5 + D
    assert register(chip, 20) == 5
    assert chip.read("MCUCR") == 0


def test_I12_writing_flags_clears_those_written_1():
    chip = boot(
        three_timer0_flags(),
        in_(20, TIFR0),
        put_io(TIFR0, 0x02),
        in_(21, TIFR0),
        put_io(TIFR0, 0x00),
        in_(22, TIFR0),
        LOOP,
    )
    chip.run(cycles=50)
    assert registers(chip, 20, 22) == [0x07, 0x05, 0x05]


def test_I13_idle_sleep_ended_by_timer0():
    """T0 runs on in idle mode, so TCNT0 shows the cycles since the flag: 4 to wake, 4 to enter."""
    chip = boot(
        put(TIMSK0, 1),
        put_io(TCNT0, 0x80),
        put_io(TCCR0B, 1),
        put_io(SMCR, 1),
        sei(),
        sleep(),
        inc(20),
        LOOP,
        isr={TIMER0_OVF: reti()},
    )
    run_to(chip, vector(TIMER0_OVF))
    assert chip.read("TCNT0") == 5 + D
    assert register(chip, 20) == 0
    run_steps(chip, 2)
    assert register(chip, 20) == 1
