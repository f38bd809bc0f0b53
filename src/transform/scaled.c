/* transform/scaled.c - tensors as small codes with scales: the public
 * functions, and what they refuse. */
#include "transform/scaled.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/options.h"
#include "tensor/array.h"
#include "transform/scaled_plan.h"

/* --- what is refused ------------------------------------------------------------- */

static tn_status check_mode(const tn_scaled_options *o, tn_error *err)
{
    if (o->round != TN_ROUND_EVEN && o->round != TN_ROUND_AWAY && o->round != TN_ROUND_ZERO && o->round != TN_ROUND_STOCHASTIC)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a rounding of %d, %d, %d or %d but found %d", TN_ROUND_EVEN,
                       TN_ROUND_AWAY, TN_ROUND_ZERO, TN_ROUND_STOCHASTIC, (int)o->round);
    if ((unsigned)o->mode > TN_SCALE_MSE)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a scale mode of 0 to %d but found %d", TN_SCALE_MSE,
                       (int)o->mode);
    if ((unsigned)o->nan > TN_NAN_ERROR)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a NaN mode of 0 to %d but found %d", TN_NAN_ERROR,
                       (int)o->nan);
    return TN_OK;
}

/* ggml has this one datatype, and one way to make it. */
static tn_status check_ggml(const tn_datatype *d, const tn_scaled_options *o, tn_error *err)
{
    if (d->number.dtype != TN_FLOAT4_E2M1 || d->scale.dtype != TN_FLOAT8_E8M0 || d->dims != 1 || d->tile[0] != 32 || d->subtile ||
        d->of)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "ggml's way is known for e2m1fnuz|e8m0_t32 but found %s", d->text);
    if (o->round != TN_ROUND_EVEN || o->mode != TN_SCALE_FLOOR)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "ggml has ties and a scale rule of its own: expected rounding %d and scale "
                       "mode %d but found %d and %d", TN_ROUND_EVEN, TN_SCALE_FLOOR, (int)o->round, (int)o->mode);
    return TN_OK;
}

static tn_status check_array(const tn_array *array, const void *data, uint64_t *count, tn_error *err)
{
    int64_t dense[TN_MAX_RANK];
    tn_status status = tn_array_check(array, "tensor", count, err);
    if (status != TN_OK)
        return status;
    const tn_dtype_info *type = tn_dtype_get(array->dtype);
    if (!type || type->kind != TN_KIND_FLOAT || type->specials == TN_SPECIALS_E8M0)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected values of a signed float type but found %s",
                       type ? type->name : "an unknown type");
    if (*count && !data)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "the tensor has no data");
    tn_dense_strides(array->rank, array->shape, dense);
    for (uint32_t i = 0; array->stride && *count && i < array->rank; i++)
        if (array->shape[i] > 1 && array->stride[i] != dense[i])
            return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a dense tensor, with a stride of %" PRId64
                           " in dimension %" PRIu32 ", but found %" PRId64, dense[i], i, array->stride[i]);
    return TN_OK;
}

static tn_status prepare(tn_scaled_plan *plan, const tn_datatype *d, const tn_array *array, const void *data, void *const *parts,
                         const tn_scaled_options *options, tn_error *err)
{
    tn_scaled_options o = { .size = sizeof o };
    uint64_t count;
    tn_take_options(&o, sizeof o, options);
    if (!d || !array)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a datatype and a tensor but found none");
    tn_status status = check_mode(&o, err);
    if (status == TN_OK && o.ggml)
        status = check_ggml(d, &o, err);
    if (status == TN_OK)
        status = check_array(array, data, &count, err);
    return status ? status : tn_scaled_plan_make(plan, d, array->rank, array->shape, &o, parts, err);
}

/* --- the work -------------------------------------------------------------------- */

/* Elements narrower than a byte share bytes with those of other tiles: they go
 * through a float32 copy. */
static bool is_packed(const tn_array *array)
{
    return tn_dtype_get(array->dtype)->bits < 8;
}

static tn_status new_copy(uint64_t count, float **copy, tn_error *err)
{
    *copy = count <= SIZE_MAX / sizeof **copy ? malloc((size_t)count * sizeof **copy) : NULL;
    return *copy ? TN_OK : tn_fail_nomem(err);
}

