/* quant/run.c - encode a tensor with several threads.
 *
 * A thread takes an item: some batches of tiles, or one piece of each tile of a
 * batch.  It rotates the values if needed, calls the quantizer to encode them, and
 * decodes the codes again if values or a report are wanted.  Results are used in
 * the order of items. */
#include "quant/quantizer.h"
#include "quant/rotate.h"

#include <math.h>

#include "base/checked.h"
#include "kernels/stream.h"
#include "tensor/array.h"

typedef tn_scaled_job job;
typedef tn_scaled_scratch scratch;
typedef tn_scaled_result result;

enum { REPLACED = 1 << 20 };    /* codes per item of replace_all() */

/* --- values -------------------------------------------------------------------------- */

void tn_job_load(const job *j, scratch *w, float *x, uint64_t first, uint64_t stride, size_t n)
{
    const uint8_t *from = w->src + (first - w->src_first) * j->src_size;
    if (stride > 1) {
        for (size_t i = 0; i < n; i++)
            memcpy(w->elements + i * j->src_size, from + i * stride * j->src_size, j->src_size);
        from = w->elements;
    }
    if (n)
        tn_cast_block(&j->widen, x, from, n, 0, 0, NULL, NULL);
}

void tn_job_store(const job *j, scratch *w, const float *y, uint64_t first, uint64_t stride, size_t n)
{
    uint8_t *to = w->dst + (first - w->dst_first) * j->dst_size;
    if (n)
        tn_cast_block(&j->narrow, stride > 1 ? w->elements : to, y, n, 0, 0, NULL, NULL);
    for (size_t i = 0; i < n && stride > 1; i++)
        memcpy(to + i * stride * j->dst_size, w->elements + i * j->dst_size, j->dst_size);
}

const float *tn_job_floats(const job *j, scratch *w, uint64_t first, size_t n)
{
    const uint8_t *src = w->src + (first - w->src_first) * j->src_size;
    if (j->src_type == TN_FLOAT32 && (uintptr_t)src % _Alignof(float) == 0)
        return (const float *)(const void *)src;
    tn_job_load(j, w, w->x, first, 1, n);
    return w->x;
}

static void rotate(const job *j, bool back, float *x, uint64_t n)
{
    const tn_rotation *r = &j->plan.o.rotation;
    tn_rotate_blocks(r, back, n / r->size / j->plan.inner, j->plan.inner, x);
}

tn_status tn_job_open_values(const job *j, scratch *w, result *f, uint64_t first, uint64_t n, tn_error *err)
{
    const tn_scaled_work *work = j->work;
    size_t size = tn_dtype_get(work->src_type)->bits / 8;
    const void *src = NULL;
    tn_status status = work->read ? work->read(work->source, w->reader, first, (size_t)n, &src, err) : TN_OK;
    w->src = work->read ? src : work->src;
    w->src_first = work->read ? first : 0;
    w->dst = work->dst;
    w->dst_first = 0;
    if (j->wants_values && j->by_items) {
        w->dst = f->bytes;
        w->dst_first = first;
        f->nbytes = (size_t)n * j->out_size;
    }
    if (status || !j->rotates)
        return status;
    w->src += (first - w->src_first) * size;
    tn_cast_block(&j->cast_in, w->rotated, w->src, (size_t)n, 0, 0, NULL, NULL);
    rotate(j, false, w->rotated, n);
    w->src = (const uint8_t *)w->rotated;
    w->src_first = first;
    if (j->wants_values) {
        w->dst = (uint8_t *)w->decoded;
        w->dst_first = first;
    }
    return TN_OK;
}

/* Undoes the rotation of an item's decoded values and casts them to the output type. */
static void close_values(const job *j, scratch *w, result *f, uint64_t first, uint64_t n)
{
    if (!j->rotates || !j->wants_values)
        return;
    uint8_t *to = j->by_items ? f->bytes : (uint8_t *)j->work->dst + first * j->out_size;
    rotate(j, true, w->decoded, n);
    tn_cast_block(&j->cast_out, to, w->decoded, (size_t)n, 0, 0, NULL, NULL);
}

/* --- blocks -------------------------------------------------------------------------- */

