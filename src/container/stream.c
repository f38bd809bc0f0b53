/* container/stream.c - the decoded bytes of a part, window by window. */
#include "container/stream.h"
#include "base/error.h"
#include "tensor/array.h"
#include "tensor/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tn_checksum tn_part_checksum(const tn_part *p)
{
    return p->storage.columns || p->storage.checksum == TN_CHECKSUM_UNKNOWN ? TN_CHECKSUM_NONE : p->storage.checksum;
}

bool tn_part_splits(const tn_part *p)
{
    return p->storage.encoding == TN_ENCODING_RAW && !p->storage.columns;
}

bool tn_part_is_range(const tn_part *p)
{
    return tn_part_splits(p) && !p->storage.stride && !p->storage.pitch;
}

/* "tensor "NAME": ", or nothing. */
typedef struct prefix { char text[120]; } prefix;
static prefix name_of(const tn_tensor *t)
{
    prefix p = { "" };
    if (t)
        snprintf(p.text, sizeof p.text, "tensor %s: ", tn_quote_z(t->name).text);
    return p;
}

static tn_status not_known(const tn_tensor *t, const char *what, const char *name, tn_error *err)
{
    return tn_fail(err, TN_ERR_UNSUPPORTED, TN_NO_OFFSET, "%s%s %s is not known to this build", name_of(t).text, what,
                   tn_quote_z(name ? name : "").text);
}

tn_status tn_part_readable(const tn_tensor *t, const tn_part *p, tn_error *err)
{
    if (p->array.dtype == TN_UNKNOWN)
        return not_known(t, "type", p->storage.type, err);
    if (p->storage.encoding == TN_ENCODING_UNKNOWN)
        return not_known(t, "encoding", p->storage.encoding_name, err);
    if (p->storage.opaque)
        return not_known(t, "layout", p->storage.opaque, err);
    tn_status status = TN_OK;
    for (int64_t i = 0; p->storage.columns && i < p->array.shape[1] && !status; i++)
        status = tn_part_readable(t, &p->storage.columns[i], err);
    return status;
}

static unsigned swap_unit(const tn_part *p)
{
    return p->storage.order == TN_HOST_ORDER ? 1 : tn_dtype_get(p->array.dtype)->swap_bytes;
}

static tn_status need_buffer(uint8_t **buffer, tn_error *err)
{
    if (!*buffer)
        *buffer = malloc(TN_WINDOW);
    return *buffer ? TN_OK : tn_fail_nomem(err);
}

static void begin(tn_stream *s, const tn_file *file, const tn_part *part)
{
    tn_hash_free(&s->hash);
    s->file = file;
    s->part = part;
    s->npending = 0;
    s->made = 0;
    s->stored = part->storage.offset;
    s->stored_end = s->stored + part->storage.size;
    s->hashed = false;
    s->as_stored = false;
    s->change = NULL;
    s->nunchanged = 0;
    free(s->whole);
    s->whole = NULL;
    tn_columns_free(s->columns);
    s->columns = NULL;
}

/* Of what is stored, that which the checksum is of. */
static void take_checked(tn_stream *s)
{
    const tn_storage *storage = &s->part->storage;
    if (!storage->sum_size)
        return;
    s->stored = storage->sum_offset;
    s->stored_end = s->stored + storage->sum_size;
}

tn_status tn_stream_open_stored(tn_stream *s, const tn_file *file, const tn_part *part, tn_checksum kind, tn_error *err)
{
    begin(s, file, part);
    take_checked(s);
    s->as_stored = true;
    return tn_hash_begin(&s->hash, kind, err);
}

/* The next stored bytes, hashed; *n is 0 at the end. */
static tn_status next_stored(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    uint64_t left = s->stored_end - s->stored;
    *n = left < TN_WINDOW ? (size_t)left : TN_WINDOW;
    const tn_source *source = s->file->shards[s->part->storage.shard].source;
    *bytes = tn_source_view(source, s->stored, *n);
    if (!*bytes && *n) {
        tn_status status = need_buffer(&s->in, err);
        if (!status)
            status = tn_source_read(source, s->stored, s->in, *n, err);
        if (status)
            return status;
        *bytes = s->in;
    }
    if (!s->hashed && (s->as_stored || s->part->storage.encoding != TN_ENCODING_DEFLATE))
        tn_hash_update(&s->hash, *bytes, *n);
    s->stored += *n;
    return TN_OK;
}

