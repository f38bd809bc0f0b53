/* verbs/report.c - the passes of a report over the data: statistics, datatypes, another file, pictures. */
#include "verbs/report.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "pipeline/steps/steps.h"
#include "tensor/array.h"
#include "verbs/compare_types.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- progress of several passes as one ---- */

static int pass_on(void *context, uint64_t done, uint64_t total)
{
    const tn_report *r = context;
    double part = total ? (double)done / (double)total : 0;
    if (!r->o.progress)
        return 0;
    return r->o.progress(r->o.context, r->done + (uint64_t)(part * (double)r->share), r->total);
}

static void end_pass(tn_report *r)
{
    r->done += r->share;
    r->share = 0;
}

/* ---- statistics ---- */

typedef struct survey {
    tn_report *report;
    size_t     next;
    bool       full;            /* memory ran out */
} survey;

static int survey_progress(void *context, uint64_t done, uint64_t total)
{
    return pass_on(((survey *)context)->report, done, total);
}

static void take_statistics(void *context, const tn_tensor *tensor, const tn_statistics *statistics,
                            const tn_error *why)
{
    survey *s = context;
    tn_report *r = s->report;
    if (!tensor) {
        r->totals.statistics = *statistics;
        return;
    }
    tn_report_tensor *t = &r->tensors[s->next++];
    t->statistics = *statistics;
    if (!why)
        return;
    t->why = tn_arena_text(&r->arena, why->text, strlen(why->text));
    s->full |= !t->why;
}

static tn_status pass_statistics(tn_report *r, tn_error *err)
{
    survey s = { .report = r };
    const tn_stats_options options = { .size = sizeof options, .jobs = r->o.jobs, .context = &s,
                                       .progress = survey_progress, .only = r->o.only, .nonly = r->o.nonly };
    TN_TRY(tn_stats(r->file, &options, take_statistics, err));
    end_pass(r);
    return s.full ? tn_fail_nomem(err) : TN_OK;
}

/* ---- datatypes ---- */

static void take_rating(void *context, const tn_quantize_report *q)
{
    survey *s = context;
    tn_report *r = s->report;
    tn_report_rating *to = &r->ratings[s->next];
    const tn_report_tensor *t = &r->tensors[s->next++ / r->o.ntypes];
    to->fits = q->report && q->report->values;
    if (!to->fits)
        return;
    to->sqnr = (double)INFINITY;
    if (q->report->noise > 0)
        to->sqnr = 10 * log10(q->report->signal / q->report->noise);
    to->nbytes = (uint64_t)(q->bits * (double)t->values / 8 + 0.5);
}

static tn_status load_types(tn_report *r, tn_error *err)
{
    TN_TRY(tn_check_texts(r->o.types, r->o.ntypes, "types", err));
    r->datatypes = tn_arena_zalloc(&r->arena, r->o.ntypes, sizeof *r->datatypes);
    r->types = tn_arena_zalloc(&r->arena, r->o.ntypes, sizeof *r->types);
    r->ratings = tn_arena_zalloc(&r->arena, r->totals.tensors, r->o.ntypes * sizeof *r->ratings);
    TN_NEED(r->datatypes && r->types && r->ratings, err);
    for (size_t i = 0; i < r->o.ntypes; i++) {
        TN_TRY(tn_datatype_load(r->o.types[i], &r->datatypes[i], err));
        r->types[i].text = tn_arena_text(&r->arena, r->o.types[i], strlen(r->o.types[i]));
        r->types[i].datatype = tn_datatype_text(r->datatypes[i]);
        TN_NEED(r->types[i].text, err);
    }
    for (size_t i = 0; i < r->totals.tensors; i++)
        r->tensors[i].ratings = r->o.ntypes ? r->ratings + i * r->o.ntypes : NULL;
    return TN_OK;
}

/* Datatypes refuse NaN, and what they make of infinities says nothing about the rest. */
static tn_status pass_datatypes(tn_report *r, tn_error *err)
{
    survey s = { .report = r };
    const tn_compare_datatypes_options options = {
        .size = sizeof options, .only = r->o.only, .nonly = r->o.nonly, .jobs = r->o.jobs,
        .progress = survey_progress, .context = &s };
    bool *left_out = tn_arena_zalloc(&r->arena, r->totals.tensors, sizeof *left_out);
    TN_NEED(left_out, err);
    for (size_t i = 0; i < r->totals.tensors; i++) {
        const tn_statistics *f = &r->tensors[i].statistics;
        left_out[i] = r->tensors[i].why || f->nans || f->infinities;
    }
    const tn_tried_types tried = { (const tn_datatype *const *)r->datatypes, r->o.ntypes, left_out };
    TN_TRY(tn_compare_datatypes_but(r->file, &tried, &options, take_rating, err));
    end_pass(r);
    return TN_OK;
}

/* ---- another file ---- */

static tn_difference *keep_difference(tn_report *r, const tn_difference *d)
{
    tn_difference *kept = tn_arena_copy(&r->arena, d, sizeof *d);
    if (!kept || !d->why)
        return kept;
    kept->why = tn_arena_text(&r->arena, d->why, strlen(d->why));
    kept->value = "";
    return kept->why ? kept : NULL;
}

