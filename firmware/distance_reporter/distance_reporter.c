/* Distance reporter, for calibration: tells the estimated distance of every message it hears.
 *
 * Over the serial header (38400 8N1) one line per message:  sender low_gain high_gain distance_mm
 * On the LED the last distance as a number: red flashes are tens of millimetres, green flashes
 * single millimetres (a dim flash is a zero), then a pause. 60 mm: six red flashes, one dim green
 * flash.
 *
 * What one should see: with a `speaker` or `orbit_star` at a measured distance (centre to centre)
 * the number comes within a few millimetres of it between 33 and 98 mm; robots without calibration
 * tables say 123 or 32 whatever the distance.
 */
#define DEBUG
#include <avr/interrupt.h>
#include <debug.h>
#include <kilolib.h>
#include <ticks.h>

#define FLASH_MS 150
#define GAP_MS 150
#define PAUSE_MS 1000

/* Messages wait here for the serial line. */
#define QUEUE 8
typedef struct {
    uint16_t sender;
    distance_measurement_t measurement;
} heard_t;

heard_t queue[QUEUE];
volatile uint8_t queue_in, queue_out;
uint8_t distance;

/* Flashes still to be shown, and when the LED changes next. */
uint8_t tens, ones, zero;
uint32_t next_change;
uint8_t lit;

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    uint8_t next = (queue_in + 1) % QUEUE;
    if (next != queue_out) {
        queue[queue_in].sender = msg->data[0] | (uint16_t)msg->data[1] << 8;
        queue[queue_in].measurement = *dist;
        queue_in = next;
    }
}

void report(void)
{
    heard_t heard = queue[queue_out];
    queue_out = (queue_out + 1) % QUEUE;
    distance = estimate_distance(&heard.measurement);
    printf("%u %d %d %u\n", heard.sender, heard.measurement.low_gain,
           heard.measurement.high_gain, distance);
}

uint16_t ms_to_ticks(uint16_t ms)
{
    return ((uint32_t)ms * TICKS_PER_SEC + 500) / 1000;
}

void light(uint8_t color)
{
    lit = 1;
    set_color(color);
    next_change = now() + ms_to_ticks(FLASH_MS);
}

/* Looks whether the LED must change, and returns at once. */
void flash(void)
{
    if (now() < next_change) {
        return;
    }
    if (lit) {
        lit = 0;
        set_color(RGB(0, 0, 0));
        next_change = now() + ms_to_ticks(tens || ones || zero ? GAP_MS : PAUSE_MS);
    } else if (tens) {
        tens--;
        light(RGB(3, 0, 0));
    } else if (ones) {
        ones--;
        light(RGB(0, 3, 0));
    } else if (zero) {
        zero = 0;
        light(RGB(0, 1, 0));
    } else if (distance) {
        tens = distance / 10;
        ones = distance % 10;
        zero = ones == 0;
        distance = 0;
    }
}

void setup(void)
{
    printf("sender low_gain high_gain distance_mm\n");
}

void loop(void)
{
    if (queue_in != queue_out) {
        report();
    }
    flash();
}

int main(void)
{
    kilo_init();
    debug_init();
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
