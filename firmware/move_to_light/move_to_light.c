/* Move to light: stop-and-turn phototaxis with one light sensor.
 *
 * The robot stands still, averages 300 light readings (they are noisy), and compares with the stop
 * before. While it gets brighter it goes on turning to the same side; as soon as it gets darker it
 * turns to the other side. Both turns move it forward a little, so it swings about the direction of
 * the lamp and comes closer.
 *
 * What one should see: a zig-zag towards the light, half a second of turning (left red, right
 * green) between short stops (off). Under the lamp, where the sensor is saturated, the robot stops
 * for good and glows white. Works in a dark room: the sensor saturates at a few lux.
 */
#include <kilolib.h>

#define SAMPLES 300
#define SATURATED 1000
#define TURN_MS 500

enum { LEFT, RIGHT };

uint8_t side = LEFT;
int16_t last_light;

int16_t average_light(void)
{
    uint32_t sum = 0;
    uint16_t samples = 0;
    while (samples < SAMPLES) {
        int16_t light = get_ambientlight();
        if (light >= 0) { /* -1: a message is coming in */
            sum += light;
            samples++;
        }
    }
    return sum / SAMPLES;
}

void setup(void)
{
    last_light = average_light();
}

void loop(void)
{
    set_motors(0, 0);
    set_color(RGB(0, 0, 0));
    int16_t light = average_light();
    if (light >= SATURATED) {
        set_color(RGB(1, 1, 1));
        delay(TURN_MS);
        last_light = light;
        return;
    }
    if (light < last_light) {
        side = side == LEFT ? RIGHT : LEFT;
    }
    last_light = light;

    spinup_motors();
    if (side == LEFT) {
        set_color(RGB(1, 0, 0));
        set_motors(kilo_turn_left, 0);
    } else {
        set_color(RGB(0, 1, 0));
        set_motors(0, kilo_turn_right);
    }
    delay(TURN_MS);
}

int main(void)
{
    kilo_init();
    kilo_start(setup, loop);
    return 0;
}
