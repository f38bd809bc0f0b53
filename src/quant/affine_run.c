/* quant/affine_run.c - all of a tensor into codes with scales along whole
 * dimensions, and any range of it back: elements follow one another. */
#include "quant/quantizer.h"
#include "quant/rotate.h"
#include "quant/scale_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/array.h"

enum {
    ITEM = 1 << 16,             /* elements a thread takes at a time: whole bytes and blocks of rotations */
    STREAM_BYTES = 4 << 20      /* an output of this size does not stay in the cache */
};

/* What one thread works with. */
typedef struct scratch {
    float   *x, *y;             /* values as float32, and what they become */
    float   *last[2];           /* what the lowest and the highest code stand for */
    uint8_t *codes;
} scratch;

/* What one item hands on, in order. */
typedef struct result {
    uint8_t *bytes;
    size_t   nbytes;
    tn_quantize_stats stats;
} result;

typedef struct job {
    const tn_scaled_work *work;
    const tn_scaled_plan *plan;
    tn_scale_index index;
    float         *scale;       /* of the plan, or our own */
    int32_t       *zero;        /* or NULL */
    void          *own;
    bool           turns, gives_values, gives_codes;
    size_t         src_size, dst_size;
    tn_affine_plan encode, decode;      /* from and to float32, or from the values as they are */
    tn_cast_plan   widen, give;
    uint8_t       *last[2];     /* nothing but the lowest and the highest code, for reports */
    scratch          *scratches;
    result        *results;
} job;

/* --- values ---------------------------------------------------------------------- */

static uint64_t items_of(const job *j)
{
    return tn_div_up_u64(j->plan->count, ITEM);
}

static size_t item_size(const job *j, uint64_t item)
{
    return (size_t)tn_min_u64(j->plan->count - item * ITEM, ITEM);
}

static const uint8_t *source_at(const job *j, uint64_t first)
{
    return (const uint8_t *)j->work->src + first * j->src_size;
}

/* float32, rotated where they are to be. */
static void load(const job *j, float *x, uint64_t first, size_t n)
{
    tn_cast_block(&j->widen, x, source_at(j, first), n, 0, 0, NULL, NULL);      /* refuses nothing */
    if (j->turns)
        tn_rotate_blocks(&j->plan->o.rotation, false, x, n / j->plan->o.rotation.size);
}

/* --- scales ---------------------------------------------------------------------- */

static tn_status add_item(void *context, uint64_t item, unsigned worker, tn_scale_tally *tally, tn_error *err)
{
    const job *j = context;
    uint64_t first = item * ITEM;
    size_t n = item_size(j, item);
    (void)err;
    float *x = j->scratches[worker].x;
    if (j->turns)
        load(j, x, first, n);
    tn_scale_tally_add(tally, j->turns ? (const uint8_t *)x : source_at(j, first), first, n);
    return TN_OK;
}

static tn_status find_scales(job *j, tn_error *err)
{
    const tn_scaled_plan *p = j->plan;
    tn_scale_tally *tally;
    const tn_scale_source source = { .add = add_item, .context = j, .items = items_of(j) };
    tn_status status = tn_scale_tally_new(&p->d->affine, &p->o, j->turns ? TN_FLOAT32 : j->work->src_type,
                                          j->index, &tally, err);
    if (status != TN_OK)
        return status;
    status = tn_scale_search(tally, &source, tn_pool_jobs(j->work->pool), err);
    if (status == TN_OK)
        tn_scale_tally_scales(tally, j->scale, j->zero);
    tn_scale_tally_free(tally);
    return status;
}

/* --- codes ----------------------------------------------------------------------- */