static void take_difference(void *context, const tn_difference *d)
{
    survey *s = context;
    tn_report *r = s->report;
    if (!d->a && !d->b) {
        r->metadata_differs = d->what != 0;
    } else if (!d->a) {
        r->only_there[r->totals.only_there++] = d->b;
    } else {
        tn_report_tensor *t = &r->tensors[s->next++];
        if (d->what)
            t->difference = keep_difference(r, d);
        s->full |= d->what && !t->difference;
    }
}

static tn_status pass_other_file(tn_report *r, tn_error *err)
{
    survey s = { .report = r };
    const tn_compare_options options = { .size = sizeof options, .jobs = r->o.jobs, .context = &s,
                                         .progress = survey_progress, .only = r->o.only,
                                         .nonly = r->o.nonly };
    size_t different;
    r->only_there = tn_arena_zalloc(&r->arena, tn_file_count(r->o.against) + 1, sizeof *r->only_there);
    TN_NEED(r->only_there, err);
    TN_TRY(tn_compare(r->file, r->o.against, &options, take_difference, &different, err));
    end_pass(r);
    return s.full ? tn_fail_nomem(err) : TN_OK;
}

/* ---- which tensors ---- */

static void describe(tn_report_tensor *to, const tn_tensor *t)
{
    to->tensor = t;
    to->odd_figure = "";
    if (tn_shape_count(t->rank, t->shape, &to->values))
        to->values = 0;
    for (uint32_t k = 0; k < t->nparts; k++)
        to->nbytes += t->parts[k].nbytes;
}

static tn_status choose(tn_report *r, tn_error *err)
{
    tn_walk walk = { .jobs = 1 };
    tn_status status = tn_walk_choose(&walk, r->file, r->o.only, r->o.nonly, err);
    r->totals.tensors = walk.count;
    r->tensors = tn_arena_zalloc(&r->arena, walk.count, sizeof *r->tensors);
    if (!status && !r->tensors)
        status = tn_fail_nomem(err);
    for (size_t i = 0; i < walk.count && !status; i++) {
        describe(&r->tensors[i], walk.tensors[i]);
        r->totals.nbytes += r->tensors[i].nbytes;
    }
    tn_walk_end(&walk);
    return status;
}

tn_status tn_report_gather(tn_report *r, tn_error *err)
{
    TN_TRY(choose(r, err));
    TN_TRY(load_types(r, err));
    uint64_t once = r->totals.nbytes / 64 + 1;          /* bytes are counted by 64: sums cannot overflow */
    r->total = once * (r->o.against ? 3 : 2) + 8 * once * r->o.ntypes;  /* a datatype takes its time */
    r->share = once;
    TN_TRY(pass_statistics(r, err));
    r->share = 8 * once * r->o.ntypes;
    TN_TRY(r->o.ntypes ? pass_datatypes(r, err) : TN_OK);
    r->share = once;
    return r->o.against ? pass_other_file(r, err) : TN_OK;
}

/* ---- pictures ---- */

typedef struct drawing {
    tn_report *report;
    tn_walk    walk;
    tn_items   items;           /* the subjects are pictures */
    tn_view   *views[TN_PICTURES];      /* of float32 values; NULL: it cannot be read */
    tn_arena   arena;
    tn_kept    held;
    tn_view_place place;
} drawing;

/* Sums of eight lanes, which the compiler can keep in registers. */
enum { LANES = 8 };

/* The floats may lie anywhere. */
static void add_run(tn_grid *g, size_t block, const uint8_t *floats, size_t n)
{
    double sum[LANES] = { 0 }, squares[LANES] = { 0 };
    float most[LANES] = { 0 };
    uint32_t finite[LANES] = { 0 };
    for (size_t i = 0; i < n; i += LANES) {
        size_t lanes = n - i < LANES ? n - i : LANES;
        for (size_t k = 0; k < lanes; k++) {
            float x;
            memcpy(&x, floats + (i + k) * sizeof x, sizeof x);
            float size = fabsf(x);
            bool counts = size <= FLT_MAX;
            double value = counts ? (double)x : 0;
            sum[k] += value;
            squares[k] += value * value;
            most[k] = counts && size > most[k] ? size : most[k];
            finite[k] += counts;
        }
    }
    for (size_t k = 0; k < LANES; k++) {
        g->sum[block] += sum[k];
        g->squares[block] += squares[k];
        g->finite[block] += finite[k];
        g->absmax[block] = fmaxf(g->absmax[block], most[k]);
    }
}

/* The first index of the extent that is in a block after number `block` of `blocks`. */
static uint64_t end_of(uint64_t block, uint64_t blocks, uint64_t extent)
{
    return ((block + 1) * extent + blocks - 1) / blocks;
}

