"""Every AVRe+ instruction in its plainest form, from the timing reference, section 1.

Each instruction is one small function `name(cpu, w)`: `w` is the first instruction word, the
return value is the number of cycles.  When it is called, `cpu.pc` already points to the following
word.  Flags are the Boolean formulas of the instruction manual, written with single bits.  A `cpu`
offers

    cpu.r            list of 32 register values
    cpu.f            list of the eight SREG bits, in the order C Z N V S H T I
    cpu.sp, cpu.pc   stack pointer; program counter in words (14 bits)
    cpu.flash(a)     flash word at word address a
    cpu.program_byte(a)   what LPM reads at byte address a
    cpu.read(a)      data space read in the present cycle
    cpu.wait()       go on to the next cycle (so a load reads in its second cycle, section 0)
    cpu.write(a, v)  data space write; takes effect at the end of the instruction
    cpu.write_bit(a, b, v)   the same for one bit (SBI, CBI: only the named bit is touched)
    cpu.later(f)     call f() at the end of the instruction (SEI, CLI, RETI)
    cpu.sleep(), cpu.watchdog_reset(), cpu.spm()
"""

C, Z, N, V, S, H, T, I = range(8)  # noqa: E741 - the manual's names


class UndefinedInstruction(Exception):
    pass


# ---- fields of an instruction word ---------------------------------------------------------------


def d5(w):
    return w >> 4 & 0x1F


def r5(w):
    return w >> 5 & 0x10 | w & 0x0F


def d4(w):
    return 16 + (w >> 4 & 0x0F)


def k8(w):
    return w >> 4 & 0xF0 | w & 0x0F


def k6(w):
    return w >> 2 & 0x30 | w & 0x0F


def pair(w):
    return 24 + 2 * (w >> 4 & 3)


def a6(w):
    return w >> 5 & 0x30 | w & 0x0F


def a5(w):
    return w >> 3 & 0x1F


def b3(w):
    return w & 7


def q6(w):
    return w >> 8 & 0x20 | w >> 7 & 0x18 | w & 7


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def bit(value, n):
    return value >> n & 1


# ---- flags ---------------------------------------------------------------------------------------


def flags_nzvs(f, result, v):
    f[V] = v
    f[N] = bit(result, 7)
    f[S] = f[N] ^ f[V]
    f[Z] = int(result == 0)


def flags_add(f, d, r, result):
    d3, r3, x3 = bit(d, 3), bit(r, 3), bit(result, 3)
    d7, r7, x7 = bit(d, 7), bit(r, 7), bit(result, 7)
    f[H] = d3 & r3 | r3 & (1 - x3) | (1 - x3) & d3
    f[C] = d7 & r7 | r7 & (1 - x7) | (1 - x7) & d7
    flags_nzvs(f, result, d7 & r7 & (1 - x7) | (1 - d7) & (1 - r7) & x7)


def flags_subtract(f, d, r, result, chained):
    d3, r3, x3 = bit(d, 3), bit(r, 3), bit(result, 3)
    d7, r7, x7 = bit(d, 7), bit(r, 7), bit(result, 7)
    old_z = f[Z]
    f[H] = (1 - d3) & r3 | r3 & x3 | x3 & (1 - d3)
    f[C] = (1 - d7) & r7 | r7 & x7 | x7 & (1 - d7)
    flags_nzvs(f, result, d7 & (1 - r7) & (1 - x7) | (1 - d7) & r7 & x7)
    if chained:  # SBC, SBCI, CPC: Z stays only if it was 1
        f[Z] = f[Z] & old_z


# ---- arithmetic and logic (1.1) ------------------------------------------------------------------


def add(cpu, w):
    d, r = cpu.r[d5(w)], cpu.r[r5(w)]
    x = (d + r) & 0xFF
    flags_add(cpu.f, d, r, x)
    cpu.r[d5(w)] = x
    return 1


