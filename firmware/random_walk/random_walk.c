/* Random walk with message exchange.
 *
 * Two to four seconds straight, then up to two seconds turning left or right, and so on, drawn anew
 * each time and after a pause. All the while the robot says its id and how many steps it has made,
 * and shows when it hears somebody.
 *
 * What one should see: robots diffuse over the arena; blue while walking straight, cyan while
 * turning, with a yellow flash (a tenth of a second) whenever a message has arrived.
 */
#include <avr/interrupt.h>
#include <kilolib.h>
#include <ticks.h>

#define FLASH (TICKS_PER_SEC / 10)

message_t message;
uint16_t steps;
uint16_t meetings;
volatile uint8_t new_message;
uint32_t last_heard;
uint32_t step_began;
uint8_t step_ticks;
uint8_t turning = 1;
uint8_t has_heard;

message_t *message_tx(void)
{
    return &message;
}

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)msg;
    (void)dist;
    new_message = 1;
}

/* A message may go out at any moment: change it with interrupts off, or half of it may be old. */
void compose(void)
{
    cli();
    message.type = NORMAL;
    message.data[0] = kilo_uid & 0xFF;
    message.data[1] = kilo_uid >> 8;
    message.data[2] = steps & 0xFF;
    message.data[3] = steps >> 8;
    message.crc = message_crc(&message);
    sei();
}

void begin_step(void)
{
    step_began = now();
    turning = !turning;
    steps++;
    spinup_motors();
    if (!turning) {
        step_ticks = 2 * TICKS_PER_SEC + rand_soft() % (2 * TICKS_PER_SEC);
        set_motors(kilo_straight_left, kilo_straight_right);
    } else {
        step_ticks = 1 + rand_soft() % (2 * TICKS_PER_SEC);
        if (rand_soft() & 1) {
            set_motors(kilo_turn_left, 0);
        } else {
            set_motors(0, kilo_turn_right);
        }
    }
    compose();
}

void setup(void)
{
    rand_seed(rand_hard());
    begin_step();
}

void loop(void)
{
    uint32_t ticks = now();
    if (new_message) {
        new_message = 0;
        has_heard = 1;
        last_heard = ticks;
        meetings++;
    }
    if (has_heard && ticks - last_heard < FLASH) {
        set_color(RGB(3, 3, 0));
    } else {
        set_color(turning ? RGB(0, 1, 1) : RGB(0, 0, 1));
    }
    if (was_paused(ticks) || ticks - step_began >= step_ticks) {
        begin_step();
    }
}

int main(void)
{
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
