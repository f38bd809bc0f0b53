/* quant/job.c - set up the encoding of a tensor: memory and casts. */
#include "quant/quantizer.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/array.h"

enum {
    ITEM = 1 << 17,             /* default values per item; large tiles have more */
    STREAM_BYTES = 4 << 20      /* outputs of this size are written past the caches */
};

typedef tn_scaled_job job;
typedef tn_scaled_scratch scratch;
typedef tn_scaled_result result;
typedef tn_scaled_group group;

/* --- kinds of plans ----------------------------------------------------------------- */

/* Whether a scale and a zero point are all that the pieces of a tile share. */
static bool has_plain_pieces(const tn_scaled_plan *p)
{
    bool follow = p->tiles_across == 1; /* else pieces of several tiles would be one item */
    return follow && !p->d->of && !p->d->offset_bits && p->d->number.kind != TN_NUMBER_CODEBOOK;
}

bool tn_scaled_streams(const tn_scaled_plan *p)
{
    return p->is_cut || (tn_scaled_is_flat(p) && (tn_scaled_pieces(p) == 1 || has_plain_pieces(p)));
}

/* Items and rows must begin and end with a block of the rotation. */
bool tn_scaled_rotates(const tn_scaled_plan *p)
{
    uint64_t size = p->o.rotation.size,
             columns = tn_scaled_pieces(p) > 1 ? p->piece_columns : p->batch_across * p->tile_columns;
    return size && p->count && tn_scaled_streams(p) &&
           (p->is_cut || columns >= p->columns || columns % size == 0);
}

/* --- memory ------------------------------------------------------------------------- */

/* The widest elements come first, so that all arrays are aligned. */
static void lay_out_arrays(const job *j, scratch *w)
{
    size_t n = j->max_values;
    uint8_t *p = w->block;
    w->index = (uint64_t *)(void *)p;
    w->elements = p += n * sizeof(uint64_t);
    w->x = (float *)(void *)(p += n * sizeof(uint64_t));
    w->y = w->x + n;
    w->last[0] = w->y + n;
    w->last[1] = w->last[0] + n;
    w->rotated = w->last[1] + n;
    w->decoded = w->rotated + j->max_rotated;
    w->tile = (tn_tile){ .x = w->x, .index = w->index, .scratch = w->y,
                         .code = (uint32_t *)(void *)(w->decoded + j->max_rotated) };
    w->tile.offset = (uint8_t *)(w->tile.code + n);
    w->tile.meta = w->tile.offset + n;
    w->tile.mask = w->tile.meta + n;
    p = w->tile.mask + n;
    for (unsigned i = 0; i < TN_SCALED_FIELDS; p += j->max_bytes[i++])
        w->window[i] = p;
}

tn_status tn_scratch_fit(const job *j, scratch *w, tn_error *err)
{
    size_t each = sizeof(uint64_t) * 2 + sizeof(float) * 4 + sizeof(uint32_t) + 3,
           size = j->max_values * each + 2 * j->max_rotated * sizeof(float);
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++)
        size += j->max_bytes[i];
    if (size > w->size) {
        free(w->block);
        w->block = malloc(size);
        w->size = w->block ? size : 0;
    }
    TN_NEED(w->block, err);
    lay_out_arrays(j, w);
    return TN_OK;
}

void tn_scratch_free(scratch *w)
{
    free(w->block);
    *w = (scratch){ 0 };
}

static tn_status set_result(const job *j, result *f, tn_error *err)
{
    size_t tiles = (size_t)(j->plan.batch_across * j->plan.batch_inner);
    if (!j->groups)
        return tn_result_fit(j, f, err);
    f->ranges = calloc(tiles, sizeof *f->ranges);
    f->squares = calloc(tiles, sizeof *f->squares);
    return f->ranges && f->squares ? tn_result_fit(j, f, err) : tn_fail_nomem(err);
}

tn_status tn_result_fit(const job *j, result *f, tn_error *err)
{
    if (f->cap >= j->max_result && f->bytes)
        return TN_OK;
    free(f->bytes);
    f->bytes = malloc(j->max_result + 1);
    f->cap = f->bytes ? j->max_result : 0;
    return f->bytes ? TN_OK : tn_fail_nomem(err);
}

void tn_result_free(result *f)
{
    free(f->ranges);
    free(f->squares);
    free(f->bytes);
    *f = (result){ 0 };
}

