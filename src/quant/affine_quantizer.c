/* quant/affine_quantizer.c - the quantizer of affine datatypes: integer codes with one
 * scale per tensor or per index of a dimension. */
#include "quant/quantizer.h"
#include "quant/scale_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/array.h"

enum { ITEM = 1 << 16 };        /* elements per item when searching scales */

typedef struct affine_state {
    tn_scale_index index;
    float         *scale;       /* in the part or in `own` */
    int32_t       *zero;        /* may be NULL */
    void          *own;         /* used if the plan has no memory for scales */
    tn_affine_plan encode, decode;      /* from and to float32 */
} affine_state;

/* --- scales ---------------------------------------------------------------------- */

static tn_status add_item(void *context, uint64_t item, unsigned worker, tn_scale_tally *tally, tn_error *err)
{
    const tn_scaled_job *j = context;
    tn_scaled_scratch *w = &j->scratches[worker];
    uint64_t first = item * ITEM;
    size_t n = (size_t)tn_min_u64(j->plan.count - first, ITEM);
    TN_TRY(tn_job_open_values(j, w, &j->results[worker], first, n, err));
    tn_scale_tally_add(tally, w->src + (first - w->src_first) * j->src_size, first, n);
    return TN_OK;
}

static tn_status find_scales(tn_scaled_job *j, affine_state *a, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    const tn_scale_source source = { .add = add_item, .context = j, .items = tn_div_up_u64(p->count, ITEM) };
    tn_scale_tally *tally;
    tn_dtype from = j->rotates ? TN_FLOAT32 : j->work->src_type;
    TN_TRY(tn_job_workers(j, err));
    TN_TRY(tn_scale_tally_new(&p->d->affine, &p->o, from, a->index, &tally, err));
    tn_status status = tn_scale_search(tally, &source, tn_pool_jobs(j->work->pool), err);
    if (!status)
        tn_scale_tally_scales(tally, a->scale, a->zero);
    tn_scale_tally_free(tally);
    return status;
}

/* Sets the memory of scales and zero points, and their values if the caller gives them. */
static tn_status set_scales(const tn_scaled_job *j, affine_state *a, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    TN_TRY(tn_scale_index_for(p->rank, p->shape, p->d->affine.axis, &a->index, err));
    a->scale = (float *)(void *)p->scale.data;
    a->zero = (int32_t *)(void *)p->zero.data;
    if (!a->scale && a->index.count) {
        a->own = calloc((size_t)a->index.count, sizeof(float) + sizeof(int32_t));
        TN_NEED(a->own, err);
        a->scale = a->own;
        a->zero = p->d->has_zero ? (int32_t *)(void *)(a->scale + a->index.count) : NULL;
    }
    for (uint64_t i = 0; i < a->index.count && j->work->scale > 0; i++) {
        a->scale[i] = j->work->scale;
        if (a->zero)
            a->zero[i] = j->work->zero;
    }
    return TN_OK;
}

static tn_status set_plans(const tn_scaled_job *j, affine_state *a, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    tn_affine_task task = { .affine = &p->d->affine, .values = TN_FLOAT32, .index = a->index,
                            .scale = a->scale, .zero = a->zero, .options = &p->o };
    tn_status status = tn_affine_plan_make(&a->encode, &task, err);
    a->encode.name = tn_affine_name(&p->d->affine);
    a->encode.stream = j->streams_codes;
    task.decodes = true;
    return status ? status : tn_affine_plan_make(&a->decode, &task, err);
}

/* --- encoding ---------------------------------------------------------------------- */

static tn_status prepare(tn_scaled_job *j, tn_error *err)
{
    affine_state *a = j->state = calloc(1, sizeof *a);
    TN_NEED(a, err);
    tn_status status = set_scales(j, a, err);
    if (status == TN_OK && j->plan.o.rule != TN_SCALE_GIVEN)
        status = find_scales(j, a, err);
    j->decoder = &a->decode;
    return status ? status : set_plans(j, a, err);
}

static tn_status encode(const tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f, uint64_t batch,
                        uint64_t piece, tn_error *err)
{
    const affine_state *a = j->state;
    tn_job_block b = tn_job_block_of(j, w, batch);
    (void)piece;
    TN_TRY(tn_affine_encode(&a->encode, b.codes, b.x, b.n, b.first, j->plan.rank, j->plan.shape, err));
    tn_job_decode_block(j, w, f, &b);
    return TN_OK;
}

static void end(tn_scaled_job *j)
{
    affine_state *a = j->state;
    if (a)
        free(a->own);
    free(a);
}

/* --- decoding ------------------------------------------------------------------------ */

/* Copies scales and zero points: parts may not be aligned. */
static tn_status copy_scales(tn_part_values *v, tn_affine_task *task, tn_error *err)
{
    const tn_scaled_plan *p = v->plan;
    size_t scales = (size_t)p->scale.nbytes, zeros = p->zero.data ? (size_t)p->zero.nbytes : 0;
    uint8_t *copy = v->scales = malloc(scales + zeros + 1);
    TN_NEED(copy, err);
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
    TN_TRY(tn_scale_index_for(p->rank, p->shape, p->d->affine.axis, &task.index, err));
    TN_TRY(copy_scales(v, &task, err));
    tn_affine_plan *plan = malloc(sizeof *plan);
    v->affine = plan;
    TN_NEED(plan, err);
    TN_TRY(tn_affine_plan_make(plan, &task, err));
    plan->stream = v->stream;
    return TN_OK;
}

static const uint8_t *codes_at(const tn_part_values *v, uint64_t element)
{
    const tn_scaled_field *data = &v->plan->data;
    return data->data + (tn_packed_byte(element, data->bits) - data->from);
}

/* Decodes codes that do not begin on a byte, together with those before them. */
static size_t read_head(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    enum { ON_BYTES = 8 };      /* codes of any width */
    float head[ON_BYTES];
    size_t skip = (size_t)(first % ON_BYTES), some = tn_min_u64(n, ON_BYTES - skip);
    const uint8_t *codes = codes_at(v, first - skip);
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
    const uint8_t *codes = codes_at(v, first + head);
    tn_affine_decode(v->affine, y + head, codes, n - head, first + head, 0, NULL, NULL);
}

static void close(tn_part_values *v)
{
    free((void *)(uintptr_t)v->affine);
    free(v->scales);
    v->affine = NULL;
    v->scales = NULL;
}

/* --- the quantizer --------------------------------------------------------------------- */

static tn_status check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    bool given = o->rule == TN_SCALE_GIVEN;
    if (o->unpacked || o->ggml || o->store != TN_UNKNOWN)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s has one way to store codes: expected none of unpacked, store and ggml", d->text);
    if (!given && o->rule != TN_SCALE_MAX && o->rule != TN_SCALE_MSE)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s has no exponents as scales: expected the scale rule %d, %d or %d but found %d",
                       d->text, TN_SCALE_MAX, TN_SCALE_MSE, TN_SCALE_GIVEN, (int)o->rule);
    if (given && o->percentile != 0 && o->percentile != 100)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a scale is given or found by a percentile, not both");
    return TN_OK;
}

const tn_quantizer tn_affine_quantizer = {
    .name = "affine", .is_text = tn_affine_is_text, .parse = tn_affine_parse, .shapes = tn_affine_shapes,
    .check = check, .prepare = prepare, .encode = encode, .end = end,
    .open = open, .read = read_values, .close = close,
};
