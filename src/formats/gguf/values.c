/* formats/gguf/values.c - reading metadata: a value becomes text or one CBOR item (store/meta_value.h). */
#include "formats/gguf/gguf.h"
#include "base/error.h"
#include "tensor/array.h"

#include <inttypes.h>

/* Arrays in arrays: so many fit where values are nested in an index, too. */
enum { MAX_DEPTH = 64 };

static tn_status no_memory(tn_gguf_in *in)
{
    return in->status = in->status ? in->status : tn_fail_nomem(in->err);
}

/* Appends n bytes of the file. */
static uint8_t *copy(tn_gguf_in *in, size_t n, tn_buf *out)
{
    in->status = tn_index_check_size(tn_gguf_at(in) + n, 0, in->err);
    if (in->status)
        return NULL;
    uint8_t *to = tn_buf_room(out, n);
    if (!to) {
        no_memory(in);
        return NULL;
    }
    tn_gguf_copy(in, to, n);
    out->size += n;
    return in->status ? NULL : to;
}

enum { TEXT_TO_BYTES = 0x20 };          /* what the first bytes of their heads differ in */

/* Text, or bytes if it is not UTF-8. */
static void read_string(tn_gguf_in *in, tn_buf *out)
{
    uint64_t n = tn_gguf_count(in, 1, "bytes of text");
    size_t head = out->size;
    if (in->status)
        return;
    tn_cbor_put_text_head(out, n);
    const uint8_t *text = out->bad ? NULL : copy(in, (size_t)n, out);
    if (out->bad)
        no_memory(in);
    if (text && !tn_cbor_is_ascii(text, (size_t)n) && tn_utf8_valid(text, (size_t)n) != n)
        out->data[head] ^= TEXT_TO_BYTES;
}

/* The same for a short text that is in the window: vocabularies have very many.  False: it is another one. */
static bool read_short_string(tn_gguf_in *in, tn_buf *out)
{
    enum { SHORT = 24, TEXT = 0x60 };   /* lengths that are in the head */
    const uint8_t *p = in->window + in->pos;
    size_t left = in->have - in->pos, wide = in->style.wide;
    if (in->style.big || left < wide + SHORT || p[0] >= SHORT)
        return false;
    for (size_t i = 1; i < wide; i++)
        if (p[i])
            return false;
    size_t n = p[0];
    uint8_t *to = tn_buf_room(out, SHORT);
    if (!to || (!tn_cbor_is_ascii(p + wide, n) && tn_utf8_valid(p + wide, n) != n))
        return false;
    to[0] = (uint8_t)(TEXT | n);
    memcpy(to + 1, p + wide, SHORT - 1);        /* all that it may have: a copy of a constant size */
    out->size += 1 + n;
    in->pos += wide + n;
    return true;
}

static uint64_t read_bool(tn_gguf_in *in)
{
    uint64_t at = tn_gguf_at(in), value = tn_gguf_uint(in, 1);
    if (value > 1)
        tn_gguf_fail(in, TN_ERR_CORRUPT, at, "expected a bool of 0 or 1 but found %" PRIu64, value);
    return value;
}

static void read_number(tn_gguf_in *in, tn_meta_type type, tn_buf *out)
{
    unsigned bytes = tn_meta_type_get(type)->bytes;
    uint64_t bits = type == TN_META_BOOL ? read_bool(in) : tn_gguf_uint(in, bytes);
    if (tn_meta_is_signed(type) && bytes < 8 && bits >> (8 * bytes - 1))
        bits |= UINT64_MAX << 8 * bytes;
    tn_meta_put_number(out, type, bits);
}

/* Version 1 ends before the types of 8 bytes. */
static bool is_type(const tn_gguf_in *in, uint32_t type)
{
    return tn_meta_type_get(type) && (in->style.version > 1 || type <= TN_META_ARRAY);
}

