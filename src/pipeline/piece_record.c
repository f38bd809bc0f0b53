/* pipeline/piece_record.c - records of pieces: one JSON object.
 *
 * Who reads has the same plan and knows how many of each thing there must be. */
#include "pipeline/piece_record.h"
#include "base/error.h"
#include "pipeline/work_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_FORMAT "tenon piece 1"
enum { STATS = 6 };

/* ---- the entries concerned ---- */

static size_t first_entry(const tn_plan *p, size_t i)
{
    return tn_writer_first(p->writer, p->run.pieces[i].first);
}

static size_t end_entry(const tn_plan *p, size_t i)
{
    const tn_piece *piece = &p->run.pieces[i];
    return tn_writer_first(p->writer, (size_t)piece->first + piece->count);
}

/* Whether there is anything to say of an entry that the plan does not. */
static bool is_told(const tn_out_entry *e)
{
    return tn_run_moves(e) && (e->offset == TN_UNPLACED || e->digest);
}

/* Whether it is found while the piece is made, such as a scale, and written when all are finished. */
static bool is_found(const tn_out_entry *e)
{
    return e->data && e->nbytes && e->tied == TN_NOT_TIED;
}

/* ---- writing ---- */

static void put_hex(tn_buf *b, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    tn_buf_putc(b, '"');
    for (size_t i = 0; i < n; i++) {
        tn_buf_putc(b, digits[bytes[i] >> 4]);
        tn_buf_putc(b, digits[bytes[i] & 15]);
    }
    tn_buf_putc(b, '"');
}

static void put_found(tn_buf *b, const tn_plan *p, size_t i)
{
    size_t n = 0;
    tn_buf_puts(b, "\"found\":[");
    for (size_t k = first_entry(p, i); k < end_entry(p, i); k++) {
        const tn_out_entry *e = &p->writer->entries[k];
        if (!is_found(e))
            continue;
        tn_buf_puts(b, n++ ? ",\n" : "\n");
        put_hex(b, e->data, (size_t)e->nbytes);
    }
    tn_buf_puts(b, "],\n");
}

static void put_sent(tn_buf *b, const tn_piece *piece)
{
    if (!piece->sent.size)
        return;
    const char *at = (const char *)piece->sent.data, *end = at + piece->sent.size;
    tn_buf_puts(b, "\"sent\":[");
    for (size_t n = 0; at < end; at += strlen(at) + 1) {
        tn_buf_puts(b, n++ ? "," : "");
        tn_json_put_z(b, at);
    }
    tn_buf_puts(b, "],\n");
}

static void put_sum(tn_buf *b, uint64_t size, const tn_digest *digest)
{
    tn_buf_printf(b, "[%" PRIu64 ",", size);
    tn_work_put_digest(b, digest);
    tn_buf_puts(b, "]");
}

static void stats_to_bits(const tn_quantize_stats *s, uint64_t bits[STATS])
{
    const double values[] = { s->signal, s->noise, s->max_error };
    bits[0] = s->values;
    bits[1] = s->saturated;
    bits[2] = s->flushed;
    memcpy(bits + 3, values, sizeof values);
}

static void put_blocks(tn_buf *b, const tn_blocks_made *made)
{
    uint64_t bits[STATS];
    tn_buf_puts(b, "\"in\":");
    put_sum(b, made->nin, &made->in);
    tn_buf_puts(b, ",\n\"out\":[");
    for (unsigned k = 0; k < TN_MAX_PARTS; k++) {
        tn_buf_puts(b, k ? "," : "");
        put_sum(b, made->nout[k], &made->out[k]);
    }
    stats_to_bits(&made->stats, bits);
    tn_buf_puts(b, "],\n\"stats\":");
    tn_work_put_numbers(b, bits, STATS);
    tn_buf_puts(b, ",\n");
}

