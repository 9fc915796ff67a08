/* Benchmark: polling the ADC. Conversions of the light sensor one after the other without a pause,
 * as a program that seeks light does; ends by itself.
 *
 * Each reading starts a conversion and waits for ADSC to fall; the ADC runs at 125 kHz (slow and
 * exact: 104 us a conversion), then at 1 MHz as the Kilobot has it.
 *
 * What one should see: the LED blue while it reads (about 4 seconds), then off: the chip sleeps with
 * interrupts off, where simavr ends too.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>

#define READINGS 30000U

volatile uint16_t brightest;
volatile uint32_t total;

static uint16_t read_light(void)
{
    ADMUX = 7;
    ADCSRA |= _BV(ADSC);
    while (ADCSRA & _BV(ADSC))
        ;
    return ADCW;
}

static void read_many(uint8_t prescaler)
{
    ADCSRA = _BV(ADEN) | prescaler;
    for (uint16_t i = 0; i < READINGS; i++) {
        uint16_t light = read_light();
        total += light;
        if (light > brightest)
            brightest = light;
    }
}

int main(void)
{
    DDRC = _BV(4);
    PORTC = _BV(4);
    read_many(_BV(ADPS2) | _BV(ADPS1));
    read_many(_BV(ADPS1) | _BV(ADPS0));
    PORTC = 0;
    cli();
    sleep_enable();
    sleep_cpu();
    for (;;)
        ;
}
