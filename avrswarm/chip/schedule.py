"""Who acts next: the one table from event sources to peripherals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.agenda import plan, update_next_event
from avrswarm.chip.peripherals import (
    adc,
    analog_comparator,
    eeprom,
    gpio,
    self_programming,
    spi,
    timer1,
    timer_unit,
    twi,
    usart,
    watchdog,
)
from avrswarm.chip.peripherals.gpio import Action
from avrswarm.chip.state import IDLE_SLEEP, NEVER, ChipRow, Source, Tape, Touch
from avrswarm.jit import kernel


@kernel
def rewind_tape(c: ChipRow, tape: NDArray[np.int64]) -> None:
    """Look up the next stimulus, after a tape was exchanged or extended."""
    _find_next_stimulus(c, tape)
    update_next_event(c)


@kernel
def cycle_at(c: ChipRow, time: int) -> int:
    """Return the first cycle of this chip that begins at or after a world time."""
    return c.time_base_cycle - (c.time_base - time) // c.period


@kernel
def _find_next_stimulus(c: ChipRow, tape: NDArray[np.int64]) -> None:
    when = NEVER
    if c.tape_next < tape.shape[0]:
        when = tape[c.tape_next, 0]
        if c.tape_in_time:
            when = cycle_at(c, when) + analog_comparator.ACO_SYNC_CYCLES
    plan(c, Source.TAPE, when)


@kernel
def handle_due(c: ChipRow, tape: NDArray[np.int64], edge: int) -> None:
    """Let all events at edges up to and including ``edge`` happen, in order of time."""
    while c.next_event <= edge:
        now = c.next_event
        c.io_touched |= Touch.EVENT  # what is being proven about a loop may not hold any more
        if c.idle_reads_io:
            c.idle_period = 0
        if c.next[Source.ADC] <= now:  # before the tape: a sample takes the voltage before the edge
            adc.catch_up(c, now)
        if c.next[Source.TAPE] <= now:
            _play_tape(c, tape, now)
            update_next_event(c)
            if c.next_event > now:  # as it is most of the time
                continue
        synchronise_pins(c, now)
        for timer in range(3):
            if c.next[Source.TIMER0 + timer] <= now:
                timer_unit.catch_up(c, timer, now)
                timer_unit.schedule(c, timer)
        if c.next[Source.EEPROM] <= now:
            eeprom.catch_up(c, now)
        if c.next[Source.FLASH] <= now:
            self_programming.catch_up(c, now)
        if c.next[Source.WATCHDOG] <= now:
            watchdog.catch_up(c, now)
        if c.next[Source.USART_TX] <= now:
            usart.catch_up_tx(c, now)
        if c.next[Source.USART_RX] <= now:
            usart.catch_up_rx(c, now)
        if c.next[Source.SPI] <= now:
            spi.catch_up(c, now)
        if c.next[Source.TWI] <= now:
            twi.catch_up(c, now)
        update_next_event(c)


@kernel
def _play_tape(c: ChipRow, tape: NDArray[np.int64], now: int) -> None:
    while c.next[Source.TAPE] <= now:
        kind = tape[c.tape_next, 1]
        first = tape[c.tape_next, 2]
        second = tape[c.tape_next, 3]
        c.tape_next += 1
        if kind == Tape.PIN:
            _drive_pin(c, first, second, now)
        elif kind == Tape.ADC:
            if first < 16:
                adc.catch_up(c, now)
                c.adc_microvolts[first] = second
            else:
                c.ain_microvolts[first - 16] = second
            analog_comparator.update(c, now)
        elif kind == Tape.ACO:
            c.comparator_input = first
            analog_comparator.update(c, now)
        else:
            if c.pin_level[gpio.D] & c.analog_pin != c.analog_pin:
                first = second = 0  # the analog supply is switched off
            if c.adc_busy:
                adc.catch_up(c, now)
            c.adc_microvolts[0] = second & 0xFFFFFFFF
            c.adc_microvolts[1] = second >> 32
            c.comparator_input = first
            analog_comparator.update(c, now)
        _find_next_stimulus(c, tape)


@kernel
def _drive_pin(c: ChipRow, pin: int, level: int, edge: int) -> None:
    port = pin >> 3
    bit = 1 << (pin & 7)
    if level == 2:
        c.outside_driven[port] &= ~bit
    else:
        c.outside_driven[port] |= bit
        if level:
            c.outside_level[port] |= bit
        else:
            c.outside_level[port] &= ~bit
    gpio.refresh(c, port, edge)
    if port == gpio.B:
        spi.slave_select(c, edge)


@kernel
def synchronise_pins(c: ChipRow, edge: int) -> None:
    """Let pin edges act that have come through their synchronisers by ``edge``."""
    while c.next[Source.PINS] <= edge:
        _pin_action(c, edge)


@kernel
def _pin_action(c: ChipRow, now: int) -> None:
    entry = gpio.take_delayed(c)
    action = entry & 0xFF
    if Action.ICP_FALL <= action <= Action.T1_RISE:
        _clocked_edge(c, action, now)
        return
    match action:
        case Action.INT0 | Action.INT1:
            gpio.interrupt_edge(c, action - Action.INT0, entry >> 8, now)
        case Action.PCINT0 | Action.PCINT1 | Action.PCINT2:
            gpio.pin_change(c, action - Action.PCINT0, entry >> 8)
        case Action.RXD:
            usart.rxd_edge(c, now)
        case Action.COMPARATOR:
            analog_comparator.synchronised(c, entry >> 8, now)
        case _:
            pass


@kernel
def _clocked_edge(c: ChipRow, action: int, now: int) -> None:
    """Act on an edge that only a running clk_IO sees; ``gpio.clock_returns`` sees to the others."""
    if c.asleep > IDLE_SLEEP:
        if action >= Action.T0_FALL:
            c.slept_edges ^= 1 if action < Action.T1_FALL else 2
        return
    match action:
        case Action.ICP_FALL | Action.ICP_RISE:
            c.capture_level = action - Action.ICP_FALL
            timer1.capture_edge(c, c.capture_level, now)
        case Action.T0_FALL:
            timer_unit.external_clock(c, 0, timer_unit.EXTERNAL_FALLING, now)
        case Action.T0_RISE:
            timer_unit.external_clock(c, 0, timer_unit.EXTERNAL_RISING, now)
        case Action.T1_FALL:
            timer_unit.external_clock(c, 1, timer_unit.EXTERNAL_FALLING, now)
        case _:
            timer_unit.external_clock(c, 1, timer_unit.EXTERNAL_RISING, now)
