/* verbs/stats.c - statistics of the values of a file's tensors. */
#include "base/error.h"
#include "base/options.h"
#include "tensor/code.h"
#include "cast/summary.h"
#include "pipeline/values.h"
#include "pipeline/walk.h"

#include <stdlib.h>
#include <string.h>

/* A compressed tensor is read whole, but summed up in the same spans as a raw one. */
_Static_assert(TN_WINDOW % (3 * 16 * TN_TALLY_LANES) == 0,
               "a window holds whole lanes of 6-bit and of 128-bit elements");

/* What work() leaves for join(). */
typedef struct result {
    tn_statistics figures;
    tn_error      err;          /* of reading; status TN_OK: none */
} result;

typedef struct survey {
    const tn_file   *file;
    tn_stats_options o;
    tn_stats_fn      report;
    tn_walk          walk;
    tn_items         items;     /* ranges of values; the subjects are the chosen tensors */
    tn_value_plan  **plans;     /* of each tensor; NULL: it has no values, as work() will report */
    result           tensor;    /* of the tensor whose items are joined now */
    tn_statistics    total;
    tn_arena         arena;     /* the plans */
    tn_kept          held;      /* in it */
} survey;

/* ---- working ---- */

/* Sums up n elements of one or more spans. */
static tn_status sum_up(tn_stream *stream, tn_dtype dtype, uint64_t n, tn_statistics *figures, tn_error *err)
{
    unsigned bits = tn_dtype_get(dtype)->bits;
    tn_span span;
    uint64_t in_span = 0;
    tn_span_begin(&span, dtype);
    for (;;) {
        const uint8_t *bytes;
        size_t size;
        tn_status status = tn_stream_next(stream, &bytes, &size, err);
        if (status)
            return status;
        if (in_span == TN_SPAN || !size) {
            tn_statistics next = tn_span_end(&span);
            tn_statistics_join(figures, &next);
            tn_span_begin(&span, dtype);
            in_span = 0;
        }
        if (!size)
            return TN_OK;
        uint64_t elements = (uint64_t)size * 8 / bits;
        if (elements > n)               /* bits that fill the last byte */
            elements = n;
        tn_span_add(&span, bytes, (size_t)elements);
        in_span += elements;
        n -= elements;
    }
}

static tn_status sum_up_item(const survey *s, const tn_item *it, tn_value_stream *stream, result *r)
{
    const tn_tensor *t = s->walk.tensors[it->subject];
    const tn_value_plan *plan = s->plans[it->subject];
    tn_value_plan none;
    tn_arena unused = { 0 };
    if (!plan) {
        tn_status why = tn_plan_values(s->file, t, &unused, &none, &r->err);
        tn_arena_free(&unused);
        return why;
    }
    if (!it->n)
        return TN_OK;
    tn_status status = tn_value_stream_open(stream, s->file, t, plan, it->from, it->n, &r->err);
    return status ? status : sum_up(&stream->stream, plan->dtype, it->n, &r->figures, &r->err);
}

static tn_status work(void *context, const tn_item *it, void *scratch, void *kept, tn_error *err)
{
    tn_value_stream *stream = scratch;
    result *r = kept;
    r->figures = tn_statistics_empty();
    r->err = (tn_error){ .offset = TN_NO_OFFSET };
    tn_status status = sum_up_item(context, it, stream, r);
    tn_stream_close(&stream->stream);
    r->err.status = status;
    if (status != TN_ERR_NOMEM && status != TN_ERR_IO)
        return TN_OK;           /* a bad tensor is reported, and the others follow */
    if (err)
        *err = r->err;
    return status;
}

/* ---- reporting ---- */

/* Elements that a sparse tensor does not store are zeros; complex ones count twice. */
static tn_statistics unstored(const tn_value_plan *values)
{
    bool complex = tn_dtype_get(values->dtype)->kind == TN_KIND_COMPLEX;
    return tn_statistics_zeros(values->zeros << complex);
}

