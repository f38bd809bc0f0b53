/* pipeline/run.c - the engine: blocks of views into the entries of a writer.
 *
 * The tensors of a run of pieces become a list of items, each of which any thread takes:
 *   small    many tensors at a time, made whole in memory and encoded there
 *   split    some blocks of a large tensor, whose bytes are written where they belong
 *   whole    all blocks of one that can only be read, or summed up, in order
 *   ordered  some blocks of one whose bytes go to an encoder: they wait for their turn
 * What is read in order and encoded in order is made `alone`, by the calling thread, while
 * the encoder has all cores. */
#include "pipeline/items.h"
#include "base/checked.h"
#include "pipeline/expect.h"
#include "base/error.h"
#include "tensor/code.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL = 1 << 20,            /* bytes of a small tensor */
    SMALL_TOGETHER = 1 << 18,   /* read or written of several that make an item: they stay in the cache */
    ORDERED_BYTES = 1 << 20,    /* of an item whose bytes wait */
    MOST_SUBJECTS = 1 << 11     /* at a time: a file of very many tensors needs no list of them all */
};

/* An item is large enough that handing it out costs nothing, and small enough that a few of them keep every
 * core busy to the end. */
#define ITEM_BYTES ((uint64_t)5 * TN_WINDOW)
#define HELD_BYTES ((uint64_t)256 << 20)        /* of tensors that may have spills, at a time */

/* ---- joining, in order ---- */

static bool is_much(uint64_t lost, uint64_t values)
{
    return lost > values / 100;
}

/* A cast that made too many values 0, or found them beyond the largest. */
static tn_status tell_lost(const tn_engine *m, const char *name, const tn_tensor_plan *plan,
                           const tn_quantize_stats *stats, tn_error *err)
{
    const tn_cast_report r = { .name = name, .dtype = plan->tensor.dtype, .values = stats->values,
                               .flushed = stats->flushed, .saturated = stats->saturated };
    bool flushed = is_much(r.flushed, r.values);
    if (!flushed && !is_much(r.saturated, r.values))
        return TN_OK;
    if (m->run->lost)
        m->run->lost(m->run->context, &r);
    if (!m->run->strict)
        return TN_OK;
    tn_status status = tn_fail(err, TN_ERR_LOSS, "%" PRIu64 " of %" PRIu64 " values other than 0 %s %s",
                               flushed ? r.flushed : r.saturated, r.values,
                               flushed ? "become 0 in" : "are beyond the largest value of",
                               tn_dtype_get(r.dtype)->name);
    return tn_in_file(tn_in_tensor(status, name, err), m->run->in_path, err);
}

static tn_status tell(const tn_engine *m, const tn_subject *s, const tn_quantize_stats *stats, tn_error *err)
{
    const tn_tensor_plan *plan = tn_plan_of(m, s);
    const tn_out_entry *e = tn_entry_at(m, s->first);
    if (!plan || e->part)
        return TN_OK;
    const char *name = tn_selected_name(m->run->selection, e->tensor);
    if (plan->is_counted)
        return tell_lost(m, name, plan, stats, err);
    if (m->run->quantized && plan->is_quantized)
        tn_plan_tell(tn_source_of(m, s), plan, name, stats, m->run->quantized, m->run->context);
    return TN_OK;
}

/* All stored bytes of the next entry in order, or of one that has a place. */
static tn_status store_entry(tn_engine *m, size_t i, const void *stored, const tn_outcome *o, tn_error *err)
{
    tn_out_entry *e = &m->out->entries[i];
    if (tn_writer_is_late(m->out, e)) {
        TN_TRY(tn_spill_append(m->out->late, stored, (size_t)o->size, err));
        e->size = o->size;
    } else {
        TN_TRY(tn_writer_place(m->out, i, o->size, err));
        TN_TRY(tn_writer_put(m->out, e->file, e->offset, stored, (size_t)o->size, err));
    }
    tn_writer_commit(m->out, i, &o->digest);
    return TN_OK;
}

static tn_status join_small(tn_engine *m, const tn_item *item, const tn_made *r, uint64_t *done,
                            tn_error *err)
{
    const uint8_t *from = r->bytes.data ? r->bytes.data : (const uint8_t *)"";
    size_t number = 0;
    bool direct = tn_run_is_direct(m, item);
    for (uint32_t k = 0; k < item->count; k++) {
        const tn_subject *s = &m->subjects[item->subject + k];
        for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i); i = tn_next_entry(m, s, i + 1)) {
            const tn_outcome *o = &r->list[number++];
            if (direct)
                tn_writer_commit(m->out, i, &o->digest);
            else
                TN_TRY(store_entry(m, i, from, o, err));
            from += direct ? 0 : o->size;
            *done += tn_entry_at(m, i)->nbytes;
        }
        TN_TRY(tell(m, s, &r->stats[k], err));
    }
    return TN_OK;
}