/* What the codes stand for, where somebody wants to know. */
static tn_status give(const job *j, scratch *w, result *r, const uint8_t *codes, uint64_t first, size_t n)
{
    const tn_scaled_plan *p = j->plan;
    if (!j->gives_values && !j->work->report)
        return TN_OK;
    tn_affine_decode(&j->decode, w->y, codes, n, first, 0, NULL, NULL);
    if (j->work->report) {
        if (!j->turns)
            load(j, w->x, first, n);
        for (unsigned i = 0; i < 2; i++)
            tn_affine_decode(&j->decode, w->last[i], j->last[i], n, first, 0, NULL, NULL);
        tn_values_report(w->x, w->y, w->last[0], w->last[1], n, &r->stats);
    }
    if (!j->gives_values)
        return TN_OK;
    if (j->turns)
        tn_rotate_blocks(&p->o.rotation, true, w->y, n / p->o.rotation.size);
    uint8_t *to = j->work->emit ? r->bytes : (uint8_t *)j->work->dst + first * j->dst_size;
    r->nbytes = n * j->dst_size;
    return tn_cast_block(&j->give, to, w->y, n, first, p->rank, p->shape, NULL);        /* refuses nothing */
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    const tn_scaled_plan *p = j->plan;
    scratch *w = &j->scratches[use.scratch];
    result *r = &j->results[use.result];
    uint64_t first = item * ITEM;
    size_t n = item_size(j, item);
    uint8_t *codes = w->codes;
    r->stats = (tn_quantize_stats){ 0 };
    if (j->gives_codes)
        codes = r->bytes;
    else if (p->data.data)
        codes = p->data.data + tn_packed_byte(first, p->data.bits);
    r->nbytes = (size_t)tn_packed_bytes(n, p->data.bits);
    if (j->turns)
        load(j, w->x, first, n);
    const uint8_t *values = j->turns ? (const uint8_t *)w->x : source_at(j, first);
    tn_status status = tn_affine_encode(&j->encode, codes, values, n, first, p->rank, p->shape, err);
    return status ? status : give(j, w, r, codes, first, n);
}

static tn_status emit(void *context, uint64_t item, unsigned slot, tn_error *err)
{
    const job *j = context;
    const result *r = &j->results[slot];
    (void)item;
    if (j->work->report)
        tn_quantize_stats_add(j->work->report, &r->stats);
    return j->work->emit ? j->work->emit(j->work->context, r->bytes, r->nbytes, err) : TN_OK;
}

/* --- memory ---------------------------------------------------------------------- */

static bool set_scratch(const job *j, scratch *w)
{
    size_t n = (size_t)tn_min_u64(j->plan->count, ITEM);
    w->x = malloc(4 * n * sizeof *w->x + n * sizeof(int32_t) + 1);
    w->y = w->x + n;
    w->last[0] = w->y + n;
    w->last[1] = w->last[0] + n;
    w->codes = (uint8_t *)(w->last[1] + n);
    return w->x != NULL;
}

static bool set_last(job *j)
{
    unsigned bits = j->plan->data.bits;
    for (unsigned k = 0; k < 2; k++) {
        j->last[k] = calloc(1, ITEM * sizeof(int32_t));
        for (size_t i = 0; j->last[k] && i < ITEM; i++)
            tn_code_put(j->last[k], i, bits, (uint64_t)j->plan->d->affine.range[k]);
    }
    return j->last[0] && j->last[1];
}

static tn_status set_memory(job *j, tn_error *err)
{
    const tn_scaled_work *w = j->work;
    unsigned jobs = tn_pool_jobs(w->pool), slots = tn_pool_results(w->pool);
    size_t each = j->gives_codes ? sizeof(int32_t) : j->dst_size;
    j->scratches = calloc(jobs, sizeof *j->scratches);
    j->results = calloc(slots, sizeof *j->results);
    bool good = j->scratches && j->results && (!w->report || set_last(j));
    for (unsigned i = 0; i < jobs && good; i++)
        good = set_scratch(j, &j->scratches[i]);
    for (unsigned i = 0; i < slots && good && w->emit; i++)
        good = (j->results[i].bytes = malloc(ITEM * each)) != NULL;
    return good ? TN_OK : tn_fail_nomem(err);
}

