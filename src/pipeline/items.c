/* pipeline/items.c - what one thread makes at a time: small tensors whole, or blocks of a large one. */
#include "pipeline/items.h"
#include "base/checked.h"
#include "base/error.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "tensor/form.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a block for an entry. */
static const tn_part_bytes *bytes_for(const tn_engine *m, const tn_subject *s, size_t i,
                                      const tn_part_bytes *out)
{
    return &out[s->count > 1 ? tn_entry_at(m, i)->part : 0];
}

/* An error of the input: of the file that the part is in. */
tn_status tn_run_in_input(const tn_engine *m, const tn_subject *s, tn_status status, tn_error *err)
{
    if (!status)
        return TN_OK;
    const tn_tensor *t = tn_source_of(m, s);
    uint32_t part = tn_entry_at(m, s->first)->part;
    const tn_part *p = &t->parts[part < t->nparts ? part : 0];
    const char *shard = tn_file_shard_name(m->run->in, tn_stored_of(p)->shard);
    return tn_in_file(status, *shard ? shard : m->run->in_path, err);
}

/* ---- views ---- */

static tn_status check_unchanged(const tn_view *v, const tn_tensor_plan *plan, tn_error *err)
{
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < plan->tensor.nparts && !status; k++) {
        uint64_t expected = plan->tensor.parts[k].nbytes, found = v->parts[k].nbytes;
        if (found != expected)
            status = tn_fail(err, TN_ERR_CORRUPT, "it has changed while it was read: expected %" PRIu64
                             " bytes of part %s but found %" PRIu64, expected, v->parts[k].role, found);
    }
    return tn_in_tensor(status, v->tensor.name, err);
}

/* One part of a tensor that is copied, with indices of another type if the output has these only. */
static tn_status view_part(const tn_plan_place *place, const tn_tensor *source, uint32_t part, tn_dtype as,
                           tn_arena *arena, tn_view **view, tn_error *err)
{
    const tn_cast_task task = { .to = as };
    TN_TRY(tn_view_stored_part(&place->view, source, part, arena, view, err));
    bool same = tn_dtype_get(as)->bits == tn_dtype_get(source->parts[part].array.dtype)->bits;
    return part == 0 || same ? TN_OK : tn_view_add_step(view, &tn_step_cast, &task, err);
}

/* The view of what a subject is made of. */
tn_status tn_run_make_view(const tn_engine *m, const tn_subject *s, const tn_plan_place *place,
                           tn_arena *arena, tn_view **view, tn_error *err)
{
    const tn_tensor_plan *plan = tn_plan_of(m, s);
    const tn_tensor *source = tn_source_of(m, s);
    const tn_out_entry *e = tn_entry_at(m, s->first);
    if (plan && e->part == 0) {
        *view = plan->kept;
        if (!plan->kept)
            TN_TRY(tn_plan_view(place, source, &plan->rules, arena, view, err));
        return check_unchanged(*view, plan, err);
    }
    tn_dtype as = plan ? plan->tensor.parts[e->part].array.dtype : source->parts[e->part].array.dtype;
    return view_part(place, source, e->part, as, arena, view, err);
}

/* The scales that a prepared view has found are those that were declared. */
static void take_data(const tn_engine *m, const tn_subject *s, const tn_view *v)
{
    size_t tensor = tn_entry_at(m, s->first)->tensor, end = tn_writer_first(m->out, tensor + 1);
    for (size_t i = m->out->first_entry[tensor] + 1; i < end; i++) {
        const tn_out_entry *e = tn_entry_at(m, i);
        if (e->data && v->parts[e->part].data)
            memcpy((void *)(uintptr_t)e->data, v->parts[e->part].data, (size_t)e->nbytes);
    }
}

/* With all its checks and passes done, but for what is done while it is read. */
tn_status tn_run_open_view(const tn_engine *m, const tn_subject *s, const tn_preparing *p, tn_arena *arena,
                           tn_view **view, tn_view **stored, tn_error *err)
{
    const tn_plan_place *place = s->way == TN_WAY_SMALL ? m->run->quiet : m->run->place;
    tn_status status = tn_run_make_view(m, s, place, arena, view, err);
    if (!status) {
        *stored = tn_view_streamed(*view);
        if (*stored)
            tn_stored_stream(*stored);
        status = tn_view_prepare(*view, p, err);
    }
    if (!status && tn_plan_of(m, s) && tn_entry_at(m, s->first)->part == 0)
        take_data(m, s, *view);
    return tn_run_in_input(m, s, status, err);
}

