"""A tiny assembler for tests: one function per AVRe+ instruction, returning its machine words.

It shares no code with the package.  Encodings: timing reference, section 1 (1.1 to 1.3).

Every function returns a list of words (one word, or two for LDS, STS, JMP and CALL), so a program
is just the concatenation of lists:

    from tests.reference.assemble import TCCR2B, TCNT0, ldi, out, program, rjmp, sts
    words = program(
        ldi(16, 5),              # LDI r16, 5
        out(TCNT0, 16),          # OUT: a register name from here, or an I/O address
        sts(TCCR2B, 16),         # STS: data space address
        rjmp(-1),                # offset in words from the next instruction: a loop on itself
    )

Addresses.  The register names at the end of this file (TCNT0, TCCR2B, ...) are DATA SPACE
addresses, ready for lds/sts.  `in_`, `out`, `sbi`, `cbi`, `sbis`, `sbic` take an `Address` from
that list too and subtract 0x20 for it; a plain int given to them is an I/O address as in the
manual (0x00-0x3F, or 0x00-0x1F for the bit instructions):

    out(TCNT0, 16) == out(0x26, 16)          # TCNT0 is 0x46 in data space, 0x26 in I/O space

Labels.  For anything longer use `Assembler`: it takes the same lists, and labels in place of
offsets:

    a = Assembler()
    a(ldi(16, 10))
    a.label("loop")
    a(dec(16))
    a.branch(brne, "loop")      # brne/breq/..., rjmp, rcall: relative to the label
    a.absolute(jmp, "loop")     # jmp, call: absolute word address of the label
    a.org(0x20)                 # go on at word address 0x20
    words = a.words()           # one int per flash word from 0; gaps are filled with NOP

Offsets are in words relative to the following instruction, targets of jmp/call are WORD addresses
(as the manual has it).
"""


class Address(int):
    """A data-space address that knows it is one, so that `out(PORTB, 16)` can convert it to an I/O
    address.
    """

    def __repr__(self):
        return f"Address(0x{int(self):02X})"


def _io(a, limit):
    """I/O address of an `Address` (data space) or a plain int (already an I/O address)."""
    a = int(a) - 0x20 if isinstance(a, Address) else int(a)
    if not 0 <= a < limit:
        raise ValueError(f"I/O address 0x{a:X} is not below 0x{limit:X}")
    return a


def _check(condition, what):
    if not condition:
        raise ValueError(what)


def _d5(d):
    _check(0 <= d <= 31, f"register r{d}")
    return d << 4


def _d4(d):
    _check(16 <= d <= 31, f"r{d} is not r16-r31")
    return (d - 16) << 4


def _r5(r):
    _check(0 <= r <= 31, f"register r{r}")
    return (r & 0x10) << 5 | (r & 0x0F)


def _k8(k):
    _check(-128 <= k <= 255, f"constant {k}")
    k &= 0xFF
    return (k & 0xF0) << 4 | (k & 0x0F)


def _q6(q):
    _check(0 <= q <= 63, f"displacement {q}")
    return (q & 0x20) << 8 | (q & 0x18) << 7 | (q & 0x07)


def _bit(b):
    _check(0 <= b <= 7, f"bit {b}")
    return b


def _k7(k):
    _check(-64 <= k <= 63, f"branch offset {k}")
    return (k & 0x7F) << 3


def _k12(k):
    _check(-2048 <= k <= 2047, f"jump offset {k}")
    return k & 0xFFF


# ---- 1.1 arithmetic, logic, shifts, bit operations -----------------------------------------------


def _two(base):
    def make(d, r):
        return [base | _d5(d) | _r5(r)]

    return make


def _immediate(base):
    def make(d, k):
        return [base | _d4(d) | _k8(k)]

    return make


def _one(base):
    def make(d):
        return [base | _d5(d)]

    return make


add = _two(0x0C00)  # add(d, r)
adc = _two(0x1C00)
sub = _two(0x1800)
sbc = _two(0x0800)
cp = _two(0x1400)
cpc = _two(0x0400)
cpse = _two(0x1000)
and_ = _two(0x2000)
or_ = _two(0x2800)
eor = _two(0x2400)
mov = _two(0x2C00)
mul = _two(0x9C00)

