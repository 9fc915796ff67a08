/* What hangs on which pin, and which on-chip block does what. Used by C and assembler sources. */
#ifndef HARDWARE_H
#define HARDWARE_H

#include <avr/io.h>

/* Port B: the infrared LED driver is a five-resistor DAC. Only these pins may appear in tx_mask. */
#define IR_PINS 0xC7
#define MOTOR_LEFT_BIT 3  /* PB3, OC2A */
#define MOTOR_RIGHT_BIT 3 /* PD3, OC2B */
#define ANALOG_SUPPLY_BIT 2 /* PD2: motors, infrared and light sensor have power when high */
#define CHARGER_BIT 0     /* PD0 low: charging */

/* LED segments are switched by DDR bits; PORT bits stay 0 (the pin sinks current when it is an
 * output). */
#define RED_LOW_BIT 5     /* PD5 */
#define RED_HIGH_BIT 4    /* PD4 */
#define GREEN_LOW_BIT 3   /* PC3 */
#define GREEN_HIGH_BIT 2  /* PC2 */
#define BLUE_LOW_BIT 5    /* PC5 */
#define BLUE_HIGH_BIT 4   /* PC4 */

/* ADC channels */
#define CHANNEL_HIGH_GAIN 0
#define CHANNEL_LOW_GAIN 1
#define CHANNEL_BATTERY 6
#define CHANNEL_LIGHT 7
#define CHANNEL_TEMPERATURE 0xC8 /* channel 8 with the 1.1 V reference */

/* ADC waiting for a pulse: a rising comparator flag starts a conversion; clock 1 MHz. */
#define ADC_ARMED 0xB3       /* ADEN, ADATE, clears ADIF, clk/8 */
#define ADC_FROM_COMPARATOR 1 /* ADCSRB: trigger source */

/* Comparator: interrupt on the rising edge of its output; writing this also clears a pending
 * flag. */
#define COMPARATOR_ON 0x1B   /* clears ACI, ACIE, ACIS = rising */
#define COMPARATOR_BIT_ACO 5
#define COMPARATOR_BIT_ACI 4

/* Timer1 is the receive bit clock; a byte that takes longer than this is given up. */
#define RX_TIMEOUT 2959

/* Receiver state. The three general purpose I/O registers belong to the library.
 *   GPIOR0  flags, below
 *   GPIOR1  bits of the byte so far
 *   GPIOR2  SREG, saved by the comparator interrupt */
#define RX_FLAGS GPIOR0
#define RX_VALUE GPIOR1
#define RX_SREG GPIOR2
#define RX_EXPECT_START 0 /* the next pulse is a start bit */
#define RX_LEADING 1      /* ... of, or in, the leading byte */
#define RX_MEASURE 2      /* take the high gain amplitude at the next start bit */
#define RX_STALE 3        /* the first pulse had to wait for its interrupt: measure at byte 0 */
#define RX_IDLE 0x07      /* value of the flags between messages; anything else means "receiving" */

/* Timer0 makes the ticks. */
#define TICK_TOP 255

/* States, as kept in kilo_state. */
#define SLEEPING 0
#define IDLE 1
#define BATTERY 2
#define SETUP 3
#define RUNNING 4
#define CHARGING 5
#define MOVING 6

/* EEPROM addresses */
#define EEPROM_OSCCAL 0x01
#define EEPROM_TURN_LEFT 0x05
#define EEPROM_TURN_RIGHT 0x09
#define EEPROM_STRAIGHT_LEFT 0x0C
#define EEPROM_STRAIGHT_RIGHT 0x14
#define EEPROM_LOW_GAIN 0x20
#define EEPROM_HIGH_GAIN 0x50
#define EEPROM_TX_MASK 0x90
#define EEPROM_UID 0xB0
#define DISTANCE_POINTS 14

#define BOOTLOADER_START 0x7000

#endif
