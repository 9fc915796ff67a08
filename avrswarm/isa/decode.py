"""Flash words -> packed instructions, once per distinct flash image.

A packed instruction is one 32-bit number: operation in bits 0-7, operand ``a`` in bits 8-15,
operand ``b`` in bits 16-31. What can be decided from the flash alone is decided here: branch
targets as absolute word addresses, register numbers, data-space addresses of I/O registers, and
whether a skip jumps over one word or two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.isa.table import ERASED_WORD, TABLE, UNKNOWN, Form, Op, row_of_word
from avrswarm.jit import entry, kernel

FLASH_WORDS = 0x4000
PC_MASK = FLASH_WORDS - 1
SKIP_TWO = 0x8000
"""Bit of operand ``b`` that tells a skip to jump over a two-word instruction."""

_IO_BASE = 0x20  # data-space address of I/O register 0
TCNT0, TCNT1L, TCNT2 = 0x46, 0x84, 0xB2
"""Data-space addresses of the timers' counts, which loops wait for."""

# The table's columns as arrays: numba freezes them into the compiled decoder.
_ROW_OF_WORD = row_of_word()
_OP_OF_ROW = np.array([row.op for row in TABLE], dtype=np.int64)
_FORM_OF_ROW = np.array([row.form for row in TABLE], dtype=np.int64)
_WORDS_OF_ROW = np.array([row.words for row in TABLE], dtype=np.int64)


@kernel
def _is_two_words(word: int) -> bool:
    row = int(_ROW_OF_WORD[word])
    return row != UNKNOWN and int(_WORDS_OF_ROW[row]) == 2


@kernel
def _pack(op: int, a: int, b: int) -> int:
    return op | a << 8 | b << 16


@kernel
def decode_word(address: int, word: int, following: int) -> int:
    """Pack the instruction ``word`` at word address ``address``; ``following`` comes after it."""
    row = int(_ROW_OF_WORD[word])
    if row == UNKNOWN:
        if word == ERASED_WORD:
            skip = SKIP_TWO if _is_two_words(following) else 0
            return _pack(Op.ERASED, 31, 7 | skip)
        return _pack(Op.UNDEFINED, 0, 0)
    op = int(_OP_OF_ROW[row])
    d5 = (word >> 4) & 0x1F
    r5 = (word & 0x0F) | ((word >> 5) & 0x10)
    skip = SKIP_TWO if _is_two_words(following) else 0
    match int(_FORM_OF_ROW[row]):
        case Form.RD5_RR5:
            return _pack(op, d5, r5)
        case Form.RD5_RR5_SKIP:
            return _pack(op, d5, r5 | skip)
        case Form.RD4_K8:
            return _pack(op, 16 + ((word >> 4) & 15), (word & 15) | ((word >> 4) & 0xF0))
        case Form.RD5:
            return _pack(op, d5, 0)
        case Form.PAIR_PAIR:
            return _pack(op, ((word >> 4) & 15) * 2, (word & 15) * 2)
        case Form.RD4_RR4:
            return _pack(op, 16 + ((word >> 4) & 15), 16 + (word & 15))
        case Form.RD3_RR3:
            return _pack(op, 16 + ((word >> 4) & 7), 16 + (word & 7))
        case Form.PAIR_K6:
            return _pack(op, 24 + 2 * ((word >> 4) & 3), (word & 15) | ((word >> 2) & 0x30))
        case Form.RD5_Q6:
            return _pack(op, d5, (word & 7) | ((word >> 7) & 0x18) | ((word >> 8) & 0x20))
        case Form.RD5_K16:
            return _pack(op, d5, following)
        case Form.RD5_A6:
            io = (word & 15) | ((word >> 5) & 0x30)
            if io == 0x3F:
                op = Op.IN_SREG if op == Op.IN else Op.OUT_SREG
            elif io == 0x3D:
                op = Op.IN_SPL if op == Op.IN else Op.OUT_SPL
            elif io == 0x3E:
                op = Op.IN_SPH if op == Op.IN else Op.OUT_SPH
            return _pack(op, d5, _IO_BASE + io)
        case Form.A5_BIT:
            return _pack(op, 1 << (word & 7), _IO_BASE + ((word >> 3) & 31))
        case Form.A5_BIT_SKIP:
            return _pack(op, 1 << (word & 7), _IO_BASE + ((word >> 3) & 31) | skip)
        case Form.RD5_BIT:
            return _pack(op, d5, word & 7)
        case Form.RD5_BIT_SKIP:
            return _pack(op, d5, (word & 7) | skip)
        case Form.BRANCH:
            offset = (word >> 3) & 0x7F
            return _pack(op, 0, (address + 1 + offset - ((offset & 0x40) << 1)) & PC_MASK)
        case Form.RELATIVE:
            offset = word & 0xFFF
            return _pack(op, 0, (address + 1 + offset - ((offset & 0x800) << 1)) & PC_MASK)
        case Form.ABSOLUTE:
            return _pack(op, 0, following & PC_MASK)
        case _:
            return _pack(op, 0, 0)


