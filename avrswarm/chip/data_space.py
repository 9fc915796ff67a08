"""Loads, stores and the stack outside SRAM: what the core leaves to the bus, and how far to run.

Shared by the core and by translated code, which calls ``load`` and ``store`` through
``avrswarm.chip.native``.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.bus import EXISTS, is_flag_register, read_io, write_io
from avrswarm.chip.faults import Fault, report
from avrswarm.chip.registers import EECR, SPH, SPL, SREG
from avrswarm.chip.state import DATA_SIZE, LOG_SIZE, SRAM_START, ChipRow, Source
from avrswarm.jit import kernel

LOG_RESERVE = 32
"""Room that must be free in the log before the next instruction runs."""

LATE_EVENTS = 512
"""With interrupts off nothing sees an event before the next access to the I/O space, which lets
everything happen that is due: instructions may run so far past it. But not past events that go to
the log, which has to take all that happens within one instruction (edges of watched timer outputs,
what the USART sends, pins that the bench drives), nor past those of the sources that act rarely,
such as the watchdog, which may reset the chip."""


class Access(IntEnum):
    """What an instruction left to be done on the I/O space."""

    LOAD = 0
    STORE = 1
    SET_BIT = 2
    CLEAR_BIT = 3
    SKIP_IF_CLEAR = 4
    SKIP_IF_SET = 5


@kernel
def byte(memory: NDArray[np.uint8], place: int) -> int:
    """Load a byte as a signed 64-bit number (numba's ``int`` alone would keep it unsigned)."""
    return int(memory[place]) & 0xFF


@kernel
def horizon(c: ChipRow, i_flag: int, visible: int, stop: int) -> int:
    """Return the last cycle in which an instruction may start before the boundary needs attention.

    ``visible`` is the cycle from which the present requests can be sampled, unless they are held.
    """
    if c.reset_cause | c.fault | c.clock_changed or c.log_count > LOG_SIZE - LOG_RESERVE:
        return -1
    if i_flag:
        last = min(c.next_event, stop - 1)
        return min(last, max(visible, c.held_until - 1)) if c.requests else last
    last = min(c.next_event + LATE_EVENTS, c.next_rare)
    if c.outputs_watched:
        last = min(last, c.next_event)
    if not c.tape_in_time:  # tapes in world time drive no pins
        last = min(last, c.next[Source.TAPE])
    return min(last, stop - 1)


@kernel
def read_data(c: ChipRow, tape: NDArray[np.int64], address: int, cycle: int, pc: int) -> int:
    """Read a data address that is not in SRAM."""
    if address < 0x20:
        return byte(c.memory, address)
    if address < SRAM_START:
        if not EXISTS[address]:
            report(c, Fault.RESERVED_READ, cycle, pc, address)
            return 0
        return read_io(c, tape, address, cycle)
    report(c, Fault.READ_OUTSIDE, cycle, pc, address)
    return 0


@kernel
def write_data(
    c: ChipRow, tape: NDArray[np.int64], address: int, value: int, edge: int, pc: int
) -> None:
    """Write a data address that is not in SRAM."""
    if address < 0x20:
        c.memory[address] = value
    elif address < SRAM_START:
        if not EXISTS[address]:
            report(c, Fault.RESERVED_WRITE, edge, pc, address)
            return
        write_io(c, tape, address, value, edge)
    else:
        report(c, Fault.WRITE_OUTSIDE, edge, pc, address)


@kernel
def push_outside(
    c: ChipRow, tape: NDArray[np.int64], sp: int, value: int, edge: int, pc: int
) -> None:
    """Push to an address outside SRAM: on the chip it goes wherever SP points."""
    report(c, Fault.STACK_OUTSIDE, edge, pc, sp)
    if SRAM_START <= sp < DATA_SIZE:
        c.memory[sp] = value
    elif sp != SPL and sp != SPH and sp != SREG:
        write_data(c, tape, sp, value, edge, pc)


@kernel
def push_word(c: ChipRow, tape: NDArray[np.int64], sp: int, value: int, edge: int, pc: int) -> None:
    """Push a return address: low byte first, at the higher address."""
    if SRAM_START < sp < DATA_SIZE:
        c.memory[sp] = value & 0xFF
        c.memory[sp - 1] = value >> 8
    else:
        push_outside(c, tape, sp, value & 0xFF, edge, pc)
        push_outside(c, tape, (sp - 1) & 0xFFFF, value >> 8, edge, pc)


@kernel
def pop_byte(c: ChipRow, tape: NDArray[np.int64], sp: int, cycle: int, pc: int) -> int:
    """Read the stack at ``sp``, wherever that is."""
    if SRAM_START <= sp < DATA_SIZE:
        return byte(c.memory, sp)
    report(c, Fault.STACK_OUTSIDE, cycle, pc, sp)
    return read_data(c, tape, sp, cycle, pc)


@kernel
def change_bit(
    c: ChipRow, tape: NDArray[np.int64], address: int, mask: int, on: int, cycle: int, here: int
) -> None:
    """Do SBI or CBI that ends at ``cycle``: read in the first cycle, write at the end."""
    if is_flag_register(address):
        if not on:
            return
        value = mask
    else:
        value = read_data(c, tape, address, cycle - 2, here)
        if address == EECR:
            value &= 0x38  # only the named strobe is written
        value = value | mask if on else value & ~mask
    write_data(c, tape, address, value, cycle, here)


@kernel
def after_store(c: ChipRow, i_flag: int, cycle: int, limit: int, stop: int, ceiling: int) -> int:
    """Return how far instructions may run after a store to the I/O space landed at ``cycle``."""
    if c.stall or (i_flag and c.sampled_at == cycle and c.sampled):
        return -1
    if c.sampled_at == cycle or c.fault:  # a write that changed nothing leaves the limit
        return min(horizon(c, i_flag, cycle, stop), ceiling)
    return limit
