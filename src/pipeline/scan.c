/* pipeline/scan.c - going through many parts on all cores. */
#include "pipeline/scan.h"
#include "base/error.h"
#include "base/vector.h"
#include "tensor/array.h"

#include <stdlib.h>

/* A span is large enough that handing it out costs nothing, and small enough
 * that a few of them keep every core busy to the end. */
#define SPAN_BYTES ((uint64_t)42 * TN_WINDOW)
enum { SPAN_PARTS = 256 };

/* Whole parts [first, first + count), or bytes [from, from + size) of one. */
typedef struct span {
    size_t   first, count;
    uint64_t from, size;
    bool     last;              /* of its part */
} span;

typedef struct item_results {
    tn_scanned results[SPAN_PARTS];
} item_results;

typedef struct run {
    const tn_scan *scan;
    span          *spans;
    size_t         nspans, cap;
    tn_stream     *streams;     /* one a worker */
    item_results     *results;
    tn_scanned     joined;      /* of the part whose spans are being emitted */
    bool           told;        /* done() has heard of it */
    uint64_t       progress;
} run;

static bool can_split(const tn_scan_part *p)
{
    const tn_storage *s = &p->part->storage;
    /* the checksum is of the bytes that are taken, in order */
    bool one_pass = tn_part_is_range(p->part) && !s->sum_size;
    return tn_part_splits(p->part) && !s->opaque && p->stored_kind != TN_CHECKSUM_SHA256 &&
           p->decoded_kind != TN_CHECKSUM_SHA256 && (one_pass || p->stored_kind == TN_CHECKSUM_NONE);
}

static bool push_span(run *r, span s)
{
    span *grown = tn_grow(r->spans, r->nspans, &r->cap, sizeof s);
    if (!grown)
        return false;
    r->spans = grown;
    r->spans[r->nspans++] = s;
    return true;
}

static bool split_part(run *r, size_t k)
{
    uint64_t total = r->scan->parts[k].part->nbytes;
    for (uint64_t from = 0; from < total; from += SPAN_BYTES) {
        uint64_t size = total - from < SPAN_BYTES ? total - from : SPAN_BYTES;
        if (!push_span(r, (span){ k, 1, from, size, from + size == total }))
            return false;
    }
    return true;
}

static bool plan_spans(run *r)
{
    const tn_scan *scan = r->scan;
    for (size_t k = 0; k < scan->count;) {
        const tn_part *p = scan->parts[k].part;
        if (p->nbytes > SPAN_BYTES && can_split(&scan->parts[k])) {
            if (!split_part(r, k++))
                return false;
            continue;
        }
        span s = { .first = k, .size = 0, .last = true };
        do {
            s.size += scan->parts[k].part->nbytes;
            s.count++;
            k++;
        } while (k < scan->count && s.count < SPAN_PARTS &&
                 s.size + scan->parts[k].part->nbytes <= SPAN_BYTES);
        if (!push_span(r, s))
            return false;
    }
    return true;
}

/* When stored and decoded bytes are the same, one crc32c serves both. */
static bool same_bytes(const tn_scan_part *p)
{
    const tn_storage *s = &p->part->storage;
    if (p->stored_kind != p->decoded_kind || p->change || p->swap > 1)
        return false;
    return tn_part_is_range(p->part) && !s->sum_size &&
           (s->order == TN_HOST_ORDER || tn_dtype_get(p->part->array.dtype)->swap_bytes == 1);
}

static tn_status scan_bytes(const tn_scan *scan, tn_stream *s, size_t k, uint64_t from, uint64_t n,
                            tn_scanned *out, tn_error *err)
{
    const tn_scan_part *p = &scan->parts[k];
    bool same = same_bytes(p);
    tn_hash decoded = { 0 };
    tn_status status = tn_stream_open(s, scan->file, p->tensor, p->part, from, n, p->stored_kind, err);
    if (!status) {
        tn_stream_change(s, p->change);
        tn_stream_swap(s, p->swap);
    }
    /* eight elements are never cut */
    from = p->change ? from / p->change->from_bits * p->change->to_bits : from;
    out->made = 0;
    if (!status)
        status = tn_hash_begin(&decoded, same ? TN_CHECKSUM_NONE : p->decoded_kind, err);
    while (!status) {
        const uint8_t *bytes;
        size_t got;
        status = tn_stream_next(s, &bytes, &got, err);
        if (status || !got)
            break;
        tn_hash_update(&decoded, bytes, got);
        if (scan->window)
            status = scan->window(scan->context, k, from, bytes, got, err);
        out->window_failed = status != TN_OK;
        from += got;
        out->made += got;
    }
    if (!status)
        status = tn_stream_digest(s, &out->stored, err);
    if (!status)
        status = tn_hash_end(&decoded, &out->decoded, err);
    tn_hash_free(&decoded);
    if (same)
        out->decoded = out->stored;
    return status;
}

