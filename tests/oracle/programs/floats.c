/* Software floating point of libm: arithmetic, conversions, roots, trigonometry, logarithms. */
#include <math.h>

#include "finished.h"

volatile float results[12];
volatile int32_t whole;

int main(void)
{
    float x = 0.1f;
    for (uint8_t round = 0; round < 40; round++) {
        const float y = (float)(int32_t)next_random() / 65536.0f;
        results[0] += x * y;
        results[1] += y / (x + 3.0f);
        results[2] += sqrtf(fabsf(y));
        results[3] += sinf(x);
        results[4] += cosf(y);
        results[5] += atan2f(y, x);
        results[6] += expf(x / 16.0f);
        results[7] += logf(fabsf(y) + 1.0f);
        results[8] += powf(fabsf(y) + 1.0f, 0.3f);
        results[9] = fmodf(results[9] + y, 360.0f);
        results[10] += floorf(y) - ceilf(x);
        results[11] += y < x ? x : y;
        whole += (int32_t)y + (int16_t)x + lrintf(x);
        x += 0.37f;
    }
    finished();
}
