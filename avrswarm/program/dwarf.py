"""Debug information of an ELF file (DWARF 2 to 5) as plain data: source lines and variables."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.lineprogram import LineState
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from avrswarm.errors import ProgramError
from avrswarm.program.lines import LineRange, LineTable
from avrswarm.program.space import Space, locate
from avrswarm.program.variables import (
    Array,
    Encoding,
    Member,
    Record,
    Scalar,
    Type,
    Variable,
    Variables,
)

_DW_OP_ADDR = 0x03
_DW_OP_PLUS_UCONST = 0x23
_DW_LANG_ASSEMBLER = 0x8001
_ENCODINGS = {  # DW_ATE_*; avr-gcc calls its int8_t 'signed char' and its char 'char'
    0x02: Encoding.BOOLEAN,
    0x04: Encoding.FLOAT,
    0x05: Encoding.SIGNED,
    0x06: Encoding.SIGNED,
    0x07: Encoding.UNSIGNED,
    0x08: Encoding.UNSIGNED,
    0x10: Encoding.CHARACTER,
}
_KEYWORDS = {
    "DW_TAG_structure_type": "struct",
    "DW_TAG_class_type": "class",
    "DW_TAG_union_type": "union",
    "DW_TAG_enumeration_type": "enum",
}
_RECORD_TAGS = _KEYWORDS.keys() - {"DW_TAG_enumeration_type"}
_POINTER_TAGS = {
    "DW_TAG_pointer_type": "*",
    "DW_TAG_reference_type": "&",
    "DW_TAG_rvalue_reference_type": "&&",
}
_POINTER_BYTES = 2


def read_lines(elf: bytes, name: str) -> LineTable:
    """Return the line table of an ELF file; ``name`` is what an error message calls the file."""
    with _opened(elf, name) as opened:
        # The linker leaves the lines of code that it threw away at address 0, where the vector
        # table (assembler) is; only a program without that table can have other code there.
        names = opened.get_section_by_name(".symtab")
        has_vectors = (
            isinstance(names, SymbolTableSection)
            and names.get_symbol_by_name("__vectors") is not None
        )
        return LineTable(
            line
            for dwarf, unit in _units(opened)
            for line in _unit_lines(dwarf, unit, only_assembler_at_zero=has_vectors)
        )


def read_variables(elf: bytes, name: str) -> Variables:
    """Return the global and static variables of an ELF file, those of the C library included."""
    with _opened(elf, name) as opened:
        types = _TypeReader()
        return Variables(
            variable
            for dwarf, unit in _units(opened)
            for variable in _unit_variables(unit.get_top_DIE(), "", _files(dwarf, unit), types)
        )


@contextmanager
def _opened(elf: bytes, name: str) -> Iterator[ELFFile]:
    """Open an ELF file; what pyelftools trips over in its DWARF sections is the file's fault."""
    try:
        yield ELFFile(io.BytesIO(elf))
    except (ELFError, DWARFError, KeyError, IndexError, ValueError, AssertionError) as error:
        raise ProgramError(
            f"{name}: debug information cannot be read ({error}); rebuild it with -gdwarf-4"
        ) from error


def _units(opened: ELFFile) -> Iterator[tuple[DWARFInfo, CompileUnit]]:
    if opened.get_section_by_name(".debug_info") is None:
        return
    dwarf = opened.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        yield dwarf, unit


# -- lines


def _files(dwarf: DWARFInfo, unit: CompileUnit) -> list[str]:
    """Return the source paths of a unit by file number; before DWARF 5, number 0 means none."""
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return [""]
    folder = PurePosixPath(_text(unit.get_top_DIE(), "DW_AT_comp_dir"))
    version_5 = program["version"] >= 5
    folders = [_decode(entry) for entry in program["include_directory"]]
    if not version_5:
        folders.insert(0, str(folder))
    paths = [
        str(folder / folders[entry.dir_index] / _decode(entry.name))
        for entry in program["file_entry"]
    ]
    return paths if version_5 else ["", *paths]


def _unit_lines(
    dwarf: DWARFInfo, unit: CompileUnit, *, only_assembler_at_zero: bool
) -> Iterator[LineRange]:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    files = _files(dwarf, unit)
    is_assembler = _number(unit.get_top_DIE(), "DW_AT_language") == _DW_LANG_ASSEMBLER
    sequence: list[LineState] = []
    for entry in program.get_entries():
        if entry.state is None:
            continue
        sequence.append(entry.state)
        if entry.state.end_sequence:
            if sequence[0].address > 0 or is_assembler or not only_assembler_at_zero:
                yield from _sequence_lines(sequence, files)
            sequence = []


