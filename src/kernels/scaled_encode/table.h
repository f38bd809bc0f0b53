/* kernels/scaled_encode/table.h - inner loops that encode scaled tiles.
 *
 * No allocation, no errors, no I/O.  No byte beyond n elements of a tensor or a
 * part is read or written.  Arrays with one element per tile have room for
 * TN_ENCODE_SLACK more.  Values must be finite; `largest` and `ends` tell.
 * quant/tile.h is the definition. */
#ifndef TN_KERNELS_SCALED_ENCODE_TABLE_H
#define TN_KERNELS_SCALED_ENCODE_TABLE_H

#include "kernels/level.h"

enum {
    TN_ENCODE_SLACK = 16,
    TN_ENCODE_ALIGN = 16,       /* bytes */
    TN_ENCODE_BLOCK = 4096      /* values that a caller encodes at a time: they stay in the L1 cache */
};

/* A float type as constants for rounding to it, to nearest even.  Its numbers
 * are float32s; its normal numbers are normal in float32. */
typedef struct tn_float_rules {
    unsigned bits;              /* of the code */
    unsigned shift;             /* mantissa bits that float32 has more */
    uint32_t half, odd;         /* added to round: half a step minus one; mask of the last kept bit */
    uint32_t rebias;            /* from its exponent to float32's, in place */
    uint32_t normal;            /* smallest normal number, as float32; 0: float32 has the same exponents */
    uint32_t magic;             /* float32 whose last bit is its smallest number */
    uint32_t one;               /* first normal code; 0: float32 has the same exponents */
    bool     has_minus_zero;
    float    largest, smallest;
} tn_float_rules;

/* How the exponent of a tile and its factor are chosen from the largest magnitude. */
typedef struct tn_exponent_rules {
    int32_t bump;               /* added to the bits: carries into the exponent if the mode rounds up */
    int32_t offset;             /* from float32's exponent field to the code */
    int32_t last;               /* the largest code */
    int32_t inverse;            /* inverse - code is the exponent field of the factor */
} tn_exponent_rules;

typedef enum tn_zero_kind { TN_ZERO_NONE, TN_ZERO_FLOAT, TN_ZERO_INT } tn_zero_kind;

/* How float scales and zero points are chosen. */
typedef struct tn_scale_rules {
    tn_float_rules scale, zero; /* zero: TN_ZERO_FLOAT */
    float        top;           /* the number that the largest value becomes */
    float        tensor_scale;
    tn_zero_kind zero_kind;
    int32_t      zero_last;     /* TN_ZERO_INT: the largest */
} tn_scale_rules;

/* The chosen scales, one per tile. */
typedef struct tn_tile_scales {
    uint32_t *scale;            /* codes */
    float    *factor;           /* values are multiplied with or divided by it */
    float    *inverse;          /* 1 / factor, if values are divided */
    uint32_t *zero;             /* codes of zero points, if there are any; an integer is its code */
    float    *shift;            /* a zero point that is a float */
} tn_tile_scales;

/* What kernels report of the scales of tiles. */
enum {
    TN_SCALES_SPECIAL = 1,      /* not for kernels: infinities, NaN, or exponents near the end of float32's */
    TN_SCALES_FAR     = 2       /* scales or values outside 2^-60 .. 2^60: do not divide by multiplying */
};

/* How values become codes. */
typedef enum tn_codes_kind {
    TN_CODES_FLOAT, TN_CODES_FLOAT_POWER,       /* POWER: values are multiplied with powers of two */
    TN_CODES_INT, TN_CODES_INT_POWER,
    TN_CODES_UINT,              /* zero points are integers... */
    TN_CODES_SHIFTED,           /* ...or floats */
    TN_CODES_GGML,              /* 4 bits as TN_CODES_FLOAT_POWER, ties to the smaller magnitude; not wide */
    TN_CODES_KINDS
} tn_codes_kind;

/* Values of consecutive tiles. */
typedef struct tn_codes_run {
    bool           stream;      /* codes are aligned to TN_ENCODE_ALIGN and may go past the caches; then call
                                 * tn_stream_fence() */
    size_t         ahead;       /* how far from a value is what is encoded next, to prefetch it; 0: a block */
    size_t         size;        /* of a tile: a power of two, or not less than n */
    const float   *factor;      /* one per tile, as of tn_tile_scales */
    const float   *inverse;     /* NULL: scales are far, or some number has a magnitude of less than 2^-41 */
    const float   *shift;
    const uint32_t *zero;
    int32_t        most;        /* integers: the largest code */
    tn_float_rules number;      /* floats */
} tn_codes_run;

/* Codes of n values, a byte or (wide) two each. */
typedef void (*tn_codes_fn)(uint8_t *restrict dst, const float *restrict x, size_t n,
                            const tn_codes_run *run);

/* The quotients or products of n values and the factors of their tiles. */
typedef void (*tn_scale_fn)(float *restrict y, const float *restrict x, size_t n, const tn_codes_run *run);

typedef struct tn_encode_kernels {
    /* The bits of the largest magnitude of each tile; infinities and NaN are the largest.  The size is a
     * power of two, or there is one tile. */
    void (*largest)(uint32_t *bits, const float *x, size_t tiles, size_t size);
    /* Raises bits to those of tiles that have a value in each of some lines, which follow one another. */
    void (*widen)(uint32_t *bits, const float *x, size_t tiles, size_t lines);
    /* The bits of the largest value of each tile, as a signed integer at most 0 if none is positive, and of
     * the lowest one, as an unsigned integer below 2^31 if none is negative. */
    void (*ends)(uint32_t *high, uint32_t *low, const float *x, size_t tiles, size_t size);
    /* The scales of these tiles; the arrays have zeros after them up to TN_ENCODE_SLACK.  Return
     * TN_SCALES_* bits. */
    unsigned (*exponents)(const tn_exponent_rules *rules, const uint32_t *largest, size_t tiles,
                          const tn_tile_scales *to);
    unsigned (*scales)(const tn_scale_rules *rules, const uint32_t *high, const uint32_t *low, size_t tiles,
                       const tn_tile_scales *to);
    tn_codes_fn codes[TN_CODES_KINDS], wide_codes[TN_CODES_KINDS];
    tn_scale_fn divide, multiply;
    /* Codes of a byte each into `bits` = 1 .. 7 each; unused bits of a last byte are 0. */
    void (*pack)(uint8_t *restrict dst, const uint8_t *restrict codes, size_t n, unsigned bits);
} tn_encode_kernels;

TN_KERNEL_TABLE(tn_encode_kernels);

/* tn_scaled_encoder() with these kernels (quant/scaled_encode.c). */
struct tn_scaled_plan;
struct tn_tiles;
bool tn_scaled_encode_with(const tn_encode_kernels *k, const struct tn_scaled_plan *plan,
                           const struct tn_tiles *tiles);

#endif
