"""Results and flags of every arithmetic, logic, shift and bit instruction, for all operands.

The formulas are written from the boolean equations of the AVR Instruction Set Manual, on whole
arrays; they share nothing with the package. Rd, Rr are the operands, R is the result, a number
after it is a bit.

The chip is driven by generated programs: an inner loop (or an unrolled stretch, for immediate
operands) goes through 256 cases with one first operand and one SREG, stores results and flags in
SRAM and stops at "row"; the outer loops go through all first operands and the wanted SREG values.
"""

import numpy as np
import pytest

import tests.reference.assemble as asm
from avrswarm import Chip
from avrswarm.program import Program

C, Z, N, V, S, H, T, INTERRUPT = (1 << n for n in range(8))

# SREG before the instruction: every mix of the flags that an instruction reads or may wrongly touch
# (C, Z, H), with the others all clear and all set.
MIXES = [sum(bits) for c in (0, C) for z in (0, Z) for h in (0, H) for bits in ([c, z, h],)]
SREGS = [mix | rest for mix in MIXES for rest in (0, N | V | S | T | INTERRUPT)]

LOW, HIGH, FLAGS = 0x100, 0x200, 0x300  # where a row's results go


pytestmark = pytest.mark.bounds_checked


# ---- running -------------------------------------------------------------------------------------


def run_rows(kernel, sregs, first_operands=256):
    """Results low, high and flags as arrays [sreg, first operand, second operand].

    `kernel(a)` writes one row: 256 cases with r18 = first operand, r19 = SREG, storing through X
    (low byte of the result), Y (high byte) and Z (SREG).
    """
    a = asm.Assembler()
    for pointer in (26, 28, 30):
        a(asm.ldi(pointer, 0))
    a.absolute(asm.jmp, "go")
    a.label("table")
    a([low | high << 8 for low, high in zip(sregs[::2], [*sregs[1::2], 0], strict=False)])
    a.label("go")
    a(
        asm.ldi(22, len(sregs) & 0xFF), asm.clr(23)
    )  # r22: SREGs left; r23: number of the present one
    a.label("next sreg")
    table = 2 * a.word_address("table")
    a(asm.ldi(30, table & 0xFF), asm.ldi(31, table >> 8))
    a(asm.clr(0), asm.add(30, 23), asm.adc(31, 0), asm.lpm(19))
    a(asm.inc(23), asm.clr(18))
    a.label("next operand")
    a(asm.ldi(26, LOW & 0xFF), asm.ldi(27, LOW >> 8))
    a(asm.ldi(28, HIGH & 0xFF), asm.ldi(29, HIGH >> 8))
    a(asm.ldi(30, FLAGS & 0xFF), asm.ldi(31, FLAGS >> 8))
    kernel(a)
    a.label("row")
    a(asm.inc(18), asm.cpi(18, first_operands & 0xFF), asm.breq(2))
    a.absolute(asm.jmp, "next operand")
    a(asm.dec(22), asm.breq(2))
    a.absolute(asm.jmp, "next sreg")
    a(asm.rjmp(-1))
    chip = Chip(Program.from_words(a.words()))
    row = 2 * a.word_address("row")
    found = np.zeros((3, len(sregs), first_operands, 256), dtype=np.uint8)
    for sreg in range(len(sregs)):
        for first in range(first_operands):
            chip.run_until(pc=row, max_cycles=100_000)
            assert chip.pc == row
            found[:, sreg, first] = np.asarray(chip.data)[LOW : LOW + 0x300].reshape(3, 256)
            chip.step()
    return found


def store(a):
    """End of one case: result in r17:r16 (or r1:r0, see `product`), flags in SREG."""
    a(asm.in_(21, asm.SREG), asm.st("X+", 16), asm.st("Y+", 17), asm.st("Z+", 21))


def two_registers(instruction):
    """op r16, r17 for all values of r17; stored are r16 and, unchanged, r17."""

    def kernel(a):
        a(asm.clr(20))
        a.label("loop")
        a(asm.mov(16, 18), asm.mov(17, 20), asm.out(asm.SREG, 19))
        a(instruction(16, 17))
        store(a)
        a(asm.inc(20))
        a.branch(asm.brne, "loop")

    return kernel


def product(instruction):
    """op r16, r17 for all values of r17; stored is r1:r0."""

    def kernel(a):
        a(asm.clr(20))
        a.label("loop")
        a(asm.mov(16, 18), asm.mov(17, 20), asm.out(asm.SREG, 19))
        a(instruction(16, 17))
        a(asm.in_(21, asm.SREG), asm.st("X+", 0), asm.st("Y+", 1), asm.st("Z+", 21))
        a(asm.inc(20))
        a.branch(asm.brne, "loop")

    return kernel


