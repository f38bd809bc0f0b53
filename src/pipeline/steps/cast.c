/* pipeline/steps/cast.c - elements of another type, one for one. */
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "tensor/array.h"

tn_status tn_view_moved(const tn_view *v, tn_status status, tn_error *err)
{
    if (v->is_moved)
        tn_and_say(status, " (indices of the new layout)", err);
    return tn_in_tensor(status, v->tensor.name, err);
}

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    const tn_cast_task *task = options;
    const tn_cast_plan *plan = task->plan;
    tn_status status = TN_OK;
    if (!plan) {
        tn_cast_plan *own = tn_arena_alloc(v->arena, sizeof *own);
        if (!own)
            return tn_fail_nomem(err);
        status = tn_cast_plan_make(own, task->to, v->parts[0].array.dtype, TN_HOST_ORDER, task->options, err);
        if (!status && task->counts)
            tn_cast_plan_count(own, tn_cast_kernels_get());
        plan = own;
    }
    v->state = (void *)(uintptr_t)plan;
    v->reports |= task->counts && !status && plan->has_limits;
    v->parts[0].array.dtype = v->tensor.dtype = task->to;
    return status ? status : tn_view_resize(v, v->parts[0].array.rank, tn_view_shape(v), err);
}

static tn_status apply(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                       tn_error *err)
{
    uint32_t rank = v->parts[0].array.rank;
    tn_status status = tn_cast_block(v->state, out, in, n, first, rank, tn_view_shape(v), err);
    return tn_view_moved(v, status, err);
}

void tn_report_lost(const tn_cast_plan *plan, const void *out, const void *in, size_t n, uint64_t first,
                    tn_worker *w)
{
    tn_cast_lost lost = { 0 }, before = { 0 };
    size_t counted = first < w->counted ? (size_t)tn_min_u64(w->counted - first, n) : 0;
    if (!plan->has_limits)
        return;
    tn_cast_count(plan, out, in, n, first, &lost);
    tn_cast_count(plan, out, in, counted, first, &before);
    w->report.values += lost.values - before.values;
    w->report.flushed += lost.flushed - before.flushed;
    w->report.saturated += lost.saturated - before.saturated;
}

bool tn_report_kept(const tn_cast_plan *plan, const void *out, size_t n, uint64_t first, tn_worker *w)
{
    tn_cast_lost lost = { 0 }, before = { 0 };
    size_t counted = first < w->counted ? (size_t)tn_min_u64(w->counted - first, n) : 0;
    if (!tn_cast_count_kept(plan, out, n, &lost) || !tn_cast_count_kept(plan, out, counted, &before))
        return false;
    w->report.values += lost.values - before.values;
    return true;
}

static tn_status report(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, const uint8_t *out,
                        tn_worker *w, tn_error *err)
{
    (void)err;
    if (v->reports)
        tn_report_lost(v->state, out, in, n, first, w);
    return TN_OK;
}

static bool renew(tn_view *v)
{
    (void)v;
    return true;
}

const tn_step tn_step_cast = { .name = "cast", .describe = describe, .apply = apply, .report = report,
                               .renew = renew };
