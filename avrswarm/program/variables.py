"""Variables of the firmware with their C types, as plain data.

With these a reader finds ``mydata.gradient`` or ``neighbours[3].dist`` in a chip's SRAM:
`Variables.place` turns such a path into an address and a `struct` format, `Place.decode` turns
bytes into a value, and `Values` does both for one chip.
"""

from __future__ import annotations

import difflib
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from avrswarm.errors import UsageError
from avrswarm.program.space import Space


class Encoding(StrEnum):
    """How the bytes of a scalar are to be read."""

    UNSIGNED = "unsigned"
    SIGNED = "signed"
    FLOAT = "float"
    BOOLEAN = "boolean"
    CHARACTER = "character"
    POINTER = "pointer"
    UNKNOWN = "unknown"


_FORMATS = {
    Encoding.UNSIGNED: {1: "B", 2: "H", 4: "I", 8: "Q"},
    Encoding.SIGNED: {1: "b", 2: "h", 4: "i", 8: "q"},
    Encoding.FLOAT: {4: "f", 8: "d"},
    Encoding.BOOLEAN: {1: "?"},
    Encoding.CHARACTER: {1: "c"},
    Encoding.POINTER: {2: "H"},
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, character, boolean, pointer or enumeration (``values`` names its values)."""

    name: str
    size: int
    encoding: Encoding
    values: tuple[tuple[str, int], ...] = ()

    @property
    def format(self) -> str:
        """The `struct` format, little-endian, or '' where there is none, as for 24-bit integers."""
        letter = _FORMATS.get(self.encoding, {}).get(self.size, "")
        return letter and "<" + letter

    @property
    def is_number(self) -> bool:
        """Whether it can be read as a number; 24-bit integers can, ``void`` cannot."""
        if self.encoding is Encoding.FLOAT:
            return bool(self.format)
        return self.encoding is not Encoding.UNKNOWN and 1 <= self.size <= 8


@dataclass(frozen=True, slots=True)
class Array:
    """``count`` elements in a row; 0 where the length is not known."""

    name: str
    size: int
    element: Type
    count: int


@dataclass(frozen=True, slots=True)
class Member:
    """One field of a record, ``offset`` bytes after its start.

    A bit-field has ``bits`` > 0 and starts ``shift`` bits above the lowest bit of its storage unit.
    """

    name: str
    offset: int
    type: Type
    shift: int = 0
    bits: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A struct, class or union."""

    name: str
    size: int
    members: tuple[Member, ...]


Type = Scalar | Array | Record

Value = int | float | bool | bytes | list["Value"] | dict[str, "Value"]
"""A number; ``bytes`` for an array of characters, a list for any other; a dict for a struct."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A global or static variable; ``address`` is a byte address in ``space``.

    ``function`` names the function that a static variable is local to, '' for any other variable.
    """

    name: str
    address: int
    space: Space
    type: Type
    function: str = ""
    file: str = ""
    line: int = 0

    @property
    def unit(self) -> str:
        """The file it is defined in, without folder and ending."""
        return PurePosixPath(self.file).stem

    @property
    def path(self) -> str:
        """The name by which it is found: ``function::name`` for a static local variable."""
        return f"{self.function}::{self.name}" if self.function else self.name


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable or a part of it lies, and how to read it."""

    address: int
    space: Space
    type: Type
    shift: int = 0
    bits: int = 0

    @property
    def format(self) -> str:
        """The `struct` format of a scalar, '' for anything else."""
        return self.type.format if isinstance(self.type, Scalar) else ""

    @property
    def size(self) -> int:
        """How many bytes it touches."""
        return (self.shift + self.bits + 7) // 8 if self.bits else self.type.size

    def decode(self, memory: bytes) -> Value:
        """Return the value that it has in ``memory``, all of its space."""
        content = memory[self.address : self.address + self.size]
        if not isinstance(self.type, Scalar):
            return self._decode_parts(memory, content)
        if not self.type.is_number:
            raise UsageError(f"a {self.type.name} has no value that could be read")
        if self.type.encoding is Encoding.FLOAT:
            number: float = struct.unpack(self.type.format, content)[0]
            return number
        bits = self.bits or 8 * self.type.size
        whole = int.from_bytes(content, "little") >> self.shift & ((1 << bits) - 1)
        if self.type.encoding is Encoding.SIGNED and whole >> (bits - 1):
            whole -= 1 << bits
        return bool(whole) if self.type.encoding is Encoding.BOOLEAN else whole

    def _decode_parts(self, memory: bytes, content: bytes) -> Value:
        if isinstance(self.type, Record):
            return {member.name: self.member(member).decode(memory) for member in self.type.members}
        assert isinstance(self.type, Array)
        element = self.type.element
        if isinstance(element, Scalar) and element.encoding is Encoding.CHARACTER:
            return content
        return [self.element(index).decode(memory) for index in range(self.type.count)]

    def element(self, index: int) -> Place:
        """Return where an element of this array lies."""
        assert isinstance(self.type, Array)
        element = self.type.element
        return Place(self.address + index * element.size, self.space, element)

    def member(self, member: Member) -> Place:
        """Return where a member of this record lies."""
        address = self.address + member.offset
        return Place(address, self.space, member.type, member.shift, member.bits)


class Variables:
    """The variables of one program; iterates in order of name."""

    def __init__(self, variables: Iterable[Variable]) -> None:
        self._all = sorted(variables, key=lambda v: (v.name, v.function, v.address))

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def find(self, name: str) -> Variable:
        """Return the variable of that name.

        Write ``function::name`` for a static local one, ``file::name`` (without the file's ending)
        where several files have a static one of that name.
        """
        owner, _, bare = name.rpartition("::")
        found = [v for v in self._all if v.name == name] or [
            v for v in self._all if v.name == bare and (not owner or owner in (v.function, v.unit))
        ]
        chosen = [v for v in found if not v.function] or found
        if not chosen:
            raise UsageError(self._unknown(name))
        if len({(v.space, v.address) for v in chosen}) > 1:
            places = ", ".join(f"{v.function or v.unit}::{v.name}" for v in chosen)
            raise UsageError(f"variable '{name}' is ambiguous: {places}")
        return chosen[0]

    def place(self, path: str) -> Place:
        """Return where ``path`` lies: a name, then any number of ``.member`` and ``[index]``."""
        head, steps = _split(path)
        variable = self.find(head)
        place = Place(variable.address, variable.space, variable.type)
        for step in steps:
            if isinstance(step, int):
                place = _index(place, step, path)
            else:
                place = _member(place, step, path)
        return place

    def _unknown(self, name: str) -> str:
        if not self._all:
            return (
                f"no variable '{name}': the program carries no debug information; "
                "load an .elf file that was compiled with -gdwarf-4"
            )
        close = difflib.get_close_matches(name, {v.name for v in self._all}, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        return f"no variable '{name}' among {len(self._all)}{hint}"


class Values(Mapping[str, Value]):
    """The variables of one chip by name or path, with the values they have now.

    Parameters
    ----------
    variables
        Of the program that the chip runs.
    content_of
        Gives all bytes of a memory of the chip.
    """

    def __init__(self, variables: Variables, content_of: Callable[[Space], bytes]) -> None:
        self._variables = variables
        self._content_of = content_of

    def __getitem__(self, path: str) -> Value:
        place = self._variables.place(path)
        return place.decode(self._content_of(place.space))

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(variable.path for variable in self._variables))

    def __contains__(self, path: object) -> bool:
        try:
            return isinstance(path, str) and bool(self._variables.place(path))
        except UsageError:
            return False

    def __len__(self) -> int:
        return sum(1 for _ in self)


_PATH = re.compile(r"(?P<head>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)(?P<steps>(?:\.\w+|\[\d+\])*)")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def _split(path: str) -> tuple[str, list[str | int]]:
    match = _PATH.fullmatch(path.strip())
    if match is None:
        raise UsageError(f"'{path}' is not a variable path; write it like neighbours[3].dist")
    steps = _STEP.findall(match["steps"])
    return match["head"], [member if member else int(index) for member, index in steps]


def _index(place: Place, index: int, path: str) -> Place:
    array = place.type
    if not isinstance(array, Array):
        raise UsageError(f"'{path}': [{index}] on a {array.name}, which is not an array")
    if array.count and index >= array.count:
        raise UsageError(f"'{path}': index {index} is beyond the {array.count} elements")
    return place.element(index)


def _member(place: Place, name: str, path: str) -> Place:
    record = place.type
    if not isinstance(record, Record):
        raise UsageError(f"'{path}': .{name} on a {record.name}, which has no members")
    for member in record.members:
        if member.name == name:
            return place.member(member)
    known = ", ".join(member.name for member in record.members)
    raise UsageError(f"'{path}': {record.name} has no member '{name}'; it has {known}")