def adc(cpu, w):
    d, r = cpu.r[d5(w)], cpu.r[r5(w)]
    x = (d + r + cpu.f[C]) & 0xFF
    flags_add(cpu.f, d, r, x)
    cpu.r[d5(w)] = x
    return 1


def sub(cpu, w):
    d, r = cpu.r[d5(w)], cpu.r[r5(w)]
    x = (d - r) & 0xFF
    flags_subtract(cpu.f, d, r, x, chained=False)
    cpu.r[d5(w)] = x
    return 1


def sbc(cpu, w):
    d, r = cpu.r[d5(w)], cpu.r[r5(w)]
    x = (d - r - cpu.f[C]) & 0xFF
    flags_subtract(cpu.f, d, r, x, chained=True)
    cpu.r[d5(w)] = x
    return 1


def subi(cpu, w):
    d, k = cpu.r[d4(w)], k8(w)
    x = (d - k) & 0xFF
    flags_subtract(cpu.f, d, k, x, chained=False)
    cpu.r[d4(w)] = x
    return 1


def sbci(cpu, w):
    d, k = cpu.r[d4(w)], k8(w)
    x = (d - k - cpu.f[C]) & 0xFF
    flags_subtract(cpu.f, d, k, x, chained=True)
    cpu.r[d4(w)] = x
    return 1


def cp(cpu, w):
    d, r = cpu.r[d5(w)], cpu.r[r5(w)]
    flags_subtract(cpu.f, d, r, (d - r) & 0xFF, chained=False)
    return 1


def cpc(cpu, w):
    d, r = cpu.r[d5(w)], cpu.r[r5(w)]
    flags_subtract(cpu.f, d, r, (d - r - cpu.f[C]) & 0xFF, chained=True)
    return 1


def cpi(cpu, w):
    d, k = cpu.r[d4(w)], k8(w)
    flags_subtract(cpu.f, d, k, (d - k) & 0xFF, chained=False)
    return 1


def _pair_flags(f, x, v, c):
    f[V] = v
    f[C] = c
    f[N] = bit(x, 15)
    f[S] = f[N] ^ f[V]
    f[Z] = int(x == 0)


def adiw(cpu, w):
    p = pair(w)
    old = cpu.r[p + 1] << 8 | cpu.r[p]
    x = (old + k6(w)) & 0xFFFF
    _pair_flags(cpu.f, x, v=(1 - bit(old, 15)) & bit(x, 15), c=bit(old, 15) & (1 - bit(x, 15)))
    cpu.r[p], cpu.r[p + 1] = x & 0xFF, x >> 8
    return 2


def sbiw(cpu, w):
    p = pair(w)
    old = cpu.r[p + 1] << 8 | cpu.r[p]
    x = (old - k6(w)) & 0xFFFF
    _pair_flags(cpu.f, x, v=bit(old, 15) & (1 - bit(x, 15)), c=bit(x, 15) & (1 - bit(old, 15)))
    cpu.r[p], cpu.r[p + 1] = x & 0xFF, x >> 8
    return 2


def and_(cpu, w):
    x = cpu.r[d5(w)] & cpu.r[r5(w)]
    flags_nzvs(cpu.f, x, v=0)
    cpu.r[d5(w)] = x
    return 1


def andi(cpu, w):
    x = cpu.r[d4(w)] & k8(w)
    flags_nzvs(cpu.f, x, v=0)
    cpu.r[d4(w)] = x
    return 1


def or_(cpu, w):
    x = cpu.r[d5(w)] | cpu.r[r5(w)]
    flags_nzvs(cpu.f, x, v=0)
    cpu.r[d5(w)] = x
    return 1


def ori(cpu, w):
    x = cpu.r[d4(w)] | k8(w)
    flags_nzvs(cpu.f, x, v=0)
    cpu.r[d4(w)] = x
    return 1


def eor(cpu, w):
    x = cpu.r[d5(w)] ^ cpu.r[r5(w)]
    flags_nzvs(cpu.f, x, v=0)
    cpu.r[d5(w)] = x
    return 1


