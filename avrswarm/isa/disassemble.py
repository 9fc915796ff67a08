"""Flash words -> text, driven by the instruction table and worded as avr-objdump words it."""

from __future__ import annotations

from collections.abc import Iterator

from avrswarm.isa.decode import FLASH_WORDS, PC_MASK
from avrswarm.isa.table import TABLE, UNKNOWN, Form, Op, Row, row_of_word
from avrswarm.program.image import Program

_JUMPS = (Form.BRANCH, Form.RELATIVE, Form.ABSOLUTE)


def instruction_words(word: int) -> int:
    """Return the length in words of the instruction that starts with ``word``."""
    row = int(row_of_word()[word])
    return 1 if row == UNKNOWN else TABLE[row].words


def disassemble_word(address: int, word: int, following: int) -> str:
    """Return the text of one instruction; ``address`` is its byte address."""
    number = int(row_of_word()[word])
    if number == UNKNOWN:
        return f".word\t0x{word:04x}\t; ????"
    row = TABLE[number]
    operands, comment = _operands(row, address, word, following)
    # binutils calls a displacement of zero plain ld or st
    name = row.name[:2] if row.form == Form.RD5_Q6 and "+" not in operands else row.name
    text = f"{name}\t{operands}" if operands else name
    return f"{text}\t; {comment}" if comment else text


def _operands(row: Row, address: int, word: int, following: int) -> tuple[str, str]:
    d5 = (word >> 4) & 0x1F
    r5 = (word & 0x0F) | ((word >> 5) & 0x10)
    d4 = 16 + ((word >> 4) & 15)
    k8 = (word & 15) | ((word >> 4) & 0xF0)
    match row.form:
        case Form.RD5_RR5 | Form.RD5_RR5_SKIP:
            return f"r{d5}, r{r5}", ""
        case Form.RD4_K8:
            return f"r{d4}, 0x{k8:02X}", str(k8)
        case Form.RD5:
            return row.text.replace("a", f"r{d5}") if row.text else f"r{d5}", ""
        case Form.PAIR_PAIR:
            return f"r{((word >> 4) & 15) * 2}, r{(word & 15) * 2}", ""
        case Form.RD4_RR4:
            return f"r{d4}, r{16 + (word & 15)}", ""
        case Form.RD3_RR3:
            return f"r{16 + ((word >> 4) & 7)}, r{16 + (word & 7)}", ""
        case Form.PAIR_K6:
            k6 = (word & 15) | ((word >> 2) & 0x30)
            return f"r{24 + 2 * ((word >> 4) & 3)}, 0x{k6:02x}", str(k6)
        case Form.RD5_Q6:
            return _displacement(row, d5, word)
        case Form.RD5_K16:
            place = f"0x{following:04X}"
            pair = (f"r{d5}", place) if row.op == Op.LDS else (place, f"r{d5}")
            return ", ".join(pair), f"0x{0x800000 + following:x}"
        case Form.RD5_A6:
            io = (word & 15) | ((word >> 5) & 0x30)
            pair = (f"r{d5}", f"0x{io:02x}") if row.op == Op.IN else (f"0x{io:02x}", f"r{d5}")
            return ", ".join(pair), str(io)
        case Form.A5_BIT | Form.A5_BIT_SKIP:
            io = (word >> 3) & 31
            return f"0x{io:02x}, {word & 7}", str(io)
        case Form.RD5_BIT | Form.RD5_BIT_SKIP:
            return f"r{d5}, {word & 7}", ""
        case Form.BRANCH:
            return _jump(address, (word >> 3) & 0x7F, 0x40)
        case Form.RELATIVE:
            return _jump(address, word & 0xFFF, 0x800)
        case Form.ABSOLUTE:
            target = (((word >> 4) & 0x1F) << 17 | (word & 1) << 16 | following) * 2
            # binutils prints the operand with C's %#x, which leaves zero bare
            return f"0x{target:x}" if target else "0", f"0x{target:x}"
        case _:
            return "", ""


def _displacement(row: Row, register: int, word: int) -> tuple[str, str]:
    q = (word & 7) | ((word >> 7) & 0x18) | ((word >> 8) & 0x20)
    text = row.text.replace("a", f"r{register}")
    if q == 0:
        return text.replace("+q", ""), ""
    return text.replace("+q", f"+{q}"), f"0x{q:02x}"


def _jump(address: int, offset: int, sign: int) -> tuple[str, str]:
    distance = 2 * (offset - ((offset & sign) << 1))
    target = (address + 2 + distance) & (2 * PC_MASK + 1)
    return f".{distance:+d}", f"0x{target:x}"


def disassemble(program: Program) -> Iterator[str]:
    """Yield a listing of the programmed parts of ``program``, with symbols as headings."""
    flash = program.flash
    address = 0
    while address < FLASH_WORDS:
        if not program.is_programmed(2 * address):
            address += 1
            continue
        symbol = program.symbols.starting_at(2 * address)
        if symbol is not None:
            yield ""
            yield f"{2 * address:08x} <{symbol}>:"
        word = int(flash[address])
        following = int(flash[(address + 1) & PC_MASK])
        words = instruction_words(word)
        raw = f"{word & 255:02x} {word >> 8:02x}"
        raw += f" {following & 255:02x} {following >> 8:02x}" if words == 2 else "      "
        text = disassemble_word(2 * address, word, following)
        row = int(row_of_word()[word])
        if row != UNKNOWN and TABLE[row].form in _JUMPS:
            target = int(text.rpartition("0x")[2], 16)
            if program.symbols.nearest(target) is not None:
                text += f" <{program.symbols.describe(target)}>"
        yield f"{2 * address:8x}:\t{raw}\t{text}"
        address += words
