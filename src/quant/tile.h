/* quant/tile.h - the steps of encoding a tile, for groups of values that
 * are cut into pieces: one scale for a whole tensor or a long row.
 *
 * A piece is a tn_tile of some of a group's values in order.  Its subtiles and
 * N:M groups are whole ones. */
#ifndef TN_QUANT_TILE_H
#define TN_QUANT_TILE_H

#include "tensor/number.h"
#include "quant/scaled.h"

/* ---- numbers of a spec (tile_number.c) ---- */

/* Each kind of number is rounded with random bits of its own. */
typedef enum tn_tile_draw { TN_DRAW_VALUE, TN_DRAW_SCALE, TN_DRAW_ZERO, TN_DRAW_TENSOR_SCALE } tn_tile_draw;

/* How numbers become codes of one spec. */
typedef struct tn_coder {
    const tn_number_spec *spec;
    tn_encode_rules rules;      /* of its type; integers: of int32 */
    bool exact;                 /* as plain casts have it: infinities and NaN stay what they are */
} tn_coder;

tn_coder tn_coder_for(const tn_number_spec *spec, tn_round round, uint64_t seed, tn_tile_draw draw);

/* Of float32, float16 and bfloat16, whose values are to stay what they are where they can. */
tn_coder tn_coder_exact(const tn_number_spec *spec, tn_round round, uint64_t seed);

/* Float specs: the code of x, rounded once, saturated unless it is exact.  NaN has the spec's NaN code, or 0
 * where it has none. */
uint32_t tn_coder_float(const tn_coder *coder, float x, uint64_t index);

/* The integer that x, not NaN, is rounded to after it is brought between the limits. */
int32_t tn_coder_integer(const tn_coder *coder, float x, int32_t low, int32_t high, uint64_t index);

/* The value of a code: of a float or an exponent, of one that is exact, of an int. */
float   tn_spec_value(const tn_number_spec *spec, uint32_t code);
float   tn_spec_exact(const tn_number_spec *spec, uint32_t code);
int32_t tn_spec_integer(const tn_number_spec *spec, uint32_t code);

bool tn_spec_has_nan(const tn_number_spec *spec);

/* ---- scales (tile_scale.c) ---- */

/* The finite values of a group; ranges of its pieces join in any order. */
typedef struct tn_tile_range {
    float largest;              /* magnitude, 0: there is nothing but zeros */
    float low, high;            /* low <= 0 <= high */
    bool  infinite;             /* there is an infinity as well */
} tn_tile_range;

/* What is chosen for a group as a whole. */
typedef struct tn_tile_choice {
    uint32_t scale, zero;       /* codes */
    int32_t  mapping;           /* of a codebook, or TN_EVERY_MAPPING: the best one of each subtile */
} tn_tile_choice;

enum {
    TN_EVERY_MAPPING = -1,
    TN_TILE_CHOICES = 32,
    TN_RATIO_LOW = 5, TN_RATIO_HIGH = 25,       /* sixteenths of a float scale that TN_SCALE_MSE tries, after
                                                 * it */
    TN_RANGE_ENDS = 5
};

/* Shares of both ends of a range that it tries where there are zero points, each with each. */
extern const float tn_range_ends[TN_RANGE_ENDS];

/* The scale and zero point that the mode asks for; TN_SCALE_MSE: those to try,
 * of which the first with the least error is taken.  `index` is that of the
 * group's first value.  Returns how many, at most TN_TILE_CHOICES. */
unsigned tn_tile_choices(const tn_datatype *d, const tn_quantize_options *o, const tn_tile_range *range,
                         float tensor_scale, uint64_t index, tn_tile_choice *choices);

/* The scale of a tensor whose blocks have scales too, as a code; `range` is that of all its values. */
uint32_t tn_tensor_scale_for(const tn_datatype *d, const tn_quantize_options *o, const tn_tile_range *range);

/* The exponent that the mode gives a group whose largest magnitude is `a`, not 0, before it is clamped. */
int tn_scale_exponent(const tn_datatype *d, const tn_quantize_options *o, float a);

/* The same as a number to add to the bits of a normal float32: it carries into the exponent where the mode
 * wants one more. */
int32_t tn_scale_bump(const tn_number_spec *n, tn_scale_rule mode);

/* The value of a scale code less a subtile's offset, without a tensor's scale. */
float tn_scale_value(const tn_datatype *d, uint32_t code, unsigned offset);

/* Sparsity alone leaves the values as they are. */
static inline bool tn_datatype_is_exact(const tn_datatype *d)
{
    tn_dtype type = d->number.dtype;
    return d->scope == TN_SCOPE_NONE && d->of &&
           (type == TN_FLOAT32 || type == TN_FLOAT16 || type == TN_BFLOAT16);
}

/* What the elements' limits are of: the number, or what a codebook's values are. */
static inline const tn_number_spec *tn_compute_spec(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_CODEBOOK ? &d->codebook.compute : &d->number;
}

/* ---- a piece (tile.c) ---- */

/* Looks for NaN and, in a sparse datatype, says what is kept. */
tn_status tn_tile_prepare(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t, size_t *bad);

/* Adds what is kept of a prepared piece to the range. */
void tn_tile_measure(const tn_datatype *d, const tn_tile *t, tn_tile_range *range);
void tn_tile_range_join(tn_tile_range *all, const tn_tile_range *one);

/* Whether some values are not to count, and how many of n, at least 1, do. */
static inline bool tn_has_percentile(const tn_quantize_options *o)
{
    return o->percentile > 0 && o->percentile < 100;
}

uint64_t tn_percentile_count(uint64_t n, double percentile);

/* The range of values as they are. */
tn_tile_range tn_tile_range_of(const float *x, size_t n);

/* Encodes a prepared piece; with `squares` the sum of squared errors of its
 * finite values is added to it: eight sums, of every eighth of them in order,
 * joined as ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). */
void tn_tile_apply(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t,
                   const tn_tile_choice *choice, double *squares);

/* Subtiles of a tile of n values; one where there are none. */
size_t tn_tile_units(const tn_datatype *d, size_t n);

/* ---- what was done (tile_report.c) ---- */

/* Adds an encoded piece, whose codes stand for y. */
void tn_tile_report(const tn_datatype *d, const tn_tile *t, const float *y, tn_quantize_stats *report);

/* The same of n values of which the codes are not known, but what the last
 * numbers on both sides would be: 0 where nothing is kept. */
void tn_values_report(const float *x, const float *y, const float *low, const float *high, size_t n,
                      tn_quantize_stats *report);

/* The codes of those: the lowest and the highest number. */
void tn_last_codes(const tn_datatype *d, uint32_t codes[2]);

/* Adds what comes after it. */
void tn_quantize_stats_add(tn_quantize_stats *all, const tn_quantize_stats *one);

#endif
