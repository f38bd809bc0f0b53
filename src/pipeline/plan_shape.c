/* pipeline/plan_shape.c - rules of slices, orders, shapes and pieces as steps of a view. */
#include "pipeline/plan_tensor.h"
#include "base/error.h"

/* All indices of all dimensions. */
static tn_arrangement arrange_all(const tn_view *v)
{
    tn_arrangement a = { .rank = v->parts[0].array.rank };
    for (uint32_t i = 0; i < a.rank; i++) {
        a.from[i] = i;
        a.extent[i] = tn_view_shape(v)[i];
        a.step[i] = 1;
    }
    return a;
}

/* Nothing is left of dimension `at` of the result. */
static void drop_dimension(tn_arrangement *a, uint32_t at)
{
    a->rank--;
    for (uint32_t i = at; i < a->rank; i++) {
        a->from[i] = a->from[i + 1];
        a->extent[i] = a->extent[i + 1];
    }
}

/* As Python has it: what lies beyond an end is cut. */
static int64_t clamp(int64_t at, int64_t extent)
{
    at += at < 0 ? extent : 0;
    if (at < 0)
        return 0;
    return at < extent ? at : extent;
}

static tn_status slice_dimension(tn_arrangement *a, uint32_t d, uint32_t at, const tn_slice_dim *s,
                                 tn_error *err)
{
    int64_t extent = a->extent[at], start = s->start, stop = extent;
    start += s->is_index && start < 0 ? extent : 0;
    if (s->is_index && (start < 0 || start >= extent))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected an index of dimension %u from %lld to %lld but found "
                       "%lld", d, (long long)-extent, (long long)extent - 1, (long long)s->start);
    if (s->is_index) {
        a->start[d] = start;
        return TN_OK;
    }
    start = s->has_start ? clamp(s->start, extent) : 0;
    stop = s->has_stop ? clamp(s->stop, extent) : extent;
    a->extent[at] = stop > start ? (stop - start - 1) / s->step + 1 : 0;
    a->step[d] = a->extent[at] > 1 ? s->step : 1;       /* within the dimension, so no product overflows */
    a->start[d] = a->extent[at] ? start : 0;
    return TN_OK;
}

tn_status tn_plan_add_slice(tn_planning *p, void *options, tn_error *err)
{
    const tn_slice_rule *rule = options;
    TN_TRY(tn_view_check_places(p->view, err));
    tn_arrangement a = arrange_all(p->view);
    uint32_t rank = a.rank, taken = 0;
    if (rule->count > rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "it has %u dimension%s but the slice has %u", rank,
                       rank == 1 ? "" : "s", rule->count);
    for (uint32_t i = 0; i < rule->count; i++) {
        TN_TRY(slice_dimension(&a, i, i - taken, &rule->dims[i], err));
        if (rule->dims[i].is_index)
            drop_dimension(&a, i - taken++);
    }
    return tn_view_add_step(&p->view, &tn_step_slice, &a, err);
}

tn_status tn_plan_add_transpose(tn_planning *p, void *options, tn_error *err)
{
    const tn_dims_rule *rule = options;
    uint32_t order[TN_MAX_RANK], rank = p->view->parts[0].array.rank;
    TN_TRY(tn_view_check_places(p->view, err));
    if (rule->count != rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "it has %u dimension%s but the order has %u", rank,
                       rank == 1 ? "" : "s", rule->count);
    for (uint32_t i = 0; i < rank; i++)
        order[i] = (uint32_t)rule->dims[i];
    return tn_view_add_step(&p->view, &tn_step_reorder, order, err);
}

tn_status tn_plan_add_reshape(tn_planning *p, void *options, tn_error *err)
{
    const tn_dims_rule *rule = options;
    tn_shape to = { .rank = rule->count };
    uint64_t known = 1, count = 1;
    int64_t *rest = NULL;
    TN_TRY(tn_view_check_places(p->view, err));
    for (uint32_t i = 0; i < p->view->parts[0].array.rank; i++)
        count *= (uint64_t)tn_view_shape(p->view)[i];
    for (uint32_t i = 0; i < to.rank; i++) {
        to.extent[i] = rule->dims[i];
        if (rule->dims[i] == -1)
            rest = &to.extent[i];
        else if (__builtin_mul_overflow(known, (uint64_t)rule->dims[i], &known))
            return tn_fail(err, TN_ERR_ARGUMENT, "its new shape would have 2^64 elements or more");
    }
    if (rest && (!known || count % known))
        return tn_fail(err, TN_ERR_ARGUMENT, "its %llu elements are no multiple of %llu",
                       (unsigned long long)count, (unsigned long long)known);
    if (rest)
        *rest = (int64_t)(count / known);
    return tn_view_add_step(&p->view, &tn_step_reshape, &to, err);
}

