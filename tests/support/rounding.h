/* tests/support/rounding.h - what rounding means, slowly. */
#ifndef TN_TESTS_ROUNDING_H
#define TN_TESTS_ROUNDING_H

#include <tenon/cast.h>

#include <math.h>
#include <stdint.h>

/* A finite number to an integer, in any mode but the stochastic one. */
static inline double rounded_surely(double y, tn_round mode)
{
    double magnitude = fabs(y), whole = floor(magnitude);
    switch (mode) {
    case TN_ROUND_EVEN:    return nearbyint(y);
    case TN_ROUND_AWAY:    return round(y);
    case TN_ROUND_ZERO:    return copysign(magnitude - whole > 0.5 ? whole + 1 : whole, y);
    case TN_ROUND_HALF_UP: return y - floor(y) >= 0.5 ? floor(y) + 1 : floor(y);
    case TN_ROUND_TRUNC:   return trunc(y);
    case TN_ROUND_UP:      return ceil(y);
    default:               return floor(y);
    }
}

/* What decides the stochastic one for element `index`. */
static inline uint64_t chance_of(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
