/* kernels/scaled_decode/table.h - inner loops that decode codes with scales
 * to float32.
 *
 * No allocation, no errors, no I/O.  Sources and destinations may be unaligned
 * and must not overlap; any n, zero included; codes may have any bits; nothing
 * beyond n codes is read.  quant/tile.h is the definition.  NaN is always that of
 * <math.h>. */
#ifndef TN_KERNELS_SCALED_DECODE_TABLE_H
#define TN_KERNELS_SCALED_DECODE_TABLE_H

#include "kernels/level.h"

/* How a value is computed from v, the number of a code, its scale s and zero point z. */
typedef enum tn_decode_kind {
    TN_DECODE_FINITE,           /* floats without infinity and NaN: v * s */
    TN_DECODE_TOPPED,           /* floats with infinity and NaN, or NaN, above `top`, as in float32: v * s */
    TN_DECODE_FLOAT,            /* other floats: v * s */
    TN_DECODE_INT,              /* signed integers: v * unit * s */
    TN_DECODE_UINT,             /* unsigned integers, integer zero point: s * (v - z) */
    TN_DECODE_SHIFTED,          /* unsigned integers, float zero point: s * v - z */
    TN_DECODE_EXPONENT,         /* powers of two: v * s */
    TN_DECODE_HALVED,           /* s / 2^code */
    TN_DECODE_CODEBOOK,         /* a sign and the rank of a magnitude: v * s */
    TN_DECODE_KINDS
} tn_decode_kind;

/* One number spec as constants for decoding. */
typedef struct tn_decode_number {
    tn_decode_kind kind;
    uint32_t ones;              /* the bits of a code; other stored bits are ignored */
    uint32_t sign;              /* the sign bit; 0: none */
    unsigned up;                /* bits from there to bit 31 */
    /* floats; their bias is at most 127: */
    unsigned shift;             /* mantissa bits that float32 has more */
    uint32_t rebias;            /* from its exponent to float32's, in place */
    uint32_t one;               /* first normal code */
    float    normal;            /* the smallest normal number */
    uint32_t top;               /* TOPPED: the first of these magnitudes */
    uint32_t infinite;          /* FLOAT: the magnitude of infinity, or TN_DECODE_NEVER */
    uint32_t nan;               /* FLOAT: the code that is NaN */
    /* others: */
    float    unit;              /* integers */
    int32_t  bias;              /* exponents: code 0 is 2^-bias, at least 2^-149; the largest code is NaN */
    uint32_t values;            /* codebooks: magnitudes of a mapping, a power of two */
    const float *value;
} tn_decode_number;

/* a magnitude that no code has: only float32 has 31 bits of it */
#define TN_DECODE_NEVER UINT32_C(0x7fffffff)

/* Every `each` codes have one level: scale, zero point, mapping.  Arrays that a
 * kind does not use may be NULL.  If there are several levels, TN_DECODE_SPARE
 * more elements can be read; their mappings are 0. */
typedef struct tn_decode_levels {
    size_t         each;        /* a power of two, or at least n */
    const float   *scale;
    const int32_t *zero;        /* UINT: code - zero is an int32_t */
    const float   *shift;       /* SHIFTED */
    const uint8_t *mapping;     /* CODEBOOK */
    bool           stream;      /* values are aligned to TN_DECODE_ALIGN and may go past the caches; then
                                 * call tn_stream_fence() */
} tn_decode_levels;

enum { TN_DECODE_SPARE = 64, TN_DECODE_ALIGN = 16 };

/* N:M sparsity: each group of `of` values has `keep` slots.  `stream`: as of levels. */
typedef struct tn_decode_groups {
    unsigned keep, of;
    bool     stream;
} tn_decode_groups;

/* n codes of one, two or four bytes each. */
typedef void (*tn_decode_fn)(float *restrict y, const uint8_t *restrict codes, size_t n,
                             const tn_decode_number *number, const tn_decode_levels *levels);

typedef struct tn_decode_kernels {
    /* by kind and width: codes have 2^width bytes; NULL: no number has this width */
    tn_decode_fn decode[TN_DECODE_KINDS][3];

    /* Packed codes of 1 to 7 bits, the first on a byte, into bytes; TN_DECODE_SPARE more may be written. */
    void (*unpack)(uint8_t *restrict codes, const uint8_t *restrict packed, size_t n, unsigned bits);

    /* Expands N:M sparsity to n values.  Values with a bit in the mask take the slots of their group in
     * order; others, and those without a slot, are 0.  The last group may be incomplete.  TN_DECODE_SPARE
     * more slots can be read. */
    void (*expand)(float *restrict y, const float *restrict slots, const uint8_t *restrict mask, size_t n,
                   const tn_decode_groups *groups);

    bool ordinary;              /* ordinary stores are faster, however large the result is */
} tn_decode_kernels;

TN_KERNEL_TABLE(tn_decode_kernels);

/* Of T_init(): what was measured to be faster on this family (choose.c). */
void tn_decode_kernels_choose(tn_decode_kernels *k, unsigned cpu);

/* n codes of 2^width bytes each as signed integers of so many bits. */
void tn_decode_integers(int32_t *restrict integers, const uint8_t *restrict codes, size_t n, unsigned width,
                        unsigned bits);

/* Decodes elements [first, first + n) of the tensor, in row-major order, of any
 * datatype (quant/scaled_decode.c).  `stream`: past the caches; other threads see the
 * values when it returns.  Thread-safe.  The floating-point environment must be the
 * default one. */
struct tn_scaled_plan;
struct tn_tiles;
void tn_scaled_values_with(const tn_decode_kernels *k, const struct tn_scaled_plan *plan, float tensor_scale,
                           uint64_t first, size_t n, float *y, bool stream);

/* The same as bfloat16, for whole tiles of codes of 4 bits; false: not for these. */
bool tn_scaled_bf16(const tn_decode_kernels *k, const struct tn_scaled_plan *plan, float tensor_scale,
                    uint64_t first, size_t n, uint8_t *y);

/* Whether no value of these but 0 and NaN becomes 0 or infinite as bfloat16. */
bool tn_scaled_keeps_bf16(const tn_decode_kernels *k, const struct tn_scaled_plan *plan, float tensor_scale);

/* What tn_scaled_decoder() does, with these kernels. */
void tn_scaled_decode_with(const tn_decode_kernels *k, const struct tn_scaled_plan *plan,
                           const struct tn_tiles *tiles);

/* The scalar level, which the others use for remaining elements. */
void tn_unpack_scalar(uint8_t *restrict codes, const uint8_t *restrict packed, size_t n, unsigned bits);
void tn_expand_scalar(float *restrict y, const float *restrict slots, const uint8_t *restrict mask, size_t n,
                      const tn_decode_groups *groups);

/* Whether each group of a mask of 64 values has `keep` bits. */
static inline bool tn_mask_is_full(uint64_t mask, unsigned keep, unsigned of)
{
    static const uint64_t lanes[] = { [2] = UINT64_C(0x5555555555555555), [4] = UINT64_C(0x1111111111111111),
                                      [8] = UINT64_C(0x0101010101010101),
                                      [16] = UINT64_C(0x0001000100010001) };
    uint64_t count = mask - (mask >> 1 & lanes[2]);
    if (of >= 4)
        count = (count & 3 * lanes[4]) + (count >> 2 & 3 * lanes[4]);
    if (of >= 8)
        count = (count & 15 * lanes[8]) + (count >> 4 & 15 * lanes[8]);
    if (of == 16)
        count = (count & 255 * lanes[16]) + (count >> 8 & 255 * lanes[16]);
    return count == keep * lanes[of];
}

#endif
