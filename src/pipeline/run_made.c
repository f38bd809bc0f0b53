/* pipeline/run_made.c - tensors that are made by blocks of a view.
 *
 * Small ones are made whole, many at a time: a thread takes a tensor, makes its
 * passes and all of its parts.  Of a large one any thread makes any block.  Where
 * the place of the bytes is known beforehand they are written at once, else in
 * order; parts that must wait for the first one do so in a spill. */
#include "pipeline/run.h"
#include "base/error.h"
#include "base/text.h"
#include "tensor/form.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 1 << 20, ITEM_TENSORS = 64 };    /* bytes of a small tensor, and as many at a time at most */

/* ---- one tensor ---- */

/* The entries of a writer that are made of one tensor. */
typedef struct subject {
    uint32_t entries[TN_MAX_PARTS], count;
    const tn_tensor_plan *plan;
    const tn_tensor      *source;
} subject;

/* Takes the next entries of one tensor from a list of them. */
static subject next_subject(const tn_run *run, const size_t **entries, const size_t *end)
{
    const tn_out_entry *all = run->out->entries, *first = &all[**entries];
    subject s = { .plan = run->plans[first->tensor], .source = run->source[first->tensor] };
    while (*entries < end && all[**entries].tensor == first->tensor)
        s.entries[s.count++] = (uint32_t)*(*entries)++;
    return s;
}

static const tn_out_entry *entry_of(const tn_run *run, const subject *s, uint32_t i)
{
    return &run->out->entries[s->entries[i]];
}

static uint64_t bytes_of(const tn_run *run, const subject *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->count; i++)
        n += entry_of(run, s, i)->nbytes;
    return n;
}

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

/* The view of a tensor, with all its checks and passes done. */
static tn_status open_view(const tn_run *run, const subject *s, const tn_preparing *p, tn_arena *arena,
                           tn_view **view, tn_error *err)
{
    tn_view *v = s->plan->kept;
    const tn_plan_place *place = s->plan->is_small ? run->quiet : run->place;
    tn_status status = v ? TN_OK : tn_plan_view(place, s->source, &s->plan->rules, arena, &v, err);
    if (status)
        return tn_run_in_input(run, s->source, status, err);
    *view = v;
    status = check_unchanged(v, s->plan, err);
    if (!status)
        status = tn_view_prepare(v, p, err);
    if (!status)
        tn_plan_take_data(v, s->plan);
    return tn_run_in_input(run, s->source, status, err);
}

static void tell(const tn_run *run, const subject *s, const tn_quantize_stats *stats)
{
    if (run->quantized && s->plan->is_quantized)
        tn_plan_tell(s->source, s->plan, stats, run->quantized, run->context);
}

/* ---- small ones ---- */

typedef struct small_scratch {
    tn_worker  worker;
    tn_pool   *pool;            /* of this thread alone */
    tn_arena   arena;
    tn_buf     parts[TN_MAX_PARTS];
} small_scratch;

typedef struct small_result {
    tn_buf            bytes;    /* all parts of all tensors */
    tn_quantize_stats stats[ITEM_TENSORS];
} small_result;

typedef struct smalls {
    const tn_run *run;
    subject      *list;
} smalls;

