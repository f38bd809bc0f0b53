/* pipeline/transfer.c - moving the data of tensors from an open file into a writer.
 *
 * Entries are taken in order, as many at a time as go the same way:
 *   raw      the place of each is known beforehand: any thread writes any window
 *   small    compressed whole by any thread, written in order
 *   large    one at a time: the encoder itself uses all cores
 *   arranged one at a time, in another order or with padding: arrange.c uses all cores
 *   reformed one at a time, in another form: reform.c uses all cores
 *   rescaled one at a time, by a datatype: rescale.c uses all cores */
#include "pipeline/transfer.h"
#include "base/error.h"
#include "pipeline/scan.h"
#include "store/stream.h"

#include <stdlib.h>

typedef enum way { RAW, SMALL, LARGE, ARRANGED, REFORMED, RESCALED } way;

/* What is moved at a time: a file of very many tensors needs no list of them all. */
enum { MOST_ENTRIES = 1 << 15 };

typedef struct mover {
    const tn_transfer *t;
    tn_walk     *walk;
    size_t      *entries;       /* numbers of writer entries that go the same way */
    size_t       count;
    tn_scan_part *parts;        /* of raw ones */
} mover;

static const tn_arrange *arrange_of(const mover *m, const tn_out_entry *e)
{
    return e->part == 0 ? m->t->made[e->tensor]->arrange : NULL;
}

static way way_of(const mover *m, const tn_out_entry *e)
{
    if (m->t->made[e->tensor]->reform)
        return REFORMED;
    if (m->t->made[e->tensor]->rescale)
        return RESCALED;
    if (arrange_of(m, e))
        return ARRANGED;
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

static const tn_change *change_of(const mover *m, const tn_out_entry *e)
{
    const tn_remade *made = m->t->made[e->tensor];
    if (e->part == 0)
        return made->change;
    return e->part == 1 ? made->index_change : NULL;
}

/* An error of the output names its file already. */
static tn_status in_input(const mover *m, const tn_part *p, tn_status status, tn_error *err)
{
    const char *shard = tn_file_shard_name(m->t->in, tn_stored_of(p)->shard);
    return tn_in_file(status, *shard ? shard : m->t->in_path, err);
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
        m->parts[i] = (tn_scan_part){ tensor_of(m, e), p, tn_part_checksum(p), e->checksum, change_of(m, e),
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

static tn_status read_whole(mover *m, tn_stream *s, const tn_out_entry *e, uint8_t *to, tn_error *err)
{
    const tn_tensor *t = tensor_of(m, e);
    const tn_part *p = part_of(m, e);
    tn_status status = tn_stream_open(s, m->t->in, t, p, 0, p->nbytes, tn_part_checksum(p), err);
    if (status)
        return status;
    tn_stream_change(s, change_of(m, e));
    status = tn_stream_read(s, to, err);
    tn_stream_close(s);
    return status ? status : tn_stream_check(s, t, p, err);
}

static tn_status hash_whole(tn_checksum kind, const void *data, size_t n, tn_digest *digest, tn_error *err)
{
    tn_hash h;
    tn_status status = tn_hash_begin(&h, kind, err);
    if (status)
        return status;
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
    tn_status status = tn_codec_use(&own->encoder, tn_codec_of(e->encoding), err);
    if (!status)
        status = own->encoder.codec->encode(own->encoder.state, m->t->out->options.level, &c, err);
    if (status)
        return status;
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
        status = in_input(m, part_of(m, e), read_whole(m, &own->stream, e, own->in, err), err);
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

static tn_status stream_large(mover *m, tn_stream *s, const tn_out_entry *e, tn_error *err)
{
    const tn_tensor *t = tensor_of(m, e);
    const tn_part *p = part_of(m, e);
    uint64_t told = 0;
    tn_status status =
        in_input(m, p, tn_stream_open(s, m->t->in, t, p, 0, p->nbytes, tn_part_checksum(p), err), err);
    if (!status)
        tn_stream_change(s, change_of(m, e));
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
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->count && !status; i++)
        status = stream_large(m, &s, &m->t->out->entries[m->entries[i]], err);
    tn_stream_free(&s);
    return status;
}

/* ---- arranged ---- */

typedef struct arranged {
    mover              *m;
    const tn_out_entry *e;
    uint64_t            told;
} arranged;

static tn_status emit_arranged(void *context, const uint8_t *bytes, size_t n, uint64_t done, tn_error *err)
{
    arranged *a = context;
    tn_status status = tn_writer_write(a->m->t->out, a->e->tensor, a->e->part, bytes, n, err);
    if (!status)
        status = tn_walk_advance(a->m->walk, done - a->told, err);
    a->told = done;
    return status;
}

static tn_status move_arranged(mover *m, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->count && !status; i++) {
        const tn_out_entry *e = &m->t->out->entries[m->entries[i]];
        arranged a = { .m = m, .e = e };
        tn_arranging arranging = {
            .in = m->t->in, .tensor = tensor_of(m, e), .part = part_of(m, e), .how = arrange_of(m, e),
            .beside = m->t->out->path, .pool = m->walk->pool, .emit = emit_arranged, .context = &a,
        };
        status = in_input(m, arranging.part, tn_arrange_run(&arranging, err), err);
    }
    return status;
}

/* ---- reformed ---- */

typedef struct reformed {
    mover              *m;
    const tn_out_entry *e;
} reformed;

static tn_status emit_reformed(void *context, const uint8_t *bytes, size_t n, tn_error *err)
{
    reformed *r = context;
    tn_status status = tn_writer_write(r->m->t->out, r->e->tensor, r->e->part, bytes, n, err);
    return status ? status : tn_walk_advance(r->m->walk, n, err);
}

static tn_status check_unchanged(const tn_remade *made, tn_error *err)
{
    int64_t planned = made->tensor.parts[0].array.shape[0],
            found = tn_form_conversion_result(made->reformed)->parts[0].array.shape[0];
    if (found == planned)
        return TN_OK;
    return tn_in_tensor(tn_fail(err, TN_ERR_CORRUPT,
                                "it has changed while it was read: expected %lld entries but found %lld",
                                (long long)planned, (long long)found),
                        made->reform->tensor->name, err);
}

/* What was not worth keeping after planning is begun again. */
static tn_status begin_reformed(mover *m, tn_remade *made, tn_error *err)
{
    if (made->reformed)
        return TN_OK;
    tn_status status = tn_form_conversion_new(made->reform, m->walk->pool, &made->reformed, err);
    /* sparse: the number of its entries was found when it was planned */
    if (!status && made->tensor.nparts > 1)
        status = check_unchanged(made, err);
    return in_input(m, &made->reform->tensor->parts[0], status, err);
}

static tn_status move_reformed(mover *m, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->count && !status; i++) {
        const tn_out_entry *e = &m->t->out->entries[m->entries[i]];
        tn_remade *made = m->t->made[e->tensor];
        reformed r = { m, e };
        tn_form_output output = { e->part, change_of(m, e), m->walk->pool, emit_reformed, &r };
        status = begin_reformed(m, made, err);
        if (status)
            break;
        status = in_input(m, &made->reform->tensor->parts[0],
                          tn_form_conversion_write(made->reformed, &output, err), err);
        if (e->part + 1 == made->tensor.nparts) {
            tn_form_conversion_free(made->reformed);
            made->reformed = NULL;
        }
    }
    return status;
}

/* ---- rescaled ---- */

typedef struct rescaled {
    mover   *m;
    uint32_t tensor;
} rescaled;

static tn_status emit_rescaled(void *context, uint32_t part, const uint8_t *bytes, size_t n, tn_error *err)
{
    rescaled *r = context;
    tn_status status = tn_writer_write(r->m->t->out, r->tensor, part, bytes, n, err);
    return status ? status : tn_walk_advance(r->m->walk, n, err);
}

static tn_status move_rescaled(mover *m, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->count && !status; i++) {
        const tn_out_entry *e = &m->t->out->entries[m->entries[i]];
        const tn_remade *made = m->t->made[e->tensor];
        rescaled r = { m, e->tensor };
        tn_quantize_stats report = { 0 };
        bool told = m->t->quantized && made->rescale->kind != TN_RESCALE_DEQUANTIZE;
        tn_rescale_output output = { .pool = m->walk->pool, .emit = emit_rescaled, .context = &r,
                                     .report = told ? &report : NULL };
        if (e->part > 0)
            continue;           /* it was made with the first */
        status = in_input(m, &made->rescale->tensor->parts[0], tn_rescale(made->rescale, &output, err), err);
        if (!status && told)
            tn_rescale_tell(made->rescale, &made->tensor, &report, m->t->quantized, m->t->context);
    }
    return status;
}

