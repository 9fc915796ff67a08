/* Every test program ends here: the tests run up to this symbol. */
#include <stdint.h>

__attribute__((noinline, noreturn)) void finished(void)
{
    for (;;)
        __asm__ volatile("");
}

/* A small generator, so that the programs have something to chew on (xorshift, 32 bits). */
static uint32_t seed = 2463534242UL;
static uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}
