/* Serial debug output: define DEBUG before including this file, call debug_init() in main, use
 * printf.
 *
 * 38400 baud 8N1 on PD1 (TXD, the two-pin header), text as written (no carriage returns added),
 * transmit only, blocking: a character costs 2080 cycles once the two-byte buffer is full. Without
 * DEBUG nothing is compiled in: debug_init() and printf() vanish.
 */
#ifndef DEBUG_H
#define DEBUG_H

#include <stdio.h>

#ifdef DEBUG

#include <avr/io.h>

static int debug_putchar(char c, FILE *stream)
{
    (void)stream;
    loop_until_bit_is_set(UCSR0A, UDRE0);
    UDR0 = c;
    return 0;
}

static FILE debug_stream;

static inline void debug_init(void)
{
    UBRR0 = 12; /* 8 MHz / (16 * 13) = 38462 baud */
    UCSR0A = 0;
    UCSR0B = _BV(TXEN0);
    UCSR0C = _BV(UCSZ01) | _BV(UCSZ00);
    fdev_setup_stream(&debug_stream, debug_putchar, NULL, _FDEV_SETUP_WRITE);
    stdout = &debug_stream;
}

#else

#define debug_init() ((void)0)
#undef printf
#define printf(...) ((void)0)

#endif

#endif