/* The first part goes out; the others wait until it is complete. */
static tn_status write_in_order(tn_engine *m, const tn_subject *s, const tn_made *r, tn_error *err)
{
    const uint8_t *from = r->bytes.data ? r->bytes.data : (const uint8_t *)"";
    uint32_t k = 0;
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i); i = tn_next_entry(m, s, i + 1), k++) {
        const tn_out_entry *e = tn_entry_at(m, i);
        size_t n = (size_t)r->list[k].size;
        if (k == 0)
            TN_TRY(tn_writer_write(m->out, e->tensor, e->part, from, n, err));
        else if (n)
            TN_TRY(tn_spill_append(&m->waiting[k], from, n, err));
        from += n;
    }
    return TN_OK;
}

/* A part that has waited. */
static tn_status write_waiting(tn_engine *m, const tn_out_entry *e, const tn_spill *waiting, uint8_t *window,
                               tn_error *err)
{
    uint64_t at = 0;
    do {
        size_t n = (size_t)tn_min_u64(e->nbytes - at, TN_WINDOW);
        if (n)
            TN_TRY(tn_source_read(waiting->source, at, window, n, err));
        TN_TRY(tn_writer_write(m->out, e->tensor, e->part, window, n, err));
        at += n;
    } while (at < e->nbytes);
    return TN_OK;
}

static tn_status write_all_waiting(tn_engine *m, const tn_subject *s, tn_error *err)
{
    uint8_t *window = malloc(TN_WINDOW);
    tn_status status = window ? TN_OK : tn_fail_nomem(err);
    uint32_t k = 0;
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i) && !status; i = tn_next_entry(m, s, i + 1), k++)
        if (k)
            status = write_waiting(m, tn_entry_at(m, i), &m->waiting[k], window, err);
    free(window);
    return status;
}

static tn_status begin_subject(tn_engine *m, const tn_subject *s, tn_error *err)
{
    uint32_t k = 0;
    m->nin = 0;
    m->stats = tn_view_report(s->view);
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i); i = tn_next_entry(m, s, i + 1), k++) {
        m->sizes[k] = 0;
        if (!s->direct && k)
            TN_TRY(tn_spill_begin(&m->waiting[k], tn_entry_at(m, i)->nbytes, err));
    }
    return TN_OK;
}

static void join_sums(tn_engine *m, const tn_subject *s, const tn_made *r)
{
    if (s->stored && m->nin)
        tn_digest_join(&m->in, &r->in, r->nin);
    else if (s->stored)
        m->in = r->in;
    m->nin += r->nin;
    for (uint32_t k = 0; k < r->count; k++) {
        if (s->direct && m->sizes[k])
            tn_digest_join(&m->digests[k], &r->list[k].digest, r->list[k].size);
        else
            m->digests[k] = r->list[k].digest;
        m->sizes[k] += r->list[k].size;
    }
}

/* Some blocks of a tensor: what is known once all of them are made waits with the piece. */
static tn_status keep_blocks(const tn_engine *m, const tn_subject *s, tn_piece *piece, tn_error *err)
{
    tn_blocks_made *b = piece->blocks ? piece->blocks : malloc(sizeof *b);
    TN_NEED(piece->blocks = b, err);
    *b = (tn_blocks_made){ .in.kind = TN_CHECKSUM_NONE, .nin = m->nin, .stats = m->stats };
    if (s->stored)
        b->in = m->in;
    memcpy(b->out, m->digests, sizeof b->out);
    memcpy(b->nout, m->sizes, sizeof b->nout);
    return TN_OK;
}

static tn_status end_subject(tn_engine *m, tn_subject *s, tn_error *err)
{
    tn_piece *piece = &m->run->pieces[s->piece];
    uint32_t k = 0;
    if (piece->nblocks)
        return keep_blocks(m, s, piece, err);
    TN_TRY(tn_run_check_sum(m, s, &m->in, err));
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i) && s->direct; i = tn_next_entry(m, s, i + 1))
        tn_writer_commit(m->out, i, &m->digests[k++]);
    if (!s->direct)
        TN_TRY(write_all_waiting(m, s, err));
    return tell(m, s, &m->stats, err);
}

