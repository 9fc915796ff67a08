"""Interrupt requests: one bit per vector, kept up to date by the peripherals.

A request is *flag and enable*, whatever the I bit says. The core samples requests in the last cycle
of each instruction (timing reference 2.2); ``acknowledge`` does what entering a vector does to its
flag.
"""

from __future__ import annotations

from avrswarm.chip.registers import WDTCSR
from avrswarm.chip.state import ChipRow
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

INTERRUPT_ENTRY_CYCLES = 3
"""Dead cycles between the running instruction and the vector's first. Recommended reading of the
datasheet's "four cycles"; the alternative is 4 (timing reference 2.2, conf. B/C)."""


@kernel
def set_request(c: ChipRow, vector: int, requested: bool) -> None:
    """Set or clear the request bit of one vector."""
    if requested:
        c.requests |= 1 << vector
    else:
        c.requests &= ~(1 << vector)


@kernel
def lowest(requests: int) -> int:
    """Return the number of the lowest bit set: the vector served first."""
    vector = 0
    for bits in (16, 8, 4, 2, 1):
        if requests & ((1 << bits) - 1) == 0:
            requests >>= bits
            vector += bits
    return vector


@kernel
def acknowledge(c: ChipRow, vector: int) -> None:
    """Clear the flag of a vector being entered, where entering clears it (reference 2.1)."""
    match vector:
        case Vector.INT0:
            c.int_flags &= ~1
        case Vector.INT1:
            c.int_flags &= ~2
        case Vector.PCINT0:
            c.pcint_flags &= ~1
        case Vector.PCINT1:
            c.pcint_flags &= ~2
        case Vector.PCINT2:
            c.pcint_flags &= ~4
        case Vector.WDT:
            # DS 11.9.2: the vector clears WDIF, and WDIE too if WDE is set, so that the next
            # timeout resets.
            control = int(c.memory[WDTCSR])
            c.memory[WDTCSR] = control & ~0xC0 & 0xFF if control & 0x08 else control & ~0x80 & 0xFF
        case Vector.TIMER2_COMPA:
            c.timers[2].tifr &= ~2
        case Vector.TIMER2_COMPB:
            c.timers[2].tifr &= ~4
        case Vector.TIMER2_OVF:
            c.timers[2].tifr &= ~1
        case Vector.TIMER1_CAPT:
            c.timers[1].tifr &= ~0x20
        case Vector.TIMER1_COMPA:
            c.timers[1].tifr &= ~2
        case Vector.TIMER1_COMPB:
            c.timers[1].tifr &= ~4
        case Vector.TIMER1_OVF:
            c.timers[1].tifr &= ~1
        case Vector.TIMER0_COMPA:
            c.timers[0].tifr &= ~2
        case Vector.TIMER0_COMPB:
            c.timers[0].tifr &= ~4
        case Vector.TIMER0_OVF:
            c.timers[0].tifr &= ~1
        case Vector.SPI_STC:
            c.spi_flag = 0
        case Vector.USART_TX:
            c.tx_complete = 0
        case Vector.ADC:
            c.adc_flag = 0
        case Vector.ANALOG_COMP:
            c.comparator_flag = 0
        case _:
            return  # level requests stay until their cause goes: RX, UDRE, EE_READY, TWI, SPM_READY
    set_request(c, vector, False)