subi = _immediate(0x5000)  # subi(d, k), d in 16..31
sbci = _immediate(0x4000)
cpi = _immediate(0x3000)
andi = _immediate(0x7000)
ori = _immediate(0x6000)
ldi = _immediate(0xE000)

com = _one(0x9400)  # com(d)
neg = _one(0x9401)
swap = _one(0x9402)
inc = _one(0x9403)
asr = _one(0x9405)
lsr = _one(0x9406)
ror = _one(0x9407)
dec = _one(0x940A)
push = _one(0x920F)
pop = _one(0x900F)


def lsl(d):
    return add(d, d)


def rol(d):
    return adc(d, d)


def tst(d):
    return and_(d, d)


def clr(d):
    return eor(d, d)


def ser(d):
    return ldi(d, 0xFF)


def sbr(d, k):
    return ori(d, k)


def cbr(d, k):
    return andi(d, 0xFF - k)


def _pair_immediate(base):
    def make(d, k):
        _check(d in (24, 26, 28, 30), f"r{d} is not 24, 26, 28 or 30")
        _check(0 <= k <= 63, f"constant {k}")
        return [base | (d - 24) << 3 | (k & 0x30) << 2 | (k & 0x0F)]

    return make


adiw = _pair_immediate(0x9600)  # adiw(24 | 26 | 28 | 30, k)
sbiw = _pair_immediate(0x9700)


def movw(d, r):
    """Copy the pair r+1:r to d+1:d (both even)."""
    _check(d % 2 == 0 and r % 2 == 0 and 0 <= d <= 30 and 0 <= r <= 30, "pairs are even")
    return [0x0100 | (d >> 1) << 4 | r >> 1]


def muls(d, r):
    _check(16 <= d <= 31 and 16 <= r <= 31, "muls takes r16-r31")
    return [0x0200 | (d - 16) << 4 | (r - 16)]


def _mul3(base):
    def make(d, r):
        _check(16 <= d <= 23 and 16 <= r <= 23, "takes r16-r23")
        return [base | (d - 16) << 4 | (r - 16)]

    return make


mulsu = _mul3(0x0300)
fmul = _mul3(0x0308)
fmuls = _mul3(0x0380)
fmulsu = _mul3(0x0388)


def bset(s):
    return [0x9408 | _bit(s) << 4]


def bclr(s):
    return [0x9488 | _bit(s) << 4]


def _fixed(words):
    return lambda: list(words)


SREG_C, SREG_Z, SREG_N, SREG_V, SREG_S, SREG_H, SREG_T, SREG_I = range(
    8
)  # bit numbers for bset, bclr, brbs, brbc

sec, sez, sen, sev, ses, seh, set_, sei = (_fixed(bset(s)) for s in range(8))
clc, clz, cln, clv, cls, clh, clt, cli = (_fixed(bclr(s)) for s in range(8))


def _register_bit(base):
    def make(d, b):
        return [base | _d5(d) | _bit(b)]

    return make


bld = _register_bit(0xF800)  # bld(d, bit)
bst = _register_bit(0xFA00)
sbrc = _register_bit(0xFC00)
sbrs = _register_bit(0xFE00)


def nop():
    return [0x0000]


# ---- 1.2 data transfer ---------------------------------------------------------------------------


def lds(d, k):
    return [0x9000 | _d5(d), int(k) & 0xFFFF]


def sts(k, d):
    """STS k, d: same argument order as the assembler (address first)."""
    return [0x9200 | _d5(d), int(k) & 0xFFFF]


_MODES = {"Z+": 0x1, "-Z": 0x2, "Y+": 0x9, "-Y": 0xA, "X": 0xC, "X+": 0xD, "-X": 0xE}


def ld(d, pointer):
    """LD d, pointer with pointer one of X X+ -X Y Y+ -Y Z Z+ -Z."""
    if pointer in ("Y", "Z"):
        return ldd(d, pointer, 0)
    return [0x9000 | _d5(d) | _MODES[pointer]]


