/* The string library, also with strings in flash. */
#include <avr/pgmspace.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "finished.h"

static const char words_in_flash[] PROGMEM = "swarm robots blink their lights and talk to their neighbours";
char text[200], copy[200], number[12];
volatile uint16_t lengths, places, comparisons, letters;

int main(void)
{
    for (uint8_t round = 0; round < 8; round++) {
        strcpy_P(text, words_in_flash);
        strcat(text, "; round ");
        strcat(text, itoa(round * 37, number, 10));
        strncpy(copy, text + round, sizeof copy);
        memmove(copy + 3, copy, strlen(copy) + 1);
        memset(copy, '.', 3);
        lengths += strlen(text) * 3 + strlen(copy);
        places += (strchr(text, 'k') - text) + (strrchr(text, 't') - text) + (strstr(copy, "their") - copy);
        comparisons += (strcmp(text, copy) > 0) + 2 * (strncmp(text, text + 6, 3) < 0) + 4 * (memcmp(text, copy, 9) == 0);
        for (char *c = text; *c; c++) {
            *c = round & 1 ? toupper(*c) : *c;
            letters += isalpha(*c) != 0;
        }
        for (char *word = strtok(text, " ;"); word; word = strtok(NULL, " ;"))
            letters = letters * 5 + strlen(word);
        strrev(copy);
    }
    finished();
}
