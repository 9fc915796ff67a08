/* Battery, light and temperature: one ADC conversion with interrupts off, not while a message is being received. */
#include <util/atomic.h>

#include "private.h"

int16_t kilo_read_adc(uint8_t admux, uint8_t prescaler)
{
    int16_t value = -1;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
        if (!receiving() && !(ACSR & _BV(ACI))) {
            loop_until_bit_is_clear(ADCSRA, ADSC); /* the last pulse of a message started one */
            ADMUX = admux;
            ADCSRA = _BV(ADEN) | _BV(ADSC) | prescaler;
            loop_until_bit_is_clear(ADCSRA, ADSC);
            value = ADC;
            ADMUX = CHANNEL_HIGH_GAIN;
            ADCSRA = ADC_ARMED;
            if (ACSR & _BV(ACI)) {
                RX_FLAGS |= _BV(RX_STALE); /* a message began meanwhile: measure it at its third pulse */
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
