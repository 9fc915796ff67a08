"""The I/O space: the one table from register addresses to peripherals.

``read_io`` gives what the CPU reads in a cycle, ``write_io`` lets a write land at an edge. Both
first let everything happen that is due by then, so that peripherals never see time run backwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.peripherals import (
    adc,
    analog_comparator,
    clock,
    eeprom,
    gpio,
    prescaler,
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
    ACSR,
    ADCH,
    ADCL,
    ADCSRA,
    ADCSRB,
    ADMUX,
    ASSR,
    CLKPR,
    DDRB,
    DDRD,
    DIDR0,
    DIDR1,
    EEARH,
    EECR,
    EICRA,
    EIFR,
    EIMSK,
    GPIOR0,
    GPIOR1,
    GPIOR2,
    GTCCR,
    MCUCR,
    MCUSR,
    OCR0B,
    OCR1BH,
    OCR2A,
    OCR2B,
    OSCCAL,
    PCICR,
    PCIFR,
    PCMSK0,
    PCMSK1,
    PCMSK2,
    PINB,
    PINC,
    PIND,
    PORTB,
    PORTD,
    PRR,
    REGISTERS,
    SMCR,
    SPCR,
    SPDR,
    SPMCSR,
    TCCR0A,
    TCCR0B,
    TCCR1A,
    TCCR1B,
    TCCR2A,
    TIFR0,
    TIFR1,
    TIFR2,
    TIMSK0,
    TIMSK1,
    TIMSK2,
    TWAMR,
    TWBR,
    UCSR0A,
    UDR0,
    WDTCSR,
)
from avrswarm.chip.schedule import handle_due, rewind_tape
from avrswarm.chip.state import NEVER, ChipRow, Touch
from avrswarm.jit import kernel

EXISTS = np.zeros(0x100, dtype=np.bool_)
"""Which I/O addresses hold a register; the others are reserved."""
EXISTS[list(REGISTERS.values())] = True


DYNAMIC = EXISTS.copy()
"""Which registers are more than a byte that keeps what was written."""
DYNAMIC[
    [
        *(DDRB + offset for offset in (0, 1, 3, 4, 6, 7)),
        *(
            REGISTERS[name]
            for name in ("GPIOR0", "GPIOR1", "GPIOR2", "EIMSK", "EICRA", "GTCCR", "SMCR")
        ),
        *(
            REGISTERS[name]
            for name in ("MCUSR", "PRR", "OSCCAL", "PCICR", "PCMSK0", "PCMSK1", "PCMSK2")
        ),
        *(
            REGISTERS[name]
            for name in ("TIMSK0", "TIMSK1", "TIMSK2", "ADMUX", "ADCSRB", "DIDR0", "DIDR1")
        ),
        *(REGISTERS[name] for name in ("TCCR0A", "TCCR0B", "TCCR1A", "TCCR1B", "TCCR2A", "TCCR2B")),
    ]
] = False


@kernel
def is_flag_register(address: int) -> bool:
    """Tell registers in which SBI and CBI touch only the named bit: 1 acts, 0 does nothing."""
    return (
        address == PINB
        or address == PINC
        or address == PIND
        or TIFR0 <= address <= TIFR2
        or address == PCIFR
        or address == EIFR
    )


@kernel
def read_io(c: ChipRow, tape: NDArray[np.int64], address: int, cycle: int) -> int:
    """Return what the CPU reads from the I/O register ``address`` in ``cycle``."""
    if not DYNAMIC[address]:
        return int(c.memory[address])
    if c.next_event <= cycle:
        handle_due(c, tape, cycle)
    if address == ACSR:
        c.io_touched |= Touch.STABLE_READ
        return analog_comparator.read(c)
    c.io_touched |= Touch.VOLATILE
    # A read can only put events off, so that next_event stays early enough.
    return _read(c, tape, address, cycle)


@kernel
def steady_until(c: ChipRow, address: int, cycle: int) -> int:
    """Return from which cycle on reads of a register may differ from one made in ``cycle``.

    Events apart: what changes with ``next_event`` is not looked at. Registers that nobody waits for
    are not known to be steady at all.
    """
    if address == ADCSRA:
        return c.adc_done if c.adc_busy else NEVER
    if address == EECR:
        return eeprom.steady_until(c, cycle)
    if address == SPMCSR:
        return self_programming.steady_until(c, cycle)
    if address == UCSR0A:
        return usart.steady_until(c, cycle)
    if TIFR0 <= address <= TIFR2:
        return timer_unit.next_flag(c, address - TIFR0)
    if address == ACSR or not DYNAMIC[address]:
        return NEVER
    return cycle


@kernel
def _changes_nothing(c: ChipRow, address: int, value: int) -> bool:
    """Tell writes that leave everything as it is; programs repeat them in their main loops."""
    if PINB <= address <= PORTD:
        return (address - PINB) % 3 != 0 and int(c.memory[address]) == value
    if address == GPIOR0 or address == GPIOR1 or address == GPIOR2:
        return int(c.memory[address]) == value
    if address == OCR2A or address == OCR2B:
        return c.timers[2].buffer[address - OCR2A] == value
    return False


@kernel
def _read(c: ChipRow, tape: NDArray[np.int64], address: int, cycle: int) -> int:
    if address == PINB or address == PINC or address == PIND:
        return _read_pin(c, tape, (address - PINB) // 3, cycle)
    if TCCR1A <= address <= OCR1BH or address == TIFR1:
        return timer1.read(c, address, cycle)
    if TCCR0A <= address <= OCR0B or address == TIFR0:
        return timer0.read(c, address, cycle)
    if TCCR2A <= address <= OCR2B or address == TIFR2:
        return timer2.read(c, address, cycle)
    if address == ADCL or address == ADCH or address == ADCSRA:
        return adc.read(c, address, cycle)
    if EECR <= address <= EEARH:
        return eeprom.read(c, address, cycle)
    if UCSR0A <= address <= UDR0:
        return usart.read(c, address, cycle)
    if address == EIFR or address == PCIFR:
        return _read_pin_flags(c, tape, address, cycle)
    if address == SPMCSR:
        return self_programming.read_spmcsr(c, cycle)
    if address == WDTCSR:
        return watchdog.read(c, cycle)
    if address == CLKPR:
        return clock.read_clkpr(c, cycle)
    if address == MCUCR:
        return clock.read_mcucr(c, cycle)
    if SPCR <= address <= SPDR:
        return spi.read(c, address, cycle)
    if TWBR <= address <= TWAMR:
        return twi.read(c, address, cycle)
    return int(c.memory[address])


@kernel
def _catch_up_outputs(c: ChipRow, edge: int) -> None:
    """Bring the timers that drive pins, and the transmitter, up to date."""
    timer_unit.catch_up_outputs(c, edge)
    usart.refresh_txd(c, edge)


_OC_PINS_B = 0x0E  # OC1A, OC1B, OC2A
_OC_PINS_D = 0x68  # OC2B, OC0B, OC0A


@kernel
def _switches_outputs(c: ChipRow, address: int, value: int) -> bool:
    """Tell whether a write to a port's register switches a pin that a timer may drive."""
    changed = int(c.memory[address]) ^ value
    return (address == DDRB and changed & _OC_PINS_B != 0) or (
        address == DDRD and changed & _OC_PINS_D != 0
    )


