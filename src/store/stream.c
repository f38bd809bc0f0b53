/* store/stream.c - the decoded bytes of a part, window by window. */
#include "store/stream.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/windows.h"
#include "store/gather.h"
#include "tensor/array.h"
#include "tensor/block.h"
#include "tensor/code.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Strided elements that are read at a time: whole windows.  Of a mapped file fewer, which stay in the cache,
 * if they still are runs of so many bytes in the file. */
#define BLOCK_BYTES  (42 * TN_WINDOW)
#define MAPPED_BYTES (6 * TN_WINDOW)
enum { MAPPED_RUN = 256 };

tn_checksum tn_part_checksum(const tn_part *p)
{
    tn_checksum kind = tn_stored_of(p)->checksum;
    return tn_stored_more_of(p)->derive || kind == TN_CHECKSUM_UNKNOWN ? TN_CHECKSUM_NONE : kind;
}

static tn_status in_tensor(tn_status status, const tn_tensor *t, tn_error *err)
{
    return t ? tn_in_tensor(status, t->name, err) : status;
}

/* Notes where the stored bytes of the part begin, and its tensor. */
static tn_status in_part(const tn_stream *s, tn_status status, tn_error *err)
{
    return in_tensor(tn_at_byte(status, tn_stored_of(s->part)->offset, err), s->tensor, err);
}

static size_t window_of(uint64_t bytes)
{
    return (size_t)tn_min_u64(bytes, TN_WINDOW);
}

static tn_status not_known(const tn_tensor *t, const char *what, const char *name, tn_error *err)
{
    return in_tensor(tn_fail(err, TN_ERR_UNSUPPORTED, "%s %s is not known to this build", what,
                             tn_quote_z(name ? name : "").text),
                     t, err);
}

tn_status tn_part_readable(const tn_tensor *t, const tn_part *p, tn_error *err)
{
    const tn_stored *s = tn_stored_of(p);
    const tn_stored_more *more = tn_stored_more_of(p);
    if (more->never)
        return in_tensor(tn_fail(err, TN_ERR_UNSUPPORTED, "%s", more->never), t, err);
    if (p->array.dtype == TN_UNKNOWN)
        return not_known(t, "type", s->type, err);
    if (!tn_codec_of(s->encoding))
        return not_known(t, "encoding", tn_stored_encoding(s), err);
    if (more->opaque)
        return not_known(t, "layout", more->opaque, err);
    for (uint32_t i = 0; i < more->nfrom; i++)
        TN_TRY(tn_part_readable(t, &more->from[i], err));
    return TN_OK;
}

/* Never NULL if the part is readable. */
static const tn_codec *codec_of(const tn_part *p)
{
    return tn_codec_of(tn_stored_of(p)->encoding);
}

/* Whether checksums are of decoded bytes. */
static bool sums_decoded(const tn_part *p)
{
    const tn_codec *codec = codec_of(p);
    return codec && codec->sums_decoded;
}

static tn_status need_buffer(uint8_t **buffer, tn_error *err)
{
    if (!*buffer)
        *buffer = malloc(TN_WINDOW);
    return *buffer ? TN_OK : tn_fail_nomem(err);
}

static void end_derived(tn_stream *s)
{
    if (s->derived)
        s->derive->close(s->derived);
    s->derived = NULL;
}

static void begin(tn_stream *s, const tn_file *file, const tn_part *part)
{
    if (s->reserved != part)
        tn_stream_close(s);
    tn_hash_free(&s->hash);
    s->file = file;
    s->part = part;
    s->npending = 0;
    s->nseen = 0;
    s->made = 0;
    s->stored = tn_stored_of(part)->offset;
    s->stored_end = s->stored + tn_stored_of(part)->size;
    s->unit = tn_swap_unit(part);
    s->hashed = false;
    s->block.size = 0;
    tn_spill_free(&s->whole);
    end_derived(s);
}

/* Reads the bytes that the checksum covers. */
static void take_checked(tn_stream *s)
{
    tn_range sum = tn_stored_more_of(s->part)->sum;
    if (!sum.size)
        return;
    s->stored = sum.offset;
    s->stored_end = sum.offset + sum.size;
}

/* The next stored bytes, hashed; *n is 0 at the end.  Bytes to be decoded are copied, because no decoder
 * promises to work on bytes that change while it reads. */