static tn_status copy_in(const tn_array *array, const void *src, float *copy, unsigned jobs, tn_error *err)
{
    const tn_cast_options options = { .size = sizeof options, .jobs = jobs };
    return tn_cast(&(tn_array){ TN_FLOAT32, array->rank, array->shape, NULL }, copy, array, src, TN_HOST_ORDER, &options, err);
}

static tn_status copy_out(const tn_array *array, void *dst, const float *copy, unsigned jobs, tn_error *err)
{
    const tn_cast_options options = { .size = sizeof options, .jobs = jobs };
    const tn_array dense = { array->dtype, array->rank, array->shape, NULL };
    return tn_cast(&dense, dst, &(tn_array){ TN_FLOAT32, array->rank, array->shape, NULL }, copy, TN_HOST_ORDER, &options, err);
}

static tn_status run_copied(const tn_scaled_plan *plan, const tn_array *array, const void *src, void *dst, tn_scaled_report *report,
                            tn_error *err)
{
    float *copy;
    tn_status status = new_copy(plan->count, &copy, err);
    if (status == TN_OK && src)
        status = copy_in(array, src, copy, plan->o.jobs, err);
    if (status == TN_OK)
        status = tn_scaled_run(plan, TN_FLOAT32, src ? copy : NULL, TN_FLOAT32, dst ? copy : NULL, report, err);
    if (status == TN_OK && dst)
        status = copy_out(array, dst, copy, plan->o.jobs, err);
    free(copy);
    return status;
}

static tn_status run(const tn_scaled_plan *plan, const tn_array *array, const void *src, void *dst, tn_scaled_report *report,
                     tn_error *err)
{
    if (is_packed(array))
        return run_copied(plan, array, src, dst, report, err);
    return tn_scaled_run(plan, array->dtype, src, array->dtype, dst, report, err);
}

tn_status tn_quantize_virtual(const tn_datatype *d, const tn_array *array, const void *src, void *dst,
                              const tn_scaled_options *options, tn_scaled_report *report, tn_error *err)
{
    tn_scaled_plan plan;
    tn_status status = prepare(&plan, d, array, src && dst ? src : NULL, NULL, options, err);
    if (status != TN_OK)
        return status;
    if (report)
        *report = (tn_scaled_report){ 0 };
    return plan.count ? run(&plan, array, src, dst, report, err) : TN_OK;
}

/* Packed numbers are put into bytes that are 0. */
static void clear_parts(tn_scaled_plan *plan)
{
    tn_scaled_field *const fields[] = { &plan->data, &plan->scale, &plan->zero, &plan->offset, &plan->meta, &plan->mask };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i]->data && fields[i]->bits < 8)
            memset(fields[i]->data, 0, (size_t)fields[i]->nbytes);
}

tn_status tn_scaled_quantize(const tn_datatype *d, const tn_array *array, const void *src, void *const *parts,
                             const tn_scaled_options *options, tn_scaled_report *report, tn_error *err)
{
    tn_scaled_plan plan;
    tn_status status = prepare(&plan, d, array, parts ? src : NULL, parts, options, err);
    if (status != TN_OK)
        return status;
    if (report)
        *report = (tn_scaled_report){ 0 };
    if (plan.count == 0 && plan.tscale.data)
        tn_scaled_put_tensor_scale(&plan, tn_tensor_scale_for(d, &plan.o, &(tn_tile_range){ 0 }));
    if (plan.count == 0)
        return TN_OK;
    clear_parts(&plan);
    return run(&plan, array, src, NULL, report, err);
}

tn_status tn_scaled_dequantize(const tn_datatype *d, const tn_array *array, const void *const *parts, void *dst,
                               const tn_scaled_options *options, tn_error *err)
{
    tn_scaled_plan plan;
    void *own[sizeof ((tn_scaled_shapes *)0)->parts / sizeof ((tn_scaled_shapes *)0)->parts[0]] = { NULL };
    tn_scaled_shapes shapes = { 0 };
    if (d && array && parts && tn_scaled_shapes_for(d, array->rank, array->shape, &shapes, NULL) == TN_OK)
        for (uint32_t i = 0; i < shapes.count; i++)
            own[i] = (void *)(uintptr_t)parts[i];       /* which are only read */
    tn_status status = prepare(&plan, d, array, parts ? dst : NULL, own, options, err);
    if (status != TN_OK)
        return status;
    return plan.count ? run(&plan, array, NULL, dst, NULL, err) : TN_OK;
}
