/* pipeline/steps/affine.c - codes with scales along whole dimensions, element by element: values into
 * codes, codes into values, and codes into codes of other scales. */
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "pipeline/steps/extremes.h"
#include "quant/affine.h"
#include "quant/requantize.h"
#include "quant/scale_search.h"
#include "store/kept.h"
#include "tensor/array.h"
#include "tensor/code.h"

#include <math.h>
#include <string.h>

/* ---- scales of the input ---- */

tn_status tn_view_read_part(const tn_view *v, uint32_t k, const void **data, tn_error *err)
{
    const tn_tensor *t = tn_stored_tensor(v);
    const tn_part *p = &v->parts[k];
    const tn_view_place place = { .file = v->place->file };     /* its checksum is compared in any case */
    *data = p->data;
    if (p->data)
        return TN_OK;
    if (place.file)
        TN_TRY(tn_kept_check_part(place.file, t, &t->parts[k], err));
    void *copy = tn_arena_alloc(v->arena, (size_t)p->nbytes);
    *data = copy;
    return copy ? tn_copy_part(&place, t, k, p->array.dtype, copy, err) : tn_fail_nomem(err);
}

/* PyTorch stores scales as float64.  It multiplies by one scale in float32, and by one for each index in
 * float64 (wide_scales()). */
static tn_status narrow_scales(const tn_view *v, const void **data, tn_error *err)
{
    uint64_t n = v->parts[1].nbytes / sizeof(double);
    float *narrow = tn_arena_alloc(v->arena, (size_t)n * sizeof *narrow);
    TN_NEED(narrow, err);
    for (uint64_t i = 0; i < n; i++)
        narrow[i] = (float)tn_value_get(TN_FLOAT64, *data, i).re;
    *data = narrow;
    return TN_OK;
}

/* NULL: scales are float32, or there is one. */
static tn_status wide_scales(const tn_view *v, const double **scale, tn_error *err)
{
    const void *data = NULL;
    *scale = NULL;
    if (v->parts[1].array.dtype != TN_FLOAT64 || v->tensor.scaling->axis < 0)
        return TN_OK;
    TN_TRY(tn_view_read_part(v, 1, &data, err));
    *scale = tn_arena_copy(v->arena, data, (size_t)v->parts[1].nbytes);     /* aligned */
    return *scale ? TN_OK : tn_fail_nomem(err);
}

static tn_status narrow_zeros(const tn_view *v, const void **data, tn_error *err)
{
    uint64_t n = v->parts[2].nbytes / sizeof(int64_t);
    int32_t *narrow = tn_arena_alloc(v->arena, (size_t)n * sizeof *narrow);
    TN_NEED(narrow, err);
    for (uint64_t i = 0; i < n; i++) {
        int64_t zero = tn_value_get(TN_INT64, *data, i).i;
        if (zero < INT32_MIN || zero > INT32_MAX)
            return tn_fail(err, TN_ERR_UNSUPPORTED, "expected zero points of 32 bits but found %lld",
                           (long long)zero);
        narrow[i] = (int32_t)zero;
    }
    *data = narrow;
    return TN_OK;
}

tn_status tn_view_scales(const tn_view *v, const float **scale, const int32_t **zero, tn_error *err)
{
    const void *scales = NULL, *zeros = NULL;
    TN_TRY(tn_view_read_part(v, 1, &scales, err));
    if (v->parts[1].array.dtype == TN_FLOAT64)
        TN_TRY(narrow_scales(v, &scales, err));
    if (v->tensor.nparts > 2)
        TN_TRY(tn_view_read_part(v, 2, &zeros, err));
    if (zeros && v->parts[2].array.dtype == TN_INT64)
        TN_TRY(narrow_zeros(v, &zeros, err));
    *scale = scales;
    *zero = zeros;
    return TN_OK;
}

/* ---- scales of the result ---- */

typedef struct quantizing {
    tn_affine           affine;
    tn_quantize_options options;
    tn_scale_index      index;
    float              *scale;
    int32_t            *zero;   /* or NULL */
    tn_scales           from;   /* of the codes that are recoded */
    /* For a report, or NULL: values of the codes, of the codes that they are made of if they are, and
     * REPORTED times the lowest and the highest code. */
    tn_affine_plan     *values, *before;
    uint8_t            *last[2];
    tn_refused          refused;
    tn_scale_tally     *tally;  /* of the last search, if it takes little memory; or NULL */
    /* One of them, which describe() makes; last, because they are large: */
    tn_affine_plan      plan;
    tn_requant_plan     recode; /* of codes */
} quantizing;

