"""What is in this firmware? Names, memory, interrupt vectors, variables, without running it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from avrswarm.chip.vectors import Vector
from avrswarm.errors import ProgramError, SceneError, UsageError
from avrswarm.isa.disassemble import disassemble_word
from avrswarm.program import (
    Kind,
    Program,
    Symbol,
    Symbols,
    load_program,
    with_debug_information,
)
from avrswarm.program.space import EEPROM_BYTES, FLASH_BYTES, Space, locate
from avrswarm.program.variables import Array, Scalar, Type
from avrswarm.scene.shipped import find_firmware

SRAM_START = 0x100
SRAM_BYTES = 2048
_VECTOR_BYTES = 4
_JUMPS = {"jmp", "rjmp"}
_ELF_MAGIC = b"\x7fELF"
_CODE_LETTERS = "tT"


def firmware_path(name: str) -> Path:
    """Return the file that a command line means: a path, or the bare name of a shipped firmware."""
    path = Path(name)
    if path.suffix or len(path.parts) > 1 or path.exists():
        return path
    try:
        return find_firmware(name, Path())
    except SceneError as error:
        raise UsageError(f"'{name}': {error}") from None


def open_firmware(name: str, symbols: str | None = None) -> Program:
    """Load a firmware file, or a shipped one by its bare name.

    Names of a .hex come from the ELF file beside it, or from ``symbols``: an ELF file or what
    avr-nm prints.
    """
    program = load_program(firmware_path(name))
    if symbols is not None:
        return _with_names(program, Path(symbols))
    return with_debug_information(program)


def _with_names(program: Program, path: Path) -> Program:
    """Return a program with the names of a symbol file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ProgramError(f"{path}: cannot be read: {error.strerror}") from None
    if not content.startswith(_ELF_MAGIC):
        return replace(program, symbols=Symbols(_parse(content, path)))
    other = load_program(path)
    if not np.array_equal(other.flash, program.flash):
        raise ProgramError(
            f"{path}: is not the ELF file of {program.name}: their flash contents differ;"
            " build both from the same sources"
        )
    return replace(program, symbols=other.symbols, elf=other.elf)


def _parse(content: bytes, path: Path) -> list[Symbol]:
    """Read lines such as ``00000310 T delay``, as avr-nm prints them, or ``0x310 delay``.

    With the size in between, as avr-nm -S prints it, it is kept.
    """
    found = []
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words or (len(words) == 2 and words[0] in "UwvV"):
            continue  # nothing, or a name without an address
        try:
            address, *sizes = (int(word, 16) for word in words[: max(1, len(words) - 2)])
            size = sizes[0] if sizes else 0
            letter, name = ("T", words[1]) if len(words) == 2 else words[-2:]
        except (ValueError, IndexError):
            raise ProgramError(
                f"{path}:{number}: '{line.strip()}' is not a symbol; write ADDRESS NAME with a"
                " hexadecimal byte address, or use what avr-nm prints"
            ) from None
        space, place = locate(address)
        is_code = space == Space.FLASH and letter in _CODE_LETTERS
        if space == Space.FLASH and not is_code:
            continue
        if is_code and (place % 2 or place >= FLASH_BYTES):
            raise ProgramError(
                f"{path}:{number}: {name} at {place:#x}: instructions lie at even addresses"
                f" below {FLASH_BYTES:#x}"
            )
        kind = Kind.LABEL if is_code else Kind.OBJECT
        found.append(Symbol(name, place, size, kind, space, letter.isupper()))
    if not found:
        raise ProgramError(f"{path}: has no symbols in it")
    return found


@dataclass(frozen=True)
class VectorInUse:
    """An interrupt that the firmware handles; ``handler`` is a byte address in flash."""

    number: int
    name: str
    handler: int


