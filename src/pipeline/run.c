/* pipeline/run.c - the data of planned tensors from an open file into a writer.
 *
 * Entries are taken in order, as many at a time as go the same way:
 *   raw     the place of each is known beforehand: any thread writes any window
 *   small   compressed whole by any thread, written in order
 *   large   one at a time: the encoder itself uses all cores
 *   made    by blocks of a view: run_made.c */
#include "pipeline/run.h"
#include "base/error.h"
#include "pipeline/scan.h"

#include <stdlib.h>

typedef enum way { RAW, SMALL, LARGE, MADE } way;

/* What is moved at a time: a file of very many tensors needs no list of them all. */
enum { MOST_ENTRIES = 1 << 15 };

typedef struct mover {
    const tn_run *t;
    tn_walk      *walk;
    tn_preparing  preparing;
    size_t       *entries;      /* numbers of writer entries that go the same way */
    size_t        count;
    tn_change    *changes;      /* of each; without apply(): none */
    tn_view     **views;        /* that they belong to... */
    size_t        nviews;
    tn_arena      arena;        /* ...and what these consist of */
    tn_scan_part *parts;        /* of raw ones */
} mover;

static bool is_made(const mover *m, const tn_out_entry *e)
{
    const tn_tensor_plan *plan = m->t->plans[e->tensor];
    return plan && (e->part == 0 ? plan->is_made : plan->makes_parts);
}

static way way_of(const mover *m, const tn_out_entry *e)
{
    if (is_made(m, e))
        return MADE;
    if (e->encoding == TN_ENCODING_RAW)
        return RAW;
    return e->nbytes <= TN_ENCODE_WHOLE_MAX ? SMALL : LARGE;
}

/* What is not tied to another and not in memory. */
static bool is_moved(const tn_out_entry *e)
{
    return e->tied == TN_NOT_TIED && !e->data;
}

static const tn_tensor *tensor_of(const mover *m, const tn_out_entry *e)
{
    return m->t->source[e->tensor];
}

static const tn_part *part_of(const mover *m, const tn_out_entry *e)
{
    return &tensor_of(m, e)->parts[e->part];
}

static const tn_out_entry *entry_of(const mover *m, size_t i)
{
    return &m->t->out->entries[m->entries[i]];
}

static const tn_change *change_of(const mover *m, size_t i)
{
    return m->changes[i].apply ? &m->changes[i] : NULL;
}

tn_status tn_run_in_input(const tn_run *run, const tn_tensor *t, tn_status status, tn_error *err)
{
    const char *shard = tn_file_shard_name(run->in, tn_stored_of(&t->parts[0])->shard);
    return tn_in_file(status, *shard ? shard : run->in_path, err);
}

/* An error of the output names its file already. */
static tn_status in_input(const mover *m, const tn_part *p, tn_status status, tn_error *err)
{
    const char *shard = tn_file_shard_name(m->t->in, tn_stored_of(p)->shard);
    return tn_in_file(status, *shard ? shard : m->t->in_path, err);
}

/* ---- what becomes of elements that are streamed ---- */

static tn_status open_view(mover *m, size_t tensor, tn_error *err)
{
    const tn_tensor_plan *plan = m->t->plans[tensor];
    const tn_tensor *source = m->t->source[tensor];
    tn_view *v = NULL;
    tn_status status = tn_plan_view(m->t->place, source, &plan->rules, &m->arena, &v, err);
    if (!status)
        m->views[m->nviews++] = v;
    if (!status && !plan->is_made) {    /* else only other parts are streamed */
        tn_view *stored = v->input ? v->input : v;
        stored->is_prepared = true;     /* its checksum is compared while it is streamed */
        status = tn_view_prepare(v, &m->preparing, err);
        if (!status)
            tn_plan_take_data(v, plan);
    }
    return tn_run_in_input(m->t, source, status, err);
}

/* The views of the tensors that change, and what they do to each entry. */
static tn_status open_changes(mover *m, tn_error *err)
{
    size_t last = SIZE_MAX;
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->count && !status; i++) {
        const tn_out_entry *e = entry_of(m, i);
        m->changes[i] = (tn_change){ 0 };
        if (!m->t->plans[e->tensor])
            continue;
        if (e->tensor != last)
            status = open_view(m, e->tensor, err);
        last = e->tensor;
        const tn_view *v = status ? NULL : m->views[m->nviews - 1];
        if (v && e->part == 0)
            tn_view_change(v, &m->changes[i]);
        else if (v && e->part == 1 && v->index_change)
            m->changes[i] = *v->index_change;
    }
    return status;
}