def com(cpu, w):
    x = 0xFF - cpu.r[d5(w)]
    flags_nzvs(cpu.f, x, v=0)
    cpu.f[C] = 1
    cpu.r[d5(w)] = x
    return 1


def neg(cpu, w):
    d = cpu.r[d5(w)]
    x = (0 - d) & 0xFF
    cpu.f[H] = bit(x, 3) | bit(d, 3)
    cpu.f[C] = int(x != 0)
    flags_nzvs(cpu.f, x, v=int(x == 0x80))
    cpu.r[d5(w)] = x
    return 1


def swap(cpu, w):
    d = cpu.r[d5(w)]
    cpu.r[d5(w)] = (d & 0x0F) << 4 | d >> 4
    return 1


def inc(cpu, w):
    x = (cpu.r[d5(w)] + 1) & 0xFF
    flags_nzvs(cpu.f, x, v=int(x == 0x80))
    cpu.r[d5(w)] = x
    return 1


def dec(cpu, w):
    x = (cpu.r[d5(w)] - 1) & 0xFF
    flags_nzvs(cpu.f, x, v=int(x == 0x7F))
    cpu.r[d5(w)] = x
    return 1


def _shift(cpu, w, top):
    d = cpu.r[d5(w)]
    x = top << 7 | d >> 1
    cpu.f[C] = bit(d, 0)
    flags_nzvs(cpu.f, x, v=bit(x, 7) ^ cpu.f[C])
    cpu.r[d5(w)] = x
    return 1


def asr(cpu, w):
    return _shift(cpu, w, bit(cpu.r[d5(w)], 7))


def lsr(cpu, w):
    return _shift(cpu, w, 0)


def ror(cpu, w):
    return _shift(cpu, w, cpu.f[C])


def _product(cpu, product, shift):
    """MUL family: C = bit 15 of the product, Z on the 16-bit result, which the FMUL forms shift
    left by one (1.4).
    """
    cpu.f[C] = bit(product, 15)
    x = product << shift & 0xFFFF
    cpu.f[Z] = int(x == 0)
    cpu.r[0], cpu.r[1] = x & 0xFF, x >> 8
    return 2


def mul(cpu, w):
    return _product(cpu, cpu.r[d5(w)] * cpu.r[r5(w)], 0)


def muls(cpu, w):
    return _product(cpu, signed(cpu.r[d4(w)], 8) * signed(cpu.r[16 + (w & 0x0F)], 8), 0)


def _d3r3(cpu, w):
    return cpu.r[16 + (w >> 4 & 7)], cpu.r[16 + (w & 7)]


def mulsu(cpu, w):
    d, r = _d3r3(cpu, w)
    return _product(cpu, signed(d, 8) * r, 0)


def fmul(cpu, w):
    d, r = _d3r3(cpu, w)
    return _product(cpu, d * r, 1)


def fmuls(cpu, w):
    d, r = _d3r3(cpu, w)
    return _product(cpu, signed(d, 8) * signed(r, 8), 1)


def fmulsu(cpu, w):
    d, r = _d3r3(cpu, w)
    return _product(cpu, signed(d, 8) * r, 1)


def _write_flag(cpu, s, value):
    if s == I:  # SEI and CLI take effect at the end of the instruction (2.2)
        cpu.later(lambda: cpu.set_i(value))
    else:
        cpu.f[s] = value
    return 1


def bset(cpu, w):
    return _write_flag(cpu, w >> 4 & 7, 1)


def bclr(cpu, w):
    return _write_flag(cpu, w >> 4 & 7, 0)


def bst(cpu, w):
    cpu.f[T] = bit(cpu.r[d5(w)], b3(w))
    return 1


def bld(cpu, w):
    d, b = d5(w), b3(w)
    cpu.r[d] = cpu.r[d] & ~(1 << b) | cpu.f[T] << b
    return 1


def mov(cpu, w):
    cpu.r[d5(w)] = cpu.r[r5(w)]
    return 1


