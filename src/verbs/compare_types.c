/* verbs/compare_types.c - the effect of datatypes on the tensors of a file. */
#include "verbs/compare_types.h"
#include "base/error.h"
#include "base/options.h"
#include "pipeline/importance.h"
#include "pipeline/steps/steps.h"
#include "pipeline/together.h"
#include "pipeline/rules/rules.h"
#include "quant/quantizer.h"
#include "store/packed.h"
#include "tensor/array.h"

#include <tenon/convert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rating {
    tn_view_place      place;
    const tn_datatype *const *datatypes;
    size_t             n;
    const bool        *left_out;        /* of the chosen tensors, or NULL */
    tn_compare_datatypes_options o;
    tn_quantize_options quantize;
    tn_file           *weights;         /* importance data, or NULL */
    tn_quantize_report_fn report;
    tn_walk            walk;            /* bytes count once for each datatype */
    tn_worker         *own, **workers;  /* one per thread */
    tn_buf            *text;            /* together: where results are saved that are not reported yet... */
    size_t             nsaved;          /* ...and how many there are */
    size_t            *pieces;          /* the first tensor of each, and behind the last */
    size_t             npieces;
} rating;

/* ---- one tensor ---- */

/* Another tool's codes, and the scales that belong to them, are no values. */
static bool is_rated(const rating *r, size_t i)
{
    const tn_tensor *t = r->walk.tensors[i];
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    return !(r->left_out && r->left_out[i]) && tn_form_get(t->form) && type && type->kind == TN_KIND_FLOAT &&
           type->specials != TN_SPECIALS_E8M0 && !tn_packed_of(r->place.file, t);
}

/* Bits per value, with all parts. */
static double bits_of(const rating *r, const tn_scaled_shapes *shapes, uint64_t count)
{
    uint64_t total = 0;
    for (uint32_t k = 0; k < shapes->count; k++) {
        const tn_scaled_part *p = &shapes->parts[k];
        bool plain = k == 0 && r->quantize.unpacked;
        uint64_t nbytes = 0;
        const tn_array packed = { p->dtype, p->rank, p->shape, NULL };
        const tn_array unpacked = { p->plain_dtype, p->rank, p->plain_shape, NULL };
        tn_array_nbytes(plain ? &unpacked : &packed, &nbytes);
        total += nbytes;
    }
    return count ? 8 * (double)total / (double)count : 0;
}

typedef struct result {
    tn_quantize_stats stats;
    double            bits;
    bool              fits;     /* the datatype fits the tensor; else the rest is not set */
} result;

/* A datatype that needs importance data does not fit a tensor that has none. */
static tn_status find_importance(const rating *r, const tn_tensor *t, const tn_datatype *d, tn_arena *arena,
                                 tn_quantize_options *o, tn_error *err)
{
    if (r->weights && d->block)
        TN_TRY(tn_importance_read(r->weights, t->name, t, arena, o, err));
    return TN_OK;
}

static tn_status rate_one(const rating *r, const tn_tensor *t, const tn_datatype *d, const void *data,
                          result *found, tn_error *err)
{
    const tn_array array = { .dtype = t->dtype, .rank = t->rank, .shape = t->shape };
    tn_quantize_options o = r->quantize;
    tn_arena arena = { 0 };
    tn_scaled_shapes shapes;
    tn_error why;
    uint64_t count = 0;
    found->fits = tn_scaled_shapes_for(d, t->rank, t->shape, &shapes, &why) == TN_OK;
    if (!found->fits)
        return TN_OK;
    tn_status status = tn_shape_count(t->rank, t->shape, &count);
    if (!status)
        status = find_importance(r, t, d, &arena, &o, &why);
    if (!status)
        status = tn_fake_quantize(d, &array, data, NULL, &o, &found->stats, &why);
    tn_arena_free(&arena);
    found->fits = status != TN_ERR_ARGUMENT || (!o.rotation.size && !d->block); /* the rest was checked */
    found->bits = bits_of(r, &shapes, count);
    if (!status || !found->fits)
        return TN_OK;
    char as[120];
    snprintf(as, sizeof as, " (as %s)", tn_quote_z(tn_datatype_text(d)).text);
    if (err)
        *err = why;
    return tn_in_tensor(tn_and_say(status, as, err), t->name, err);
}