def _sequence_lines(sequence: list[LineState], files: list[str]) -> Iterator[LineRange]:
    start = sequence[0].address
    for state, following in pairwise(sequence):
        goes_on = (state.file, state.line) == (following.file, following.line)
        if goes_on and not following.end_sequence:
            continue
        yield LineRange(start, following.address, files[state.file], state.line)
        start = following.address


# -- variables


def _unit_variables(
    parent: DIE, function: str, files: list[str], types: _TypeReader
) -> Iterator[Variable]:
    for die in parent.iter_children():
        if die.tag == "DW_TAG_variable":
            variable = _variable(die, function, files, types)
            if variable is not None:
                yield variable
        elif die.tag == "DW_TAG_subprogram":
            name = _text(_origin(die), "DW_AT_name")
            yield from _unit_variables(die, name or function, files, types)
        elif die.tag in ("DW_TAG_lexical_block", "DW_TAG_namespace", "DW_TAG_inlined_subroutine"):
            yield from _unit_variables(die, function, files, types)


def _variable(die: DIE, function: str, files: list[str], types: _TypeReader) -> Variable | None:
    """Return the variable at a fixed address that ``die`` describes, None for any other."""
    address = _fixed_address(die)
    declaration = _origin(die)
    line = _number(declaration, "DW_AT_decl_line")
    # Address 0 is a variable that the linker threw away. avr-libc's start-up file describes the
    # I/O registers as variables on line 0; those belong to the chip, not to the firmware.
    if not address or line == 0 or "DW_AT_type" not in declaration.attributes:
        return None
    space, offset = locate(address)
    if space not in (Space.FLASH, Space.DATA, Space.EEPROM):
        return None
    return Variable(
        name=_text(declaration, "DW_AT_name"),
        address=offset,
        space=space,
        type=types.read(declaration.get_DIE_from_attribute("DW_AT_type")),
        function=function,
        file=files[_number(declaration, "DW_AT_decl_file")],
        line=line,
    )


def _fixed_address(die: DIE) -> int | None:
    location = die.attributes.get("DW_AT_location")
    if location is None or not isinstance(location.value, list) or len(location.value) != 5:
        return None
    operation, *address = location.value
    return int.from_bytes(bytes(address), "little") if operation == _DW_OP_ADDR else None


def _origin(die: DIE) -> DIE:
    """Follow a definition to the declaration that carries its name and type."""
    for link in ("DW_AT_specification", "DW_AT_abstract_origin"):
        if link in die.attributes:
            return _origin(die.get_DIE_from_attribute(link))
    return die


