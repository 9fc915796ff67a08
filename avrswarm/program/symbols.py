"""Names for addresses, and addresses for names: what traces, faults and `--until` speak in."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from avrswarm.errors import UsageError
from avrswarm.program.space import FLASH_BYTES, Space

# Names that avr-ld gives to section borders. They often share an address with real code, where the
# code's own name says more.
_BORDERS = frozenset(
    f"__{section}_{end}"
    for section in ("trampolines", "ctors", "dtors")
    for end in ("start", "end")
) | {"etext", "_etext", "__etext", "__data_load_start", "__data_load_end"}


class Kind(StrEnum):
    """What the linker knows of a symbol."""

    FUNCTION = "function"
    OBJECT = "object"
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class Symbol:
    """One name of the symbol table; ``address`` is a byte address in ``space``.

    ``is_global`` is False for local and for weak names, which others may hide.
    """

    name: str
    address: int
    size: int
    kind: Kind
    space: Space
    is_global: bool = True


class Symbols:
    """The symbols of one program; iterates in order of space and address."""

    def __init__(self, symbols: Iterable[Symbol] = ()) -> None:
        self._all = sorted(symbols, key=_reading_order)
        self._by_name: dict[str, list[Symbol]] = {}
        for symbol in self._all:
            self._by_name.setdefault(symbol.name, []).append(symbol)
        self._code: dict[int, Symbol] = {}
        for symbol in self._all:
            if symbol.space == Space.FLASH and symbol.kind != Kind.OBJECT:
                self._code.setdefault(symbol.address, symbol)
        self._code_addresses = sorted(self._code)
        self._functions = sorted(
            (s for s in self._code.values() if s.kind == Kind.FUNCTION), key=lambda s: s.address
        )
        self._function_addresses = [s.address for s in self._functions]

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def find(self, name: str, space: Space | None = None) -> Symbol | None:
        """Return the symbol of that name; a global one hides local ones, local ones clash."""
        found = [s for s in self._by_name.get(name, []) if space is None or s.space == space]
        chosen = [s for s in found if s.is_global] or found
        if len({(s.space, s.address) for s in chosen}) > 1:
            places = ", ".join(f"{s.address:#06x} ({s.space})" for s in chosen)
            raise UsageError(f"symbol '{name}' is ambiguous: {places}; give the address instead")
        return chosen[0] if chosen else None

    def starting_at(self, address: int) -> str | None:
        """Return the name of the code that starts at a flash byte address."""
        symbol = self._code.get(address)
        return symbol.name if symbol is not None else None

    def nearest(self, address: int) -> tuple[Symbol, int] | None:
        """Return the code symbol that a flash byte address belongs to, and the offset into it.

        A function whose size covers the address wins over a label inside it; otherwise it is the
        closest name before the address.
        """
        position = bisect_right(self._function_addresses, address) - 1
        if position >= 0:
            function = self._functions[position]
            if address < function.address + function.size:
                return function, address - function.address
        position = bisect_right(self._code_addresses, address) - 1
        if position < 0:
            return None
        symbol = self._code[self._code_addresses[position]]
        return symbol, address - symbol.address

    def describe(self, address: int) -> str:
        """Return a flash byte address in words: 'main+0x1a', or '0x01c4' where no name is near.

        >>> Symbols([Symbol("main", 0x80, 10, Kind.FUNCTION, Space.FLASH)]).describe(0x84)
        'main+0x4'
        """
        near = self.nearest(address)
        if near is None:
            return f"{address:#06x}"
        symbol, offset = near
        return f"{symbol.name}+{offset:#x}" if offset else symbol.name

    def resolve(self, text: str) -> int:
        """Return the flash byte address that ``text`` means: 'main', 'main+0x10', '0x1c4' or '452'.

        >>> Symbols([Symbol("main", 0x80, 10, Kind.FUNCTION, Space.FLASH)]).resolve("main+4")
        132
        """
        address = _number(text)
        if address is None:
            name, _, offset = text.partition("+")
            symbol = self.find(name.strip(), Space.FLASH)
            if symbol is None:
                raise UsageError(self._unknown(name.strip()))
            address = symbol.address + _offset(offset, text)
        if not 0 <= address < FLASH_BYTES or address % 2:
            raise UsageError(
                f"'{text}' is byte address {address:#x}; instructions lie at even ones up to "
                f"{FLASH_BYTES - 2:#x}"
            )
        return address

    def _unknown(self, name: str) -> str:
        if not self._all:
            return (
                f"no symbol '{name}': the program has no symbols (Intel HEX never has); "
                "load the .elf file or give a byte address such as 0x1c4"
            )
        known = {s.name for s in self._all if s.space == Space.FLASH}
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "`avrswarm info` lists them"
        return f"no symbol '{name}' in flash; {hint}"


def _reading_order(symbol: Symbol) -> tuple[int, int, bool, bool, bool, str]:
    """Sort by address; of several names for one address, the one people know it by comes first."""
    return (
        list(Space).index(symbol.space),
        symbol.address,
        symbol.name in _BORDERS,
        symbol.kind != Kind.FUNCTION,
        not symbol.is_global,
        symbol.name,
    )


def _offset(text: str, whole: str) -> int:
    offset = _number(text) if text else 0
    if offset is None:
        raise UsageError(f"'{whole}': '{text}' is not a number of bytes such as 0x10")
    return offset


def _number(text: str) -> int | None:
    try:
        return int(text.strip(), 0)
    except ValueError:
        return None
