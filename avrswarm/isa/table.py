"""The instruction table of the ATmega328P (AVRe+ core, 16-bit PC class).

One row per instruction as a disassembler names it. Pattern letters: ``d`` destination register,
``r`` source register, ``K`` immediate, ``k`` branch offset or address, ``q`` displacement, ``A``
I/O address, ``b`` bit number. A row with a second word says ``words=2``. Cycles are those of an
undisturbed instruction that neither branches nor skips.

Facts: AVR Instruction Set Manual; timing reference sections 1.1 to 1.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cache

import numpy as np
from numpy.typing import NDArray


class Op(IntEnum):
    """What the core does for one flash word; the dense number that its dispatch switches on."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return count

    UNDEFINED = auto()
    ERASED = auto()
    BREAKPOINT = auto()
    NOP = auto()
    MOVW = auto()
    MULS = auto()
    MULSU = auto()
    FMUL = auto()
    FMULS = auto()
    FMULSU = auto()
    CPC = auto()
    SBC = auto()
    ADD = auto()
    CPSE = auto()
    CP = auto()
    SUB = auto()
    ADC = auto()
    AND = auto()
    EOR = auto()
    OR = auto()
    MOV = auto()
    CPI = auto()
    SBCI = auto()
    SUBI = auto()
    ORI = auto()
    ANDI = auto()
    LDD_Z = auto()
    LDD_Y = auto()
    STD_Z = auto()
    STD_Y = auto()
    LDS = auto()
    LD_Z_INC = auto()
    LD_DEC_Z = auto()
    LPM_Z = auto()
    LPM_Z_INC = auto()
    LD_Y_INC = auto()
    LD_DEC_Y = auto()
    LD_X = auto()
    LD_X_INC = auto()
    LD_DEC_X = auto()
    POP = auto()
    STS = auto()
    ST_Z_INC = auto()
    ST_DEC_Z = auto()
    ST_Y_INC = auto()
    ST_DEC_Y = auto()
    ST_X = auto()
    ST_X_INC = auto()
    ST_DEC_X = auto()
    PUSH = auto()
    COM = auto()
    NEG = auto()
    SWAP = auto()
    INC = auto()
    ASR = auto()
    LSR = auto()
    ROR = auto()
    DEC = auto()
    SEC = auto()
    SEZ = auto()
    SEN = auto()
    SEV = auto()
    SES = auto()
    SEH = auto()
    SET = auto()
    SEI = auto()
    CLC = auto()
    CLZ = auto()
    CLN = auto()
    CLV = auto()
    CLS = auto()
    CLH = auto()
    CLT = auto()
    CLI = auto()
    IJMP = auto()
    ICALL = auto()
    RET = auto()
    RETI = auto()
    SLEEP = auto()
    BREAK = auto()
    WDR = auto()
    LPM_R0 = auto()
    SPM = auto()
    JMP = auto()
    CALL = auto()
    ADIW = auto()
    SBIW = auto()
    CBI = auto()
    SBIC = auto()
    SBI = auto()
    SBIS = auto()
    MUL = auto()
    IN = auto()
    IN_SREG = auto()
    IN_SPL = auto()
    IN_SPH = auto()
    OUT = auto()
    OUT_SREG = auto()
    OUT_SPL = auto()
    OUT_SPH = auto()
    RJMP = auto()
    RJMP_POLL = auto()  # rjmp that closes a loop which waits for a bit of an I/O register
    RCALL = auto()
    LDI = auto()
    BRCS = auto()
    BRCS_COUNT = auto()  # brcs that closes a loop which waits for a timer's count; a = its words
    BREQ = auto()
    BRMI = auto()
    BRVS = auto()
    BRLT = auto()
    BRHS = auto()
    BRTS = auto()
    BRIE = auto()
    BRCC = auto()
    BRCC_COUNT = auto()
    BRNE = auto()
    BRNE_COUNT = auto()
    BRNE_DELAY_DEC = auto()  # brne that closes `dec r ; brne`, a counted delay loop
    BRNE_DELAY_SBIW = auto()  # `sbiw r, 1 ; brne`
    BRNE_DELAY_SUBI = auto()  # `subi r, 1 ; sbci r, 0 ; ... ; brne`, operand a = bytes counted
    BRPL = auto()
    BRVC = auto()
    BRGE = auto()
    BRHC = auto()
    BRTC = auto()
    BRID = auto()
    BLD = auto()
    BST = auto()
    SBRC = auto()
    SBRS = auto()