enum { COUNTS = 4, FIGURES = 4, NUMBERS = COUNTS + FIGURES };

static void save_one(rating *r, const result *found)
{
    const tn_quantize_stats *s = &found->stats;
    const double figures[FIGURES] = { s->signal, s->noise, s->max_error, found->bits };
    uint64_t x[NUMBERS] = { found->fits, s->values, s->saturated, s->flushed };
    memcpy(x + COUNTS, figures, sizeof figures);
    tn_buf_puts(r->text, r->nsaved++ ? ",\n" : "");
    tn_work_put_numbers(r->text, x, NUMBERS);
}

static void load_one(tn_json *j, result *found)
{
    uint64_t x[NUMBERS];
    double figures[FIGURES];
    tn_work_take_numbers(j, x, NUMBERS);
    memcpy(figures, x + COUNTS, sizeof figures);
    *found = (result){ .fits = x[0] != 0, .bits = figures[3],
                       .stats = { .values = x[1], .saturated = x[2], .flushed = x[3], .signal = figures[0],
                                  .noise = figures[1], .max_error = figures[2] } };
}

static void report_one(const rating *r, const tn_tensor *t, const tn_datatype *d, const result *found)
{
    const tn_quantize_report report = { .source = t, .name = t->name, .datatype = tn_datatype_text(d),
                                        .bits = found->bits, .report = found->fits ? &found->stats : NULL };
    if (r->report)
        r->report(r->o.context, &report);
}

static void found_one(rating *r, const tn_tensor *t, const tn_datatype *d, const result *found)
{
    if (r->text)
        save_one(r, found);
    else
        report_one(r, t, d, found);
}

static uint64_t bytes_of(const tn_tensor *t)
{
    uint64_t n = 0;
    tn_shape_nbytes(t->dtype, t->rank, t->shape, &n);   /* cannot fail: its form was checked */
    return n;
}

static tn_status rate_values(rating *r, const tn_tensor *t, const void *values, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < r->n && !status; i++) {
        result found = { .fits = false };
        status = rate_one(r, t, r->datatypes[i], values, &found, err);
        status = tn_tensor_settle(r->place.file, t, status, err);
        if (status)
            break;
        found_one(r, t, r->datatypes[i], &found);
        status = tn_walk_advance(&r->walk, bytes_of(t), err);
    }
    return status;
}

/* All its values in memory or in a spill, whatever its form. */
static tn_status rate_view(rating *r, const tn_tensor *t, tn_view *v, tn_error *err)
{
    const tn_preparing p = { .pool = r->walk.pool, .workers = r->workers };
    TN_TRY(tn_view_prepare(v, &p, err));
    TN_TRY(v->count ? tn_view_fill(v, &p, err) : TN_OK);
    return rate_values(r, t, v->count ? v->memory : (const uint8_t *)"", err);
}

static tn_status rate_tensor(rating *r, size_t number, tn_error *err)
{
    const tn_tensor *t = r->walk.tensors[number];
    tn_arena arena = { 0 };
    tn_view *v = NULL;
    tn_status status = is_rated(r, number) ? tn_view_stored(&r->place, t, &arena, &v, err) : TN_OK;
    if (v && !status)
        status = tn_view_add_values(&v, TN_UNKNOWN, err);
    bool is_left_out = !is_rated(r, number) || (status == TN_ERR_UNSUPPORTED && t->form != TN_FORM_DENSE);
    for (size_t i = 0; i < r->n && is_left_out; i++)
        found_one(r, t, r->datatypes[i], &(result){ .fits = false });
    if (is_left_out)
        status = TN_OK;
    else if (!status)
        status = rate_view(r, t, v, err);
    tn_view_free(v);
    tn_arena_free(&arena);
    return status;
}

