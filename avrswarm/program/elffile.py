"""ELF to sections and symbols: what avr-gcc's linker made, as a programmer device sees it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.descriptions import describe_e_machine
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection
from elftools.elf.segments import Segment

from avrswarm.errors import ProgramError
from avrswarm.program.space import Space, locate
from avrswarm.program.symbols import Kind, Symbol, Symbols

_KINDS = {"STT_FUNC": Kind.FUNCTION, "STT_OBJECT": Kind.OBJECT, "STT_NOTYPE": Kind.LABEL}

# The architecture number that binutils puts into e_flags. These are subsets of what an ATmega328P
# (avr5) executes; avr31, avr51 and avr6 address more flash, 100 and up are other cores.
_MACHINE_MASK = 0x7F
_COMPATIBLE = {1, 2, 25, 3, 35, 4, 5}


@dataclass(frozen=True)
class ElfSection:
    """A section that is programmed into the chip; ``address`` is where it is loaded (LMA)."""

    name: str
    address: int
    content: bytes


def read_elf(content: bytes, name: str) -> tuple[list[ElfSection], Symbols]:
    """Return sections and symbols of an ELF file; ``name`` is the file as the user gave it."""
    try:
        elf = ELFFile(io.BytesIO(content))
        _check_machine(elf, name)
        _check_whole(elf, len(content), name)
        return list(_loaded_sections(elf, name)), Symbols(_symbols(elf))
    except (ELFError, ConstructError, KeyError, IndexError, ValueError) as error:
        raise ProgramError(
            f"{name}: truncated or damaged ELF file of {len(content)} bytes ({error})"
        ) from error


def _check_machine(elf: ELFFile, name: str) -> None:
    machine = elf["e_machine"]
    if machine != "EM_AVR":
        raise ProgramError(
            f"{name}: ELF for another machine ({describe_e_machine(machine)}); "
            "an ATmega328P needs one from avr-gcc -mmcu=atmega328p"
        )
    architecture = elf["e_flags"] & _MACHINE_MASK
    if architecture not in _COMPATIBLE:
        raise ProgramError(
            f"{name}: ELF for another machine (AVR architecture {architecture}, not 5); "
            "compile it with avr-gcc -mmcu=atmega328p"
        )
    if elf["e_type"] != "ET_EXEC":
        raise ProgramError(f"{name}: not a linked program; link it with avr-gcc -mmcu=atmega328p")


def _check_whole(elf: ELFFile, size: int, name: str) -> None:
    """Refuse a file that ends before its own tables and sections do; pyelftools would read less."""
    ends = {"the section table": elf["e_shoff"] + elf["e_shnum"] * elf["e_shentsize"]}
    if ends["the section table"] <= size:
        for section in elf.iter_sections():
            if section["sh_type"] not in ("SHT_NOBITS", "SHT_NULL"):
                ends[f"section {section.name}"] = section["sh_offset"] + section["sh_size"]
    part, end = max(ends.items(), key=lambda item: item[1])
    if end > size:
        raise ProgramError(
            f"{name}: truncated ELF file: {part} ends at byte {end}, the file at {size}; "
            "build or copy it again"
        )


def _loaded_sections(elf: ELFFile, name: str) -> Iterator[ElfSection]:
    segments = [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
    for section in elf.iter_sections():
        is_loaded = section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section["sh_type"] != "SHT_NOBITS"
        if is_loaded and section["sh_size"]:
            address = _load_address(section, segments)
            if address is None:
                raise ProgramError(f"{name}: section {section.name} is in no loadable segment")
            yield ElfSection(section.name, address, section.data())


def _load_address(section: Section, segments: list[Segment]) -> int | None:
    """Return where a section is programmed; for .data this is in flash, not where it runs."""
    start = section["sh_offset"]
    for segment in segments:
        into = start - segment["p_offset"]
        if into >= 0 and into + section["sh_size"] <= segment["p_filesz"]:
            return int(segment["p_paddr"] + into)
    return None


def _symbols(elf: ELFFile) -> Iterator[Symbol]:
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        return
    for entry in table.iter_symbols():
        kind = _KINDS.get(entry["st_info"]["type"])
        # Absolute symbols are constants (__SREG__, region lengths), not places.
        if kind is None or not entry.name or entry["st_shndx"] in ("SHN_UNDEF", "SHN_ABS"):
            continue
        space, address = locate(entry["st_value"])
        if space in (Space.FLASH, Space.DATA, Space.EEPROM):
            is_global = entry["st_info"]["bind"] == "STB_GLOBAL"
            yield Symbol(entry.name, address, entry["st_size"], kind, space, is_global)