tn_job_block tn_job_block_of(const job *j, scratch *w, uint64_t batch)
{
    const tn_scaled_plan *p = &w->view;
    tn_scaled_place at = tn_scaled_place_at(p, batch, 0, 0);
    uint64_t row = at.outer * p->rows + at.down, column = at.across * p->tile_columns,
             end = tn_min_u64(column + p->batch_across * p->tile_columns, p->columns);
    tn_job_block b = { .first = row * p->columns + column, .n = (size_t)(end - column) };
    b.x = tn_job_floats(j, w, b.first, b.n);
    b.codes = p->data.data + (tn_scaled_byte_at(p, 0, row, column) - p->data.from);
    return b;
}

void tn_job_decode_block(const job *j, scratch *w, result *f, const tn_job_block *b)
{
    const tn_quantizer *q = j->plan.d->quantizer;
    tn_scaled_plan last = w->view;
    tn_part_values values = { .plan = &w->view, .tensor_scale = j->tensor_scale, .affine = j->decoder };
    if (!w->dst && !j->work->report)
        return;
    q->read(&values, b->first, b->n, w->y);
    if (j->work->report) {
        values.plan = &last;
        last.data.from += (uint64_t)(b->codes - w->view.data.data);
        for (unsigned i = 0; i < 2 && j->last[i]; i++) {
            last.data.data = j->last[i];
            q->read(&values, b->first, b->n, w->last[i]);
        }
        for (size_t i = 0; i < b->n && !j->last[0]; i++) {
            w->last[0][i] = -INFINITY;
            w->last[1][i] = INFINITY;
        }
        tn_values_report(b->x, w->y, w->last[0], w->last[1], b->n, &f->report);
    }
    if (w->dst)
        tn_job_store(j, w, w->y, b->first, 1, b->n);
}

/* --- items --------------------------------------------------------------------------- */

tn_job_item tn_job_item_of(const job *j, uint64_t item)
{
    uint64_t pieces = tn_scaled_pieces(&j->plan);
    if (pieces > 1)
        return (tn_job_item){ item / pieces, item / pieces + 1, item % pieces };
    uint64_t first = item * j->per_item;
    return (tn_job_item){ first, tn_min_u64(first + j->per_item, j->plan.batches), 0 };
}

/* Where the next item begins. */
static tn_scaled_begin end_of(const job *j, const tn_job_item *s)
{
    bool more = s->piece + 1 < tn_scaled_pieces(&j->plan);
    return tn_scaled_begin_of(&j->plan, more ? s->first : s->end, more ? s->piece + 1 : 0);
}

tn_scaled_row tn_job_elements(const job *j, const tn_job_item *s)
{
    const tn_scaled_plan *p = &j->plan;
    if (!j->windows)
        return (tn_scaled_row){ 0, 0 };
    tn_scaled_begin from = tn_scaled_begin_of(p, s->first, s->piece), to = end_of(j, s);
    uint64_t first = (from.row * p->columns + from.column) * p->inner;
    return (tn_scaled_row){ first, (to.row * p->columns + to.column) * p->inner - first };
}

/* Gives a field without memory a window for bytes [from, to).  Clears packed numbers, which are written by
 * OR. */
static void open_window(const job *j, scratch *w, result *f, unsigned i, uint64_t from, uint64_t to)
{
    tn_scaled_field *field = &w->view.fields[i];
    bool is_result = i == 0 && j->by_items && !j->wants_values, own = !field->data || is_result;
    w->window_bytes[i] = (size_t)(to - from);
    if (own) {
        field->data = is_result ? f->bytes : w->window[i];
        field->from = from;
    }
    if (is_result)
        f->nbytes = (size_t)(to - from);
    /* else several items share the bytes: clear_parts() clears them */
    if (field->bits < 8 && (own || i == 0 || tn_scaled_pieces(&j->plan) == 1))
        memset(field->data + (from - field->from), 0, (size_t)(to - from));
}

