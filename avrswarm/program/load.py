"""A firmware file becomes a `Program`; everything that can be wrong with the file is found here."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from avrswarm.errors import ProgramError
from avrswarm.program.elffile import read_elf
from avrswarm.program.hexfile import read_hex
from avrswarm.program.image import Fuses, Program, build_program
from avrswarm.program.space import EEPROM_BYTES, PROGRAMMABLE_BYTES, Space, locate
from avrswarm.program.symbols import Symbols

_ELF_MAGIC = b"\x7fELF"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Bytes by address, for each memory.
_Memories = dict[Space, dict[int, int]]


def load_program(path: str | os.PathLike[str]) -> Program:
    """Load a firmware file, Intel HEX or ELF; its content decides which, not its name.

    Raises
    ------
    ProgramError
        The file is missing, damaged, for another machine or too large for an ATmega328P.
    """
    source = Path(path)
    content = _read(source)
    if content.startswith(_ELF_MAGIC):
        memories, symbols = _from_elf(content, str(source))
        return _program(memories, source, symbols, elf=content)
    if _looks_like_hex(content):
        return _program(_from_hex(content, str(source)), source, Symbols(), elf=None)
    raise ProgramError(f"{source}: {_what_it_is(content)}")


def with_debug_information(program: Program) -> Program:
    """Return the program with names and types, from the ELF file beside its .hex if need be."""
    if program.elf is not None or program.source is None:
        return program
    try:
        other = load_program(program.source.with_suffix(".elf"))
    except ProgramError:
        return program
    return other if np.array_equal(other.flash, program.flash) else program


def load_eeprom(path: str | os.PathLike[str]) -> dict[int, int]:
    """Load an EEPROM file (Intel HEX); return its bytes by EEPROM address.

    Addresses count from 0, as avrdude and avr-objcopy write them, or from 0x810000, as in an ELF.
    """
    source = Path(path)
    content = _read(source)
    if not _looks_like_hex(content):
        raise ProgramError(f"{source}: an EEPROM file has to be Intel HEX")
    file = read_hex(content, str(source))
    found = {}
    for link_address, byte in file.content.items():
        space, address = locate(link_address)
        if space not in (Space.FLASH, Space.EEPROM) or address >= EEPROM_BYTES:
            line = file.line_of(link_address)
            raise ProgramError(
                f"{source}, line {line}: address {link_address:#06x} is beyond the "
                f"{EEPROM_BYTES // 1024} KiB of EEPROM; is this a firmware file?"
            )
        found[address] = byte
    return found


def _read(source: Path) -> bytes:
    try:
        content = source.read_bytes()
    except FileNotFoundError:
        raise ProgramError(f"{source}: no such file") from None
    except IsADirectoryError:
        raise ProgramError(f"{source}: is a folder; name the .hex or .elf file in it") from None
    except OSError as error:
        raise ProgramError(f"{source}: cannot be read: {error.strerror}") from error
    if not content.strip():
        raise ProgramError(f"{source}: the file is empty; was the build interrupted?")
    return content.removeprefix(_BYTE_ORDER_MARK)


def _looks_like_hex(content: bytes) -> bool:
    return content.lstrip().startswith(b":")


def _what_it_is(content: bytes) -> str:
    """Say what a file that is no firmware seems to be, and how it may become one."""
    if content.startswith((b"S0", b"S1")):
        return "Motorola S-records; convert them with avr-objcopy -I srec -O ihex"
    if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in content[:512]):
        return "not a firmware: text that is not Intel HEX; give a .hex or .elf file"
    return (
        "not a firmware: neither Intel HEX nor ELF; "
        "a raw binary becomes one with avr-objcopy -I binary -O ihex"
    )


def _from_hex(content: bytes, name: str) -> _Memories:
    file = read_hex(content, name)
    memories: _Memories = {space: {} for space in PROGRAMMABLE_BYTES}
    for link_address in sorted(file.content):
        space, address = locate(link_address)
        if address >= PROGRAMMABLE_BYTES.get(space, 0):
            place = f"{name}, line {file.line_of(link_address)}"
            raise ProgramError(_beyond(place, space, address))
        memories[space][address] = file.content[link_address]
    return memories


def _from_elf(content: bytes, name: str) -> tuple[_Memories, Symbols]:
    sections, symbols = read_elf(content, name)
    memories: _Memories = {space: {} for space in PROGRAMMABLE_BYTES}
    for section in sections:
        space, start = locate(section.address)
        if space == Space.OTHER:
            continue  # device and user signatures are not programmed
        place = f"{name}, section {section.name}"
        end = start + len(section.content)
        if end > PROGRAMMABLE_BYTES.get(space, 0):
            raise ProgramError(_beyond(place, space, end - 1))
        memory = memories[space]
        for address, byte in enumerate(section.content, start):
            if address in memory:
                raise ProgramError(f"{place}: overlaps another section at {space} {address:#06x}")
            memory[address] = byte
    return memories, symbols


def _beyond(place: str, space: Space, address: int) -> str:
    if space not in PROGRAMMABLE_BYTES:
        return (
            f"{place}: address {address:#06x} of {space} memory cannot be programmed; "
            "the section needs a load address in flash (AT in the linker script)"
        )
    size = PROGRAMMABLE_BYTES[space]
    sized = f"{size // 1024} KiB" if size >= 1024 else f"{size} bytes"
    return (
        f"{place}: address {address:#06x} is beyond the {sized} of {space} of an ATmega328P; "
        "the program is too large or made for another chip"
    )


def _program(memories: _Memories, source: Path, symbols: Symbols, elf: bytes | None) -> Program:
    if not memories[Space.FLASH]:
        raise ProgramError(f"{source}: no code or data for flash in it; is it an EEPROM file?")
    fuses = memories[Space.FUSE]
    return build_program(
        memories[Space.FLASH],
        memories[Space.EEPROM],
        fuses=Fuses(low=fuses.get(0), high=fuses.get(1), extended=fuses.get(2)),
        lock=memories[Space.LOCK].get(0),
        symbols=symbols,
        source=source,
        elf=elf,
    )
