/* Benchmark: polling. A main loop that asks again and again whether it is time for something, as
 * the user's loop of a Kilobot does; ends by itself.
 *
 * Timer 0 ticks 30.5 times a second; the loop compares the tick counter with a deadline and looks
 * at a flag that only an interrupt would set.
 *
 * What one should see: the LED changes between green and off 3 times a second, 5 seconds long, then
 * off: the chip sleeps with interrupts off, where simavr ends too.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>
#include <util/atomic.h>

#define TICKS 153

volatile uint32_t ticks;
volatile uint8_t new_message;
uint32_t deadline = 10;
uint16_t answers;

ISR(TIMER0_COMPA_vect)
{
    ticks++;
}

static uint32_t now(void)
{
    uint32_t value;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        value = ticks;
    }
    return value;
}

static void loop(void)
{
    if (new_message) {
        new_message = 0;
        answers++;
    }
    if (now() >= deadline) {
        deadline += 10;
        PORTC ^= _BV(3);
    }
}

int main(void)
{
    DDRC = _BV(3);
    OCR0A = 255;
    TCCR0B = _BV(CS02) | _BV(CS00);
    TIMSK0 = _BV(OCIE0A);
    sei();
    while (now() < TICKS)
        loop();
    PORTC = 0;
    cli();
    sleep_enable();
    sleep_cpu();
    for (;;)
        ;
}
