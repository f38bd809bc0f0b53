/* verbs/stats.c - what the values of a file's tensors look like. */
#include "base/error.h"
#include "base/options.h"
#include "base/pool.h"
#include "base/vector.h"
#include "tensor/code.h"
#include "cast/summary.h"
#include "pipeline/values.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* A compressed tensor is taken whole and summed up in the same spans as a raw one. */
_Static_assert(TN_WINDOW % (3 * 16 * TN_TALLY_LANES) == 0,
               "a window holds whole lanes of 6-bit and of 128-bit elements");

/* Values [from, from + n) of a tensor; n may be 0. */
typedef struct item {
    const tn_tensor *tensor;
    const tn_value_plan *values;        /* NULL: it has none, as work() will say */
    uint64_t         from, n;
    bool             last;      /* of its tensor */
} item;

/* What work() leaves for emit(). */
typedef struct result {
    tn_statistics figures;
    tn_error      err;          /* of reading; status TN_OK: none */
} result;

typedef struct survey {
    const tn_file   *file;
    tn_stats_options o;
    tn_stats_fn      report;
    item            *items;
    size_t           nitems, cap;
    tn_value_stream *streams;   /* one a worker */
    result          *results;   /* one per result */
    result           tensor;    /* of the tensor whose items are being emitted */
    tn_statistics    total;
    uint64_t         progress, to_do;
    tn_arena         arena;     /* how values are had */
    tn_kept          held;      /* in it */
} survey;

/* ---- working ---- */

/* Bytes that are read for an item, as progress counts them. */
static uint64_t bytes_of(const item *it)
{
    return it->n ? tn_packed_bytes(it->n, it->values->bits) : 0;
}

/* Sums up n elements; they may be several spans. */
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

static tn_status sum_up_item(const survey *s, const item *it, tn_value_stream *stream, result *r)
{
    tn_value_plan none;
    tn_arena unused = { 0 };
    if (!it->values) {
        tn_status why = tn_plan_values(s->file, it->tensor, &unused, &none, &r->err);
        tn_arena_free(&unused);
        return why;
    }
    if (!it->n)
        return TN_OK;
    tn_status status =
        tn_value_stream_open(stream, s->file, it->tensor, it->values, it->from, it->n, &r->err);
    return status ? status : sum_up(&stream->stream, it->values->dtype, it->n, &r->figures, &r->err);
}

static tn_status work(void *context, uint64_t number, tn_pool_use use, tn_error *err)
{
    survey *s = context;
    const item *it = &s->items[number];
    tn_value_stream *stream = &s->streams[use.scratch];
    result *r = &s->results[use.result];
    r->figures = tn_statistics_empty();
    r->err = (tn_error){ .offset = TN_NO_OFFSET };
    tn_status status = sum_up_item(s, it, stream, r);
    tn_stream_close(&stream->stream);
    r->err.status = status;
    if (status != TN_ERR_NOMEM && status != TN_ERR_IO)
        return TN_OK;           /* a bad tensor is reported, and the others are gone through */
    if (err)
        *err = r->err;
    return status;
}

/* ---- reporting ---- */

/* Elements that a sparse tensor does not store are values too: of a complex type two each. */
static tn_statistics unstored(const tn_value_plan *values)
{
    bool complex = tn_dtype_get(values->dtype)->kind == TN_KIND_COMPLEX;
    return tn_statistics_zeros(values->zeros << complex);
}

static void report_tensor(survey *s, const item *it)
{
    bool bad = s->tensor.err.status != TN_OK;
    const tn_tensor *t = it->tensor;
    if (bad) {
        s->tensor.figures = tn_statistics_empty();
    } else {
        tn_statistics zeros = unstored(it->values);
        tn_statistics_join(&s->tensor.figures, &zeros);
    }
    tn_statistics_join(&s->total, &s->tensor.figures);
    if (s->report)
        s->report(s->o.context, t, &s->tensor.figures, bad ? &s->tensor.err : NULL);
}

