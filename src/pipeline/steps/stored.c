/* pipeline/steps/stored.c - the first step of every view: a tensor as it is in its file. */
#include "pipeline/steps/steps.h"
#include "base/error.h"
#include "store/kept.h"
#include "store/load.h"
#include "tensor/array.h"
#include "tensor/code.h"

#include <string.h>

const tn_tensor *tn_stored_tensor(const tn_view *v)
{
    while (v->input)
        v = v->input;
    return v->state;
}

/* Only what is mapped as it is in the file. */
static bool is_copied(const tn_view *v, const tn_part *p)
{
    const tn_file *file = v->place->file;
    return p->data && file && p->stored && p->data == tn_file_view(file, p) &&
           tn_source_copies(file->shards[p->stored->shard].source, p->nbytes);
}

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    const tn_tensor *t = options;
    tn_status status = TN_OK;
    v->state = (void *)(uintptr_t)t;
    for (uint32_t k = 0; k < t->nparts && !status; k++) {
        status = tn_part_readable(t, &t->parts[k], err);
        v->parts[k].data = NULL;        /* read when it is asked for */
        v->parts[k].stored = NULL;
        v->parts[k].padded = NULL;
    }
    if (status || !t->nparts)
        return status;
    v->memory = t->parts[0].data;
    v->is_copied = is_copied(v, &t->parts[0]);
    v->bits = tn_dtype_get(t->parts[0].array.dtype)->bits;
    tn_shape_count(t->parts[0].array.rank, t->parts[0].array.shape, &v->count);     /* was checked */
    if (v->count && !v->memory && !tn_part_splits(&t->parts[0]))
        v->reach = TN_REACH_IN_ORDER;
    return TN_OK;
}

void tn_stored_rebind(tn_view *v, const tn_tensor *t)
{
    if (v->filled)
        tn_loaded_free(&v->filled->whole);
    v->state = (void *)(uintptr_t)t;
    v->tensor.name = t->name;
    v->memory = t->parts[0].data;
    v->is_copied = is_copied(v, &t->parts[0]);
    v->reach = v->count && !v->memory && !tn_part_splits(&t->parts[0]) ? TN_REACH_IN_ORDER : TN_REACH_ANY;
    v->is_prepared = v->is_streamed = false;
}

static tn_status tick(void *context, tn_error *err)
{
    return tn_walk_check(context, err);
}

/* Compares the checksum of the first part.  What can only be read in order is decoded into a spill, unless it
 * will be read so. */
static tn_status prepare(tn_view *v, const tn_preparing *p, tn_error *err)
{
    const tn_tensor *t = v->state;
    const tn_part *part = &t->parts[0];
    tn_loading loading = { .in = v->place->file, .tensor = t, .beside = v->place->beside, .tick = tick,
                           .context = v->place->walk };
    if (v->reach == TN_REACH_ANY)
        return v->place->unchecked ? TN_OK : tn_load_check(&loading, part, err);
    if (p->in_order)
        return TN_OK;
    tn_kept kept = { .max_bytes = v->place->max_bytes ? v->place->max_bytes : v->place->file->max_bytes };
    tn_kept_add_part(&kept, t, part);
    TN_TRY(tn_kept_check(&kept, err));
    TN_TRY(tn_view_new_filled(v, err));
    TN_TRY(tn_load_part(&loading, part, &v->filled->whole.spills[0], err));
    v->memory = v->filled->whole.spills[0].bytes;
    return TN_OK;
}

/* Begins at an element, or where the data does. */
static tn_status open_stream(const tn_view *v, uint64_t first, size_t n, tn_worker *w, tn_error *err)
{
    const tn_tensor *t = v->state;
    const tn_part *p = &t->parts[0];
    bool in_order = v->reach == TN_REACH_IN_ORDER;
    uint64_t end = first + n;
    if (w->until > end)         /* of the view that is read, which may have other elements too */
        end = tn_min_u64(w->until, v->count);
    w->streamed = NULL;
    w->left = 0;
    w->at = in_order ? 0 : tn_packed_byte(first, v->bits);
    TN_TRY(tn_stream_open(&w->stream, v->place->file, t, p, w->at,
                          in_order ? p->nbytes : tn_packed_bytes(end - first, v->bits),
                          in_order && !v->place->unchecked ? tn_part_checksum(p) : TN_CHECKSUM_NONE, err));
    w->streamed = v;
    return TN_OK;
}

