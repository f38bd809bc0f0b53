/* quant/tile.h - encode and decode one tile, and the steps of encoding.
 *
 * tile.c, tile_number.c and tile_scale.c are the definition: any datatype, any
 * option, scalar binary32 arithmetic with one rounding per operation.  The fast paths
 * give the same bits.
 *
 * A large tile (one scale per tensor or per long row) is a group of pieces.  A piece
 * is a tn_tile with some of the group's values, in order.  It has whole subtiles and
 * whole N:M groups. */
#ifndef TN_QUANT_TILE_H
#define TN_QUANT_TILE_H

#include "base/pool.h"
#include "quant/grammar/datatype.h"
#include "tensor/number.h"

#include <tenon/quantize.h>

enum { TN_TILE_MAX = 1 << 16 };         /* most values of a piece; larger tiles have several */

/* The values of one tile and their codes.  The caller owns the arrays. */
typedef struct tn_tile {
    const float *x;             /* n values, row by row; padding is 0 */
    size_t       n;             /* sparse tiles: kept and dropped values */
    const uint64_t *index;      /* of each value in the tensor, for stochastic rounding and messages;
                                 * UINT64_MAX: padding */
    float        tensor_scale;  /* 1 if there is none */
    uint32_t     scale;         /* code */
    uint32_t     zero;          /* code of the zero point */
    uint8_t     *offset;        /* one per subtile */
    uint8_t     *meta;          /* mapping, one per tile or subtile */
    uint8_t     *mask;          /* one per value; 1: kept */
    float       *scratch;       /* n values, for percentiles */
    uint32_t    *code;          /* one per value; sparse: one per slot, keep * n / of */
} tn_tile;

/* Chooses scale, zero point, offsets, mappings and mask, and encodes.  TN_ERR_LOSS: a NaN has no code; *bad
 * is its index in x. */
tn_status tn_tile_encode(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t, size_t *bad);

/* Decodes n values into y. */
void tn_tile_decode(const tn_datatype *d, const tn_tile *t, float *y);

/* ---- numbers of a spec (tile_number.c) ---- */

/* Stochastic rounding uses different random bits for each of these. */
typedef enum tn_tile_draw { TN_DRAW_VALUE, TN_DRAW_SCALE, TN_DRAW_ZERO, TN_DRAW_TENSOR_SCALE } tn_tile_draw;

/* Rounds values to codes of one spec. */
typedef struct tn_coder {
    const tn_number_spec *spec;
    tn_encode_rules rules;      /* of the type of the spec; integers: of int32 */
    bool exact;                 /* a plain cast: keeps infinities and NaN */
} tn_coder;

tn_coder tn_coder_for(const tn_number_spec *spec, tn_round round, uint64_t seed, tn_tile_draw draw);

/* A plain cast to float32, float16 or bfloat16. */
tn_coder tn_coder_exact(const tn_number_spec *spec, tn_round round, uint64_t seed);

/* Float specs: rounds x once, and saturates unless the coder is exact.  NaN becomes the NaN code of the spec,
 * or 0 if it has none. */
uint32_t tn_coder_float(const tn_coder *coder, float x, uint64_t index);

/* Clamps x, not NaN, to [low, high] and rounds it. */
int32_t tn_coder_integer(const tn_coder *coder, float x, int32_t low, int32_t high, uint64_t index);

/* The value of a code: float or exponent specs, exact coders, int specs. */
float   tn_spec_value(const tn_number_spec *spec, uint32_t code);
float   tn_spec_exact(const tn_number_spec *spec, uint32_t code);
int32_t tn_spec_integer(const tn_number_spec *spec, uint32_t code);

bool tn_spec_has_nan(const tn_number_spec *spec);

/* ---- scales (tile_scale.c) ---- */

/* The range of the finite values of a group.  Ranges of pieces join in any order. */
typedef struct tn_tile_range {
    float largest;              /* magnitude; 0: all values are 0 */
    float low, high;            /* low <= 0 <= high */
    bool  infinite;             /* the group has an infinity */
} tn_tile_range;

/* The scale, zero point and mapping of a group. */
typedef struct tn_tile_choice {
    uint32_t scale, zero;       /* codes */
    int32_t  mapping;           /* of a codebook; TN_EVERY_MAPPING: the best one per subtile */
} tn_tile_choice;

