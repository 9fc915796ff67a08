/* Gradient: how many hops is it to the seed?
 *
 * The robot whose id is SEED_UID is the seed and says 0. Every other robot takes the smallest value
 * it hears, plus one, and says that. What was learnt is forgotten if nobody with a smaller value
 * has been heard for two seconds, so the gradient mends itself when robots are moved or taken away.
 *
 * What one should see: rings of colour round the seed. 0 white, 1 red, 2 yellow, 3 green, 4 cyan, 5
 * blue, 6 magenta, 7 red again and so on; dark where no path leads to the seed. After the seed is
 * taken away the colours change a few times, upwards, while the robots still hear each other, and
 * never settle on the old ones.
 */
#include <kilolib.h>
#include <ticks.h>

#ifndef SEED_UID
#define SEED_UID 0
#endif
#define GRADIENT_MAX 65535
#define FORGET_AFTER (2 * TICKS_PER_SEC)

message_t message;
uint16_t own_gradient = GRADIENT_MAX;
volatile uint16_t received_gradient;
volatile uint8_t new_message;
uint32_t last_update;

message_t *message_tx(void)
{
    if (own_gradient == GRADIENT_MAX) {
        return NULL;
    }
    return &message;
}

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)dist;
    received_gradient = msg->data[0] | (uint16_t)msg->data[1] << 8;
    new_message = 1;
}

void say(uint16_t gradient)
{
    message.data[0] = gradient & 0xFF;
    message.data[1] = gradient >> 8;
    message.crc = message_crc(&message);
    own_gradient = gradient;
}

void show(void)
{
    static const uint8_t colors[] = {
        RGB(3, 0, 0), RGB(3, 3, 0), RGB(0, 3, 0), RGB(0, 3, 3), RGB(0, 0, 3), RGB(3, 0, 3),
    };
    if (own_gradient == GRADIENT_MAX) {
        set_color(RGB(0, 0, 0));
    } else if (own_gradient == 0) {
        set_color(RGB(3, 3, 3));
    } else {
        set_color(colors[(own_gradient - 1) % sizeof(colors)]);
    }
}

void setup(void)
{
    message.type = NORMAL;
    say(kilo_uid == SEED_UID ? 0 : GRADIENT_MAX);
    last_update = now();
}

void loop(void)
{
    if (kilo_uid != SEED_UID) {
        if (new_message) {
            new_message = 0;
            uint16_t heard = received_gradient;
            if (heard < own_gradient) {
                last_update = now();
                if (heard + 1 < own_gradient) {
                    say(heard + 1);
                }
            }
        }
        if (own_gradient != GRADIENT_MAX && now() - last_update > FORGET_AFTER) {
            say(GRADIENT_MAX);
        }
    }
    show();
}

int main(void)
{
    kilo_init();
    kilo_message_rx = message_rx;
    kilo_message_tx = message_tx;
    kilo_start(setup, loop);
    return 0;
}
