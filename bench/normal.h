/* normal.h - numbers like weights, for the programs of this folder. */
#ifndef BENCH_NORMAL_H
#define BENCH_NORMAL_H

#include <stddef.h>
#include <stdint.h>

/* Sums of uniform numbers: close to normal, largest about 6. */
static inline void make_normal(float *out, size_t n)
{
    enum { PERIOD = 1 << 20 };
    uint64_t state = 1;
    for (size_t i = 0; i < n && i < PERIOD; i++) {
        float sum = -6;
        for (int k = 0; k < 12; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            sum += (float)(state >> 40) * 0x1p-24F;
        }
        out[i] = sum;
    }
    for (size_t i = PERIOD; i < n; i++)
        out[i] = out[i - PERIOD];
}

#endif