static tn_status next_stored(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    *n = window_of(s->stored_end - s->stored);
    const tn_stored *stored = tn_stored_of(s->part);
    const tn_source *source = s->file->shards[stored->shard].source;
    bool in_place = stored->encoding == TN_ENCODING_RAW && !tn_source_copies(source, *n);
    tn_status status = tn_source_check_range(source, s->seen, s->nseen, err);
    if (status)
        return status;
    *bytes = in_place ? tn_source_view(source, s->stored, *n) : NULL;
    s->seen = s->stored;
    s->nseen = *bytes ? *n : 0;
    if (!*bytes && *n) {
        status = need_buffer(&s->in, err);
        if (!status)
            status = tn_source_read(source, s->stored, s->in, *n, err);
        if (status)
            return status;
        *bytes = s->in;
    }
    if (!s->hashed && !sums_decoded(s->part))
        tn_hash_update(&s->hash, *bytes, *n);
    s->stored += *n;
    return TN_OK;
}

/* The checksum needs its own pass: strided elements are not read in file order, or it covers more. */
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
    if (status || s->unit == 1 || !*n)
        return status;
    status = need_buffer(&s->out, err);
    if (status)
        return status;
    tn_swap_bytes(s->out, *bytes, *n, s->unit);
    *bytes = s->out;
    return TN_OK;
}

/* Blocks in the other byte order: whole ones are read, also where only some of their bytes are wanted. */
static tn_status next_blocks(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    const tn_stored *stored = tn_stored_of(s->part);
    const tn_block_info *block = tn_stored_more_of(s->part)->swapped;
    uint64_t begin = s->made - s->made % block->bytes, most = TN_WINDOW / block->bytes * block->bytes;
    uint64_t end = tn_min_u64(stored->size, begin + most);
    *n = (size_t)(tn_min_u64(end, s->made_end) - s->made);
    if (!*n)
        return TN_OK;
    TN_TRY(need_buffer(&s->out, err));
    TN_TRY(tn_source_read(s->file->shards[stored->shard].source, stored->offset + begin, s->out,
                          (size_t)(end - begin), err));
    tn_block_swap(block, s->out, (end - begin) / block->bytes);
    *bytes = s->out + (s->made - begin);
    return TN_OK;
}

/* ---- strided ---- */

/* Rows with a pitch are read as bytes, because the pitch need not be a multiple of an element; `rows` has
 * room for their shape and strides. */
static tn_grid grid_of(const tn_part *p, int64_t rows[4])
{
    const tn_stored_more *more = tn_stored_more_of(p);
    if (!more->pitch)
        return (tn_grid){ tn_dtype_get(p->array.dtype)->bits, p->array.rank, p->array.shape, more->stride };
    rows[0] = p->array.shape[0];
    rows[1] = rows[0] ? (int64_t)(p->nbytes / (uint64_t)rows[0]) : 0;
    rows[2] = (int64_t)more->pitch;
    rows[3] = 1;
    return (tn_grid){ 8, 2, rows, rows + 2 };
}

static tn_status need_block(tn_stream *s, size_t n, tn_error *err)
{
    if (n <= s->block.cap)
        return TN_OK;
    free(s->block.bytes);
    s->block.bytes = malloc(n);
    s->block.cap = s->block.bytes ? n : 0;
    return s->block.bytes ? TN_OK : tn_fail_nomem(err);
}

/* Bytes of a block.  It is larger if elements are far apart: then many are read at a time. */
static uint64_t block_bytes(const tn_grid *grid, const tn_gather *from)
{
    uint32_t last = grid->rank - 1;
    if (!grid->rank || grid->stride[last] <= 1)
        return TN_WINDOW;
    if (!tn_source_view(from->source, from->at, 1))
        return BLOCK_BYTES;
    uint64_t runs = tn_min_u64((uint64_t)grid->shape[last], BLOCK_BYTES / MAPPED_RUN);
    return runs * MAPPED_RUN > MAPPED_BYTES ? BLOCK_BYTES : MAPPED_BYTES;
}

static tn_status read_block(tn_stream *s, tn_error *err)
{
    int64_t rows[4];
    const tn_grid grid = grid_of(s->part, rows);
    const tn_stored *stored = tn_stored_of(s->part);
    const tn_stored_more *more = tn_stored_more_of(s->part);
    TN_TRY(need_buffer(&s->in, err));
    tn_gather g = { s->file->shards[stored->shard].source, stored->offset, s->in, TN_WINDOW };
    if (s->whole.source)
        g = (tn_gather){ s->whole.source, more->decoded ? more->skip : 0, s->in, TN_WINDOW };
    uint64_t left = s->made_end - s->made, count = 0, first = s->made * 8 / grid.bits;
    size_t n = (size_t)tn_min_u64(left, block_bytes(&grid, &g));
    TN_TRY(need_block(s, n, err));
    tn_shape_count(grid.rank, grid.shape, &count);
    /* the last byte may have bits of no element */
    uint64_t want = tn_min_u64((uint64_t)n * 8 / grid.bits, count - first);
    if (grid.bits % 8)
        memset(s->block.bytes, 0, n);
    tn_status status = tn_gather_elements(&g, &grid, first, want, s->block.bytes, err);
    if (!status && s->unit > 1)
        tn_swap_bytes(s->block.bytes, s->block.bytes, n, s->unit);
    s->block.from = s->made;
    s->block.size = status ? 0 : n;
    return status;
}

