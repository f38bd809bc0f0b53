/* kernels/quantize/table.h - inner loops of quantization.
 *
 * No allocation, no errors, no I/O.  dst and src may be unaligned and must not
 * overlap; any n, zero included; no byte beyond n elements is read or written.
 * Every level gives the same bits: the scalar one is the definition, and agrees
 * with tensor/number.h. */
#ifndef TN_KERNELS_QUANTIZE_TABLE_H
#define TN_KERNELS_QUANTIZE_TABLE_H

#include <string.h>

#include "kernels/level.h"

/* Zeros further from 0 than this are not for kernels: codes of 16 bits and
 * such zeros stay far inside what float32 and int32_t hold exactly. */
#define TN_QUANT_ZERO_LIMIT (1 << 20)

/* Elements that share one scale, or have `each` their own. */
typedef struct tn_quant_run {
    const float   *scale;       /* one, or as many as elements; finite and not 0 when quantizing */
    const int32_t *zero;        /* likewise */
    bool           each;
    bool           stream;      /* dequantizing: the output is large, so stores bypass the cache;
                                 * tn_stream_fence() then */
    int32_t        low, high;   /* codes in use; quantizing only, as the rest */
    bool           away;        /* ties go away from zero, else to even */
    bool           exact;       /* the exact quotient is rounded, else what binary32 makes of it */
} tn_quant_run;

/* n float32 to codes of 8 or 16 bits: x / scale rounded to nearest, plus zero,
 * clamped to low .. high.  NaN counts as 0; returns whether there was one. */
typedef bool (*tn_quantize_fn)(void *restrict dst, const void *restrict src, size_t n,
                               const tn_quant_run *run);

/* n codes to float32: (code - zero) * scale. */
typedef void (*tn_dequantize_fn)(void *restrict dst, const void *restrict src, size_t n,
                                 const tn_quant_run *run);

/* Widens the range of what was seen by n float32; others than finite ones are
 * passed over.  One range, or n of them. */
typedef void (*tn_range_fn)(float *restrict low, float *restrict high, const void *restrict src, size_t n);

/* The sum of squares of code * step - x over at most 2^10 finite float32: each
 * square in binary64, times `unit`, a power of two, rounded down to an integer
 * and at most 2^53. */
typedef uint64_t (*tn_squares_fn)(const void *restrict codes, const void *restrict src, size_t n, double step,
                                  double unit);

typedef struct tn_quant_kernels {
    tn_quantize_fn   to_8, to_16;
    tn_dequantize_fn from_i8, from_u8, from_i16, from_u16;
    tn_range_fn      range, range_each;
    tn_squares_fn    squares_i8, squares_i16, squares_i32;
} tn_quant_kernels;

TN_KERNEL_TABLE(tn_quant_kernels);

/* Codes of one byte each into `bits` = 4 or 2 bits each (the lowest count), or
 * back, with their sign or without.  Unused bits of a last byte become zero. */
void tn_pack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits);
void tn_unpack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits,
                     bool is_signed);

/* Whether multiplying by *reciprocal is the same as dividing by the scale, and
 * not slower: it is a power of two, and neither of them is subnormal. */
static inline bool tn_exact_reciprocal(float scale, float *reciprocal)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    if ((bits & 0x7fffff) || bits < 0x00800000 || bits > 0x7e800000)
        return false;
    bits = 0x7f000000 - bits;
    memcpy(reciprocal, &bits, sizeof bits);
    return true;
}

/* The scalar level: what the others do with NaN, with a tie that may be none
 * but in binary32, and with what is left over. */
bool tn_quantize_8_scalar(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run);
bool tn_quantize_16_scalar(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run);
uint64_t tn_squares_i8_scalar(const void *restrict codes, const void *restrict src, size_t n, double step,
                              double unit);
uint64_t tn_squares_i16_scalar(const void *restrict codes, const void *restrict src, size_t n, double step,
                               double unit);

#endif