/* ---- the file ---- */

static tn_status take_defaults(rating *r, tn_error *err)
{
    tn_quantize_options *o = &r->quantize;
    tn_cast_rule defaults;
    TN_TRY(tn_cast_defaults_parse(r->o.cast_defaults, &defaults, err));
    *o = defaults.quantize;
    o->round = defaults.options.round;
    o->nan = defaults.options.nan;
    o->seed = defaults.options.seed;
    return tn_importance_open(defaults.importance, &r->weights, &o->no_importance, err);
}

static tn_status start(rating *r, tn_error *err)
{
    if (r->workers)
        return TN_OK;
    TN_TRY(tn_walk_start(&r->walk, err));
    r->quantize.jobs = r->walk.jobs;
    unsigned jobs = tn_pool_jobs(r->walk.pool);
    r->own = calloc(jobs, sizeof *r->own);
    r->workers = calloc(jobs, sizeof *r->workers);
    for (unsigned i = 0; r->own && r->workers && i < jobs; i++)
        r->workers[i] = &r->own[i];
    return r->own && r->workers ? TN_OK : tn_fail_nomem(err);
}

static void end(rating *r)
{
    for (unsigned i = 0; r->own && i < tn_pool_jobs(r->walk.pool); i++)
        tn_worker_free(&r->own[i]);
    free(r->own);
    free(r->workers);
    free(r->pieces);
    tn_close(r->weights);
    tn_walk_end(&r->walk);
}

static tn_status check(const tn_file *file, const tn_tried_types *tried, tn_error *err)
{
    TN_GIVEN(file, "a file", err);
    TN_GIVEN(tried->datatypes || !tried->n, "datatypes", err);
    for (size_t i = 0; i < tried->n; i++)
        TN_GIVEN(tried->datatypes[i], "datatypes", err);
    return TN_OK;
}

static tn_status plan(rating *r, tn_error *err)
{
    TN_TRY(tn_walk_choose(&r->walk, r->place.file, r->o.only, r->o.nonly, err));
    for (size_t i = 0; i < r->n; i++)
        TN_TRY(tn_quantizer_check(r->datatypes[i], &r->quantize, err));
    for (size_t i = 0; i < r->walk.count; i++)
        if (is_rated(r, i))
            r->walk.total += r->n * bytes_of(r->walk.tensors[i]);
    return TN_OK;
}

static tn_status rate_alone(rating *r, tn_error *err)
{
    tn_status status = start(r, err);
    for (size_t i = 0; i < r->walk.count && !status; i++)
        status = rate_tensor(r, i, err);
    return status;
}

/* ---- with other processes ---- */

static tn_status ask(const rating *r, tn_error *err)
{
    const char **types = malloc((r->n + 1) * sizeof *types);
    const tn_asked asked = { .verb = "compare-types", .files = { r->place.file, r->weights },
                             .nfiles = r->weights ? 2 : 1,
                             .lists = { { "only", r->o.only, r->o.nonly }, { "types", types, r->n },
                                        { "casts", &r->o.cast_defaults, r->o.cast_defaults != NULL } },
                             .nlists = 3 };
    TN_NEED(types, err);
    for (size_t i = 0; i < r->n; i++)
        types[i] = tn_datatype_text(r->datatypes[i]);
    tn_status status = r->o.quantize ? tn_fail(err, TN_ERR_ARGUMENT, "expected cast_defaults, not quantize")
                                     : tn_together_ask(r->o.together, &asked, err);
    free(types);
    return status;
}

