/* values.c - the values of a tensor that is more than its elements. */
#include "values.h"
#include "base/error.h"
#include "tensor/form.h"
#include "transform/quantize.h"

#include <string.h>

/* The context of a change. */
typedef struct dequantizer {
    tn_change      change;
    tn_quant_plan  plan;
    const char    *name;
    uint32_t       rank;
    const int64_t *shape;
} dequantizer;

static tn_status apply(const void *context, uint64_t first, const uint8_t *in, size_t n, uint8_t *out, tn_error *err)
{
    const dequantizer *d = context;
    tn_error why;
    tn_status status = tn_dequantize_block(&d->plan, out, in, n, first, d->rank, d->shape, &why);
    return status ? tn_fail(err, status, TN_NO_OFFSET, "tensor %s: %s", tn_quote_z(d->name).text, why.text) : TN_OK;
}

static tn_status read_part(const tn_file *file, const tn_tensor *t, const tn_part *p, tn_arena *arena, void **data, tn_error *err)
{
    tn_error why;
    *data = tn_arena_alloc(arena, (size_t)p->nbytes);
    if (!*data)
        return tn_fail_nomem(err);
    tn_status status = tn_part_read(file, p, *data, (size_t)p->nbytes, &why);
    return status ? tn_fail(err, status, why.offset, "tensor %s: %s", tn_quote_z(t->name).text, why.text) : TN_OK;
}

tn_status tn_read_zeros(const tn_file *file, const tn_tensor *t, tn_arena *arena, const int32_t **zero, tn_error *err)
{
    void *data = NULL;
    tn_status status = t->nparts > 2 ? read_part(file, t, &t->parts[2], arena, &data, err) : TN_OK;
    *zero = data;
    return status;
}

tn_status tn_dequantize_change(const tn_dequantizing *d, tn_arena *arena, const tn_change **change, tn_error *err)
{
    const tn_tensor *t = d->tensor;
    tn_dtype codes = t->parts[0].array.dtype;
    tn_quantize_options o = { .size = sizeof o, .axis = d->axis, .range = { t->scaling->range[0], t->scaling->range[1] } };
    dequantizer *k = tn_arena_zalloc(arena, 1, sizeof *k);
    tn_scale_index index;
    void *scale = NULL;
    tn_error why;
    if (!k)
        return tn_fail_nomem(err);
    tn_status status = read_part(d->file, t, &t->parts[1], arena, &scale, err);
    if (status)
        return status;
    status = tn_scale_index_for(d->rank, d->shape, d->axis, &index, &why);
    if (!status)
        status = tn_quant_plan_make(&k->plan, codes, d->to, true, index, scale, d->zero, &o, &why);
    if (status)
        return tn_fail(err, status, TN_NO_OFFSET, "tensor %s: %s", tn_quote_z(t->name).text, why.text);
    k->name = t->name;
    k->rank = d->rank;
    k->shape = d->shape;
    k->change = (tn_change){ apply, k, tn_dtype_get(codes)->bits, tn_dtype_get(d->to)->bits };
    *change = &k->change;
    return TN_OK;
}

tn_status tn_values_of(const tn_file *file, const tn_tensor *t, tn_arena *arena, tn_values *values, tn_error *err)
{
    tn_status status = tn_part_readable(t, &t->parts[0], err);
    if (status)
        return status;
    if (strcmp(t->form, "dense") == 0) {
        *values = (tn_values){ .dtype = t->parts[0].array.dtype };
        return TN_OK;
    }
    if (tn_form_is_sparse(t->form)) {
        uint64_t stored = (uint64_t)t->parts[0].array.shape[0], all = stored;
        tn_shape_count(t->rank, t->shape, &all);    /* cannot fail: its form was checked */
        *values = (tn_values){ .dtype = t->parts[0].array.dtype, .zeros = all > stored ? all - stored : 0 };
        return TN_OK;
    }
    if (strcmp(t->form, "scaled") != 0)
        return tn_fail(err, TN_ERR_UNSUPPORTED, TN_NO_OFFSET, "tensor %s: form %s has no values this version can read",
                       tn_quote_z(t->name).text, tn_quote_z(t->form).text);
    tn_dequantizing d = { file, t, t->dtype, t->rank, t->shape, t->scaling->axis, NULL };
    values->dtype = t->dtype;
    status = tn_read_zeros(file, t, arena, &d.zero, err);
    return status ? status : tn_dequantize_change(&d, arena, &values->change, err);
}
