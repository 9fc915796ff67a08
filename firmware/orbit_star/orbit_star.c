/* Star: stands still and speaks, for planets and edge followers to measure their distance.
 *
 * What one should see: a robot at rest, glowing dim white, a little brighter for a moment at each
 * message.
 */
#include <kilolib.h>

message_t message;
volatile uint8_t message_sent;

message_t *message_tx(void)
{
    return &message;
}

void message_tx_success(void)
{
    message_sent = 1;
}

void setup(void)
{
    message.type = NORMAL;
    message.data[0] = kilo_uid & 0xFF;
    message.data[1] = kilo_uid >> 8;
    message.crc = message_crc(&message);
    kilo_tx_period = 1000; /* 4 ticks: a planet steers better when it hears its star often */
}

void loop(void)
{
    if (message_sent) {
        message_sent = 0;
        set_color(RGB(2, 2, 2));
        delay(20);
    }
    set_color(RGB(1, 1, 1));
}

int main(void)
{
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_message_tx_success = message_tx_success;
    kilo_start(setup, loop);
    return 0;
}
