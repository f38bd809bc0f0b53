/* verbs/stats.c - statistics of the values of a file's tensors. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "tensor/code.h"
#include "cast/summary.h"
#include "pipeline/expect.h"
#include "pipeline/steps/steps.h"
#include "pipeline/together.h"
#include "tensor/array.h"

#include <inttypes.h>
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
    tn_view_place    place;
    tn_view        **views;     /* of each tensor's values... */
    tn_error       **problems;  /* ...or why there is none */
    result           tensor;    /* of the tensor whose items are joined now */
    tn_statistics    total;
    tn_arena         arena;     /* the views */
    tn_kept          held;      /* in it */
} survey;

/* ---- working ---- */

/* Sums up the elements of an item: one or more spans. */
static tn_status sum_up(const tn_view *v, const tn_item *it, tn_worker *w, tn_statistics *figures,
                        tn_error *err)
{
    tn_dtype dtype = v->parts[0].array.dtype;
    uint64_t window = tn_view_window(v), end = it->from + it->n;
    for (uint64_t at = it->from; at < end;) {
        uint64_t last = tn_min_u64(end, at + TN_SPAN);
        tn_span span;
        tn_span_begin(&span, dtype);
        for (uint64_t n; at < last; at += n) {
            const uint8_t *bytes;
            n = tn_min_u64(last - at, window);
            TN_TRY(tn_view_range(v, at, (size_t)n, w, &bytes, err));
            tn_span_add(&span, bytes, (size_t)n);
        }
        tn_statistics next = tn_span_end(&span);
        tn_statistics_join(figures, &next);
    }
    return TN_OK;
}

static tn_status sum_up_item(const survey *s, const tn_item *it, tn_worker *w, result *r)
{
    tn_view *v = s->views[it->subject];
    if (!v) {
        r->err = *s->problems[it->subject];
        return r->err.status;
    }
    if (!it->n)
        return TN_OK;
    tn_status status = tn_view_hold(v, w, it->from + it->n, &r->err);
    if (!status)
        status = sum_up(v, it, w, &r->figures, &r->err);
    tn_view_leave(v, w);
    return status;
}

static tn_status work(void *context, const tn_item *it, void *scratch, void *kept, tn_error *err)
{
    result *r = kept;
    r->figures = tn_statistics_empty();
    r->err = (tn_error){ .offset = TN_NO_OFFSET };
    tn_status status = sum_up_item(context, it, scratch, r);
    r->err.status = status;
    if (status != TN_ERR_NOMEM && status != TN_ERR_IO)
        return TN_OK;           /* a bad tensor is reported, and the others follow */
    if (err)
        *err = r->err;
    return status;
}

/* ---- reporting ---- */

/* Elements that a sparse tensor does not store are zeros; complex ones count twice. */
static tn_statistics unstored(const tn_view *v)
{
    const tn_tensor *t = &v->tensor;
    bool complex = tn_dtype_get(t->dtype)->kind == TN_KIND_COMPLEX;
    uint64_t all = 0;
    tn_shape_count(t->rank, t->shape, &all);    /* cannot fail: its form was checked */
    return tn_statistics_zeros((all > v->count ? all - v->count : 0) << complex);
}

static void report_tensor(survey *s, size_t i)
{
    bool bad = s->tensor.err.status != TN_OK;
    if (bad) {
        s->tensor.figures = tn_statistics_empty();
    } else {
        tn_statistics zeros = unstored(s->views[i]);
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

/* ---- for other processes ---- */

enum { COUNTS = 6, FIGURES = 5, NUMBERS = COUNTS + FIGURES };

/* All numbers, and the bins that are not empty with their numbers. */
static tn_status save(void *context, const tn_item *it, const void *kept, tn_buf *b, tn_error *err)
{
    const result *r = kept;
    const tn_statistics *f = &r->figures;
    const double figures[FIGURES] = { f->min, f->max, f->mean, f->deviation, f->absmax };
    uint64_t numbers[NUMBERS] = { f->count, f->zeros, f->subnormals, f->nans, f->infinities, f->finite };
    unsigned n = 0;
    (void)context;
    (void)it;
    (void)err;
    memcpy(numbers + COUNTS, figures, sizeof figures);
    tn_buf_putc(b, '[');
    tn_work_put_error(b, &r->err);
    tn_buf_putc(b, ',');
    tn_work_put_numbers(b, numbers, NUMBERS);
    tn_buf_puts(b, ",[");
    for (unsigned k = 0; k < TN_STATS_BINS; k++)
        if (f->histogram[k])
            tn_buf_printf(b, "%s%u,%" PRIu64, n++ ? "," : "", k, f->histogram[k]);
    tn_buf_puts(b, "]]");
    return TN_OK;
}

static void load_histogram(tn_json *j, uint64_t histogram[TN_STATS_BINS])
{
    tn_json_array(j);
    while (tn_json_item(j)) {
        uint64_t bin = tn_json_u64(j);
        if (j->status || bin >= TN_STATS_BINS || !tn_json_item(j)) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected bins below %d and their counts", TN_STATS_BINS);
            return;
        }
        histogram[bin] = tn_json_u64(j);
    }
}

static void load(void *context, const tn_item *it, tn_json *j, void *kept)
{
    result *r = kept;
    tn_statistics *f = &r->figures;
    uint64_t x[NUMBERS] = { 0 };
    double figures[FIGURES];
    unsigned n = 0;
    (void)context;
    (void)it;
    *f = tn_statistics_empty();
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (n == 0)
            tn_work_take_error(j, &r->err);
        else if (n == 1)
            tn_work_take_numbers(j, x, NUMBERS);
        else
            load_histogram(j, f->histogram);
        n++;
    }
    if (!j->status && n != 3)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected an error, statistics and a histogram");
    memcpy(figures, x + COUNTS, sizeof figures);
    f->count = x[0];
    f->zeros = x[1];
    f->subnormals = x[2];
    f->nans = x[3];
    f->infinities = x[4];
    f->finite = x[5];
    f->min = figures[0];
    f->max = figures[1];
    f->mean = figures[2];
    f->deviation = figures[3];
    f->absmax = figures[4];
}