@kernel
def decode_range(
    flash: NDArray[np.uint16], code: NDArray[np.uint32], first: int, count: int
) -> None:
    """Decode ``count`` words from ``first`` on, and those around whose meaning depends on them."""
    for address in range(first - 1, first + count):
        here = address & PC_MASK
        code[here] = decode_word(here, int(flash[here]), int(flash[(here + 1) & PC_MASK]))
    for address in range(first, first + count + _LONGEST_DELAY_LOOP):
        _mark_delay_loop(code, address & PC_MASK)
        _mark_poll_loop(code, address & PC_MASK)
        _mark_count_loop(code, address & PC_MASK)


_LONGEST_DELAY_LOOP = 7  # words: lds, lds, cp, cpc, brcs; or subi, three times sbci, brne


@kernel
def _mark_delay_loop(code: NDArray[np.uint32], here: int) -> None:
    """Turn the branch that closes a counted delay loop into one the core has a closed form for."""
    branch = int(code[here]) & 0xFFFFFFFF
    op = branch & 0xFF
    if op == Op.BRNE_DELAY_DEC or op == Op.BRNE_DELAY_SBIW or op == Op.BRNE_DELAY_SUBI:
        op = Op.BRNE.value  # the words before it may have changed
    elif op != Op.BRNE:
        return
    target = branch >> 16
    length = (here - target) & PC_MASK
    counted = 0
    if length == 1:
        word = int(code[target]) & 0xFFFFFFFF
        if word & 0xFF == Op.DEC:
            op = Op.BRNE_DELAY_DEC.value
        elif word & 0xFF == Op.SBIW and word >> 16 == 1:
            op = Op.BRNE_DELAY_SBIW.value
    elif 2 <= length <= 4 and _counts_down(code, target, length):
        op = Op.BRNE_DELAY_SUBI.value
        counted = length
    code[here] = _pack(op, counted, target)


@kernel
def _counts_down(code: NDArray[np.uint32], first: int, count: int) -> bool:
    """Tell whether ``count`` words are ``subi r, 1`` and then ``sbci s, 0``, no register twice."""
    seen = 0
    for number in range(count):
        word = int(code[(first + number) & PC_MASK]) & 0xFFFFFFFF
        register = 1 << (word >> 8 & 0xFF)
        wanted = Op.SUBI if number == 0 else Op.SBCI
        if word & 0xFF != wanted or word >> 16 != (1 if number == 0 else 0) or seen & register:
            return False
        seen |= register
    return True