def immediate(instruction):
    """op r16, K for all K, unrolled."""

    def kernel(a):
        for k in range(256):
            a(asm.mov(16, 18), asm.ldi(17, k), asm.out(asm.SREG, 19))
            a(instruction(16, k))
            store(a)

    return kernel


def one_register(instruction):
    """op r16 for all values of r16; the first operand only runs the row."""

    def kernel(a):
        a(asm.clr(20))
        a.label("loop")
        a(asm.mov(16, 20), asm.mov(17, 20), asm.out(asm.SREG, 19))
        a(instruction(16))
        store(a)
        a(asm.inc(20))
        a.branch(asm.brne, "loop")

    return kernel


def word_immediate(instruction, k):
    """op r25:r24, K with r25 = first operand and all values of r24; stored is r25:r24."""

    def kernel(a):
        a(asm.clr(20))
        a.label("loop")
        a(asm.mov(24, 20), asm.mov(25, 18), asm.out(asm.SREG, 19))
        a(instruction(24, k))
        a(asm.movw(16, 24))
        store(a)
        a(asm.inc(20))
        a.branch(asm.brne, "loop")

    return kernel


def check(found, expected_low, expected_high, expected_flags):
    """Compare whole arrays and name the first case that differs."""
    names = ("result", "second byte", "SREG")
    for name, ours, wanted in zip(
        names, found, (expected_low, expected_high, expected_flags), strict=True
    ):
        wanted = np.broadcast_to(wanted, ours.shape)
        wrong = np.argwhere(ours != wanted)
        if len(wrong):
            place = tuple(wrong[0])
            pytest.fail(
                f"{len(wrong)} cases of {name}; first: SREG before number {place[0]}, operands "
                f"{place[1]:#04x}, {place[2]:#04x}: {ours[place]:#04x}, not {wanted[place]:#04x}"
            )


def grids(sregs):
    """SREG before, first operand, second operand, as arrays that broadcast to [sreg, first,
    second].
    """
    before = np.array(sregs, dtype=np.int64)[:, None, None]
    return before, np.arange(256)[None, :, None], np.arange(256)[None, None, :]


# ---- formulas ------------------------------------------------------------------------------------


def bit(x, n):
    return (np.asarray(x) >> n & 1).astype(bool)


def sreg(before, **flags):
    """SREG with the given flags (boolean arrays) replaced; S = N xor V where N and V are given."""
    if "n" in flags and "s" not in flags:
        flags["s"] = flags["n"] ^ flags["v"]
    value = before
    for name, flag in flags.items():
        mask = {"c": C, "z": Z, "n": N, "v": V, "s": S, "h": H, "t": T}[name]
        value = np.where(flag, value | mask, value & ~mask)
    return value


def add(rd, rr, before, carry):
    r = rd + rr + carry & 0xFF
    rd3, rr3, r3, rd7, rr7, r7 = (bit(x, n) for n in (3, 7) for x in (rd, rr, r))
    return r, sreg(
        before,
        h=rd3 & rr3 | rr3 & ~r3 | ~r3 & rd3,
        v=rd7 & rr7 & ~r7 | ~rd7 & ~rr7 & r7,
        n=r7,
        z=r == 0,
        c=rd7 & rr7 | rr7 & ~r7 | ~r7 & rd7,
    )


def subtract(rd, rr, before, carry, chained):
    r = rd - rr - carry & 0xFF
    rd3, rr3, r3, rd7, rr7, r7 = (bit(x, n) for n in (3, 7) for x in (rd, rr, r))
    zero = r == 0
    return r, sreg(
        before,
        h=~rd3 & rr3 | rr3 & r3 | r3 & ~rd3,
        v=rd7 & ~rr7 & ~r7 | ~rd7 & rr7 & r7,
        n=r7,
        z=zero & bit(before, 1)
        if chained
        else zero,  # Z: previous value kept when the result is zero
        c=~rd7 & rr7 | rr7 & r7 | r7 & ~rd7,
    )


def logic(r, before):
    """AND, OR, EOR: V = 0, N = R7, Z = all bits clear; C and H untouched."""
    n = bit(r, 7)
    return r, sreg(before, v=np.zeros_like(n), n=n, z=r == 0)


def carry_in(before):
    return before & 1


