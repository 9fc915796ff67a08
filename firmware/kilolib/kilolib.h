/* Kilobot library: what a robot program may use.
 *
 * A program has a setup and a loop function and hands them over in main:
 *
 *     #include <kilolib.h>
 *
 *     void setup(void) { }
 *     void loop(void) { set_color(RGB(1, 0, 0)); delay(500); set_color(RGB(0, 0, 0)); delay(500); }
 *
 *     int main(void) { kilo_init(); kilo_start(setup, loop); return 0; }
 *
 * The robot boots idle (short green blink every 0.2 s) and calls setup and loop after the overhead
 * controller has sent RUN. Written for avrswarm from the published facts about the robot.
 */
#ifndef KILOLIB_H
#define KILOLIB_H

#include <stddef.h>
#include <stdint.h>

#include "message.h"
#include "message_crc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ticks are 32.768 ms long (256 * 1024 cycles of 8 MHz): 30.5 per second, 31 when rounded up. */
#define TICKS_PER_SEC 31

/* Colour byte: two bits (0..3) each of red, green and blue. */
#define RGB(r, g, b) ((uint8_t)(((r) & 3) | (((g) & 3) << 2) | (((b) & 3) << 4)))

/* Time since power-on or reset, in ticks. */
extern volatile uint32_t kilo_ticks;

/* Kept in EEPROM, loaded by kilo_init. */
extern uint16_t kilo_uid;
extern uint8_t kilo_turn_left;
extern uint8_t kilo_turn_right;
extern uint8_t kilo_straight_left;
extern uint8_t kilo_straight_right;

/* Pause between messages, in units of 128 us. The default, 3906, is 16 ticks: 1.9 messages per
 * second. */
extern uint16_t kilo_tx_period;

/* Callbacks. All run inside interrupts, with interrupts off: keep them short.
 *   rx          a message has arrived; what both pointers show is overwritten by the next one
 *   tx          a message may be sent now: return its address, or NULL for none
 *   tx_success  it has gone out and nobody talked into it */
extern message_rx_t kilo_message_rx;
extern message_tx_t kilo_message_tx;
extern message_tx_success_t kilo_message_tx_success;

void kilo_init(void);
void kilo_start(void (*setup)(void), void (*loop)(void)) __attribute__((noreturn));

void delay(uint16_t ms);

/* 0..255 each. Left alone turns the robot left (counter-clockwise). From rest a motor needs 15
 * ms of full power first; in the long run stay at or below 90. */
void set_motors(uint8_t left, uint8_t right);
void spinup_motors(void);

void set_color(uint8_t color);

/* Centre-to-centre distance in mm from the amplitudes of a message and the tables in EEPROM. */
uint8_t estimate_distance(const distance_measurement_t *dist);

/* ADC readings 0..1023, or -1 while a message is being received. */
int16_t get_ambientlight(void);
int16_t get_voltage(void);
int16_t get_temperature(void);

uint8_t rand_hard(void); /* from the noise of the battery reading; slow */
uint8_t rand_soft(void); /* from a small generator */
void rand_seed(uint8_t seed);

#ifdef __cplusplus
}
#endif

#endif
