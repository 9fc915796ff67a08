"""Watchdog timer (DS 11.8, 11.9; timing reference 8.2).

Its counter runs on an oscillator of its own, whatever happens to the CPU's clock, so it counts
world time units. It restarts at a reset, at WDR and at each timeout. A disabled watchdog counts
too, without effect. Changing WDP does not restart it, but a counter beyond a new, shorter timeout
is taken modulo that (assumption: the timeout is a tap of a ripple counter, whose higher bits do
not matter).
"""

from __future__ import annotations

from avrswarm.chip.agenda import plan
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.registers import MCUSR, WDTCSR
from avrswarm.chip.state import HELD_IN_RESET, NEVER, ChipRow, Source
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

WDIF, WDIE, WDCE, WDE = 0x80, 0x40, 0x10, 0x08
WDP = 0x27
WDRF = 0x08  # in MCUSR
START_UP_OVER = 0x100  # in ``ChipRow.reset_cause``: the chip has been held in reset long enough
_WDTON = 0x10  # in the high fuse byte; 0 = always on

FIRST_TIMEOUT = 2048  # oscillator cycles with WDP = 0
LAST_WDP = 9  # 10 to 15 are reserved and count as 9 (assumption)

WINDOW_CYCLES = 4
"""WDCE reads 1 for this many cycles; a change may land 1, 2 or 3 after it (at 4: conf. U)."""


@kernel
def power_on(c: ChipRow) -> None:
    """Set what is not zero after power-on; fuses must be in place."""
    on_reset(c, 0)


@kernel
def on_reset(c: ChipRow, edge: int) -> None:
    """Reset at ``edge``; MCUSR must already tell the cause: WDRF keeps WDE set (DS 11.9.2)."""
    on = _is_always_on(c) or int(c.memory[MCUSR]) & WDRF != 0
    c.memory[WDTCSR] = WDE if on else 0
    c.watchdog_window = NEVER
    c.watchdog_start = edge
    c.watchdog_elapsed = 0
    update_request(c)
    schedule(c)


@kernel
def _is_always_on(c: ChipRow) -> bool:
    return int(c.fuses[3]) & _WDTON == 0


@kernel
def _timeout(c: ChipRow) -> int:
    """Return the selected timeout in time units."""
    control = int(c.memory[WDTCSR])
    select = min(control & 7 | control >> 2 & 8, LAST_WDP)
    return (FIRST_TIMEOUT << select) * c.watchdog_period


@kernel
def schedule(c: ChipRow) -> None:
    """Recompute the cycle of the next timeout that has an effect."""
    when = NEVER
    if c.asleep == HELD_IN_RESET:  # its oscillator times the start-up (DS 11.2)
        when = c.starts_at - 1
    elif int(c.memory[WDTCSR]) & (WDE | WDIE):
        remaining = _timeout(c) - c.watchdog_elapsed
        when = c.watchdog_start + (remaining + c.period - 1) // c.period
    plan(c, Source.WATCHDOG, when)


@kernel
def update_request(c: ChipRow) -> None:
    """Recompute the watchdog's interrupt request."""
    set_request(c, Vector.WDT, int(c.memory[WDTCSR]) & (WDIF | WDIE) == WDIF | WDIE)


@kernel
def _time_out(c: ChipRow) -> None:
    """Do what a timeout does in the present mode (DS 11.8)."""
    control = int(c.memory[WDTCSR])
    if control & WDIE and not (control & WDE and control & WDIF):
        c.memory[WDTCSR] = control | WDIF
        update_request(c)
    elif control & WDE:  # also if the interrupt of the timeout before was never served
        c.reset_cause |= WDRF


@kernel
def bring_to(c: ChipRow, edge: int) -> None:
    """Let timeouts up to and including ``edge`` happen, and count from there."""
    timeout = _timeout(c)
    elapsed = c.watchdog_elapsed + (edge - c.watchdog_start) * c.period
    if elapsed >= timeout:
        _time_out(c)
        if elapsed >= 2 * timeout and int(c.memory[WDTCSR]) & WDIE:
            _time_out(c)
        elapsed %= timeout
    c.watchdog_elapsed = elapsed
    c.watchdog_start = edge


@kernel
def catch_up(c: ChipRow, edge: int) -> None:
    """Let timeouts up to and including ``edge`` happen."""
    if edge < c.next[Source.WATCHDOG]:
        return
    if c.asleep == HELD_IN_RESET:
        c.reset_cause |= START_UP_OVER
        plan(c, Source.WATCHDOG, NEVER)
        return
    bring_to(c, edge)
    schedule(c)


@kernel
def restart(c: ChipRow, edge: int) -> None:
    """Execute WDR: the counter is 0 at ``edge``."""
    catch_up(c, edge)
    c.watchdog_start = edge
    c.watchdog_elapsed = 0
    schedule(c)


@kernel
def read(c: ChipRow, cycle: int) -> int:
    """Read WDTCSR in ``cycle``."""
    catch_up(c, cycle)
    value = int(c.memory[WDTCSR])
    if c.watchdog_window <= cycle < c.watchdog_window + WINDOW_CYCLES:
        value |= WDCE
    return value


@kernel
def write(c: ChipRow, value: int, edge: int) -> None:
    """Let a CPU write land at ``edge``: WDIF and WDIE always, WDE and WDP as timed."""
    bring_to(c, edge)
    old = int(c.memory[WDTCSR])
    new = old & WDIF & ~value | value & WDIE
    if c.watchdog_window < edge < c.watchdog_window + WINDOW_CYCLES and not value & WDCE:
        new |= value & (WDE | WDP)
        c.watchdog_window = NEVER
    else:
        new |= (old | value) & WDE | old & WDP
        if value & WDCE and value & WDE:
            c.watchdog_window = edge
    if _is_always_on(c):
        new = new & ~WDIE | WDE
    elif int(c.memory[MCUSR]) & WDRF:
        new |= WDE
    c.memory[WDTCSR] = new & 0xFF
    c.watchdog_elapsed %= _timeout(c)
    update_request(c)
    schedule(c)
