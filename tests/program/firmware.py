"""C programs for tests, compiled on the spot with avr-gcc."""

import subprocess

SOURCE = r"""
#include <avr/eeprom.h>
#include <avr/fuse.h>
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/lock.h>
#include <avr/pgmspace.h>

FUSES = {.low = 0xE2, .high = 0xD9, .extended = 0xFE};
LOCKBITS = 0xEF;

typedef enum { RED, GREEN = 5 } colour_t;
typedef struct node {
    uint16_t dist;
    uint8_t id;
    struct node *next;
    colour_t colour;
    unsigned low : 3;
    unsigned high : 5;
    union { float real; int32_t whole; };
} node_t;

node_t neighbours[4] = {{0x1234, 2}};
struct { int16_t gradient; float grid[3][2]; char name[8]; } mydata;
uint16_t EEMEM saved = 0xBEEF;
static volatile uint8_t ticks;
const uint8_t table[] PROGMEM = {1, 2, 3};
int (*callback)(void);
_Bool flag;
int64_t big;
__uint24 odd;
uint8_t dropped_variable = 1;

void dropped_function(void) { dropped_variable++; }

ISR(TIMER0_OVF_vect) { ticks++; }

__attribute__((noinline)) int helper(int a) {
    static int calls = 7;
    calls += a + pgm_read_byte(&table[a & 1]);
    return calls;
}

int main(void) {
    neighbours[1].dist = helper(3);
    mydata.gradient = eeprom_read_word(&saved);
    big += odd + flag + (int)callback;
    sei();
    for (;;) PORTB = ticks;
}
"""


def compile_firmware(folder, *options, source=SOURCE, name="firmware", mcu="atmega328p"):
    """Compile and link; returns the path of the .elf file."""
    (folder / f"{name}.c").write_text(source)
    command = ["avr-gcc", f"-mmcu={mcu}", "-Os", *options, f"{name}.c", "-o", f"{name}.elf"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / f"{name}.elf"


def line_of(text):
    """The number of the line of SOURCE that holds ``text``."""
    return next(n for n, line in enumerate(SOURCE.splitlines(), start=1) if text in line)