tn_status tn_piece_record_write(const tn_plan *p, size_t i, uint32_t id, tn_buf *b, tn_error *err)
{
    const tn_piece *piece = &p->run.pieces[i];
    size_t n = 0;
    tn_buf_printf(b, "{\"format\":\"" RECORD_FORMAT "\",\n\"plan\":%" PRIu32 ",\n\"piece\":%zu,\n", id, i);
    tn_buf_printf(b, "\"part\":%" PRIu64 ",\n",
                  piece->waiting.source ? tn_source_size(piece->waiting.source) : 0);
    if (piece->blocks)
        put_blocks(b, piece->blocks);
    put_found(b, p, i);
    put_sent(b, piece);
    tn_buf_puts(b, "\"entries\":[");
    for (size_t k = first_entry(p, i); k < end_entry(p, i) && !piece->blocks; k++) {
        const tn_out_entry *e = &p->writer->entries[k];
        if (!is_told(e))
            continue;
        tn_buf_puts(b, n++ ? ",\n" : "\n");
        put_sum(b, e->offset == TN_UNPLACED ? e->size : e->nbytes, e->digest);
    }
    tn_buf_puts(b, "],\n");
    tn_work_seal(b);
    return b->bad ? tn_fail_nomem(err) : TN_OK;
}

/* ---- reading ---- */

/* A checksum of the kind that is expected. */
static void take_digest(tn_json *j, tn_checksum kind, tn_digest *digest)
{
    tn_work_take_digest(j, kind, digest);
    if (!j->status && digest->kind != kind)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected a checksum");
}

static void take_sum(tn_json *j, tn_checksum kind, uint64_t *size, tn_digest *digest)
{
    tn_json_array(j);
    if (tn_json_item(j))
        *size = tn_json_u64(j);
    if (tn_json_item(j))
        take_digest(j, kind, digest);
    if (tn_json_item(j))
        tn_json_reject(j, TN_ERR_CORRUPT, "expected a size and a checksum");
}

static void bits_to_stats(const uint64_t bits[STATS], tn_quantize_stats *s)
{
    double values[STATS - 3];
    memcpy(values, bits + 3, sizeof values);
    *s = (tn_quantize_stats){ .values = bits[0], .saturated = bits[1], .flushed = bits[2],
                              .signal = values[0], .noise = values[1], .max_error = values[2] };
}

static void take_stats(tn_json *j, tn_quantize_stats *stats)
{
    uint64_t bits[STATS];
    tn_work_take_numbers(j, bits, STATS);
    bits_to_stats(bits, stats);
}

/* What a record says, before it is believed. */
typedef struct record {
    tn_plan       *plan;
    size_t         piece;
    uint32_t       id;
    uint64_t       part, waiting;   /* waiting: the sizes of entries without a place */
    bool           has_in, has_out, has_entries, has_found, named;
    const char   **sent;            /* ETags, in the arena */
    size_t         nsent;
    tn_blocks_made blocks;
} record;

/* Of which kind the checksum of part k of the only tensor is. */
static tn_checksum kind_of_part(const record *r, unsigned k)
{
    const tn_plan *p = r->plan;
    unsigned number = 0;
    for (size_t e = first_entry(p, r->piece); e < end_entry(p, r->piece); e++)
        if (tn_run_moves(&p->writer->entries[e]) && number++ == k)
            return (tn_checksum)p->writer->entries[e].checksum;
    return TN_CHECKSUM_NONE;
}

static void take_out(tn_json *j, record *r)
{
    unsigned k = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (k == TN_MAX_PARTS) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected %d parts but found more", TN_MAX_PARTS);
            return;
        }
        take_sum(j, kind_of_part(r, k), &r->blocks.nout[k], &r->blocks.out[k]);
        k++;
    }
    r->has_out = k == TN_MAX_PARTS;
}

/* The stored bytes of the input may have any checksum, or none that can be joined. */
static void take_in(tn_json *j, record *r)
{
    const tn_tensor *t = r->plan->walk.tensors[r->plan->run.pieces[r->piece].first];
    const tn_json before = *j;
    take_sum(j, TN_CHECKSUM_NONE, &r->blocks.nin, &r->blocks.in);
    if (j->status && t->nparts) {
        *j = before;
        take_sum(j, tn_part_checksum(&t->parts[0]), &r->blocks.nin, &r->blocks.in);
    }
    r->has_in = true;
}

