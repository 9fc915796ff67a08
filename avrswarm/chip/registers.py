"""Data-space addresses of the ATmega328P's I/O registers, named as in the datasheet (DS 36).

``REGISTERS`` maps every name to its address, for tools and tests that poke registers by name.
"""

from __future__ import annotations

PINB = 0x23
DDRB = 0x24
PORTB = 0x25
PINC = 0x26
DDRC = 0x27
PORTC = 0x28
PIND = 0x29
DDRD = 0x2A
PORTD = 0x2B
TIFR0 = 0x35
TIFR1 = 0x36
TIFR2 = 0x37
PCIFR = 0x3B
EIFR = 0x3C
EIMSK = 0x3D
GPIOR0 = 0x3E
EECR = 0x3F
EEDR = 0x40
EEARL = 0x41
EEARH = 0x42
GTCCR = 0x43
TCCR0A = 0x44
TCCR0B = 0x45
TCNT0 = 0x46
OCR0A = 0x47
OCR0B = 0x48
GPIOR1 = 0x4A
GPIOR2 = 0x4B
SPCR = 0x4C
SPSR = 0x4D
SPDR = 0x4E
ACSR = 0x50
SMCR = 0x53
MCUSR = 0x54
MCUCR = 0x55
SPMCSR = 0x57
SPL = 0x5D
SPH = 0x5E
SREG = 0x5F
WDTCSR = 0x60
CLKPR = 0x61
PRR = 0x64
OSCCAL = 0x66
PCICR = 0x68
EICRA = 0x69
PCMSK0 = 0x6B
PCMSK1 = 0x6C
PCMSK2 = 0x6D
TIMSK0 = 0x6E
TIMSK1 = 0x6F
TIMSK2 = 0x70
ADCL = 0x78
ADCH = 0x79
ADCSRA = 0x7A
ADCSRB = 0x7B
ADMUX = 0x7C
DIDR0 = 0x7E
DIDR1 = 0x7F
TCCR1A = 0x80
TCCR1B = 0x81
TCCR1C = 0x82
TCNT1L = 0x84
TCNT1H = 0x85
ICR1L = 0x86
ICR1H = 0x87
OCR1AL = 0x88
OCR1AH = 0x89
OCR1BL = 0x8A
OCR1BH = 0x8B
TCCR2A = 0xB0
TCCR2B = 0xB1
TCNT2 = 0xB2
OCR2A = 0xB3
OCR2B = 0xB4
ASSR = 0xB6
TWBR = 0xB8
TWSR = 0xB9
TWAR = 0xBA
TWDR = 0xBB
TWCR = 0xBC
TWAMR = 0xBD
UCSR0A = 0xC0
UCSR0B = 0xC1
UCSR0C = 0xC2
UBRR0L = 0xC4
UBRR0H = 0xC5
UDR0 = 0xC6

REGISTERS: dict[str, int] = {
    name: address
    for name, address in list(globals().items())
    if name.isupper() and isinstance(address, int)
}

WORD_REGISTERS: dict[str, int] = {
    "TCNT1": TCNT1L,
    "ICR1": ICR1L,
    "OCR1A": OCR1AL,
    "OCR1B": OCR1BL,
    "ADC": ADCL,
    "ADCW": ADCL,
    "SP": SPL,
    "EEAR": EEARL,
    "UBRR0": UBRR0L,
}
"""16-bit registers by the address of their low byte."""