static void close_changes(mover *m)
{
    while (m->nviews)
        tn_view_free(m->views[--m->nviews]);
    tn_arena_free(&m->arena);
    m->arena = (tn_arena){ 0 };
}

/* ---- raw ---- */

/* Makes the kernel map a window, and brings it near, before the write: there
 * the faults would be taken under the lock of the output file, one thread at a
 * time. */
static void touch(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        (void)*(const volatile uint8_t *)(bytes + i);
}

static tn_status write_window(void *context, size_t k, uint64_t at, const uint8_t *bytes, size_t n,
                              tn_error *err)
{
    mover *m = context;
    tn_writer *w = m->t->out;
    const tn_out_entry *e = &w->entries[m->entries[k]];
    touch(bytes, n);
    return tn_writer_put(w, e->file, e->offset + at, bytes, n, err);
}

static tn_status raw_done(void *context, size_t k, const tn_scan_result *result, tn_error *err)
{
    mover *m = context;
    const tn_scan_part *p = &m->parts[k];
    tn_status status = result->status;
    if (status)
        *err = result->err;
    else
        status = tn_part_compare_digest(p->tensor, p->part, &result->stored, err);
    if (!status)
        tn_writer_commit(m->t->out, m->entries[k], &result->decoded);
    return in_input(m, p->part, status, err);
}

static tn_status move_raw(mover *m, tn_error *err)
{
    tn_writer *w = m->t->out;
    for (size_t i = 0; i < m->count; i++) {
        tn_out_entry *e = &w->entries[m->entries[i]];
        const tn_part *p = part_of(m, e);
        tn_status status = tn_writer_place(w, m->entries[i], e->nbytes, err);
        if (status)
            return status;
        m->parts[i] = (tn_scan_part){ tensor_of(m, e), p, tn_part_checksum(p), e->checksum, change_of(m, i),
                                      e->swap };
    }
    tn_scan scan = { .file = m->t->in, .parts = m->parts, .count = m->count, .window = write_window,
                     .done = raw_done, .context = m };
    tn_status status = tn_writer_reserve(w, err);
    return status ? status : tn_scan_run(&scan, m->walk, err);
}

/* ---- small, compressed ---- */

enum { ITEM_PARTS = 64 };

/* An item has at most TN_ENCODE_WHOLE_MAX bytes to compress. */
typedef struct small_scratch {
    tn_stream stream;
    tn_codec_state encoder;
    uint8_t  *in;               /* a decoded part */
} small_scratch;

typedef struct small_result {
    uint8_t  *out;              /* compressed parts, one after the other */
    size_t    used;
    size_t    size[ITEM_PARTS];
    tn_digest digest[ITEM_PARTS];
} small_result;

static size_t small_bound(void)
{
    return tn_encoded_bound(TN_ENCODE_WHOLE_MAX) + ITEM_PARTS * tn_encoded_bound(0);
}

static tn_status read_whole(mover *m, tn_stream *s, size_t i, uint8_t *to, tn_error *err)
{
    const tn_out_entry *e = entry_of(m, i);
    const tn_tensor *t = tensor_of(m, e);
    const tn_part *p = part_of(m, e);
    TN_TRY(tn_stream_open(s, m->t->in, t, p, 0, p->nbytes, tn_part_checksum(p), err));
    tn_stream_change(s, change_of(m, i));
    tn_status status = tn_stream_read(s, to, err);
    tn_stream_close(s);
    return status ? status : tn_stream_check(s, t, p, err);
}

static tn_status hash_whole(tn_checksum kind, const void *data, size_t n, tn_digest *digest, tn_error *err)
{
    tn_hash h;
    TN_TRY(tn_hash_begin(&h, kind, err));
    tn_hash_update(&h, data, n);
    return tn_hash_end(&h, digest, err);
}