static tn_status next_strided(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    *n = window_of(s->made_end - s->made);
    if (!*n)
        return TN_OK;
    tn_status status = TN_OK;
    if (!s->block.size || s->made == s->block.from + s->block.size)
        status = read_block(s, err);
    if (!status)
        *bytes = s->block.bytes + (s->made - s->block.from);
    return status;
}

static tn_status next_derived(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    tn_status status = need_buffer(&s->out, err);
    *bytes = s->out;
    return status ? status : s->derive->next(s->derived, s->out, TN_WINDOW, n, err);
}

/* ---- compressed ---- */

/* Decoded bytes of a part as it is stored: with its padding, or all of the extent that it is in. */
static uint64_t decoded_size(const tn_part *p)
{
    uint64_t n = p->nbytes, all = tn_stored_more_of(p)->decoded;
    if (all)
        return all;
    if (p->padded)              /* cannot fail: they were counted */
        tn_shape_nbytes(p->array.dtype, p->array.rank, p->padded->shape, &n);
    return n;
}

static tn_status cut_off(const tn_stream *s, tn_error *err)
{
    tn_status status = tn_fail(err, TN_ERR_CORRUPT,
                               "expected the end of the %s data within %" PRIu64 " bytes but it is cut off",
                               codec_of(s->part)->name, tn_stored_of(s->part)->size);
    return in_part(s, status, err);
}

/* Notes the window that a stream will need. Parts that others are derived from need none: deflated or raw. */
static tn_status find_window(const tn_stream_wish *w, tn_error *err)
{
    const tn_stored *stored = tn_stored_of(w->part);
    tn_stream *s = w->stream;
    uint64_t content = decoded_size(w->part);
    const tn_codec *codec = codec_of(w->part);
    if (!codec || !codec->find_window)
        return TN_OK;
    const tn_source *source = w->file->shards[stored->shard].source;
    tn_status status = codec->find_window(source, stored->offset, stored->size, content, &s->window, err);
    if (!status)
        status = tn_windows_check(s->window, err);
    if (status)
        return in_tensor(tn_at_byte(status, stored->offset, err), w->tensor, err);
    s->held = tn_min_u64(s->window, content);           /* no more of it is ever written to */
    return TN_OK;
}

tn_status tn_stream_reserve(const tn_stream_wish *wishes, size_t n, tn_error *err)
{
    uint64_t all = 0;
    tn_status status = TN_OK;
    for (size_t i = 0; i < n; i++)
        tn_stream_close(wishes[i].stream);
    for (size_t i = 0; i < n && !status; i++) {
        status = find_window(&wishes[i], err);
        all += wishes[i].stream->held;          /* of two or three, none of which has 2^62 bytes */
    }
    if (!status && all) {
        status = tn_windows_take(all, err);
        in_tensor(tn_at_byte(status, tn_stored_of(wishes->part)->offset, err), wishes->tensor, err);
    }
    for (size_t i = 0; i < n; i++) {
        tn_stream *s = wishes[i].stream;
        s->reserved = status ? NULL : wishes[i].part;
        s->held = status ? 0 : s->held;
    }
    return status;
}

void tn_stream_close(tn_stream *s)
{
    if (s->decoder.state && s->decoder.codec->decode_end)
        s->decoder.codec->decode_end(s->decoder.state);
    if (s->held)
        tn_windows_give(s->held);
    s->held = s->window = 0;
    s->reserved = NULL;
}

static tn_status begin_decoding(tn_stream *s, tn_error *err)
{
    const tn_codec *codec = codec_of(s->part);
    tn_status status = TN_OK;
    if (codec->find_window && s->reserved != s->part)
        status = tn_stream_reserve(&(tn_stream_wish){ s, s->file, s->tensor, s->part }, 1, err);
    if (!status)
        status = tn_codec_use(&s->decoder, codec, err);
    return status ? status : codec->decode_begin(s->decoder.state, s->window, err);
}