static tn_status emit(void *context, uint64_t number, unsigned at, tn_error *err)
{
    survey *s = context;
    const item *it = &s->items[number];
    const result *r = &s->results[at];
    if (it->from == 0) {
        s->tensor.figures = tn_statistics_empty();
        s->tensor.err.status = TN_OK;
    }
    tn_statistics_join(&s->tensor.figures, &r->figures);
    if (!s->tensor.err.status)
        s->tensor.err = r->err;
    if (it->last) {
        tn_status status = tn_tensor_settle(s->file, it->tensor, TN_OK, err);
        if (status)
            return status;
        report_tensor(s, it);
    }
    s->progress += bytes_of(it);
    if (s->o.progress && s->o.progress(s->o.context, s->progress, s->to_do))
        return tn_fail(err, TN_ERR_CANCELLED, TN_NO_OFFSET, "cancelled");
    return TN_OK;
}

/* ---- planning ---- */

static tn_status push_item(survey *s, item it, tn_error *err)
{
    item *grown = tn_grow(s->items, s->nitems, &s->cap, sizeof it);
    if (!grown)
        return tn_fail_nomem(err);
    s->items = grown;
    s->items[s->nitems++] = it;
    s->to_do += bytes_of(&it);
    return TN_OK;
}

/* At least one item, so that every tensor is reported. */
static tn_status push_tensor(survey *s, const tn_tensor *t, tn_error *err)
{
    uint64_t from = 0;
    tn_value_plan *values = tn_arena_zalloc(&s->arena, 1, sizeof *values);
    tn_error why;
    tn_status status = tn_keep_scales(&s->held, t, err);
    if (status)
        return status;
    status = values ? tn_plan_values(s->file, t, &s->arena, values, &why) : tn_fail_nomem(&why);
    if (status == TN_ERR_NOMEM || status == TN_ERR_IO) {
        if (err)
            *err = why;
        return status;
    }
    if (status)
        values = NULL;
    uint64_t count = values ? values->count : 0;
    do {
        bool split = count - from > TN_SPAN && values->splits;
        uint64_t n = split ? TN_SPAN : count - from;
        status = push_item(s, (item){ .tensor = t, .values = values, .from = from, .n = n, .last = !split },
                           err);
        from += n;
    } while (from < count && !status);
    return status;
}

static bool is_chosen(const survey *s, const char *name, bool *used)
{
    bool chosen = s->o.nonly == 0;
    for (size_t i = 0; i < s->o.nonly; i++)
        if (fnmatch(s->o.only[i], name, 0) == 0)
            chosen = used[i] = true;
    return chosen;
}

static tn_status plan(survey *s, tn_error *err)
{
    bool *used = calloc(s->o.nonly + 1, sizeof *used);
    tn_status status = used ? TN_OK : tn_fail_nomem(err);
    for (size_t i = 0; i < tn_file_count(s->file) && !status; i++) {
        const tn_tensor *t = tn_file_tensor(s->file, i);
        if (is_chosen(s, t->name, used))
            status = push_tensor(s, t, err);
    }
    for (size_t i = 0; i < s->o.nonly && !status; i++)
        if (!used[i])
            status = tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "no tensor matches %s",
                             tn_quote_z(s->o.only[i]).text);
    free(used);
    return status;
}

static tn_status run(survey *s, tn_error *err)
{
    tn_pool *pool;
    tn_status status = tn_pool_new(s->o.jobs, &pool, err);
    if (status)
        return status;
    unsigned jobs = tn_pool_jobs(pool);
    s->streams = calloc(jobs, sizeof *s->streams);
    s->results = calloc(tn_pool_results(pool), sizeof *s->results);
    s->total = tn_statistics_empty();
    status = s->streams && s->results ? tn_pool_run(pool, s->nitems, &(tn_ordered){ work, emit, s },
                                                    err) : tn_fail_nomem(err);
    for (unsigned i = 0; s->streams && i < jobs; i++)
        tn_value_stream_free(&s->streams[i]);
    free(s->streams);
    free(s->results);
    tn_pool_free(pool);
    return status;
}

tn_status tn_stats(const tn_file *file, const tn_stats_options *given, tn_stats_fn report, tn_error *err)
{
    survey s = { .file = file, .report = report, .held.max_bytes = file->max_bytes };
    tn_take_options(&s.o, sizeof s.o, given);
    tn_status status = plan(&s, err);
    if (!status)
        status = run(&s, err);
    if (!status && report)
        report(s.o.context, NULL, &s.total, NULL);
    free(s.items);
    tn_arena_free(&s.arena);
    return status;
}