TWO = {
    "add": lambda rd, rr, before: add(rd, rr, before, 0),
    "adc": lambda rd, rr, before: add(rd, rr, before, carry_in(before)),
    "sub": lambda rd, rr, before: subtract(rd, rr, before, 0, chained=False),
    "sbc": lambda rd, rr, before: subtract(rd, rr, before, carry_in(before), chained=True),
    "and_": lambda rd, rr, before: logic(rd & rr, before),
    "or_": lambda rd, rr, before: logic(rd | rr, before),
    "eor": lambda rd, rr, before: logic(rd ^ rr, before),
    "mov": lambda rd, rr, before: (rr + 0 * rd, before),
    "cp": lambda rd, rr, before: (rd, subtract(rd, rr, before, 0, chained=False)[1]),
    "cpc": lambda rd, rr, before: (
        rd,
        subtract(rd, rr, before, carry_in(before), chained=True)[1],
    ),
}
IMMEDIATE = {
    "subi": TWO["sub"],
    "sbci": TWO["sbc"],
    "cpi": TWO["cp"],
    "andi": TWO["and_"],
    "ori": TWO["or_"],
    "ldi": TWO["mov"],
}


@pytest.mark.parametrize("name", TWO)
def test_two_registers(name):
    before, rd, rr = grids(SREGS)
    result, flags = TWO[name](rd, rr, before)
    check(run_rows(two_registers(getattr(asm, name)), SREGS), result, rr, flags)


@pytest.mark.parametrize("name", IMMEDIATE)
def test_immediate(name):
    before, rd, k = grids(SREGS)
    result, flags = IMMEDIATE[name](rd, k, before)
    check(run_rows(immediate(getattr(asm, name)), SREGS), result, k, flags)


def signed(x):
    return (x ^ 0x80) - 0x80


