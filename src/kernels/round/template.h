/* kernels/round/template.h - rounds float32 numbers in vectors of the compiler.
 *
 * Included once by each level's file, which first defines LEVEL, LANES and the vectors
 *
 *   vf, vi, vu         LANES floats, signed and unsigned integers
 *   vl                 LANES / 2 unsigned integers of 64 bits
 *   high_halves(a, b)  the upper 32 bits of LANES integers of 64 bits
 *
 * A number has a significand of 24 bits, of which the type drops `shift`, and one more for each exponent
 * below its lowest one.  What is dropped decides, with the mode, whether the rest grows by one. */
#include <string.h>

#include "kernels/round/table.h"

enum {
    MANTISSA = 0x7fffff,
    HIDDEN   = 0x800000,        /* the leading bit of a normal significand */
    MAGNITUDE = 0x7fffffff,
    SPECIAL  = 255,             /* exponent field of infinities and NaN */
    MOST     = 31               /* bits that can be dropped here; a significand has 24 */
};

INLINE vu chosen(vi mask, vu a, vu b)   { return ((vu)mask & a) | (~(vu)mask & b); }
INLINE vi most(vi a, int32_t b)         { return (vi)chosen((vi)(a > b), (vu)a, (vu)((vi){ 0 } + b)); }
INLINE vi least(vi a, int32_t b)        { return (vi)chosen((vi)(a < b), (vu)a, (vu)((vi){ 0 } + b)); }

static bool any_lane(vi mask)
{
    int32_t lane[LANES], all = 0;
    memcpy(lane, &mask, sizeof lane);
    for (unsigned i = 0; i < LANES; i++)
        all |= lane[i];
    return all != 0;
}

/* tn_random_at() of consecutive elements. */
INLINE vl random_numbers(uint64_t seed, uint64_t index)
{
    vl z;
    for (unsigned i = 0; i < LANES / 2; i++)
        z[i] = index + i + 1;
    z = z * UINT64_C(0x9e3779b97f4a7c15) + seed;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Numbers while they are rounded. */
typedef struct dropping {
    vu bits;                    /* of the magnitudes */
    vi negative;
    vi count;                   /* bits that are dropped, 0 to MOST */
    vu kept, dropped;           /* parts of the significands */
} dropping;

/* The lanes whose significand grows. */
INLINE vi growing(const dropping *d, const tn_round_rules *r, tn_round mode, uint64_t index)
{
    vu half = ((vu){ 0 } + 1) << (vu)d->count >> 1;
    vi some = (vi)(d->dropped != 0), above = (vi)(d->dropped > half), tie = (vi)(d->dropped == half);
    switch (mode) {
    case TN_ROUND_AWAY:    return some & (above | tie);
    case TN_ROUND_ZERO:    return some & above;
    case TN_ROUND_HALF_UP: return some & (above | (tie & ~d->negative));
    case TN_ROUND_UP:      return some & ~d->negative;
    case TN_ROUND_DOWN:    return some & d->negative;
    case TN_ROUND_STOCHASTIC: {
        vl first = random_numbers(r->seed, index);
        vu random = high_halves(first, random_numbers(r->seed, index + LANES / 2));
        return some & (vi)((random >> ((32 - (vu)d->count) & MOST)) < d->dropped);
    }
    default:               return (vi){ 0 };
    }
}

/* Lanes of *bad: see tn_round_fn. */
INLINE vu rounded(vu x, const tn_round_rules *r, tn_round mode, uint64_t index, vi *bad)
{
    dropping d = { .bits = x & MAGNITUDE, .negative = (vi)x >> 31 };
    vi field = (vi)(d.bits >> 23), below = r->lowest - most(field, 1);
    vi all = (int32_t)r->shift + most(below, 0);
    vu significand = (d.bits & MANTISSA) | ((vu)(field > 0) & HIDDEN);
    d.count = least(all, MOST);
    d.kept = significand >> (vu)d.count;
    d.dropped = significand & ((((vu){ 0 } + 1) << (vu)d.count) - 1);
    vu grown = (vu)growing(&d, r, mode, index) & 1;
    vu large = d.bits - d.dropped + (grown << (vu)d.count);
    /* below the lowest exponent all numbers are multiples of the same power of two */
    vf unit = (vf)((vu){ 0 } + ((r->shift + (uint32_t)r->lowest - 23) << 23));
    vu small = (vu)(__builtin_convertvector((vi)(d.kept + grown), vf) * unit);
    vi finite = (vi)(field < SPECIAL);
    vu out = chosen((vi)(below > 0), small, large);
    *bad |= finite & (vi)(out >= (vu){ 0 } + ((uint32_t)SPECIAL << 23));
    if (mode == TN_ROUND_STOCHASTIC)
        *bad |= (vi)(all > MOST) & (vi)(significand != 0);
    return chosen(finite, out | (x & ~(vu)((vu){ 0 } + MAGNITUDE)), x);
}

INLINE bool round_all(float *dst, const float *src, size_t n, uint64_t index, const tn_round_rules *rules,
                      tn_round mode)
{
    const tn_round_rules r = *rules;
    vi bad = { 0 };
    size_t i = 0;
    vu x;
    for (; n - i >= LANES; i += LANES) {
        memcpy(&x, src + i, sizeof x);
        x = rounded(x, &r, mode, index + i, &bad);
        memcpy(dst + i, &x, sizeof x);
    }
    if (i < n) {
        x = (vu){ 0 };
        memcpy(&x, src + i, (n - i) * sizeof *src);
        x = rounded(x, &r, mode, index + i, &bad);
        memcpy(dst + i, &x, (n - i) * sizeof *src);
    }
    return !any_lane(bad);
}

static bool round_numbers(float *dst, const float *src, size_t n, uint64_t index, const tn_round_rules *r)
{
    switch (r->round) {         /* each compiled for its mode */
    case TN_ROUND_AWAY:       return round_all(dst, src, n, index, r, TN_ROUND_AWAY);
    case TN_ROUND_ZERO:       return round_all(dst, src, n, index, r, TN_ROUND_ZERO);
    case TN_ROUND_HALF_UP:    return round_all(dst, src, n, index, r, TN_ROUND_HALF_UP);
    case TN_ROUND_TRUNC:      return round_all(dst, src, n, index, r, TN_ROUND_TRUNC);
    case TN_ROUND_UP:         return round_all(dst, src, n, index, r, TN_ROUND_UP);
    case TN_ROUND_DOWN:       return round_all(dst, src, n, index, r, TN_ROUND_DOWN);
    case TN_ROUND_STOCHASTIC: return round_all(dst, src, n, index, r, TN_ROUND_STOCHASTIC);
    default:                  return false;
    }
}

void LEVEL(tn_round_kernels_init)(tn_round_kernels *k)
{
    k->round = round_numbers;
}
