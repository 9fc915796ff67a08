"""Power-on and reset: what registers hold before the first instruction (reference 8.3, 8.5)."""

from __future__ import annotations

from avrswarm.chip import idle
from avrswarm.chip.agenda import update_next_event
from avrswarm.chip.peripherals import (
    adc,
    clock,
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
from avrswarm.chip.registers import (
    CLKPR,
    MCUSR,
    OSCCAL,
    SPH,
    SPL,
    TWAR,
    TWDR,
    TWSR,
    UCSR0A,
    UCSR0C,
)
from avrswarm.chip.state import (
    HELD_IN_RESET,
    NEVER,
    RUNNING,
    TIME_UNITS_PER_SECOND,
    ChipRow,
)
from avrswarm.isa.decode import FLASH_WORDS, PC_MASK
from avrswarm.jit import kernel

PORF, EXTRF, BORF, WDRF = 0x01, 0x02, 0x04, 0x08
RAM_END = 0x8FF
WATCHDOG_HZ = 128_000
LOW_FUSE, LOCK, EXTENDED_FUSE, HIGH_FUSE = 0, 1, 2, 3

START_UP_CYCLES = 14  # DS table 8-9: 14 CK after every reset, and the time-out
SHORT_TIME_OUT, LONG_TIME_OUT = 512, 8192  # watchdog oscillator cycles (DS table 8-2): 4.1, 65 ms
_FIRST_CRYSTAL = 6  # CKSEL from which on the fuses mean a crystal, not counting watch crystals


@kernel
def _time_out(c: ChipRow) -> int:
    """Return the watchdog oscillator cycles that the SUT and CKSEL fuses add (DS 9.2 to 9.8)."""
    clock = int(c.fuses[LOW_FUSE]) & 15
    select = int(c.fuses[LOW_FUSE]) >> 4 & 3
    step = 2 + min(select, 2)  # 3 is reserved and counts as 2 (assumption)
    if clock >= _FIRST_CRYSTAL:
        step = (clock & 1) << 2 | select
    if step % 3 == 2:  # the tables go round: short, long, none
        return 0
    return SHORT_TIME_OUT if step % 3 == 0 else LONG_TIME_OUT


@kernel
def reset(c: ChipRow) -> None:
    """Reset the chip at ``c.cycle`` for ``c.reset_cause``; r0-r31, SRAM and EEPROM stay.

    After power-on the first instruction runs at once: cycle 0. After other resets the chip is held
    in reset for its start-up time, at whose end everything starts again from its reset value.
    """
    cause = c.reset_cause
    edge = max(c.cycle, c.starts_at) if cause == watchdog.START_UP_OVER else c.cycle
    c.cycle = edge
    twi.catch_up(c, edge)  # what has reached a slave outside stays there
    c.reset_cause = 0
    c.asleep = 0
    kept_causes = 0 if cause & PORF else int(c.memory[MCUSR])
    for address in range(0x20, 0x100):
        if not eeprom.keeps_over_reset(c, address):
            c.memory[address] = 0
    c.memory[MCUSR] = (kept_causes | cause) & 0x0F
    c.memory[SPL] = RAM_END & 0xFF
    c.memory[SPH] = RAM_END >> 8
    c.memory[OSCCAL] = c.oscillator_calibration
    c.memory[TWSR] = 0xF8
    c.memory[TWAR] = 0xFE
    c.memory[TWDR] = 0xFF
    c.memory[UCSR0A] = 0x20
    c.memory[UCSR0C] = 0x06
    c.memory[CLKPR] = 0 if int(c.fuses[LOW_FUSE]) & 0x80 else 3  # CKDIV8
    c.sreg = 0
    c.pc = c.reset_vector
    c.vector_base = 0
    c.requests = 0
    c.sampled = 0
    c.sampled_at = -1
    c.stall = 0
    c.held_until = 0
    c.last_erased = -1
    c.int_flags = 0
    c.pcint_flags = 0
    c.delayed_count = 0
    c.next[:] = NEVER
    c.next_rare = NEVER
    for timer in range(3):
        _reset_timer(c, timer, edge)
    for prescaler in range(2):
        c.prescaler_base[prescaler] = edge
        c.prescaler_held[prescaler] = 0
    timer0.configure(c, edge)
    timer1.configure(c, edge)
    timer2.configure(c, edge)
    c.outputs_watched = 0
    c.adc_stopped = RUNNING
    c.adc_busy = 0
    c.adc_first = 0
    c.adc_result = 0
    c.adc_caught = -1
    c.adc_caught_mux = c.adc_caught_number = 0
    c.adc_locked = 0
    c.adc_flag = 0
    c.comparator_flag = 0
    c.comparator_output = c.comparator_level = c.comparator_input
    c.slept_edges = 0
    self_programming.power_on(c)
    usart.reset(c)
    spi.reset(c)
    twi.reset(c)
    clock.on_reset(c, edge)
    watchdog.on_reset(c, edge)
    eeprom.on_reset(c, edge)
    adc.schedule(c)
    for port in range(3):
        gpio.refresh(c, port, edge)
    c.capture_level = c.pin_level[gpio.B] & 1
    if not cause & (PORF | watchdog.START_UP_OVER):
        c.asleep = HELD_IN_RESET
        time_out = (_time_out(c) * c.watchdog_period + c.period - 1) // c.period
        c.starts_at = edge + START_UP_CYCLES + time_out
        watchdog.schedule(c)
    idle.disturb(c, edge)
    update_next_event(c)


@kernel
def _reset_timer(c: ChipRow, timer: int, edge: int) -> None:
    t = c.timers[timer]
    t.count = 0
    t.at = edge
    t.down = 0
    t.blocked = 0
    t.maximum = 0xFFFF if timer == 1 else 0xFF
    timer_unit.set_divisor(t, 0)
    t.prescaler = 1 if timer == 2 else 0
    t.temp = 0
    t.capture = 0
    t.tifr = 0
    t.enabled = 0
    t.wanted = 0
    t.watched = 0
    for channel in range(2):
        t.compare[channel] = 0
        t.buffer[channel] = 0
        t.output_mode[channel] = 0
        t.level[channel] = 0
    timer_unit.schedule(c, timer)


@kernel
def power_on(c: ChipRow, rc_period: int) -> None:
    """Make a zeroed record, in which fuses, inputs and SRAM are set, a chip just powered."""
    boot_size = 256 << (3 - (int(c.fuses[HIGH_FUSE]) >> 1 & 3))  # BOOTSZ (DS table 27-7)
    c.boot_start = FLASH_WORDS - boot_size
    c.reset_vector = 0 if int(c.fuses[HIGH_FUSE]) & 1 else c.boot_start & PC_MASK  # BOOTRST
    c.rc_period = rc_period
    c.rc_period_factory = rc_period
    c.watchdog_period = TIME_UNITS_PER_SECOND // WATCHDOG_HZ
    c.time_base = 0
    c.time_base_cycle = 0
    eeprom.power_on(c)
    clock.power_on(c)
    watchdog.power_on(c)
    usart.power_on(c)
    spi.power_on(c)
    twi.power_on(c)
    c.skip_idle = 1
    c.probe_wait = idle.SHORTEST_WAIT
    c.reset_cause = PORF
    c.cycle = 0
    reset(c)
    c.clock_changed = 0