def movw(cpu, w):
    d, r = (w >> 4 & 0x0F) * 2, (w & 0x0F) * 2
    cpu.r[d], cpu.r[d + 1] = cpu.r[r], cpu.r[r + 1]
    return 1


def ldi(cpu, w):
    cpu.r[d4(w)] = k8(w)
    return 1


def nop(cpu, w):
    return 1


# ---- data transfer (1.2) -------------------------------------------------------------------------

X, Y, ZP = 26, 28, 30  # low registers of the pointers


def pointer(cpu, p):
    return cpu.r[p + 1] << 8 | cpu.r[p]


def set_pointer(cpu, p, value):
    cpu.r[p], cpu.r[p + 1] = value & 0xFF, value >> 8 & 0xFF


def second_word(cpu):
    k = cpu.flash(cpu.pc)
    cpu.pc = (cpu.pc + 1) & 0x3FFF
    return k


def lds(cpu, w):
    k = second_word(cpu)
    cpu.wait()
    cpu.r[d5(w)] = cpu.read(k)
    return 2


def sts(cpu, w):
    k = second_word(cpu)
    cpu.write(k, cpu.r[d5(w)])
    return 2


def _load(p, before, after):
    def load(cpu, w):
        a = (pointer(cpu, p) + before) & 0xFFFF
        cpu.wait()
        value = cpu.read(a)
        if before or after:
            set_pointer(cpu, p, a + after)
        cpu.r[d5(w)] = value
        return 2

    return load


def _store(p, before, after):
    def store(cpu, w):
        a = (pointer(cpu, p) + before) & 0xFFFF
        cpu.write(a, cpu.r[d5(w)])
        if before or after:
            set_pointer(cpu, p, a + after)
        return 2

    return store


def _load_displaced(p):
    def load(cpu, w):
        a = (pointer(cpu, p) + q6(w)) & 0xFFFF
        cpu.wait()
        cpu.r[d5(w)] = cpu.read(a)
        return 2

    return load


def _store_displaced(p):
    def store(cpu, w):
        cpu.write((pointer(cpu, p) + q6(w)) & 0xFFFF, cpu.r[d5(w)])
        return 2

    return store


def push(cpu, w):
    cpu.write(cpu.sp, cpu.r[d5(w)])
    cpu.sp = (cpu.sp - 1) & 0xFFFF
    return 2


def pop(cpu, w):
    cpu.sp = (cpu.sp + 1) & 0xFFFF
    cpu.wait()
    cpu.r[d5(w)] = cpu.read(cpu.sp)
    return 2


def in_(cpu, w):
    cpu.r[d5(w)] = cpu.read(0x20 + a6(w))
    return 1


def out(cpu, w):
    cpu.write(0x20 + a6(w), cpu.r[d5(w)])
    return 1


def sbi(cpu, w):
    cpu.write_bit(0x20 + a5(w), b3(w), 1)
    return 2


def cbi(cpu, w):
    cpu.write_bit(0x20 + a5(w), b3(w), 0)
    return 2


def lpm_r0(cpu, w):
    cpu.r[0] = cpu.program_byte(pointer(cpu, ZP))
    return 3


def lpm(cpu, w):
    cpu.r[d5(w)] = cpu.program_byte(pointer(cpu, ZP))
    return 3


def lpm_increment(cpu, w):
    z = pointer(cpu, ZP)
    value = cpu.program_byte(z)
    set_pointer(cpu, ZP, z + 1)
    cpu.r[d5(w)] = value
    return 3


def spm(cpu, w):
    return cpu.spm()


# ---- flow control (1.3) --------------------------------------------------------------------------


def rjmp(cpu, w):
    cpu.pc = (cpu.pc + signed(w & 0xFFF, 12)) & 0x3FFF
    return 2


def ijmp(cpu, w):
    cpu.pc = pointer(cpu, ZP) & 0x3FFF
    return 2