static void take_entries(tn_json *j, record *r)
{
    const tn_plan *p = r->plan;
    const tn_piece *piece = &p->run.pieces[r->piece];
    size_t k = first_entry(p, r->piece), end = piece->nblocks ? k : end_entry(p, r->piece);
    tn_json_array(j);
    while (tn_json_item(j)) {
        uint64_t size = 0;
        tn_digest digest = { .kind = TN_CHECKSUM_NONE };
        while (k < end && !is_told(&p->writer->entries[k]))
            k++;
        if (k == end) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected fewer entries");
            return;
        }
        tn_out_entry *e = &p->writer->entries[k++];
        take_sum(j, (tn_checksum)e->checksum, &size, &digest);
        if (e->digest)
            *e->digest = digest;
        if (e->offset != TN_UNPLACED)
            continue;
        if (size > UINT64_MAX - r->waiting) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected fewer bytes that wait");
            return;
        }
        e->size = size;
        r->waiting += size;
    }
    while (k < end && !is_told(&p->writer->entries[k]))
        k++;
    if (!j->status && k < end)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected more entries");
    r->has_entries = true;
}

static int value_of(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool take_hex(tn_json *j, uint8_t *bytes, uint64_t n)
{
    const tn_text t = tn_json_string(j);
    bool good = !j->status && t.len == 2 * n;
    for (size_t i = 0; i < n && good; i++) {
        int high = value_of(t.ptr[2 * i]), low = value_of(t.ptr[2 * i + 1]);
        good = high >= 0 && low >= 0;
        if (good)
            bytes[i] = (uint8_t)(high << 4 | low);
    }
    return good || tn_json_reject(j, TN_ERR_CORRUPT, "expected %llu bytes in hexadecimal",
                                  (unsigned long long)n);
}

/* The data is in the plan, which is this process's own. */
static void take_found(tn_json *j, record *r)
{
    const tn_plan *p = r->plan;
    size_t k = first_entry(p, r->piece), end = end_entry(p, r->piece);
    tn_json_array(j);
    while (tn_json_item(j)) {
        while (k < end && !is_found(&p->writer->entries[k]))
            k++;
        if (k == end) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected fewer values that were found");
            return;
        }
        const tn_out_entry *e = &p->writer->entries[k++];
        if (!take_hex(j, (uint8_t *)(uintptr_t)e->data, e->nbytes))
            return;
    }
    while (k < end && !is_found(&p->writer->entries[k]))
        k++;
    r->has_found = k == end;
}

static tn_sink *sink_of(const record *r)
{
    const tn_writer *w = r->plan->writer;
    return w->files[w->entries[first_entry(r->plan, r->piece)].file].sink;
}

/* As many as the object has parts at most. */
static void take_sent(tn_json *j, record *r)
{
    size_t most = sink_of(r) ? tn_sink_count_parts(sink_of(r), (uint32_t)r->piece) : 0;
    r->sent = tn_arena_zalloc(j->arena, most + 1, sizeof *r->sent);
    r->nsent = 0;
    if (!r->sent)
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (r->nsent == most) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected %zu parts but found more", most);
            return;
        }
        r->sent[r->nsent++] = tn_json_keep(j, tn_json_string(j));
    }
}

static void take_member(tn_json *j, tn_text key, record *r)
{
    if (tn_text_is(key, "format"))
        r->named = tn_text_is(tn_json_string(j), RECORD_FORMAT);
    else if (tn_text_is(key, "plan") && tn_json_u64(j) != r->id && !j->status)
        tn_json_reject(j, TN_ERR_CORRUPT, "it is of another plan");
    else if (tn_text_is(key, "piece") && tn_json_u64(j) != r->piece && !j->status)
        tn_json_reject(j, TN_ERR_CORRUPT, "it is of another piece");
    else if (tn_text_is(key, "part"))
        r->part = tn_json_u64(j);
    else if (tn_text_is(key, "in"))
        take_in(j, r);
    else if (tn_text_is(key, "out"))
        take_out(j, r);
    else if (tn_text_is(key, "stats"))
        take_stats(j, &r->blocks.stats);
    else if (tn_text_is(key, "found"))
        take_found(j, r);
    else if (tn_text_is(key, "entries"))
        take_entries(j, r);
    else if (tn_text_is(key, "sent"))
        take_sent(j, r);
    else if (!tn_text_is(key, "plan") && !tn_text_is(key, "piece"))
        tn_json_skip(j);
}

