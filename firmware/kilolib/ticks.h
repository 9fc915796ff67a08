/* Two small helpers for programs that go by kilo_ticks. An addition of ours; nothing in the library
 * needs them.
 */
#ifndef TICKS_H
#define TICKS_H

#include <stdbool.h>
#include <util/atomic.h>

#include "kilolib.h"

/* Time since reset in ticks. kilo_ticks has four bytes, read one by one: a tick in between, when the
 * lowest one overflows, would make the time jump by 256 ticks. */
static inline uint32_t now(void)
{
    uint32_t ticks;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
        ticks = kilo_ticks;
    }
    return ticks;
}

/* True if a pause has switched the motors off since the pass of loop before this one. For programs
 * whose loop returns within a tick or so and calls this once, with the time of now. */
static inline bool was_paused(uint32_t ticks)
{
    static uint32_t last_pass;
    bool paused = last_pass != 0 && ticks - last_pass > 2;
    last_pass = ticks;
    return paused;
}

#endif
