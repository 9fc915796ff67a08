/* Edge following: walks round a group of stars (`orbit_star`), always at 60 mm from the closest
 * one.
 *
 * The robot remembers the distance of each neighbour it has heard in the last second and a half and
 * steers by the smallest: closer than wanted it turns left, otherwise right.
 *
 * What one should see: the robot follows the outline of the group clockwise; red while it turns
 * left, green while it turns right, blue and at rest when it hears nobody.
 */
#include <kilolib.h>
#include <ticks.h>

#define DESIRED_DISTANCE 60 /* mm, centre to centre */
#define NEIGHBOURS 16
#define FORGET_AFTER (3 * TICKS_PER_SEC / 2)
#define NOBODY 255

enum { STOP, LEFT, RIGHT };

typedef struct {
    uint16_t uid;
    uint8_t distance; /* mm; NOBODY: free */
    uint32_t heard;
} neighbour_t;

neighbour_t neighbours[NEIGHBOURS];
uint8_t motion = STOP;

/* The message in hand: filled by the interrupt, emptied by loop. */
volatile uint8_t new_message;
uint16_t sender;
distance_measurement_t measurement;

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    if (!new_message) {
        sender = msg->data[0] | (uint16_t)msg->data[1] << 8;
        measurement = *dist;
        new_message = 1;
    }
}

void remember(uint16_t uid, uint8_t distance)
{
    neighbour_t *place = &neighbours[0];
    for (uint8_t i = 0; i < NEIGHBOURS; i++) {
        neighbour_t *n = &neighbours[i];
        if (n->distance != NOBODY && n->uid == uid) {
            place = n;
            break;
        }
        if (n->distance > place->distance) {
            place = n; /* a free place, or else the farthest neighbour */
        }
    }
    place->uid = uid;
    place->distance = distance;
    place->heard = now();
}

uint8_t closest(void)
{
    uint8_t smallest = NOBODY;
    uint32_t ticks = now();
    for (uint8_t i = 0; i < NEIGHBOURS; i++) {
        neighbour_t *n = &neighbours[i];
        if (n->distance != NOBODY && ticks - n->heard > FORGET_AFTER) {
            n->distance = NOBODY;
        }
        if (n->distance < smallest) {
            smallest = n->distance;
        }
    }
    return smallest;
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
    for (uint8_t i = 0; i < NEIGHBOURS; i++) {
        neighbours[i].distance = NOBODY;
    }
}

void loop(void)
{
    if (was_paused(now())) {
        motion = STOP; /* the motors are off */
    }
    if (new_message) {
        uint8_t distance = estimate_distance(&measurement);
        remember(sender, distance == NOBODY ? NOBODY - 1 : distance);
        new_message = 0;
    }
    uint8_t distance = closest();
    if (distance == NOBODY) {
        set_color(RGB(0, 0, 1));
        set_motion(STOP);
    } else if (distance < DESIRED_DISTANCE) {
        set_color(RGB(1, 0, 0));
        set_motion(LEFT);
    } else {
        set_color(RGB(0, 1, 0));
        set_motion(RIGHT);
    }
}

int main(void)
{
    kilo_init();
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
