/* Matrices of three element types: products, transposition, Gaussian elimination. */
#include "finished.h"

#define N 6
int16_t a[N][N], b[N][N];
int32_t product[N][N];
float system[N][N + 1], solution[N];
uint8_t transposed[8][16];

int main(void)
{
    for (uint8_t i = 0; i < N; i++)
        for (uint8_t j = 0; j < N; j++) {
            a[i][j] = next_random();
            b[i][j] = (int8_t)next_random();
            system[i][j] = (float)(int8_t)next_random() + (i == j ? 300.0f : 0.0f);
            system[i][N] = i + 1;
        }
    for (uint8_t i = 0; i < N; i++)
        for (uint8_t j = 0; j < N; j++)
            for (uint8_t k = 0; k < N; k++)
                product[i][j] += (int32_t)a[i][k] * b[k][j];
    for (uint8_t column = 0; column < N; column++)
        for (uint8_t row = column + 1; row < N; row++) {
            const float factor = system[row][column] / system[column][column];
            for (uint8_t k = column; k <= N; k++)
                system[row][k] -= factor * system[column][k];
        }
    for (int8_t row = N - 1; row >= 0; row--) {
        float rest = system[row][N];
        for (uint8_t k = row + 1; k < N; k++)
            rest -= system[row][k] * solution[k];
        solution[row] = rest / system[row][row];
    }
    for (uint8_t i = 0; i < 16; i++)
        for (uint8_t j = 0; j < 8; j++)
            transposed[j][i] = next_random() + (uint8_t)product[i % N][j % N];
    finished();
}
