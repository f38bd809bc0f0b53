/* pipeline/steps/values.c - dense elements of a tensor's own type, whatever its form. */
#include "pipeline/steps/steps.h"
#include "base/error.h"
#include "store/packed.h"

tn_status tn_keep_scales(tn_kept *kept, const tn_tensor *t, tn_error *err)
{
    for (uint32_t k = 1; k < t->nparts && t->scaling && !t->scaling->datatype; k++)
        tn_kept_add_part(kept, t, &t->parts[k]);
    return tn_kept_check(kept, err);
}

static bool is_signed_float(const tn_dtype_info *type)
{
    return type && type->kind == TN_KIND_FLOAT && type->specials != TN_SPECIALS_E8M0;
}

bool tn_is_whole_float(tn_dtype dtype)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    return is_signed_float(type) && type->bits >= 8;
}

tn_status tn_check_floats(tn_dtype dtype, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    if (is_signed_float(type))
        return TN_OK;
    return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_GLOB, "cast",
                     "expected values of a %s type but found %s: cast it to f32 first",
                     type && type->kind == TN_KIND_FLOAT ? "signed float" : "float",
                     type ? type->name : "an unknown type");
}

static tn_status add_dense(tn_view **view, tn_dtype to, tn_error *err)
{
    const tn_tensor *t = &(*view)->tensor;
    const tn_form_info *form = tn_form_get(t->form);
    const tn_dequantize_task task = { .to = to == t->dtype || tn_is_whole_float(to) ? to : TN_FLOAT32 };
    const tn_form_rule rule = { .form = TN_FORM_DENSE, .options = { .size = sizeof rule.options } };
    if (t->form == TN_FORM_DENSE)
        return TN_OK;
    if (tn_form_has_datatype(t))
        return tn_view_add_step(view, &tn_step_decode, &task, err);
    if (tn_form_is_scaled(t->form) && t->scaling)
        return tn_view_add_step(view, &tn_step_dequantize, &task, err);
    if (form && (form->sparse || form->values))
        return tn_view_add_step(view, &tn_step_form, &rule, err);
    tn_status status = tn_fail(err, TN_ERR_UNSUPPORTED, "form %s has no values this version can read",
                               tn_quote_z(tn_tensor_form_name(t)).text);
    return tn_in_tensor(status, t->name, err);
}

/* Codes of other tools are not cast as if they were numbers. */
tn_status tn_view_check_numbers(const tn_view *v, tn_error *err)
{
    for (uint32_t i = 0; i < v->ninputs; i++)
        TN_TRY(tn_view_check_numbers(v->inputs[i], err));
    const tn_tensor *t = v->ninputs ? NULL : v->state;
    const tn_packed *packed = t && v->place->file ? tn_packed_of(v->place->file, t) : NULL;
    return packed ? tn_packed_refuse(packed, t, err) : TN_OK;
}

tn_status tn_view_add_values(tn_view **view, tn_dtype to, tn_error *err)
{
    if (!view || !*view || (to != TN_UNKNOWN && !tn_dtype_get(to)))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a view and a known type but found %s",
                       view && *view ? "another type" : "NULL");
    tn_view *before = *view;
    const tn_cast_task cast = { .to = to == TN_UNKNOWN ? before->tensor.dtype : to };
    if (!tn_dtype_get(cast.to))
        return tn_in_tensor(tn_fail(err, TN_ERR_UNSUPPORTED, "its type is not known to this build"),
                            before->tensor.name, err);
    tn_status status = TN_OK;
    if (cast.to != before->tensor.dtype)
        status = tn_view_check_numbers(before, err);
    if (!status)
        status = add_dense(view, cast.to, err);
    if (!status && (*view)->parts[0].array.dtype != cast.to)
        status = tn_view_add_step(view, &tn_step_cast, &cast, err);
    if (status)
        tn_view_drop_steps(view, before);
    return status;
}