static tn_status fill(tn_worker *w, tn_error *err)
{
    return w->left ? TN_OK : tn_stream_next(&w->stream, &w->window, &w->left, err);
}

/* The next bytes, at most n of them: into `to`, or nowhere. */
static tn_status take(tn_worker *w, uint64_t n, uint8_t **to, tn_error *err)
{
    TN_TRY(fill(w, err));
    size_t some = w->left < n ? w->left : (size_t)n;
    if (!some)
        return tn_fail(err, TN_ERR_TRUNCATED, "its data ends at byte %llu", (unsigned long long)w->at);
    if (*to)
        *to = (uint8_t *)memcpy(*to, w->window, some) + some;
    w->window += some;
    w->left -= some;
    w->at += some;
    return TN_OK;
}

/* After the last byte: nothing may follow, and the checksum must be that of the file. */
static tn_status check_end(const tn_view *v, tn_worker *w, tn_error *err)
{
    const tn_tensor *t = v->state;
    const uint8_t *none;
    size_t n;
    if (v->reach != TN_REACH_IN_ORDER || w->at < t->parts[0].nbytes)
        return TN_OK;
    TN_TRY(tn_stream_next(&w->stream, &none, &n, err));
    return v->place->unchecked ? TN_OK : tn_stream_check(&w->stream, t, &t->parts[0], err);
}

static bool is_open(const tn_view *v, const tn_worker *w, uint64_t from)
{
    const tn_tensor *t = v->state;
    bool is_here = v->reach == TN_REACH_ANY ? from == w->at : from >= w->at;
    return w->streamed == v && w->stream.part == &t->parts[0] && is_here;
}

/* Bytes [from, from + n) of mapped data that is not streamed: many are copied, few are lent. */
static tn_status copy_range(const tn_view *v, uint64_t from, uint64_t n, tn_worker *w, const uint8_t **bytes,
                            tn_error *err)
{
    const tn_stored *s = tn_stored_of(&tn_stored_tensor(v)->parts[0]);
    const tn_source *source = v->place->file->shards[s->shard].source;
    uint8_t *to;
    *bytes = v->memory + from;
    if (!tn_source_copies(source, n))
        return TN_OK;
    TN_TRY(tn_worker_buffer(w, v, 0, n, &to, err));
    *bytes = to;
    return tn_source_read(source, s->offset + from, to, (size_t)n, err);
}

tn_status tn_stored_range(const tn_view *v, uint64_t first, size_t n, tn_worker *w, const uint8_t **bytes,
                          tn_error *err)
{
    uint64_t from = tn_packed_byte(first, v->bits), end = from + tn_packed_bytes(n, v->bits);
    uint8_t *to = NULL;
    if (v->is_copied && w->streamed != v)
        return copy_range(v, from, end - from, w, bytes, err);
    if (!is_open(v, w, from))
        TN_TRY(open_stream(v, first, n, w, err));
    while (w->at < from)
        TN_TRY(take(w, from - w->at, &to, err));
    TN_TRY(fill(w, err));
    *bytes = w->window;
    if (w->left < end - from) {         /* else it is lent */
        TN_TRY(tn_worker_buffer(w, v, 0, end - from, &to, err));
        *bytes = to;
    }
    while (w->at < end)
        TN_TRY(take(w, end - w->at, &to, err));
    TN_TRY(check_end(v, w, err));
    if (!w->until && v->reach == TN_REACH_ANY) {
        tn_stream_close(&w->stream);
        w->streamed = NULL;
    }
    return TN_OK;
}

/* ---- once, in order ---- */

tn_view *tn_view_streamed(tn_view *v)
{
    while (v->step->apply && !v->memory)
        v = v->input;
    return v->step == &tn_step_stored ? v : NULL;
}

/* The kind of checksum that can be computed while the part is read once, in order. */
static tn_checksum sum_of(const tn_part *p)
{
    bool raw = tn_part_splits(p), apart = !tn_part_is_range(p) || tn_stored_more_of(p)->sum.size;
    return raw && apart ? TN_CHECKSUM_NONE : tn_part_checksum(p);
}

