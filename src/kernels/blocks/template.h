/* kernels/blocks/template.h - block types in vectors.
 *
 * Included once by each level's file, which first includes the vectors of its level (kernels/avx2.h) and
 * kernels/blocks/bytes.h, and defines
 *
 *   EVENS, ODDS        the even and the odd lanes of two vectors
 *   above(a, b), same(a, b)    lanes where a > b, or a == b
 *   pick(m, a, b)      a in the lanes of m, else b
 *   rounded(v)         to integers, ties to even
 *   roots(v)           square roots
 *   rough_inverse(v)   1 / v, to 2^-11 of it
 *   more_in(m, v), less_in(m, v)       1 more, or less, in the lanes of m
 *   least_lane(v)      the least lane, in every lane
 *   lane_bits(m)       bit i for lane i of a mask
 *   widen_points(p)    LANES integers of 2 bytes
 *   look4(table, i), look8(table, i)   floats of a table, by the low 2 or 3 bits of numbers
 *   look16(table, i)   floats of a table, by numbers 0 to 15
 *
 *   eight_of_4(table, i), eight_of_8(table, i)     8 floats of a table, by the low 2 or 3 bits of numbers
 *   put_past(y, v)     stores 8 floats past the caches; y is aligned to 16
 *   widen(q)           8 bytes with signs as floats
 *   within(v, l, h)    8 integers, clamped
 *   put_bytes(q, v)    the low bytes of 32 integers, which hold no more
 *   fifth_bits(q)      bit 4 of 32 bytes
 *   put_half_quickly(p, v)     stores a float16; v is no NaN
 *   put_halves(p, v)   stores LANES of them
 *   half_float(p)      the value of a float16
 *   look_up(q, b, table)       bytes of a table, by the low nibbles of 16 bytes, then by the high ones
 *
 * Most other loops are plain C, which compilers turn into vectors of the level. */
#include <float.h>

#include "kernels/blocks/encode_k.h"
#include "kernels/blocks/lanes.h"
#include "kernels/blocks/template_search.h"
#include "kernels/blocks/template_k.h"
#include "kernels/blocks/template_iq4.h"
#include "kernels/blocks/template_encode.h"
#include "kernels/blocks/template_grid.h"
#include "kernels/blocks/template_iq1.h"
#include "kernels/blocks/template_decode.h"

#define EACH_TYPE(X)                                                                                        \
    X(q4_0, Q4_0) X(q4_1, Q4_1) X(q5_0, Q5_0) X(q5_1, Q5_1) X(q8_0, Q8_0) X(q8_1, Q8_1) X(q2_K, Q2_K)       \
    X(q3_K, Q3_K) X(q4_K, Q4_K) X(q5_K, Q5_K) X(q6_K, Q6_K) X(q8_K, Q8_K) X(iq2_xxs, IQ2_XXS)               \
    X(iq2_xs, IQ2_XS) X(iq3_xxs, IQ3_XXS) X(iq1_s, IQ1_S) X(iq4_nl, IQ4_NL) X(iq3_s, IQ3_S)                 \
    X(iq2_s, IQ2_S) X(iq4_xs, IQ4_XS) X(iq1_m, IQ1_M) X(tq1_0, TQ1_0) X(tq2_0, TQ2_0) X(mxfp4, MXFP4)       \
    X(nvfp4, NVFP4) X(q1_0, Q1_0) X(q2_0, Q2_0)

#define TAKE(name, NAME)                                                                                    \
    k->decode[TN_BLOCK_##NAME] = decode_##name;                                                             \
    k->stream[TN_BLOCK_##NAME] = stream_##name;                                                             \
    k->encode[TN_BLOCK_##NAME] = encode_##name;

void LEVEL(tn_block_kernels_init)(tn_block_kernels *k)
{
    EACH_TYPE(TAKE)
}
