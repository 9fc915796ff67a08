"""What is in this firmware? Memory use, interrupt vectors and variables, without running it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from avrswarm.chip.vectors import Vector
from avrswarm.errors import UsageError
from avrswarm.isa.disassemble import disassemble_word
from avrswarm.program import Program
from avrswarm.program.space import EEPROM_BYTES, FLASH_BYTES, Space
from avrswarm.program.variables import Array, Scalar, Type

SRAM_START = 0x100
SRAM_BYTES = 2048
_VECTOR_BYTES = 4
_JUMPS = {"jmp", "rjmp"}


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
    UsageError
        The program carries no debug information.
    """
    if not len(program.variables):
        raise UsageError(
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
