/* Listener: says nothing, shows what it hears.
 *
 * What one should see: a short yellow flash for every message that arrives; dark when nobody
 * speaks.
 */
#include <kilolib.h>

volatile uint8_t new_message;
uint16_t last_sender;

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)dist;
    last_sender = msg->data[0] | (uint16_t)msg->data[1] << 8;
    new_message = 1;
}

void setup(void)
{
}

void loop(void)
{
    if (new_message) {
        new_message = 0;
        set_color(RGB(3, 3, 0));
        delay(100);
        set_color(RGB(0, 0, 0));
    }
}

int main(void)
{
    kilo_init();
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