/* What cannot be decoded can still be checked as it is stored, and so can what nobody looks at. */
static tn_status hash_stored(const tn_scan *scan, tn_stream *s, const tn_scan_part *p, tn_scanned *out,
                             tn_error *err)
{
    const uint8_t *bytes;
    size_t got = 1;
    tn_status status = tn_stream_open_stored(s, scan->file, p->tensor, p->part, p->stored_kind, err);
    while (!status && got)
        status = tn_stream_next(s, &bytes, &got, err);
    return status ? status : tn_stream_digest(s, &out->stored, err);
}

/* All of a part whose elements would have to be gathered, for its checksum alone. */
static bool is_summed_only(const tn_scan *scan, const tn_scan_part *p, uint64_t n)
{
    const tn_storage *s = &p->part->storage;
    return !scan->window && !p->change && p->decoded_kind == TN_CHECKSUM_NONE && (s->stride || s->pitch) &&
           n == p->part->nbytes;
}

static void scan_part(const tn_scan *scan, tn_stream *s, size_t k, uint64_t from, uint64_t n, tn_scanned *out)
{
    const tn_scan_part *p = &scan->parts[k];
    out->err = (tn_error){ .offset = TN_NO_OFFSET };
    out->window_failed = false;
    out->status = tn_part_readable(p->tensor, p->part, &out->err);
    if (!out->status)
        out->status = is_summed_only(scan, p, n) ? hash_stored(scan, s, p, out, &out->err)
                                                 : scan_bytes(scan, s, k, from, n, out, &out->err);
    else if (p->stored_kind != TN_CHECKSUM_NONE && hash_stored(scan, s, p, out, &out->err))
        out->status = out->err.status;
    tn_stream_close(s);
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    run *r = context;
    const span *s = &r->spans[item];
    (void)err;                  /* failures belong to parts: done() says whether they stop the scan */
    for (size_t i = 0; i < s->count; i++) {
        size_t k = s->first + i;
        uint64_t n = s->count == 1 ? s->size : r->scan->parts[k].part->nbytes;
        scan_part(r->scan, &r->streams[use.scratch], k, s->from, n, &r->results[use.result].results[i]);
    }
    return TN_OK;
}

/* Joins a span's result to those of the spans of the same part before it. */
static void join(tn_scanned *to, const tn_scanned *from, uint64_t n)
{
    if (!to->status && from->status) {
        to->status = from->status;
        to->err = from->err;
        to->window_failed = from->window_failed;
    }
    tn_digest_join(&to->stored, &from->stored, n);
    tn_digest_join(&to->decoded, &from->decoded, from->made);
}

static tn_status tell_progress(run *r, uint64_t bytes, tn_error *err)
{
    const tn_scan *scan = r->scan;
    r->progress += bytes;
    if (scan->progress &&
        scan->progress(scan->progress_context, scan->progress_base + r->progress, scan->progress_total))
        return tn_fail(err, TN_ERR_CANCELLED, TN_NO_OFFSET, "cancelled");
    return TN_OK;
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    run *r = context;
    const span *s = &r->spans[item];
    const tn_scanned *results = r->results[result].results;
    tn_status status = TN_OK;
    if (s->from)
        join(&r->joined, &results[0], s->size);
    else
        r->joined = results[0], r->told = false;
    if (!r->told && (s->last || r->joined.status)) {        /* a failure need not wait for the end of its part */
        r->told = true;
        status = r->scan->done(r->scan->context, s->first, &r->joined, err);
    }
    for (size_t i = 1; i < s->count && !status; i++)
        status = r->scan->done(r->scan->context, s->first + i, &results[i], err);
    return status ? status : tell_progress(r, s->size, err);
}

tn_status tn_scan_run(const tn_scan *scan, tn_pool *pool, tn_error *err)
{
    run r = { .scan = scan };
    unsigned jobs = tn_pool_jobs(pool);
    r.streams = calloc(jobs, sizeof *r.streams);
    r.results = calloc(tn_pool_results(pool), sizeof *r.results);
    tn_status status = r.streams && r.results && plan_spans(&r) ? TN_OK : tn_fail_nomem(err);
    if (!status)
        status = tn_pool_run(pool, r.nspans, &(tn_ordered){ work, emit, &r }, err);
    for (unsigned i = 0; r.streams && i < jobs; i++)
        tn_stream_free(&r.streams[i]);
    free(r.streams);
    free(r.results);
    free(r.spans);
    return status;
}
