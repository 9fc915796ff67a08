/* Deep and branching recursion: Ackermann, Hanoi, Fibonacci, mutual recursion, permutations. */
#include "finished.h"

volatile uint16_t ackermann_result, hanoi_moves, fibonacci_result, even_result, permutations;

__attribute__((noinline)) static uint16_t ackermann(uint16_t m, uint16_t n)
{
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

__attribute__((noinline)) static void hanoi(uint8_t discs, uint8_t from, uint8_t to, uint8_t over)
{
    if (discs == 0)
        return;
    hanoi(discs - 1, from, over, to);
    hanoi_moves += from * 4 + to;
    hanoi(discs - 1, over, to, from);
}

__attribute__((noinline)) static uint16_t fibonacci(uint8_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static uint8_t odd(uint8_t n);
__attribute__((noinline)) static uint8_t even(uint8_t n)
{
    return n == 0 ? 1 : odd(n - 1);
}
__attribute__((noinline)) static uint8_t odd(uint8_t n)
{
    return n == 0 ? 0 : even(n - 1);
}

static uint8_t order[5] = {0, 1, 2, 3, 4};
__attribute__((noinline)) static void permute(uint8_t first)
{
    if (first == 5) {
        permutations = permutations * 3 + order[0] + 2 * order[2] + 4 * order[4];
        return;
    }
    for (uint8_t i = first; i < 5; i++) {
        uint8_t swap = order[first];
        order[first] = order[i];
        order[i] = swap;
        permute(first + 1);
        swap = order[first];
        order[first] = order[i];
        order[i] = swap;
    }
}

int main(void)
{
    ackermann_result = ackermann(2, 5);
    hanoi(8, 1, 2, 3);
    fibonacci_result = fibonacci(14);
    even_result = even(40) + 2 * even(41);
    permute(0);
    finished();
}
