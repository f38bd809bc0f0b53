/* quant/affine.h - codes with scales along whole dimensions, prepared once and run
 * on many blocks.
 *
 * A plan is not changed by use: any number of threads may share one. */
#ifndef TN_QUANT_AFFINE_H
#define TN_QUANT_AFFINE_H

#include "cast/cast.h"
#include "kernels/quantize/table.h"
#include "quant/grammar/datatype.h"

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

/* Fewer elements in a row with one scale, or scales in a row with one element,
 * are not worth a kernel's call. */
enum { TN_SCALE_RUN = 64 };

/* What a plan is made of. */
typedef struct tn_affine_task {
    const tn_affine *affine;
    tn_dtype         values;
    bool             decodes;           /* codes -> values; else values -> codes */
    tn_scale_index   index;
    const float     *scale;             /* the caller's, as long as the plan lives */
    const int32_t   *zero;              /* or NULL: all 0 */
    const tn_quantize_options *options; /* round, nan and seed; NULL: zeros */
    const tn_quant_kernels *kernels;    /* NULL: the machine's */
} tn_affine_task;

typedef struct tn_affine_plan {
    const tn_dtype_info *codes, *values;
    const char      *name;              /* of the codes, for messages; the caller may set another one */
    tn_scale_index   index;
    const float     *scale;             /* the caller's */
    const int32_t   *zero;              /* or NULL */
    int64_t          range[2];
    tn_nan           nan;
    tn_arithmetic    arithmetic;
    tn_encode_rules  rules;             /* of rounding a quotient to an integer, or a product to float32 */
    tn_quantize_fn   quantize;          /* one of these, or none: by the definition */
    tn_dequantize_fn dequantize;
    tn_cast_plan     cast;              /* values to float32 or back */
    bool             is_float32;        /* values are, and no cast changes or refuses any */
    bool             refuses_infinite;  /* products beyond float32 */
    bool             stream;            /* for the caller to set: the output is large and not read soon */
} tn_affine_plan;

/* TN_ERR_ARGUMENT: types, scales, zero points or options that make no sense.
 * Scales and zeros may still change to what tn_scale_tally_scales() gives for
 * these codes. */
tn_status tn_affine_plan_make(tn_affine_plan *plan, const tn_affine_task *task, tn_error *err);

/* Decoding: values are cast from float32 with these options, which may be NULL. */
tn_status tn_affine_plan_cast(tn_affine_plan *plan, const tn_cast_options *options, tn_error *err);

/* Whether x / scale, both finite, rounded, is in the range and not cut: exactly, or as MLI does it;
 * stochastic: away from zero. */
bool tn_affine_fits(tn_arithmetic arithmetic, const tn_encode_rules *rules, const int64_t range[2],
                    float x, float scale);

/* n dense elements from number `first` on, of an array of this shape.  Both
 * begin on a byte, so packed types are cut at multiples of 8 elements.  dst and
 * src must not overlap.  The unused bits of a last byte become zero.
 * TN_ERR_LOSS: a NaN, with its index. */
tn_status tn_affine_encode(const tn_affine_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                           uint32_t rank, const int64_t *shape, tn_error *err);
tn_status tn_affine_decode(const tn_affine_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                           uint32_t rank, const int64_t *shape, tn_error *err);

#endif
