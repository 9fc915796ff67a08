/* Speaker: sends the same message over and over.
 *
 * What one should see: a short magenta flash for every message sent, about twice a second. A robot
 * with `listener` nearby flashes yellow each time.
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
}

void loop(void)
{
    if (message_sent) {
        message_sent = 0;
        set_color(RGB(3, 0, 3));
        delay(100);
        set_color(RGB(0, 0, 0));
    }
}

int main(void)
{
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_message_tx_success = message_tx_success;
    kilo_start(setup, loop);
    return 0;
}
