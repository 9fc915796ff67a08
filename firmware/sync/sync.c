/* Synchronised blinking: pulse-coupled clocks, as fireflies do it.
 *
 * Each robot blinks once per period and says, in every message, how far into its period it is.
 * Whoever hears it notes by how much that clock is ahead of its own (or behind) and, at its next
 * blink, corrects its own period by half of the mean.
 *
 * What one should see: robots blink red every two seconds, at first each at its own time, after
 * some ten blinks all together. Clocks that run a per cent fast or slow are kept in step too.
 */
#include <avr/interrupt.h>
#include <kilolib.h>
#include <ticks.h>

#define PERIOD 61 /* ticks: 2.0 s */
#define FLASH_MS 60

message_t message;
uint32_t last_flash;
uint8_t this_period = PERIOD;

/* Collected by the interrupt between two blinks. */
volatile int16_t sum_of_leads;
volatile uint8_t leads;

uint8_t phase(void)
{
    uint32_t age = kilo_ticks - last_flash;
    return age < PERIOD ? age : PERIOD - 1;
}

message_t *message_tx(void)
{
    message.data[0] = phase();
    message.crc = message_crc(&message);
    return &message;
}

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)dist;
    int16_t lead = (int16_t)msg->data[0] - phase();
    if (lead > PERIOD / 2) {
        lead -= PERIOD;
    } else if (lead < -(PERIOD / 2)) {
        lead += PERIOD;
    }
    if (leads < 100) {
        sum_of_leads += lead;
        leads++;
    }
}

void setup(void)
{
    message.type = NORMAL;
    rand_seed(rand_hard());
    last_flash = now() - rand_soft() % PERIOD; /* start anywhere in the period */
}

void loop(void)
{
    if (now() - last_flash < this_period) {
        return;
    }
    cli(); /* the interrupt compares messages with last_flash, and collects leads */
    last_flash = kilo_ticks;
    int16_t sum = sum_of_leads;
    uint8_t count = leads;
    sum_of_leads = 0;
    leads = 0;
    sei();
    this_period = PERIOD;
    if (count > 0) {
        this_period -= sum / count / 2;
    }
    set_color(RGB(3, 0, 0));
    delay(FLASH_MS);
    set_color(RGB(0, 0, 0));
}

int main(void)
{
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