static void open_windows(const job *j, scratch *w, result *f, const tn_job_item *s)
{
    const tn_scaled_plan *p = &j->plan;
    tn_scaled_begin from = tn_scaled_begin_of(p, s->first, s->piece), to = end_of(j, s);
    open_window(j, w, f, 0, tn_scaled_byte_at(p, 0, from.row, from.column),
                tn_scaled_byte_at(p, 0, to.row, to.column));
    if (tn_scaled_pieces(p) > 1) {      /* whole rows of tiles */
        from.column = to.column = 0;
        to.tile_row = from.tile_row + 1;
    }
    for (unsigned i = 1; i < TN_SCALED_FIELDS; i++) {
        w->window_bytes[i] = 0;
        if (w->view.fields[i].nbytes)
            open_window(j, w, f, i, tn_scaled_byte_at(p, i, from.tile_row, from.column),
                        tn_scaled_byte_at(p, i, to.tile_row, to.column));
    }
}

static void replace_codes(const job *j, uint8_t *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = j->stored[codes[i]];
}

tn_status tn_job_run_item(const job *j, uint64_t item, scratch *w, result *f, tn_error *err)
{
    const tn_quantizer *q = j->plan.d->quantizer;
    tn_job_item s = tn_job_item_of(j, item);
    tn_scaled_row own = tn_job_elements(j, &s);
    f->report = (tn_quantize_stats){ 0 };
    f->nbytes = 0;
    w->view = j->plan;
    if (j->windows)
        open_windows(j, w, f, &s);
    tn_status status = tn_job_open_values(j, w, f, own.first, own.n, err);
    for (uint64_t b = s.first; b < s.end && status == TN_OK; b++)
        status = q->encode(j, w, f, b, s.piece, err);
    if (j->streams_codes)
        tn_stream_fence();
    if (status || j->gather)
        return status;
    close_values(j, w, f, own.first, own.n);
    if (j->stores && j->by_items && !j->wants_values)
        replace_codes(j, f->bytes, f->nbytes);
    return TN_OK;
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    return tn_job_run_item(j, item, &j->scratches[use.scratch], &j->results[use.result], err);
}

static tn_status emit(void *context, uint64_t item, unsigned number, tn_error *err)
{
    job *j = context;
    const result *f = &j->results[number];
    tn_job_item s = tn_job_item_of(j, item);
    (void)err;
    if (j->gather)
        j->gather(j, &s, f);
    else if (j->work->report)
        tn_quantize_stats_add(j->work->report, &f->report);
    return TN_OK;
}

uint64_t tn_job_items(const job *j)
{
    uint64_t pieces = tn_scaled_pieces(&j->plan), items = j->plan.batches * pieces;
    if (!j->plan.count)
        return 0;
    return pieces == 1 ? tn_div_up_u64(items, j->per_item) : items;
}

tn_status tn_job_round(job *j, tn_error *err)
{
    const tn_ordered task = { .work = work, .emit = emit, .context = j };
    tn_status status = tn_job_workers(j, err);
    return status ? status : tn_pool_run(j->work->pool, tn_job_items(j), &task, err);
}

tn_status tn_job_prepare(job *j, tn_error *err)
{
    const tn_quantizer *q = j->plan.d->quantizer;
    return q->prepare ? q->prepare(j, err) : TN_OK;
}

/* --- whole tensors ------------------------------------------------------------------- */

static tn_status replace_some(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    uint64_t at = item * REPLACED, left = j->plan.data.nbytes - at;
    (void)use;
    (void)err;
    replace_codes(j, j->plan.data.data + at, (size_t)tn_min_u64(left, REPLACED));
    return TN_OK;
}

static tn_status replace_all(job *j, tn_error *err)
{
    const tn_ordered task = { .work = replace_some, .context = j };
    return tn_pool_run(j->work->pool, tn_div_up_u64(j->plan.data.nbytes, REPLACED), &task, err);
}

tn_status tn_quantizer_encode(const tn_scaled_work *work, tn_error *err)
{
    const tn_scaled_plan *p = work->plan;
    job *j;
    tn_status status = tn_scaled_job_new(work, &j, err);
    if (status == TN_OK)
        status = tn_job_prepare(j, err);
    if (status == TN_OK && p->count)
        status = tn_job_round(j, err);
    if (status == TN_OK && j->stores && p->data.data)   /* last: pieces are decoded before */
        status = replace_all(j, err);
    tn_scaled_job_free(j);
    return status;
}