/* The scale that is given, or that of no values. */
static float first_scale(const tn_quantize_task *task)
{
    if (task->options.rule == TN_SCALE_GIVEN)
        return task->scale;
    return task->affine->power ? ldexpf(1, 1 - (int)tn_dtype_get(task->affine->codes)->bits) : 1;
}

/* Memory for scales and zero points, and the parts that they are. */
static tn_status add_scales(tn_view *v, quantizing *q, const tn_quantize_task *task, tn_error *err)
{
    bool zeros = q->affine.has_zeros || !q->affine.symmetric;
    int64_t *extent = tn_arena_zalloc(v->arena, 1, sizeof *extent);
    TN_TRY(tn_scale_index_for(v->tensor.rank, v->tensor.shape, q->affine.axis, &q->index, err));
    uint64_t count = q->index.count;
    q->scale = tn_arena_zalloc(v->arena, (size_t)count, sizeof *q->scale);
    q->zero = zeros ? tn_arena_zalloc(v->arena, (size_t)count, sizeof *q->zero) : NULL;
    if (!extent || !q->scale || (zeros && !q->zero))
        return tn_fail_nomem(err);
    for (uint64_t i = 0; i < count; i++) {
        q->scale[i] = first_scale(task);
        if (q->zero)
            q->zero[i] = task->zero;
    }
    *extent = (int64_t)count;
    uint32_t rank = q->affine.axis >= 0;
    v->parts[1] = (tn_part){ .role = "scale", .array = { TN_FLOAT32, rank, extent, NULL },
                             .nbytes = count * sizeof *q->scale, .data = q->scale };
    v->parts[2] = (tn_part){ .role = "zero", .array = { TN_INT32, rank, extent, NULL },
                             .nbytes = count * sizeof *q->zero, .data = q->zero };
    v->tensor.nparts = zeros ? 3 : 2;
    return TN_OK;
}

/* ---- reports ---- */

enum { REPORTED = 1024 };       /* elements at a time: a multiple of 8 */

static tn_status plan_values(const tn_view *v, const tn_affine *codes, const tn_scales *scales,
                             tn_affine_plan **values, tn_error *err)
{
    tn_affine_task task = { .affine = codes, .values = TN_FLOAT32, .decodes = true, .scale = scales->scale,
                            .zero = scales->zero };
    *values = tn_arena_alloc(v->arena, sizeof **values);
    TN_TRY(*values ? TN_OK : tn_fail_nomem(err));
    TN_TRY(tn_scale_index_for(v->tensor.rank, v->tensor.shape, scales->axis, &task.index, err));
    return tn_affine_plan_make(*values, &task, err);
}

static tn_status plan_report(tn_view *v, quantizing *q, tn_error *err)
{
    const tn_scales to = { q->affine.axis, q->scale, q->zero };
    int64_t range[2];
    unsigned bits = tn_dtype_get(q->affine.codes)->bits;
    TN_TRY(tn_affine_range(&q->affine, range, err));
    TN_TRY(plan_values(v, &q->affine, &to, &q->values, err));
    for (unsigned k = 0; k < 2; k++) {
        q->last[k] = tn_arena_zalloc(v->arena, REPORTED, (bits + 7) / 8);
        if (!q->last[k])
            return tn_fail_nomem(err);
        for (uint64_t i = 0; i < REPORTED; i++)
            tn_code_put(q->last[k], i, bits, (uint64_t)range[k]);
    }
    v->reports = true;
    return TN_OK;
}

/* At most REPORTED elements. */
static void report_some(const quantizing *q, uint64_t first, size_t n, const uint8_t *in, const uint8_t *out,
                        tn_worker *w)
{
    float x[REPORTED], y[REPORTED], low[REPORTED], high[REPORTED];
    size_t skip = first < w->counted ? (size_t)tn_min_u64(w->counted - first, n) : 0;
    if (q->before)
        tn_affine_decode(q->before, x, in, n, first, 0, NULL, NULL);
    else
        tn_cast_block(&q->plan.cast, x, in, n, first, 0, NULL, NULL);
    tn_affine_decode(q->values, y, out, n, first, 0, NULL, NULL);
    tn_affine_decode(q->values, low, q->last[0], n, first, 0, NULL, NULL);
    tn_affine_decode(q->values, high, q->last[1], n, first, 0, NULL, NULL);
    tn_values_report(x + skip, y + skip, low + skip, high + skip, n - skip, &w->report);
}

