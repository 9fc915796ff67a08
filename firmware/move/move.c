/* Simple movement with spin-up and delay.
 *
 * What one should see: two seconds forward (green), two seconds turning left (red), two seconds
 * turning right (blue), half a second of rest (off), and again. A robot with good motor values ends
 * each round a few centimetres from where it began.
 */
#include <kilolib.h>

void setup(void)
{
}

void loop(void)
{
    set_color(RGB(0, 3, 0));
    spinup_motors();
    set_motors(kilo_straight_left, kilo_straight_right);
    delay(2000);

    set_color(RGB(3, 0, 0));
    spinup_motors();
    set_motors(kilo_turn_left, 0);
    delay(2000);

    set_color(RGB(0, 0, 3));
    spinup_motors();
    set_motors(0, kilo_turn_right);
    delay(2000);

    set_color(RGB(0, 0, 0));
    set_motors(0, 0);
    delay(500);
}

int main(void)
{
    kilo_init();
    kilo_start(setup, loop);
    return 0;
}
