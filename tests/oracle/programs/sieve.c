/* The sieve of Eratosthenes in a bit field, perfect numbers, greatest common divisors. */
#include "finished.h"

#define LIMIT 8000
uint8_t composite[LIMIT / 8];
volatile uint16_t primes, largest, perfect, divisors;

int main(void)
{
    for (uint16_t n = 2; n < LIMIT; n++) {
        if (composite[n >> 3] & 1 << (n & 7))
            continue;
        primes++;
        largest = n;
        for (uint32_t multiple = (uint32_t)n * n; multiple < LIMIT; multiple += n)
            composite[multiple >> 3] |= 1 << (multiple & 7);
    }
    for (uint16_t n = 2; n < 130; n++) {
        uint16_t sum = 1;
        for (uint16_t d = 2; d < n; d++)
            if (n % d == 0)
                sum += d;
        perfect += sum == n ? n : 0;
    }
    for (uint8_t round = 0; round < 20; round++) {
        uint16_t a = next_random() | 1, b = next_random() | 1;
        while (b) {
            const uint16_t rest = a % b;
            a = b;
            b = rest;
        }
        divisors += a;
    }
    finished();
}