tn_status tn_check_refused(tn_refused refused, const tn_quantize_stats *r, tn_error *err)
{
    if (refused.saturated && r->saturated)
        return tn_fail(err, TN_ERR_LOSS, "%llu of %llu values are beyond the largest number of their scale",
                       (unsigned long long)r->saturated, (unsigned long long)r->values);
    if (refused.flushed && r->flushed)
        return tn_fail(err, TN_ERR_LOSS, "%llu of %llu values become 0", (unsigned long long)r->flushed,
                       (unsigned long long)r->values);
    return TN_OK;
}

static tn_status report(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, const uint8_t *out,
                        tn_worker *w, tn_error *err)
{
    const quantizing *q = v->state;
    for (size_t i = 0; i < n && q->values; i += REPORTED) {
        size_t some = n - i < REPORTED ? n - i : REPORTED;
        report_some(q, first + i, some, in + tn_packed_byte(i, v->input->bits),
                    out + tn_packed_byte(i, v->bits), w);
    }
    return tn_in_tensor(tn_check_refused(q->refused, &w->report, err), v->tensor.name, err);
}

/* ---- values into codes ---- */

/* The result has codes of the task's type and these scales. */
static tn_status declare_codes(tn_view *v, const quantizing *q, tn_error *err)
{
    tn_scaling *scaling = tn_arena_zalloc(v->arena, 1, sizeof *scaling);
    if (!scaling)
        return tn_fail_nomem(err);
    scaling->axis = q->affine.axis;
    v->tensor.form = TN_FORM_SCALED;
    v->tensor.scaling = scaling;
    v->parts[0].array.dtype = q->affine.codes;
    tn_status status = tn_affine_range(&q->affine, scaling->range, err);
    return status ? status : tn_view_resize(v, v->parts[0].array.rank, tn_view_shape(v), err);
}

static quantizing *new_quantizing(tn_view *v, const tn_quantize_task *task)
{
    quantizing *q = v->state = tn_arena_alloc(v->arena, sizeof *q);
    if (q) {
        memset(q, 0, offsetof(quantizing, plan));
        q->affine = *task->affine;
        q->options = task->options;
        q->refused = task->refused;
    }
    return q;
}

/* What a search for the scales would refuse. */
static tn_status check_search(const tn_view *v, const quantizing *q, tn_error *err)
{
    tn_scale_tally *tally;
    if (q->options.rule == TN_SCALE_GIVEN)
        return TN_OK;
    TN_TRY(tn_scale_tally_new(&q->affine, &q->options, v->input->parts[0].array.dtype, q->index, &tally,
                              err));
    tn_scale_tally_free(tally);
    return TN_OK;
}

static tn_status describe_quantize(tn_view *v, const void *options, tn_error *err)
{
    const tn_quantize_task *task = options;
    quantizing *q = new_quantizing(v, task);
    TN_TRY(q ? tn_check_floats(v->tensor.dtype, err) : tn_fail_nomem(err));
    TN_TRY(tn_view_take_padding(v, err));
    TN_TRY(add_scales(v, q, task, err));
    tn_affine_task plan = { .affine = &q->affine, .values = v->input->parts[0].array.dtype, .index = q->index,
                            .scale = q->scale, .zero = q->zero, .options = &q->options };
    tn_status status = tn_affine_plan_make(&q->plan, &plan, err);
    q->plan.name = task->name;
    if (!status)
        status = check_search(v, q, err);
    if (!status && task->reports)
        status = plan_report(v, q, err);
    return status ? status : declare_codes(v, q, err);
}

/* ---- the search for scales ---- */

enum {
    SEARCH = 1 << 18,           /* elements that a thread takes at a time */
    KEPT = 1 << 16              /* bytes of a tally that is kept for the next tensor */
};

typedef struct searching {
    const tn_view      *values;
    const tn_preparing *p;
    uint64_t            each;   /* elements of an item */
    uint64_t            done;   /* bytes, in any round: what was told never goes back */
} searching;