void tn_run_close_view(const tn_engine *m, const tn_subject *s, tn_view *v)
{
    const tn_tensor_plan *plan = tn_plan_of(m, s);
    if (v && !(plan && plan->kept == v))
        tn_view_free(v);
}

/* Elements of the view that a block has; every block but the last has as many. */
static void block_range(const tn_view *v, const tn_part_bytes *b, uint64_t *first, uint64_t *n)
{
    *first = b->offset * 8 / v->bits;
    *n = tn_min_u64(b->size * 8 / v->bits, v->count - *first);
}

/* ---- making ---- */

static tn_status hash_whole(tn_checksum kind, const void *data, size_t n, tn_digest *digest, tn_error *err)
{
    tn_hash h;
    *digest = (tn_digest){ .kind = TN_CHECKSUM_NONE };
    if (kind == TN_CHECKSUM_NONE)
        return TN_OK;
    TN_TRY(tn_hash_begin(&h, kind, err));
    tn_hash_update(&h, data, n);
    return tn_hash_end(&h, digest, err);
}

/* One block, and what there is to be told of the input meanwhile. */
tn_status tn_run_make_block(const tn_engine *m, const tn_subject *s, uint64_t block, tn_worker *w,
                            tn_part_bytes *out, tn_error *err)
{
    tn_status status = tn_view_block(s->view, block, w, out, err);
    if (!status && s->stored) {
        uint64_t first, n;
        block_range(s->view, &out[0], &first, &n);
        tn_stored_sum(s->stored, first, n, w);
    }
    return tn_run_in_input(m, s, status, err);
}

tn_status tn_run_check_sum(const tn_engine *m, const tn_subject *s, const tn_digest *found, tn_error *err)
{
    const tn_tensor *t = s->stored ? tn_stored_tensor(s->stored) : NULL;
    if (!t || found->kind == TN_CHECKSUM_NONE)
        return TN_OK;
    return tn_run_in_input(m, s, tn_part_compare_digest(t, &t->parts[0], found, err), err);
}

/* Bytes in the order that the entry has them. */
static tn_status in_order_of(const tn_out_entry *e, tn_buf *swapped, const uint8_t **bytes, size_t n,
                             tn_error *err)
{
    if (!tn_entry_is_swapped(e) || !n)
        return TN_OK;
    swapped->size = 0;
    tn_buf_put(swapped, *bytes, n);
    if (swapped->bad)
        return tn_fail_nomem(err);
    tn_entry_swap(e, swapped->data, n);
    *bytes = swapped->data;
    return TN_OK;
}

tn_outcome *tn_run_add_outcome(tn_made *r, tn_error *err)
{
    if (!TN_GROW(r->list, r->count, r->cap)) {
        tn_fail_nomem(err);
        return NULL;
    }
    r->list[r->count] = (tn_outcome){ 0 };
    return &r->list[r->count++];
}

/* ---- small ones ---- */

/* A complete part as it is stored. */
static tn_status store_part(const tn_engine *m, tn_maker *w, const tn_out_entry *e, const tn_part_bytes *made,
                            tn_buf *out, tn_outcome *o, tn_error *err)
{
    const uint8_t *bytes = made->bytes;
    size_t n = (size_t)made->size, at = out->size;
    if (e->encoding == TN_ENCODING_RAW) {
        TN_TRY(in_order_of(e, &w->swapped, &bytes, n, err));
        tn_buf_put(out, bytes, n);
    } else {
        TN_TRY(tn_codec_use(&w->encoder, tn_codec_of(e->encoding), err));
        size_t room = w->encoder.codec->bound(n);
        uint8_t *to = tn_buf_room(out, room);
        tn_coding c = { bytes, n, to, room };
        TN_TRY(to ? TN_OK : tn_fail_nomem(err));
        TN_TRY(w->encoder.codec->encode(w->encoder.state, m->out->options.level, &c, err));
        out->size = at + room - c.nout;
    }
    if (out->bad)
        return tn_fail_nomem(err);
    o->size = out->size - at;
    if (tn_codec_of(e->encoding)->sums_decoded)
        return hash_whole(e->checksum, bytes, n, &o->digest, err);
    const uint8_t *stored = o->size ? out->data + at : (const uint8_t *)"";
    return hash_whole(e->checksum, stored, (size_t)o->size, &o->digest, err);
}