/* Elements that lie apart are not taken in the order of the file, and a checksum may be of more than
 * elements: it needs a pass of its own. */
static tn_status hash_ahead(tn_stream *s, tn_checksum kind, tn_error *err)
{
    const uint8_t *bytes;
    size_t n = kind != TN_CHECKSUM_NONE;
    tn_status status = tn_hash_begin(&s->hash, kind, err);
    take_checked(s);
    while (n && !status)
        status = next_stored(s, &bytes, &n, err);
    s->hashed = true;
    return status;
}

static tn_status next_raw(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    tn_status status = next_stored(s, bytes, n, err);
    unsigned unit = swap_unit(s->part);
    if (status || unit == 1 || !*n)
        return status;
    status = need_buffer(&s->out, err);
    if (status)
        return status;
    tn_swap_bytes(s->out, *bytes, *n, unit);
    *bytes = s->out;
    return TN_OK;
}

/* Bytes [at, at + n) of a part's storage; n is small where they are not mapped. */
static tn_status stored_bytes(tn_stream *s, uint64_t at, size_t n, const uint8_t **bytes, tn_error *err)
{
    const tn_source *source = s->file->shards[s->part->storage.shard].source;
    *bytes = s->whole ? s->whole + at : NULL;
    if (*bytes)
        return TN_OK;
    at += s->part->storage.offset;
    *bytes = tn_source_view(source, at, n);
    if (*bytes)
        return TN_OK;
    tn_status status = need_buffer(&s->in, err);
    *bytes = s->in;
    return status ? status : tn_source_read(source, at, s->in, n, err);
}

/* The byte behind an element of a packed array. */
static uint64_t packed_end(uint64_t i, unsigned bits)
{
    return i / 8 * bits + (i % 8 * bits + bits + 7) / 8;
}

/* One element, which begins at a bit of `from`. */
static void copy_element(uint8_t *out, size_t to, const uint8_t *from, unsigned bit, unsigned bits)
{
    if (bits % 8 == 0)
        memcpy(out + to * (bits / 8), from, bits / 8);
    else
        tn_packed_put(out, to, bits, (from[0] | (bit + bits > 8 ? (unsigned)from[1] << 8 : 0)) >> bit);
}

/* `n` elements from element `at` of the storage on, `step` apart, become elements `to` on of the window. */
static tn_status gather_run(tn_stream *s, uint64_t at, uint64_t step, size_t n, size_t to, tn_error *err)
{
    unsigned bits = tn_dtype_get(s->part->array.dtype)->bits;
    const uint8_t *from;
    tn_status status = TN_OK;
    if (bits % 8 == 0 && step == 1) {
        status = stored_bytes(s, at * (bits / 8), n * (bits / 8), &from, err);
        if (!status)
            memcpy(s->out + to * (bits / 8), from, n * (bits / 8));
        return status;
    }
    uint64_t most = TN_WINDOW / 16 / (step ? step : 1);         /* elements whose span fits a window, 16 bytes each at most */
    for (size_t done = 0, count; done < n && !status; done += count) {
        count = most < 1 ? 1 : most < n - done ? (size_t)most : n - done;
        uint64_t first = tn_packed_byte(at, bits), end = packed_end(at + (count - 1) * step, bits);
        status = stored_bytes(s, first, (size_t)(end - first), &from, err);
        for (size_t i = 0; i < count && !status; i++, at += step)
            copy_element(s->out, to + done + i, from + (tn_packed_byte(at, bits) - first), tn_packed_bit(at, bits), bits);
    }
    return status;
}

/* The storage's number of an element, from its number in row-major order, and
 * how many more follow in its row. */
static uint64_t place_of(const tn_part *p, uint64_t element, uint64_t *row_left)
{
    uint64_t at = 0;
    *row_left = 1;
    for (uint32_t i = p->array.rank; i-- > 0;) {
        uint64_t extent = (uint64_t)p->array.shape[i], index = element % extent;
        if (i + 1 == p->array.rank)
            *row_left = extent - index;
        at += index * (uint64_t)p->storage.stride[i];
        element /= extent;
    }
    return at;
}

