/* Checksums: avr-libc's assembler versions, bitwise and table-driven CRCs, Fletcher and Adler. */
#include <avr/pgmspace.h>
#include <util/crc16.h>

#include "finished.h"

uint8_t data[256];
volatile uint16_t crc16, ccitt, xmodem, fletcher;
volatile uint8_t ibutton;
volatile uint32_t crc32, crc32_by_table, adler;

static const uint32_t nibbles[16] PROGMEM = {
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
};

int main(void)
{
    uint32_t bitwise = 0xFFFFFFFF, table = 0xFFFFFFFF, low = 1, high = 0;
    uint16_t sum = 0, sum_of_sums = 0;
    for (uint16_t i = 0; i < sizeof data; i++)
        data[i] = next_random();
    for (uint16_t i = 0; i < sizeof data; i++) {
        crc16 = _crc16_update(crc16, data[i]);
        ccitt = _crc_ccitt_update(ccitt, data[i]);
        xmodem = _crc_xmodem_update(xmodem, data[i]);
        ibutton = _crc_ibutton_update(ibutton, data[i]);
        bitwise ^= data[i];
        for (uint8_t bit = 0; bit < 8; bit++)
            bitwise = bitwise & 1 ? bitwise >> 1 ^ 0xEDB88320 : bitwise >> 1;
        table = table >> 4 ^ pgm_read_dword(&nibbles[(table ^ data[i]) & 15]);
        table = table >> 4 ^ pgm_read_dword(&nibbles[(table ^ data[i] >> 4) & 15]);
        sum = (sum + data[i]) % 255;
        sum_of_sums = (sum_of_sums + sum) % 255;
        low = (low + data[i]) % 65521;
        high = (high + low) % 65521;
    }
    crc32 = ~bitwise;
    crc32_by_table = ~table;
    fletcher = sum_of_sums << 8 | sum;
    adler = high << 16 | low;
    finished();
}
