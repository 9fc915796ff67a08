/* Benchmark: a Kilobot that waits. Everything a Kilobot has switched on, and a program that does
 * nothing but delays; ends by itself.
 *
 * Timer 0 ticks 30.5 times a second, timer 2 makes the motors' PWM, the ADC is armed for the
 * comparator, the comparator's interrupt is on, and the main loop blinks with delays.
 *
 * What one should see: the LED red for 100 ms and green for 100 ms in turn, 5 seconds long, then
 * off: the chip sleeps with interrupts off, where simavr ends too.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>
#include <util/delay.h>

#define BLINKS 25

volatile uint32_t ticks;
volatile uint16_t pulses;

ISR(TIMER0_COMPA_vect)
{
    ticks++;
}

ISR(ANALOG_COMP_vect)
{
    pulses++;
}

int main(void)
{
    TCCR0A = 0;
    OCR0A = 255;
    TCCR0B = _BV(CS02) | _BV(CS00);
    TIMSK0 = _BV(OCIE0A);
    TCCR2A = _BV(COM2A1) | _BV(COM2B1) | _BV(WGM20);
    TCCR2B = _BV(CS21);
    OCR2A = 70;
    OCR2B = 70;
    DDRB = _BV(3);
    DDRD = _BV(3) | _BV(5);
    DDRC = _BV(3);
    DIDR1 = _BV(AIN1D) | _BV(AIN0D);
    ACSR = _BV(ACIE) | _BV(ACIS1) | _BV(ACIS0);
    ADMUX = 0;
    ADCSRB = _BV(ADTS0);
    ADCSRA = _BV(ADEN) | _BV(ADATE) | _BV(ADPS1) | _BV(ADPS0);
    sei();
    for (uint8_t blink = 0; blink < BLINKS; blink++) {
        PORTD |= _BV(5);
        _delay_ms(100);
        PORTD &= (uint8_t)~_BV(5);
        PORTC |= _BV(3);
        _delay_ms(100);
        PORTC &= (uint8_t)~_BV(3);
    }
    cli();
    sleep_enable();
    sleep_cpu();
    for (;;)
        ;
}