bool tn_stored_splits(const tn_view *v)
{
    const tn_part *p = &tn_stored_tensor(v)->parts[0];
    return tn_part_splits(p) && sum_of(p) != TN_CHECKSUM_SHA256;
}

void tn_stored_stream(tn_view *v)
{
    const tn_part *p = &tn_stored_tensor(v)->parts[0];
    v->is_streamed = true;
    v->is_prepared = sum_of(p) == tn_part_checksum(p);
}

tn_status tn_stored_begin(const tn_view *v, uint64_t first, uint64_t n, tn_worker *w, tn_error *err)
{
    const tn_tensor *t = v->state;
    const tn_part *p = &t->parts[0];
    if (v->memory && !v->is_copied)
        return tn_hash_begin(&w->hash, sum_of(p), err);
    w->at = tn_packed_byte(first, v->bits);
    w->left = 0;
    w->until = first + n;
    TN_TRY(tn_stream_open(&w->stream, v->place->file, t, p, w->at, tn_packed_bytes(n, v->bits), sum_of(p),
                          err));
    w->streamed = v;
    return TN_OK;
}

void tn_stored_sum(const tn_view *v, uint64_t first, uint64_t n, tn_worker *w)
{
    uint64_t size = tn_packed_bytes(n, v->bits);
    if (v->memory && !v->is_copied && n)
        tn_hash_update(&w->hash, tn_worker_near(w, v->memory + tn_packed_byte(first, v->bits), size),
                       (size_t)size);
}

tn_status tn_stored_end(const tn_view *v, tn_worker *w, tn_digest *sum, tn_error *err)
{
    *sum = (tn_digest){ .kind = TN_CHECKSUM_NONE };
    if (v->memory && !v->is_copied)
        return tn_hash_end(&w->hash, sum, err);
    if (v->reach == TN_REACH_IN_ORDER)          /* it was compared with the last range */
        return TN_OK;
    TN_TRY(tn_stream_next(&w->stream, &w->window, &w->left, err));      /* nothing is left */
    return tn_stream_digest(&w->stream, sum, err);
}

void tn_stored_rest(tn_worker *w)
{
    tn_worker_rest(w);
    tn_hash_free(&w->hash);
}

static bool strided(const tn_view *v, tn_strided *s)
{
    const tn_tensor *t = v->state;
    const tn_part *p = &t->parts[0];
    const tn_stored *stored = tn_stored_of(p);
    const tn_stored_more *more = tn_stored_more_of(p);
    const tn_dtype_info *type = tn_dtype_get(p->array.dtype);
    if (stored->encoding != TN_ENCODING_RAW || more->pitch || more->derive || more->swapped)
        return false;
    s->base = tn_source_view(v->place->file->shards[stored->shard].source, stored->offset, stored->size);
    s->swap = stored->order == TN_HOST_ORDER ? 1 : type->swap_bytes;
    if (more->stride)
        memcpy(s->stride, more->stride, p->array.rank * sizeof *s->stride);
    else
        tn_dense_strides(p->array.rank, p->array.shape, s->stride);
    return s->base != NULL;
}

static tn_status needs(const tn_view *v, uint64_t first, uint64_t n, tn_needs *needs, tn_error *err)
{
    const tn_tensor *t = v->state;
    const tn_part *p = &t->parts[0];
    const tn_stored *s = tn_stored_of(p);
    if (!tn_part_is_range(p))
        return tn_needs_add_part(needs, p, err);
    return tn_needs_add(needs, s->shard, s->offset + tn_packed_byte(first, v->bits),
                        tn_packed_bytes(n, v->bits), err);
}

/* A checksum is of all that is stored. */
static bool is_local(const tn_view *v)
{
    const tn_tensor *t = v->state;
    return tn_view_has_ranges(v) && tn_part_checksum(&t->parts[0]) == TN_CHECKSUM_NONE;
}

const tn_step tn_step_stored = { .name = "stored", .describe = describe, .prepare = prepare,
                                 .strided = strided, .needs = needs, .is_local = is_local };
