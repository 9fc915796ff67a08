/* 32 and 64 bit multiplication, division, shifts and comparisons (libgcc routines). */
#include "finished.h"

volatile uint32_t results32[8];
volatile uint64_t results64[8];

static uint64_t next_random64(void)
{
    const uint64_t high = next_random();
    return high << 32 | next_random();
}

int main(void)
{
    for (uint8_t round = 0; round < 60; round++) {
        const uint32_t a = next_random(), b = (next_random() >> (round & 31)) | 1;
        const int32_t c = next_random(), d = (int32_t)next_random() >> (round & 15) | 1;
        const uint64_t e = next_random64(), f = (next_random64() >> round) | 1;
        const int64_t g = next_random64(), h = (int64_t)next_random64() >> (round & 31) | 1;
        results32[0] += a * b;
        results32[1] += a / b;
        results32[2] += a % b;
        results32[3] += c / d;
        results32[4] += c % d;
        results32[5] ^= (a << (round & 31)) + (b >> (round & 15));
        results32[6] ^= c >> (round & 31);
        results32[7] += (a < b) + 2 * (c < d) + 4 * (e < f) + 8 * (g < h);
        results64[0] += e * f;
        results64[1] += e / f;
        results64[2] += e % f;
        results64[3] += g / h;
        results64[4] += g % h;
        results64[5] ^= (e << (round & 63)) - (f >> (round & 31));
        results64[6] ^= g >> (round & 63);
        results64[7] += (uint64_t)a * b + (int64_t)c * d;
    }
    finished();
}