class Form(IntEnum):
    """How the operand fields of a word become the numbers ``a`` and ``b`` of a decoded one."""

    NONE = 0
    RD5_RR5 = 1  # a = d, b = r
    RD4_K8 = 2  # a = 16..31, b = K
    RD5 = 3  # a = d
    PAIR_PAIR = 4  # MOVW: a, b even register numbers
    RD4_RR4 = 5  # MULS: both 16..31
    RD3_RR3 = 6  # MULSU, FMUL*: both 16..23
    PAIR_K6 = 7  # ADIW, SBIW: a = 24, 26, 28 or 30, b = K
    RD5_Q6 = 8  # LDD, STD: a = register, b = displacement
    RD5_K16 = 9  # LDS, STS: a = register, b = data address (second word)
    RD5_A6 = 10  # IN, OUT: a = register, b = data address of the I/O register
    A5_BIT = 11  # SBI, CBI: a = bit mask, b = data address of the I/O register
    A5_BIT_SKIP = 12  # SBIC, SBIS: the same, plus skip length in bit 15 of b
    RD5_BIT = 13  # BLD, BST: a = register, b = bit number
    RD5_BIT_SKIP = 14  # SBRC, SBRS: a = register, b = bit number, skip length in bit 15
    RD5_RR5_SKIP = 15  # CPSE: a = d, b = r, skip length in bit 15
    BRANCH = 16  # b = target word address
    RELATIVE = 17  # RJMP, RCALL: b = target word address
    ABSOLUTE = 18  # JMP, CALL: b = target word address (second word, 14 bits count)


@dataclass(frozen=True)
class Row:
    """One instruction: name, bit pattern, operand form, length, cycles and flags it writes."""

    name: str
    pattern: str
    op: Op
    form: Form
    cycles: int
    flags: str = ""
    words: int = 1
    text: str = ""

    @property
    def mask(self) -> int:
        """Return the bits of the word that this instruction fixes."""
        return int("".join("1" if bit in "01" else "0" for bit in self._bits), 2)

    @property
    def value(self) -> int:
        """Return what the fixed bits must be."""
        return int("".join(bit if bit in "01" else "0" for bit in self._bits), 2)

    @property
    def _bits(self) -> str:
        return self.pattern.replace(" ", "")