static uint64_t cost_of(const void *context, size_t piece)
{
    const rating *r = context;
    uint64_t bytes = 0;
    for (size_t i = r->pieces[piece]; i < r->pieces[piece + 1]; i++)
        bytes += is_rated(r, i) ? r->n * bytes_of(r->walk.tensors[i]) : 0;
    return bytes;
}

static tn_status make_piece(void *context, size_t piece, tn_buf *text, tn_error *err)
{
    rating *r = context;
    tn_status status = start(r, err);
    r->text = text;
    r->nsaved = 0;
    tn_buf_puts(text, "[\n");
    for (size_t i = r->pieces[piece]; i < r->pieces[piece + 1] && !status; i++)
        status = rate_tensor(r, i, err);
    tn_buf_puts(text, "]");
    r->text = NULL;
    return status;
}

static tn_status take_piece(void *context, size_t piece, tn_json *text, tn_error *err)
{
    const rating *r = context;
    size_t at = r->pieces[piece] * r->n, last = r->pieces[piece + 1] * r->n;
    (void)err;
    tn_json_array(text);
    while (tn_json_item(text)) {
        result found;
        if (at == last) {
            tn_json_reject(text, TN_ERR_CORRUPT, "expected fewer results");
            return TN_OK;
        }
        load_one(text, &found);
        if (text->status)
            return TN_OK;
        report_one(r, r->walk.tensors[at / r->n], r->datatypes[at % r->n], &found);
        at++;
    }
    if (!text->status && at < last)
        tn_json_reject(text, TN_ERR_CORRUPT, "expected more results");
    return TN_OK;
}

static tn_status rate_together(rating *r, tn_error *err)
{
    uint64_t bytes = 0, size = tn_together_piece(r->o.together);
    r->pieces = calloc(r->walk.count + 1, sizeof *r->pieces);
    TN_NEED(r->pieces, err);
    for (size_t i = 0; i < r->walk.count; i++) {
        if (i && bytes >= size) {
            r->pieces[++r->npieces] = i;
            bytes = 0;
        }
        bytes += is_rated(r, i) ? r->n * bytes_of(r->walk.tensors[i]) : 0;
    }
    r->npieces += r->walk.count > 0;
    r->pieces[r->npieces] = r->walk.count;
    TN_TRY(ask(r, err));
    const tn_together_task task = { .count = r->npieces, .cost = cost_of, .make = make_piece,
                                    .take = take_piece, .context = r };
    return tn_together_run(r->o.together, &task, &r->walk, err);
}

tn_status tn_compare_datatypes_but(const tn_file *file, const tn_tried_types *tried,
                                   const tn_compare_datatypes_options *options, tn_quantize_report_fn report,
                                   tn_error *err)
{
    TN_TRY(check(file, tried, err));
    rating r = { .place = { .file = file, .walk = &r.walk }, .datatypes = tried->datatypes, .n = tried->n,
                 .left_out = tried->left_out, .report = report, .quantize = { .size = sizeof r.quantize } };
    TN_TRY(tn_take_options(TN_SIZED(tn_compare_datatypes_options, cast_defaults), &r.o, options, err));
    TN_TRY(tn_take_options(TN_SIZED(tn_quantize_options, percentile), &r.quantize, r.o.quantize, err));
    tn_status status = r.o.cast_defaults ? take_defaults(&r, err) : TN_OK;
    r.walk = (tn_walk){ .jobs = r.o.jobs, .progress = r.o.progress, .context = r.o.context };
    if (!status)
        status = plan(&r, err);
    if (!status)
        status = r.o.together ? rate_together(&r, err) : rate_alone(&r, err);
    end(&r);
    return status;
}

tn_status tn_compare_datatypes(const tn_file *file, const tn_datatype *const *datatypes, size_t n,
                               const tn_compare_datatypes_options *options, tn_quantize_report_fn report,
                               tn_error *err)
{
    const tn_tried_types tried = { .datatypes = datatypes, .n = n };
    return tn_compare_datatypes_but(file, &tried, options, report, err);
}
