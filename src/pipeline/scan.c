/* pipeline/scan.c - reading many parts as they are stored and computing their checksums. */
#include "pipeline/scan.h"
#include "base/error.h"
#include "pipeline/expect.h"
#include "pipeline/work_text.h"

#include <stdlib.h>

/* An item is large enough that handing it out costs nothing, and small enough
 * that a few of them keep every core busy to the end. */
#define ITEM_BYTES ((uint64_t)42 * TN_WINDOW)
enum { ITEM_PARTS = 256 };

typedef struct item_results {
    tn_scan_result parts[ITEM_PARTS];
} item_results;

/* A scan in progress. */
typedef struct scanning {
    const tn_scan *scan;
    tn_scan_result joined;      /* of the part whose ranges are being joined */
    bool           told;        /* done() has heard of it */
} scanning;

static bool can_split(const tn_scan_part *p)
{
    const tn_stored_more *s = tn_stored_more_of(p->part);
    /* the checksum is of the bytes that are taken, in order */
    bool one_pass = tn_part_is_range(p->part) && !s->sum.size;
    return tn_part_splits(p->part) && !s->opaque && p->kind != TN_CHECKSUM_SHA256 &&
           (one_pass || p->kind == TN_CHECKSUM_NONE);
}

static tn_status cut(const tn_scan *scan, tn_items *items, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t k = 0; k < scan->count && !status; k++) {
        uint64_t nbytes = scan->parts[k].part->nbytes;
        tn_item whole = { .subject = k, .n = nbytes, .bytes = nbytes };
        if (nbytes > ITEM_BYTES && can_split(&scan->parts[k]))
            status = tn_items_cut(items, whole, ITEM_BYTES, 8, err);
        else
            status = tn_items_pack(items, whole, ITEM_PARTS, ITEM_BYTES, err);
    }
    return status;
}

/* Bytes [from, from + n) of part k. */
typedef struct range {
    size_t   k;
    uint64_t from, n;
} range;

/* Reads what a stream was opened for, to its end. */
static tn_status take_sum(tn_stream *s, tn_status status, tn_digest *sum, tn_error *err)
{
    const uint8_t *bytes;
    size_t got = 1;
    while (!status && got)
        status = tn_stream_next(s, &bytes, &got, err);
    return status ? status : tn_stream_digest(s, sum, err);
}

static tn_status scan_bytes(const tn_scan *scan, tn_stream *s, const range *r, tn_scan_result *out,
                            tn_error *err)
{
    const tn_scan_part *p = &scan->parts[r->k];
    tn_status status = tn_stream_open(s, scan->file, p->tensor, p->part, r->from, r->n, p->kind, err);
    return take_sum(s, status, &out->stored, err);
}

/* What cannot be decoded can still be checked as it is stored, and so can what nobody looks at. */
static tn_status hash_stored(const tn_scan *scan, tn_stream *s, const tn_scan_part *p, tn_scan_result *out,
                             tn_error *err)
{
    return take_sum(s, tn_stream_open_stored(s, scan->file, p->tensor, p->part, p->kind, err), &out->stored,
                    err);
}

/* All of a part whose elements would have to be gathered, for its checksum alone. */
static bool is_summed_only(const tn_scan_part *p, uint64_t n)
{
    const tn_stored_more *s = tn_stored_more_of(p->part);
    return (s->stride || s->pitch) && n == p->part->nbytes;
}

static void scan_part(const tn_scan *scan, tn_stream *s, const range *r, tn_scan_result *out)
{
    const tn_scan_part *p = &scan->parts[r->k];
    *out = (tn_scan_result){ .err.offset = TN_NO_OFFSET };      /* it may have the checksum of another */
    out->status = tn_part_readable(p->tensor, p->part, &out->err);
    if (!out->status)
        out->status = is_summed_only(p, r->n) ? hash_stored(scan, s, p, out, &out->err)
                                                    : scan_bytes(scan, s, r, out, &out->err);
    else if (p->kind != TN_CHECKSUM_NONE && hash_stored(scan, s, p, out, &out->err))
        out->status = out->err.status;
    tn_stream_close(s);
}

