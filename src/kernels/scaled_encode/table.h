/* kernels/scaled_encode/table.h - inner loops of encoding scaled tiles.
 *
 * No allocation, no errors, no I/O.  No byte beyond n elements of a tensor or a
 * part is read or written.  Arrays with one element per tile are the caller's own
 * and have room for TN_ENCODE_SLACK more.  Values are finite, which `largest`
 * and `ends` tell.  Every level gives the bits of quant/tile.h. */
#ifndef TN_KERNELS_SCALED_ENCODE_TABLE_H
#define TN_KERNELS_SCALED_ENCODE_TABLE_H

#include "kernels/level.h"

enum {
    TN_ENCODE_SLACK = 16,
    TN_ENCODE_BLOCK = 4096      /* values that a caller works on at a time: they stay in the first cache */
};

/* A float type as the constants of rounding to it, to nearest even.  Its
 * numbers are float32s, its normal ones are normal there. */
typedef struct tn_float_rules {
    unsigned bits;              /* of the code */
    unsigned shift;             /* mantissa bits that float32 has more */
    uint32_t half, odd;         /* what is added to round: half a step less one, and the last bit that is kept
                                 * if it is odd */
    uint32_t rebias;            /* from its exponent to float32's, in place */
    uint32_t normal;            /* smallest normal number, as float32; 0: float32 has the same exponents */
    uint32_t magic;             /* float32 whose last bit is its smallest number */
    uint32_t one;               /* first normal code; 0: float32 has the same exponents */
    bool     has_minus_zero;
    float    largest, smallest;
} tn_float_rules;

/* How exponents are chosen from the largest magnitude of a tile, and what values are multiplied by. */
typedef struct tn_exponent_rules {
    int32_t bump;               /* carries into the exponent where the mode wants one more */
    int32_t offset;             /* from float32's exponent field to the code... */
    int32_t last;               /* ...of which this is the largest */
    int32_t inverse;            /* less the code: the exponent field of the factor */
} tn_exponent_rules;

typedef enum tn_zero_kind { TN_ZERO_NONE, TN_ZERO_FLOAT, TN_ZERO_INT } tn_zero_kind;

/* How float scales are chosen, and zero points. */
typedef struct tn_scale_rules {
    tn_float_rules scale, zero; /* zero: TN_ZERO_FLOAT */
    float        top;           /* what the largest value is to become */
    float        tensor_scale;
    tn_zero_kind zero_kind;
    int32_t      zero_last;     /* TN_ZERO_INT: the largest */
} tn_scale_rules;

/* The chosen scales, one per tile. */
typedef struct tn_tile_scales {
    uint32_t *scale;            /* codes */
    float    *factor;           /* values are multiplied with it, or divided by it */
    float    *inverse;          /* of what divides, rounded once */
    uint32_t *zero;             /* codes of zero points, where there are; of an integer: itself */
    float    *shift;            /* a zero point that is a float */
} tn_tile_scales;

/* What was found with the scales of tiles. */
enum {
    TN_SCALES_SPECIAL = 1,      /* not for kernels: infinities, NaN, or exponents near the end of float32's */
    TN_SCALES_FAR     = 2       /* scales beyond 2^-60 or 2^60, or values beyond this: not to be divided by
                                 * multiplying */
};

/* How values become codes. */
typedef enum tn_codes_kind {
    TN_CODES_FLOAT, TN_CODES_FLOAT_POWER,       /* POWER: multiplied with powers of two, not divided */
    TN_CODES_INT, TN_CODES_INT_POWER,
    TN_CODES_UINT,              /* zero points are integers... */
    TN_CODES_SHIFTED,           /* ...or floats */
    TN_CODES_GGML,              /* 4 bits as TN_CODES_FLOAT_POWER, ties to the smaller magnitude; not wide */
    TN_CODES_KINDS
} tn_codes_kind;

/* Values of tiles that lie one after another. */
typedef struct tn_codes_run {
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

typedef struct tn_encode_kernels {
    /* The largest magnitude of each tile, as its bits: infinities and NaN are the largest.  The size is a
     * power of two, or there is one tile. */
    void (*largest)(uint32_t *bits, const float *x, size_t tiles, size_t size);
    /* The bits of the largest positive value, or 0 or less as a signed number; and of the lowest negative
     * one, or less than INT32_MIN as an unsigned number is. */
    void (*ends)(uint32_t *high, uint32_t *low, const float *x, size_t tiles, size_t size);
    /* Scales of so many tiles, after which there are zeros up to TN_ENCODE_SLACK.  Return TN_SCALES_*
     * bits. */
    unsigned (*exponents)(const tn_exponent_rules *rules, const uint32_t *largest, size_t tiles,
                          const tn_tile_scales *to);
    unsigned (*scales)(const tn_scale_rules *rules, const uint32_t *high, const uint32_t *low, size_t tiles,
                       const tn_tile_scales *to);
    tn_codes_fn codes[TN_CODES_KINDS], wide_codes[TN_CODES_KINDS];
    /* Codes of a byte each into `bits` = 1 .. 7 each; unused bits of a last byte are 0. */
    void (*pack)(uint8_t *restrict dst, const uint8_t *restrict codes, size_t n, unsigned bits);
} tn_encode_kernels;

TN_KERNEL_TABLE(tn_encode_kernels);

/* What tn_scaled_encoder() gives, with these kernels (quant/scaled_encode.c). */
struct tn_scaled_plan;
struct tn_tiles;
bool tn_scaled_encode_with(const tn_encode_kernels *k, const struct tn_scaled_plan *plan,
                           const struct tn_tiles *tiles);

#endif
