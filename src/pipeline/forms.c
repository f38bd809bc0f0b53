/* pipeline/forms.c - the rows of the table of forms: what each is made of and how to have its values. */
#include "base/error.h"
#include "pipeline/steps/steps.h"
#include "pipeline/values.h"
#include "store/forms.h"
#include "store/sparse.h"

static uint64_t count_of(uint32_t rank, const int64_t *shape)
{
    uint64_t count = 0;
    tn_shape_count(rank, shape, &count);        /* cannot fail: its form was checked */
    return count;
}

/* The elements of the first part. */
static tn_status plan_elements(const tn_file *file, const tn_tensor *t, tn_arena *arena, tn_value_plan *plan,
                               tn_error *err)
{
    const tn_part *p = &t->parts[0];
    (void)arena;
    TN_TRY(tn_part_readable(t, p, err));
    TN_TRY(tn_kept_check_spilled(file, t, p, err));
    *plan = (tn_value_plan){ .dtype = p->array.dtype, .splits = tn_part_splits(p),
                             .count = count_of(p->array.rank, p->array.shape),
                             .bits = tn_dtype_get(p->array.dtype)->bits };
    return TN_OK;
}

static tn_status plan_entries(const tn_file *file, const tn_tensor *t, tn_arena *arena, tn_value_plan *plan,
                              tn_error *err)
{
    tn_status status = plan_elements(file, t, arena, plan, err);
    uint64_t all = count_of(t->rank, t->shape);
    if (!status)
        plan->zeros = all > plan->count ? all - plan->count : 0;
    return status;
}

static tn_status plan_codes(const tn_file *file, const tn_tensor *t, tn_arena *arena, tn_value_plan *plan,
                            tn_error *err)
{
    tn_view_place *place = tn_arena_zalloc(arena, 1, sizeof *place);
    tn_change *change = tn_arena_zalloc(arena, 1, sizeof *change);
    tn_view *v = NULL;
    if (!place || !change)
        return tn_fail_nomem(err);
    place->file = file;
    tn_status status = plan_elements(file, t, arena, plan, err);
    plan->dtype = t->dtype;
    if (!status)
        status = tn_view_stored(place, t, arena, &v, err);
    if (!status)
        status = tn_view_add_step(&v, &tn_step_dequantize, &(tn_dequantize_task){ .to = t->dtype }, err);
    if (!status)
        tn_view_change(v, change);
    plan->change = change;
    return status;
}

static tn_status plan_scaled(const tn_file *file, const tn_tensor *t, tn_arena *arena, tn_value_plan *plan,
                             tn_error *err)
{
    bool light;
    if (!tn_has_decoder(t))
        return plan_codes(file, t, arena, plan, err);
    tn_status status = tn_decoder_check(t, &light, err);
    if (!status)
        *plan = (tn_value_plan){ .dtype = t->dtype, .made = true, .splits = light,
                                 .count = count_of(t->rank, t->shape),
                                 .bits = tn_dtype_get(t->dtype)->bits };
    return status;
}

const tn_form_info tn_form_dense = {
    .name = "dense", .roles = { "data" }, .required = 1,
    .check = tn_check_dense, .plan_values = plan_elements,
};

const tn_form_info tn_form_coo = {
    .name = "coo", .roles = { "values", "indices" }, .required = 2, .sparse = true,
    .check = tn_check_coo, .check_data = tn_coo_check_data, .plan_values = plan_entries,
};

const tn_form_info tn_form_csr = {
    .name = "csr", .roles = { "values", "indices", "indptr" }, .required = 3, .sparse = true,
    .check = tn_check_csr, .check_data = tn_csr_check_data, .plan_values = plan_entries,
};

const tn_form_info tn_form_scaled = {
    .name = "scaled", .roles = { "data", "scale", "tscale", "zero", "offset", "meta", "mask" }, .required = 1,
    .scaled = true, .check = tn_check_scaled, .plan_values = plan_scaled,
};