def st(pointer, d):
    """ST pointer, d."""
    if pointer in ("Y", "Z"):
        return std(pointer, 0, d)
    return [0x9200 | _d5(d) | _MODES[pointer]]


def ldd(d, pointer, q):
    """LDD d, Y+q or Z+q: ldd(5, "Y", 3)."""
    return [0x8000 | {"Z": 0, "Y": 8}[pointer] | _d5(d) | _q6(q)]


def std(pointer, q, d):
    """STD Y+q or Z+q, d: std("Y", 3, 5)."""
    return [0x8200 | {"Z": 0, "Y": 8}[pointer] | _d5(d) | _q6(q)]


def in_(d, a):
    a = _io(a, 0x40)
    return [0xB000 | _d5(d) | (a & 0x30) << 5 | (a & 0x0F)]


def out(a, d):
    a = _io(a, 0x40)
    return [0xB800 | _d5(d) | (a & 0x30) << 5 | (a & 0x0F)]


def _io_bit(base):
    def make(a, b):
        return [base | _io(a, 0x20) << 3 | _bit(b)]

    return make


cbi = _io_bit(0x9800)  # cbi(a, bit)
sbic = _io_bit(0x9900)
sbi = _io_bit(0x9A00)
sbis = _io_bit(0x9B00)


def lpm(d=None, pointer="Z"):
    """lpm() is LPM r0,Z in its one-operand-less form; lpm(d) is LPM d,Z; lpm(d, "Z+")
    post-increments.
    """
    if d is None:
        return [0x95C8]
    return [0x9000 | _d5(d) | {"Z": 4, "Z+": 5}[pointer]]


def spm():
    return [0x95E8]


# ---- 1.3 flow control and system -----------------------------------------------------------------


def rjmp(k):
    """Offset in words relative to the following instruction: rjmp(-1) loops on itself."""
    return [0xC000 | _k12(k)]


def rcall(k):
    return [0xD000 | _k12(k)]


def _long(base):
    def make(k):
        _check(0 <= k < 1 << 22, f"word address {k}")
        return [base | (k >> 17 & 0x1F) << 4 | (k >> 16 & 1), k & 0xFFFF]

    return make


jmp = _long(0x940C)  # jmp(word address)
call = _long(0x940E)


def ijmp():
    return [0x9409]


def icall():
    return [0x9509]


def ret():
    return [0x9508]


def reti():
    return [0x9518]


def brbs(s, k):
    return [0xF000 | _k7(k) | _bit(s)]


def brbc(s, k):
    return [0xF400 | _k7(k) | _bit(s)]


def _branch(make, s):
    def branch(k):
        return make(s, k)

    return branch


brcs, breq, brmi, brvs, brlt, brhs, brts, brie = (_branch(brbs, s) for s in range(8))
brcc, brne, brpl, brvc, brge, brhc, brtc, brid = (_branch(brbc, s) for s in range(8))
brlo, brsh = brcs, brcc


def sleep():
    return [0x9588]


def wdr():
    return [0x95A8]


def break_():
    return [0x9598]


# ---- programs ------------------------------------------------------------------------------------


def program(*parts):
    """Concatenate instruction lists into one list of words."""
    words = []
    for part in parts:
        words.extend(part)
    return words


def vector_word(n):
    """Word address of interrupt vector n (2.1)."""
    return 2 * n


class Assembler:
    """Places instructions one after the other, with labels.  See the module text."""

    def __init__(self):
        self._memory = {}
        self._fixups = []
        self._labels = {}
        self.here = 0  # word address of the next instruction

    def __call__(self, *parts):
        for part in parts:
            for word in part:
                if self.here in self._memory:
                    raise ValueError(f"word 0x{self.here:04X} is used twice")
                self._memory[self.here] = word
                self.here += 1
        return self

    def org(self, word_address):
        self.here = word_address
        return self

    def label(self, name):
        if name in self._labels:
            raise ValueError(f"label {name} is defined twice")
        self._labels[name] = self.here
        return self

    def branch(self, make, label, *leading):
        """A one-word relative instruction: make(*leading, offset), e.g. branch(brne, "loop"),
        branch(brbs, "loop", SREG_T).
        """
        self._fixups.append((self.here, make, leading, label, True))
        return self(make(*leading, 0))

    def absolute(self, make, label):
        """jmp or call to a label."""
        self._fixups.append((self.here, make, (), label, False))
        return self(make(0))

    def word_address(self, label):
        return self._labels[label]

    def words(self):
        memory = dict(self._memory)
        for at, make, leading, label, relative in self._fixups:
            target = self._labels[label]
            if relative:
                offset = target - (at + 1)
                new = make(*leading, offset)
            else:
                new = make(target)
            for i, word in enumerate(new):
                memory[at + i] = word
        return [memory.get(i, 0) for i in range(max(memory) + 1)] if memory else []