/* Whether a record has all that belongs to its piece. */
static tn_status check_whole(const record *r, tn_error *err)
{
    bool cut = r->plan->run.pieces[r->piece].nblocks > 0;
    if (!r->named || !r->has_entries || !r->has_found || (cut && !(r->has_in && r->has_out)))
        return tn_fail(err, TN_ERR_CORRUPT, "expected the record of a piece of format \"" RECORD_FORMAT "\"");
    if (r->waiting != r->part)
        return tn_fail(err, TN_ERR_CORRUPT, "expected %" PRIu64 " bytes that wait but found %" PRIu64,
                       r->part, r->waiting);
    return TN_OK;
}

static tn_status keep(const record *r, tn_error *err)
{
    tn_plan *p = r->plan;
    tn_piece *piece = &p->run.pieces[r->piece];
    tn_sink *sink = sink_of(r);
    size_t parts = sink ? tn_sink_count_parts(sink, (uint32_t)r->piece) : 0;
    if (parts && !tn_sink_was_sent(sink, (uint32_t)r->piece, r->sent, r->nsent))
        return tn_fail(err, TN_ERR_CORRUPT, "expected the ETags of %zu parts that were sent", parts);
    if (piece->nblocks) {
        piece->blocks = piece->blocks ? piece->blocks : malloc(sizeof *piece->blocks);
        TN_NEED(piece->blocks, err);
        *piece->blocks = r->blocks;
        return TN_OK;
    }
    for (size_t k = first_entry(p, r->piece); k < end_entry(p, r->piece); k++)
        if (tn_run_moves(&p->writer->entries[k]))
            p->writer->entries[k].done = true;
    return TN_OK;
}

/* Digits, checksums and ETags have their longest texts. */
uint64_t tn_piece_record_most(const tn_plan *p, size_t i)
{
    enum { FIXED = 4096, SUM = 40 + TN_CHECKSUM_TEXT_MAX, ETAG = 200 };
    const tn_writer *w = p->writer;
    const tn_sink *sink = w->files[w->entries[first_entry(p, i)].file].sink;
    uint64_t most = FIXED + SUM * TN_MAX_PARTS + ETAG * (sink ? tn_sink_count_parts(sink, (uint32_t)i) : 0);
    for (size_t k = first_entry(p, i); k < end_entry(p, i); k++) {
        const tn_out_entry *e = &w->entries[k];
        most += is_told(e) ? SUM : 0;
        most += is_found(e) ? 2 * e->nbytes + 8 : 0;
    }
    return most;
}

uint64_t tn_piece_record_part(tn_text text)
{
    tn_arena arena = { 0 };
    uint64_t part = UINT64_MAX;
    tn_json j;
    tn_text key;
    tn_json_init(&j, text.ptr, text.len, &arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (tn_text_is(key, "part"))
            part = tn_json_u64(&j);
        else
            tn_json_skip(&j);
    }
    tn_json_done(&j);
    tn_arena_free(&arena);
    return j.status ? UINT64_MAX : part;
}

tn_status tn_piece_record_read(tn_plan *plan, size_t i, uint32_t id, tn_text text, uint64_t *part,
                               tn_error *err)
{
    record r = { .plan = plan, .piece = i, .id = id };
    tn_arena arena = { 0 };
    tn_json j;
    tn_text key;
    if (!tn_work_is_whole(text))
        return tn_fail(err, TN_ERR_CORRUPT, "the record of a piece is damaged");
    tn_json_init(&j, text.ptr, text.len, &arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key))
        take_member(&j, key, &r);
    tn_json_done(&j);
    tn_status status = j.status ? tn_json_fail(&j, 0, err) : check_whole(&r, err);
    *part = r.part;
    if (!status)
        status = keep(&r, err);
    tn_arena_free(&arena);
    return status;
}