/* In windows: data that can only be read in order is one item. */
static tn_status add_item(void *context, uint64_t item, unsigned worker, tn_scale_tally *tally, tn_error *err)
{
    const searching *s = context;
    const tn_view *v = s->values;
    tn_worker *w = s->p->workers[worker];
    uint64_t at = item * s->each, end = at + tn_min_u64(v->count - at, s->each);
    tn_status status = TN_OK;
    w->until = end;
    for (uint64_t n; at < end && !status; at += n) {
        const uint8_t *bytes;
        n = tn_min_u64(end - at, tn_view_window(v));
        status = tn_view_range(v, at, (size_t)n, w, &bytes, err);
        if (!status)
            tn_scale_tally_add(tally, bytes, at, (size_t)n);
    }
    tn_worker_rest(w);
    return status;
}

static tn_status item_done(void *context, uint64_t item, unsigned result, tn_error *err)
{
    searching *s = context;
    const tn_view *v = s->values;
    uint64_t bytes = tn_packed_bytes(tn_min_u64((item + 1) * s->each, v->count), v->bits);
    uint64_t more = bytes > s->done ? bytes - s->done : 0;
    (void)result;
    s->done += more;
    return v->place->walk ? tn_walk_advance(v->place->walk, more, err) : TN_OK;
}

/* The input itself or, as scales do not depend on the order of elements, what it was before a reorder. */
static tn_view *before_reorder(tn_view *v, tn_affine *affine)
{
    while (v->step == &tn_step_reorder) {
        if (affine->axis >= 0)
            affine->axis = (int32_t)tn_reorder_source(v, (uint32_t)affine->axis);
        v = v->input;
    }
    return v;
}

static bool is_read_in_order(const tn_view *v)
{
    return v->step == &tn_step_stored && !v->memory && !tn_part_splits(&tn_stored_tensor(v)->parts[0]);
}

static void free_tally(tn_view *v)
{
    quantizing *q = v->state;
    if (q)
        tn_scale_tally_free(q->tally);
    if (q)
        q->tally = NULL;
}

/* Scales that are searched for are found anew. */
static bool renew(tn_view *v)
{
    v->is_prepared = false;
    return true;
}

static tn_status find_scales(tn_view *v, const tn_preparing *p, tn_error *err)
{
    quantizing *q = v->state;
    tn_affine affine = q->affine;
    tn_view *values = before_reorder(v->input, &affine);
    searching s = { .values = values, .p = p };
    tn_scale_index index;
    s.each = is_read_in_order(values) && values->count ? values->count : SEARCH;
    const tn_scale_source source = { .add = add_item, .done = item_done, .context = &s,
                                     .items = tn_div_up_u64(values->count, s.each) };
    TN_TRY(tn_scale_index_for(values->tensor.rank, tn_view_shape(values), affine.axis, &index, err));
    if (q->tally)
        tn_scale_tally_restart(q->tally);
    else
        TN_TRY(tn_scale_tally_new(&affine, &q->options, values->parts[0].array.dtype, index, &q->tally, err));
    tn_status status = tn_scale_search(q->tally, &source, tn_pool_jobs(p->pool), err);
    if (!status)
        tn_scale_tally_scales(q->tally, q->scale, q->zero);
    if (status || tn_scale_tally_bytes(q->tally) > KEPT)
        free_tally(v);
    return status;
}

static tn_status prepare_quantize(tn_view *v, const tn_preparing *p, tn_error *err)
{
    quantizing *q = v->state;
    tn_status status = tn_view_prepare(v->input, p, err);
    if (!status && v->input->step != &tn_step_stored && !tn_view_has_ranges(v->input))
        status = tn_view_fill(v->input, p, err);
    if (!status && q->options.rule != TN_SCALE_GIVEN)
        status = find_scales(v, p, err);
    return status;
}

static tn_status apply_quantize(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                                tn_error *err)
{
    const quantizing *q = v->state;
    tn_status status = tn_affine_encode(&q->plan, out, in, n, first, v->tensor.rank, tn_view_shape(v), err);
    return tn_view_moved(v, status, err);
}

const tn_affine *tn_quantize_affine(const tn_view *v)
{
    return &((const quantizing *)v->state)->affine;
}

bool tn_quantize_searches(const tn_view *v)
{
    const quantizing *q = v->state;
    return q->options.rule != TN_SCALE_GIVEN;
}

const tn_step tn_step_quantize = {
    .name = "quantize", .most_parts = 3, .describe = describe_quantize, .prepare = prepare_quantize,
    .apply = apply_quantize, .report = report, .renew = renew, .free = free_tally,
};

/* ---- codes into values ---- */

