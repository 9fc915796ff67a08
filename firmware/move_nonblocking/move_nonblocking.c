/* Movement without delay: loop returns at once and looks at kilo_ticks, so that the robot can do
 * other things meanwhile.
 *
 * What one should see: the same path as `move` (forward green, left red, right blue, two seconds
 * each). Unlike `move`, a pause command takes effect within one pass of loop (after it the next
 * stretch begins), and the LED dims for a moment ten times in each stretch.
 */
#include <kilolib.h>
#include <ticks.h>

#define STRETCH (2 * TICKS_PER_SEC)

enum { FORWARD, LEFT, RIGHT, MOTIONS };

uint8_t motion;
uint32_t motion_began;

void start(uint8_t which)
{
    motion = which;
    motion_began = now();
    spinup_motors();
    switch (which) {
    case FORWARD:
        set_motors(kilo_straight_left, kilo_straight_right);
        break;
    case LEFT:
        set_motors(kilo_turn_left, 0);
        break;
    case RIGHT:
        set_motors(0, kilo_turn_right);
        break;
    }
}

void show(uint8_t which, uint8_t level)
{
    switch (which) {
    case FORWARD:
        set_color(RGB(0, level, 0));
        break;
    case LEFT:
        set_color(RGB(level, 0, 0));
        break;
    case RIGHT:
        set_color(RGB(0, 0, level));
        break;
    }
}

void setup(void)
{
    start(FORWARD);
}

void loop(void)
{
    uint32_t ticks = now();
    uint32_t age = ticks - motion_began;
    if (was_paused(ticks) || age >= STRETCH) {
        start((motion + 1) % MOTIONS);
        age = 0;
    }
    show(motion, age % 6 == 5 ? 1 : 3);
}

int main(void)
{
    kilo_init();
    kilo_start(setup, loop);
    return 0;
}
