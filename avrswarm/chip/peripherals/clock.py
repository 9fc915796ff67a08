"""System clock, its calibration and gating; MCUCR (DS 9, 10, 12; timing reference 8.4, 2.1)."""

from __future__ import annotations

from avrswarm.chip.peripherals import (
    adc,
    eeprom,
    gpio,
    self_programming,
    spi,
    timer0,
    timer1,
    timer2,
    timer_unit,
    twi,
    usart,
    watchdog,
)
from avrswarm.chip.registers import CLKPR, MCUCR, OSCCAL, PRR
from avrswarm.chip.state import NEVER, ChipRow
from avrswarm.jit import kernel

CLKPCE = 0x80
PUD, IVSEL, IVCE = 0x10, 0x02, 0x01
_CKDIV8 = 0x80  # in the low fuse byte; 0 = start with the clock divided by 8
_PRTWI, _PRSPI, _PRUSART, _PRADC = 0x80, 0x04, 0x02, 0x01

WINDOW_CYCLES = 4
"""CLKPCE, IVCE read 1 for this many cycles; a change may land 1, 2 or 3 after (at 4: conf. U)."""

HELD_CYCLES = 5  # IVCE alone holds interrupts at boundaries up to 4 cycles after its own edge

# MODEL of the typical "frequency vs. OSCCAL" chart, not a measurement: two overlapping lines,
# 4.0 MHz at 0x00 to 9.1 MHz at 0x7F, 6.4 MHz at 0x80 to 13.5 MHz at 0xFF (0.7 % a step at 8 MHz).
LOW_RANGE_KHZ, LOW_STEP_KHZ = 4000, 40
HIGH_RANGE_KHZ, HIGH_STEP_KHZ = 6432, 56


@kernel
def power_on(c: ChipRow) -> None:
    """Set what is not zero after power-on; fuses and oscillator must have their factory values."""
    c.time_base_cycle = 0
    c.clock_divisor = 1
    c.eeprom_done = NEVER
    c.spm_done = NEVER
    c.rc_period = c.rc_period_factory
    c.period = c.rc_period
    on_reset(c, 0)


@kernel
def on_reset(c: ChipRow, edge: int) -> None:
    """Reset CLKPR, OSCCAL, PRR and MCUCR at ``edge``."""
    c.clock_change_edge = NEVER
    c.vector_change_edge = NEVER
    c.held_until = 0
    c.vector_base = 0
    c.memory[MCUCR] = 0
    c.memory[PRR] = 0
    c.memory[OSCCAL] = c.oscillator_calibration
    c.rc_period = c.rc_period_factory
    select = 0 if int(c.fuses[0]) & _CKDIV8 else 3
    c.memory[CLKPR] = select
    _set_divisor(c, 1 << select, edge)


# --- time -----------------------------------------------------------------------------------------


@kernel
def rebase(c: ChipRow, edge: int) -> None:
    """Count world time from ``edge`` on, so that the period may change there."""
    c.time_base += (edge - c.time_base_cycle) * c.period
    c.time_base_cycle = edge


@kernel
def set_period(c: ChipRow, edge: int) -> None:
    """Apply ``rc_period`` and ``clock_divisor`` from ``edge`` on; the watchdog must not notice."""
    rebase(c, edge)
    watchdog.bring_to(c, edge)
    period = c.rc_period * c.clock_divisor
    if period != c.period:
        c.period = period
        c.clock_changed = 1
    watchdog.schedule(c)


@kernel
def _rescaled(done: int, edge: int, old: int, new: int) -> int:
    """Return the CPU cycle of a moment fixed in RC cycles, after a change of the divisor."""
    return done if done == NEVER else edge + ((done - edge) * old + new - 1) // new


@kernel
def _set_divisor(c: ChipRow, divisor: int, edge: int) -> None:
    eeprom.catch_up(c, edge)
    self_programming.catch_up(c, edge)
    c.eeprom_done = _rescaled(c.eeprom_done, edge, c.clock_divisor, divisor)
    c.spm_done = _rescaled(c.spm_done, edge, c.clock_divisor, divisor)
    c.clock_divisor = divisor
    set_period(c, edge)
    eeprom.schedule(c)
    self_programming.schedule(c)


@kernel
def read_clkpr(c: ChipRow, cycle: int) -> int:
    """Read CLKPR in ``cycle``."""
    opened = c.clock_change_edge <= cycle < c.clock_change_edge + WINDOW_CYCLES
    return int(c.memory[CLKPR]) | (CLKPCE if opened else 0)


