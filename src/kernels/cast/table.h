/* kernels/cast/table.h - inner loops of casts.
 *
 * No allocation, no errors, no I/O.  dst and src may be unaligned and must not
 * overlap; any n, zero included; no byte beyond n elements is read or written.
 * Packed types begin on a byte; the unused bits of the last byte are written as
 * zero.  tensor/number.h is the definition. */
#ifndef TN_KERNELS_CAST_TABLE_H
#define TN_KERNELS_CAST_TABLE_H

#include "kernels/level.h"
#include "tensor/number.h"

typedef struct tn_cast_args {
    tn_encode_rules rules;      /* round is TN_ROUND_EVEN; kernels have no other mode */
    float           scale;      /* multiplies each float32 first, if has_scale; from_f32 only */
    bool            has_scale;
    bool            stream;     /* the output is large: stores bypass the cache */
} tn_cast_args;

/* Which values a cast loses, by the magnitude of their codes: of integers the absolute value, else the code
 * without its sign bit.  [1]: of negative ones. */
typedef struct tn_cast_limits {
    uint64_t sign;              /* its bit; 0: there is none */
    uint64_t zero;              /* the last magnitude that is 0 */
    uint64_t flushed[2];        /* the last one that becomes 0 */
    uint64_t beyond[2];         /* the last one that is not beyond the largest value */
    uint64_t finite;            /* the last one that is a number */
    bool     is_integer;
} tn_cast_limits;

typedef struct tn_cast_lost {
    uint64_t values;            /* other than 0 */
    uint64_t flushed;           /* of them became 0 */
    uint64_t saturated;         /* finite ones that were beyond the largest value */
} tn_cast_lost;

/* Codes c with (c & mask) - first <= span. */
typedef struct tn_code_range {
    uint64_t mask, first, span;
} tn_code_range;

typedef uint64_t (*tn_cast_within_fn)(const void *src, size_t n, const tn_code_range *range);

/* Adds what becomes of n codes. */
typedef void (*tn_cast_count_fn)(const void *src, size_t n, const tn_cast_limits *limits, tn_cast_lost *lost);

/* Returns TN_ENCODED_* bits seen. */
typedef unsigned (*tn_cast_fn)(void *restrict dst, const void *restrict src, size_t n,
                               const tn_cast_args *args);

/* NULL if there is no kernel: the caller then casts through float32 in blocks, or
 * uses the definition. */
typedef struct tn_cast_kernels {
    /* from a type whose every value is a float32: exact; no rules, no flags */
    tn_cast_fn to_f32[TN_DTYPE_COUNT];
    tn_cast_fn from_f32[TN_DTYPE_COUNT];    /* rounds to nearest, ties to even */
    /* rounds to odd: a second rounding to a narrower type is then correct */
    tn_cast_fn f64_to_f32_odd;
    tn_cast_fn f16_to_bf16, bf16_to_f16;    /* direct */
    tn_cast_fn f64_to_f32, f32_to_f64;
    void (*swap)(void *dst, const void *src, size_t n, unsigned unit);  /* n bytes; dst may be src */
    tn_cast_count_fn  count[4];             /* of codes of 1, 2, 4 and 8 bytes */
    tn_cast_within_fn within[4];            /* how many of them are in a range */
    /* Where ordinary stores are faster than streaming ones, however large the array is. */
    bool ordinary_to_f32[TN_DTYPE_COUNT], ordinary_from_f32[TN_DTYPE_COUNT];
} tn_cast_kernels;

TN_KERNEL_TABLE(tn_cast_kernels);

/* Of T_init(): what was measured to be faster on this family (choose.c). */
void tn_cast_kernels_choose(tn_cast_kernels *k, unsigned cpu);

#endif
