"""Sleep modes: which clocks stop, what wakes, how long waking takes (DS 9; reference 8.1)."""

from __future__ import annotations

from avrswarm.chip.agenda import update_next_event
from avrswarm.chip.peripherals import (
    adc,
    analog_comparator,
    clock,
    gpio,
    spi,
    timer_unit,
    twi,
    usart,
)
from avrswarm.chip.registers import ADCSRA, EIMSK, SMCR
from avrswarm.chip.state import NEVER, RUNNING, ChipRow, Source
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

IDLE, ADC_NOISE_REDUCTION, POWER_DOWN, POWER_SAVE = 0, 1, 2, 3
WAKE_HALT_CYCLES = 4  # DS 9.1: the CPU is halted four cycles in addition to the start-up time
START_UP_CYCLES = 6  # DS table 8-9: internal RC oscillator from power-down and power-save

_ALL_VECTORS = (1 << 26) - 2
_ASYNCHRONOUS = (
    1 << Vector.INT0
    | 1 << Vector.INT1
    | 1 << Vector.PCINT0
    | 1 << Vector.PCINT1
    | 1 << Vector.PCINT2
    | 1 << Vector.WDT
    | 1 << Vector.TWI
)
_WITH_ADC = _ASYNCHRONOUS | 1 << Vector.ADC | 1 << Vector.EE_READY | 1 << Vector.SPM_READY


@kernel
def wakes(c: ChipRow) -> int:
    """Return the vectors that can end the present sleep mode."""
    mode = c.asleep - 1
    if mode == IDLE:
        return _ALL_VECTORS
    if mode == ADC_NOISE_REDUCTION:
        return _WITH_ADC
    return _ASYNCHRONOUS


@kernel
def fall_asleep(c: ChipRow, edge: int) -> None:
    """Enter the mode that SMCR selects at ``edge``."""
    mode = int(c.memory[SMCR]) >> 1 & 7
    if mode != IDLE:
        for timer in range(3):
            timer_unit.catch_up(c, timer, edge)
    c.asleep = 1 + mode
    c.asleep_since = edge
    is_converter_on = int(c.memory[ADCSRA]) & adc.ADEN != 0 and c.adc_stopped == RUNNING
    if mode <= ADC_NOISE_REDUCTION and is_converter_on:
        adc.catch_up(c, edge)
        if not c.adc_busy:
            adc.start_single(c, edge)  # DS 24.6: entering the mode starts a conversion
    if mode != IDLE:
        for timer in range(3):
            timer_unit.schedule(c, timer)
        usart.stop_clock(c, edge)
        spi.stop_clock(c, edge)
        twi.stop_clock(c, edge)
        if mode != ADC_NOISE_REDUCTION:
            adc.stop_clock(c, edge)


@kernel
def wake(c: ChipRow, boundary: int) -> int:
    """End the sleep at ``boundary``; return the cycle at which the CPU goes on."""
    mode = c.asleep - 1
    resumed = boundary
    if mode > ADC_NOISE_REDUCTION:
        resumed += START_UP_CYCLES
    c.asleep = 0
    if mode != IDLE:
        clock.end_of_freeze(c, c.asleep_since, resumed)
        gpio.clock_returns(c, resumed)
        analog_comparator.update(c, resumed)
    return resumed + WAKE_HALT_CYCLES


@kernel
def can_ever_wake(c: ChipRow, interrupts_on: bool) -> bool:
    """Tell whether anything known can end this sleep: an enabled interrupt or the watchdog."""
    if c.next[Source.WATCHDOG] != NEVER:
        return True
    update_next_event(c)
    return interrupts_on and (c.next_event != NEVER or int(c.memory[EIMSK]) != 0)