static tn_status next_strided(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    const tn_part *p = s->part;
    unsigned bits = tn_dtype_get(p->array.dtype)->bits, unit = swap_unit(p);
    uint64_t left = s->made_end - s->made, count = 0, element = s->made * 8 / bits;
    *n = left < TN_WINDOW ? (size_t)left : TN_WINDOW;
    if (!*n)
        return TN_OK;
    tn_status status = need_buffer(&s->out, err);
    tn_shape_count(p->array.rank, p->array.shape, &count);
    size_t want = *n * 8 / bits;
    if (want > count - element)         /* the bits that fill the last byte */
        want = (size_t)(count - element);
    if (!status && bits % 8)
        memset(s->out, 0, *n);
    for (size_t done = 0; done < want && !status;) {
        uint64_t row, at = place_of(p, element, &row);
        size_t run = row < want - done ? (size_t)row : want - done;
        status = gather_run(s, at, p->array.rank ? (uint64_t)p->storage.stride[p->array.rank - 1] : 1, run, done, err);
        done += run;
        element += run;
    }
    if (!status && unit > 1)
        tn_swap_bytes(s->out, s->out, *n, unit);
    *bytes = s->out;
    return status;
}

/* Bytes from byte `at` of the part on, at most `most`: the rest of a row, or as many rows as a window spans. */
static tn_status gather_rows(tn_stream *s, uint64_t at, size_t most, uint8_t *to, size_t *n, tn_error *err)
{
    const tn_part *p = s->part;
    uint64_t row = p->nbytes / (uint64_t)p->array.shape[0], inside = at % row, pitch = p->storage.pitch, rows = 1;
    size_t size = row - inside < most ? (size_t)(row - inside) : most;
    if (size == row) {
        rows += (TN_WINDOW - row) / pitch;
        rows = rows < most / row ? rows : most / row;
    }
    const uint8_t *from;
    tn_status status = stored_bytes(s, at / row * pitch + inside, (size_t)((rows - 1) * pitch) + size, &from, err);
    if (!status)
        tn_copy_apart(to, size, from, (size_t)pitch, size, (size_t)rows);
    *n = (size_t)rows * size;
    return status;
}

static tn_status next_pitched(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    uint64_t left = s->made_end - s->made;
    unsigned unit = swap_unit(s->part);
    *n = left < TN_WINDOW ? (size_t)left : TN_WINDOW;
    if (!*n)
        return TN_OK;
    tn_status status = need_buffer(&s->out, err);
    for (size_t done = 0, got; done < *n && !status; done += got)
        status = gather_rows(s, s->made + done, *n - done, s->out + done, &got, err);
    if (!status && unit > 1)
        tn_swap_bytes(s->out, s->out, *n, unit);
    *bytes = s->out;
    return status;
}

static tn_status next_woven(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    tn_status status = need_buffer(&s->out, err);
    *bytes = s->out;
    return status ? status : tn_columns_next(s->columns, s->out, TN_WINDOW, n, err);
}

static tn_status wrong_length(const tn_stream *s, const char *found, tn_error *err)
{
    return tn_fail(err, TN_ERR_CORRUPT, s->part->storage.offset, "%sexpected %llu decoded bytes but found %s",
                   name_of(s->tensor).text, (unsigned long long)s->made_end, found);
}

/* ---- compressed ---- */

static bool is_deflated(const tn_stream *s)
{
    return s->part->storage.encoding == TN_ENCODING_DEFLATE;
}

static tn_status begin_decoding(tn_stream *s, tn_error *err)
{
    tn_status status = TN_OK;
    if (is_deflated(s)) {
        if (!s->inflate)
            status = tn_inflate_new(&s->inflate, err);
        if (!status)
            tn_inflate_begin(s->inflate);
        return status;
    }
    if (!s->zstd)
        status = tn_zstd_new(&s->zstd, err);
    return status ? status : tn_zstd_decode_begin(s->zstd, err);
}

static bool at_end(const tn_stream *s)
{
    return is_deflated(s) ? tn_inflate_at_end(s->inflate) : tn_zstd_decode_at_end(s->zstd);
}

