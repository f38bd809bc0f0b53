/* base/kept.h - how much may be made of stored data where the result is kept. */
#ifndef TN_BASE_KEPT_H
#define TN_BASE_KEPT_H

#include "base/checked.h"

#define TN_KEPT_USUAL (UINT64_C(1) << 30)

enum { TN_KEPT_TIMES = 1000 };  /* so many times what is stored is no surprise */

/* The limit for data that takes `stored` bytes; `given`: the caller's own, or 0. */
static inline uint64_t tn_kept_limit(uint64_t given, uint64_t stored)
{
    uint64_t most;
    if (given)
        return given;
    if (!tn_mul_u64(stored, TN_KEPT_TIMES, &most))
        return UINT64_MAX;
    return most < TN_KEPT_USUAL ? TN_KEPT_USUAL : most;
}

#endif
