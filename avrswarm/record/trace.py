"""Instruction traces: one line per executed instruction, with what it changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from avrswarm.isa.disassemble import disassemble_word
from avrswarm.program.symbols import Symbols

_FLAGS = "ITHSVNZC"
_REGISTERS = 32


class TraceWriter:
    """Writes an instruction trace; columns are cycle, byte address, place, instruction, changes."""

    def __init__(self, stream: TextIO, symbols: Symbols) -> None:
        self._stream = stream
        self._symbols = symbols

    def write(
        self,
        cycle: int,
        pc: int,
        words: tuple[int, int],
        before: Sequence[int],
        after: Sequence[int],
    ) -> None:
        """Write one instruction that started at ``cycle``.

        ``words`` are the flash words at byte address ``pc`` and after it; ``before`` and ``after``
        hold r0 to r31 and then SREG.
        """
        text = disassemble_word(pc, *words).partition(";")[0].strip().replace("\t", " ")
        line = f"{cycle:>12}  {pc:04x}  {self._symbols.describe(pc):<28}  {text:<20}"
        changed = [
            f"r{number}={after[number]:02x}"
            for number in range(_REGISTERS)
            if before[number] != after[number]
        ]
        if before[_REGISTERS] != after[_REGISTERS]:
            changed.append(f"SREG={flags_text(after[_REGISTERS])}")
        self._stream.write(f"{line}  {' '.join(changed)}".rstrip() + "\n")

    def write_interrupt(self, cycle: int, pc: int, handler: int) -> None:
        """Write that the instruction at ``pc`` was kept waiting by an interrupt."""
        place = self._symbols.describe(pc)
        target = self._symbols.describe(handler)
        self._stream.write(f"{cycle:>12}  {pc:04x}  {place:<28}  -- interrupt, to {target}\n")

    def write_rest(self, cycle: int, pc: int, why: str) -> None:
        """Write that nothing is executed from ``cycle`` on; ``pc`` comes next."""
        self._stream.write(f"{cycle:>12}  {pc:04x}  {self._symbols.describe(pc):<28}  -- {why}\n")


def flags_text(sreg: int) -> str:
    """Return SREG as letters, set flags in upper case.

    >>> flags_text(0x82)
    'IthsvnZc'
    """
    return "".join(
        letter if sreg >> (7 - place) & 1 else letter.lower() for place, letter in enumerate(_FLAGS)
    )
