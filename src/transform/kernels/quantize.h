/* transform/kernels/quantize.h - inner loops of quantization.
 *
 * No allocation, no errors, no I/O.  dst and src may be unaligned and must not
 * overlap; any n, zero included; no byte beyond n elements is read or written.
 * Every level gives the same bits: the scalar one is the definition, and agrees
 * with tensor/number.h. */
#ifndef TN_TRANSFORM_KERNELS_QUANTIZE_H
#define TN_TRANSFORM_KERNELS_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeros further from 0 than this are not for kernels: codes of 16 bits and
 * such zeros stay far inside what float32 and int32_t hold exactly. */
#define TN_QUANT_ZERO_LIMIT (1 << 20)

/* Elements that share one scale, or have `each` their own. */
typedef struct tn_quant_run {
    const float   *scale;       /* one, or as many as elements; finite and not 0 when quantizing */
    const int32_t *zero;        /* likewise */
    bool           each;
    bool           stream;      /* dequantizing: the output is large, so stores bypass the cache; tn_quant_fence() then */
    int32_t        low, high;   /* codes in use; quantizing only */
} tn_quant_run;

/* n float32 to codes of 8 or 16 bits: x / scale rounded to nearest, ties to
 * even, plus zero, cut to low .. high.  NaN counts as 0; returns whether there
 * was one. */
typedef bool (*tn_quantize_fn)(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run);

/* n codes to float32: (code - zero) * scale. */
typedef void (*tn_dequantize_fn)(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run);

/* Widens the range of what was seen by n float32; others than finite ones are
 * passed over.  One range, or n of them. */
typedef void (*tn_range_fn)(float *restrict low, float *restrict high, const void *restrict src, size_t n);

typedef struct tn_quant_kernels {
    tn_quantize_fn   to_8, to_16;
    tn_dequantize_fn from_i8, from_u8, from_i16, from_u16;
    tn_range_fn      range, range_each;
} tn_quant_kernels;

/* A pure function of the mask, so that a test can hold two tables side by side. */
void tn_quant_kernels_init(tn_quant_kernels *k, unsigned cpu);

/* The levels: each replaces the entries it has something better for.  Only for
 * a CPU that has the level. */
void tn_quant_kernels_init_avx2(tn_quant_kernels *k);       /* x86-64 */
void tn_quant_kernels_init_avx512(tn_quant_kernels *k);

/* The table of this machine, made once. */
const tn_quant_kernels *tn_quant_kernels_get(void);

/* After streaming, before another thread may look. */
void tn_quant_fence(void);

/* Codes of one byte each into `bits` = 4 or 2 bits each (the lowest count), or
 * back, with their sign or without.  Unused bits of a last byte become zero. */
void tn_pack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits);
void tn_unpack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits, bool is_signed);

/* The scalar level: what the others do with NaN. */
bool tn_quantize_8_scalar(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run);
bool tn_quantize_16_scalar(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run);

#endif