static tn_status make_buffers(small_scratch *own, small_result *r, tn_error *err)
{
    own->in = own->in ? own->in : malloc(TN_ENCODE_WHOLE_MAX);
    r->out = r->out ? r->out : malloc(small_bound());
    return own->in && r->out ? TN_OK : tn_fail_nomem(err);
}

/* Part i of an item. */
static tn_status compress(const mover *m, small_scratch *own, const tn_out_entry *e, small_result *r,
                          size_t i, tn_error *err)
{
    uint8_t *to = r->out + r->used;
    size_t room = small_bound() - r->used;
    tn_coding c = { own->in, (size_t)e->nbytes, to, room };
    TN_TRY(tn_codec_use(&own->encoder, tn_codec_of(e->encoding), err));
    TN_TRY(own->encoder.codec->encode(own->encoder.state, m->t->out->options.level, &c, err));
    r->size[i] = room - c.nout;
    r->used += r->size[i];
    return hash_whole(e->checksum, to, r->size[i], &r->digest[i], err);
}

static tn_status small_work(void *context, const tn_item *item, void *scratch, void *result, tn_error *err)
{
    mover *m = context;
    small_scratch *own = scratch;
    small_result *r = result;
    tn_status status = make_buffers(own, r, err);
    r->used = 0;
    for (size_t i = 0; i < item->count && !status; i++) {
        const tn_out_entry *e = &m->t->out->entries[m->entries[item->subject + i]];
        status = read_whole(m, &own->stream, item->subject + i, own->in, err);
        in_input(m, part_of(m, e), status, err);
        if (!status)
            status = tn_in_file(compress(m, own, e, r, i, err), m->t->out->path, err);
    }
    return status;
}

static tn_status small_join(void *context, tn_item *item, void *result, tn_error *err)
{
    mover *m = context;
    tn_writer *w = m->t->out;
    const small_result *r = result;
    const uint8_t *from = r->out;
    for (size_t i = 0; i < item->count; i++) {
        size_t entry = m->entries[item->subject + i];
        const tn_out_entry *e = &w->entries[entry];
        tn_status status = tn_writer_place(w, entry, r->size[i], err);
        if (!status)
            status = tn_writer_put(w, e->file, e->offset, from, r->size[i], err);
        if (status)
            return status;
        tn_writer_commit(w, entry, &r->digest[i]);
        from += r->size[i];
    }
    return TN_OK;
}

static void free_scratch(void *scratch)
{
    small_scratch *own = scratch;
    tn_stream_free(&own->stream);
    tn_codec_free(&own->encoder);
    free(own->in);
}

static void free_result(void *result) { free(((small_result *)result)->out); }

static tn_status move_small(mover *m, tn_error *err)
{
    tn_items items = { 0 };
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->count && !status; i++) {
        const tn_out_entry *e = &m->t->out->entries[m->entries[i]];
        tn_item whole = { .subject = i, .n = e->nbytes, .bytes = part_of(m, e)->nbytes };
        status = tn_items_pack(&items, whole, ITEM_PARTS, TN_ENCODE_WHOLE_MAX, err);
    }
    if (!status)
        status = tn_walk_run(m->walk, &items, &(tn_walk_task){
            .work = small_work, .join = small_join, .context = m,
            .scratch_size = sizeof(small_scratch), .result_size = sizeof(small_result),
            .free_scratch = free_scratch, .free_result = free_result,
        }, err);
    free(items.list);
    return status;
}

/* ---- large, compressed ---- */

static tn_status stream_large(mover *m, tn_stream *s, size_t i, tn_error *err)
{
    const tn_out_entry *e = entry_of(m, i);
    const tn_tensor *t = tensor_of(m, e);
    const tn_part *p = part_of(m, e);
    uint64_t told = 0;
    tn_status status =
        in_input(m, p, tn_stream_open(s, m->t->in, t, p, 0, p->nbytes, tn_part_checksum(p), err), err);
    if (!status)
        tn_stream_change(s, change_of(m, i));
    while (!status) {
        const uint8_t *bytes;
        size_t n;
        status = in_input(m, p, tn_stream_next(s, &bytes, &n, err), err);
        if (status || !n)
            break;
        status = tn_writer_write(m->t->out, e->tensor, e->part, bytes, n, err);
        if (!status)
            status = tn_walk_advance(m->walk, s->made - told, err);
        told = s->made;
    }
    return status ? status : in_input(m, p, tn_stream_check(s, t, p, err), err);
}