@kernel
def _read_pin(c: ChipRow, tape: NDArray[np.int64], port: int, cycle: int) -> int:
    _catch_up_outputs(c, cycle)
    return gpio.read_pin(c, port, cycle)


@kernel
def _read_pin_flags(c: ChipRow, tape: NDArray[np.int64], address: int, cycle: int) -> int:
    _catch_up_outputs(c, cycle)
    if c.next_event <= cycle:
        handle_due(c, tape, cycle)
    return c.int_flags if address == EIFR else c.pcint_flags


@kernel
def write_io(c: ChipRow, tape: NDArray[np.int64], address: int, value: int, edge: int) -> None:
    """Let the CPU's write to the I/O register ``address`` land at ``edge``.

    The interrupt request that the boundary at ``edge`` will act on is sampled before: it saw the
    last cycle of the writing instruction, in which the write had not landed yet.
    """
    if _changes_nothing(c, address, value):
        return
    c.io_touched |= Touch.VOLATILE
    if address == GPIOR0 or address == GPIOR1 or address == GPIOR2:
        c.memory[address] = value
        return
    if timer1.is_high_byte(address):
        timer1.write_high_byte(c, value)
        return
    if c.next_event < edge:
        handle_due(c, tape, edge - 1)
    c.sampled = c.requests
    c.sampled_at = edge
    if c.next_event == edge:
        handle_due(c, tape, edge)
    _write(c, address, value, edge)
    if c.clock_changed:
        rewind_tape(c, tape)  # world time has another meaning in cycles now


