/* tests/support/affine.h - arrays of codes, of scales and of zero points as the parts of an affine
 * datatype, with everything that describes it in one place. */
#ifndef TN_TESTS_AFFINE_H
#define TN_TESTS_AFFINE_H

#include <stdlib.h>
#include <tenon/tenon.h>

#include "quant/affine.h"

typedef struct affine_options {
    int32_t       axis;
    bool          symmetric, power;
    tn_scale_rule rule;
    double        percentile;
    int64_t       range[2];
    tn_round      round;
    tn_nan        nan;
    uint64_t      seed;
    unsigned      jobs;
    tn_arithmetic arithmetic;
    unsigned      scale_bits;
} affine_options;

static inline tn_affine affine_of(tn_dtype codes, const affine_options *o)
{
    static const affine_options none = { .axis = TN_PER_TENSOR };
    o = o ? o : &none;
    return (tn_affine){ .size = sizeof(tn_affine), .codes = codes, .axis = o->axis, .symmetric = o->symmetric,
                        .power = o->power, .scale_bits = o->scale_bits,
                        .range = { o->range[0], o->range[1] }, .arithmetic = o->arithmetic };
}

static inline tn_quantize_options affine_rules(const affine_options *o)
{
    static const affine_options none = { .axis = TN_PER_TENSOR };
    o = o ? o : &none;
    return (tn_quantize_options){ .size = sizeof(tn_quantize_options), .rule = o->rule,
                                  .percentile = o->percentile, .round = o->round, .nan = o->nan,
                                  .seed = o->seed, .jobs = o->jobs };
}

/* The range of codes. */
static inline tn_status affine_range(tn_dtype codes, const affine_options *o, int64_t range[2])
{
    const tn_affine a = affine_of(codes, o);
    return tn_affine_range(&a, range, NULL);
}

/* How many scales there are. */
static inline tn_status affine_count(uint32_t rank, const int64_t *shape, int32_t axis, uint64_t *count,
                                     tn_error *err)
{
    const tn_affine a = { .size = sizeof a, .codes = TN_INT8, .axis = axis };
    tn_datatype *d = NULL;
    tn_scaled_shapes shapes;
    tn_status status = tn_datatype_affine(&a, &d, err);
    if (status == TN_OK)
        status = tn_scaled_shapes_for(d, rank, shape, &shapes, err);
    if (status == TN_OK)
        *count = shapes.parts[1].rank ? (uint64_t)shapes.parts[1].shape[0] : 1;
    tn_datatype_free(d);
    return status;
}

/* Zero points that are all 0, where an asymmetric datatype wants some and there are none. */
static inline int32_t *affine_zeros(const tn_affine *a, const tn_array *like, const int32_t *zero)
{
    uint64_t count = 0;
    if (zero || a->symmetric || affine_count(like->rank, like->shape, a->axis, &count, NULL))
        return NULL;
    return calloc((size_t)count + 1, sizeof(int32_t));
}

/* With scales that are given. */
static inline tn_status affine_quantize(const tn_array *codes, void *data, const tn_array *values, const void *x,
                                        const float *scale, const int32_t *zero, const affine_options *o,
                                        tn_error *err)
{
    tn_affine a = affine_of(codes->dtype, o);
    tn_quantize_options rules = affine_rules(o);
    tn_datatype *d = NULL;
    a.has_zeros = zero != NULL;
    rules.rule = TN_SCALE_GIVEN;
    rules.percentile = 0;
    tn_status status = tn_datatype_affine(&a, &d, err);
    int32_t *none = affine_zeros(&a, values, zero);
    void *const parts[] = { data, (void *)(uintptr_t)scale, none ? none : (void *)(uintptr_t)zero };
    if (status == TN_OK)
        status = tn_quantize(d, values, x, parts, &rules, NULL, err);
    tn_datatype_free(d);
    free(none);
    return status;
}

static inline tn_status affine_dequantize(const tn_array *values, void *y, const tn_array *codes,
                                          const void *data, const float *scale, const int32_t *zero,
                                          const affine_options *o, tn_error *err)
{
    tn_affine a = affine_of(codes->dtype, o);
    tn_quantize_options rules = affine_rules(o);
    tn_datatype *d = NULL;
    a.has_zeros = zero != NULL;
    rules.percentile = 0;
    rules.rule = TN_SCALE_MAX;
    tn_status status = tn_datatype_affine(&a, &d, err);
    int32_t *none = affine_zeros(&a, values, zero);
    const void *const parts[] = { data, scale, none ? none : zero };
    if (status == TN_OK)
        status = tn_dequantize(d, values, parts, y, &rules, err);
    tn_datatype_free(d);
    free(none);
    return status;
}

/* Scales and zero points alone; NaN and infinities do not count. */
static inline tn_status affine_choose_scales(tn_dtype codes, const tn_array *values, const void *x,
                                             const affine_options *o, float *scale, int32_t *zero,
                                             tn_error *err)
{
    tn_affine a = affine_of(codes, o);
    tn_quantize_options rules = affine_rules(o);
    tn_datatype *d = NULL;
    uint64_t count = 0;
    a.has_zeros = zero != NULL;
    rules.nan = TN_NAN_ZERO;
    tn_status status = tn_datatype_affine(&a, &d, err);
    tn_array_nbytes(&(tn_array){ TN_INT32, values->rank, values->shape, NULL }, &count);
    void *data = malloc((size_t)count + 1);
    void *const parts[] = { data, scale, zero };
    if (status == TN_OK)
        status = tn_quantize(d, values, x, parts, &rules, NULL, err);
    tn_datatype_free(d);
    free(data);
    return status;
}

#endif
