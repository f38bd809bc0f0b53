/* tests/support/random.h - numbers by chance, the same in every run. */
#ifndef TN_TESTS_RANDOM_H
#define TN_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 1;       /* a test may begin anywhere */

static inline uint64_t next_state(void)
{
    return random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

static inline uint64_t bits64(void)
{
    uint64_t state = next_state();
    return state ^ state >> 29;
}

/* 31 bits: the upper ones, which repeat latest. */
static inline uint32_t draw(void)
{
    return (uint32_t)(next_state() >> 33);
}

/* From 0 on, below 1. */
static inline double uniform(void)
{
    return (double)(bits64() >> 11) * 0x1p-53;
}

/* 0 to n - 1. */
static inline uint64_t below(uint64_t n)
{
    return (bits64() >> 1) % n;
}

#endif
