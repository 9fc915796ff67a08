/* Follow the leader: robot 0 leads, robot n follows robot n-1.
 *
 * The leader walks in short steps and rests in between. A follower knows only how far the robot
 * before it is. Too far away, it keeps turning to one side as long as it comes closer and changes
 * sides when it does not: a zig-zag towards the robot before it. Within reach it waits.
 *
 * What one should see: the leader (white while walking, dark at rest) with a train of robots behind
 * it. Followers are red or green while turning left or right, dim blue while they are close enough,
 * off when they have lost the robot before them.
 */
#include <kilolib.h>
#include <ticks.h>

#define NEAR 55 /* mm: stop below this */
#define FAR 70  /* mm: start above this */
#define STEP (TICKS_PER_SEC)
#define REST (4 * TICKS_PER_SEC)
#define LOST_AFTER (3 * TICKS_PER_SEC)

enum { STOP, FORWARD, LEFT, RIGHT };

message_t message;
uint8_t motion = STOP;

volatile uint8_t new_message;
distance_measurement_t measurement;
uint8_t last_distance = 255;
uint8_t side = LEFT;
uint32_t last_heard;
uint32_t step_began;

message_t *message_tx(void)
{
    return &message;
}

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    uint16_t sender = msg->data[0] | (uint16_t)msg->data[1] << 8;
    if (sender + 1 == kilo_uid && kilo_uid != 0) {
        measurement = *dist;
        new_message = 1;
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

void lead(void)
{
    uint32_t age = now() - step_began;
    if (age < STEP) {
        set_color(RGB(1, 1, 1));
        set_motion(FORWARD);
    } else {
        set_color(RGB(0, 0, 0));
        set_motion(STOP);
        if (age >= STEP + REST) {
            step_began = now();
        }
    }
}

void follow(void)
{
    if (new_message) {
        uint8_t distance = estimate_distance(&measurement);
        new_message = 0;
        last_heard = now();
        if (distance < NEAR || (motion == STOP && distance <= FAR)) {
            set_color(RGB(0, 0, 1));
            set_motion(STOP);
        } else {
            if (distance >= last_distance) {
                side = side == LEFT ? RIGHT : LEFT;
            }
            set_color(side == LEFT ? RGB(1, 0, 0) : RGB(0, 1, 0));
            set_motion(side);
        }
        last_distance = distance;
    } else if (now() - last_heard > LOST_AFTER) {
        set_color(RGB(0, 0, 0));
        set_motion(STOP);
        last_distance = 255;
    }
}

void setup(void)
{
    message.type = NORMAL;
    message.data[0] = kilo_uid & 0xFF;
    message.data[1] = kilo_uid >> 8;
    message.crc = message_crc(&message);
    step_began = now();
    last_heard = now();
}

void loop(void)
{
    if (was_paused(now())) {
        motion = STOP; /* the motors are off */
    }
    if (kilo_uid == 0) {
        lead();
    } else {
        follow();
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
