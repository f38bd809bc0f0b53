/* kernels/blocks/encode.h - what the encoders of block types share.
 *
 * All arithmetic is float32, one rounding for each written operation, sums in the order of the index.  Words
 * of the searches:
 *
 *   l      a code before it gets its offset
 *   A, B   the sums of w x l and of w l l: A / B is the scale with the least weighted error of given codes */
#ifndef TN_KERNELS_BLOCKS_ENCODE_H
#define TN_KERNELS_BLOCKS_ENCODE_H

#include <math.h>

#include "kernels/blocks/table.h"
#include "kernels/blocks/words.h"

/* A maximum below this is taken for 0. */
#define TN_GROUP_TINY 1e-15f

/* Rounds half to even below 2^22, and has a result for any other float too. */
INLINE int near(float v)
{
    return (int)(tn_float_bits(v + 12582912.0f) & 0x7fffff) - 0x400000;
}

INLINE int clamp(int v, int low, int high)
{
    if (v < low)
        return low;
    return v < high ? v : high;
}

/* Cuts fractions off, as x86 does: INT32_MIN for what does not fit. */
INLINE int cut(float v)
{
    return v >= -0x1p31f && v < 0x1p31f ? (int)v : INT32_MIN;
}

INLINE float inverse(float d) { return d != 0 ? 1 / d : 0; }

/* A float16, rounded half to even; a NaN has its sign only. */
INLINE uint32_t half_of(float v)
{
    uint32_t bits = tn_float_bits(v), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return sign | 0x7e00;
    if (magnitude >= 0x477ff000)                        /* 65520: rounds to infinity */
        return sign | 0x7c00;
    if (magnitude < 0x38800000)                         /* a subnormal: the addition rounds it */
        return sign | (tn_float_bits(tn_float_of(magnitude) + 0.5f) - 0x3f000000);
    return sign | (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
}

INLINE void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

INLINE void put32(uint8_t *p, uint32_t v)
{
    put16(p, v);
    put16(p + 2, v >> 16);
}

/* Stores a float16 scale and returns it as it is stored. */
INLINE float put_half(uint8_t *p, float v)
{
    uint32_t h = half_of(v);
    put16(p, h);
    return half_value(h);
}

/* The first of the numbers of the largest magnitude, with its sign; 0 if there is none but 0. */
INLINE float first_largest(const float *x, unsigned n)
{
    float most = 0, max = 0;
    for (unsigned i = 0; i < n; i++)
        if (fabsf(x[i]) > most) {
            most = fabsf(x[i]);
            max = x[i];
        }
    return max;
}

INLINE float sum_squares(const float *x, unsigned n)
{
    float sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

/* The weights of n values with importance q: those far from 0 count more. */
INLINE void weigh(const float *x, const float *q, float mean_square, unsigned n, float *w)
{
    for (unsigned i = 0; i < n; i++)
        w[i] = q[i] * sqrtf(mean_square + x[i] * x[i]);
}

/* ---- codes of 32 values ---- */

/* Low codes of the first half of 32 values, high ones of the second. */
INLINE void put_nibbles(uint8_t *qs, const uint8_t *codes)
{
    for (unsigned j = 0; j < 16; j++)
        qs[j] = (uint8_t)((codes[j] & 15) | codes[j + 16] << 4);
}

/* The fifth bits. */
INLINE void put_high_bits(uint8_t *p, const uint8_t *codes)
{
    uint32_t high = 0;
    for (unsigned e = 0; e < 32; e++)
        high |= (uint32_t)(codes[e] >> 4 & 1) << e;
    put32(p, high);
}

/* ---- searches (search.c) ---- */

/* What a search found: values are scale * code - min.  Its own codes follow from the rest. */
typedef struct tn_found {
    float scale, min;
    float inverse, from;        /* see codes_around() and codes_above() */
} tn_found;

/* Codes -N to N - 1 with N added; an inverse of 0: there is nothing, and all codes are 0. */
INLINE void codes_around(const float *x, unsigned n, int N, float inverse_scale, uint8_t *codes)
{
    memset(codes, 0, n);
    for (unsigned i = 0; i < n && inverse_scale != 0; i++)
        codes[i] = (uint8_t)(clamp(near(inverse_scale * x[i]), -N, N - 1) + N);
}

/* Codes 0 to N of what is above `from`. */
INLINE void codes_above(const float *x, unsigned n, int N, float inverse_scale, float from, uint8_t *codes)
{
    for (unsigned i = 0; i < n; i++)
        codes[i] = (uint8_t)clamp(near(inverse_scale * (x[i] - from)), 0, N);
}

/* Codes around 0; w NULL: x * x. */
tn_found tn_search_symmetric(const float *x, const float *w, unsigned n, int N);

/* The same for codes l of -4 to 3, by changing one at a time.  Returns the scale. */
float tn_search_q3(const float *x, unsigned n, float *l);

/* How codes 0 to N with a minimum are searched for. */
typedef struct tn_search_range {
    int   N, trials;
    float first, step;          /* trial k is of a range of N + first + step * k codes */
    bool  is_weighted;          /* by importance; else by magnitudes */
    bool  by_magnitude;         /* the error is one of magnitudes, not of squares */
} tn_search_range;

/* Of blocks of 32 values with importance. */
#define TN_RANGE_32(N_) { .N = (N_), .trials = 36, .first = -0.9f, .step = 0.05f, .is_weighted = true }

tn_found tn_search_affine(const float *x, const float *w, unsigned n, const tn_search_range *r);

/* Codes 0 to N of numbers that are not negative.  Returns the scale. */
float tn_search_positive(const float *x, const float *w, unsigned n, int N, uint8_t *codes);

/* Calls NAME_block() for each block. */
#define ENCODE_EACH(name, values_, bytes_)                                                                  \
    static void name(const float *values, const float *importance, float mean_square, size_t n,             \
                     uint8_t *blocks)                                                                       \
    {                                                                                                       \
        for (size_t i = 0; i < n; i++)                                                                      \
            name##_block(values + i * (values_), importance ? importance + i * (values_) : NULL,            \
                         mean_square, blocks + i * (bytes_));                                               \
    }

/* ---- parts of the table, filled by other files ---- */

void tn_block_kernels_init_encode(tn_block_kernels *k);         /* without a search (encode.c) */
void tn_block_kernels_init_encode_k(tn_block_kernels *k);       /* super-blocks (encode_k.c) */
void tn_block_kernels_init_encode_iq4(tn_block_kernels *k);     /* iq4_nl, iq4_xs (encode_iq4.c) */
void tn_block_kernels_init_encode_grid(tn_block_kernels *k);    /* iq2, iq3 (encode_grid.c) */
void tn_block_kernels_init_encode_iq1(tn_block_kernels *k);     /* iq1 (encode_iq1.c) */

#endif
