/* kernels/lookup/table.h - inner loops for codes as other tools lay them.
 *
 * No allocation, no errors, no I/O.  Pointers may be unaligned; outputs do not overlap inputs; any n, zero
 * included; nothing beyond n elements is read or written. */
#ifndef TN_KERNELS_LOOKUP_TABLE_H
#define TN_KERNELS_LOOKUP_TABLE_H

#include <math.h>

#include "kernels/level.h"

/* What codes of 4 bits stand for: number[code] * scale, or that minus a shift, or (number[code] - shift) *
 * scale.  One rounding per operation in float32; NaN is that of <math.h>. */
typedef struct tn_lookup_values {
    const float *number;        /* 16 */
    const float *scale;         /* one for each tile */
    const float *shift;         /* the same, or NULL */
    bool         shifts_first;
    bool         high_first;    /* the first code of a byte is in the high bits */
} tn_lookup_values;

typedef struct tn_lookup_kernels {
    /* Values of codes of 4 bits, two a byte, the first in the high bits: table[code] * scale.  NaN is that of
     * <math.h>. */
    void (*fours)(float *restrict y, const uint8_t *restrict packed, size_t n, const float table[16],
                  float scale);

    /* Whole tiles of `each` values, a multiple of 16, as bfloat16, rounded to nearest even.  A tile has 16
     * values at most: they are made once, and looked up. */
    void (*fours_to_bf16)(uint8_t *restrict y, const uint8_t *restrict packed, size_t tiles, size_t each,
                          const tn_lookup_values *values);

    /* float8_e4m3fn times a scale as bfloat16: rounded to float32 and then to bfloat16, to nearest even. */
    void (*e4m3_to_bf16)(uint8_t *restrict y, const uint8_t *restrict codes, size_t n, float scale);

    /* Exchanges both halves of n bytes. */
    void (*swap_halves)(uint8_t *restrict out, const uint8_t *restrict in, size_t n);

    /* n words of eight codes of 4 bits into eight rows of (n + 1) / 2 bytes: those in place r of all words
     * become out[r], two a byte, the first in the low bits. */
    void (*eights)(uint8_t *const out[8], const uint32_t *restrict words, size_t n);
} tn_lookup_kernels;

TN_KERNEL_TABLE(tn_lookup_kernels);

/* Whether products of float8_e4m3fn and this scale, at least 2^-9 and less than 2^9 times it, are normal
 * numbers in bfloat16: their exponents are sums. */
static inline bool tn_lookup_adds_exponents(float scale)
{
    return fabsf(scale) >= 0x1p-100f && fabsf(scale) <= 0x1p100f;
}

/* The scalar level, which the others use for remaining elements. */
void tn_lookup_fours_scalar(float *restrict y, const uint8_t *restrict packed, size_t n,
                            const float table[16], float scale);
void tn_lookup_swap_halves_scalar(uint8_t *restrict out, const uint8_t *restrict in, size_t n);
void tn_lookup_e4m3_scalar(uint8_t *restrict y, const uint8_t *restrict codes, size_t n, float scale);
/* from word `first` on */
void tn_lookup_eights_from(uint8_t *const out[8], const uint32_t *restrict words, size_t first, size_t n);

#endif