/* ---- planning ---- */

/* Of a sparse tensor the entries. */
static tn_status plan_view(survey *s, const tn_tensor *t, tn_view **view, tn_error *err)
{
    tn_view *v = NULL;
    TN_TRY(tn_view_stored(&s->place, t, &s->arena, &v, err));
    TN_TRY(tn_kept_check_spilled(s->file, t, &t->parts[0], err));
    TN_TRY(tn_form_is_sparse(t->form) ? TN_OK : tn_view_add_values(&v, TN_UNKNOWN, err));
    *view = v;
    return TN_OK;
}

/* Every tensor has at least one item, so that it is reported. */
static tn_status plan_tensor(survey *s, size_t i, tn_error *err)
{
    const tn_tensor *t = s->walk.tensors[i];
    tn_error why = { .offset = TN_NO_OFFSET };
    TN_TRY(tn_keep_scales(&s->held, t, err));
    tn_status status = plan_view(s, t, &s->views[i], &why);
    if (status == TN_ERR_NOMEM || status == TN_ERR_IO) {
        if (err)
            *err = why;
        return status;
    }
    if (status) {
        tn_error *problem = s->problems[i] = tn_arena_alloc(&s->arena, sizeof *problem);
        if (!problem)
            return tn_fail_nomem(err);
        *problem = why;
        return tn_items_cut(&s->items, (tn_item){ .subject = i }, 0, 0, err);
    }
    const tn_view *v = s->views[i];
    unsigned bits = tn_view_bits_read(v);
    s->walk.total += tn_packed_bytes(v->count, bits);
    return tn_items_cut(&s->items, (tn_item){ .subject = i, .n = v->count },
                        v->reach == TN_REACH_ANY ? TN_SPAN : 0, bits, err);
}

static tn_status plan(survey *s, tn_error *err)
{
    TN_TRY(tn_walk_choose(&s->walk, s->file, s->o.only, s->o.nonly, err));
    s->views = tn_arena_zalloc(&s->arena, s->walk.count, sizeof *s->views);
    s->problems = tn_arena_zalloc(&s->arena, s->walk.count, sizeof *s->problems);
    if (!s->views || !s->problems)
        return tn_fail_nomem(err);
    for (size_t i = 0; i < s->walk.count; i++)
        TN_TRY(plan_tensor(s, i, err));
    return TN_OK;
}

static void free_worker(void *worker) { tn_worker_free(worker); }

tn_status tn_stats(const tn_file *file, const tn_stats_options *given, tn_stats_fn report, tn_error *err)
{
    TN_GIVEN(file, "a file", err);
    survey s = { .file = file, .place = { .file = file, .unchecked = true }, .report = report,
                 .held.max_bytes = file->max_bytes, .total = tn_statistics_empty() };
    TN_TRY(tn_take_options(TN_SIZED(tn_stats_options, nonly), &s.o, given, err));
    s.walk = (tn_walk){ .jobs = s.o.jobs, .progress = s.o.progress, .context = s.o.context,
                        .together = s.o.together };
    const tn_asked asked = { .verb = "stats", .files = { file }, .nfiles = 1,
                             .lists = { { "only", s.o.only, s.o.nonly } }, .nlists = 1 };
    tn_status status = plan(&s, err);
    if (!status)
        status = tn_together_ask(s.o.together, &asked, err);
    if (!status)
        tn_expect_tensors(file, s.walk.tensors, s.walk.count);
    if (!status)
        status = tn_walk_run(&s.walk, &s.items, &(tn_walk_task){
            .work = work, .join = join, .context = &s, .scratch_size = sizeof(tn_worker),
            .result_size = sizeof(result), .free_scratch = free_worker, .save = save, .load = load,
        }, err);
    if (!status && report)
        report(s.o.context, NULL, &s.total, NULL);
    for (size_t i = 0; s.views && i < s.walk.count; i++)
        tn_view_free(s.views[i]);
    free(s.items.list);
    tn_walk_end(&s.walk);
    tn_arena_free(&s.arena);
    return status;
}