def jmp(cpu, w):
    cpu.pc = second_word(cpu) & 0x3FFF
    return 3


def push_pc(cpu):
    """The low byte of the return address first (at the higher address), then the high byte."""
    cpu.write(cpu.sp, cpu.pc & 0xFF)
    cpu.write((cpu.sp - 1) & 0xFFFF, cpu.pc >> 8)
    cpu.sp = (cpu.sp - 2) & 0xFFFF


def rcall(cpu, w):
    push_pc(cpu)
    cpu.pc = (cpu.pc + signed(w & 0xFFF, 12)) & 0x3FFF
    return 3


def icall(cpu, w):
    push_pc(cpu)
    cpu.pc = pointer(cpu, ZP) & 0x3FFF
    return 3


def call(cpu, w):
    target = second_word(cpu) & 0x3FFF
    push_pc(cpu)
    cpu.pc = target
    return 4


def ret(cpu, w):
    cpu.wait()
    high = cpu.read((cpu.sp + 1) & 0xFFFF)
    low = cpu.read((cpu.sp + 2) & 0xFFFF)
    cpu.sp = (cpu.sp + 2) & 0xFFFF
    cpu.pc = (high << 8 | low) & 0x3FFF
    return 4


def reti(cpu, w):
    ret(cpu, w)
    cpu.later(cpu.return_from_interrupt)
    return 4


def _branch_if(cpu, w, condition):
    if not condition:
        return 1
    cpu.pc = (cpu.pc + signed(w >> 3 & 0x7F, 7)) & 0x3FFF
    return 2


def brbs(cpu, w):
    return _branch_if(cpu, w, cpu.f[w & 7] == 1)


def brbc(cpu, w):
    return _branch_if(cpu, w, cpu.f[w & 7] == 0)


def is_two_words(w):
    """LDS, STS, JMP, CALL and nothing else."""
    return w & 0xFE0F in (0x9000, 0x9200) or w & 0xFE0E in (0x940C, 0x940E)


def _skip_if(cpu, condition):
    if not condition:
        return 1
    words = 2 if is_two_words(cpu.flash(cpu.pc)) else 1
    cpu.pc = (cpu.pc + words) & 0x3FFF
    return 1 + words


def cpse(cpu, w):
    return _skip_if(cpu, cpu.r[d5(w)] == cpu.r[r5(w)])


def sbrc(cpu, w):
    return _skip_if(cpu, bit(cpu.r[d5(w)], b3(w)) == 0)


def sbrs(cpu, w):
    return _skip_if(cpu, bit(cpu.r[d5(w)], b3(w)) == 1)


def sbic(cpu, w):
    return _skip_if(cpu, bit(cpu.read(0x20 + a5(w)), b3(w)) == 0)


def sbis(cpu, w):
    return _skip_if(cpu, bit(cpu.read(0x20 + a5(w)), b3(w)) == 1)


def sleep(cpu, w):
    cpu.sleep()
    return 1


def wdr(cpu, w):
    cpu.later(cpu.watchdog_reset)
    return 1


def break_(cpu, w):
    return 1


# ---- the table -----------------------------------------------------------------------------------