static void report_tensor(survey *s, size_t i)
{
    bool bad = s->tensor.err.status != TN_OK;
    if (bad) {
        s->tensor.figures = tn_statistics_empty();
    } else {
        tn_statistics zeros = unstored(s->plans[i]);
        tn_statistics_join(&s->tensor.figures, &zeros);
    }
    tn_statistics_join(&s->total, &s->tensor.figures);
    if (s->report)
        s->report(s->o.context, s->walk.tensors[i], &s->tensor.figures, bad ? &s->tensor.err : NULL);
}

static tn_status join(void *context, tn_item *it, void *kept, tn_error *err)
{
    survey *s = context;
    const result *r = kept;
    if (it->from == 0) {
        s->tensor.figures = tn_statistics_empty();
        s->tensor.err.status = TN_OK;
    }
    tn_statistics_join(&s->tensor.figures, &r->figures);
    if (!s->tensor.err.status)
        s->tensor.err = r->err;
    if (!it->last)
        return TN_OK;
    tn_status status = tn_tensor_settle(s->file, s->walk.tensors[it->subject], TN_OK, err);
    if (!status)
        report_tensor(s, it->subject);
    return status;
}

/* ---- planning ---- */

/* Every tensor has at least one item, so that it is reported. */
static tn_status plan_tensor(survey *s, size_t i, tn_error *err)
{
    const tn_tensor *t = s->walk.tensors[i];
    tn_value_plan *plan = tn_arena_zalloc(&s->arena, 1, sizeof *plan);
    tn_error why;
    TN_TRY(tn_keep_scales(&s->held, t, err));
    tn_status status = plan ? tn_plan_values(s->file, t, &s->arena, plan, &why) : tn_fail_nomem(&why);
    if (status == TN_ERR_NOMEM || status == TN_ERR_IO) {
        if (err)
            *err = why;
        return status;
    }
    if (status)
        return tn_items_cut(&s->items, (tn_item){ .subject = i }, 0, 0, err);
    s->plans[i] = plan;
    s->walk.total += tn_packed_bytes(plan->count, plan->bits);
    return tn_items_cut(&s->items, (tn_item){ .subject = i, .n = plan->count }, plan->splits ? TN_SPAN : 0,
                        plan->bits, err);
}

static tn_status plan(survey *s, tn_error *err)
{
    TN_TRY(tn_walk_choose(&s->walk, s->file, s->o.only, s->o.nonly, err));
    s->plans = tn_arena_zalloc(&s->arena, s->walk.count, sizeof *s->plans);
    if (!s->plans)
        return tn_fail_nomem(err);
    for (size_t i = 0; i < s->walk.count; i++)
        TN_TRY(plan_tensor(s, i, err));
    return TN_OK;
}

static void free_stream(void *stream) { tn_value_stream_free(stream); }

tn_status tn_stats(const tn_file *file, const tn_stats_options *given, tn_stats_fn report, tn_error *err)
{
    survey s = { .file = file, .report = report, .held.max_bytes = file->max_bytes,
                 .total = tn_statistics_empty() };
    TN_TRY(tn_take_options(TN_SIZED(tn_stats_options, nonly), &s.o, given, err));
    s.walk = (tn_walk){ .jobs = s.o.jobs, .progress = s.o.progress, .context = s.o.context };
    tn_status status = plan(&s, err);
    if (!status)
        status = tn_walk_run(&s.walk, &s.items, &(tn_walk_task){
            .work = work, .join = join, .context = &s, .scratch_size = sizeof(tn_value_stream),
            .result_size = sizeof(result), .free_scratch = free_stream,
        }, err);
    if (!status && report)
        report(s.o.context, NULL, &s.total, NULL);
    free(s.items.list);
    tn_walk_end(&s.walk);
    tn_arena_free(&s.arena);
    return status;
}
