/* verbs/compare_types.c - the effect of datatypes on the tensors of a file. */
#include "verbs/compare_types.h"
#include "base/error.h"
#include "base/options.h"
#include "pipeline/importance.h"
#include "pipeline/steps/steps.h"
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
        TN_TRY(tn_importance_read(r->weights, t->name, arena, &o->importance, &o->nimportance, err));
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

static void report_one(const rating *r, const tn_tensor *t, const tn_datatype *d, const result *found)
{
    const tn_quantize_report report = { .source = t, .name = t->name, .datatype = tn_datatype_text(d),
                                        .bits = found->bits, .report = found->fits ? &found->stats : NULL };
    if (r->report)
        r->report(r->o.context, &report);
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
        report_one(r, t, r->datatypes[i], &found);
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
        report_one(r, t, r->datatypes[i], &(result){ .fits = false });
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
    TN_TRY(tn_walk_start(&r->walk, err));
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
    r.quantize.jobs = r.o.jobs;
    r.walk = (tn_walk){ .jobs = r.o.jobs, .progress = r.o.progress, .context = r.o.context };
    if (!status)
        status = plan(&r, err);
    if (!status)
        status = start(&r, err);
    for (size_t i = 0; i < r.walk.count && !status; i++)
        status = rate_tensor(&r, i, err);
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
