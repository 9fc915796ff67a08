"""16-bit Timer/Counter1 with PWM (DS 16): TEMP byte, input capture, sixteen waveform modes."""

from __future__ import annotations

from avrswarm.chip.peripherals import adc, timer_unit
from avrswarm.chip.peripherals.timer0 import divisor_01
from avrswarm.chip.peripherals.timer_unit import TopSource, Waveform
from avrswarm.chip.registers import (
    ICR1H,
    ICR1L,
    OCR1AH,
    OCR1AL,
    OCR1BH,
    OCR1BL,
    PRR,
    TCCR1A,
    TCCR1B,
    TCCR1C,
    TCNT1H,
    TCNT1L,
    TIFR1,
    TIMSK1,
)
from avrswarm.chip.state import ChipRow, TimerRow
from avrswarm.jit import kernel

TIMER = 1
_PRR_BIT = 0x08


@kernel
def _set_mode(t: TimerRow, mode: int) -> None:
    """Apply WGM13:10 (DS table 16-4). Reserved 13 counts as normal (assumption)."""
    if 1 <= mode <= 3:
        timer_unit.set_waveform(t, Waveform.PHASE, TopSource.FIXED, (1 << (7 + mode)) - 1)
    elif mode == 4:
        timer_unit.set_waveform(t, Waveform.CTC, TopSource.OCRA, 0)
    elif 5 <= mode <= 7:
        timer_unit.set_waveform(t, Waveform.FAST, TopSource.FIXED, (1 << (3 + mode)) - 1)
    elif mode == 8 or mode == 9:
        source = TopSource.ICR if mode == 8 else TopSource.OCRA
        timer_unit.set_waveform(t, Waveform.PHASE_FREQUENCY, source, 0)
    elif mode == 10 or mode == 11:
        source = TopSource.ICR if mode == 10 else TopSource.OCRA
        timer_unit.set_waveform(t, Waveform.PHASE, source, 0)
    elif mode == 12:
        timer_unit.set_waveform(t, Waveform.CTC, TopSource.ICR, 0)
    elif mode == 14 or mode == 15:
        source = TopSource.ICR if mode == 14 else TopSource.OCRA
        timer_unit.set_waveform(t, Waveform.FAST, source, 0)
    else:
        timer_unit.set_waveform(t, Waveform.NORMAL, TopSource.FIXED, 0xFFFF)


@kernel
def configure(c: ChipRow, edge: int) -> None:
    """Apply TCCR1A, TCCR1B and PRR after a write."""
    t = c.timers[TIMER]
    control_a, control_b = int(c.memory[TCCR1A]), int(c.memory[TCCR1B])
    mode = control_a & 3 | (control_b & 0x18) >> 1
    _set_mode(t, mode)
    stopped = int(c.memory[PRR]) & _PRR_BIT
    timer_unit.set_divisor(t, 0 if stopped else divisor_01(control_b & 7))
    toggles = mode == 9 or mode == 11 or mode == 14 or mode == 15  # DS tables 16-2, 16-3
    timer_unit.set_outputs(c, TIMER, control_a >> 6, control_a >> 4 & 3, toggles, edge)


@kernel
def capture(c: ChipRow, edge: int) -> None:
    """Catch the counter in ICR1, unless ICR1 is the TOP of the mode (DS 16.6)."""
    timer_unit.catch_up(c, TIMER, edge - 1)  # the count before the edge is what ICR1 takes
    t = c.timers[TIMER]
    captured = t.count
    timer_unit.catch_up(c, TIMER, edge)
    if t.top_source == TopSource.ICR:
        return
    t.capture = captured
    if not t.tifr & timer_unit.ICF:
        t.tifr |= timer_unit.ICF
        adc.trigger(c, 7, edge)
        timer_unit.publish(c, TIMER)


@kernel
def capture_edge(c: ChipRow, level: int, edge: int) -> None:
    """Capture if ICES1 selects this edge of ICP1 or of the comparator's output."""
    if (int(c.memory[TCCR1B]) >> 6 & 1) == level:
        capture(c, edge)


@kernel
def read(c: ChipRow, address: int, cycle: int) -> int:
    """Read a Timer/Counter1 register in ``cycle``; low bytes of TCNT1, ICR1 latch the high one."""
    t = c.timers[TIMER]
    if address == TCNT1H or address == ICR1H:
        return t.temp
    timer_unit.catch_up(c, TIMER, cycle)
    if address == TCNT1L:
        t.temp = t.count >> 8
        return t.count & 0xFF
    if address == ICR1L:
        t.temp = t.capture >> 8
        return t.capture & 0xFF
    if address == TIFR1:
        return t.tifr
    if address == OCR1AL:
        return t.buffer[0] & 0xFF
    if address == OCR1AH:
        return t.buffer[0] >> 8
    if address == OCR1BL:
        return t.buffer[1] & 0xFF
    if address == OCR1BH:
        return t.buffer[1] >> 8
    return int(c.memory[address])


@kernel
def is_high_byte(address: int) -> bool:
    """Tell registers whose writes go to TEMP only, where nobody sees them (DS 16.3)."""
    return address == TCNT1H or address == OCR1AH or address == OCR1BH or address == ICR1H


@kernel
def write_high_byte(c: ChipRow, value: int) -> None:
    """Let a CPU write to a high byte go to TEMP, unless PRR stops Timer/Counter1."""
    if not int(c.memory[PRR]) & _PRR_BIT:
        c.timers[TIMER].temp = value


@kernel
def write(c: ChipRow, address: int, value: int, edge: int) -> None:
    """Let a CPU write to a register, but a high byte, land at ``edge``, unless PRR stops it."""
    if int(c.memory[PRR]) & _PRR_BIT:
        return
    t = c.timers[TIMER]
    timer_unit.catch_up(c, TIMER, edge)
    word = t.temp << 8 | value
    if address == TCNT1L:
        timer_unit.set_count(t, word)
    elif address == OCR1AL:
        timer_unit.set_compare(t, 0, word)
    elif address == OCR1BL:
        timer_unit.set_compare(t, 1, word)
    elif address == ICR1L:
        if t.top_source == TopSource.ICR:  # DS 16.11.8: writable only where it defines TOP
            t.capture = word
    elif address == TIFR1:
        t.tifr &= ~value
    elif address == TIMSK1:
        t.enabled = value & 0x27
        c.memory[TIMSK1] = value & 0x27
    elif address == TCCR1A:
        c.memory[TCCR1A] = value & 0xF3
        configure(c, edge)
    elif address == TCCR1B:
        c.memory[TCCR1B] = value & 0xDF
        configure(c, edge)
    elif address == TCCR1C:
        timer_unit.force_compare(c, TIMER, value >> 7 | value >> 5 & 2, edge)
    timer_unit.publish(c, TIMER)
    if TCNT1L <= address <= OCR1BH or address == TIFR1:
        timer_unit.schedule(c, TIMER)
    else:
        timer_unit.update_wants(c, TIMER)
