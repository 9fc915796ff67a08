/* 8 and 16 bit arithmetic, signed and unsigned, shifts by variable amounts, comparisons. */
#include "finished.h"

volatile uint16_t results[64];

int main(void)
{
    for (uint16_t round = 0; round < 300; round++) {
        const uint8_t a = next_random(), b = next_random() | 1;
        const int8_t c = next_random(), d = next_random() | 1;
        const uint16_t e = next_random(), f = next_random() | 1;
        const int16_t g = next_random(), h = next_random() | 1;
        volatile uint16_t *r = results + (round & 3) * 16;
        r[0] += a + b;
        r[1] += (uint16_t)(a * b);
        r[2] += a / b;
        r[3] += a % b;
        r[4] += c * d;
        r[5] += c / d;
        r[6] += c % d;
        r[7] += e * f;
        r[8] += e / f;
        r[9] += e % f;
        r[10] += g * h;
        r[11] += g / h + g % h;
        r[12] += (e << (a & 15)) ^ (f >> (b & 15));
        r[13] += g >> (a & 15);
        r[14] += (a < b) + 2 * (c < d) + 4 * (e < f) + 8 * (g < h) + 16 * (c == (int8_t)a);
        r[15] += (a & b) | (a ^ (uint8_t)~b);
    }
    finished();
}