static tn_status join_blocks(tn_engine *m, const tn_item *item, const tn_made *r, uint64_t *done,
                             tn_error *err)
{
    tn_subject *s = &m->subjects[item->subject];
    if (item->from == 0)
        TN_TRY(begin_subject(m, s, err));
    join_sums(m, s, r);
    tn_quantize_stats_add(&m->stats, &r->stats[0]);
    for (uint32_t k = 0; k < r->count; k++)
        *done += r->list[k].size;
    if (!s->direct)
        TN_TRY(write_in_order(m, s, r, err));
    return item->last ? end_subject(m, s, err) : TN_OK;
}

static tn_status join(void *context, uint64_t number, unsigned made, tn_error *err)
{
    tn_engine *m = context;
    const tn_item *item = &m->items.list[number];
    const tn_made *r = &m->results[made];
    uint64_t done = 0;
    TN_TRY(item->marked ? join_small(m, item, r, &done, err) : join_blocks(m, item, r, &done, err));
    return tn_walk_advance(m->run->walk, done, err);
}

/* ---- lists of items ---- */

static void close_subjects(tn_engine *m)
{
    for (size_t i = 0; i < m->count; i++) {
        tn_run_close_view(m, &m->subjects[i], m->subjects[i].view);
        tn_arena_free(&m->subjects[i].arena);
    }
    m->count = m->items.count = 0;
    m->held = 0;
    for (unsigned k = 0; k < TN_MAX_PARTS; k++)
        tn_spill_free(&m->waiting[k]);
}

/* Runs the items of the list, which is empty after that. */
static tn_status run_list(tn_engine *m, tn_error *err)
{
    tn_status status = m->items.count ? tn_writer_reserve(m->out, err) : TN_OK;
    m->gap = m->out->appends ? m->out->options.align : 1;
    if (!status && m->items.count)
        status = tn_pool_run(m->run->walk->pool, m->items.count, &(tn_ordered){ tn_run_work, join, m }, err);
    close_subjects(m);
    return status;
}

/* One whose data can neither be read nor written but in order. */
static tn_status run_alone(tn_engine *m, tn_subject *s, tn_error *err)
{
    tn_maker *w = &m->scratch[0];
    tn_made *r = &m->results[0];
    tn_status status = begin_subject(m, s, err);
    if (!status)
        status = tn_run_in_input(m, s, tn_stored_begin(s->stored, 0, s->stored->count, &w->worker, err), err);
    for (uint64_t b = 0; b < s->nblocks && !status; b++) {
        tn_part_bytes out[TN_MAX_PARTS] = { 0 };
        r->bytes.size = r->count = 0;
        status = tn_run_make_block(m, s, b, &w->worker, out, err);
        tn_quantize_stats_add(&m->stats, &w->worker.report);
        if (!status)
            status = tn_run_add_outcome(r, err) ? tn_run_keep_block(m, s, out, r, err) : TN_ERR_NOMEM;
        if (!status)
            status = write_in_order(m, s, r, err);
        if (!status)
            status = tn_walk_advance(m->run->walk, r->list[0].size, err);
    }
    if (!status)
        status = tn_run_in_input(m, s, tn_stored_end(s->stored, &w->worker, &m->in, err), err);
    tn_stored_rest(&w->worker);
    return status ? status : end_subject(m, s, err);
}

/* Decoded bytes that a subject is made of. */
static uint64_t source_bytes(const tn_engine *m, const tn_subject *s)
{
    const tn_tensor_plan *plan = tn_plan_of(m, s);
    uint32_t part = tn_entry_at(m, s->first)->part;
    return plan && part == 0 ? plan->source_bytes : tn_source_of(m, s)->parts[part].nbytes;
}

/* Whether all entries are encoded by whoever makes them, or none is encoded. */
typedef struct kinds {
    bool encoded, raw, placed, hashed;  /* some are encoded, some are raw; all have places; some have
                                         * checksums that cannot be joined */
    uint64_t bytes;
} kinds;

static kinds kinds_of(const tn_engine *m, const tn_subject *s)
{
    kinds x = { .placed = true };
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i); i = tn_next_entry(m, s, i + 1)) {
        const tn_out_entry *e = tn_entry_at(m, i);
        x.encoded |= e->encoding != TN_ENCODING_RAW;
        x.raw |= e->encoding == TN_ENCODING_RAW;
        x.placed &= e->offset != TN_UNPLACED;
        x.hashed |= e->checksum == TN_CHECKSUM_SHA256;
        x.bytes += e->nbytes;
    }
    return x;
}

/* Another form is found with all threads.  Where that was done while it was planned, nothing is left. */
static bool is_ready(const tn_view *v)
{
    while (v && v->step != &tn_step_form && !v->step->prepare)
        v = v->input;
    return v && v->step == &tn_step_form;
}

