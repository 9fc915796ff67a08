"""8-bit Timer/Counter2 with PWM and asynchronous operation (DS 18).

On a Kilobot it drives both motors: phase correct PWM, clk/8, 1960.8 Hz. Asynchronous mode has no
crystal to run from on any board modelled here: with AS2 set the counter stands still.
"""

from __future__ import annotations

from avrswarm.chip.peripherals import timer_unit
from avrswarm.chip.peripherals.timer0 import waveform_8bit
from avrswarm.chip.registers import ASSR, OCR2A, OCR2B, PRR, TCCR2A, TCCR2B, TCNT2, TIFR2, TIMSK2
from avrswarm.chip.state import ChipRow
from avrswarm.jit import kernel

TIMER = 2
_PRR_BIT = 0x40
_AS2 = 0x20


@kernel
def _divisor(select: int) -> int:
    """Return the divisor of a CS2 code (DS table 18-9)."""
    if select <= 1:
        return select
    if select == 2:
        return 8
    if select == 3:
        return 32
    if select == 4:
        return 64
    if select == 5:
        return 128
    return 256 if select == 6 else 1024


@kernel
def configure(c: ChipRow, edge: int) -> None:
    """Apply TCCR2A, TCCR2B, ASSR and PRR after a write."""
    t = c.timers[TIMER]
    control_a, control_b = int(c.memory[TCCR2A]), int(c.memory[TCCR2B])
    mode = control_a & 3 | (control_b & 8) >> 1
    waveform_8bit(t, mode)
    stopped = int(c.memory[PRR]) & _PRR_BIT or int(c.memory[ASSR]) & _AS2
    timer_unit.set_divisor(t, 0 if stopped else _divisor(control_b & 7))
    timer_unit.set_outputs(c, TIMER, control_a >> 6, control_a >> 4 & 3, mode & 4 != 0, edge)


@kernel
def read(c: ChipRow, address: int, cycle: int) -> int:
    """Read a Timer/Counter2 register in ``cycle``."""
    timer_unit.catch_up(c, TIMER, cycle)
    t = c.timers[TIMER]
    if address == TCNT2:
        return t.count
    if address == TIFR2:
        return t.tifr
    if address == OCR2A:
        return t.buffer[0]
    if address == OCR2B:
        return t.buffer[1]
    return int(c.memory[address])


@kernel
def write(c: ChipRow, address: int, value: int, edge: int) -> None:
    """Let a CPU write to a Timer/Counter2 register land at ``edge``, unless PRR stops it."""
    if int(c.memory[PRR]) & _PRR_BIT:
        return
    timer_unit.catch_up(c, TIMER, edge)
    t = c.timers[TIMER]
    if address == TCNT2:
        timer_unit.set_count(t, value)
    elif address == OCR2A:
        timer_unit.set_compare(t, 0, value)
    elif address == OCR2B:
        timer_unit.set_compare(t, 1, value)
    elif address == TIFR2:
        t.tifr &= ~value
    elif address == TIMSK2:
        t.enabled = value & 0x07
        c.memory[TIMSK2] = value & 0x07
    elif address == ASSR:
        c.memory[ASSR] = value & 0x60
        configure(c, edge)
    elif address == TCCR2A:
        c.memory[TCCR2A] = value & 0xF3
        configure(c, edge)
    else:  # TCCR2B: FOC bits are strobes and read 0
        c.memory[TCCR2B] = value & 0x0F
        configure(c, edge)
        timer_unit.force_compare(c, TIMER, value >> 7 | value >> 5 & 2, edge)
    timer_unit.publish(c, TIMER)
    if TCNT2 <= address <= OCR2B or address == TIFR2:
        timer_unit.schedule(c, TIMER)
    else:
        timer_unit.update_wants(c, TIMER)
