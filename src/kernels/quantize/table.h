/* kernels/quantize/table.h - inner loops of quantization.
 *
 * No allocation, no errors, no I/O.  dst and src may be unaligned and must not
 * overlap; any n, zero included; no byte beyond n elements is read or written.
 * The scalar level is the definition and agrees with tensor/number.h. */
#ifndef TN_KERNELS_QUANTIZE_TABLE_H
#define TN_KERNELS_QUANTIZE_TABLE_H

#include <string.h>

#include "kernels/level.h"

/* The largest magnitude of a zero point for kernels: sums with codes of 16 bits
 * are then exact in float32 and int32_t. */
#define TN_QUANT_ZERO_LIMIT (1 << 20)

/* Elements with one scale for all or, if `each`, one per element. */
typedef struct tn_quant_run {
    const float   *scale;       /* finite and not 0 when quantizing */
    const int32_t *zero;
    bool           each;
    bool           stream;      /* stores bypass the cache; then call tn_stream_fence() */
    int32_t        low, high;   /* the codes in use; this and the rest: quantizing only */
    bool           away;        /* ties go away from zero, else to even */
    bool           exact;       /* the exact quotient is rounded, else the quotient in binary32 */
} tn_quant_run;

/* n float32 to codes of 8 or 16 bits: x / scale rounded to nearest, plus zero,
 * clamped to low .. high.  NaN counts as 0; returns whether there was one. */
typedef bool (*tn_quantize_fn)(void *restrict dst, const void *restrict src, size_t n,
                               const tn_quant_run *run);

/* n codes to float32: (code - zero) * scale. */
typedef void (*tn_dequantize_fn)(void *restrict dst, const void *restrict src, size_t n,
                                 const tn_quant_run *run);

/* Widens one range, or n of them, by n float32.  Infinities and NaN are ignored. */
typedef void (*tn_range_fn)(float *restrict low, float *restrict high, const void *restrict src, size_t n);

/* The sum of squares of code * step - x over at most 2^10 finite float32.  Each
 * square is computed in binary64, multiplied with `unit`, a power of two, limited
 * to 2^53 and rounded down to an integer. */
typedef uint64_t (*tn_squares_fn)(const void *restrict codes, const void *restrict src, size_t n, double step,
                                  double unit);

typedef struct tn_quant_kernels {
    tn_quantize_fn   to_8, to_16;
    tn_dequantize_fn from_i8, from_u8, from_i16, from_u16;
    tn_range_fn      range, range_each;
    tn_squares_fn    squares_i8, squares_i16, squares_i32;
} tn_quant_kernels;

TN_KERNEL_TABLE(tn_quant_kernels);

/* Packs codes of one byte each into their low 4 or 2 bits, or unpacks them with
 * or without sign extension.  Unused bits of the last byte become zero. */
void tn_pack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits);
void tn_unpack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits,
                     bool is_signed);

/* Whether multiplying by *reciprocal equals dividing by the scale and is not
 * slower: the scale is a power of two, and both are normal numbers. */
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

/* The scalar level, which the others use for NaN, for ties and for remaining
 * elements. */
bool tn_quantize_8_scalar(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run);
bool tn_quantize_16_scalar(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run);
uint64_t tn_squares_i8_scalar(const void *restrict codes, const void *restrict src, size_t n, double step,
                              double unit);
uint64_t tn_squares_i16_scalar(const void *restrict codes, const void *restrict src, size_t n, double step,
                               double unit);

#endif
