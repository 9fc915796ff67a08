/* Timing probe: how long do library calls take? Put a logic analyser (or an emulator) on two pins
 * that the robot does not use otherwise (they are on the ISP header).
 *
 *   PB4 (MISO)  high while a call runs, low for 1 ms between calls. A round, again and again:
 *                 1  nothing (what the toggling itself costs: 2 cycles)
 *                 2  delay(1)
 *                 3  delay(10)
 *                 4  delay(100)
 *                 5  estimate_distance, high gain only (high 650)
 *                 6  estimate_distance, both gains (high 800, low 175)
 *                 7  estimate_distance, low gain only (high 1000, low 250)
 *                 8  get_ambientlight
 *                 9  message_crc
 *   PB5 (SCK)   high while the receive callback runs; it calls estimate_distance on what it got.
 *
 * The robot also sends, so the infrared pins show the frame, and pulses on PB4 that contain an
 * interrupt are longer.
 *
 * What one should see: the LED is green during the round and red for 20 ms at its end (about 7
 * rounds per second).
 */
#include <avr/io.h>
#include <kilolib.h>

#define PROBE_HIGH() (PORTB |= _BV(4))
#define PROBE_LOW() (PORTB &= ~_BV(4))
#define MEASURE(call) \
    do {              \
        delay(1);     \
        PROBE_HIGH(); \
        call;         \
        PROBE_LOW();  \
    } while (0)

message_t message;
volatile uint8_t result;
volatile uint16_t result16;

distance_measurement_t far = {150, 650};
distance_measurement_t middle = {175, 800};
distance_measurement_t near = {250, 1000};

message_t *message_tx(void)
{
    return &message;
}

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)msg;
    PORTB |= _BV(5);
    result = estimate_distance(dist);
    PORTB &= ~_BV(5);
}

void setup(void)
{
    DDRB |= _BV(4);
    DDRB |= _BV(5);
    message.type = NORMAL;
    message.crc = message_crc(&message);
}

void loop(void)
{
    set_color(RGB(0, 1, 0));
    MEASURE();
    MEASURE(delay(1));
    MEASURE(delay(10));
    MEASURE(delay(100));
    MEASURE(result = estimate_distance(&far));
    MEASURE(result = estimate_distance(&middle));
    MEASURE(result = estimate_distance(&near));
    MEASURE(result16 = get_ambientlight());
    MEASURE(result16 = message_crc(&message));
    set_color(RGB(1, 0, 0));
    delay(20);
}

int main(void)
{
    kilo_init();
    kilo_message_rx = message_rx;
    kilo_message_tx = message_tx;
    kilo_start(setup, loop);
    return 0;
}
