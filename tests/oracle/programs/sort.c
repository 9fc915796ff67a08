/* qsort with a comparison through a function pointer, bsearch, insertion sort. */
#include <stdlib.h>

#include "finished.h"

#define COUNT 120
int16_t numbers[COUNT];
struct pair {
    uint8_t key;
    uint32_t value;
} pairs[40];
volatile uint16_t found;

static int by_value(const void *a, const void *b)
{
    const int16_t x = *(const int16_t *)a, y = *(const int16_t *)b;
    return x < y ? -1 : x > y;
}

static int by_key(const void *a, const void *b)
{
    return ((const struct pair *)a)->key - ((const struct pair *)b)->key;
}

int main(void)
{
    for (uint8_t i = 0; i < COUNT; i++)
        numbers[i] = next_random();
    for (uint8_t i = 0; i < 40; i++)
        pairs[i] = (struct pair){next_random(), next_random()};
    qsort(numbers, COUNT, sizeof numbers[0], by_value);
    qsort(pairs, 40, sizeof pairs[0], by_key);
    for (uint8_t i = 0; i < COUNT; i += 7)
        found += bsearch(&numbers[i], numbers, COUNT, sizeof numbers[0], by_value) == &numbers[i];
    for (uint8_t i = 1; i < COUNT; i++) {
        const int16_t x = numbers[i] ^ 0x5555;
        uint8_t j = i;
        for (; j > 0 && numbers[j - 1] > x; j--)
            numbers[j] = numbers[j - 1];
        numbers[j] = x;
    }
    finished();
}