@kernel
def _write(c: ChipRow, address: int, value: int, edge: int) -> None:
    if PINB <= address <= PORTD:
        # Pins that a timer drives depend on nothing but their DDRx bits: unless somebody watches
        # them, they may be told late.
        if c.outputs_watched or _switches_outputs(c, address, value):
            _catch_up_outputs(c, edge)
        gpio.write_port(c, address, value, edge)
        if address <= PORTB:
            spi.slave_select(c, edge)
    elif TCCR1A <= address <= OCR1BH or address == TIFR1 or address == TIMSK1:
        if address == TCCR1B:
            _catch_up_outputs(c, edge)
        timer1.write(c, address, value, edge)
        if address == TCCR1B:
            gpio.send_again(c, gpio.D, edge)
            _update_wants(c)
    elif TCCR0A <= address <= OCR0B or address == TIFR0 or address == TIMSK0:
        if address == TCCR0B:
            _catch_up_outputs(c, edge)
        timer0.write(c, address, value, edge)
        if address == TCCR0B:
            gpio.send_again(c, gpio.D, edge)
            _update_wants(c)
    elif TCCR2A <= address <= OCR2B or address == TIFR2 or address == TIMSK2 or address == ASSR:
        timer2.write(c, address, value, edge)
    elif address == ACSR:
        analog_comparator.write(c, value, edge)
    elif address == ADCSRA:
        for timer in range(2):
            timer_unit.catch_up(c, timer, edge)
        adc.write_control(c, value, edge)
        analog_comparator.update(c, edge)
        _update_wants(c)
    elif address == ADCSRB:
        for timer in range(2):
            timer_unit.catch_up(c, timer, edge)
        was_set = _trigger_flag(c, int(c.memory[ADCSRB]) & 7)
        adc.write_trigger_select(c, value, was_set, _trigger_flag(c, value & 7), edge)
        analog_comparator.update(c, edge)
        _update_wants(c)
    elif address == ADMUX:
        adc.write_mux(c, value, edge)
        analog_comparator.update(c, edge)
    elif EECR <= address <= EEARH:
        eeprom.write(c, address, value, edge)
    elif UCSR0A <= address <= UDR0:
        usart.write(c, address, value, edge)
    else:
        _write_rest(c, address, value, edge)


@kernel
def _write_rest(c: ChipRow, address: int, value: int, edge: int) -> None:
    if address == GTCCR:
        prescaler.write_gtccr(c, value, edge)
    elif address == EIFR:
        c.int_flags &= ~value
        gpio.update_int_requests(c)
    elif address == EIMSK or address == EICRA:
        _catch_up_outputs(c, edge)
        c.memory[address] = value & (0x03 if address == EIMSK else 0x0F)
        gpio.send_again(c, gpio.D, edge)
        gpio.update_int_requests(c)
        _update_wants(c)
    elif address == PCIFR:
        c.pcint_flags &= ~value
        gpio.update_pcint_requests(c)
    elif address == PCICR:
        c.memory[PCICR] = value & 0x07
        gpio.update_pcint_requests(c)
    elif address == PCMSK0 or address == PCMSK1 or address == PCMSK2:
        _catch_up_outputs(c, edge)
        c.memory[address] = value & (0x7F if address == PCMSK1 else 0xFF)
        gpio.send_again(c, address - PCMSK0, edge)
        _update_wants(c)
    elif address == SPMCSR:
        self_programming.write_spmcsr(c, value, edge)
    elif address == WDTCSR:
        watchdog.write(c, value, edge)
    elif address == CLKPR:
        clock.write_clkpr(c, value, edge)
    elif address == OSCCAL:
        clock.write_osccal(c, value, edge)
    elif address == PRR:
        clock.write_prr(c, value, edge)
        analog_comparator.update(c, edge)
        _update_wants(c)
    elif address == MCUCR:
        clock.write_mcucr(c, value, edge)
    elif address == MCUSR:
        c.memory[MCUSR] = int(c.memory[MCUSR]) & value  # flags clear when written 0 (DS 11.9.1)
        watchdog.schedule(c)
    elif SPCR <= address <= SPDR:
        spi.write(c, address, value, edge)
    elif TWBR <= address <= TWAMR:
        twi.write(c, address, value, edge)
    elif address == SMCR:
        c.memory[SMCR] = value & 0x0F
    elif address == DIDR0:
        c.memory[DIDR0] = value & 0x3F
    elif address == DIDR1:
        c.memory[DIDR1] = value & 0x03
    elif EXISTS[address]:
        c.memory[address] = value


@kernel
def _update_wants(c: ChipRow) -> None:
    for timer in range(3):
        timer_unit.update_wants(c, timer)
    usart.schedule(c)


@kernel
def _trigger_flag(c: ChipRow, source: int) -> bool:
    """Tell whether the flag that an ADTS code selects is set now."""
    if source == 1:
        return c.comparator_flag != 0
    if source == 2:
        return c.int_flags & 1 != 0
    if source == 3:
        return c.timers[0].tifr & timer_unit.OCFA != 0
    if source == 4:
        return c.timers[0].tifr & timer_unit.TOV != 0
    if source == 5:
        return c.timers[1].tifr & timer_unit.OCFB != 0
    if source == 6:
        return c.timers[1].tifr & timer_unit.TOV != 0
    if source == 7:
        return c.timers[1].tifr & timer_unit.ICF != 0
    return False