/* Elements [first, first + n), row after row, block after block. */
static void add_elements(const tn_picture *p, tn_grid *g, uint64_t first, const uint8_t *floats, uint64_t n)
{
    for (uint64_t done = 0; done < n;) {
        uint64_t row = (first + done) / p->width, column = (first + done) % p->width;
        uint64_t down = row * p->rows / p->height, across = column * p->columns / p->width;
        uint64_t run = tn_min_u64(end_of(across, p->columns, p->width) - column, n - done);
        add_run(g, down * TN_GRID + across, floats + done * sizeof(float), run);
        done += run;
    }
}

static tn_status draw_range(const drawing *d, const tn_item *it, tn_worker *w, tn_grid *g, tn_error *err)
{
    tn_view *v = d->views[it->subject];
    const tn_picture *p = &d->report->pictures[it->subject];
    uint64_t window = tn_view_window(v), end = it->from + it->n;
    tn_status status = tn_view_hold(v, w, end, err);
    for (uint64_t at = it->from, n; at < end && !status; at += n) {
        const uint8_t *bytes;
        n = tn_min_u64(end - at, window);
        status = tn_view_range(v, at, (size_t)n, w, &bytes, err);
        if (!status)
            add_elements(p, g, at, bytes, n);
    }
    tn_view_leave(v, w);
    return status;
}

static tn_status work(void *context, const tn_item *it, void *scratch, void *result, tn_error *err)
{
    memset(result, 0, sizeof(tn_grid));
    return draw_range(context, it, scratch, result, err);
}

static tn_status join(void *context, tn_item *it, void *result, tn_error *err)
{
    const drawing *d = context;
    tn_grid *all = d->report->pictures[it->subject].grid;
    const tn_grid *more = result;
    (void)err;
    for (size_t i = 0; i < TN_GRID * TN_GRID; i++) {
        all->sum[i] += more->sum[i];
        all->squares[i] += more->squares[i];
        all->finite[i] += more->finite[i];
        all->absmax[i] = fmaxf(all->absmax[i], more->absmax[i]);
    }
    return TN_OK;
}

/* False: it is not drawn. */
static bool measure(tn_picture *p, const tn_tensor *t, uint64_t values)
{
    bool is_dense = t->form == TN_FORM_DENSE || tn_form_is_scaled(t->form);
    p->width = t->rank ? (uint64_t)t->shape[t->rank - 1] : 1;
    p->height = p->width ? values / p->width : 0;
    p->rows = (uint32_t)tn_min_u64(p->height, TN_GRID);
    p->columns = (uint32_t)tn_min_u64(p->width, TN_GRID);
    return is_dense && values > 1 && values < UINT64_MAX / (2 * TN_GRID);
}

static tn_status plan_view(drawing *d, size_t i, const tn_tensor *t, tn_error *err)
{
    tn_view *v = NULL;
    TN_TRY(tn_keep_scales(&d->held, t, err));
    TN_TRY(tn_kept_check_spilled(d->place.file, t, &t->parts[0], err));
    TN_TRY(tn_view_stored(&d->place, t, &d->arena, &v, err));
    tn_status status = tn_view_add_values(&v, TN_FLOAT32, err);
    d->views[i] = v;
    return status;
}

static tn_status plan_picture(drawing *d, size_t i, tn_error *err)
{
    tn_picture *p = &d->report->pictures[i];
    const tn_report_tensor *t = &d->report->tensors[p->tensor];
    tn_error why;
    if (!measure(p, t->tensor, t->values))
        return TN_OK;
    tn_status status = plan_view(d, i, t->tensor, &why);
    if (status == TN_ERR_NOMEM || status == TN_ERR_IO) {
        if (err)
            *err = why;
        return status;
    }
    if (status)
        return TN_OK;           /* it has no values that are numbers */
    const tn_view *v = d->views[i];
    p->grid = tn_arena_zalloc(&d->report->arena, 1, sizeof *p->grid);
    TN_NEED(p->grid, err);
    d->walk.total += v->count;
    return tn_items_cut(&d->items, (tn_item){ .subject = i, .n = v->count },
                        v->reach == TN_REACH_ANY ? TN_SPAN : 0, 8, err);
}

static int drawing_progress(void *context, uint64_t done, uint64_t total)
{
    return pass_on(((drawing *)context)->report, done, total);
}

static void free_worker(void *worker) { tn_worker_free(worker); }

tn_status tn_report_draw(tn_report *r, tn_error *err)
{
    drawing d = { .report = r, .place = { .file = r->file, .unchecked = true },
                  .held.max_bytes = r->file->max_bytes };
    d.walk = (tn_walk){ .jobs = r->o.jobs, .progress = drawing_progress, .context = &d };
    tn_status status = TN_OK;
    r->share = r->total - r->done;
    for (size_t i = 0; i < r->npictures && !status; i++)
        status = plan_picture(&d, i, err);
    if (!status && d.items.count)
        status = tn_walk_run(&d.walk, &d.items, &(tn_walk_task){
            .work = work, .join = join, .context = &d, .scratch_size = sizeof(tn_worker),
            .result_size = sizeof(tn_grid), .free_scratch = free_worker,
        }, err);
    for (size_t i = 0; i < r->npictures; i++)
        tn_view_free(d.views[i]);
    free(d.items.list);
    tn_walk_end(&d.walk);
    tn_arena_free(&d.arena);
    return status;
}
