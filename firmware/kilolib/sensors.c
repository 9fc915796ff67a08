/* Battery, light and temperature: one ADC conversion with interrupts off, not while a message is
 * being received. */
#include <util/atomic.h>

#include "private.h"

static bool pulse_waits(void)
{
    return ACSR & _BV(ACI);
}

/* The ADC listens for the first pulse of a message unless it works for us. A pulse before it was
 * taken away is measured as usual, and we have no reading; a pulse after that is marked, and the
 * message will be measured at its third pulse. */
int16_t kilo_read_adc(uint8_t admux, uint8_t prescaler)
{
    int16_t value = -1;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
        if (!receiving()) {
            while ((ADCSRA & _BV(ADSC)) && !pulse_waits()) {
                ; /* the last pulse of a message started a conversion */
            }
            ADCSRA = _BV(ADEN) | ADC_CLOCK_8;
            if (!pulse_waits()) {
                ADMUX = admux;
                ADCSRA = _BV(ADEN) | _BV(ADSC) | prescaler;
                loop_until_bit_is_clear(ADCSRA, ADSC);
                value = ADC;
                ADMUX = CHANNEL_HIGH_GAIN;
                ADCSRA = ADC_ARMED;
                if (pulse_waits()) {
                    RX_FLAGS |= _BV(RX_STALE);
                }
            } else {
                ADCSRA = ADC_ARMED;
            }
        }
    }
    return value;
}

int16_t get_ambientlight(void)
{
    return kilo_read_adc(CHANNEL_LIGHT, ADC_CLOCK_8);
}

int16_t get_voltage(void)
{
    return kilo_read_adc(CHANNEL_BATTERY, ADC_CLOCK_8);
}

int16_t get_temperature(void)
{
    return kilo_read_adc(CHANNEL_TEMPERATURE, ADC_CLOCK_128);
}