static tn_status write_span(const tn_engine *m, tn_span_made *s, tn_error *err)
{
    size_t n = s->bytes.size;
    s->bytes.size = 0;
    return n ? tn_writer_put(m->out, s->file, s->at, s->bytes.data, n, err) : TN_OK;
}

static tn_status write_spans(const tn_engine *m, tn_made *r, tn_error *err)
{
    for (unsigned k = 0; k < TN_SPANS; k++)
        TN_TRY(write_span(m, &r->spans[k], err));
    return TN_OK;
}

/* Where bytes belong in the output; what is between them and others that end less than `gap` before them is
 * padding. */
typedef struct spot {
    uint32_t file;
    uint64_t at, gap;
} spot;

/* Where bytes go that are not written yet: neighbours are written together. */
static tn_status begin_bytes(const tn_engine *m, spot to, tn_made *r, tn_buf **out, tn_error *err)
{
    tn_span_made *s = &r->spans[r->oldest];
    for (unsigned k = 0; k < TN_SPANS; k++) {
        tn_span_made *one = &r->spans[k];
        uint64_t end = one->at + one->bytes.size;
        if (one->bytes.size && to.file == one->file && to.at >= end && to.at - end < to.gap) {
            tn_buf_fill(&one->bytes, 0, (size_t)(to.at - end));
            *out = &one->bytes;
            return TN_OK;
        }
        if (!one->bytes.size)
            s = one;
    }
    r->oldest = (r->oldest + (s->bytes.size > 0)) % TN_SPANS;
    TN_TRY(write_span(m, s, err));
    s->at = to.at;
    s->file = to.file;
    *out = &s->bytes;
    return TN_OK;
}

/* All blocks of a small view, part by part. */
static tn_status make_parts(const tn_engine *m, const tn_subject *s, tn_maker *w, tn_quantize_stats *stats,
                            tn_error *err)
{
    uint64_t n = tn_view_blocks(s->view);
    tn_status status = TN_OK;
    *stats = tn_view_report(s->view);
    for (uint32_t k = 0; k < s->view->tensor.nparts; k++) {
        w->parts[k].size = 0;
        w->made[k] = (tn_part_bytes){ .bytes = (const uint8_t *)"" };
    }
    if (s->stored)
        status = tn_run_in_input(m, s, tn_stored_begin(s->stored, 0, s->stored->count, &w->worker, err), err);
    for (uint64_t b = 0; b < n && !status; b++) {
        tn_part_bytes out[TN_MAX_PARTS] = { 0 };
        status = tn_run_make_block(m, s, b, &w->worker, out, err);
        for (uint32_t k = 0; k < s->view->tensor.nparts && !status; k++) {
            w->made[k] = out[k];
            if (n > 1) {
                tn_buf_put(&w->parts[k], out[k].bytes, (size_t)out[k].size);
                w->made[k] = (tn_part_bytes){ .bytes = w->parts[k].data, .size = w->parts[k].size };
                status = w->parts[k].bad ? tn_fail_nomem(err) : TN_OK;
            }
        }
        tn_quantize_stats_add(stats, &w->worker.report);
    }
    if (s->stored && !status) {
        tn_digest sum;
        status = tn_run_in_input(m, s, tn_stored_end(s->stored, &w->worker, &sum, err), err);
        if (!status)
            status = tn_run_check_sum(m, s, &sum, err);
    }
    tn_stored_rest(&w->worker);
    return status;
}

static void close_small(tn_maker *w)
{
    tn_view_free(w->view);
    w->view = NULL;
    w->plan = NULL;
    tn_arena_free(&w->arena);
    w->arena = (tn_arena){ 0 };
}

