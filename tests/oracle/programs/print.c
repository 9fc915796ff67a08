/* printf into a buffer, with every conversion the standard library has, and back with strtol and strtod. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "finished.h"

char text[160];
volatile long number;
volatile double real;
volatile uint16_t length;

int main(void)
{
    for (uint8_t round = 0; round < 12; round++) {
        const uint32_t a = next_random();
        const int b = next_random();
        length += snprintf(text, sizeof text, "%d %u %5d|%-6d|%06d %x %X %lu %ld %lx %c %s %10s %o", b, b, b >> 4, b >> 8,
                           b >> 3, b, b, (unsigned long)a, (long)a, (unsigned long)a, 'a' + round, "kilobot", "avr", b);
        number += strtol(text, NULL, 10) + atol(text + 3);
        length += sprintf(text + 100, "%f %e %g %.3f", (double)b / 7, (double)a, (double)b, (double)a / 1e6);
        real += strtod(text + 100, NULL);
    }
    finished();
}