static uint32_t read_type(tn_gguf_in *in)
{
    uint64_t at = tn_gguf_at(in);
    uint32_t type = (uint32_t)tn_gguf_uint(in, 4);
    if (!in->status && !is_type(in, type))
        tn_gguf_fail(in, TN_ERR_CORRUPT, at, "expected a type of values from 0 to 12 but found %" PRIu32,
                     type);
    return type;
}

static void read_array(tn_gguf_in *in, unsigned depth, tn_buf *out);

static void read_items(tn_gguf_in *in, tn_meta_type type, uint64_t count, unsigned depth, tn_buf *out)
{
    for (uint64_t i = 0; i < count && !in->status; i++) {
        if (type == TN_META_STRING && read_short_string(in, out))
            continue;
        if (type == TN_META_STRING)
            read_string(in, out);
        else if (type == TN_META_ARRAY)
            read_array(in, depth + 1, out);
        else
            read_number(in, type, out);
    }
}

/* All numbers at once, little-endian. */
static void read_numbers(tn_gguf_in *in, unsigned bytes, uint64_t count, tn_buf *out)
{
    size_t n = (size_t)count * bytes;   /* which are in the file */
    uint8_t *numbers = copy(in, n, out);
    if (numbers && in->style.big)
        tn_swap_bytes(numbers, numbers, n, bytes);
}

/* Recurses once per nested array, up to MAX_DEPTH. */
static void read_array(tn_gguf_in *in, unsigned depth, tn_buf *out)
{
    uint64_t at = tn_gguf_at(in);
    if (depth == MAX_DEPTH) {
        tn_gguf_fail(in, TN_ERR_LIMIT, at, "expected at most %d nested arrays but found more", MAX_DEPTH);
        return;
    }
    uint32_t type = read_type(in);
    if (in->status)
        return;
    const tn_meta_type_info *info = tn_meta_type_get(type);
    unsigned least = info->bytes ? info->bytes : in->style.wide;
    if (type == TN_META_ARRAY)
        least += 4;
    uint64_t count = tn_gguf_count(in, least, least == 1 ? "bytes of an array" : "items of an array");
    if (in->status)
        return;
    tn_meta_put_array(out, (tn_meta_type)type, count);
    if (info->tag)
        read_numbers(in, info->bytes, count, out);
    else
        read_items(in, (tn_meta_type)type, count, depth, out);
}

/* A text is text, or bytes if it has a NUL; everything else stays CBOR. */
static tn_status keep(tn_gguf_in *in, tn_buf *cbor, tn_arena *arena, tn_meta *meta)
{
    tn_cbor c;
    tn_cbor_init(&c, cbor->data, cbor->size, arena);
    if (tn_cbor_peek(&c) == TN_CBOR_TEXT) {
        size_t n = tn_cbor_text(&c).len;
        const char *text = (const char *)cbor->data + cbor->size - n;
        if (!n || !memchr(text, 0, n)) {
            meta->text = tn_arena_text(arena, text, n);
            return meta->text ? TN_OK : no_memory(in);
        }
        cbor->data[0] ^= TEXT_TO_BYTES;
    }
    meta->cbor = tn_arena_copy(arena, cbor->data, cbor->size);
    meta->cbor_size = cbor->size;
    return meta->cbor ? TN_OK : no_memory(in);
}

tn_status tn_gguf_read_value(tn_gguf_in *in, uint32_t type, tn_buf *scratch, tn_arena *arena, tn_meta *meta)
{
    scratch->size = 0;
    if (!is_type(in, type))
        return tn_gguf_fail(in, TN_ERR_CORRUPT, tn_gguf_at(in) - 4,
                            "metadata key %s: expected a type of values from 0 to 12 but found %" PRIu32,
                            tn_quote_z(meta->key).text, type);
    if (type == TN_META_ARRAY)
        read_array(in, 0, scratch);
    else if (type == TN_META_STRING)
        read_string(in, scratch);
    else
        read_number(in, (tn_meta_type)type, scratch);
    if (scratch->bad)
        no_memory(in);
    return in->status ? in->status : keep(in, scratch, arena, meta);
}
