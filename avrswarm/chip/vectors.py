"""Interrupt vectors of the ATmega328P in priority order (timing reference 2.1)."""

from __future__ import annotations

from enum import IntEnum


class Vector(IntEnum):
    """Vector number: word address = 2 x number, and the lower number is served first."""

    RESET = 0
    INT0 = 1
    INT1 = 2
    PCINT0 = 3
    PCINT1 = 4
    PCINT2 = 5
    WDT = 6
    TIMER2_COMPA = 7
    TIMER2_COMPB = 8
    TIMER2_OVF = 9
    TIMER1_CAPT = 10
    TIMER1_COMPA = 11
    TIMER1_COMPB = 12
    TIMER1_OVF = 13
    TIMER0_COMPA = 14
    TIMER0_COMPB = 15
    TIMER0_OVF = 16
    SPI_STC = 17
    USART_RX = 18
    USART_UDRE = 19
    USART_TX = 20
    ADC = 21
    EE_READY = 22
    ANALOG_COMP = 23
    TWI = 24
    SPM_READY = 25