@kernel
def _mark_poll_loop(code: NDArray[np.uint32], here: int) -> None:
    """Mark an RJMP that closes a wait for a bit: behind ``sbic``, ``in, sbrc`` or ``lds, sbrc``."""
    jump = int(code[here]) & 0xFFFFFFFF
    op = jump & 0xFF
    if op != Op.RJMP and op != Op.RJMP_POLL:
        return
    target = jump >> 16
    first = int(code[target]) & 0xFFFFFFFF
    test = int(code[(here - 1) & PC_MASK]) & 0xFFFFFFFF
    reads = first & 0xFF
    tests = test & 0xFF
    polls = False
    match (here - target) & PC_MASK:
        case 1:
            polls = reads == Op.SBIC or reads == Op.SBIS
        case 2 | 3:
            words = 2 if reads == Op.LDS else 1
            same_register = first >> 8 & 0xFF == test >> 8 & 0xFF
            polls = (
                (reads == Op.IN or reads == Op.LDS)
                and (here - target) & PC_MASK == words + 1
                and (tests == Op.SBRC or tests == Op.SBRS)
                and same_register
            )
        case _:
            pass
    code[here] = _pack(Op.RJMP_POLL if polls else Op.RJMP, 0, target)


@kernel
def _mark_count_loop(code: NDArray[np.uint32], here: int) -> None:
    """Mark a branch that closes a wait for a timer's count.

    Before it: ``in r, TCNT0`` (or TCNT2) and ``cpi r`` or ``cp r``; or ``lds`` of TCNT1L and of
    TCNT1H, a comparison of the low and ``cpc`` of the high byte.
    """
    branch = int(code[here]) & 0xFFFFFFFF
    op = branch & 0xFF
    plain = op
    if op == Op.BRCS_COUNT:
        plain = Op.BRCS.value
    elif op == Op.BRCC_COUNT:
        plain = Op.BRCC.value
    elif op == Op.BRNE_COUNT:
        plain = Op.BRNE.value
    elif op != Op.BRCS and op != Op.BRCC and op != Op.BRNE:
        return
    target = branch >> 16
    words = (here - target) & PC_MASK
    marked = plain
    if 2 <= words <= 6 and _compares_count(code, target, here):
        if plain == Op.BRCS:
            marked = Op.BRCS_COUNT.value
        elif plain == Op.BRCC:
            marked = Op.BRCC_COUNT.value
        else:
            marked = Op.BRNE_COUNT.value
    code[here] = _pack(marked, 0, target)


@kernel
def _compares_count(code: NDArray[np.uint32], first: int, end: int) -> bool:
    """Tell whether the words from ``first`` up to ``end`` read a timer's count and compare it."""
    low = int(code[first]) & 0xFFFFFFFF
    place = (first + (2 if low & 0xFF == Op.LDS else 1)) & PC_MASK
    if low & 0xFF != Op.IN and low & 0xFF != Op.LDS:
        return False
    source = low >> 16
    register = low >> 8 & 0xFF
    high_register = -1
    if source == TCNT1L:
        high = int(code[place]) & 0xFFFFFFFF
        if high & 0xFF != Op.LDS or high >> 16 != TCNT1L + 1:
            return False
        high_register = high >> 8 & 0xFF
        place = (place + 2) & PC_MASK
    elif source != TCNT0 and source != TCNT2:
        return False
    compare = int(code[place]) & 0xFFFFFFFF
    if compare >> 8 & 0xFF != register or (compare & 0xFF != Op.CPI and compare & 0xFF != Op.CP):
        return False
    if compare & 0xFF == Op.CP and (compare >> 16 == register or compare >> 16 == high_register):
        return False
    place = (place + 1) & PC_MASK
    if high_register >= 0:
        carried = int(code[place]) & 0xFFFFFFFF
        other = carried >> 16
        if carried & 0xFF != Op.CPC or carried >> 8 & 0xFF != high_register:
            return False
        if high_register == register or other == register or other == high_register:
            return False
        place = (place + 1) & PC_MASK
    return place == end


@entry
def decode_image(flash: NDArray[np.uint16], code: NDArray[np.uint32]) -> None:
    """Decode a whole flash image into ``code``."""
    decode_range(flash, code, 0, FLASH_WORDS)
