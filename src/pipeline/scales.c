/* pipeline/scales.c - the scales that fit the values of a tensor in a file. */
#include "pipeline/scales.h"
#include "base/error.h"
#include "base/pool.h"
#include "tensor/code.h"
#include "quant/quantize.h"

#include <stdlib.h>

/* Of all threads together: a tally of many scales is large. */
#define ALL_TALLIES ((size_t)256 << 20)

typedef struct searching {
    const tn_scale_search *s;
    const tn_part   *part;
    tn_pool         *pool;
    unsigned         jobs;
    unsigned         bits;
    uint64_t         count, span;
    tn_stream       *streams;       /* one a worker */
    tn_range_tally **tallies;       /* one a worker; the first becomes the sum */
    uint64_t         done;          /* bytes, in any round: what was told never goes back */
} searching;

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    searching *r = context;
    tn_stream *stream = &r->streams[use.scratch];
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
        tn_range_tally_add(r->tallies[use.scratch], bytes, first, elements);
        first += elements;
    }
    tn_stream_close(stream);
    return status;
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    searching *r = context;
    const tn_scale_search *s = r->s;
    (void)result;
    uint64_t elements = (item + 1) * r->span < r->count ? (item + 1) * r->span : r->count,
             bytes = tn_packed_bytes(elements, r->bits);
    uint64_t more = bytes > r->done ? bytes - r->done : 0;
    r->done += more;
    return tn_walk_advance(s->walk, more, err);
}

/* All values once; then whether to do it again. */
static tn_status go_through(searching *r, bool *again, tn_error *err)
{
    uint64_t items = (r->count + r->span - 1) / r->span;
    tn_status status = tn_pool_run(r->pool, items, &(tn_ordered){ work, emit, r }, err);
    if (status)
        return status;
    for (unsigned i = 1; i < r->jobs; i++)
        tn_range_tally_join(r->tallies[0], r->tallies[i]);
    *again = tn_range_tally_more(r->tallies[0]);
    for (unsigned i = 1; i < r->jobs && *again; i++)
        tn_range_tally_again(r->tallies[i], r->tallies[0]);
    return TN_OK;
}

static tn_status begin(searching *r, tn_error *err)
{
    const tn_scale_search *s = r->s;
    const tn_tensor *t = s->tensor;
    unsigned jobs = s->walk->jobs ? s->walk->jobs : tn_core_count();
    tn_scale_index index;
    tn_status status = tn_scale_index_for(t->rank, t->shape, s->options->axis, &index, err);
    if (status)
        return status;
    r->streams = calloc(jobs, sizeof *r->streams);
    r->tallies = calloc(jobs, sizeof *r->tallies);
    if (!r->streams || !r->tallies)
        return tn_fail_nomem(err);
    status = tn_range_tally_new(s->codes, t->dtype, index, s->options, &r->tallies[0], err);
    if (status)
        return status;
    /* no scales: no bytes */
    size_t each = tn_range_tally_bytes(r->tallies[0]), fit = each ? ALL_TALLIES / each : jobs;
    r->jobs = fit < jobs ? (unsigned)fit + !fit : jobs;
    for (unsigned i = 1; i < r->jobs && !status; i++)
        status = tn_range_tally_new(s->codes, t->dtype, index, s->options, &r->tallies[i], err);
    return status ? status : tn_pool_new(r->jobs, &r->pool, err);
}

tn_status tn_find_scales(const tn_scale_search *s, float *scale, int32_t *zero, tn_error *err)
{
    searching r = { .s = s, .part = &s->tensor->parts[0], .jobs = 1 };
    bool again = true;
    r.bits = tn_dtype_get(r.part->array.dtype)->bits;
    /* cannot fail: its bytes were counted */
    tn_shape_count(s->tensor->rank, s->tensor->shape, &r.count);
    r.span = tn_part_splits(r.part) || !r.count ? TN_SPAN : r.count;
    tn_status status = begin(&r, err);
    while (!status && again)
        status = go_through(&r, &again, err);
    if (!status)
        tn_range_tally_scales(r.tallies[0], scale, zero);
    for (unsigned i = 0; i < r.jobs; i++) {
        if (r.streams)
            tn_stream_free(&r.streams[i]);
        if (r.tallies)
            tn_range_tally_free(r.tallies[i]);
    }
    free(r.streams);
    free(r.tallies);
    tn_pool_free(r.pool);
    return status;
}