/* Tensors that share a plan often share a view as well. */
static tn_status open_shared(const tn_engine *m, const tn_subject *s, tn_maker *w, tn_view **stored,
                             tn_error *err)
{
    tn_worker *workers[] = { &w->worker };
    const tn_preparing p = { .pool = w->pool, .workers = workers };
    const tn_tensor_plan *plan = tn_entry_at(m, s->first)->part == 0 ? tn_plan_of(m, s) : NULL;
    if (plan && plan == w->plan && tn_view_rebind(w->view, tn_source_of(m, s))) {
        tn_view *first = w->view;
        while (first->input)
            first = first->input;
        *stored = tn_view_streamed(w->view);
        if (*stored)
            tn_stored_stream(*stored);
        tn_status status = tn_view_prepare(first, &p, err);
        if (!status)
            status = tn_view_prepare(w->view, &p, err);
        if (!status)
            take_data(m, s, w->view);
        return tn_run_in_input(m, s, status, err);
    }
    close_small(w);
    TN_TRY(tn_run_open_view(m, s, &p, &w->arena, &w->view, stored, err));
    w->plan = plan;
    return TN_OK;
}

static tn_status open_small(const tn_engine *m, tn_subject *s, tn_maker *w, tn_error *err)
{
    const tn_tensor_plan *plan = tn_entry_at(m, s->first)->part == 0 ? tn_plan_of(m, s) : NULL;
    if (plan && plan->kept) {
        s->view = plan->kept;
        return tn_run_in_input(m, s, check_unchanged(s->view, plan, err), err);
    }
    TN_TRY(open_shared(m, s, w, &s->stored, err));
    s->view = w->view;
    return TN_OK;
}

/* A part that is copied and is mapped needs no view, but to check its checksum. */
static bool is_lent(const tn_engine *m, const tn_subject *s, tn_maker *w)
{
    const tn_part *p = &tn_source_of(m, s)->parts[tn_entry_at(m, s->first)->part];
    if (tn_plan_of(m, s) || !p->data || tn_part_checksum(p) != TN_CHECKSUM_NONE)
        return false;
    w->made[0] = (tn_part_bytes){ .bytes = tn_worker_near(&w->worker, p->data, p->nbytes),
                                  .size = p->nbytes };
    return true;
}

static tn_status make_whole(const tn_engine *m, const tn_subject *s, tn_maker *w, tn_quantize_stats *stats,
                            tn_error *err)
{
    tn_subject open = *s;
    *stats = (tn_quantize_stats){ 0 };
    if (is_lent(m, s, w))
        return TN_OK;
    TN_TRY(open_small(m, &open, w, err));
    return make_parts(m, &open, w, stats, err);
}

static tn_status make_small(const tn_engine *m, const tn_subject *s, bool direct, tn_maker *w, tn_made *r,
                            tn_quantize_stats *stats, tn_error *err)
{
    tn_status status = make_whole(m, s, w, stats, err);
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i) && !status; i = tn_next_entry(m, s, i + 1)) {
        const tn_out_entry *e = tn_entry_at(m, i);
        const tn_part_bytes *made = &w->made[s->count > 1 ? e->part : 0];
        tn_outcome *o = tn_run_add_outcome(r, err);
        tn_buf *out = &r->bytes;
        status = o ? TN_OK : TN_ERR_NOMEM;
        if (!status && direct)
            status = begin_bytes(m, (spot){ e->file, e->offset, m->gap }, r, &out, err);
        if (!status)
            status = tn_in_file(store_part(m, w, e, made, out, o, err), m->out->path, err);
    }
    if (status)
        close_small(w);
    return status;
}

/* What a small subject is made of, if it is mapped as it is in its file; else NULL. */
static const tn_part *mapped_part(const tn_engine *m, const tn_subject *s)
{
    const tn_tensor *t = tn_source_of(m, s);
    const tn_tensor_plan *plan = tn_plan_of(m, s);
    uint32_t number = tn_entry_at(m, s->first)->part;
    const tn_part *p = number < t->nparts && !(plan && plan->kept) ? &t->parts[number] : NULL;
    return p && p->data && p->data == tn_file_view(m->run->in, p) ? p : NULL;
}

