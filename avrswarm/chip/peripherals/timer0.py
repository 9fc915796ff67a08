"""8-bit Timer/Counter0 with PWM (DS 15): registers to the shared timer unit."""

from __future__ import annotations

from avrswarm.chip.peripherals import timer_unit
from avrswarm.chip.peripherals.timer_unit import TopSource, Waveform
from avrswarm.chip.registers import OCR0A, OCR0B, PRR, TCCR0A, TCCR0B, TCNT0, TIFR0, TIMSK0
from avrswarm.chip.state import ChipRow, TimerRow
from avrswarm.jit import kernel

TIMER = 0
_PRR_BIT = 0x20


@kernel
def waveform_8bit(t: TimerRow, mode: int) -> None:
    """Apply WGM2:0 of an 8-bit timer (DS table 15-8). Reserved 4, 6: as normal (assumption)."""
    if mode == 1:
        timer_unit.set_waveform(t, Waveform.PHASE, TopSource.FIXED, 0xFF)
    elif mode == 2:
        timer_unit.set_waveform(t, Waveform.CTC, TopSource.OCRA, 0)
    elif mode == 3:
        timer_unit.set_waveform(t, Waveform.FAST, TopSource.FIXED, 0xFF)
    elif mode == 5:
        timer_unit.set_waveform(t, Waveform.PHASE, TopSource.OCRA, 0)
    elif mode == 7:
        timer_unit.set_waveform(t, Waveform.FAST, TopSource.OCRA, 0)
    else:
        timer_unit.set_waveform(t, Waveform.NORMAL, TopSource.FIXED, 0xFF)


@kernel
def divisor_01(select: int) -> int:
    """Return the divisor of a CS code of Timer/Counter0 or 1 (DS table 15-9)."""
    if select <= 1:
        return select
    if select == 2:
        return 8
    if select == 3:
        return 64
    if select == 4:
        return 256
    if select == 5:
        return 1024
    return timer_unit.EXTERNAL_FALLING if select == 6 else timer_unit.EXTERNAL_RISING


@kernel
def configure(c: ChipRow, edge: int) -> None:
    """Apply TCCR0A, TCCR0B and PRR after a write."""
    t = c.timers[TIMER]
    control_a, control_b = int(c.memory[TCCR0A]), int(c.memory[TCCR0B])
    mode = control_a & 3 | (control_b & 8) >> 1
    waveform_8bit(t, mode)
    stopped = int(c.memory[PRR]) & _PRR_BIT
    timer_unit.set_divisor(t, 0 if stopped else divisor_01(control_b & 7))
    timer_unit.set_outputs(c, TIMER, control_a >> 6, control_a >> 4 & 3, mode & 4 != 0, edge)


@kernel
def read(c: ChipRow, address: int, cycle: int) -> int:
    """Read a Timer/Counter0 register in ``cycle``."""
    timer_unit.catch_up(c, TIMER, cycle)
    t = c.timers[TIMER]
    if address == TCNT0:
        return t.count
    if address == TIFR0:
        return t.tifr
    if address == OCR0A:
        return t.buffer[0]
    if address == OCR0B:
        return t.buffer[1]
    return int(c.memory[address])


@kernel
def write(c: ChipRow, address: int, value: int, edge: int) -> None:
    """Let a CPU write to a Timer/Counter0 register land at ``edge``, unless PRR stops it."""
    if int(c.memory[PRR]) & _PRR_BIT:
        return
    timer_unit.catch_up(c, TIMER, edge)
    t = c.timers[TIMER]
    if address == TCNT0:
        timer_unit.set_count(t, value)
    elif address == OCR0A:
        timer_unit.set_compare(t, 0, value)
    elif address == OCR0B:
        timer_unit.set_compare(t, 1, value)
    elif address == TIFR0:
        t.tifr &= ~value
    elif address == TIMSK0:
        t.enabled = value & 0x07
        c.memory[TIMSK0] = value & 0x07
    elif address == TCCR0A:
        c.memory[TCCR0A] = value & 0xF3
        configure(c, edge)
    else:  # TCCR0B: FOC bits are strobes and read 0
        c.memory[TCCR0B] = value & 0x0F
        configure(c, edge)
        timer_unit.force_compare(c, TIMER, value >> 7 | value >> 5 & 2, edge)
    timer_unit.publish(c, TIMER)
    if TCNT0 <= address <= OCR0B or address == TIFR0:
        timer_unit.schedule(c, TIMER)
    else:
        timer_unit.update_wants(c, TIMER)
