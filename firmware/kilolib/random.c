/* Random bytes. */
#include <util/delay.h>

#include "private.h"

#define MAX_TRIES 128

static uint8_t state = 0xAA;
static uint8_t counter;

void rand_seed(uint8_t seed)
{
    state = seed;
}

uint8_t rand_soft(void)
{
    state ^= state << 3;
    state ^= state >> 5;
    state ^= counter++ >> 2;
    return state;
}

/* Lowest bit of the battery reading; while a message is being received, wait for its end. */
static uint8_t noisy_bit(void)
{
    int16_t voltage = get_voltage();
    if (voltage < 0) {
        _delay_us(60);
    }
    return voltage & 1;
}

/* Takes noisy bits in pairs and keeps the first of two different ones, which removes their bias. */
static uint8_t fair_bit(void)
{
    uint8_t first;
    uint8_t tries = MAX_TRIES;
    do {
        first = noisy_bit();
        if (first != noisy_bit()) {
            break;
        }
    } while (--tries);
    return first;
}

uint8_t rand_hard(void)
{
    uint8_t value = 0;
    for (uint8_t i = 0; i < 8; i++) {
        value = value << 1 | fair_bit();
    }
    return value;
}