static bool is_small(const tn_engine *m, const tn_subject *s, const kinds *x)
{
    const tn_tensor_plan *plan = tn_plan_of(m, s);
    uint64_t most = x->raw ? SMALL : TN_ENCODE_WHOLE_MAX;
    bool formed = plan && plan->is_made && plan->is_formed && tn_entry_at(m, s->first)->part == 0;
    return (!formed || is_ready(plan->kept)) && x->bytes <= most && source_bytes(m, s) <= most;
}

/* The checksum of the stored bytes is that of the entry's, for these are the same bytes. */
static bool is_same_sum(const tn_engine *m, const tn_subject *s)
{
    const tn_out_entry *e = tn_entry_at(m, tn_first_entry(m, s));
    if (!s->direct || s->view != s->stored || tn_entry_is_swapped(e))
        return false;
    const tn_part *p = &tn_stored_tensor(s->stored)->parts[0];
    return tn_part_is_range(p) && !tn_part_is_swapped(p) && !tn_stored_more_of(p)->sum.size &&
           tn_part_checksum(p) == (tn_checksum)e->checksum;
}

static void choose_way(const tn_engine *m, tn_subject *s, const kinds *x)
{
    bool splits = !s->stored || tn_stored_splits(s->stored), raw = !x->encoded && x->placed;
    s->direct = raw && (s->stored || !x->hashed);
    s->way = TN_WAY_ORDERED;
    if (s->direct)
        s->way = splits && !x->hashed ? TN_WAY_SPLIT : TN_WAY_WHOLE;
    else if (!splits)
        s->way = TN_WAY_ALONE;
    s->same_sum = is_same_sum(m, s);
}

static tn_status add_items(tn_engine *m, size_t number, const kinds *x, tn_error *err)
{
    const tn_subject *s = &m->subjects[number];
    tn_item whole = { .subject = number, .n = s->nblocks };
    uint64_t blocks = tn_view_blocks(s->view), each = blocks ? x->bytes / blocks + 1 : 1, span = 0;
    if (s->way == TN_WAY_SPLIT)
        span = ITEM_BYTES / each;
    else if (s->way == TN_WAY_ORDERED)
        span = ORDERED_BYTES / each;
    if (s->way != TN_WAY_WHOLE && (!span || (s->count > 1 && !s->direct)))
        span = 1;               /* bytes of several parts wait block by block */
    return tn_items_cut(&m->items, whole, span, 8, err);
}

static tn_status add_small(tn_engine *m, size_t number, uint64_t bytes, tn_error *err)
{
    tn_item *last = m->items.count ? &m->items.list[m->items.count - 1] : NULL;
    if (last && last->marked && last->count < TN_ITEM_TENSORS && last->n + bytes <= SMALL_TOGETHER) {
        last->count++;
        last->n += bytes;
        return TN_OK;
    }
    return tn_items_cut(&m->items, (tn_item){ .subject = number, .n = bytes, .marked = true }, 0, 8, err);
}

/* Places raw entries whose turn it is: everything before them is written. */
static tn_status place_now(tn_engine *m, const tn_subject *s, tn_error *err)
{
    TN_TRY(run_list(m, err));
    for (size_t i = tn_first_entry(m, s); tn_has_entry(s, i); i = tn_next_entry(m, s, i + 1))
        TN_TRY(tn_writer_place(m->out, i, tn_entry_at(m, i)->nbytes, err));
    return TN_OK;
}

static tn_status add_large(tn_engine *m, tn_subject new, kinds x, tn_error *err)
{
    if (!x.placed && !x.encoded && !m->out->late) {
        TN_TRY(place_now(m, &new, err));
        x.placed = true;
    }
    size_t number = m->count++;
    tn_subject *s = &m->subjects[number];
    *s = new;
    s->way = TN_WAY_SPLIT;
    TN_TRY(tn_run_open_view(m, s, &m->preparing, &s->arena, &s->view, &s->stored, err));
    const tn_piece *piece = &m->run->pieces[s->piece];
    s->block = piece->block;
    s->nblocks = piece->nblocks ? piece->nblocks : tn_view_blocks(s->view);
    choose_way(m, s, &x);
    if (s->way == TN_WAY_ALONE) {
        tn_subject alone = *s;
        *s = (tn_subject){ .first = alone.first, .count = alone.count };
        m->count--;
        tn_status status = run_list(m, err);
        if (!status)
            status = run_alone(m, &alone, err);
        tn_run_close_view(m, &alone, alone.view);
        tn_arena_free(&alone.arena);
        return status;
    }
    m->held += s->stored || piece->nblocks ? 0 : x.bytes + source_bytes(m, s);
    return add_items(m, number, &x, err);
}

