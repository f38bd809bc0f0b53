/* quant/affine.h - integer codes with one scale per tensor or per index of a
 * dimension.
 *
 * A plan is prepared once and run on many blocks.  Threads may share a plan. */
#ifndef TN_QUANT_AFFINE_H
#define TN_QUANT_AFFINE_H

#include "cast/cast.h"
#include "kernels/quantize/table.h"
#include "quant/grammar/datatype.h"

#include <tenon/quantize.h>

/* The scale of element i is scale[i / inner % count]. */
typedef struct tn_scale_index {
    uint64_t inner, count;
} tn_scale_index;

tn_status tn_scale_index_for(uint32_t rank, const int64_t *shape, int32_t axis, tn_scale_index *index,
                             tn_error *err);

/* Walks along the elements: this one and `left` - 1 more have this scale. */
typedef struct tn_scale_walk {
    uint64_t scale, left;
} tn_scale_walk;

static inline tn_scale_walk tn_scale_walk_at(tn_scale_index index, uint64_t element)
{
    return (tn_scale_walk){ element / index.inner % index.count, index.inner - element % index.inner };
}

/* Advances by n elements, at most `left`. */
static inline void tn_scale_walk_on(tn_scale_walk *walk, tn_scale_index index, uint64_t n)
{
    walk->left -= n;
    if (walk->left)
        return;
    walk->left = index.inner;
    walk->scale = walk->scale + 1 < index.count ? walk->scale + 1 : 0;
}

/* Shorter runs, of elements with one scale or of scales with one element, are not
 * worth a kernel call. */
enum { TN_SCALE_RUN = 64 };

typedef struct tn_affine_task {
    const tn_affine *affine;
    tn_dtype         values;
    bool             decodes;           /* codes to values; else values to codes */
    tn_scale_index   index;
    const float     *scale;             /* borrowed; must outlive the plan */
    const double    *wide_scale;        /* borrowed; decoding multiplies by them in float64; NULL: by scale */
    const int32_t   *zero;              /* borrowed; NULL: all 0 */
    const tn_quantize_options *options; /* uses round, nan and seed; NULL: the defaults */
    const tn_quant_kernels *kernels;    /* NULL: the best of this CPU */
} tn_affine_task;

typedef struct tn_affine_plan {
    const tn_dtype_info *codes, *values;
    const char      *name;              /* of the codes, for messages; the caller may change it */
    tn_scale_index   index;
    const float     *scale;             /* borrowed */
    const double    *wide_scale;        /* borrowed; may be NULL */
    const int32_t   *zero;              /* borrowed; may be NULL */
    int64_t          range[2];
    tn_nan           nan;
    tn_arithmetic    arithmetic;
    tn_encode_rules  rules;             /* to round a quotient to an integer, or a product to float32 */
    tn_quantize_fn   quantize;          /* kernel; NULL: the definition */
    tn_dequantize_fn dequantize;        /* kernel; NULL: the definition */
    bool             rounds_first;      /* quotients are rounded by `rounding`, then given to the kernel */
    tn_round_rules   rounding;
    bool             is_float32;        /* values are float32 and need no cast */
    bool             refuses_infinite;  /* a product beyond float32 is an error */
    bool             stream;            /* set by the caller: write past the caches; after
                                         * encoding call tn_stream_fence() */
    tn_cast_plan     cast;              /* values to float32, or back; last, because it is large */
} tn_affine_plan;

/* TN_ERR_ARGUMENT: invalid types, scales, zero points or options.  The caller may
 * overwrite scales and zero points later with those of tn_scale_tally_scales(). */
tn_status tn_affine_plan_make(tn_affine_plan *plan, const tn_affine_task *task, tn_error *err);

/* Decoding: sets the options of the cast from float32; NULL: the defaults. */
tn_status tn_affine_plan_cast(tn_affine_plan *plan, const tn_cast_options *options, tn_error *err);

/* Whether x / scale, both finite, is within the range after rounding.  TN_ARITH_MLI rounds like MLI, other
 * arithmetics exactly.  Stochastic rounding counts as rounding away from zero. */
bool tn_affine_fits(tn_arithmetic arithmetic, const tn_encode_rules *rules, const int64_t range[2],
                    float x, float scale);

/* n dense elements from number `first` of an array of this shape.  dst and src begin
 * on a byte, so packed types are divided at multiples of 8 elements.  They must not
 * overlap.  Unused bits of the last byte become 0.
 * TN_ERR_LOSS: a NaN; the text has its index. */
tn_status tn_affine_encode(const tn_affine_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                           uint32_t rank, const int64_t *shape, tn_error *err);
tn_status tn_affine_decode(const tn_affine_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                           uint32_t rank, const int64_t *shape, tn_error *err);

#endif