# fmt: off
TABLE: tuple[Row, ...] = (
    Row("nop",    "0000 0000 0000 0000", Op.NOP,       Form.NONE,      1),
    Row("movw",   "0000 0001 dddd rrrr", Op.MOVW,      Form.PAIR_PAIR, 1),
    Row("muls",   "0000 0010 dddd rrrr", Op.MULS,      Form.RD4_RR4,   2, "ZC"),
    Row("mulsu",  "0000 0011 0ddd 0rrr", Op.MULSU,     Form.RD3_RR3,   2, "ZC"),
    Row("fmul",   "0000 0011 0ddd 1rrr", Op.FMUL,      Form.RD3_RR3,   2, "ZC"),
    Row("fmuls",  "0000 0011 1ddd 0rrr", Op.FMULS,     Form.RD3_RR3,   2, "ZC"),
    Row("fmulsu", "0000 0011 1ddd 1rrr", Op.FMULSU,    Form.RD3_RR3,   2, "ZC"),
    Row("cpc",    "0000 01rd dddd rrrr", Op.CPC,       Form.RD5_RR5,   1, "HSVNZC"),
    Row("sbc",    "0000 10rd dddd rrrr", Op.SBC,       Form.RD5_RR5,   1, "HSVNZC"),
    Row("add",    "0000 11rd dddd rrrr", Op.ADD,       Form.RD5_RR5,   1, "HSVNZC"),
    Row("cpse",   "0001 00rd dddd rrrr", Op.CPSE,      Form.RD5_RR5_SKIP, 1),
    Row("cp",     "0001 01rd dddd rrrr", Op.CP,        Form.RD5_RR5,   1, "HSVNZC"),
    Row("sub",    "0001 10rd dddd rrrr", Op.SUB,       Form.RD5_RR5,   1, "HSVNZC"),
    Row("adc",    "0001 11rd dddd rrrr", Op.ADC,       Form.RD5_RR5,   1, "HSVNZC"),
    Row("and",    "0010 00rd dddd rrrr", Op.AND,       Form.RD5_RR5,   1, "SVNZ"),
    Row("eor",    "0010 01rd dddd rrrr", Op.EOR,       Form.RD5_RR5,   1, "SVNZ"),
    Row("or",     "0010 10rd dddd rrrr", Op.OR,        Form.RD5_RR5,   1, "SVNZ"),
    Row("mov",    "0010 11rd dddd rrrr", Op.MOV,       Form.RD5_RR5,   1),
    Row("cpi",    "0011 KKKK dddd KKKK", Op.CPI,       Form.RD4_K8,    1, "HSVNZC"),
    Row("sbci",   "0100 KKKK dddd KKKK", Op.SBCI,      Form.RD4_K8,    1, "HSVNZC"),
    Row("subi",   "0101 KKKK dddd KKKK", Op.SUBI,      Form.RD4_K8,    1, "HSVNZC"),
    Row("ori",    "0110 KKKK dddd KKKK", Op.ORI,       Form.RD4_K8,    1, "SVNZ"),
    Row("andi",   "0111 KKKK dddd KKKK", Op.ANDI,      Form.RD4_K8,    1, "SVNZ"),
    Row("ldd",    "10q0 qq0d dddd 0qqq", Op.LDD_Z,     Form.RD5_Q6,    2, text="a, Z+q"),
    Row("ldd",    "10q0 qq0d dddd 1qqq", Op.LDD_Y,     Form.RD5_Q6,    2, text="a, Y+q"),
    Row("std",    "10q0 qq1d dddd 0qqq", Op.STD_Z,     Form.RD5_Q6,    2, text="Z+q, a"),
    Row("std",    "10q0 qq1d dddd 1qqq", Op.STD_Y,     Form.RD5_Q6,    2, text="Y+q, a"),
    Row("lds",    "1001 000d dddd 0000", Op.LDS,       Form.RD5_K16,   2, words=2),
    Row("ld",     "1001 000d dddd 0001", Op.LD_Z_INC,  Form.RD5,       2, text="a, Z+"),
    Row("ld",     "1001 000d dddd 0010", Op.LD_DEC_Z,  Form.RD5,       2, text="a, -Z"),
    Row("lpm",    "1001 000d dddd 0100", Op.LPM_Z,     Form.RD5,       3, text="a, Z"),
    Row("lpm",    "1001 000d dddd 0101", Op.LPM_Z_INC, Form.RD5,       3, text="a, Z+"),
    Row("ld",     "1001 000d dddd 1001", Op.LD_Y_INC,  Form.RD5,       2, text="a, Y+"),
    Row("ld",     "1001 000d dddd 1010", Op.LD_DEC_Y,  Form.RD5,       2, text="a, -Y"),
    Row("ld",     "1001 000d dddd 1100", Op.LD_X,      Form.RD5,       2, text="a, X"),
    Row("ld",     "1001 000d dddd 1101", Op.LD_X_INC,  Form.RD5,       2, text="a, X+"),
    Row("ld",     "1001 000d dddd 1110", Op.LD_DEC_X,  Form.RD5,       2, text="a, -X"),
    Row("pop",    "1001 000d dddd 1111", Op.POP,       Form.RD5,       2),
    Row("sts",    "1001 001d dddd 0000", Op.STS,       Form.RD5_K16,   2, words=2),
    Row("st",     "1001 001d dddd 0001", Op.ST_Z_INC,  Form.RD5,       2, text="Z+, a"),
    Row("st",     "1001 001d dddd 0010", Op.ST_DEC_Z,  Form.RD5,       2, text="-Z, a"),
    Row("st",     "1001 001d dddd 1001", Op.ST_Y_INC,  Form.RD5,       2, text="Y+, a"),
    Row("st",     "1001 001d dddd 1010", Op.ST_DEC_Y,  Form.RD5,       2, text="-Y, a"),
    Row("st",     "1001 001d dddd 1100", Op.ST_X,      Form.RD5,       2, text="X, a"),
    Row("st",     "1001 001d dddd 1101", Op.ST_X_INC,  Form.RD5,       2, text="X+, a"),
    Row("st",     "1001 001d dddd 1110", Op.ST_DEC_X,  Form.RD5,       2, text="-X, a"),
    Row("push",   "1001 001d dddd 1111", Op.PUSH,      Form.RD5,       2),
    Row("com",    "1001 010d dddd 0000", Op.COM,       Form.RD5,       1, "SVNZC"),
    Row("neg",    "1001 010d dddd 0001", Op.NEG,       Form.RD5,       1, "HSVNZC"),
    Row("swap",   "1001 010d dddd 0010", Op.SWAP,      Form.RD5,       1),
    Row("inc",    "1001 010d dddd 0011", Op.INC,       Form.RD5,       1, "SVNZ"),
    Row("asr",    "1001 010d dddd 0101", Op.ASR,       Form.RD5,       1, "SVNZC"),
    Row("lsr",    "1001 010d dddd 0110", Op.LSR,       Form.RD5,       1, "SVNZC"),
    Row("ror",    "1001 010d dddd 0111", Op.ROR,       Form.RD5,       1, "SVNZC"),
    Row("dec",    "1001 010d dddd 1010", Op.DEC,       Form.RD5,       1, "SVNZ"),
    Row("sec",    "1001 0100 0000 1000", Op.SEC,       Form.NONE,      1, "C"),
    Row("sez",    "1001 0100 0001 1000", Op.SEZ,       Form.NONE,      1, "Z"),
    Row("sen",    "1001 0100 0010 1000", Op.SEN,       Form.NONE,      1, "N"),
    Row("sev",    "1001 0100 0011 1000", Op.SEV,       Form.NONE,      1, "V"),
    Row("ses",    "1001 0100 0100 1000", Op.SES,       Form.NONE,      1, "S"),
    Row("seh",    "1001 0100 0101 1000", Op.SEH,       Form.NONE,      1, "H"),
    Row("set",    "1001 0100 0110 1000", Op.SET,       Form.NONE,      1, "T"),
    Row("sei",    "1001 0100 0111 1000", Op.SEI,       Form.NONE,      1, "I"),
    Row("clc",    "1001 0100 1000 1000", Op.CLC,       Form.NONE,      1, "C"),
    Row("clz",    "1001 0100 1001 1000", Op.CLZ,       Form.NONE,      1, "Z"),
    Row("cln",    "1001 0100 1010 1000", Op.CLN,       Form.NONE,      1, "N"),
    Row("clv",    "1001 0100 1011 1000", Op.CLV,       Form.NONE,      1, "V"),
    Row("cls",    "1001 0100 1100 1000", Op.CLS,       Form.NONE,      1, "S"),
    Row("clh",    "1001 0100 1101 1000", Op.CLH,       Form.NONE,      1, "H"),
    Row("clt",    "1001 0100 1110 1000", Op.CLT,       Form.NONE,      1, "T"),
    Row("cli",    "1001 0100 1111 1000", Op.CLI,       Form.NONE,      1, "I"),
    Row("ijmp",   "1001 0100 0000 1001", Op.IJMP,      Form.NONE,      2),
    Row("ret",    "1001 0101 0000 1000", Op.RET,       Form.NONE,      4),
    Row("icall",  "1001 0101 0000 1001", Op.ICALL,     Form.NONE,      3),
    Row("reti",   "1001 0101 0001 1000", Op.RETI,      Form.NONE,      4, "I"),
    Row("sleep",  "1001 0101 1000 1000", Op.SLEEP,     Form.NONE,      1),
    Row("break",  "1001 0101 1001 1000", Op.BREAK,     Form.NONE,      1),
    Row("wdr",    "1001 0101 1010 1000", Op.WDR,       Form.NONE,      1),
    Row("lpm",    "1001 0101 1100 1000", Op.LPM_R0,    Form.NONE,      3),
    Row("spm",    "1001 0101 1110 1000", Op.SPM,       Form.NONE,      1),
    Row("jmp",    "1001 010k kkkk 110k", Op.JMP,       Form.ABSOLUTE,  3, words=2),
    Row("call",   "1001 010k kkkk 111k", Op.CALL,      Form.ABSOLUTE,  4, words=2),
    Row("adiw",   "1001 0110 KKdd KKKK", Op.ADIW,      Form.PAIR_K6,   2, "SVNZC"),
    Row("sbiw",   "1001 0111 KKdd KKKK", Op.SBIW,      Form.PAIR_K6,   2, "SVNZC"),
    Row("cbi",    "1001 1000 AAAA Abbb", Op.CBI,       Form.A5_BIT,    2),
    Row("sbic",   "1001 1001 AAAA Abbb", Op.SBIC,      Form.A5_BIT_SKIP, 1),
    Row("sbi",    "1001 1010 AAAA Abbb", Op.SBI,       Form.A5_BIT,    2),
    Row("sbis",   "1001 1011 AAAA Abbb", Op.SBIS,      Form.A5_BIT_SKIP, 1),
    Row("mul",    "1001 11rd dddd rrrr", Op.MUL,       Form.RD5_RR5,   2, "ZC"),
    Row("in",     "1011 0AAd dddd AAAA", Op.IN,        Form.RD5_A6,    1),
    Row("out",    "1011 1AAd dddd AAAA", Op.OUT,       Form.RD5_A6,    1),
    Row("rjmp",   "1100 kkkk kkkk kkkk", Op.RJMP,      Form.RELATIVE,  2),
    Row("rcall",  "1101 kkkk kkkk kkkk", Op.RCALL,     Form.RELATIVE,  3),
    Row("ldi",    "1110 KKKK dddd KKKK", Op.LDI,       Form.RD4_K8,    1),
    Row("brcs",   "1111 00kk kkkk k000", Op.BRCS,      Form.BRANCH,    1),
    Row("breq",   "1111 00kk kkkk k001", Op.BREQ,      Form.BRANCH,    1),
    Row("brmi",   "1111 00kk kkkk k010", Op.BRMI,      Form.BRANCH,    1),
    Row("brvs",   "1111 00kk kkkk k011", Op.BRVS,      Form.BRANCH,    1),
    Row("brlt",   "1111 00kk kkkk k100", Op.BRLT,      Form.BRANCH,    1),
    Row("brhs",   "1111 00kk kkkk k101", Op.BRHS,      Form.BRANCH,    1),
    Row("brts",   "1111 00kk kkkk k110", Op.BRTS,      Form.BRANCH,    1),
    Row("brie",   "1111 00kk kkkk k111", Op.BRIE,      Form.BRANCH,    1),
    Row("brcc",   "1111 01kk kkkk k000", Op.BRCC,      Form.BRANCH,    1),
    Row("brne",   "1111 01kk kkkk k001", Op.BRNE,      Form.BRANCH,    1),
    Row("brpl",   "1111 01kk kkkk k010", Op.BRPL,      Form.BRANCH,    1),
    Row("brvc",   "1111 01kk kkkk k011", Op.BRVC,      Form.BRANCH,    1),
    Row("brge",   "1111 01kk kkkk k100", Op.BRGE,      Form.BRANCH,    1),
    Row("brhc",   "1111 01kk kkkk k101", Op.BRHC,      Form.BRANCH,    1),
    Row("brtc",   "1111 01kk kkkk k110", Op.BRTC,      Form.BRANCH,    1),
    Row("brid",   "1111 01kk kkkk k111", Op.BRID,      Form.BRANCH,    1),
    Row("bld",    "1111 100d dddd 0bbb", Op.BLD,       Form.RD5_BIT,   1),
    Row("bst",    "1111 101d dddd 0bbb", Op.BST,       Form.RD5_BIT,   1, "T"),
    Row("sbrc",   "1111 110d dddd 0bbb", Op.SBRC,      Form.RD5_BIT_SKIP, 1),
    Row("sbrs",   "1111 111d dddd 0bbb", Op.SBRS,      Form.RD5_BIT_SKIP, 1),
)
# fmt: on

UNKNOWN = 255
"""Row number of a word that is no instruction of this core."""

ERASED_WORD = 0xFFFF
"""Erased flash. Silicon is widely believed to run it like ``sbrs r31, 7`` (timing reference 1.4,
Kilobot quirk Q1); the core does the same and reports it."""


@cache
def row_of_word() -> NDArray[np.uint8]:
    """Return, for each of the 65 536 words, the number of its row in ``TABLE`` or ``UNKNOWN``."""
    words = np.arange(0x10000, dtype=np.uint32)
    rows = np.full(0x10000, UNKNOWN, dtype=np.uint8)
    for number, row in enumerate(TABLE):
        matches = (words & row.mask) == row.value
        if (rows[matches] != UNKNOWN).any():
            raise AssertionError(f"pattern of {row.name} overlaps another row")
        rows[matches] = number
    rows.flags.writeable = False
    return rows