static tn_status add_subject(tn_engine *m, tn_subject s, tn_error *err)
{
    if (m->count == MOST_SUBJECTS || m->held > HELD_BYTES)
        TN_TRY(run_list(m, err));
    if (!TN_GROW(m->subjects, m->count, m->cap))
        return tn_fail_nomem(err);
    kinds x = kinds_of(m, &s);
    if (m->run->pieces[s.piece].nblocks || !is_small(m, &s, &x))
        return add_large(m, s, x, err);
    const uint64_t read = source_bytes(m, &s);
    s.way = TN_WAY_SMALL;
    s.direct = !x.encoded && x.placed;
    m->subjects[m->count] = s;
    return add_small(m, m->count++, read > x.bytes ? read : x.bytes, err);
}

/* All entries of a tensor. */
static tn_subject subject_of(const tn_engine *m, uint32_t tensor)
{
    size_t first = tn_writer_first(m->out, tensor), end = tn_writer_first(m->out, (size_t)tensor + 1);
    return (tn_subject){ .first = (uint32_t)first, .count = (uint32_t)(end - first) };
}

/* All that is made of one tensor: together where its view makes all parts, else part by part. */
static tn_status add_tensor(tn_engine *m, uint32_t tensor, uint32_t piece, tn_error *err)
{
    const tn_tensor_plan *plan = m->run->plans[tensor];
    tn_subject all = subject_of(m, tensor);
    all.piece = piece;
    if (plan && plan->makes_parts && tn_has_entry(&all, tn_first_entry(m, &all)))
        return add_subject(m, all, err);
    for (size_t i = all.first; i < (size_t)all.first + all.count; i++)
        if (tn_run_moves(tn_entry_at(m, i)))
            TN_TRY(add_subject(m, (tn_subject){ .first = (uint32_t)i, .count = 1, .piece = piece }, err));
    return TN_OK;
}

/* ---- pieces ---- */

static tn_status add_piece(tn_engine *m, size_t i, tn_error *err)
{
    const tn_piece *p = &m->run->pieces[i];
    for (uint32_t k = 0; k < p->count; k++)
        TN_TRY(add_tensor(m, p->first + k, (uint32_t)i, err));
    return TN_OK;
}

/* Stored bytes at most of entries that have no place yet. */
static uint64_t unplaced_bytes(const tn_engine *m, const tn_piece *p)
{
    const tn_writer *w = m->out;
    size_t end = tn_writer_first(w, (size_t)p->first + p->count);
    uint64_t n = 0;
    for (size_t i = w->first_entry[p->first]; i < end; i++)
        if (tn_run_moves(tn_entry_at(m, i)) && tn_entry_at(m, i)->offset == TN_UNPLACED)
            n += tn_encoded_bound((size_t)tn_entry_at(m, i)->nbytes) + 1;
    return n;
}

/* A piece whose turn it is not: what has no place waits in a spill. */
static tn_status run_early(tn_engine *m, size_t i, tn_error *err)
{
    tn_piece *p = &m->run->pieces[i];
    tn_status status = run_list(m, err);
    if (!status && m->run->part >= 0)
        status = tn_spill_begin_in(&p->waiting, m->run->part, unplaced_bytes(m, p), err);
    else if (!status)
        status = tn_spill_begin(&p->waiting, unplaced_bytes(m, p), err);
    m->out->late = &p->waiting;
    if (!status)
        status = add_piece(m, i, err);
    if (!status)
        status = run_list(m, err);
    m->out->late = NULL;
    if (!status)
        status = tn_spill_end(&p->waiting, err);
    if (status)
        tn_spill_free(&p->waiting);
    return status;
}

/* The entries of a piece that has waited. */
static tn_status place_waiting(tn_engine *m, tn_piece *p, uint8_t *window, tn_error *err)
{
    tn_writer *w = m->out;
    size_t end = tn_writer_first(w, (size_t)p->first + p->count);
    uint64_t from = 0;
    for (size_t i = w->first_entry[p->first]; i < end; i++) {
        const tn_out_entry *e = tn_entry_at(m, i);
        if (!tn_run_moves(e) || e->offset != TN_UNPLACED)
            continue;
        TN_TRY(tn_writer_place(w, i, e->size, err));
        for (uint64_t at = 0; at < e->size; at += TN_WINDOW) {
            size_t n = (size_t)tn_min_u64(e->size - at, TN_WINDOW);
            TN_TRY(tn_source_read(p->waiting.source, from + at, window, n, err));
            TN_TRY(tn_writer_put(w, e->file, e->offset + at, window, n, err));
        }
        from += e->size;
    }
    tn_spill_free(&p->waiting);
    return TN_OK;
}