TABLE = [  # value, mask, function
    (0x0C00, 0xFC00, add),
    (0x1C00, 0xFC00, adc),
    (0x1800, 0xFC00, sub),
    (0x0800, 0xFC00, sbc),
    (0x5000, 0xF000, subi),
    (0x4000, 0xF000, sbci),
    (0x1400, 0xFC00, cp),
    (0x3000, 0xF000, cpi),
    (0x0400, 0xFC00, cpc),
    (0x9600, 0xFF00, adiw),
    (0x9700, 0xFF00, sbiw),
    (0x2000, 0xFC00, and_),
    (0x7000, 0xF000, andi),
    (0x2800, 0xFC00, or_),
    (0x6000, 0xF000, ori),
    (0x2400, 0xFC00, eor),
    (0x9400, 0xFE0F, com),
    (0x9401, 0xFE0F, neg),
    (0x9402, 0xFE0F, swap),
    (0x9403, 0xFE0F, inc),
    (0x940A, 0xFE0F, dec),
    (0x9405, 0xFE0F, asr),
    (0x9406, 0xFE0F, lsr),
    (0x9407, 0xFE0F, ror),
    (0x9C00, 0xFC00, mul),
    (0x0200, 0xFF00, muls),
    (0x0300, 0xFF88, mulsu),
    (0x0308, 0xFF88, fmul),
    (0x0380, 0xFF88, fmuls),
    (0x0388, 0xFF88, fmulsu),
    (0x9408, 0xFF8F, bset),
    (0x9488, 0xFF8F, bclr),
    (0xFA00, 0xFE08, bst),
    (0xF800, 0xFE08, bld),
    (0x2C00, 0xFC00, mov),
    (0x0100, 0xFF00, movw),
    (0xE000, 0xF000, ldi),
    (0x0000, 0xFFFF, nop),
    (0x9000, 0xFE0F, lds),
    (0x9200, 0xFE0F, sts),
    (0x9001, 0xFE0F, _load(ZP, 0, 1)),
    (0x9002, 0xFE0F, _load(ZP, -1, 0)),
    (0x9009, 0xFE0F, _load(Y, 0, 1)),
    (0x900A, 0xFE0F, _load(Y, -1, 0)),
    (0x900C, 0xFE0F, _load(X, 0, 0)),
    (0x900D, 0xFE0F, _load(X, 0, 1)),
    (0x900E, 0xFE0F, _load(X, -1, 0)),
    (0x8000, 0xD208, _load_displaced(ZP)),
    (0x8008, 0xD208, _load_displaced(Y)),
    (0x9201, 0xFE0F, _store(ZP, 0, 1)),
    (0x9202, 0xFE0F, _store(ZP, -1, 0)),
    (0x9209, 0xFE0F, _store(Y, 0, 1)),
    (0x920A, 0xFE0F, _store(Y, -1, 0)),
    (0x920C, 0xFE0F, _store(X, 0, 0)),
    (0x920D, 0xFE0F, _store(X, 0, 1)),
    (0x920E, 0xFE0F, _store(X, -1, 0)),
    (0x8200, 0xD208, _store_displaced(ZP)),
    (0x8208, 0xD208, _store_displaced(Y)),
    (0x920F, 0xFE0F, push),
    (0x900F, 0xFE0F, pop),
    (0xB000, 0xF800, in_),
    (0xB800, 0xF800, out),
    (0x9A00, 0xFF00, sbi),
    (0x9800, 0xFF00, cbi),
    (0x95C8, 0xFFFF, lpm_r0),
    (0x9004, 0xFE0F, lpm),
    (0x9005, 0xFE0F, lpm_increment),
    (0x95E8, 0xFFFF, spm),
    (0xC000, 0xF000, rjmp),
    (0x940C, 0xFE0E, jmp),
    (0x9409, 0xFFFF, ijmp),
    (0xD000, 0xF000, rcall),
    (0x940E, 0xFE0E, call),
    (0x9509, 0xFFFF, icall),
    (0x9508, 0xFFFF, ret),
    (0x9518, 0xFFFF, reti),
    (0xF000, 0xFC00, brbs),
    (0xF400, 0xFC00, brbc),
    (0x1000, 0xFC00, cpse),
    (0xFC00, 0xFE08, sbrc),
    (0xFE00, 0xFE08, sbrs),
    (0x9900, 0xFF00, sbic),
    (0x9B00, 0xFF00, sbis),
    (0x9588, 0xFFFF, sleep),
    (0x95A8, 0xFFFF, wdr),
    (0x9598, 0xFFFF, break_),
]


def decode(w):
    """The function for an instruction word."""
    for value, mask, function in TABLE:
        if w & mask == value:
            return function
    raise UndefinedInstruction(f"0x{w:04X}")
