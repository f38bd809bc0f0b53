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
    v->bits = tn_dtype_get(t->parts[0].array.dtype)->bits;
    tn_shape_count(t->parts[0].array.rank, t->parts[0].array.shape, &v->count);     /* was checked */
    return TN_OK;
}

static tn_status tick(void *context, tn_error *err)
{
    return tn_walk_check(context, err);
}

/* Checks the checksum of the first part; what can only be read in order is decoded into a spill. */
static tn_status prepare(tn_view *v, const tn_preparing *p, tn_error *err)
{
    const tn_tensor *t = v->state;
    const tn_part *part = &t->parts[0];
    tn_loading loading = { .in = v->place->file, .tensor = t, .beside = v->place->beside, .tick = tick,
                           .context = v->place->walk };
    (void)p;
    if (v->memory || !part->nbytes || tn_part_splits(part))
        return tn_load_check(&loading, part, err);
    tn_kept kept = { .max_bytes = v->place->max_bytes ? v->place->max_bytes : v->place->file->max_bytes };
    tn_kept_add_part(&kept, t, part);
    tn_status status = tn_kept_check(&kept, err);
    if (!status)
        status = tn_load_part(&loading, part, &v->spill, err);
    v->memory = v->spill.bytes;
    return status;
}

static tn_status make(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out, tn_error *err)
{
    const tn_tensor *t = v->state;
    tn_status status = tn_stream_open(&w->stream, v->place->file, t, &t->parts[0],
                                      tn_packed_byte(first, v->bits), tn_packed_bytes(n, v->bits),
                                      TN_CHECKSUM_NONE, err);
    if (!status)
        status = tn_stream_read(&w->stream, out, err);
    tn_stream_close(&w->stream);
    return status;
}

static bool strided(const tn_view *v, tn_strided *s)
{
    const tn_tensor *t = v->state;
    const tn_part *p = &t->parts[0];
    const tn_stored *stored = tn_stored_of(p);
    const tn_stored_more *more = tn_stored_more_of(p);
    const tn_dtype_info *type = tn_dtype_get(p->array.dtype);
    if (stored->encoding != TN_ENCODING_RAW || more->pitch || more->columns)
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

const tn_step tn_step_stored = { .name = "stored", .describe = describe, .prepare = prepare, .make = make,
                                 .strided = strided, .needs = needs };