static void free_job(job *j)
{
    for (unsigned i = 0; j->scratches && i < tn_pool_jobs(j->work->pool); i++)
        free(j->scratches[i].x);
    for (unsigned i = 0; j->results && i < tn_pool_results(j->work->pool); i++)
        free(j->results[i].bytes);
    free(j->last[0]);
    free(j->last[1]);
    free(j->scratches);
    free(j->results);
    free(j->own);
    free(j);
}

/* Those of the plan where it has them. */
static tn_status set_scales(job *j, tn_error *err)
{
    const tn_scaled_plan *p = j->plan;
    tn_status status = tn_scale_index_for(p->rank, p->shape, p->d->affine.axis, &j->index, err);
    if (status != TN_OK)
        return status;
    j->scale = (float *)(void *)p->scale.data;
    j->zero = (int32_t *)(void *)p->zero.data;
    if (!j->scale && j->index.count) {
        j->own = calloc((size_t)j->index.count, sizeof(float) + sizeof(int32_t));
        if (!j->own)
            return tn_fail_nomem(err);
        j->scale = j->own;
        j->zero = p->d->has_zero ? (int32_t *)(void *)(j->scale + j->index.count) : NULL;
    }
    for (uint64_t i = 0; i < j->index.count && j->work->scale > 0; i++) {
        j->scale[i] = j->work->scale;
        if (j->zero)
            j->zero[i] = j->work->zero;
    }
    return TN_OK;
}

/* --- encoding ---------------------------------------------------------------------- */

static tn_status set_plans(job *j, tn_error *err)
{
    const tn_scaled_work *w = j->work;
    const tn_affine *a = &j->plan->d->affine;
    tn_affine_task task = { .affine = a, .values = j->turns ? TN_FLOAT32 : w->src_type, .index = j->index,
                            .scale = j->scale, .zero = j->zero, .options = &j->plan->o };
    tn_status status = tn_affine_plan_make(&j->encode, &task, err);
    j->encode.name = tn_affine_name(a);
    task.decodes = true;
    task.values = TN_FLOAT32;
    if (status == TN_OK)
        status = tn_affine_plan_make(&j->decode, &task, err);
    if (status == TN_OK)
        status = tn_cast_plan_make(&j->widen, TN_FLOAT32, w->src_type, TN_HOST_ORDER, NULL, err);
    if (status == TN_OK && j->gives_values)
        status = tn_cast_plan_make(&j->give, w->dst_type, TN_FLOAT32, TN_HOST_ORDER, w->cast, err);
    return status;
}

static tn_status encode_all(job *j, tn_error *err)
{
    const tn_scaled_plan *p = j->plan;
    tn_status status = set_scales(j, err);
    if (status == TN_OK)
        status = set_memory(j, err);
    if (status == TN_OK)
        status = tn_cast_plan_make(&j->widen, TN_FLOAT32, j->work->src_type, TN_HOST_ORDER, NULL, err);
    if (status == TN_OK && p->o.rule != TN_SCALE_GIVEN)
        status = find_scales(j, err);
    if (status == TN_OK)
        status = set_plans(j, err);
    if (status != TN_OK)
        return status;
    j->encode.stream = p->data.data && p->data.nbytes >= STREAM_BYTES;
    return tn_pool_run(j->work->pool, items_of(j), &(tn_ordered){ .work = work, .emit = emit, .context = j },
                       err);
}

static tn_status encode(const tn_scaled_work *w, tn_error *err)
{
    job *j = calloc(1, sizeof *j);      /* cast plans: too large for a stack */
    if (!j)
        return tn_fail_nomem(err);
    j->work = w;
    j->plan = w->plan;
    j->turns = w->plan->o.rotation.size && w->plan->count;
    j->gives_values = tn_dtype_get(w->dst_type) && (w->dst || w->emit);
    j->gives_codes = w->emit && !j->gives_values;
    j->src_size = tn_dtype_get(w->src_type)->bits / 8;
    j->dst_size = j->gives_values ? tn_dtype_get(w->dst_type)->bits / 8 : 0;
    tn_status status = encode_all(j, err);
    if (status == TN_OK && !w->plan->count && w->emit)
        status = w->emit(w->context, NULL, 0, err);
    free_job(j);
    return status;
}