static uint64_t groups_of(const tn_scaled_plan *p)
{
    return p->outer * p->tiles_down * p->tiles_across * p->inner;
}

static tn_status set_groups(job *j, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    uint64_t tiles = groups_of(p), bytes;
    if (tn_scaled_pieces(p) == 1)
        return TN_OK;
    j->groups = tn_mul_u64(tiles, sizeof *j->groups, &bytes) && bytes <= SIZE_MAX
                    ? calloc((size_t)tiles, sizeof *j->groups)
                    : NULL;
    return j->groups ? TN_OK : tn_fail_nomem(err);
}

/* The most columns of a batch. */
static uint64_t batch_columns(const tn_scaled_plan *p)
{
    return tn_min_u64(tn_min_u64(p->batch_across, p->tiles_across) * p->tile_columns, p->columns);
}

/* Sets the most bytes of each field per item.  Returns the most values per item. */
static uint64_t set_window_sizes(job *j)
{
    const tn_scaled_plan *p = &j->plan;
    bool pieces = tn_scaled_pieces(p) > 1;
    uint64_t columns = pieces ? tn_min_u64(p->piece_columns, p->columns) : batch_columns(p),
             bands = pieces ? 1 : j->per_item / p->band, rows = pieces ? p->piece_rows : bands * p->tile_rows;
    if (p->tile_rows > 1 && !tn_scaled_is_flat(p))
        columns = p->columns;           /* of a band, whose tiles are side by side */
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++)
        if (j->windows && p->fields[i].nbytes)
            j->max_bytes[i] =
                (size_t)((i ? bands : rows) * tn_scaled_byte_at(p, i, 0, pieces && i ? p->columns : columns));
    return rows * columns * p->inner;
}

/* Fills j->last with n codes each. */
static tn_status set_last(job *j, uint64_t n, tn_error *err)
{
    uint32_t codes[2];
    if (j->plan.d->block)       /* has no such codes */
        return TN_OK;
    unsigned bits = j->plan.data.bits < 8 ? j->plan.data.bits : tn_scaled_word(j->plan.data.bits);
    tn_last_codes(j->plan.d, codes);
    for (unsigned k = 0; k < 2; k++) {
        j->last[k] = calloc(1, (size_t)tn_packed_bytes(n, bits));
        TN_NEED(j->last[k], err);
        for (uint64_t i = 0; i < n; i++)
            tn_code_put(j->last[k], i, bits, codes[k]);
    }
    return TN_OK;
}

static tn_status set_up(job *j, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    uint64_t size = p->piece_rows * p->piece_columns, n = tn_min_u64(p->count, TN_SCALED_MEASURE),
             item = j->work->item ? j->work->item : ITEM;
    n = size > n ? size : n;
    uint64_t values_of_batch = size * p->batch_inner * tn_min_u64(p->batch_across, p->tiles_across);
    j->per_item = tn_min_u64((item / (values_of_batch * p->band) + 1) * p->band, p->batches);
    uint64_t values = set_window_sizes(j);
    if (j->windows && tn_scaled_is_flat(p) && tn_scaled_pieces(p) == 1 && batch_columns(p) > n)
        n = batch_columns(p);
    j->max_values = (size_t)n;
    if (j->by_items)
        j->max_result = j->wants_values ? (size_t)values * j->out_size : j->max_bytes[0];
    if (j->rotates)
        j->max_rotated = (size_t)(values > n ? values : n);
    tn_status status = j->windows && j->work->report ? set_last(j, n, err) : TN_OK;
    return status ? status : set_groups(j, err);
}

static tn_status set_workers(job *j, tn_error *err)
{
    unsigned results = tn_pool_results(j->work->pool), jobs = tn_pool_jobs(j->work->pool);
    j->scratches = calloc(jobs, sizeof *j->scratches);
    j->results = calloc(results, sizeof *j->results);
    tn_status status = j->scratches && j->results ? TN_OK : tn_fail_nomem(err);
    for (unsigned i = 0; i < jobs && status == TN_OK; i++) {
        status = tn_scratch_fit(j, &j->scratches[i], err);
        j->scratches[i].reader = j->work->readers ? j->work->readers[i] : NULL;
    }
    for (unsigned i = 0; i < results && status == TN_OK; i++)
        status = set_result(j, &j->results[i], err);
    return status;
}

