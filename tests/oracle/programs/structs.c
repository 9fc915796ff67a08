/* Structs copied, passed and returned by value, bit fields, unions, linked lists, function tables, setjmp, malloc. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "finished.h"

struct robot {
    uint16_t id;
    int32_t x, y;
    uint8_t colour : 3, charging : 1, mode : 4;
    char name[9];
};
union both {
    float real;
    uint8_t bytes[4];
};
struct node {
    struct node *next;
    uint16_t value;
};

struct robot robots[12];
volatile uint32_t sum;
volatile uint16_t list_sum, jumps;
volatile uint8_t bytes_sum;
static jmp_buf place;

__attribute__((noinline)) static struct robot moved(struct robot robot, int32_t dx, int32_t dy)
{
    robot.x += dx;
    robot.y -= dy;
    robot.colour++;
    robot.mode ^= robot.charging ? 5 : 3;
    return robot;
}

static uint16_t twice(uint16_t x) { return x * 2; }
static uint16_t thrice(uint16_t x) { return x * 3; }
static uint16_t flipped(uint16_t x) { return ~x; }
static uint16_t (*const operations[])(uint16_t) = {twice, thrice, flipped};

int main(void)
{
    for (uint8_t i = 0; i < 12; i++) {
        robots[i] = (struct robot){i, next_random(), next_random(), i & 7, i & 1, i, "kilobot"};
        robots[i].name[7] = 'a' + i;
    }
    for (uint8_t round = 0; round < 20; round++)
        for (uint8_t i = 0; i < 12; i++)
            robots[i] = moved(robots[(i + 5) % 12], round * 1000L, (int32_t)next_random());
    for (uint8_t i = 0; i < 12; i++) {
        const union both both = {.real = (float)robots[i].x / 3.0f};
        bytes_sum += both.bytes[i & 3];
        sum += robots[i].x + robots[i].mode + robots[i].id;
    }
    struct node *list = NULL;
    for (uint8_t i = 0; i < 20; i++) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){list, operations[i % 3](next_random())};
        list = node;
        if (i % 4 == 3) {
            struct node *second = list->next;
            list->next = second->next;
            free(second);
        }
    }
    for (struct node *node = list; node; node = node->next)
        list_sum += node->value;
    if (setjmp(place) < 5) {
        jumps++;
        longjmp(place, jumps);
    }
    finished();
}
