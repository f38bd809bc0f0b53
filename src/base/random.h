/* base/random.h - random numbers that depend only on a seed and an index. */
#ifndef TN_BASE_RANDOM_H
#define TN_BASE_RANDOM_H

#include <stdint.h>

/* The index-th number, from 0, of the SplitMix64 generator started at `seed`. */
static inline uint64_t tn_random_at(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
