/* store/meta_json.c - metadata as a JSON object.
 *
 * A value that JSON cannot hold exactly stands there as {"$cbor":"HEX"}, its
 * CBOR in hexadecimal, and so does one that would be taken for that. */
#include "base/error.h"
#include "bytes/transcode.h"
#include "store/record.h"

#include <string.h>

#define WRAPPER "$cbor"

/* --- reading --- */

static bool is_hex(tn_text text)
{
    for (size_t i = 0; i < text.len; i++)
        if (tn_hex_digit(text.ptr[i]) < 0)
            return false;
    return text.len % 2 == 0;
}

/* The HEX of a map {"$cbor": "HEX"}; false for anything else. */
static bool is_wrapped(const tn_meta *m, tn_arena *arena, tn_text *hex)
{
    tn_cbor c;
    tn_text key;
    tn_cbor_init(&c, m->cbor, m->text ? 0 : m->cbor_size, arena);
    if (tn_cbor_peek(&c) != TN_CBOR_MAP || !tn_cbor_map(&c) || !tn_cbor_key(&c, &key) ||
        !tn_text_is(key, WRAPPER))
        return false;
    *hex = tn_cbor_text(&c);
    return !tn_cbor_key(&c, &key) && !c.status && is_hex(*hex);
}

/* The item that such a map stands for; what is no item stands for itself. */
static tn_status unwrap(tn_meta *m, tn_arena *arena, tn_error *err)
{
    tn_text hex;
    tn_cbor c;
    tn_meta item = { .key = m->key };
    if (!is_wrapped(m, arena, &hex))
        return TN_OK;
    uint8_t *bytes = tn_arena_alloc(arena, hex.len / 2);
    if (!bytes)
        return tn_fail_nomem(err);
    for (size_t i = 0; i < hex.len; i += 2)
        bytes[i / 2] = (uint8_t)(tn_hex_digit(hex.ptr[i]) << 4 | tn_hex_digit(hex.ptr[i + 1]));
    tn_cbor_init(&c, bytes, hex.len / 2, arena);
    tn_meta_take(&c, &item);
    if (tn_cbor_done(&c))
        *m = item;
    return c.status == TN_ERR_NOMEM ? tn_fail_nomem(err) : TN_OK;
}

tn_status tn_meta_read_json(tn_text json, tn_arena *arena, const tn_meta **meta, size_t *n, tn_error *err)
{
    tn_buf cbor = { 0 };
    tn_json j;
    tn_json_init(&j, json.ptr, json.len, arena);
    tn_json_to_cbor(&j, &cbor);
    tn_status status = cbor.bad ? tn_fail_nomem(err) : TN_OK;
    if (!status && j.status)
        status = tn_json_fail(&j, 0, err);
    if (!status)
        status = tn_meta_parse_map((tn_text){ (const char *)cbor.data, cbor.size }, 0, arena, meta, n, err);
    tn_buf_free(&cbor);
    if (status)
        return status;
    tn_meta *items = tn_arena_copy(arena, *meta, *n * sizeof *items);
    if (!items)
        return tn_fail_nomem(err);
    for (size_t i = 0; i < *n && !status; i++)
        status = unwrap(&items[i], arena, err);
    *meta = items;
    return status;
}

/* --- writing --- */

static bool looks_like_cbor(const tn_buf *b, size_t from)
{
    static const char mark[] = "{\"" WRAPPER "\":";
    return b->size - from >= sizeof mark - 1 && memcmp(b->data + from, mark, sizeof mark - 1) == 0;
}

static void put_hex(tn_buf *out, const tn_meta *m)
{
    tn_buf_puts(out, "{\"" WRAPPER "\":\"");
    for (size_t i = 0; i < m->cbor_size; i++)
        tn_buf_printf(out, "%02x", m->cbor[i]);
    tn_buf_puts(out, "\"}");
}

/* What cannot be JSON, or would be taken for that, is written as its CBOR. */
static void put_value(tn_buf *out, const tn_meta *m)
{
    size_t begin = out->size;
    if (m->text) {
        tn_json_put_z(out, m->text);
    } else if (!tn_cbor_to_json(m->cbor, m->cbor_size, out)) {
        put_hex(out, m);
    } else if (!out->bad && looks_like_cbor(out, begin)) {
        out->size = begin;
        put_hex(out, m);
    }
}

void tn_meta_put_json(tn_buf *out, const tn_meta *meta, size_t n)
{
    tn_buf_putc(out, '{');
    for (size_t i = 0; i < n; i++) {
        tn_json_put_key(out, meta[i].key);
        put_value(out, &meta[i]);
    }
    tn_buf_putc(out, '}');
}

size_t tn_meta_json(const tn_meta *meta, char *dst, size_t cap)
{
    tn_buf out = { 0 };
    if (!meta)
        out.size = 0;           /* of nothing there is nothing to say */
    else if (meta->text)
        tn_json_put_z(&out, meta->text);
    else if (!tn_cbor_to_json(meta->cbor, meta->cbor_size, &out))
        put_hex(&out, meta);
    size_t n = out.bad ? 0 : out.size;
    if (cap) {
        size_t fit = n < cap ? n : cap - 1;
        if (fit)
            memcpy(dst, out.data, fit);
        dst[fit] = '\0';
    }
    tn_buf_free(&out);
    return n;
}