/* ---- all ---- */

static tn_status move_all(mover *m, tn_error *err)
{
    static tn_status (*const move[])(mover *, tn_error *) = {
        [RAW] = move_raw, [SMALL] = move_small, [LARGE] = move_large, [ARRANGED] = move_arranged,
        [REFORMED] = move_reformed, [RESCALED] = move_rescaled,
    };
    const tn_writer *w = m->t->out;
    tn_status status = TN_OK;
    for (size_t i = 0; i < w->count && !status;) {
        way same = way_of(m, &w->entries[i]);
        for (m->count = 0; i < w->count && m->count < MOST_ENTRIES; i++) {
            if (!is_moved(&w->entries[i]))
                continue;       /* the writer sees to it */
            if (way_of(m, &w->entries[i]) != same)
                break;
            m->entries[m->count++] = i;
        }
        if (m->count)
            status = move[same](m, err);
    }
    return status;
}

/* As progress counts them. */
static uint64_t bytes_of(const mover *m, const tn_out_entry *e)
{
    return way_of(m, e) >= REFORMED ? e->nbytes : part_of(m, e)->nbytes;
}

uint64_t tn_transfer_bytes(const tn_transfer *t)
{
    mover m = { .t = t };
    uint64_t total = 0;
    for (size_t i = 0; i < t->out->count; i++)
        if (is_moved(&t->out->entries[i]))
            total += bytes_of(&m, &t->out->entries[i]);
    return total;
}

tn_status tn_transfer_run(const tn_transfer *t, tn_error *err)
{
    mover m = { .t = t, .walk = t->walk };
    size_t n = t->out->count < MOST_ENTRIES ? t->out->count + 1 : MOST_ENTRIES;
    m.entries = malloc(n * sizeof *m.entries);
    m.parts = malloc(n * sizeof *m.parts);
    tn_status status = m.entries && m.parts ? tn_walk_start(m.walk, err) : tn_fail_nomem(err);
    if (!status)
        status = move_all(&m, err);
    free(m.entries);
    free(m.parts);
    return status;
}