class _TypeReader:
    """Turns type entries into `Type` data, each once.

    Pointers keep only the name of what they point to: that makes every type finite.
    """

    def __init__(self) -> None:
        self._known: dict[int, Type] = {}

    def read(self, die: DIE) -> Type:
        if die.offset not in self._known:
            self._known[die.offset] = self._read(die)
        return self._known[die.offset]

    def _read(self, die: DIE) -> Type:
        size = _number(die, "DW_AT_byte_size")
        if die.tag == "DW_TAG_base_type":
            return _base_type(die, size)
        if die.tag == "DW_TAG_enumeration_type":
            return _enumeration(die, size)
        if die.tag in _POINTER_TAGS:
            return Scalar(_type_name(die), size or _POINTER_BYTES, Encoding.POINTER)
        if die.tag in _RECORD_TAGS:
            return Record(_type_name(die), size, tuple(self._members(die)))
        if die.tag == "DW_TAG_array_type":
            return self._array(die)
        if "DW_AT_type" in die.attributes:  # typedef, const, volatile, atomic
            target = self.read(die.get_DIE_from_attribute("DW_AT_type"))
            is_alias = die.tag == "DW_TAG_typedef"
            return replace(target, name=_text(die, "DW_AT_name")) if is_alias else target
        return Scalar(_type_name(die), size, Encoding.UNKNOWN)

    def _array(self, die: DIE) -> Type:
        result = self.read(die.get_DIE_from_attribute("DW_AT_type"))
        name = result.name
        counts = [_count(d) for d in die.iter_children() if d.tag == "DW_TAG_subrange_type"]
        for depth in range(len(counts) - 1, -1, -1):
            shape = "".join(f"[{count or ''}]" for count in counts[depth:])
            size = counts[depth] * result.size
            result = Array(name + shape, size, result, counts[depth])
        return result

    def _members(self, record: DIE) -> Iterator[Member]:
        for die in record.iter_children():
            if die.tag not in ("DW_TAG_member", "DW_TAG_inheritance") or _is_static(die):
                continue
            member = self._member(die)
            if not member.name and isinstance(member.type, Record):
                # Members of an unnamed struct or union, or of a base class, are reached directly.
                for inner in member.type.members:
                    yield replace(inner, offset=member.offset + inner.offset)
            else:
                yield member

    def _member(self, die: DIE) -> Member:
        kind = self.read(die.get_DIE_from_attribute("DW_AT_type"))
        name = _text(die, "DW_AT_name")
        offset = _member_offset(die)
        bits = _number(die, "DW_AT_bit_size")
        if not bits:
            return Member(name, offset, kind)
        if "DW_AT_data_bit_offset" in die.attributes:  # DWARF 4 on: from the start of the record
            byte, shift = divmod(_number(die, "DW_AT_data_bit_offset"), 8)
            return Member(name, byte, kind, shift, bits)
        unit_bits = 8 * (_number(die, "DW_AT_byte_size") or kind.size)
        from_top = _number(die, "DW_AT_bit_offset")  # DWARF 2 and 3: from the unit's highest bit
        return Member(name, offset, kind, unit_bits - from_top - bits, bits)


def _base_type(die: DIE, size: int) -> Scalar:
    name = _text(die, "DW_AT_name")
    encoding = _ENCODINGS.get(_number(die, "DW_AT_encoding"), Encoding.UNKNOWN)
    return Scalar(name, size, Encoding.CHARACTER if name == "char" else encoding)


def _enumeration(die: DIE, size: int) -> Scalar:
    values = tuple(
        (_text(child, "DW_AT_name"), _number(child, "DW_AT_const_value"))
        for child in die.iter_children()
        if child.tag == "DW_TAG_enumerator"
    )
    signed = any(value < 0 for _, value in values)
    return Scalar(_type_name(die), size, Encoding.SIGNED if signed else Encoding.UNSIGNED, values)


def _type_name(die: DIE) -> str:
    """Return a type's name as C writes it, without its const and volatile."""
    name = _text(die, "DW_AT_name")
    keyword = _KEYWORDS.get(str(die.tag))
    if keyword is not None:
        return f"{keyword} {name}".strip()
    if name:
        return name
    if die.tag == "DW_TAG_subroutine_type":
        return "function"
    has_target = "DW_AT_type" in die.attributes
    target = _type_name(die.get_DIE_from_attribute("DW_AT_type")) if has_target else "void"
    if die.tag == "DW_TAG_array_type":
        return target + "[]"
    return target + _POINTER_TAGS.get(str(die.tag), "")


def _count(subrange: DIE) -> int:
    """Return how many elements a dimension has, 0 where the file does not say."""
    for attribute, more in (("DW_AT_count", 0), ("DW_AT_upper_bound", 1)):
        found = subrange.attributes.get(attribute)
        if found is not None and isinstance(found.value, int) and found.value >= 0:
            return found.value + more
    return 0


def _is_static(member: DIE) -> bool:
    return "DW_AT_external" in member.attributes or "DW_AT_declaration" in member.attributes


def _member_offset(die: DIE) -> int:
    location = die.attributes.get("DW_AT_data_member_location")
    if location is None:
        return 0  # members of a union
    if isinstance(location.value, int):
        return location.value
    operation, *operand = location.value  # DWARF 2: an expression that adds a constant
    if operation != _DW_OP_PLUS_UCONST:
        raise ValueError(f"member location {bytes(location.value).hex()}")
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(operand))  # ULEB128


def _number(die: DIE, attribute: str) -> int:
    found = die.attributes.get(attribute)
    return int(found.value) if found is not None else 0


def _text(die: DIE, attribute: str) -> str:
    found = die.attributes.get(attribute)
    return _decode(found.value) if found is not None else ""


def _decode(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")
