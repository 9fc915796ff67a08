/* Chatter: what does all the talk cost? Every robot sends random bytes at the usual rate and waits
 * in delays of 1, 10 and 100 ms meanwhile. `avrswarm timing chatter --delay` measures how much
 * longer the delays get, and how much of the time interrupts take, the more neighbours talk.
 *
 * What one should see: dim white, and a short green flash per message heard.
 */
#include <kilolib.h>

message_t message;
volatile uint8_t heard;

/* Random bytes have four ones each, so a message has 74 pulses on average. */
message_t *message_tx(void)
{
    for (uint8_t i = 0; i < 9; i++) {
        message.data[i] = rand_soft();
    }
    message.crc = message_crc(&message);
    return &message;
}

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)msg;
    (void)dist;
    heard = 1;
}

void setup(void)
{
    message.type = NORMAL;
    rand_seed(kilo_uid * 37 + 11);
}

void loop(void)
{
    set_color(heard ? RGB(0, 3, 0) : RGB(1, 1, 1));
    heard = 0;
    delay(1);
    delay(10);
    delay(100);
}

int main(void)
{
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