static tn_status move_large(mover *m, tn_error *err)
{
    tn_stream s = { 0 };
    for (size_t i = 0; i < m->count; i++)
        TN_TRY(stream_large(m, &s, i, err));
    tn_stream_free(&s);
    return TN_OK;
}

/* ---- made ---- */

static tn_status move_made(mover *m, tn_error *err)
{
    return tn_run_made(m->t, &m->preparing, m->entries, m->count, err);
}

/* ---- all ---- */

/* The next entries that go one way, as many as are moved at a time; returns the number of the one after. */
static size_t choose_entries(mover *m, size_t i, way same)
{
    const tn_writer *w = m->t->out;
    uint32_t last = UINT32_MAX;         /* a tensor is never cut */
    for (m->count = 0; i < w->count; i++) {
        const tn_out_entry *e = &w->entries[i];
        if (!is_moved(e))
            continue;           /* the writer sees to it */
        if (way_of(m, e) != same || (m->count >= MOST_ENTRIES && e->tensor != last))
            break;
        last = e->tensor;
        m->entries[m->count++] = i;
    }
    return i;
}

static tn_status move_all(mover *m, tn_error *err)
{
    static tn_status (*const move[])(mover *, tn_error *) = {
        [RAW] = move_raw, [SMALL] = move_small, [LARGE] = move_large, [MADE] = move_made,
    };
    const tn_writer *w = m->t->out;
    tn_status status = TN_OK;
    for (size_t i = 0; i < w->count && !status;) {
        way same = way_of(m, &w->entries[i]);
        i = choose_entries(m, i, same);
        if (m->count && same != MADE)
            status = open_changes(m, err);
        if (m->count && !status)
            status = move[same](m, err);
        close_changes(m);
    }
    return status;
}

/* As progress counts them. */
static uint64_t bytes_of(const mover *m, const tn_out_entry *e)
{
    return is_made(m, e) ? e->nbytes : part_of(m, e)->nbytes;
}

uint64_t tn_run_bytes(const tn_run *t)
{
    mover m = { .t = t };
    uint64_t total = 0;
    for (size_t i = 0; i < t->out->count; i++)
        if (is_moved(&t->out->entries[i]))
            total += bytes_of(&m, &t->out->entries[i]);
    return total;
}

static tn_status make_workers(mover *m, tn_worker **own, tn_error *err)
{
    unsigned jobs = tn_pool_jobs(m->walk->pool);
    m->preparing = (tn_preparing){ .pool = m->walk->pool,
                                    .workers = calloc(jobs, sizeof *m->preparing.workers) };
    *own = calloc(jobs, sizeof **own);
    if (!*own || !m->preparing.workers)
        return tn_fail_nomem(err);
    for (unsigned i = 0; i < jobs; i++)
        m->preparing.workers[i] = &(*own)[i];
    return TN_OK;
}

static void free_mover(mover *m, tn_worker *workers)
{
    for (unsigned i = 0; workers && i < tn_pool_jobs(m->walk->pool); i++)
        tn_worker_free(&workers[i]);
    free(workers);
    free(m->preparing.workers);
    free(m->entries);
    free(m->changes);
    free(m->views);
    free(m->parts);
}

tn_status tn_run_all(const tn_run *t, tn_error *err)
{
    mover m = { .t = t, .walk = t->walk };
    size_t n = t->out->count < MOST_ENTRIES ? t->out->count + 1 : MOST_ENTRIES + TN_MAX_PARTS;
    tn_worker *workers = NULL;
    TN_TRY(tn_walk_start(m.walk, err));
    m.entries = malloc(n * sizeof *m.entries);
    m.changes = malloc(n * sizeof *m.changes);
    m.views = malloc(n * sizeof *m.views);
    m.parts = malloc(n * sizeof *m.parts);
    bool good = m.entries && m.changes && m.views && m.parts;
    tn_status status = good ? make_workers(&m, &workers, err) : tn_fail_nomem(err);
    if (!status)
        status = move_all(&m, err);
    close_changes(&m);
    free_mover(&m, workers);
    return status;
}
