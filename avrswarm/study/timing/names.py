"""Which function does an address belong to? Names from symbols, or from where calls lead."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.vectors import Vector
from avrswarm.isa.decode import FLASH_WORDS, decode_image
from avrswarm.isa.table import Op
from avrswarm.program import Kind, Program, Symbols
from avrswarm.program.space import Space
from avrswarm.study.firmware import vectors_in_use

UNKNOWN = "(already running)"


class Names:
    """Functions of a program, by the word address of their first instruction."""

    def __init__(self, program: Program) -> None:
        self.program = program
        names = _from_symbols(program.symbols)
        for start in _from_code(program):
            name = program.symbols.starting_at(2 * start)
            if name is not None or not program.symbols:
                names.setdefault(start, name or f"{2 * start:#06x}")
        self._names = dict(sorted(names.items()))
        self._starts = list(self._names)

    @property
    def starts(self) -> list[int]:
        """Word addresses at which functions begin, ascending."""
        return list(self._starts)

    def function_at(self, word: int) -> int:
        """Return the start of the function that a word address belongs to; -1 if there is none."""
        place = bisect_right(self._starts, word) - 1
        return self._starts[place] if place >= 0 else -1

    def name(self, word: int) -> str:
        """Return what a word address is called: ``delay``, ``delay+0x4``, or ``0x0310``."""
        if word < 0:
            return UNKNOWN
        start = self.function_at(word)
        if start < 0:
            return f"{2 * word:#06x}"
        name = self._names[start]
        return name if word == start else f"{name}+{2 * (word - start):#x}"

    def line(self, word: int) -> tuple[str, int] | None:
        """Return file and line of an instruction, where the program tells."""
        found = self.program.lines.at(2 * word)
        return None if found is None else (found.file, found.line)

    def vector(self, number: int) -> str:
        """Return the datasheet's name of an interrupt."""
        return Vector(number).name


def _from_symbols(symbols: Symbols) -> dict[int, str]:
    """Return functions, and global labels of assembler code that are in none of them."""
    functions = [s for s in symbols if s.space == Space.FLASH and s.kind == Kind.FUNCTION]
    covered = np.zeros(2 * FLASH_WORDS, dtype=np.bool_)
    names = {}
    for symbol in functions:
        covered[symbol.address : symbol.address + symbol.size] = True
    for symbol in symbols:
        is_label = symbol.kind == Kind.LABEL and symbol.is_global and symbol.space == Space.FLASH
        inside = symbol.address < len(covered)
        if inside and (symbol in functions or (is_label and not covered[symbol.address])):
            name = symbols.starting_at(symbol.address)
            names[symbol.address // 2] = name or symbol.name
    return names


def _from_code(program: Program) -> set[int]:
    """Return where the calls and vectors of a program lead.

    Where symbols do not tell functions from other labels, this does; without symbols it is all.
    """
    code: NDArray[np.uint32] = np.zeros(FLASH_WORDS, np.uint32)
    decode_image(program.flash, code)
    starts = {vector.handler // 2 for vector in vectors_in_use(program)}
    if program.flash_used:
        starts.add(program.flash_used[0].start // 2)
    for word in np.flatnonzero(program.programmed).tolist():
        packed = int(code[word])
        target = packed >> 16
        if packed & 0xFF == Op.CALL or (packed & 0xFF == Op.RCALL and target != word + 1):
            starts.add(target)
    return starts
