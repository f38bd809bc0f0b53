/* base/kept.h - the limit for decoded data that is kept. */
#ifndef TN_BASE_KEPT_H
#define TN_BASE_KEPT_H

#include "base/checked.h"

#define TN_KEPT_USUAL (UINT64_C(1) << 30)

enum { TN_KEPT_TIMES = 1000 };  /* growth that needs no permission */

/* The limit for data of `stored` bytes; `given`: the caller's limit, or 0. */
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
