"""What can go wrong in firmware, and how it is told.

A *report* is something the chip survives: it goes on, and the place is noted once. A *fault* has no
defined meaning on the chip: it stops. ``strict`` turns every report into a fault.
"""

from __future__ import annotations

from enum import IntEnum

from avrswarm.chip.state import REPORT_SIZE, ChipRow
from avrswarm.jit import kernel


class Fault(IntEnum):
    """Kinds of reports and faults."""

    NONE = 0
    UNDEFINED_OPCODE = 1
    ERASED_FLASH = 2
    READ_OUTSIDE = 3
    WRITE_OUTSIDE = 4
    RESERVED_READ = 5
    STACK_OUTSIDE = 6
    BUSY_FLASH = 7
    RESERVED_WRITE = 8
    LOG_FULL = 9


EXPLANATIONS: dict[Fault, tuple[str, str]] = {
    Fault.UNDEFINED_OPCODE: (
        "undefined opcode",
        "the program counter ran into data or a corrupt image; check stack and function pointers",
    ),
    Fault.ERASED_FLASH: (
        "running erased flash (0xFFFF, executed like sbrs r31, 7)",
        "the program counter left the program; it wraps to 0x0000 or meets the boot loader",
    ),
    Fault.READ_OUTSIDE: (
        "read beyond SRAM (above 0x08FF), gives 0",
        "a pointer or array index is out of range",
    ),
    Fault.WRITE_OUTSIDE: (
        "write beyond SRAM (above 0x08FF), dropped",
        "a pointer or array index is out of range",
    ),
    Fault.RESERVED_READ: (
        "read of a reserved I/O register, gives 0",
        "a pointer is out of range, or the program is for another chip",
    ),
    Fault.RESERVED_WRITE: (
        "write to a reserved I/O register, dropped",
        "a pointer is out of range, or the program is for another chip",
    ),
    Fault.STACK_OUTSIDE: (
        "stack access outside SRAM",
        "the stack overflowed or SP was never set",
    ),
    Fault.BUSY_FLASH: (
        "execution from flash that is being programmed",
        "run self-programming code from the boot section and wait for RWWSB to clear",
    ),
    Fault.LOG_FULL: (
        "more pin changes within one instruction than can be kept",
        "watch fewer pins",
    ),
}


@kernel
def report(c: ChipRow, kind: int, cycle: int, pc: int, address: int) -> None:
    """Note something the chip survives, once per kind and place; in strict mode make it a fault."""
    if c.strict:
        c.fault = kind
        c.fault_address = address
    for number in range(c.report_count):
        if c.reports[number, 0] == kind and c.reports[number, 1] == pc:
            return
    if c.report_count < REPORT_SIZE:
        c.report_cycle[c.report_count] = cycle
        c.reports[c.report_count, 0] = kind
        c.reports[c.report_count, 1] = pc
        c.reports[c.report_count, 2] = address
        c.report_count += 1
    else:
        c.reports_lost = 1
