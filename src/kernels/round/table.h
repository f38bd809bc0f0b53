/* kernels/round/table.h - rounds float32 numbers to those of a narrower type, in any mode.
 *
 * No allocation, no errors, no I/O.  What comes out are numbers of the type, as float32, so that a cast to it
 * afterwards is exact.  Numbers beyond the type's largest are rounded as if its exponents had no end.
 * tensor/number.h is the definition. */
#ifndef TN_KERNELS_ROUND_TABLE_H
#define TN_KERNELS_ROUND_TABLE_H

#include "kernels/level.h"

#include <tenon/cast.h>

typedef struct tn_round_rules {
    tn_round round;
    uint64_t seed;              /* of stochastic rounding */
    uint32_t shift;             /* mantissa bits that float32 has more */
    int32_t  lowest;            /* float32's exponent field below which the spacing of numbers stays the same;
                                 * integers: shift 0, the field of 2^23 */
} tn_round_rules;

/* Rounds n numbers, the first of which is element `index`; dst may be src.  Infinities and NaN stay.  False:
 * the definition must round them: a number becomes infinite, has a step below float32's normal numbers, or
 * takes more random bits than are compared here; dst is then undefined. */
typedef bool (*tn_round_fn)(float *dst, const float *src, size_t n, uint64_t index,
                            const tn_round_rules *rules);

typedef struct tn_round_kernels {
    tn_round_fn round;
} tn_round_kernels;

TN_KERNEL_TABLE(tn_round_kernels);

#endif