/* Pieces that are made and come next. */
static tn_status place_due(tn_engine *m, tn_error *err)
{
    uint8_t *window = NULL;
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->run->npieces && m->run->pieces[i].is_made && !status; i++) {
        tn_piece *p = &m->run->pieces[i];
        if (!p->is_placed && p->waiting.source) {
            window = window ? window : malloc(TN_WINDOW);
            status = window ? place_waiting(m, p, window, err) : tn_fail_nomem(err);
        }
        p->is_placed = !status;
    }
    free(window);
    return status;
}

/* A tensor of several pieces is complete when all of them are made. */
static tn_status join_pieces(tn_engine *m, size_t i, tn_error *err)
{
    tn_piece *all = m->run->pieces;
    size_t first = i, end = i;
    while (first && all[first - 1].nblocks && all[first - 1].first == all[i].first)
        first--;
    while (end < m->run->npieces && all[end].nblocks && all[end].first == all[i].first && all[end].is_made)
        end++;
    for (size_t k = first; k < i; k++)
        if (!all[k].is_made)
            return TN_OK;
    if (end < m->run->npieces && all[end].nblocks && all[end].first == all[i].first)
        return TN_OK;
    tn_blocks_made made = *all[first].blocks;   /* a copy: if this fails it is done again */
    const tn_subject s = subject_of(m, all[i].first);
    uint32_t part = 0;
    for (size_t k = first + 1; k < end; k++) {
        tn_digest_join(&made.in, &all[k].blocks->in, all[k].blocks->nin);
        tn_quantize_stats_add(&made.stats, &all[k].blocks->stats);
    }
    for (size_t e = tn_first_entry(m, &s); tn_has_entry(&s, e); e = tn_next_entry(m, &s, e + 1), part++) {
        for (size_t k = first + 1; k < end; k++)
            tn_digest_join(&made.out[part], &all[k].blocks->out[part], all[k].blocks->nout[part]);
        tn_writer_commit(m->out, e, &made.out[part]);
    }
    TN_TRY(tell(m, &s, &made.stats, err));
    const tn_tensor *t = tn_source_of(m, &s);
    if (made.in.kind == TN_CHECKSUM_NONE)
        return TN_OK;
    return tn_run_in_input(m, &s, tn_part_compare_digest(t, &t->parts[0], &made.in, err), err);
}

static tn_status run_pieces(tn_engine *m, size_t first, size_t n, tn_error *err)
{
    tn_piece *all = m->run->pieces;
    bool in_turn = first == 0 || all[first - 1].is_placed;
    for (size_t i = first; i < first + n; i++) {
        if (all[i].is_made) {
            in_turn &= all[i].is_placed;
            continue;
        }
        bool early = !in_turn && unplaced_bytes(m, &all[i]);
        TN_TRY(early ? run_early(m, i, err) : add_piece(m, i, err));
    }
    TN_TRY(run_list(m, err));
    for (size_t i = first; i < first + n; i++) {
        bool was_made = all[i].is_made;
        all[i].is_made = true;
        tn_status status = !was_made && all[i].nblocks ? join_pieces(m, i, err) : TN_OK;
        all[i].is_made = !status;
        TN_TRY(status);
    }
    return place_due(m, err);
}

/* ---- all ---- */

/* Bytes that the search for the scales of a tensor tells the walk of. */
static uint64_t searched_bytes(const tn_run *run, const tn_out_entry *e, size_t i)
{
    const tn_tensor_plan *plan = run->plans[e->tensor];
    if (!plan || e->part || !plan->searched)
        return 0;
    const tn_engine m = { .run = run, .out = run->out };
    const tn_subject s = { .first = (uint32_t)i, .count = 1 };
    const kinds x = kinds_of(&m, &s);
    return is_small(&m, &s, &x) ? 0 : plan->searched;
}

uint64_t tn_run_bytes(const tn_run *run)
{
    uint64_t total = 0;
    for (size_t i = 0; i < run->out->count; i++)
        if (tn_run_moves(&run->out->entries[i]))
            total += run->out->entries[i].nbytes + searched_bytes(run, &run->out->entries[i], i);
    return total;
}