/* --- decoding ------------------------------------------------------------------------ */

/* Scales and zero points where floats may lie. */
static tn_status copy_scales(tn_part_values *v, tn_affine_task *task, tn_error *err)
{
    const tn_scaled_plan *p = v->plan;
    size_t scales = (size_t)p->scale.nbytes, zeros = p->zero.data ? (size_t)p->zero.nbytes : 0;
    uint8_t *copy = v->scales = malloc(scales + zeros + 1);
    if (!copy)
        return tn_fail_nomem(err);
    if (scales)
        memcpy(copy, p->scale.data, scales);
    if (zeros)
        memcpy(copy + scales, p->zero.data, zeros);
    task->scale = (const float *)(const void *)copy;
    task->zero = p->zero.data ? (const int32_t *)(const void *)(copy + scales) : NULL;
    return TN_OK;
}

static tn_status open(tn_part_values *v, tn_error *err)
{
    const tn_scaled_plan *p = v->plan;
    tn_affine_task task = { .affine = &p->d->affine, .values = TN_FLOAT32, .decodes = true };
    tn_status status = tn_scale_index_for(p->rank, p->shape, p->d->affine.axis, &task.index, err);
    if (status == TN_OK)
        status = copy_scales(v, &task, err);
    if (status != TN_OK)
        return status;
    v->affine = malloc(sizeof *v->affine);
    if (!v->affine)
        return tn_fail_nomem(err);
    status = tn_affine_plan_make(v->affine, &task, err);
    v->affine->stream = v->stream;
    return status;
}

/* Codes that do not begin on a byte come with those before them. */
static size_t read_head(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    enum { ON_BYTES = 8 };      /* codes of any width */
    float head[ON_BYTES];
    size_t skip = (size_t)(first % ON_BYTES), some = tn_min_u64(n, ON_BYTES - skip);
    const uint8_t *codes = v->plan->data.data + tn_packed_byte(first - skip, v->plan->data.bits);
    tn_affine_decode(v->affine, head, codes, skip + some, first - skip, 0, NULL, NULL);
    memcpy(y, head + skip, some * sizeof *y);
    return some;
}

static void read_values(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    unsigned bits = v->plan->data.bits;
    size_t head = bits < 8 && first % 8 && n ? read_head(v, first, n, y) : 0;
    if (head == n)
        return;
    const uint8_t *codes = v->plan->data.data + tn_packed_byte(first + head, bits);
    tn_affine_decode(v->affine, y + head, codes, n - head, first + head, 0, NULL, NULL);
}

static void close(tn_part_values *v)
{
    free(v->affine);
    free(v->scales);
    v->affine = NULL;
    v->scales = NULL;
}

/* --- the row -------------------------------------------------------------------------- */

static tn_status check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    bool gives = o->rule == TN_SCALE_GIVEN;
    if (o->unpacked || o->ggml || o->store != TN_UNKNOWN)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s has one way to store codes: expected none of unpacked, store and ggml", d->text);
    if (!gives && o->rule != TN_SCALE_MAX && o->rule != TN_SCALE_MSE)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s has no exponents as scales: expected the scale rule %d, %d or %d but found %d",
                       d->text, TN_SCALE_MAX, TN_SCALE_MSE, TN_SCALE_GIVEN, (int)o->rule);
    if (gives && o->percentile != 0 && o->percentile != 100)
        return tn_fail(err, TN_ERR_ARGUMENT, "a scale is given or found by a percentile, not both");
    return TN_OK;
}

static bool always(const tn_scaled_plan *plan)
{
    (void)plan;
    return true;
}

static bool turns(const tn_scaled_plan *plan)
{
    return plan->o.rotation.size && plan->count;
}

const tn_quantizer tn_affine_quantizer = {
    .name = "affine", .is_text = tn_affine_is_text, .parse = tn_affine_parse, .shapes = tn_affine_shapes,
    .check = check, .streams = always, .turns = turns, .encode = encode,
    .open = open, .read = read_values, .close = close,
};
