/* Runs a raw flash image on simavr's ATmega328P and writes checkpoints of the CPU state to a file.

   simavr_trace IMAGE OUTPUT EVERY COUNT [UNTIL]

   IMAGE   raw flash bytes from address 0
   OUTPUT  file of checkpoints, see struct checkpoint (little endian, no padding)
   EVERY   instructions between two checkpoints; the first one is taken before the first instruction
   COUNT   instructions to run at most
   UNTIL   byte address; stop before the instruction there has run (a last checkpoint is written)

   Exit code 0: COUNT or UNTIL was reached; 1: usage or file trouble; 2: simavr left the running state (crash, sleep). */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simavr/sim_avr.h"
#include "simavr/sim_core.h"

enum { FLASH_BYTES = 0x8000, SRAM_START = 0x100, SRAM_BYTES = 0x800 };

struct __attribute__((packed)) checkpoint {
    uint64_t instruction; /* instructions executed so far */
    uint64_t cycle;
    uint16_t pc;          /* byte address of the next instruction */
    uint16_t sp;
    uint8_t sreg;
    uint8_t registers[32];
    uint8_t sram[SRAM_BYTES];
};

static void write_checkpoint(avr_t *avr, uint64_t instruction, FILE *output)
{
    struct checkpoint c;
    c.instruction = instruction;
    c.cycle = avr->cycle;
    c.pc = (uint16_t)avr->pc;
    c.sp = (uint16_t)(avr->data[R_SPL] | avr->data[R_SPH] << 8);
    READ_SREG_INTO(avr, c.sreg);
    memcpy(c.registers, avr->data, 32);
    memcpy(c.sram, avr->data + SRAM_START, SRAM_BYTES);
    if (fwrite(&c, sizeof c, 1, output) != 1) {
        perror("simavr_trace: output");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: simavr_trace IMAGE OUTPUT EVERY COUNT [UNTIL]\n");
        return 1;
    }
    static uint8_t flash[FLASH_BYTES];
    memset(flash, 0xFF, sizeof flash);
    FILE *image = fopen(argv[1], "rb");
    if (!image) {
        perror(argv[1]);
        return 1;
    }
    size_t size = fread(flash, 1, sizeof flash, image);
    fclose(image);
    FILE *output = fopen(argv[2], "wb");
    if (!output || size == 0) {
        fprintf(stderr, "simavr_trace: empty image or output not writable\n");
        return 1;
    }
    const uint64_t every = strtoull(argv[3], NULL, 0);
    const uint64_t count = strtoull(argv[4], NULL, 0);
    const long until = argc == 6 ? strtol(argv[5], NULL, 0) : -1;

    avr_t *avr = avr_make_mcu_by_name("atmega328p");
    if (!avr)
        return 1;
    avr_init(avr);
    avr->frequency = 8000000;
    avr->log = LOG_ERROR;
    avr_loadcode(avr, flash, FLASH_BYTES, 0);
    avr->codeend = avr->flashend;

    int code = 0;
    uint64_t done = 0;
    for (;;) {
        const int last = done == count || avr->pc == (avr_flashaddr_t)until;
        if (last || done % every == 0)
            write_checkpoint(avr, done, output);
        if (last)
            break;
        avr->run_cycle_limit = avr->run_cycle_count = 1; /* exactly one instruction per avr_run */
        const int state = avr_run(avr);
        done++;
        if (state != cpu_Running) {
            fprintf(stderr, "simavr_trace: state %d after %llu instructions, pc 0x%04x\n", state,
                    (unsigned long long)done, (unsigned)avr->pc);
            write_checkpoint(avr, done, output);
            code = 2;
            break;
        }
    }
    if (fclose(output)) {
        perror("simavr_trace: output");
        return 1;
    }
    return code;
}