tn_status tn_run_place(tn_writer *w, tn_error *err)
{
    bool *open = calloc(w->nfiles + 1, sizeof *open);   /* the end of the file is not known */
    tn_status status = open ? TN_OK : tn_fail_nomem(err);
    for (size_t i = 0; i < w->count && !status; i++) {
        const tn_out_entry *e = &w->entries[i];
        if (!tn_run_moves(e))
            continue;
        open[e->file] |= e->encoding != TN_ENCODING_RAW;
        if (!open[e->file])
            status = tn_writer_place(w, i, e->nbytes, err);
    }
    free(open);
    return status;
}

static tn_status open_engine(tn_engine *m, tn_error *err)
{
    TN_TRY(tn_walk_start(m->run->walk, err));
    unsigned jobs = tn_pool_jobs(m->run->walk->pool);
    m->scratch = calloc(jobs, sizeof *m->scratch);
    m->results = calloc(tn_pool_results(m->run->walk->pool), sizeof *m->results);
    m->preparing = (tn_preparing){ .pool = m->run->walk->pool,
                                   .workers = calloc(jobs, sizeof *m->preparing.workers) };
    if (!m->scratch || !m->results || !m->preparing.workers)
        return tn_fail_nomem(err);
    for (unsigned i = 0; i < jobs; i++)
        m->preparing.workers[i] = &m->scratch[i].worker;
    return TN_OK;
}

static void close_engine(tn_engine *m)
{
    tn_pool *pool = m->run->walk->pool;
    close_subjects(m);
    for (unsigned i = 0; m->scratch && i < tn_pool_jobs(pool); i++)
        tn_run_free_scratch(&m->scratch[i]);
    for (unsigned i = 0; m->results && i < tn_pool_results(pool); i++) {
        tn_buf_free(&m->results[i].bytes);
        for (unsigned k = 0; k < TN_SPANS; k++)
            tn_buf_free(&m->results[i].spans[k].bytes);
        free(m->results[i].list);
    }
    free(m->scratch);
    free(m->results);
    free(m->preparing.workers);
    free(m->subjects);
    free(m->items.list);
}

/* A piece that failed may be tried again. */
static void begin_again(tn_writer *w, const tn_piece *p)
{
    tn_writer_begin_again(w, w->first_entry[p->first], tn_writer_first(w, (size_t)p->first + p->count));
}

static void announce(const tn_run *run, size_t first, size_t n)
{
    tn_expected e = { .file = run->in };
    for (size_t i = first; i < first + n; i++)
        for (uint32_t k = 0; k < run->pieces[i].count && !run->pieces[i].is_made; k++)
            if (run->pieces[i].block == 0)      /* else its tensor was announced with its first piece */
                tn_expect_tensor(&e, run->source[run->pieces[i].first + k]);
    tn_expect_end(&e);
}

tn_status tn_run_pieces(const tn_run *run, size_t first, size_t n, tn_error *err)
{
    tn_engine m = { .run = run, .out = run->out };
    tn_status status = open_engine(&m, err);
    if (!status)
        announce(run, first, n);
    if (!status)
        status = run_pieces(&m, first, n, err);
    for (size_t i = first; i < first + n && status; i++)
        if (!run->pieces[i].is_made)
            begin_again(run->out, &run->pieces[i]);
    close_engine(&m);
    return status;
}

/* ---- pieces of other processes ---- */

tn_status tn_run_apart(const tn_run *run, size_t i, tn_error *err)
{
    tn_engine m = { .run = run, .out = run->out };
    tn_status status = open_engine(&m, err);
    if (!status) {
        announce(run, i, 1);
        status = unplaced_bytes(&m, &run->pieces[i]) ? run_early(&m, i, err) : add_piece(&m, i, err);
    }
    if (!status)
        status = run_list(&m, err);
    if (status)
        begin_again(run->out, &run->pieces[i]);
    close_engine(&m);
    return status;
}

bool tn_run_waits(const tn_run *run, size_t i)
{
    const tn_engine m = { .run = run, .out = run->out };
    return unplaced_bytes(&m, &run->pieces[i]) > 0;
}

void tn_run_forget(const tn_run *run, size_t i)
{
    tn_piece *p = &run->pieces[i];
    begin_again(run->out, p);
    tn_spill_free(&p->waiting);
    tn_buf_free(&p->sent);
    free(p->blocks);
    p->blocks = NULL;
}