enum {
    TN_EVERY_MAPPING = -1,
    TN_TILE_CHOICES = 32,
    TN_RATIO_LOW = 5, TN_RATIO_HIGH = 25,       /* TN_SCALE_MSE tries these sixteenths of a float scale */
    TN_RANGE_ENDS = 5
};

/* With zero points TN_SCALE_MSE multiplies both ends of the range by these, in all combinations. */
extern const float tn_range_ends[TN_RANGE_ENDS];

/* Lists the scale and zero point of the rule.  TN_SCALE_MSE: lists those to try; the
 * first with the least error wins.  `index` is the index of the group's first value.
 * Returns how many, at most TN_TILE_CHOICES. */
unsigned tn_tile_choices(const tn_datatype *d, const tn_quantize_options *o, const tn_tile_range *range,
                         float tensor_scale, uint64_t index, tn_tile_choice *choices);

/* The code of the tensor's scale, if tiles have scales too; `range`: of all values. */
uint32_t tn_tensor_scale_for(const tn_datatype *d, const tn_quantize_options *o, const tn_tile_range *range);

/* The exponent scale, not clamped, of a group whose largest magnitude is `a` > 0. */
int tn_scale_exponent(const tn_datatype *d, const tn_quantize_options *o, float a);

/* A number to add to the bits of a normal float32: it carries into the exponent if the rule makes the
 * exponent one larger. */
int32_t tn_scale_bump(const tn_number_spec *n, tn_scale_rule mode);

/* The value of a scale code divided by 2^offset, without the scale of the tensor. */
float tn_scale_value(const tn_datatype *d, uint32_t code, unsigned offset);

/* Sparsity alone: kept values are cast, not scaled. */
static inline bool tn_datatype_is_exact(const tn_datatype *d)
{
    tn_dtype type = d->number.dtype;
    return d->scope == TN_SCOPE_NONE && d->of &&
           (type == TN_FLOAT32 || type == TN_FLOAT16 || type == TN_BFLOAT16);
}

/* The spec that limits the values: the number, or the compute type of a codebook. */
static inline const tn_number_spec *tn_compute_spec(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_CODEBOOK ? &d->codebook.compute : &d->number;
}

/* Fraction bits: with an exponent scale, integers have the binary point after their first bit. */
static inline int tn_point_of(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_INT && d->scale.kind == TN_NUMBER_EXPONENT ? d->number.bits - 2 : 0;
}

/* ---- a piece (tile.c) ---- */

/* Rejects NaN without a code and, in a sparse datatype, sets the mask. */
tn_status tn_tile_prepare(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t, size_t *bad);

/* Adds the kept values of a prepared piece to the range. */
void tn_tile_measure(const tn_datatype *d, const tn_tile *t, tn_tile_range *range);
void tn_tile_range_join(tn_tile_range *all, const tn_tile_range *one);

static inline bool tn_has_percentile(const tn_quantize_options *o)
{
    return o->percentile > 0 && o->percentile < 100;
}

/* How many of n values are within the percentile; at least 1. */
uint64_t tn_percentile_count(uint64_t n, double percentile);

tn_tile_range tn_tile_range_of(const float *x, size_t n);

/* Encodes a prepared piece.  Adds the sum of squared errors of its finite values to
 * `squares`, unless it is NULL.  There are eight partial sums: value k goes to sum
 * k % 8.  They are joined as ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). */
void tn_tile_apply(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t,
                   const tn_tile_choice *choice, double *squares);

/* Subtiles of a tile of n values; 1 if the datatype has none. */
size_t tn_tile_units(const tn_datatype *d, size_t n);

/* ---- reports (tile_report.c) ---- */

/* Adds an encoded piece; y are its decoded values. */
void tn_tile_report(const tn_datatype *d, const tn_tile *t, const float *y, tn_quantize_stats *report);

/* The same without codes: low and high are the values of the lowest and the highest
 * code, both 0 for dropped values. */
void tn_values_report(const float *x, const float *y, const float *low, const float *high, size_t n,
                      tn_quantize_stats *report);

/* The codes of the lowest and the highest number. */
void tn_last_codes(const tn_datatype *d, uint32_t codes[2]);

void tn_quantize_stats_add(tn_quantize_stats *all, const tn_quantize_stats *one);

#endif