@kernel
def write_clkpr(c: ChipRow, value: int, edge: int) -> None:
    """Let a CPU write to CLKPR land at ``edge``.

    The new clock counts from that edge; on silicon it takes over up to two of its periods later.
    """
    opened = c.clock_change_edge < edge < c.clock_change_edge + WINDOW_CYCLES
    if value & CLKPCE:
        if value == CLKPCE and not opened:  # DS 9.12.2: rewriting it does not extend the window
            c.clock_change_edge = edge
    elif opened:
        c.clock_change_edge = NEVER
        select = value & 0x0F
        c.memory[CLKPR] = select
        # 9 to 15 are reserved; measured by the avr8js authors: 2, 4, ... 128 (conf. B)
        _set_divisor(c, 1 << (select if select <= 8 else select - 8), edge)


@kernel
def _model_khz(osccal: int) -> int:
    if osccal & 0x80:
        return HIGH_RANGE_KHZ + HIGH_STEP_KHZ * (osccal & 0x7F)
    return LOW_RANGE_KHZ + LOW_STEP_KHZ * osccal


@kernel
def osccal_period(c: ChipRow, osccal: int) -> int:
    """Return the RC oscillator's period for an OSCCAL value, by the model above.

    It gives only the ratio to the frequency at this part's factory value, where it is exactly 1.
    """
    wanted = _model_khz(osccal)
    return (c.rc_period_factory * _model_khz(c.oscillator_calibration) + wanted // 2) // wanted


@kernel
def write_osccal(c: ChipRow, value: int, edge: int) -> None:
    """Let a CPU write to OSCCAL land at ``edge``."""
    c.memory[OSCCAL] = value
    c.rc_period = osccal_period(c, value)
    set_period(c, edge)


# --- gating ---------------------------------------------------------------------------------------


@kernel
def write_prr(c: ChipRow, value: int, edge: int) -> None:
    """Let a CPU write to PRR land at ``edge``: a set bit stops the clock of that block."""
    for timer in range(3):
        timer_unit.catch_up(c, timer, edge)
    c.memory[PRR] = value & 0xEF
    timer0.configure(c, edge)
    timer1.configure(c, edge)
    timer2.configure(c, edge)
    for timer in range(3):
        timer_unit.update_wants(c, timer)
    if value & _PRADC:
        adc.stop_clock(c, edge)
    else:
        adc.start_clock(c, edge)
    if value & _PRUSART:
        usart.stop_clock(c, edge)
    else:
        usart.start_clock(c, edge)
    if value & _PRSPI:
        spi.stop_clock(c, edge)
    else:
        spi.start_clock(c, edge)
    if value & _PRTWI:
        twi.stop_clock(c, edge)
    else:
        twi.start_clock(c, edge)


@kernel
def end_of_freeze(c: ChipRow, start: int, end: int) -> None:
    """Start what stood still since ``start`` again at ``end``: clk_IO did not run (sleep)."""
    for timer in range(3):
        c.timers[timer].at = end
    for prescaler in range(2):
        c.prescaler_base[prescaler] += end - start
    for timer in range(3):
        timer_unit.schedule(c, timer)
    reduced = int(c.memory[PRR])  # what PRR stops stays stopped
    if not reduced & _PRADC:  # in ADC noise reduction its clock was not stopped
        adc.start_clock(c, end)
    if not reduced & _PRUSART:
        usart.start_clock(c, end)
    if not reduced & _PRSPI:
        spi.start_clock(c, end)
    if not reduced & _PRTWI:
        twi.start_clock(c, end)


# --- MCUCR ----------------------------------------------------------------------------------------


@kernel
def read_mcucr(c: ChipRow, cycle: int) -> int:
    """Read MCUCR in ``cycle``."""
    opened = c.vector_change_edge <= cycle < c.vector_change_edge + WINDOW_CYCLES
    return int(c.memory[MCUCR]) | (IVCE if opened else 0)


@kernel
def write_mcucr(c: ChipRow, value: int, edge: int) -> None:
    """Let a CPU write to MCUCR land at ``edge``; there is no brown-out for BODS to ignore."""
    old = int(c.memory[MCUCR])
    new = old & IVSEL | value & PUD
    if value & IVCE:
        c.vector_change_edge = edge
        c.held_until = edge + HELD_CYCLES
    elif c.vector_change_edge < edge < c.vector_change_edge + WINDOW_CYCLES:
        c.vector_change_edge = NEVER
        c.held_until = edge + 1  # DS 12: until after the instruction that follows
        new = value & (IVSEL | PUD)
        c.vector_base = c.boot_start if value & IVSEL else 0
    c.memory[MCUCR] = new
    if (new ^ old) & PUD:
        for port in range(3):
            gpio.refresh(c, port, edge)