tn_status tn_run_take(const tn_run *run, size_t i, tn_error *err)
{
    tn_engine m = { .run = run, .out = run->out };
    tn_piece *p = &run->pieces[i];
    bool waits = unplaced_bytes(&m, p) > 0;     /* also if there are no bytes in the end */
    uint8_t *window = waits ? malloc(TN_WINDOW) : NULL;
    tn_status status = TN_OK;
    if (waits)
        status = window ? place_waiting(&m, p, window, err) : tn_fail_nomem(err);
    free(window);
    p->is_made = p->is_placed = !status;
    return !status && p->nblocks ? join_pieces(&m, i, err) : status;
}

/* ---- cutting ---- */

/* Whether blocks of all its parts are made from one view, and written where they belong. */
static bool may_cut(const tn_engine *m, const tn_subject *s)
{
    const tn_tensor_plan *plan = tn_plan_of(m, s);
    const kinds x = kinds_of(m, s);
    /* in an object only the place of blocks of one part is known before they are made */
    bool alone = s->count == 1 || (plan && plan->makes_parts && !tn_is_url(m->out->path));
    return alone && tn_has_entry(s, tn_first_entry(m, s)) && !x.encoded && x.placed && !x.hashed &&
           !(plan && plan->kept);
}

/* Prepares a view of which any block can be made alone; false: there is none. */
static tn_status prepare_to_cut(tn_view *v, const tn_preparing *p, bool *cuts, tn_error *err)
{
    tn_view *stored = tn_view_streamed(v);
    *cuts = stored ? tn_stored_splits(stored) : tn_view_is_local(v);
    for (const tn_view *u = v; *cuts && stored && u != stored; u = u->input)
        *cuts = !u->step->prepare;
    if (!*cuts)
        return TN_OK;
    if (!stored)
        return tn_view_prepare(v, p, err);
    tn_stored_stream(stored);
    *cuts = stored->is_prepared;
    return TN_OK;
}

/* Stored bytes that blocks are made of; in a great many short ranges: their share of all. */
static tn_status read_by(const tn_view *v, const tn_piece *whole, tn_piece *p, tn_error *err)
{
    tn_needs needs = { .most = 1 << 14 };
    tn_status status = tn_view_block_needs(v, p->block, p->nblocks, &needs, err);
    p->read = 0;
    for (size_t i = 0; i < needs.count; i++)
        p->read += needs.list[i].size;
    if (status == TN_ERR_LIMIT)
        p->read = (uint64_t)((double)whole->read * ((double)p->written / (double)whole->written));
    free(needs.list);
    return status == TN_ERR_LIMIT ? TN_OK : status;
}

static tn_status cut_view(const tn_view *v, const tn_piece *whole, uint64_t most, tn_piece **list, size_t *n,
                          tn_error *err)
{
    bool one = v->tensor.nparts == 1;
    uint64_t blocks = tn_view_blocks(v), bytes = blocks ? whole->written / blocks : 0;
    if (one && blocks)
        bytes = tn_packed_bytes(tn_view_block_elements(v), v->bits);
    uint64_t each = most > bytes && bytes ? most / bytes : 1, count = tn_div_up_u64(blocks, each);
    if (!(*list = calloc((size_t)count + 1, sizeof **list)))
        return tn_fail_nomem(err);
    for (uint64_t at = 0; at < blocks; at += each) {
        tn_piece *p = &(*list)[(*n)++];
        *p = (tn_piece){ .first = whole->first, .count = 1, .block = at,
                         .nblocks = tn_min_u64(each, blocks - at) };
        p->written = (at + each < blocks ? (at + each) * bytes : whole->written) - at * bytes;
        TN_TRY(read_by(v, whole, p, err));
    }
    return TN_OK;
}

tn_status tn_run_cut(const tn_run *run, const tn_piece *whole, uint64_t most, tn_piece **list, size_t *n,
                     tn_error *err)
{
    tn_engine m = { .run = run, .out = run->out };
    tn_subject s = subject_of(&m, whole->first);
    tn_worker *worker = calloc(1, sizeof *worker);
    tn_preparing p = { .workers = &worker };
    tn_view *v = NULL;
    bool cuts = may_cut(&m, &s);
    tn_status status = worker ? TN_OK : tn_fail_nomem(err);
    if (!status && cuts)
        status = tn_pool_new(1, &p.pool, err);
    if (!status && cuts)
        status = tn_run_make_view(&m, &s, run->quiet, &s.arena, &v, err);
    if (!status && cuts)
        status = prepare_to_cut(v, &p, &cuts, err);
    if (!status && cuts)
        status = cut_view(v, whole, most, list, n, err);
    tn_run_close_view(&m, &s, v);
    tn_arena_free(&s.arena);
    tn_pool_free(p.pool);
    if (worker)
        tn_worker_free(worker);
    free(worker);
    return tn_run_in_input(&m, &s, status, err);
}