def vectors_in_use(program: Program) -> list[VectorInUse]:
    """Return the interrupts with a handler of their own.

    avr-libc lets every other vector jump to ``__bad_interrupt``. A file without symbols shows that
    place as the most common target. The table is where the program starts, which for a boot loader
    is the boot section; a program that starts without a table has none in use.
    """
    if not program.flash_used:
        return []
    base = program.flash_used[0].start
    targets = {vector: _jump_target(program, base + vector * _VECTOR_BYTES) for vector in Vector}
    handlers = {v: target for v, target in targets.items() if v and target is not None}
    if len(handlers) < len(Vector) - 1:
        return []
    bad_interrupt = program.symbols.find("__bad_interrupt", Space.FLASH)
    if bad_interrupt is not None:
        unused = bad_interrupt.address
    else:
        unused, count = Counter(handlers.values()).most_common(1)[0]
        unused = unused if count > 1 else -1
    return [VectorInUse(v, v.name, target) for v, target in handlers.items() if target != unused]


def static_sram_bytes(program: Program) -> int | None:
    """Return how much SRAM variables take before the stack grows; None without symbols."""
    end = program.symbols.find("_end", Space.DATA)
    return None if end is None else end.address - SRAM_START


def describe_firmware(program: Program) -> dict[str, Any]:
    """Return all figures as plain data, in the form that ``avrswarm info --json`` prints."""
    return {
        "file": str(program.source),
        "digest": program.digest,
        "flash": _memory(program.flash_used, FLASH_BYTES),
        "eeprom": _memory(program.eeprom_used, EEPROM_BYTES),
        "sram": {"used_bytes": static_sram_bytes(program), "size_bytes": SRAM_BYTES},
        "fuses": program.fuses._asdict(),
        "lock": program.lock,
        "vectors": [
            {
                "number": vector.number,
                "name": vector.name,
                "handler": vector.handler,
                "symbol": program.symbols.starting_at(vector.handler),
            }
            for vector in vectors_in_use(program)
        ],
        "symbols": [
            {
                "name": symbol.name,
                "address": symbol.address,
                "size": symbol.size,
                "kind": symbol.kind.value,
                "space": symbol.space.value,
            }
            for symbol in program.symbols
        ],
    }


def describe_variables(program: Program) -> list[dict[str, Any]]:
    """Return every variable with its parts, in the form that ``avrswarm vars --json`` prints.

    ``parts`` are the numbers in it that can be watched; ``[0..3]`` stands for any of four indices.

    Raises
    ------
    ProgramError
        The program carries no debug information.
    """
    if not len(program.variables):
        raise ProgramError(
            f"{program.name}: no debug information in it; give an .elf file that was compiled with"
            " -gdwarf-4, or put it beside the .hex"
        )
    return [
        {
            "name": variable.path,
            "type": variable.type.name,
            "bytes": variable.type.size,
            "address": variable.address,
            "space": variable.space.value,
            "file": variable.file,
            "line": variable.line,
            "parts": [
                {"path": path, "type": kind.name, "bytes": kind.size}
                for path, kind in _parts(variable.path, variable.type)
            ],
        }
        for variable in program.variables
    ]


def _parts(path: str, kind: Type) -> Iterator[tuple[str, Scalar]]:
    """Yield the path and type of every number in a variable."""
    if isinstance(kind, Scalar):
        yield path, kind
    elif isinstance(kind, Array):
        last = f"..{kind.count - 1}" if kind.count > 1 else ""
        yield from _parts(f"{path}[0{last}]", kind.element)
    else:
        for member in kind.members:
            yield from _parts(f"{path}.{member.name}", member.type)


def _memory(ranges: list[Any], size: int) -> dict[str, Any]:
    return {
        "used_bytes": sum(end - start for start, end in ranges),
        "size_bytes": size,
        "ranges": [[start, end] for start, end in ranges],
    }


def _jump_target(program: Program, address: int) -> int | None:
    if not program.is_programmed(address):
        return None
    word, following = (int(word) for word in program.flash[address // 2 : address // 2 + 2])
    text = disassemble_word(address, word, following)
    is_jump = text.partition("\t")[0] in _JUMPS
    return int(text.rpartition("0x")[2], 16) if is_jump else None