static tn_status describe_dequantize(tn_view *v, const void *options, tn_error *err)
{
    const tn_dequantize_task *task = options;
    const tn_affine affine = { .codes = v->parts[0].array.dtype, .arithmetic = task->arithmetic };
    tn_affine_task plan = { .affine = &affine, .values = task->to, .decodes = true };
    tn_affine_plan *made = v->state = tn_arena_zalloc(v->arena, 1, sizeof *made);
    if (tn_dtype_get(task->to)->kind != TN_KIND_FLOAT)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a scaled tensor becomes a float type, and from there any other");
    TN_TRY(made ? tn_view_scales(v->input, &plan.scale, &plan.zero, err) : tn_fail_nomem(err));
    TN_TRY(wide_scales(v->input, &plan.wide_scale, err));
    TN_TRY(tn_view_check_padding(v, err));
    TN_TRY(tn_scale_index_for(v->tensor.rank, tn_view_shape(v), v->tensor.scaling->axis, &plan.index, err));
    TN_TRY(tn_affine_plan_make(made, &plan, err));
    if (task->cast)
        TN_TRY(tn_affine_plan_cast(made, task->cast, err));
    v->tensor.form = TN_FORM_DENSE;
    v->tensor.scaling = NULL;
    v->tensor.nparts = 1;
    v->tensor.dtype = v->parts[0].array.dtype = task->to;
    return tn_view_resize(v, v->parts[0].array.rank, tn_view_shape(v), err);
}

static tn_status apply_dequantize(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                                  tn_error *err)
{
    tn_status status = tn_affine_decode(v->state, out, in, n, first, v->tensor.rank, tn_view_shape(v), err);
    return tn_view_moved(v, status, err);
}

const tn_step tn_step_dequantize = { .name = "dequantize", .describe = describe_dequantize,
                                     .apply = apply_dequantize };

/* ---- codes into codes ---- */

static tn_requantize_options requantize_options(const quantizing *q)
{
    return (tn_requantize_options){ .size = sizeof(tn_requantize_options), .round = q->options.round,
                                    .seed = q->options.seed, .arithmetic = q->affine.arithmetic,
                                    .range = { q->affine.range[0], q->affine.range[1] } };
}

/* The plan has the new scales as they are now. */
static tn_status plan_requantize(const tn_view *v, quantizing *q, tn_error *err)
{
    const tn_requantize_options o = requantize_options(q);
    const tn_scales to = { .axis = q->affine.axis, .scale = q->scale, .zero = q->zero };
    return tn_requant_plan_make(&q->recode, q->affine.codes, &to, v->input->parts[0].array.dtype, &q->from,
                                v->tensor.rank, v->tensor.shape, &o, err);
}

static tn_status describe_requantize(tn_view *v, const void *options, tn_error *err)
{
    const tn_quantize_task *task = options;
    quantizing *q = new_quantizing(v, task);
    TN_TRY(q ? tn_view_take_padding(v, err) : tn_fail_nomem(err));
    TN_TRY(add_scales(v, q, task, err));
    q->from.axis = v->input->tensor.scaling->axis;
    TN_TRY(tn_view_scales(v->input, &q->from.scale, &q->from.zero, err));
    TN_TRY(tn_affine_range(&q->affine, q->affine.range, err));
    TN_TRY(plan_requantize(v, q, err));
    const tn_affine before = { .codes = v->input->parts[0].array.dtype };
    if (task->reports)
        TN_TRY(plan_values(v, &before, &q->from, &q->before, err));
    if (task->reports)
        TN_TRY(plan_report(v, q, err));
    return declare_codes(v, q, err);
}

/* The power of two at which no code is cut. */
static tn_status prepare_requantize(tn_view *v, const tn_preparing *p, tn_error *err)
{
    quantizing *q = v->state;
    const tn_requantize_options o = requantize_options(q);
    tn_status status = tn_view_prepare(v->input, p, err);
    if (status || q->options.rule == TN_SCALE_GIVEN)
        return status;
    status = tn_find_power(v->input, q->affine.codes, &o, p->workers[0], q->scale, err);
    return status ? status : plan_requantize(v, q, err);
}

static tn_status apply_requantize(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                                  tn_error *err)
{
    const quantizing *q = v->state;
    (void)err;
    tn_requantize_block(&q->recode, out, in, n, first);
    return TN_OK;
}

const tn_step tn_step_requantize = {
    .name = "requantize", .most_parts = 3, .describe = describe_requantize, .prepare = prepare_requantize,
    .apply = apply_requantize, .report = report,
};
