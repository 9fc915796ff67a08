/* Disperse: a heap of robots spreads out.
 *
 * Every robot speaks, listens, and knows the closest neighbour of the last second. As long as that
 * one is closer than wanted the robot moves; it keeps a motion that takes it away and draws another
 * one if it does not.
 *
 * What one should see: robots at the rim leave first, those inside follow as room opens; moving
 * robots are red, robots with nobody close are green and at rest. After a minute or two most are
 * green.
 */
#include <kilolib.h>
#include <ticks.h>

#define WANTED_DISTANCE 85 /* mm */
#define DECIDE_EVERY (TICKS_PER_SEC)
#define NOBODY 255

enum { STOP, FORWARD, LEFT, RIGHT };

message_t message;
uint8_t motion = STOP;
volatile uint8_t closest = NOBODY; /* since the last decision */
uint8_t last_closest = NOBODY;
uint32_t last_decision;

message_t *message_tx(void)
{
    return &message;
}

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)msg;
    uint8_t distance = estimate_distance(dist);
    if (distance < closest) {
        closest = distance;
    }
}

void set_motion(uint8_t wanted)
{
    if (wanted == motion) {
        return;
    }
    motion = wanted;
    switch (wanted) {
    case STOP:
        set_motors(0, 0);
        break;
    case FORWARD:
        spinup_motors();
        set_motors(kilo_straight_left, kilo_straight_right);
        break;
    case LEFT:
        spinup_motors();
        set_motors(kilo_turn_left, 0);
        break;
    case RIGHT:
        spinup_motors();
        set_motors(0, kilo_turn_right);
        break;
    }
}

/* Forward as often as left and right together. */
uint8_t draw_motion(void)
{
    switch (rand_soft() & 3) {
    case 0:
        return LEFT;
    case 1:
        return RIGHT;
    default:
        return FORWARD;
    }
}

void setup(void)
{
    message.type = NORMAL;
    message.data[0] = kilo_uid & 0xFF;
    message.data[1] = kilo_uid >> 8;
    message.crc = message_crc(&message);
    rand_seed(rand_hard());
    last_decision = now();
}

void loop(void)
{
    uint32_t ticks = now();
    if (was_paused(ticks)) {
        motion = STOP; /* the motors are off */
    }
    if (ticks - last_decision < DECIDE_EVERY) {
        return;
    }
    last_decision = ticks;
    uint8_t distance = closest;
    closest = NOBODY;
    if (distance >= WANTED_DISTANCE) {
        set_color(RGB(0, 3, 0));
        set_motion(STOP);
    } else {
        set_color(RGB(3, 0, 0));
        if (motion != FORWARD || distance <= last_closest) {
            set_motion(draw_motion());
        }
    }
    last_closest = distance;
}

int main(void)
{
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
