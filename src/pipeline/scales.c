/* pipeline/scales.c - the scales that fit the values of a tensor in a file. */
#include "pipeline/scales.h"
#include "base/error.h"
#include "tensor/array.h"
#include "quant/scale_search.h"

#include <stdlib.h>

typedef struct searching {
    const tn_find_scales_task *s;
    const tn_part   *part;
    unsigned         bits;
    uint64_t         count, span;
    tn_stream       *streams;       /* one per worker */
    uint64_t         done;          /* bytes, in any round: what was told never goes back */
} searching;

static tn_status add(void *context, uint64_t item, unsigned worker, tn_scale_tally *tally, tn_error *err)
{
    searching *r = context;
    tn_stream *stream = &r->streams[worker];
    uint64_t first = item * r->span, n = r->count - first < r->span ? r->count - first : r->span;
    uint64_t from = tn_packed_bytes(first, r->bits), size = tn_packed_bytes(n, r->bits);
    tn_status status =
        tn_stream_open(stream, r->s->file, r->s->tensor, r->part, from, size, TN_CHECKSUM_NONE, err);
    while (!status) {
        const uint8_t *bytes;
        size_t got;
        status = tn_stream_next(stream, &bytes, &got, err);
        if (status || !got)
            break;
        size_t elements = (size_t)((uint64_t)got * 8 / r->bits);
        if (elements > r->count - first)        /* the bits that fill the last byte */
            elements = (size_t)(r->count - first);
        tn_scale_tally_add(tally, bytes, first, elements);
        first += elements;
    }
    tn_stream_close(stream);
    return status;
}

static tn_status done(void *context, uint64_t item, unsigned result, tn_error *err)
{
    searching *r = context;
    (void)result;
    uint64_t elements = (item + 1) * r->span < r->count ? (item + 1) * r->span : r->count,
             bytes = tn_packed_bytes(elements, r->bits);
    uint64_t more = bytes > r->done ? bytes - r->done : 0;
    r->done += more;
    return tn_walk_advance(r->s->walk, more, err);
}

tn_status tn_find_scales(const tn_find_scales_task *s, float *scale, int32_t *zero, tn_error *err)
{
    const tn_tensor *t = s->tensor;
    searching r = { .s = s, .part = &t->parts[0], .bits = tn_dtype_get(t->parts[0].array.dtype)->bits };
    unsigned jobs = s->walk->jobs ? s->walk->jobs : tn_core_count();
    tn_scale_index index;
    tn_scale_tally *tally = NULL;
    tn_status status = tn_scale_index_for(t->rank, t->shape, s->affine->axis, &index, err);
    if (!status)
        status = tn_scale_tally_new(s->affine, s->options, t->dtype, index, &tally, err);
    if (status)
        return status;
    /* cannot fail: its bytes were counted */
    tn_shape_count(t->rank, t->shape, &r.count);
    r.span = tn_part_splits(r.part) || !r.count ? TN_SPAN : r.count;
    r.streams = calloc(jobs, sizeof *r.streams);
    const tn_scale_source source = { .add = add, .done = done, .context = &r,
                                     .items = (r.count + r.span - 1) / r.span };
    status = r.streams ? tn_scale_search(tally, &source, jobs, err) : tn_fail_nomem(err);
    if (!status)
        tn_scale_tally_scales(tally, scale, zero);
    for (unsigned i = 0; i < jobs && r.streams; i++)
        tn_stream_free(&r.streams[i]);
    free(r.streams);
    tn_scale_tally_free(tally);
    return status;
}
