"""EEPROM data memory (DS 8.4, 8.6; timing reference 6).

Programming is one known cycle: when EEPE falls. The cell gets its new value at the start, since
nothing inside the chip can read it before the end.
"""

from __future__ import annotations

from avrswarm.chip.agenda import plan
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.registers import EEARH, EEARL, EECR, EEDR
from avrswarm.chip.state import EEPROM_SIZE, NEVER, PAGE_WORDS, UNDO_SIZE, ChipRow, Source
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

EEPM, EERIE, EEMPE, EEPE, EERE = 0x30, 0x08, 0x04, 0x02, 0x01
ATOMIC, ERASE_ONLY, WRITE_ONLY = 0x00, 0x10, 0x20

READ_STALL_CYCLES = 4
WRITE_STALL_CYCLES = 2

WINDOW_CYCLES = 4
"""EEMPE reads 1 for this many cycles, and EEPE may land 1, 2 or 3 cycles after it. At a distance of
exactly 4 the datasheet can be read either way; like both oracles this model refuses (conf. U)."""

ATOMIC_RC_CYCLES = 26368  # DS table 8-2
SPLIT_RC_CYCLES = 14400  # DS table 8-1: 1.8 ms


@kernel
def power_on(c: ChipRow) -> None:
    """Set what is not zero after power-on."""
    c.eeprom_window = NEVER
    c.eeprom_done = NEVER
    schedule(c)


@kernel
def keeps_over_reset(c: ChipRow, address: int) -> bool:
    """Tell registers that a reset keeps: EEAR, and EEPM in EECR while a write is running."""
    if address == EECR:
        return c.eeprom_done != NEVER
    return EEARL <= address <= EEARH


@kernel
def on_reset(c: ChipRow, edge: int) -> None:
    """Reset at ``edge``; a running write keeps EEPM and completes (DS 8.6.3, reference 6)."""
    catch_up(c, edge)
    c.eeprom_window = NEVER
    c.memory[EECR] = int(c.memory[EECR]) & EEPM if c.eeprom_done != NEVER else 0
    update_request(c)
    schedule(c)


@kernel
def programming_cycles(c: ChipRow, rc_cycles: int) -> int:
    """Return how many CPU cycles a number of RC oscillator cycles last, rounded up."""
    return (rc_cycles + c.clock_divisor - 1) // c.clock_divisor


@kernel
def catch_up(c: ChipRow, edge: int) -> None:
    """Let programming end if it ends at or before ``edge``."""
    if c.eeprom_done <= edge:
        c.eeprom_done = NEVER
        update_request(c)
        schedule(c)


@kernel
def schedule(c: ChipRow) -> None:
    """Recompute when the EEPROM next matters to others."""
    plan(c, Source.EEPROM, c.eeprom_done)


@kernel
def update_request(c: ChipRow) -> None:
    """Recompute EE_READY: a level, high while neither EEPROM nor flash is being programmed."""
    ready = c.eeprom_done == NEVER and c.spm_done == NEVER
    set_request(c, Vector.EE_READY, ready and int(c.memory[EECR]) & EERIE != 0)


@kernel
def _address(c: ChipRow) -> int:
    return (int(c.memory[EEARH]) << 8 | int(c.memory[EEARL])) & (EEPROM_SIZE - 1)


@kernel
def undo(c: ChipRow, changes: int) -> None:
    """Put cells back to what they were when only ``changes`` had been written."""
    while c.eeprom_changes > changes:
        c.eeprom_changes -= 1
        before = c.eeprom_undo[c.eeprom_changes % UNDO_SIZE]
        c.eeprom[before >> 8] = before & 0xFF


@kernel
def _begin(c: ChipRow, edge: int) -> None:
    """Start programming the selected cell at ``edge``."""
    address = _address(c)
    mode = int(c.memory[EECR]) & EEPM
    rc_cycles = SPLIT_RC_CYCLES
    c.eeprom_undo[c.eeprom_changes % UNDO_SIZE] = address << 8 | int(c.eeprom[address])
    c.eeprom_changes += 1
    if mode == ATOMIC:
        c.eeprom[address] = c.memory[EEDR]
        rc_cycles = ATOMIC_RC_CYCLES
    elif mode == ERASE_ONLY:
        c.eeprom[address] = 0xFF
    elif mode == WRITE_ONLY:
        c.eeprom[address] = int(c.eeprom[address]) & int(c.memory[EEDR])
    else:  # reserved: time passes, nothing is written (assumption)
        rc_cycles = ATOMIC_RC_CYCLES
    c.eeprom_done = edge + programming_cycles(c, rc_cycles)
    c.stall += WRITE_STALL_CYCLES
    for word in range(PAGE_WORDS):  # DS 27.8: an EEPROM write loses what the page buffer holds
        c.page_loaded[word] = 0
        c.page_buffer[word] = 0xFFFF
    schedule(c)


@kernel
def _write_control(c: ChipRow, value: int, edge: int) -> None:
    idle = c.eeprom_done == NEVER
    kept = EERIE | EEPM if idle else EERIE  # DS 8.6.3: EEPM writes are ignored while EEPE is set
    c.memory[EECR] = value & kept | int(c.memory[EECR]) & ~kept & 0xFF
    if value & EEPE:
        armed = c.eeprom_window < edge < c.eeprom_window + WINDOW_CYCLES
        if armed and idle and not edge < c.spm_done < NEVER:
            _begin(c, edge)
    elif value & EEMPE:  # opens (again); a 0 written here leaves an open window open
        c.eeprom_window = edge
    if value & EERE and c.eeprom_done == NEVER:
        c.memory[EEDR] = c.eeprom[_address(c)]
        c.stall += READ_STALL_CYCLES
    update_request(c)


@kernel
def read(c: ChipRow, address: int, cycle: int) -> int:
    """Read EECR, EEDR, EEARL or EEARH in ``cycle``."""
    if address != EECR:
        return int(c.memory[address])
    catch_up(c, cycle)
    value = int(c.memory[EECR])
    if c.eeprom_window <= cycle < c.eeprom_window + WINDOW_CYCLES:
        value |= EEMPE
    if c.eeprom_done != NEVER:
        value |= EEPE
    return value


@kernel
def steady_until(c: ChipRow, cycle: int) -> int:
    """Return when EECR may next read otherwise than in ``cycle``."""
    closes = c.eeprom_window + WINDOW_CYCLES
    return min(closes, c.eeprom_done) if c.eeprom_window <= cycle < closes else c.eeprom_done


@kernel
def write(c: ChipRow, address: int, value: int, edge: int) -> None:
    """Let a CPU write land at ``edge``; address and data are locked while programming runs."""
    catch_up(c, edge)
    if address == EECR:
        _write_control(c, value, edge)
    elif c.eeprom_done == NEVER:
        c.memory[address] = value & 0x03 if address == EEARH else value