static tn_status make_small(const smalls *m, const subject *s, small_scratch *w, small_result *r,
                            tn_quantize_stats *stats, tn_error *err)
{
    tn_worker *workers[] = { &w->worker };
    const tn_preparing p = { .pool = w->pool, .workers = workers };
    tn_view *v = NULL;
    tn_arena_mark mark = w->arena;
    tn_status status = open_view(m->run, s, &p, &w->arena, &v, err);
    for (uint64_t b = 0; !status && b < tn_view_blocks(v); b++) {
        tn_part_bytes out[TN_MAX_PARTS] = { 0 };
        if (b == 0)
            *stats = tn_view_report(v);
        status = tn_run_in_input(m->run, s->source, tn_view_block(v, b, &w->worker, out, err), err);
        for (uint32_t k = 0; k < v->tensor.nparts && !status; k++)
            tn_buf_put(&w->parts[k], out[k].bytes, (size_t)out[k].size);
        tn_quantize_stats_add(stats, &w->worker.report);
    }
    for (uint32_t i = 0; i < s->count && !status; i++) {
        const tn_buf *made = &w->parts[entry_of(m->run, s, i)->part];
        tn_buf_put(&r->bytes, made->data, made->size);
        status = made->bad ? tn_fail_nomem(err) : TN_OK;
    }
    for (uint32_t k = 0; k < TN_MAX_PARTS; k++)
        w->parts[k].size = 0;
    tn_view_free(v);
    tn_arena_rewind(&w->arena, mark);
    return status;
}

static tn_status small_work(void *context, const tn_item *item, void *scratch, void *result, tn_error *err)
{
    const smalls *m = context;
    small_scratch *w = scratch;
    small_result *r = result;
    tn_status status = w->pool ? TN_OK : tn_pool_new(1, &w->pool, err);
    r->bytes.size = 0;
    for (uint32_t i = 0; i < item->count && !status; i++) {
        r->stats[i] = (tn_quantize_stats){ 0 };
        status = make_small(m, &m->list[item->subject + i], w, r, &r->stats[i], err);
    }
    return status || !r->bytes.bad ? status : tn_fail_nomem(err);
}

static tn_status small_join(void *context, tn_item *item, void *result, tn_error *err)
{
    const smalls *m = context;
    const small_result *r = result;
    const uint8_t *from = r->bytes.data ? r->bytes.data : (const uint8_t *)"";
    for (uint32_t i = 0; i < item->count; i++) {
        const subject *s = &m->list[item->subject + i];
        for (uint32_t k = 0; k < s->count; k++) {
            const tn_out_entry *e = entry_of(m->run, s, k);
            TN_TRY(tn_writer_write(m->run->out, e->tensor, e->part, from, (size_t)e->nbytes, err));
            from += e->nbytes;
        }
        tell(m->run, s, &r->stats[i]);
    }
    return TN_OK;
}

static void free_scratch(void *scratch)
{
    small_scratch *w = scratch;
    tn_worker_free(&w->worker);
    tn_pool_free(w->pool);
    tn_arena_free(&w->arena);
    for (unsigned k = 0; k < TN_MAX_PARTS; k++)
        tn_buf_free(&w->parts[k]);
}

static void free_result(void *result)
{
    tn_buf_free(&((small_result *)result)->bytes);
}

static tn_status run_small(const tn_run *run, subject *list, size_t n, tn_error *err)
{
    smalls m = { run, list };
    tn_items items = { 0 };
    tn_status status = TN_OK;
    for (size_t i = 0; i < n && !status; i++) {
        tn_item whole = { .subject = i, .n = bytes_of(run, &list[i]) };
        whole.bytes = whole.n;
        status = tn_items_pack(&items, whole, ITEM_TENSORS, SMALL, err);
    }
    if (!status)
        status = tn_walk_run(run->walk, &items, &(tn_walk_task){
            .work = small_work, .join = small_join, .context = &m, .scratch_size = sizeof(small_scratch),
            .result_size = sizeof(small_result), .free_scratch = free_scratch, .free_result = free_result,
        }, err);
    free(items.list);
    return status;
}

/* ---- a large one ---- */

/* What a block leaves for when it is its turn. */
typedef struct block_result {
    tn_buf            bytes;    /* in order: of all parts; else nothing */
    uint64_t          sizes[TN_MAX_PARTS];
    tn_digest         digests[TN_MAX_PARTS];
    tn_quantize_stats stats;
} block_result;

typedef struct large {
    const tn_run       *run;
    const subject      *s;
    const tn_preparing *p;
    tn_view            *view;
    bool                direct; /* blocks are written where they belong by whoever makes them */
    block_result       *results;
    tn_digest           digests[TN_MAX_PARTS];
    tn_spill            waiting[TN_MAX_PARTS];  /* parts after the first, in order */
    tn_quantize_stats   stats;
} large;