tn_status tn_plan_add_number(tn_planning *p, void *options, tn_error *err)
{
    const tn_add_rule *rule = options;
    const tn_dtype dtype = p->view->tensor.dtype;
    const tn_cast_task widen = { .to = TN_FLOAT32 };
    TN_TRY(tn_view_check_places(p->view, err));
    if (!tn_is_whole_float(dtype) || tn_dtype_get(dtype)->bits > 32)
        return tn_fail(err, TN_ERR_ARGUMENT, "a number is added to floats of at most 32 bits but found %s",
                       tn_dtype_get(dtype) ? tn_dtype_get(dtype)->name : "an unknown type");
    if (dtype != TN_FLOAT32)
        TN_TRY(tn_view_add_step(&p->view, &tn_step_cast, &widen, err));
    return tn_view_add_step(&p->view, &tn_step_add, &rule->number, err);
}

/* The indices of a dimension that piece i of n has. */
static tn_status find_piece(const tn_join_rule *rule, int64_t extent, uint32_t i, int64_t piece[2],
                            tn_error *err)
{
    int64_t sum = 0;
    piece[0] = extent / (int64_t)rule->count * (int64_t)i;
    piece[1] = extent / (int64_t)rule->count;
    if (!rule->nsizes && extent % (int64_t)rule->count)
        return tn_fail(err, TN_ERR_ARGUMENT, "its %lld indices are no multiple of %u pieces: name their "
                       "sizes", (long long)extent, rule->count);
    for (uint32_t k = 0; k < rule->nsizes; k++) {
        piece[0] = k == i ? sum : piece[0];
        piece[1] = k == i ? rule->sizes[k] : piece[1];
        if (__builtin_add_overflow(sum, rule->sizes[k], &sum))
            return tn_fail(err, TN_ERR_ARGUMENT, "expected sizes of %lld indices together but found 2^63 or "
                           "more", (long long)extent);
    }
    if (rule->nsizes && sum != extent)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected sizes of %lld indices together but found %lld",
                       (long long)extent, (long long)sum);
    return TN_OK;
}

static tn_status find_split_axis(const tn_view *v, const tn_join_rule *rule, uint32_t *axis, tn_error *err)
{
    int64_t rank = v->parts[0].array.rank, found = rule->axis + (rule->axis < 0 ? rank : 0);
    if (found < 0 || found >= rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected one of its %lld dimensions to split but found %d",
                       (long long)rank, rule->axis);
    *axis = (uint32_t)found;
    return TN_OK;
}

tn_status tn_plan_add_piece(tn_planning *p, const tn_join_rule *rule, uint32_t i, tn_error *err)
{
    uint32_t axis = 0;
    int64_t piece[2];
    TN_TRY(tn_view_check_places(p->view, err));
    tn_arrangement a = arrange_all(p->view);
    TN_TRY(find_split_axis(p->view, rule, &axis, err));
    if (rule->is_new) {
        drop_dimension(&a, axis);
        a.start[axis] = i;
    } else {
        TN_TRY(find_piece(rule, a.extent[axis], i, piece, err));
        a.start[axis] = piece[1] ? piece[0] : 0;
        a.extent[axis] = piece[1];
    }
    return tn_view_add_step(&p->view, &tn_step_slice, &a, err);
}

tn_status tn_plan_pieces(const tn_view *v, const tn_join_rule *rule, uint64_t *n, tn_error *err)
{
    uint32_t axis = 0;
    TN_TRY(find_split_axis(v, rule, &axis, err));
    *n = rule->is_new ? (uint64_t)tn_view_shape(v)[axis] : rule->count;
    return TN_OK;
}
