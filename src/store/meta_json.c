/* store/meta_json.c - metadata as a JSON object.
 *
 * A value that JSON cannot hold exactly stands there as {"$cbor":"HEX"}, its
 * CBOR in hexadecimal, and so does one that would be taken for that. */
#include "base/error.h"
#include "bytes/transcode.h"
#include "store/meta_value.h"
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
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

static void put_hex(tn_buf *out, const uint8_t *cbor, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    tn_buf_puts(out, "{\"" WRAPPER "\":\"");
    for (size_t i = 0; i < n; i++) {
        tn_buf_putc(out, digits[cbor[i] >> 4]);
        tn_buf_putc(out, digits[cbor[i] & 15]);
    }
    tn_buf_puts(out, "\"}");
}

/* What cannot be JSON, or would be taken for that, is written as its CBOR. */
static void put_value(tn_buf *out, const tn_meta *m)
{
    size_t begin = out->size;
    if (m->text) {
        tn_json_put_z(out, m->text);
    } else if (!tn_cbor_to_json(m->cbor, m->cbor_size, out)) {
        put_hex(out, m->cbor, m->cbor_size);
    } else if (!out->bad && looks_like_cbor(out, begin)) {
        out->size = begin;
        put_hex(out, m->cbor, m->cbor_size);
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

/* ---- showing ---- */

/* A number of this type; false: JSON has no such number. */
static bool show_number(tn_meta_type type, uint64_t bits, tn_buf *out)
{
    if (tn_meta_is_signed(type)) {
        tn_buf_put_int(out, (int64_t)bits);
        return true;
    }
    if (!tn_meta_is_float(type)) {
        tn_buf_printf(out, "%" PRIu64, bits);
        return true;
    }
    const uint32_t word = (uint32_t)bits;
    double value = tn_value_get(TN_FLOAT64, &bits, 0).re;
    if (type == TN_META_F32)
        value = tn_value_get(TN_FLOAT32, &word, 0).re;
    if (isfinite(value))
        tn_json_put_f64(out, value);
    return isfinite(value);
}

/* The next number of an array: integers get their sign. */
static uint64_t load_number(const tn_meta_value *v, uint64_t i)
{
    unsigned width = tn_meta_type_get(v->items)->bytes;
    const uint8_t *p = (const uint8_t *)v->text.ptr + i * width;
    uint64_t bits = 0;
    for (unsigned k = 0; k < width; k++)
        bits = bits << 8 | p[v->big ? k : width - 1 - k];
    if (tn_meta_is_signed(v->items) && width < 8 && bits >> (8 * width - 1))
        bits |= UINT64_MAX << 8 * width;
    return bits;
}

static bool show_numbers(const tn_meta_value *v, tn_buf *out)
{
    tn_buf_putc(out, '[');
    for (uint64_t i = 0; i < v->count; i++) {
        if (i)
            tn_buf_putc(out, ',');
        if (!show_number(v->items, load_number(v, i), out))
            return false;
    }
    tn_buf_putc(out, ']');
    return true;
}

static void show_item(tn_cbor *c, tn_buf *out);

static void show_items(tn_cbor *c, bool map, tn_buf *out)
{
    tn_text key;
    tn_buf_putc(out, map ? '{' : '[');
    for (bool first = true; map ? tn_cbor_key(c, &key) : tn_cbor_item(c); first = false) {
        if (!first)
            tn_buf_putc(out, ',');
        if (map) {
            tn_json_put_string(out, key.ptr, key.len);
            tn_buf_putc(out, ':');
        }
        show_item(c, out);
    }
    tn_buf_putc(out, map ? '}' : ']');
}

/* A value whose type JSON does not know, as JSON; false: there is nothing like it. */
static bool show_value(tn_text item, tn_arena *arena, tn_buf *out)
{
    tn_cbor c;
    tn_meta_value v;
    bool tagged = (uint8_t)item.ptr[0] >> 5 == 6;
    tn_cbor_init(&c, item.ptr, item.len, arena);
    if (!tagged && tn_cbor_peek(&c) == TN_CBOR_MAP) {
        tn_cbor_map(&c);
        show_items(&c, true, out);
        return tn_cbor_done(&c);
    }
    tn_meta_take_value(&c, &v);
    if (tn_meta_is_float(v.type) || (tagged && tn_meta_is_integer(v.type)))
        return show_number(v.type, v.bits, out);
    if (v.type != TN_META_ARRAY)
        return false;
    if (v.items != TN_META_NONE)
        return show_numbers(&v, out);
    show_items(&c, false, out);
    return tn_cbor_done(&c);
}

/* Recurses once per nested array or map, which the reader limits. */
static void show_item(tn_cbor *c, tn_buf *out)
{
    size_t before = out->size;
    tn_text item = tn_cbor_raw(c);
    if (c->status || out->bad || tn_cbor_to_json(item.ptr, item.len, out) ||
        show_value(item, c->arena, out))
        return;
    out->size = before;
    put_hex(out, (const uint8_t *)item.ptr, item.len);
}

size_t tn_meta_json(const tn_meta *meta, char *dst, size_t cap)
{
    tn_buf out = { 0 };
    tn_arena arena = { 0 };
    tn_cbor c;
    if (meta && meta->text) {
        tn_json_put_z(&out, meta->text);
    } else if (meta) {          /* of nothing there is nothing to say */
        tn_cbor_init(&c, meta->cbor, meta->cbor_size, &arena);
        show_item(&c, &out);
    }
    tn_arena_free(&arena);
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
