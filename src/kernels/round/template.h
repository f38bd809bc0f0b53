/* kernels/round/template.h - rounds float32 numbers in vectors of the compiler.
 *
 * Included once by each level's file, which first defines LEVEL, LANES and the vectors
 *
 *   vf, vi, vu         LANES floats, signed and unsigned integers
 *   vl                 LANES / 2 unsigned integers of 64 bits
 *   high_halves(a, b)  the upper 32 bits of LANES integers of 64 bits
 *
 * Numbers of the type between two powers of two are multiples of a power of two, the step, and so are
 * those below its lowest exponent.  A magnitude in steps is a float32 below 2^24.  Its fraction decides,
 * with the mode, whether the whole part grows by one. */
#include <string.h>

#include "kernels/round/table.h"

enum {
    MAGNITUDE = 0x7fffffff,
    INFINITE  = 0x7f800000,
    ONE       = 0x3f800000,
    MANTISSA  = 23              /* bits */
};

INLINE vu every(uint32_t n)             { return (vu){ 0 } + n; }
INLINE vu chosen(vi mask, vu a, vu b)   { return ((vu)mask & a) | (~(vu)mask & b); }

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
    static const uint64_t next[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    vl z;
    memcpy(&z, next, sizeof z);
    z = (z + index) * UINT64_C(0x9e3779b97f4a7c15) + seed;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Lanes that grow by chance.  A random number and a fraction are compared by their upper 31 bits; if those
 * are equal, only the definition knows: *bad. */
INLINE vi growing_by_chance(vf fraction, uint64_t seed, uint64_t index, vi *bad)
{
    vl first = random_numbers(seed, index);
    vi random = (vi)(high_halves(first, random_numbers(seed, index + LANES / 2)) >> 1);
    vi limit = __builtin_convertvector(fraction * 0x1p31f, vi);
    *bad |= (vi)(random == limit);
    return (vi)(random < limit);
}

/* The lanes whose whole part grows. */
INLINE vi growing(vf fraction, vi negative, tn_round mode)
{
    vi some = (vi)(fraction > 0), above = (vi)(fraction > 0.5f), tie = (vi)(fraction == 0.5f);
    switch (mode) {
    case TN_ROUND_AWAY:    return above | tie;
    case TN_ROUND_ZERO:    return above;
    case TN_ROUND_HALF_UP: return above | (tie & ~negative);
    case TN_ROUND_UP:      return some & ~negative;
    case TN_ROUND_DOWN:    return some & negative;
    default:               return (vi){ 0 };
    }
}

/* The rules as numbers in place of a float32's exponent. */
typedef struct steps {
    vu lowest;                  /* exponent of the lowest step */
    vu below;                   /* from the exponent of a number to that of its step */
    vu tiny;                    /* magnitudes from 1 to this have steps that are not normal; 0: none have */
} steps;

static steps steps_of(const tn_round_rules *r)
{
    uint32_t kept = MANTISSA - r->shift, least = kept + 1, lowest = (uint32_t)r->lowest;
    bool normal = lowest >= least;
    return (steps){ every((normal ? lowest : least) << MANTISSA), every(kept << MANTISSA),
                    every(normal ? 0 : least << MANTISSA) };
}

/* Lanes of *bad: see tn_round_fn. */
INLINE vu rounded(vu x, const steps *s, uint64_t seed, tn_round mode, uint64_t index, vi *bad)
{
    vi negative = (vi)x >> 31, finite = (vi)((vi)(x & MAGNITUDE) < (vi)every(INFINITE));
    vu magnitude = x & MAGNITUDE & (vu)finite, exponent = magnitude & INFINITE;
    exponent = chosen((vi)((vi)exponent > (vi)s->lowest), exponent, s->lowest);
    vu step = exponent - s->below;
    vf number = (vf)magnitude * (vf)(2 * every(ONE) - step);
    vf whole = __builtin_convertvector(__builtin_convertvector(number, vi), vf), fraction = number - whole;
    vi grows = mode == TN_ROUND_STOCHASTIC ? growing_by_chance(fraction, seed, index, bad)
                                           : growing(fraction, negative, mode);
    vu out = (vu)((whole + (vf)((vu)grows & ONE)) * (vf)step);
    *bad |= (vi)(out == every(INFINITE)) | (vi)(magnitude - 1 < s->tiny);
    return chosen(finite, out | (x & ~every(MAGNITUDE)), x);
}

INLINE bool round_all(float *dst, const float *src, size_t n, uint64_t index, const tn_round_rules *rules,
                      tn_round mode)
{
    const steps s = steps_of(rules);
    const uint64_t seed = rules->seed;
    vi bad = { 0 };
    size_t i = 0;
    vu x;
    for (; n - i >= LANES; i += LANES) {
        memcpy(&x, src + i, sizeof x);
        x = rounded(x, &s, seed, mode, index + i, &bad);
        memcpy(dst + i, &x, sizeof x);
    }
    if (i < n) {
        x = (vu){ 0 };
        memcpy(&x, src + i, (n - i) * sizeof *src);
        x = rounded(x, &s, seed, mode, index + i, &bad);
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