static tn_status decode(tn_stream *s, void *to, size_t cap, size_t *made, tn_error *err)
{
    size_t used = 0;
    tn_error why;
    tn_status status = is_deflated(s) ? tn_inflate_decode(s->inflate, s->pending, s->npending, &used, to, cap, made, &why)
                                      : tn_zstd_decode(s->zstd, s->pending, s->npending, &used, to, cap, made, &why);
    if (status)
        return tn_fail(err, status, s->part->storage.offset, "%s%s", name_of(s->tensor).text, why.text);
    if (used) {                 /* at the end there is nothing to point to */
        s->pending += used;
        s->npending -= used;
    }
    return TN_OK;
}

/* All decoded bytes are there: what is left must decode to nothing. */
static tn_status check_end(tn_stream *s, tn_error *err)
{
    uint8_t extra;
    size_t made = 0;
    tn_status status = TN_OK;
    for (;;) {
        if (!s->npending)
            status = next_stored(s, &s->pending, &s->npending, err);
        if (status || !s->npending)
            break;
        status = decode(s, &extra, 1, &made, err);
        if (!status && made)
            return wrong_length(s, "more", err);
    }
    if (status)
        return status;
    return at_end(s) ? TN_OK : wrong_length(s, "a frame that is cut off", err);
}

static tn_status decode_exactly(tn_stream *s, uint8_t *to, uint64_t n, tn_error *err)
{
    tn_status status = TN_OK;
    while (!status && n) {
        size_t made = 0;
        if (!s->npending)
            status = next_stored(s, &s->pending, &s->npending, err);
        bool dry = !s->npending;        /* the decoder may still hold back some bytes */
        if (!status)
            status = decode(s, to, (size_t)n, &made, err);
        if (!status && dry && !made)
            return wrong_length(s, at_end(s) ? "fewer" : "a frame that is cut off", err);
        to += made;
        n -= made;
    }
    return status;
}

static tn_status next_compressed(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    uint64_t left = s->made_end - s->made;
    unsigned unit = swap_unit(s->part);
    *n = left < TN_WINDOW ? (size_t)left : TN_WINDOW;
    if (!*n)
        return check_end(s, err);
    tn_status status = need_buffer(&s->out, err);
    if (!status)
        status = decode_exactly(s, s->out, *n, err);
    if (status)
        return status;
    if (is_deflated(s))
        tn_hash_update(&s->hash, s->out, *n);
    if (unit > 1)
        tn_swap_bytes(s->out, s->out, *n, unit);
    *bytes = s->out;
    return TN_OK;
}

/* What stands before the elements: less than a window. */
static tn_status skip_decoded(tn_stream *s, tn_error *err)
{
    tn_status status = s->part->storage.skip ? need_buffer(&s->out, err) : TN_OK;
    return status ? status : decode_exactly(s, s->out, s->part->storage.skip, err);
}

/* Elements that lie apart and are compressed: there is no way to one but through those before it. */
static tn_status decode_whole(tn_stream *s, tn_error *err)
{
    uint64_t n = s->part->nbytes;
    s->whole = malloc(n ? (size_t)n : 1);
    tn_status status = s->whole ? decode_exactly(s, s->whole, n, err) : tn_fail_nomem(err);
    if (!status)
        tn_hash_update(&s->hash, s->whole, (size_t)n);
    return status ? status : check_end(s, err);
}

static tn_status open_compressed(tn_stream *s, tn_checksum kind, tn_error *err)
{
    tn_status status = begin_decoding(s, err);
    if (!status)
        status = tn_hash_begin(&s->hash, kind, err);
    if (!status)
        status = skip_decoded(s, err);
    return status || !s->part->storage.stride ? status : decode_whole(s, err);
}

/* ---- all ---- */