/* Neighbours in a file are read at once, and not page by page as they are needed. */
static tn_status read_ahead(const tn_engine *m, const tn_item *item, tn_maker *w, tn_error *err)
{
    enum { MOST = 1 << 20 };
    const tn_stored *first = NULL;
    uint64_t begin = UINT64_MAX, end = 0, bytes = 0;
    w->worker.ahead.n = 0;
    for (uint32_t i = 0; i < item->count; i++) {
        const tn_part *p = mapped_part(m, &m->subjects[item->subject + i]);
        first = first || !p ? first : p->stored;
        if (!p || p->stored->shard != first->shard)
            return TN_OK;
        begin = tn_min_u64(begin, p->stored->offset);
        end = p->stored->offset + p->nbytes > end ? p->stored->offset + p->nbytes : end;
        bytes += p->nbytes;
    }
    const tn_source *source = m->run->in->shards[first->shard].source;
    if (end - begin > MOST || bytes < (end - begin) / 2 || !tn_source_copies(source, end - begin))
        return TN_OK;
    return tn_run_in_input(m, &m->subjects[item->subject],
                           tn_worker_read_ahead(&w->worker, source, begin, (size_t)(end - begin), err), err);
}

static tn_status work_small(const tn_engine *m, const tn_item *item, tn_maker *w, tn_made *r, tn_error *err)
{
    tn_status status = w->pool ? TN_OK : tn_pool_new(1, &w->pool, err);
    if (!status)
        status = read_ahead(m, item, w, err);
    bool direct = tn_run_is_direct(m, item);
    for (uint32_t i = 0; i < item->count && !status; i++)
        status = make_small(m, &m->subjects[item->subject + i], direct, w, r, &r->stats[i], err);
    return status || !direct ? status : write_spans(m, r, err);
}

/* ---- blocks ---- */

/* Makes the kernel map bytes of a file, and brings them near, before the write: there the faults would be
 * taken under the lock of the output file, one thread at a time. */
static void touch(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        (void)*(const volatile uint8_t *)(bytes + i);
}

enum {
    FEW = 1 << 14,              /* bytes that are never written alone */
    HELD = 1 << 19              /* bytes that wait at most */
};

/* Writes bytes of an entry, or holds them while another thread writes: the next block can be made
 * meanwhile. */
static tn_status put_bytes(const tn_engine *m, const tn_out_entry *e, const tn_part_bytes *b, tn_made *r,
                           tn_error *err)
{
    size_t n = (size_t)b->size, held = n;
    tn_buf *out;
    for (unsigned k = 0; k < TN_SPANS; k++)
        held += r->spans[k].bytes.size;
    if (held <= HELD && (n < FEW || tn_writer_is_busy(m->out, e->file))) {
        TN_TRY(begin_bytes(m, (spot){ e->file, e->offset + b->offset, 1 }, r, &out, err));
        tn_buf_put(out, b->bytes, n);
        return out->bad ? tn_fail_nomem(err) : TN_OK;
    }
    for (unsigned k = 0; k < TN_SPANS; k++)
        if (held > HELD || r->spans[k].bytes.size >= FEW)
            TN_TRY(write_span(m, &r->spans[k], err));
    return tn_writer_put(m->out, e->file, e->offset + b->offset, b->bytes, n, err);
}

/* Writes a block where it belongs. */
static tn_status put_block(const tn_engine *m, const tn_subject *s, const tn_part_bytes *out, tn_maker *w,
                           tn_hash *hashes, tn_made *r, tn_error *err)
{
    uint32_t k = 0;
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i); i = tn_next_entry(m, s, i + 1), k++) {
        const tn_out_entry *e = tn_entry_at(m, i);
        const tn_part_bytes *b = bytes_for(m, s, i, out);
        const uint8_t *bytes = b->bytes;
        size_t n = (size_t)b->size;
        r->list[k].size += n;
        if (!n)
            continue;
        if (s->view->step == &tn_step_stored && !s->view->is_copied)
            touch(bytes, n);
        TN_TRY(in_order_of(e, &w->swapped, &bytes, n, err));
        if (!s->same_sum)
            tn_hash_update(&hashes[k], bytes, n);
        TN_TRY(put_bytes(m, e, &(tn_part_bytes){ bytes, b->offset, n }, r, err));
    }
    return TN_OK;
}

/* Bytes that wait for their turn. */
tn_status tn_run_keep_block(const tn_engine *m, const tn_subject *s, const tn_part_bytes *out, tn_made *r,
                            tn_error *err)
{
    uint32_t k = 0;
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i); i = tn_next_entry(m, s, i + 1), k++) {
        const tn_part_bytes *b = bytes_for(m, s, i, out);
        r->list[k].size += b->size;
        if (b->size)
            tn_buf_put(&r->bytes, b->bytes, (size_t)b->size);
    }
    return r->bytes.bad ? tn_fail_nomem(err) : TN_OK;
}

