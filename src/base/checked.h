/* base/checked.h - arithmetic on sizes that cannot wrap. */
#ifndef TN_BASE_CHECKED_H
#define TN_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool tn_add_u64(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool tn_mul_u64(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* Rounds up to a multiple of `align`, a power of two. */
static inline bool tn_align_u64(uint64_t n, uint64_t align, uint64_t *aligned)
{
    uint64_t up;
    if (!tn_add_u64(n, align - 1, &up))
        return false;
    *aligned = up & ~(align - 1);
    return true;
}

static inline uint64_t tn_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Rounds up; `by` is not 0. */
static inline uint64_t tn_div_up_u64(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

static inline bool tn_is_power_of_two(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

#endif