tn_status tn_stream_open(tn_stream *s, const tn_file *file, const tn_tensor *tensor, const tn_part *part, uint64_t from,
                         uint64_t n, tn_checksum kind, tn_error *err)
{
    tn_status status = tn_part_readable(tensor, part, err);
    if (status)
        return status;
    begin(s, file, part);
    s->tensor = tensor;
    s->made = from;
    s->made_end = from + n;
    if (part->storage.columns) {
        status = tn_hash_begin(&s->hash, TN_CHECKSUM_NONE, err);
        return status ? status : tn_columns_open(file, tensor, part, &s->columns, err);
    }
    if (part->storage.encoding != TN_ENCODING_RAW)
        return open_compressed(s, kind, err);
    bool ahead = !tn_part_is_range(part) || part->storage.sum_size;
    status = ahead ? hash_ahead(s, kind, err) : tn_hash_begin(&s->hash, kind, err);
    s->stored = part->storage.offset + from;
    s->stored_end = s->stored + n;
    return status;
}

void tn_stream_change(tn_stream *s, const tn_change *change)
{
    s->change = change;
    s->elements = 0;
    if (change) {
        s->element = s->made * 8 / change->from_bits;
        tn_shape_count(s->part->array.rank, s->part->array.shape, &s->elements);    /* cannot fail: its bytes were counted */
    }
}

static tn_status next_decoded(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    bool raw = s->part->storage.encoding == TN_ENCODING_RAW;
    tn_status status = s->as_stored              ? next_stored(s, bytes, n, err)
                       : s->columns              ? next_woven(s, bytes, n, err)
                       : s->part->storage.pitch  ? next_pitched(s, bytes, n, err)
                       : s->part->storage.stride ? next_strided(s, bytes, n, err)
                       : raw                     ? next_raw(s, bytes, n, err)
                                                 : next_compressed(s, bytes, n, err);
    if (!status)
        s->made += *n;
    return status;
}

/* As many elements as are at hand and fit a window after the change: wide
 * results of narrow elements take several turns. */
static tn_status next_changed(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    const tn_change *c = s->change;
    *n = 0;
    tn_status status = s->nunchanged ? TN_OK : next_decoded(s, &s->unchanged, &s->nunchanged, err);
    if (!status)
        status = need_buffer(&s->changed, err);
    if (status || !s->nunchanged)
        return status;
    size_t have = s->nunchanged * 8 / c->from_bits, fit = TN_WINDOW / c->to_bits * 8;
    bool all = have <= fit;
    size_t elements = all ? have : fit, used = all ? s->nunchanged : elements / 8 * c->from_bits;
    if (elements > s->elements - s->element)        /* the bits that fill the last byte are none */
        elements = (size_t)(s->elements - s->element);
    status = c->apply(c->context, s->element, s->unchanged, elements, s->changed, err);
    s->element += elements;
    s->unchanged += used;
    s->nunchanged -= used;
    *bytes = s->changed;
    *n = (elements * c->to_bits + 7) / 8;
    return status;
}

tn_status tn_stream_next(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    return s->change ? next_changed(s, bytes, n, err) : next_decoded(s, bytes, n, err);
}

tn_status tn_stream_digest(tn_stream *s, tn_digest *digest, tn_error *err)
{
    return tn_hash_end(&s->hash, digest, err);
}

void tn_stream_free(tn_stream *s)
{
    tn_hash_free(&s->hash);
    tn_zstd_free(s->zstd);
    tn_inflate_free(s->inflate);
    free(s->whole);
    tn_columns_free(s->columns);
    free(s->in);
    free(s->out);
    free(s->changed);
    *s = (tn_stream){ 0 };
}

tn_status tn_digest_check(const tn_storage *s, const tn_digest *found, const char *who, tn_error *err)
{
    tn_digest expected;
    tn_status status = tn_digest_parse(s->checksum_text, &expected, err);
    if (status)
        return tn_fail(err, status, s->offset, "%sits checksum %s is not well formed", who, tn_quote_z(s->checksum_text).text);
    if (tn_digest_equal(&expected, found))
        return TN_OK;
    char text[TN_CHECKSUM_TEXT_MAX];
    tn_digest_format(found, text);
    return tn_fail(err, TN_ERR_CHECKSUM, s->sum_size ? s->sum_offset : s->offset, "%sexpected checksum %s but found %s", who,
                   tn_quote_z(s->checksum_text).text, text);
}

tn_status tn_part_compare_digest(const tn_tensor *t, const tn_part *p, const tn_digest *found, tn_error *err)
{
    return tn_digest_check(&p->storage, found, name_of(t).text, err);
}