# MUL*: C = R15, Z = result zero.  FMUL*: C = bit 15 before the left shift, Z on the shifted result.
PRODUCTS = {
    "mul": (lambda rd, rr: rd * rr, 0),
    "muls": (lambda rd, rr: signed(rd) * signed(rr), 0),
    "mulsu": (lambda rd, rr: signed(rd) * rr, 0),
    "fmul": (lambda rd, rr: rd * rr, 1),
    "fmuls": (lambda rd, rr: signed(rd) * signed(rr), 1),
    "fmulsu": (lambda rd, rr: signed(rd) * rr, 1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name):
    before, rd, rr = grids(SREGS)
    multiply, shift = PRODUCTS[name]
    whole = multiply(rd, rr) & 0xFFFF
    result = whole << shift & 0xFFFF
    flags = sreg(before, c=bit(whole, 15), z=result == 0)
    check(run_rows(product(getattr(asm, name)), SREGS), result & 0xFF, result >> 8, flags)


def shift_flags(rd, r, before):
    """ASR, LSR, ROR: C = Rd0, N = R7, V = N xor C (after the shift)."""
    c, n = bit(rd, 0), bit(r, 7)
    return r, sreg(before, c=c, n=n, v=n ^ c, z=r == 0)


def com(rd, before):
    r = 0xFF - rd
    n = bit(r, 7)
    return r, sreg(before, c=np.ones_like(n), n=n, v=np.zeros_like(n), z=r == 0)


def neg(rd, before):
    r = -rd & 0xFF
    # H = R3 + Rd3, V = R == 0x80, C = R != 0
    return r, sreg(before, h=bit(r, 3) | bit(rd, 3), v=r == 0x80, n=bit(r, 7), z=r == 0, c=r != 0)


def step(rd, by, overflow, before):
    r = rd + by & 0xFF
    return r, sreg(before, v=r == overflow, n=bit(r, 7), z=r == 0)


ONE = {
    "com": com,
    "neg": neg,
    "inc": lambda rd, before: step(rd, 1, 0x80, before),
    "dec": lambda rd, before: step(rd, -1, 0x7F, before),
    "asr": lambda rd, before: shift_flags(rd, rd >> 1 | rd & 0x80, before),
    "lsr": lambda rd, before: shift_flags(rd, rd >> 1, before),
    "ror": lambda rd, before: shift_flags(rd, rd >> 1 | carry_in(before) << 7, before),
    "swap": lambda rd, before: ((rd << 4 | rd >> 4) & 0xFF, before),
    "tst": lambda rd, before: logic(rd, before),
    "clr": lambda rd, before: logic(rd & 0, before),
    "lsl": lambda rd, before: add(rd, rd, before, 0),
    "rol": lambda rd, before: add(rd, rd, before, carry_in(before)),
}
# every bit of a register to and from T, and every bit of SREG
for n in range(8):
    ONE[f"bst {n}"] = lambda rd, before, n=n: (rd, sreg(before, t=bit(rd, n)))
    ONE[f"bld {n}"] = lambda rd, before, n=n: (rd & ~(1 << n) | (before >> 6 & 1) << n, before)
    ONE[f"bset {n}"] = lambda rd, before, n=n: (rd, before | 1 << n)
    ONE[f"bclr {n}"] = lambda rd, before, n=n: (rd, before & ~(1 << n))


@pytest.mark.parametrize("name", ONE)
def test_one_register_with_every_sreg(name):
    sregs = list(range(256))
    if name.startswith("bset") or name.startswith("bclr"):
        made = getattr(asm, name.split()[0])(int(name.split()[1]))
        instruction = lambda d: made  # noqa: E731
    elif " " in name:
        make, number = getattr(asm, name.split()[0]), int(name.split()[1])
        instruction = lambda d: make(d, number)  # noqa: E731
    else:
        instruction = getattr(asm, name)
    before = np.arange(256)[:, None, None]
    rd = np.arange(256)[None, None, :]
    result, flags = ONE[name](rd, before)
    check(run_rows(one_register(instruction), sregs, first_operands=1), result, rd, flags)


# All 65536 values with constants at the ends and around the carry of the nibble fields.
WORD_CONSTANTS = [0, 1, 2, 15, 16, 31, 32, 47, 48, 62, 63]
WORD_SREGS = [0x00, C | Z | H, N | V | S | T, 0xFF]


@pytest.mark.parametrize("k", WORD_CONSTANTS)
@pytest.mark.parametrize("name", ["adiw", "sbiw"])
def test_word_immediate(name, k):
    before, high, low = grids(WORD_SREGS)
    rd = high << 8 | low
    r = (rd + k if name == "adiw" else rd - k) & 0xFFFF
    rdh7, r15 = bit(rd, 15), bit(r, 15)
    if name == "adiw":
        # V = ~Rdh7 & R15, C = ~R15 & Rdh7
        flags = sreg(before, v=~rdh7 & r15, n=r15, z=r == 0, c=~r15 & rdh7)
    else:
        # V = Rdh7 & ~R15, C = R15 & ~Rdh7
        flags = sreg(before, v=rdh7 & ~r15, n=r15, z=r == 0, c=r15 & ~rdh7)
    found = run_rows(word_immediate(getattr(asm, name), k), WORD_SREGS)
    check(found, r & 0xFF, r >> 8, flags)


@pytest.mark.parametrize("pair", [24, 26, 28, 30])
@pytest.mark.parametrize("name", ["adiw", "sbiw"])
def test_word_immediate_with_every_constant_and_pair(name, pair):
    """All 64 constants on all four pairs, at values around the carries."""
    values = [
        0x0000,
        0x0001,
        0x003E,
        0x003F,
        0x0040,
        0x00FF,
        0x7FC0,
        0x7FFF,
        0x8000,
        0x8020,
        0xFFC1,
        0xFFFF,
    ]
    expected = []
    a = asm.Assembler()
    for k in range(64):
        for value in values:
            a(asm.ldi(16, value & 0xFF), asm.ldi(17, value >> 8), asm.movw(pair, 16))
            a(getattr(asm, name)(pair, k))
            expected.append((value + k if name == "adiw" else value - k) & 0xFFFF)
    chip = Chip(Program.from_words(a.words()))
    for wanted in expected:
        for _ in range(4):
            chip.step()
        data = chip.data
        assert int(data[pair]) | int(data[pair + 1]) << 8 == wanted


def test_movw_every_pair():
    a = asm.Assembler()
    for d in range(0, 32, 2):
        for r in range(0, 32, 2):
            for n in range(16, 32):
                a(asm.ldi(n, (17 * n + d * 5 + r * 3) & 0xFF))
            a(*(asm.mov(n, n + 16) for n in range(16)))
            a(asm.ldi(16, 0xA5))
            a(asm.movw(d, r))
    chip = Chip(Program.from_words(a.words()))
    for d in range(0, 32, 2):
        for r in range(0, 32, 2):
            for _ in range(33):
                chip.step()
            before = np.array(chip.data[:32])
            sreg_before = chip.sreg
            chip.step()
            before[d : d + 2] = before[r : r + 2]
            assert (np.asarray(chip.data[:32]) == before).all(), (d, r)
            assert chip.sreg == sreg_before