tn_status tn_job_workers(job *j, tn_error *err)
{
    return j->scratches || !j->plan.count ? TN_OK : set_workers(j, err);
}

void tn_scaled_job_free(job *j)
{
    if (!j)
        return;
    const tn_quantizer *q = j->plan.d->quantizer;
    if (q->end)
        q->end(j);
    free(j->last[0]);
    free(j->last[1]);
    for (unsigned i = 0; j->scratches && i < tn_pool_jobs(j->work->pool); i++)
        tn_scratch_free(&j->scratches[i]);
    for (unsigned i = 0; j->results && i < tn_pool_results(j->work->pool); i++)
        tn_result_free(&j->results[i]);
    free(j->scratches);
    free(j->results);
    free(j->groups);
    free(j);
}

static size_t bytes_of(tn_dtype dtype)
{
    return tn_dtype_get(dtype)->bits / 8;
}

static tn_status set_casts(job *j, tn_error *err)
{
    const tn_scaled_work *w = j->work;
    j->src_type = j->rotates ? TN_FLOAT32 : w->src_type;
    j->src_size = bytes_of(j->src_type);
    TN_TRY(tn_cast_plan_make(&j->widen, TN_FLOAT32, j->src_type, TN_HOST_ORDER, NULL, err));
    if (j->rotates)
        TN_TRY(tn_cast_plan_make(&j->cast_in, TN_FLOAT32, w->src_type, TN_HOST_ORDER, NULL, err));
    if (!j->wants_values)
        return TN_OK;
    j->dst_type = j->rotates ? TN_FLOAT32 : w->dst_type;
    j->dst_size = bytes_of(j->dst_type);
    j->out_size = bytes_of(w->dst_type);
    TN_TRY(tn_cast_plan_make(&j->narrow, j->dst_type, TN_FLOAT32, TN_HOST_ORDER, j->rotates ? NULL : w->cast,
                             err));
    if (j->rotates)
        TN_TRY(tn_cast_plan_make(&j->cast_out, w->dst_type, TN_FLOAT32, TN_HOST_ORDER, w->cast, err));
    return TN_OK;
}

/* Clears packed numbers that several items share.  Items clear the others. */
static void clear_parts(const job *j)
{
    for (unsigned i = 0; i < TN_SCALED_FIELDS; i++) {
        const tn_scaled_field *field = &j->plan.fields[i];
        bool item_clears = j->windows && (i == 0 || tn_scaled_pieces(&j->plan) == 1);
        if (field->data && field->bits < 8 && !item_clears)
            memset(field->data, 0, (size_t)field->nbytes);
    }
}

bool tn_job_restart(job *j)
{
    if (j->state || j->plan.d->is_affine)
        return false;
    j->tensor_scale = 1;
    j->tscale = 0;
    j->range = (tn_tile_range){ 0 };
    if (j->groups)
        memset(j->groups, 0, (size_t)groups_of(&j->plan) * sizeof *j->groups);
    clear_parts(j);
    return true;
}

tn_status tn_scaled_job_new(const tn_scaled_work *work, job **out, tn_error *err)
{
    const tn_scaled_plan *p = work->plan;
    job *j = *out = malloc(sizeof *j);          /* too large for a stack */
    TN_NEED(j, err);
    memset(j, 0, offsetof(job, widen));         /* the plans of casts are made below, those that are used */
    j->work = work;
    j->plan = *p;
    j->tensor_scale = 1;
    j->windows = tn_scaled_streams(p);
    j->rotates = tn_scaled_rotates(p);
    j->by_items = work->by_items;
    j->wants_values = tn_dtype_get(work->dst_type) && (work->dst || j->by_items);
    TN_TRY(tn_check_importance(p->d, &p->o, p->rank, p->shape, err));
    if (!p->count)
        return TN_OK;
    clear_parts(j);
    j->stores = p->o.store != TN_UNKNOWN;
    j->streams_codes = p->data.data && p->data.nbytes >= STREAM_BYTES && !j->stores && !j->wants_values &&
                       !work->report;
    TN_TRY(j->stores ? tn_datatype_store_codes(p->d, p->o.store, j->stored, err) : TN_OK);
    TN_TRY(set_casts(j, err));
    return set_up(j, err);
}