static tn_status work(void *context, const tn_item *item, void *scratch, void *result, tn_error *err)
{
    const tn_scan *scan = ((const scanning *)context)->scan;
    item_results *results = result;
    (void)err;                  /* failures belong to parts: done() says whether they stop the scan */
    for (uint32_t i = 0; i < item->count; i++) {
        range r = { item->subject + i, item->from, item->n };
        if (item->count > 1)
            r.n = scan->parts[r.k].part->nbytes;
        scan_part(scan, scratch, &r, &results->parts[i]);
    }
    return TN_OK;
}

/* Joins the result of a range to those of the ranges of the same part before it. */
static void join_range(tn_scan_result *to, const tn_scan_result *from, uint64_t n)
{
    if (!to->status && from->status) {
        to->status = from->status;
        to->err = from->err;
    }
    tn_digest_join(&to->stored, &from->stored, n);
}

static tn_status join(void *context, tn_item *item, void *result, tn_error *err)
{
    scanning *s = context;
    const tn_scan *scan = s->scan;
    const tn_scan_result *parts = ((const item_results *)result)->parts;
    tn_status status = TN_OK;
    if (item->from) {
        join_range(&s->joined, &parts[0], item->n);
    } else {
        s->joined = parts[0];
        s->told = false;
    }
    /* a failure need not wait for the end of its part */
    if (!s->told && (item->last || s->joined.status)) {
        s->told = true;
        status = scan->done(scan->context, item->subject, &s->joined, err);
    }
    for (uint32_t i = 1; i < item->count && !status; i++)
        status = scan->done(scan->context, item->subject + i, &parts[i], err);
    return status;
}

/* ---- for other processes ---- */

/* What is no fault of a part may have passed when the same call comes again: it fails the piece. */
static tn_status save(void *context, const tn_item *item, const void *result, tn_buf *b, tn_error *err)
{
    const tn_scan_result *parts = ((const item_results *)result)->parts;
    (void)context;
    for (uint32_t i = 0; i < item->count; i++) {
        tn_error why = parts[i].err;
        why.status = parts[i].status;
        if (why.status == TN_ERR_NOMEM || why.status == TN_ERR_IO) {
            if (err)
                *err = why;
            return why.status;
        }
        tn_buf_putc(b, i ? ',' : '[');
        tn_buf_putc(b, '[');
        tn_work_put_error(b, &why);
        tn_buf_putc(b, ',');
        tn_work_put_digest(b, parts[i].status && parts[i].status != TN_ERR_UNSUPPORTED ? NULL
                                                                                       : &parts[i].stored);
        tn_buf_putc(b, ']');
    }
    tn_buf_putc(b, ']');
    return TN_OK;
}

static void load_part(tn_json *j, tn_checksum kind, tn_scan_result *part)
{
    unsigned n = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (n == 0)
            tn_work_take_error(j, &part->err);
        else if (n == 1)
            tn_work_take_digest(j, kind, &part->stored);
        else
            tn_json_skip(j);
        n++;
    }
    part->status = part->err.status;
    if (!j->status && (n != 2 || (!part->status && part->stored.kind != kind)))
        tn_json_reject(j, TN_ERR_CORRUPT, "expected an error and a checksum");
}

static void load(void *context, const tn_item *item, tn_json *j, void *result)
{
    const tn_scan *scan = ((const scanning *)context)->scan;
    tn_scan_result *parts = ((item_results *)result)->parts;
    uint32_t n = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (n == item->count) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected %u parts but found more", item->count);
            return;
        }
        load_part(j, scan->parts[item->subject + n].kind, &parts[n]);
        n++;
    }
    if (!j->status && n < item->count)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected %u parts but found %u", item->count, n);
}

static void free_stream(void *stream) { tn_stream_free(stream); }

static void announce(const tn_scan *scan)
{
    tn_expected e = { .file = scan->file };
    for (size_t i = 0; i < scan->count; i++)
        tn_expect_part(&e, scan->parts[i].part);
    tn_expect_end(&e);
}

tn_status tn_scan_run(const tn_scan *scan, tn_walk *walk, tn_error *err)
{
    tn_items items = { 0 };
    scanning s = { .scan = scan };
    tn_status status = cut(scan, &items, err);
    announce(scan);
    if (!status)
        status = tn_walk_run(walk, &items, &(tn_walk_task){
            .work = work, .join = join, .context = &s, .scratch_size = sizeof(tn_stream),
            .result_size = sizeof(item_results), .free_scratch = free_stream, .save = save, .load = load,
        }, err);
    free(items.list);
    return status;
}