/* Elements of the stored part that blocks [first, first + n) are made of. */
static void range_of(const tn_subject *s, uint64_t first, uint64_t n, uint64_t *from, uint64_t *count)
{
    const tn_view *v = s->view;
    uint64_t blocks = tn_view_blocks(v), each = blocks ? tn_view_block_elements(v) : 0;
    *from = first * each;
    *count = first + n >= blocks ? v->count - *from : n * each;
}

static tn_status begin_hashes(const tn_engine *m, const tn_subject *s, tn_hash *hashes, tn_made *r,
                              tn_error *err)
{
    uint32_t k = 0;
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i); i = tn_next_entry(m, s, i + 1), k++) {
        TN_TRY(tn_run_add_outcome(r, err) ? TN_OK : TN_ERR_NOMEM);
        if (s->direct)
            TN_TRY(tn_hash_begin(&hashes[k], s->same_sum ? TN_CHECKSUM_NONE : tn_entry_at(m, i)->checksum,
                                 err));
    }
    return TN_OK;
}

static tn_status make_blocks(const tn_engine *m, const tn_subject *s, const tn_item *item, tn_maker *w,
                             tn_hash *hashes, tn_made *r, tn_error *err)
{
    r->stats[0] = (tn_quantize_stats){ 0 };
    TN_TRY(begin_hashes(m, s, hashes, r, err));
    if (s->stored) {
        uint64_t from, n;
        range_of(s, s->block + item->from, item->n, &from, &n);
        TN_TRY(tn_run_in_input(m, s, tn_stored_begin(s->stored, from, n, &w->worker, err), err));
    }
    for (uint64_t b = s->block + item->from; b < s->block + item->from + item->n; b++) {
        tn_part_bytes out[TN_MAX_PARTS] = { 0 };
        TN_TRY(tn_run_make_block(m, s, b, &w->worker, out, err));
        tn_quantize_stats_add(&r->stats[0], &w->worker.report);
        TN_TRY(s->direct ? put_block(m, s, out, w, hashes, r, err) : tn_run_keep_block(m, s, out, r, err));
    }
    TN_TRY(write_spans(m, r, err));
    if (s->stored)
        TN_TRY(tn_run_in_input(m, s, tn_stored_end(s->stored, &w->worker, &r->in, err), err));
    for (uint32_t k = 0; s->direct && k < r->count; k++)
        TN_TRY(tn_hash_end(&hashes[k], &r->list[k].digest, err));
    if (s->same_sum)
        r->list[0].digest = r->in;
    return TN_OK;
}

static tn_status work_blocks(const tn_engine *m, const tn_item *item, tn_maker *w, tn_made *r, tn_error *err)
{
    const tn_subject *s = &m->subjects[item->subject];
    tn_hash hashes[TN_MAX_PARTS] = { { 0 } };
    uint64_t from;
    tn_status status = make_blocks(m, s, item, w, hashes, r, err);
    tn_stored_rest(&w->worker);
    for (uint32_t k = 0; k < TN_MAX_PARTS; k++)
        tn_hash_free(&hashes[k]);
    if (s->stored) {
        range_of(s, s->block + item->from, item->n, &from, &r->nin);
        r->nin = tn_packed_bytes(r->nin, s->stored->bits);
    }
    return status;
}

tn_status tn_run_work(void *context, uint64_t number, tn_pool_use use, tn_error *err)
{
    const tn_engine *m = context;
    const tn_item *item = &m->items.list[number];
    tn_made *r = &m->results[use.result];
    tn_maker *w = &m->scratch[use.scratch];
    r->bytes.size = 0;
    for (unsigned k = 0; k < TN_SPANS; k++)
        r->spans[k].bytes.size = 0;
    r->count = 0;
    return item->marked ? work_small(m, item, w, r, err) : work_blocks(m, item, w, r, err);
}

void tn_run_free_scratch(tn_maker *w)
{
    close_small(w);
    tn_worker_free(&w->worker);
    tn_pool_free(w->pool);
    for (unsigned k = 0; k < TN_MAX_PARTS; k++)
        tn_buf_free(&w->parts[k]);
    tn_codec_free(&w->encoder);
    tn_buf_free(&w->swapped);
}
