/* Benchmark: computing. No interrupts, no I/O but the LED; ends by itself.
 *
 * Rounds of what firmware computes with: a CRC over a table, an insertion sort, 32-bit arithmetic
 * with divisions, floating point, string functions and recursion. Results go into `checksum`.
 *
 * What one should see: the LED green while it computes (about 7 seconds), then off: the chip sleeps
 * with interrupts off, where simavr ends too.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 416

volatile uint32_t checksum;

static uint8_t table[256];
static int16_t numbers[64];
static char text[48];

static uint16_t crc(const uint8_t *bytes, uint16_t count)
{
    uint16_t remainder = 0xFFFF;
    while (count--) {
        remainder ^= (uint16_t)*bytes++ << 8;
        for (uint8_t bit = 0; bit < 8; bit++)
            remainder = remainder & 0x8000 ? remainder << 1 ^ 0x1021 : remainder << 1;
    }
    return remainder;
}

static uint16_t sort(uint16_t seed)
{
    for (uint8_t i = 0; i < 64; i++) {
        seed = seed * 25173 + 13849;
        numbers[i] = (int16_t)seed;
    }
    for (uint8_t i = 1; i < 64; i++) {
        int16_t value = numbers[i];
        uint8_t place = i;
        while (place && numbers[place - 1] > value) {
            numbers[place] = numbers[place - 1];
            place--;
        }
        numbers[place] = value;
    }
    return (uint16_t)numbers[31];
}

static uint32_t divide(uint32_t value)
{
    uint32_t sum = 0;
    for (uint8_t divisor = 3; divisor < 40; divisor++)
        sum += value / divisor * 7 + value % divisor;
    return sum;
}

static uint32_t average(uint16_t seed)
{
    float mean = 0, spread = 1;
    for (uint8_t i = 1; i < 20; i++) {
        float value = (float)(seed >> (i & 7)) * 0.37f;
        mean += (value - mean) / i;
        spread = 0.9f * spread + 0.1f * (value - mean) * (value - mean);
    }
    return (uint32_t)(mean + spread);
}

static uint16_t fibonacci(uint8_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static uint16_t words(uint16_t value)
{
    utoa(value, text, 10);
    strcat(text, " robots of ");
    utoa(value ^ 0x5555, text + strlen(text), 16);
    return (uint16_t)strlen(text) + (uint8_t)text[strlen(text) / 2];
}

int main(void)
{
    DDRC = _BV(3);
    PORTC = _BV(3);
    for (uint16_t i = 0; i < 256; i++)
        table[i] = (uint8_t)(i * 73 + 11);
    uint32_t sum = 1;
    for (uint16_t round = 0; round < ROUNDS; round++) {
        table[round & 0xFF]++;
        sum += crc(table, sizeof table);
        sum += sort((uint16_t)sum);
        sum ^= divide(sum);
        sum += average((uint16_t)sum);
        sum += fibonacci(12);
        sum = (sum << 5 | sum >> 27) + words((uint16_t)sum);
    }
    checksum = sum;
    PORTC = 0;
    cli();
    sleep_enable();
    sleep_cpu();
    for (;;)
        ;
}