/* Whether all parts have places that are known now, and checksums that can be joined. */
static bool is_direct(const large *l)
{
    bool direct = true;
    for (uint32_t i = 0; i < l->s->count; i++) {
        const tn_out_entry *e = entry_of(l->run, l->s, i);
        direct &= e->encoding == TN_ENCODING_RAW && e->checksum != TN_CHECKSUM_SHA256 && e->swap <= 1;
    }
    return direct;
}

static tn_status put_direct(const large *l, const tn_part_bytes *out, block_result *r, tn_error *err)
{
    for (uint32_t i = 0; i < l->s->count; i++) {
        const tn_out_entry *e = entry_of(l->run, l->s, i);
        const tn_part_bytes *b = &out[e->part];
        tn_hash hash;
        r->sizes[i] = b->size;
        TN_TRY(tn_hash_begin(&hash, e->checksum, err));
        tn_hash_update(&hash, b->bytes, (size_t)b->size);
        TN_TRY(tn_hash_end(&hash, &r->digests[i], err));
        uint64_t at = e->offset + b->offset;
        if (b->size)
            TN_TRY(tn_writer_put(l->run->out, e->file, at, b->bytes, (size_t)b->size, err));
    }
    return TN_OK;
}

static tn_status keep(const large *l, const tn_part_bytes *out, block_result *r, tn_error *err)
{
    r->bytes.size = 0;
    for (uint32_t i = 0; i < l->s->count; i++) {
        const tn_part_bytes *b = &out[entry_of(l->run, l->s, i)->part];
        r->sizes[i] = b->size;
        if (b->size)
            tn_buf_put(&r->bytes, b->bytes, (size_t)b->size);
    }
    return r->bytes.bad ? tn_fail_nomem(err) : TN_OK;
}

static tn_status work(void *context, uint64_t block, tn_pool_use use, tn_error *err)
{
    const large *l = context;
    tn_worker *w = l->p->workers[use.scratch];
    block_result *r = &l->results[use.result];
    tn_part_bytes out[TN_MAX_PARTS] = { 0 };
    tn_status status = tn_run_in_input(l->run, l->s->source, tn_view_block(l->view, block, w, out, err), err);
    r->stats = w->report;
    if (status)
        return status;
    return l->direct ? put_direct(l, out, r, err) : keep(l, out, r, err);
}

/* The first part goes out; the others wait until it is complete. */
static tn_status write_in_order(large *l, const block_result *r, tn_error *err)
{
    const uint8_t *from = r->bytes.data ? r->bytes.data : (const uint8_t *)"";
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < l->s->count && !status; i++) {
        const tn_out_entry *e = entry_of(l->run, l->s, i);
        if (i == 0)
            status = tn_writer_write(l->run->out, e->tensor, e->part, from, (size_t)r->sizes[i], err);
        else if (r->sizes[i])
            status = tn_spill_append(&l->waiting[i], from, (size_t)r->sizes[i], err);
        from += r->sizes[i];
    }
    return status;
}

static tn_status emit(void *context, uint64_t block, unsigned number, tn_error *err)
{
    large *l = context;
    (void)block;
    const block_result *r = &l->results[number];
    uint64_t bytes = 0;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < l->s->count; i++) {
        bytes += r->sizes[i];
        if (l->direct)
            tn_digest_join(&l->digests[i], &r->digests[i], r->sizes[i]);
    }
    tn_quantize_stats_add(&l->stats, &r->stats);
    if (!l->direct)
        status = write_in_order(l, r, err);
    return status ? status : tn_walk_advance(l->run->walk, bytes, err);
}

