/* quant/quantize.h - quantization prepared once and run on many blocks.
 *
 * tn_quantize() and the convert pipeline both work through this.  A plan is not
 * changed by use: any number of threads may share one. */
#ifndef TN_QUANT_QUANTIZE_H
#define TN_QUANT_QUANTIZE_H

#include "cast/cast.h"
#include "kernels/quantize/table.h"

#include <tenon/quantize.h>

/* Where element i's scale is: scale[i / inner % count]. */
typedef struct tn_scale_index {
    uint64_t inner, count;
} tn_scale_index;

tn_status tn_scale_index_for(uint32_t rank, const int64_t *shape, int32_t axis, tn_scale_index *index,
                             tn_error *err);

/* The same along the elements: the scale of this one and of `left` - 1 more. */
typedef struct tn_scale_walk {
    uint64_t scale, left;
} tn_scale_walk;

static inline tn_scale_walk tn_scale_walk_at(tn_scale_index index, uint64_t element)
{
    return (tn_scale_walk){ element / index.inner % index.count, index.inner - element % index.inner };
}

/* n elements further, at most `left`. */
static inline void tn_scale_walk_on(tn_scale_walk *walk, tn_scale_index index, uint64_t n)
{
    walk->left -= n;
    if (walk->left)
        return;
    walk->left = index.inner;
    walk->scale = walk->scale + 1 < index.count ? walk->scale + 1 : 0;
}

/* The exponent of the last bit that a scale of few bits may have: more fractional
 * bits than 127 have no place in MLI's structures. */
enum { TN_SHORT_SCALE_LEAST = -127 };

/* Fewer elements in a row with one scale, or scales in a row with one element,
 * are not worth a kernel's call. */
enum { TN_SCALE_RUN = 64 };

/* The options with their defaults where the caller's say nothing. */
tn_quantize_options tn_quantize_options_take(const tn_quantize_options *options);

/* TN_ERR_ARGUMENT, and a text: not a type of codes; not an array, dense and with data (`which` says which
 * one). */
tn_status tn_codes_check(tn_dtype codes, tn_error *err);
tn_status tn_dense_check(const tn_array *array, const void *data, const char *which, uint64_t *count,
                         tn_error *err);

/* The range of codes the options ask for; TN_ERR_ARGUMENT when they or the
 * type make no sense (the text says why). */
tn_status tn_code_range(tn_dtype codes, const tn_quantize_options *options, int64_t range[2], tn_error *err);

/* ---- scales from data, span by span ----
 *
 * For windows in any order from any number of threads: one tally a thread,
 * joined at the end.  Percentiles and least errors need several rounds over the
 * data: after each, tn_range_tally_more() says whether to go through all of it
 * again. */
typedef struct tn_range_tally tn_range_tally;

tn_status tn_range_tally_new(tn_dtype codes, tn_dtype from, tn_scale_index index,
                             const tn_quantize_options *options, tn_range_tally **tally, tn_error *err);
/* of memory: many scales may want fewer threads */
size_t    tn_range_tally_bytes(const tn_range_tally *tally);
/* dense, host order */
void      tn_range_tally_add(tn_range_tally *tally, const void *elements, uint64_t first, size_t n);
void      tn_range_tally_join(tn_range_tally *all, const tn_range_tally *one);
bool      tn_range_tally_more(tn_range_tally *all);
/* begins the next round of another thread's */
void      tn_range_tally_again(tn_range_tally *one, const tn_range_tally *all);
void      tn_range_tally_scales(const tn_range_tally *all, float *scale, int32_t *zero);
void      tn_range_tally_free(tn_range_tally *tally);

/* ---- blocks ---- */

typedef struct tn_quant_plan {
    const tn_dtype_info *codes, *values;
    const char      *name;              /* of the codes, for messages; the caller may set another one */
    tn_scale_index   index;
    const float     *scale;             /* the caller's */
    const int32_t   *zero;              /* or NULL */
    int64_t          range[2];
    tn_nan           nan;
    tn_arithmetic arithmetic;
    tn_encode_rules  rules;             /* of rounding a quotient to an integer, or a product to float32 */
    tn_quantize_fn   quantize;          /* one of these, or none: by the definition */
    tn_dequantize_fn dequantize;
    tn_cast_plan     cast;              /* values to float32 or back */
    bool             is_float32;        /* values are, and no cast changes or refuses any */
    bool             refuses_infinite;  /* products beyond float32 */
    bool             stream;            /* for the caller to set: the output is large and not read soon */
} tn_quant_plan;

/* Quantizing: values -> codes.  `dequantize`: codes -> values.  The same
 * statuses as tn_quantize() and tn_dequantize().  Scales and zeros may still
 * change to what tn_range_tally_scales() gives for these codes. */
tn_status tn_quant_plan_make(tn_quant_plan *plan, tn_dtype codes, tn_dtype values, bool dequantize,
                             tn_scale_index index, const float *scale, const int32_t *zero,
                             const tn_quantize_options *options, tn_error *err);

/* As tn_quant_plan_make() with the kernels of the caller's choice. */
tn_status tn_quant_plan_with(tn_quant_plan *plan, const tn_quant_kernels *kernels, tn_dtype codes,
                             tn_dtype values, bool dequantize, tn_scale_index index, const float *scale,
                             const int32_t *zero, const tn_quantize_options *options, tn_error *err);

/* Dequantizing: values are cast from float32 with these options, which may be NULL. */
tn_status tn_quant_plan_cast(tn_quant_plan *plan, const tn_cast_options *options, tn_error *err);

/* Whether x / scale, both finite, rounded, is in the range and not cut: exactly, or as MLI does it;
 * stochastic: away from zero. */
bool tn_quant_fits(tn_arithmetic arithmetic, const tn_encode_rules *rules, const int64_t range[2],
                   float x, float scale);

/* n dense elements from number `first` on, of an array of this shape.  Both
 * begin on a byte, so packed types are cut at multiples of 8 elements.  dst and
 * src must not overlap.  The unused bits of a last byte become zero.
 * TN_ERR_LOSS: a NaN, with its index. */
tn_status tn_quantize_block(const tn_quant_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                            uint32_t rank, const int64_t *shape, tn_error *err);
tn_status tn_dequantize_block(const tn_quant_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                              uint32_t rank, const int64_t *shape, tn_error *err);

#endif