static bool at_end(const tn_stream *s)
{
    return s->decoder.codec->decode_at_end(s->decoder.state);
}

static tn_status decode(tn_stream *s, void *to, size_t cap, size_t *made, tn_error *err)
{
    tn_coding c = { s->pending, s->npending, to, cap };
    tn_status status = s->decoder.codec->decode(s->decoder.state, &c, err);
    if (status)
        return in_part(s, status, err);
    s->pending = c.in;
    s->npending = c.nin;
    *made = cap - c.nout;
    return TN_OK;
}

/* The next n decoded bytes; *made is less only at the end of the data. */
static tn_status decode_some(tn_stream *s, uint8_t *to, size_t n, size_t *made, tn_error *err)
{
    tn_status status = TN_OK;
    *made = 0;
    while (!status && *made < n) {
        size_t got = 0;
        if (!s->npending)
            status = next_stored(s, &s->pending, &s->npending, err);
        bool dry = !s->npending;        /* the decoder may still hold back some bytes */
        if (!status)
            status = decode(s, to + *made, n - *made, &got, err);
        if (!status && dry && !got)
            return at_end(s) ? TN_OK : cut_off(s, err);
        *made += got;
    }
    return status;
}

/* All bytes are decoded: the rest of the data must decode to nothing. */
static tn_status check_end(tn_stream *s, tn_error *err)
{
    uint8_t extra;
    size_t made;
    tn_status status = decode_some(s, &extra, 1, &made, err);
    if (status || !made)
        return status;
    status = tn_fail(err, TN_ERR_CORRUPT, "expected %" PRIu64 " decoded bytes but found more",
                     decoded_size(s->part));
    return in_part(s, status, err);
}

/* The next n bytes, after `done` were decoded. */
static tn_status decode_exactly(tn_stream *s, uint8_t *to, size_t n, uint64_t done, tn_error *err)
{
    size_t made;
    tn_status status = decode_some(s, to, n, &made, err);
    if (status || made == n)
        return status;
    status = tn_fail(err, TN_ERR_CORRUPT, "expected %" PRIu64 " decoded bytes but found %" PRIu64,
                     decoded_size(s->part), done + made);
    return in_part(s, status, err);
}

static tn_status next_compressed(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    bool to_the_end = s->made_end == TN_TO_THE_END;
    *n = window_of(s->made_end - s->made);
    if (!*n)
        return check_end(s, err);
    tn_status status = need_buffer(&s->out, err);
    if (!status && to_the_end)
        status = decode_some(s, s->out, *n, n, err);
    else if (!status)
        status = decode_exactly(s, s->out, *n, s->made, err);
    if (status)
        return status;
    if (sums_decoded(s->part))
        tn_hash_update(&s->hash, s->out, *n);
    if (s->unit > 1)
        tn_swap_bytes(s->out, s->out, *n, s->unit);
    *bytes = s->out;
    return TN_OK;
}

/* Skips the bytes before the elements: less than a window.  If the whole extent is decoded they are part of
 * it. */
static tn_status skip_decoded(tn_stream *s, tn_error *err)
{
    const tn_stored_more *more = tn_stored_more_of(s->part);
    size_t n = more->decoded ? 0 : (size_t)more->skip;
    tn_status status = n ? need_buffer(&s->out, err) : TN_OK;
    return status || !n ? status : decode_exactly(s, s->out, n, 0, err);
}

/* Decodes a strided part into a spill: compressed data can only be read in order. */
static tn_status decode_whole(tn_stream *s, tn_error *err)
{
    uint64_t size = decoded_size(s->part);
    tn_status status = need_buffer(&s->out, err);
    if (!status)
        status = tn_spill_begin(&s->whole, size, err);
    for (uint64_t done = 0; done < size && !status;) {
        size_t n = window_of(size - done);
        status = decode_exactly(s, s->out, n, done, err);
        if (status)
            break;
        tn_hash_update(&s->hash, s->out, n);
        status = tn_spill_append(&s->whole, s->out, n, err);
        done += n;
    }
    return status ? status : check_end(s, err);
}

static tn_status open_compressed(tn_stream *s, tn_checksum kind, tn_error *err)
{
    TN_TRY(begin_decoding(s, err));
    TN_TRY(tn_hash_begin(&s->hash, kind, err));
    return skip_decoded(s, err);
}

/* ---- all ---- */

static tn_status open_compressed_part(tn_stream *s, tn_checksum kind, tn_error *err)
{
    bool apart = tn_stored_more_of(s->part)->stride;
    tn_status status = open_compressed(s, kind, err);
    s->next = apart ? next_strided : next_compressed;
    return status || !apart ? status : decode_whole(s, err);
}