/* Places or spills for all parts. */
static tn_status begin_parts(large *l, tn_error *err)
{
    tn_writer *w = l->run->out;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < l->s->count && !status; i++) {
        const tn_out_entry *e = entry_of(l->run, l->s, i);
        tn_hash none;
        if (l->direct)
            status = tn_writer_place(w, l->s->entries[i], e->nbytes, err);
        if (l->direct && !status)
            status = tn_hash_begin(&none, e->checksum, err);
        if (l->direct && !status)
            status = tn_hash_end(&none, &l->digests[i], err);
        if (!l->direct && i)
            status = tn_spill_begin(&l->waiting[i], e->nbytes, err);
    }
    return status || !l->direct ? status : tn_writer_reserve(w, err);
}

/* A part that has waited. */
static tn_status write_waiting(large *l, uint32_t i, uint8_t *window, tn_error *err)
{
    const tn_out_entry *e = entry_of(l->run, l->s, i);
    tn_status status = TN_OK;
    uint64_t at = 0;
    do {
        size_t n = (size_t)(e->nbytes - at < TN_WINDOW ? e->nbytes - at : TN_WINDOW);
        if (n)
            status = tn_source_read(l->waiting[i].source, at, window, n, err);
        if (!status)
            status = tn_writer_write(l->run->out, e->tensor, e->part, window, n, err);
        at += n;
    } while (at < e->nbytes && !status);
    return status;
}

static tn_status end_parts(large *l, tn_error *err)
{
    uint8_t *window = l->direct ? NULL : malloc(TN_WINDOW);
    tn_status status = window || l->direct ? TN_OK : tn_fail_nomem(err);
    for (uint32_t i = 0; i < l->s->count && !status; i++) {
        if (l->direct)
            tn_writer_commit(l->run->out, l->s->entries[i], &l->digests[i]);
        else if (i)
            status = write_waiting(l, i, window, err);
    }
    free(window);
    return status;
}

static tn_status run_blocks(large *l, tn_error *err)
{
    tn_pool *pool = l->p->pool;
    unsigned results = tn_pool_results(pool);
    l->results = calloc(results, sizeof *l->results);
    tn_status status = l->results ? begin_parts(l, err) : tn_fail_nomem(err);
    if (!status)
        status = tn_pool_run(pool, tn_view_blocks(l->view), &(tn_ordered){ work, emit, l }, err);
    if (!status)
        status = end_parts(l, err);
    for (unsigned i = 0; l->results && i < results; i++)
        tn_buf_free(&l->results[i].bytes);
    free(l->results);
    for (unsigned i = 0; i < TN_MAX_PARTS; i++)
        tn_spill_free(&l->waiting[i]);
    return status;
}

static tn_status run_large(const tn_run *run, const subject *s, const tn_preparing *p, tn_error *err)
{
    tn_arena arena = { 0 };
    large l = { .run = run, .s = s, .p = p };
    tn_status status = open_view(run, s, p, &arena, &l.view, err);
    l.direct = is_direct(&l);
    if (!status)
        l.stats = tn_view_report(l.view);
    if (!status)
        status = run_blocks(&l, err);
    if (!status)
        tell(run, s, &l.stats);
    if (!s->plan->kept)
        tn_view_free(l.view);
    tn_arena_free(&arena);
    return status;
}

/* ---- all ---- */

tn_status tn_run_made(const tn_run *run, const tn_preparing *p, const size_t *entries, size_t n,
                      tn_error *err)
{
    const size_t *end = entries + n;
    subject *list = malloc(n * sizeof *list);
    tn_status status = list ? TN_OK : tn_fail_nomem(err);
    while (entries < end && !status) {
        size_t small = 0;
        subject next = { .count = 0 };
        while (entries < end && !next.count) {
            next = next_subject(run, &entries, end);
            if (!next.plan->is_small)
                break;
            list[small++] = next;
            next.count = 0;
        }
        if (small)
            status = run_small(run, list, small, err);
        if (!status && next.count)
            status = run_large(run, &next, p, err);
    }
    free(list);
    return status;
}
