/* Planet: circles a star (`orbit_star`) at a distance of 60 mm.
 *
 * It knows only how far the star is. Closer than wanted it turns left, otherwise right: put down
 * with the star on its right-hand side it walks round it clockwise.
 *
 * What one should see: a circle of about 60 mm radius round the star, walked in short arcs; the LED
 * is red while turning left (too close), green while turning right (too far), and blue when no star
 * has been heard for two seconds; then the robot stands still.
 */
#include <kilolib.h>
#include <ticks.h>

#define DESIRED_DISTANCE 60 /* mm, centre to centre */
#define LOST_AFTER (2 * TICKS_PER_SEC)

enum { STOP, LEFT, RIGHT };

distance_measurement_t measurement;
volatile uint8_t new_message;
uint32_t last_heard;
uint8_t motion = STOP;

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)msg;
    measurement = *dist;
    new_message = 1;
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

void setup(void)
{
    last_heard = now();
}

void loop(void)
{
    uint32_t ticks = now();
    if (was_paused(ticks)) {
        motion = STOP; /* the motors are off */
    }
    if (new_message) {
        new_message = 0;
        last_heard = ticks;
        if (estimate_distance(&measurement) < DESIRED_DISTANCE) {
            set_color(RGB(1, 0, 0));
            set_motion(LEFT);
        } else {
            set_color(RGB(0, 1, 0));
            set_motion(RIGHT);
        }
    } else if (ticks - last_heard > LOST_AFTER) {
        set_color(RGB(0, 0, 1));
        set_motion(STOP);
    }
}

int main(void)
{
    kilo_init();
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
