/* quant/scaled.c - the public functions: tn_quantize(), tn_dequantize(), tn_fake_quantize(). */
#include <stdlib.h>

#include "base/options.h"
#include "tensor/array.h"
#include "quant/quantizer.h"
#include "quant/rotate.h"
#include "quant/scaled_plan.h"

/* --- checks ---------------------------------------------------------------------- */

static tn_status check_mode(const tn_quantize_options *o, tn_error *err)
{
    if (o->round != TN_ROUND_EVEN && o->round != TN_ROUND_AWAY && o->round != TN_ROUND_ZERO &&
        o->round != TN_ROUND_STOCHASTIC)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a rounding of %d, %d, %d or %d but found %d",
                       TN_ROUND_EVEN, TN_ROUND_AWAY, TN_ROUND_ZERO, TN_ROUND_STOCHASTIC, (int)o->round);
    if (!(o->percentile >= 0 && o->percentile <= 100))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a percentile above 0 and at most 100 but found %.17g",
                       o->percentile);
    if ((unsigned)o->rule > TN_SCALE_MSE)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a scale mode of 0 to %d but found %d", TN_SCALE_MSE,
                       (int)o->rule);
    if ((unsigned)o->nan > TN_NAN_ERROR)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a NaN mode of 0 to %d but found %d", TN_NAN_ERROR,
                       (int)o->nan);
    return TN_OK;
}

/* ggml has one such datatype and one rule for its scales. */
static tn_status check_ggml(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    if (d->number.dtype != TN_FLOAT4_E2M1 || d->scale.dtype != TN_FLOAT8_E8M0 || d->dims != 1 ||
        d->tile[0] != 32 || d->subtile || d->of)
        return tn_fail(err, TN_ERR_ARGUMENT, "the ggml dialect needs e2m1fnuz|e8m0_t32 but found %s",
                       d->text);
    if (o->round != TN_ROUND_EVEN || o->rule != TN_SCALE_MAX)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "the ggml dialect has its own ties and scale rule: expected rounding %d and scale "
                       "mode %d but found %d and %d", TN_ROUND_EVEN, TN_SCALE_MAX, (int)o->round,
                       (int)o->rule);
    return TN_OK;
}

static tn_status check_store(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    uint8_t codes[256];
    if (o->store == TN_UNKNOWN)
        return TN_OK;
    if (!o->unpacked)
        return tn_fail(err, TN_ERR_ARGUMENT, "`store` needs `unpacked`: float8 numbers are not packed");
    return tn_datatype_store_codes(d, o->store, codes, err);
}

tn_status tn_scaled_check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    TN_TRY(check_mode(o, err));
    TN_TRY(check_store(d, o, err));
    return o->ggml ? check_ggml(d, o, err) : TN_OK;
}

tn_status tn_scaled_check_rotation(const tn_scaled_plan *plan, tn_error *err)
{
    uint32_t size = plan->o.rotation.size;
    uint64_t extent = plan->extent;
    if (size == 0 || plan->count == 0)
        return TN_OK;
    if (size < 4 || size > 128 || (size & (size - 1)))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a rotation of 4, 8, 16, 32, 64 or 128 values but found %u", size);
    if (extent % size)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a tiled dimension that is a multiple of the rotation's %u values but "
                       "found %llu",
                       size, (unsigned long long)extent);
    return TN_OK;
}

static tn_status check_array(const tn_datatype *d, const tn_array *array, const void *data, uint64_t *count,
                             tn_error *err)
{
    TN_TRY(tn_array_check_dense(array, data, "tensor", count, err));
    const tn_dtype_info *type = tn_dtype_get(array->dtype);
    bool any = d->is_affine, is_float = type && type->kind == TN_KIND_FLOAT;
    if (!is_float || (type->specials == TN_SPECIALS_E8M0 && !any))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected values of a %s type but found %s",
                       any ? "float" : "signed float", type ? type->name : "an unknown type");
    return TN_OK;
}

static tn_status prepare(tn_scaled_plan *plan, const tn_datatype *d, const tn_array *array, const void *data,
                         void *const *parts, const tn_quantize_options *options, tn_error *err)
{
    tn_quantize_options o = { .size = sizeof o };
    uint64_t count;
    TN_TRY(tn_take_options(TN_SIZED(tn_quantize_options, percentile), &o, options, err));
    if (!d || !array)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a datatype and a tensor but found none");
    TN_TRY(tn_quantizer_check(d, &o, err));
    TN_TRY(check_array(d, array, data, &count, err));
    TN_TRY(tn_scaled_plan_make(plan, d, array->rank, array->shape, &o, parts, err));
    return tn_scaled_check_rotation(plan, err);
}

/* --- work ------------------------------------------------------------------------ */

tn_status tn_scaled_rotate(const tn_scaled_plan *plan, bool back, float *x, tn_pool *pool, tn_error *err)
{
    if (!plan->o.rotation.size || tn_scaled_rotates(plan))
        return TN_OK;
    return tn_rotate(&plan->o.rotation, back, plan->outer * plan->rows, plan->columns, plan->inner, x, pool,
                     err);
}

/* Elements narrower than a byte share bytes with other tiles.  A rotation that items
 * cannot apply is applied to the whole tensor. */
static bool needs_copy(const tn_scaled_plan *plan, const tn_array *array)
{
    return tn_dtype_get(array->dtype)->bits < 8 || (plan->o.rotation.size && !tn_scaled_rotates(plan));
}

static tn_status run(const tn_scaled_work *w, bool encodes, tn_error *err)
{
    return encodes ? tn_quantizer_encode(w, err) : tn_quantizer_decode(w, err);
}

