"""The memory image of one firmware: what a programmer device would write into the chip."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.errors import ProgramError
from avrswarm.program.dwarf import read_lines, read_variables
from avrswarm.program.lines import LineTable
from avrswarm.program.space import EEPROM_BYTES, FLASH_BYTES
from avrswarm.program.symbols import Symbols
from avrswarm.program.variables import Variables

ERASED_BYTE = 0xFF


class Fuses(NamedTuple):
    """Fuse bytes that the file gives; None where it says nothing."""

    low: int | None = None
    high: int | None = None
    extended: int | None = None


UNKNOWN_FUSES = Fuses()


class ByteRange(NamedTuple):
    """Byte addresses from ``start`` up to, not including, ``end``."""

    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Program:
    """One firmware, ready to be put into any number of chips.

    The arrays are read-only because all chips share them; a chip that reprograms itself works on
    its own copy. Two programs are the same when their ``digest`` is.

    Attributes
    ----------
    flash
        All 16384 words, 0xFFFF where nothing was given.
    programmed
        For each flash word, whether the file gave at least one of its bytes.
    eeprom
        All 1024 bytes, 0xFF where nothing was given.
    eeprom_given
        For each EEPROM byte, whether the file gave it.
    elf
        The bytes of the ELF file, kept so that debug information can be read when asked for.
    """

    flash: NDArray[np.uint16]
    programmed: NDArray[np.bool_]
    eeprom: NDArray[np.uint8]
    eeprom_given: NDArray[np.bool_]
    fuses: Fuses = UNKNOWN_FUSES
    lock: int | None = None
    symbols: Symbols = field(default_factory=Symbols)
    source: Path | None = None
    elf: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for array in (self.flash, self.programmed, self.eeprom, self.eeprom_given):
            array.flags.writeable = False

    @classmethod
    def from_words(cls, words: Iterable[int], start: int = 0) -> Program:
        """Make a program of instruction words placed at byte address ``start``, which must be even.

        >>> program = Program.from_words([0xCFFF])  # rjmp .-2
        >>> program.flash_used
        [ByteRange(start=0, end=2)]
        """
        if start % 2:
            raise ProgramError(f"words cannot start at odd byte address {start:#06x}")
        given = list(words)
        for index, word in enumerate(given):
            if not 0 <= word <= 0xFFFF:
                raise ProgramError(f"word {index} is {word:#x}; an instruction word has 16 bits")
        return cls.from_bytes(np.array(given, dtype="<u2").tobytes(), start)

    @classmethod
    def from_bytes(cls, content: bytes, start: int = 0) -> Program:
        """Make a program of raw flash content placed at byte address ``start``."""
        if start < 0 or start + len(content) > FLASH_BYTES:
            raise ProgramError(
                f"{len(content)} bytes at {start:#06x} do not fit into {FLASH_BYTES} bytes of flash"
            )
        return build_program({start + offset: byte for offset, byte in enumerate(content)}, {})

    def with_eeprom(self, content: Mapping[int, int]) -> Program:
        """Return this program with EEPROM bytes replaced, by address."""
        eeprom, given = self.eeprom.copy(), self.eeprom_given.copy()
        for address, byte in content.items():
            eeprom[address] = byte
            given[address] = True
        return replace(self, eeprom=eeprom, eeprom_given=given)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over flash and EEPROM content, in hexadecimal: the identity of the firmware."""
        content = hashlib.sha256(self.flash.astype("<u2").tobytes())
        content.update(self.eeprom.tobytes())
        return content.hexdigest()

    @cached_property
    def flash_used(self) -> list[ByteRange]:
        """Stretches of flash that the file gives, in byte addresses, ascending."""
        return [ByteRange(2 * run.start, 2 * run.end) for run in _runs(self.programmed)]

    @cached_property
    def eeprom_used(self) -> list[ByteRange]:
        """Stretches of EEPROM that the file gives, ascending."""
        return _runs(self.eeprom_given)

    def is_programmed(self, address: int) -> bool:
        """Tell whether the file gives the flash word that holds byte ``address``."""
        return bool(self.programmed[address >> 1])

    @cached_property
    def lines(self) -> LineTable:
        """Which source line each flash address came from; empty without debug information."""
        return LineTable([]) if self.elf is None else read_lines(self.elf, str(self.source))

    @cached_property
    def variables(self) -> Variables:
        """Global and static variables with their types; empty without debug information."""
        return Variables([]) if self.elf is None else read_variables(self.elf, str(self.source))

    @property
    def name(self) -> str:
        """How messages call this program: its file, or a stand-in where it came from no file."""
        return str(self.source) if self.source is not None else "the program"


def build_program(
    flash_bytes: dict[int, int],
    eeprom_bytes: dict[int, int],
    *,
    fuses: Fuses = UNKNOWN_FUSES,
    lock: int | None = None,
    symbols: Symbols | None = None,
    source: Path | None = None,
    elf: bytes | None = None,
) -> Program:
    """Lay single bytes, by address, out as the arrays of a `Program`; addresses are in range."""
    flash, flash_given = _fill(flash_bytes, FLASH_BYTES)
    eeprom, eeprom_given = _fill(eeprom_bytes, EEPROM_BYTES)
    return Program(
        flash=flash.view("<u2").astype(np.uint16),
        programmed=flash_given[0::2] | flash_given[1::2],
        eeprom=eeprom,
        eeprom_given=eeprom_given,
        fuses=fuses,
        lock=lock,
        symbols=symbols if symbols is not None else Symbols(),
        source=source,
        elf=elf,
    )


def _fill(content: dict[int, int], size: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    memory = np.full(size, ERASED_BYTE, dtype=np.uint8)
    given = np.zeros(size, dtype=np.bool_)
    addresses = np.fromiter(content.keys(), dtype=np.intp, count=len(content))
    memory[addresses] = np.fromiter(content.values(), dtype=np.uint8, count=len(content))
    given[addresses] = True
    return memory, given


def _runs(given: NDArray[np.bool_]) -> list[ByteRange]:
    edges = np.flatnonzero(np.diff(given.astype(np.int8), prepend=0, append=0))
    return [ByteRange(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
