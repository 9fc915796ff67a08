"""Flash self-programming: SPM, and LPM of what is not program (DS 27; timing reference 7).

Flash changes at the start of an operation, since it cannot be read before the end. A chip that
shares its flash image with others must get a copy of its own first: ``spm`` then returns
``NEEDS_PRIVATE_IMAGE`` and has done nothing.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.agenda import plan
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.peripherals import eeprom
from avrswarm.chip.registers import SPMCSR
from avrswarm.chip.state import NEVER, PAGE_WORDS, ChipRow, Source
from avrswarm.chip.vectors import Vector
from avrswarm.isa.decode import decode_range
from avrswarm.jit import kernel

SPMIE, RWWSB, SIGRD, RWWSRE, BLBSET, PGWRT, PGERS, SPMEN = 128, 64, 32, 16, 8, 4, 2, 1
_COMMAND = SIGRD | RWWSRE | BLBSET | PGWRT | PGERS | SPMEN

DONE, NEEDS_PRIVATE_IMAGE = 0, 1

SPM_CYCLES = 1
"""Cycles of the SPM instruction; the datasheet is silent, emulators use 1, 3, 4 or 6 (conf. U)."""

PROGRAMMING_RC_CYCLES = 32000
"""RC cycles of a page erase, page write or lock bit write: 4.0 ms (datasheet: 3.7 to 4.5 ms)."""

# How many cycles after the edge at which SPMCSR was written the instruction must have started.
SPM_WINDOW_CYCLES = 4
LPM_WINDOW_CYCLES = 3

NRWW_START = 0x3800  # first word of the no-read-while-write section, whatever BOOTSZ is
BLB01, BLB11 = 0x04, 0x10  # lock bits: 0 forbids SPM to write the application, the boot section

SIGNATURE_0, SIGNATURE_1, SIGNATURE_2 = 0x1E, 0x95, 0x0F


class Command(IntEnum):
    """What SPMCSR can ask of the next SPM or LPM; other combinations do nothing."""

    FILL = SPMEN
    ERASE = PGERS | SPMEN
    WRITE = PGWRT | SPMEN
    LOCK = BLBSET | SPMEN  # with LPM: read fuses and lock bits
    RWW_ENABLE = RWWSRE | SPMEN
    SIGNATURE = SIGRD | SPMEN  # LPM only


@kernel
def power_on(c: ChipRow) -> None:
    """Power on or reset: an operation that is running counts as completed (assumption)."""
    c.spm_window = NEVER
    c.spm_done = NEVER
    c.rww_busy = 0
    _erase_buffer(c)
    schedule(c)


@kernel
def _erase_buffer(c: ChipRow) -> None:
    for word in range(PAGE_WORDS):
        c.page_loaded[word] = 0
        c.page_buffer[word] = 0xFFFF


@kernel
def update_request(c: ChipRow) -> None:
    """Recompute SPM_READY: a level, high while SPMEN is 0."""
    ready = c.spm_window == NEVER and c.spm_done == NEVER
    set_request(c, Vector.SPM_READY, ready and int(c.memory[SPMCSR]) & SPMIE != 0)


@kernel
def schedule(c: ChipRow) -> None:
    """Recompute when SPMEN falls by itself: the window closes, or programming ends."""
    when = min(c.spm_done, c.spm_window + SPM_WINDOW_CYCLES, NEVER)
    plan(c, Source.FLASH, when)


@kernel
def _settle(c: ChipRow) -> None:
    """Clear SPMEN and the command bits."""
    c.spm_window = NEVER
    c.spm_done = NEVER
    c.memory[SPMCSR] = int(c.memory[SPMCSR]) & SPMIE
    update_request(c)
    eeprom.update_request(c)
    schedule(c)


@kernel
def catch_up(c: ChipRow, edge: int) -> None:
    """Let SPMEN fall if it does at or before ``edge``."""
    if c.spm_done <= edge or c.spm_window + SPM_WINDOW_CYCLES <= edge:
        _settle(c)


@kernel
def read_spmcsr(c: ChipRow, cycle: int) -> int:
    """Read SPMCSR in ``cycle``."""
    catch_up(c, cycle)
    return int(c.memory[SPMCSR]) | (RWWSB if c.rww_busy else 0)


@kernel
def steady_until(c: ChipRow, cycle: int) -> int:
    """Return when SPMCSR may next read otherwise than in ``cycle``."""
    return cycle if c.spm_window != NEVER else c.spm_done


@kernel
def write_spmcsr(c: ChipRow, value: int, edge: int) -> None:
    """Let a CPU write land at ``edge``: SPMIE always, a command unless something is programmed."""
    catch_up(c, edge)
    eeprom.catch_up(c, edge)
    if c.spm_done != NEVER:
        c.memory[SPMCSR] = int(c.memory[SPMCSR]) & _COMMAND | value & SPMIE
    elif value & SPMEN and c.eeprom_done == NEVER:
        c.memory[SPMCSR] = value & (SPMIE | _COMMAND)
        c.spm_window = edge
    else:
        c.memory[SPMCSR] = value & SPMIE
        c.spm_window = NEVER
    update_request(c)
    schedule(c)


@kernel
def _program(c: ChipRow, cycle: int, halt: bool) -> None:
    """Keep the flash busy from the end of the SPM instruction on, with the CPU halted or not."""
    duration = eeprom.programming_cycles(c, PROGRAMMING_RC_CYCLES)
    c.spm_window = NEVER  # SPMEN stays 1 until done
    c.spm_done = cycle + SPM_CYCLES + duration
    if halt:
        c.stall += duration
    update_request(c)
    eeprom.update_request(c)
    schedule(c)


@kernel
def _change_page(
    c: ChipRow,
    flash: NDArray[np.uint16],
    code: NDArray[np.uint32],
    first: int,
    erase: bool,
    cycle: int,
) -> None:
    """Erase the page that begins at word ``first``, or program the page buffer into it."""
    for word in range(PAGE_WORDS):
        flash[first + word] = (
            0xFFFF if erase else int(flash[first + word]) & int(c.page_buffer[word])
        )
    if not erase:
        _erase_buffer(c)
    decode_range(flash, code, first, PAGE_WORDS)
    c.flash_changed = 1
    if first < NRWW_START:
        c.rww_busy = 1
    _program(c, cycle, first >= NRWW_START)


@kernel
def spm(
    c: ChipRow, flash: NDArray[np.uint16], code: NDArray[np.uint32], pc: int, cycle: int
) -> int:
    """Execute the SPM instruction at word address ``pc`` that starts in ``cycle``.

    Returns ``DONE``, or ``NEEDS_PRIVATE_IMAGE``: copy the image and execute the instruction again.
    """
    catch_up(c, cycle)
    eeprom.catch_up(c, cycle)
    allowed = pc >= c.boot_start and c.spm_done == NEVER and c.eeprom_done == NEVER
    if not allowed or not c.spm_window <= cycle < c.spm_window + SPM_WINDOW_CYCLES:
        return DONE
    if not c.private_image:
        return NEEDS_PRIVATE_IMAGE
    command = int(c.memory[SPMCSR]) & _COMMAND
    z = int(c.memory[31]) << 8 | int(c.memory[30])
    match command:
        case Command.FILL:
            word = z >> 1 & (PAGE_WORDS - 1)
            if not c.page_loaded[word]:  # DS 27.8: a word can be loaded once
                c.page_loaded[word] = 1
                c.page_buffer[word] = int(c.memory[1]) << 8 | int(c.memory[0])
            c.rww_busy = 0
            _settle(c)
        case Command.ERASE | Command.WRITE:
            first = z >> 1 & 0x3FFF & ~(PAGE_WORDS - 1)
            forbidden_by = BLB11 if first >= c.boot_start else BLB01
            if int(c.fuses[1]) & forbidden_by == 0:
                _settle(c)
            else:
                _change_page(c, flash, code, first, command == Command.ERASE, cycle)
        case Command.LOCK:
            # DS 27.8: lock bits can only be cleared. The CPU keeps running (assumption).
            c.fuses[1] = int(c.fuses[1]) & (int(c.memory[0]) | 0xC0)
            _program(c, cycle, False)
        case Command.RWW_ENABLE:
            c.rww_busy = 0
            _erase_buffer(c)
            _settle(c)
        case _:
            pass
    return DONE


@kernel
def _signature_byte(c: ChipRow, place: int) -> int:
    """Return a byte of the signature row (DS 27.8); unlisted ones read 0xFF (assumption)."""
    match place:
        case 0:
            return SIGNATURE_0
        case 1:
            return c.oscillator_calibration
        case 2:
            return SIGNATURE_1
        case 4:
            return SIGNATURE_2
        case _:
            return 0xFF


@kernel
def _lpm_special(c: ChipRow, flash: NDArray[np.uint16], z: int, cycle: int) -> int:
    """LPM with a command window open or the RWW section busy."""
    if c.spm_window <= cycle < c.spm_window + LPM_WINDOW_CYCLES:
        command = int(c.memory[SPMCSR]) & _COMMAND
        if command == Command.SIGNATURE:
            _settle(c)
            return _signature_byte(c, z & 0x7FFF)
        if command == Command.LOCK:
            _settle(c)
            return int(c.fuses[z & 3])
    word = z >> 1 & 0x3FFF
    if c.rww_busy and word < NRWW_START:
        return 0xFF
    return int(flash[word]) >> (8 * (z & 1)) & 0xFF


@kernel
def lpm(c: ChipRow, flash: NDArray[np.uint16], z: int, cycle: int) -> int:
    """Return what an LPM that starts in ``cycle`` reads at byte address ``z``."""
    if c.spm_window == NEVER and c.rww_busy == 0:
        return int(flash[z >> 1 & 0x3FFF]) >> (8 * (z & 1)) & 0xFF
    return _lpm_special(c, flash, z, cycle)
