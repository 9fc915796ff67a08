/* Names shared inside the library; not for programs. */
#ifndef PRIVATE_H
#define PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware.h"
#include "kilolib.h"

/* kilolib.c */
extern volatile uint8_t kilo_state;
extern uint8_t kilo_tx_mask;
void kilo_message_arrived(void); /* called by the comparator interrupt after the twelfth byte */
void kilo_transmit(void);        /* called by the tick interrupt when a message is due */

/* receive.S */
extern message_t kilo_rx_message;
extern distance_measurement_t kilo_rx_distance;

/* transmit.S */
extern uint16_t kilo_tx_clock;
#define SENT 0
#define COLLISION 1
#define JUST_BEGUN 2
uint8_t kilo_message_send(const message_t *msg);

/* distance.c */
extern uint16_t kilo_low_gain_table[DISTANCE_POINTS];
extern uint16_t kilo_high_gain_table[DISTANCE_POINTS];

/* sensors.c */
int16_t kilo_read_adc(uint8_t admux, uint8_t prescaler);
#define ADC_CLOCK_8 3
#define ADC_CLOCK_128 7

static inline bool receiving(void)
{
    return RX_FLAGS != RX_IDLE;
}

#endif