/* Runs through a copy of all values as float32. */
static tn_status run_with(float *copy, const tn_scaled_work *w, bool encodes, const tn_array *array,
                          tn_error *err)
{
    const tn_cast_options o = { .size = sizeof o, .jobs = w->plan->o.jobs };
    const tn_array floats = { TN_FLOAT32, array->rank, array->shape, NULL },
                   dense = { array->dtype, array->rank, array->shape, NULL };
    tn_scaled_work own = *w;
    own.src_type = own.dst_type = TN_FLOAT32;
    own.src = encodes ? copy : NULL;
    own.dst = w->dst ? copy : NULL;
    if (encodes) {
        TN_TRY(tn_cast(&floats, copy, array, w->src, TN_HOST_ORDER, &o, err));
        TN_TRY(tn_scaled_rotate(w->plan, false, copy, w->pool, err));
    }
    TN_TRY(run(&own, encodes, err));
    if (!w->dst)
        return TN_OK;
    TN_TRY(tn_scaled_rotate(w->plan, true, copy, w->pool, err));
    return tn_cast(&dense, w->dst, &floats, copy, TN_HOST_ORDER, &o, err);
}

static tn_status run_copied(const tn_scaled_work *w, bool encodes, const tn_array *array, tn_error *err)
{
    uint64_t count = w->plan->count;
    float *copy = count <= SIZE_MAX / sizeof *copy ? malloc((size_t)count * sizeof *copy) : NULL;
    tn_status status = copy ? run_with(copy, w, encodes, array, err) : tn_fail_nomem(err);
    free(copy);
    return status;
}

static tn_status run_all(tn_scaled_work w, bool encodes, const tn_array *array, tn_error *err)
{
    w.src_type = w.dst_type = array->dtype;
    if (w.report)
        *w.report = (tn_quantize_stats){ 0 };
    tn_status status = tn_pool_new(w.plan->o.jobs, &w.pool, err);
    if (status == TN_OK)
        status = needs_copy(w.plan, array) ? run_copied(&w, encodes, array, err) : run(&w, encodes, err);
    tn_pool_free(w.pool);
    return status;
}

static tn_status check_parts(const tn_scaled_plan *plan, tn_error *err)
{
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++)
        if (plan->fields[i].nbytes && !plan->fields[i].data)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected %llu bytes for the part %s but found none",
                           (unsigned long long)plan->fields[i].nbytes, tn_scaled_roles[i]);
    if (plan->tscale.nbytes && !plan->tscale.data)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected %llu bytes for the part tscale but found none",
                       (unsigned long long)plan->tscale.nbytes);
    if (plan->index.nbytes && !plan->index.data)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected %llu bytes for the part index but found none",
                       (unsigned long long)plan->index.nbytes);
    return TN_OK;
}

tn_status tn_fake_quantize(const tn_datatype *d, const tn_array *array, const void *src, void *dst,
                              const tn_quantize_options *options, tn_quantize_stats *report, tn_error *err)
{
    tn_scaled_plan plan;
    tn_status status = prepare(&plan, d, array, dst || report ? src : NULL, NULL, options, err);
    const tn_scaled_work w = { .plan = &plan, .src = src, .dst = dst, .report = report };
    return status ? status : run_all(w, true, array, err);
}

tn_status tn_quantize(const tn_datatype *d, const tn_array *array, const void *src, void *const *parts,
                             const tn_quantize_options *options, tn_quantize_stats *report, tn_error *err)
{
    tn_scaled_plan plan;
    TN_TRY(prepare(&plan, d, array, parts ? src : NULL, parts, options, err));
    TN_TRY(check_parts(&plan, err));
    const tn_scaled_work w = { .plan = &plan, .src = src, .report = report };
    return run_all(w, true, array, err);
}

static tn_status dequantize(const tn_datatype *d, const tn_array *array, const void *const *parts, void *dst,
                            const tn_quantize_options *options, tn_error *err)
{
    tn_scaled_plan plan;
    void *own[sizeof ((tn_scaled_shapes *)0)->parts / sizeof ((tn_scaled_shapes *)0)->parts[0]] = { NULL };
    tn_scaled_shapes shapes = { 0 };
    if (d && array && parts && tn_scaled_shapes_for(d, array->rank, array->shape, &shapes, NULL) == TN_OK)
        for (uint32_t i = 0; i < shapes.count; i++)
            own[i] = (void *)(uintptr_t)parts[i];       /* only read */
    TN_TRY(prepare(&plan, d, array, parts ? dst : NULL, own, options, err));
    TN_TRY(check_parts(&plan, err));
    return run_all((tn_scaled_work){ .plan = &plan, .dst = dst }, false, array, err);
}

tn_status tn_dequantize(const tn_datatype *d, const tn_array *array, const void *const *parts,
                               void *dst, const tn_quantize_options *options, tn_error *err)
{
    tn_quantize_options o = { .size = sizeof o };
    tn_datatype *stored;
    TN_TRY(tn_take_options(TN_SIZED(tn_quantize_options, percentile), &o, options, err));
    if (!d || o.store == TN_UNKNOWN)
        return dequantize(d, array, parts, dst, options, err);
    TN_TRY(tn_quantizer_check(d, &o, err));
    TN_TRY(tn_datatype_parse_stored(d->text, o.store, &stored, err));
    o.store = TN_UNKNOWN;
    o.ggml = false;             /* affects encoding only */
    tn_status status = dequantize(stored, array, parts, dst, &o, err);
    tn_datatype_free(stored);
    return status;
}