# ---- data space addresses of the I/O registers (8.5) ---------------------------------------------

PINB = Address(0x23)
DDRB = Address(0x24)
PORTB = Address(0x25)
PINC = Address(0x26)
DDRC = Address(0x27)
PORTC = Address(0x28)
PIND = Address(0x29)
DDRD = Address(0x2A)
PORTD = Address(0x2B)
TIFR0 = Address(0x35)
TIFR1 = Address(0x36)
TIFR2 = Address(0x37)
PCIFR = Address(0x3B)
EIFR = Address(0x3C)
EIMSK = Address(0x3D)
GPIOR0 = Address(0x3E)
EECR = Address(0x3F)
EEDR = Address(0x40)
EEARL = Address(0x41)
EEARH = Address(0x42)
GTCCR = Address(0x43)
TCCR0A = Address(0x44)
TCCR0B = Address(0x45)
TCNT0 = Address(0x46)
OCR0A = Address(0x47)
OCR0B = Address(0x48)
GPIOR1 = Address(0x4A)
GPIOR2 = Address(0x4B)
SPCR = Address(0x4C)
SPSR = Address(0x4D)
SPDR = Address(0x4E)
ACSR = Address(0x50)
SMCR = Address(0x53)
MCUSR = Address(0x54)
MCUCR = Address(0x55)
SPMCSR = Address(0x57)
SPL = Address(0x5D)
SPH = Address(0x5E)
SREG = Address(0x5F)
WDTCSR = Address(0x60)
CLKPR = Address(0x61)
PRR = Address(0x64)
OSCCAL = Address(0x66)
PCICR = Address(0x68)
EICRA = Address(0x69)
PCMSK0 = Address(0x6B)
PCMSK1 = Address(0x6C)
PCMSK2 = Address(0x6D)
TIMSK0 = Address(0x6E)
TIMSK1 = Address(0x6F)
TIMSK2 = Address(0x70)
ADCL = Address(0x78)
ADCH = Address(0x79)
ADCSRA = Address(0x7A)
ADCSRB = Address(0x7B)
ADMUX = Address(0x7C)
DIDR0 = Address(0x7E)
DIDR1 = Address(0x7F)
TCCR1A = Address(0x80)
TCCR1B = Address(0x81)
TCCR1C = Address(0x82)
TCNT1L = Address(0x84)
TCNT1H = Address(0x85)
ICR1L = Address(0x86)
ICR1H = Address(0x87)
OCR1AL = Address(0x88)
OCR1AH = Address(0x89)
OCR1BL = Address(0x8A)
OCR1BH = Address(0x8B)
TCCR2A = Address(0xB0)
TCCR2B = Address(0xB1)
TCNT2 = Address(0xB2)
OCR2A = Address(0xB3)
OCR2B = Address(0xB4)
ASSR = Address(0xB6)
TWBR = Address(0xB8)
TWSR = Address(0xB9)
TWAR = Address(0xBA)
TWDR = Address(0xBB)
TWCR = Address(0xBC)
TWAMR = Address(0xBD)
UCSR0A = Address(0xC0)
UCSR0B = Address(0xC1)
UCSR0C = Address(0xC2)
UBRR0L = Address(0xC4)
UBRR0H = Address(0xC5)
UDR0 = Address(0xC6)

REGISTERS = {name: value for name, value in list(globals().items()) if isinstance(value, Address)}
