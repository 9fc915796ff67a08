/* Blink: the first program on a new robot.
 *
 * What one should see: after RUN the LED turns red for half a second and blue for half a second,
 * for ever.
 */
#include <kilolib.h>

void setup(void)
{
}

void loop(void)
{
    set_color(RGB(3, 0, 0));
    delay(500);
    set_color(RGB(0, 0, 3));
    delay(500);
}

int main(void)
{
    kilo_init();
    kilo_start(setup, loop);
    return 0;
}