static tn_status open_raw(tn_stream *s, tn_checksum kind, tn_error *err)
{
    const tn_stored *stored = tn_stored_of(s->part);
    bool range = tn_part_is_range(s->part), ahead = !range || tn_stored_more_of(s->part)->sum.size;
    s->next = range ? next_raw : next_strided;
    if (tn_stored_more_of(s->part)->swapped)
        s->next = next_blocks;
    tn_status status = ahead ? hash_ahead(s, kind, err) : tn_hash_begin(&s->hash, kind, err);
    s->stored = stored->offset + s->made;
    s->stored_end = stored->offset + s->made_end;
    return status;
}

tn_status tn_stream_open(tn_stream *s, const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                         uint64_t from, uint64_t n, tn_checksum kind, tn_error *err)
{
    tn_status status = tn_part_readable(tensor, part, err);
    if (status)
        return status;
    begin(s, file, part);
    s->tensor = tensor;
    s->made = from;
    s->made_end = from + n;
    s->derive = tn_stored_more_of(part)->derive;
    if (s->derive) {
        s->next = next_derived;
        status = tn_hash_begin(&s->hash, TN_CHECKSUM_NONE, err);
        return status ? status : s->derive->open(file, tensor, part, &s->derived, err);
    }
    bool raw = tn_stored_of(part)->encoding == TN_ENCODING_RAW;
    return raw ? open_raw(s, kind, err) : open_compressed_part(s, kind, err);
}

tn_status tn_stream_open_stored(tn_stream *s, const tn_file *file, const tn_tensor *tensor,
                                const tn_part *part, tn_checksum kind, tn_error *err)
{
    begin(s, file, part);
    s->tensor = tensor;
    s->unit = 1;
    s->next = next_stored;
    if (sums_decoded(part)) {
        s->next = next_compressed;
        s->made_end = part->array.dtype == TN_UNKNOWN ? TN_TO_THE_END : decoded_size(part);
        return open_compressed(s, kind, err);
    }
    take_checked(s);
    return tn_hash_begin(&s->hash, kind, err);
}

tn_status tn_stream_next(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err)
{
    TN_TRY(s->next(s, bytes, n, err));
    s->made += *n;
    return TN_OK;
}

tn_status tn_stream_read(tn_stream *s, uint8_t *to, tn_error *err)
{
    for (;;) {
        const uint8_t *bytes;
        size_t n;
        tn_status status = tn_stream_next(s, &bytes, &n, err);
        if (status || !n)
            return status;
        memcpy(to, bytes, n);
        to += n;
    }
}

tn_status tn_stream_digest(tn_stream *s, tn_digest *digest, tn_error *err)
{
    return tn_hash_end(&s->hash, digest, err);
}

void tn_stream_free(tn_stream *s)
{
    tn_hash_free(&s->hash);
    tn_stream_close(s);
    tn_codec_free(&s->decoder);
    tn_spill_free(&s->whole);
    free(s->block.bytes);
    end_derived(s);
    free(s->in);
    free(s->out);
    *s = (tn_stream){ 0 };
}

tn_status tn_digest_check(const tn_part *p, const tn_digest *found, const char *who, tn_error *err)
{
    const tn_stored *s = tn_stored_of(p);
    tn_digest expected;
    tn_status status = tn_digest_parse(s->checksum_text, &expected, err);
    if (status)
        return tn_fail_at(err, status, s->offset, "%sits checksum %s is not well formed", who,
                          tn_quote_z(s->checksum_text).text);
    if (tn_digest_equal(&expected, found))
        return TN_OK;
    char text[TN_CHECKSUM_TEXT_MAX];
    tn_digest_format(found, text);
    return tn_fail_at(err, TN_ERR_CHECKSUM, tn_entry_range(s).offset, "%sexpected checksum %s but found %s",
                      who, tn_quote_z(s->checksum_text).text, text);
}

tn_status tn_part_compare_digest(const tn_tensor *t, const tn_part *p, const tn_digest *found, tn_error *err)
{
    if (tn_part_checksum(p) == TN_CHECKSUM_NONE)
        return TN_OK;
    return in_tensor(tn_digest_check(p, found, "", err), t, err);
}

tn_status tn_stream_check(tn_stream *s, const tn_tensor *t, const tn_part *p, tn_error *err)
{
    tn_digest found;
    tn_status status = tn_stream_digest(s, &found, err);
    return status ? status : tn_part_compare_digest(t, p, &found, err);
}
