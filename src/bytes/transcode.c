/* bytes/transcode.c - JSON to CBOR and back.
 *
 * Both directions recurse once per nested object or array, which the readers
 * limit (TN_JSON_MAX_DEPTH, TN_CBOR_MAX_DEPTH). */
#include "bytes/transcode.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* --- JSON to CBOR --- */

typedef struct encoder {
    tn_json *j;
    tn_buf  *out;
    tn_json_keys keys;
} encoder;

static void encode_value(encoder *e);

/* Inserts the head of a container before its items, which begin at `at`. */
static void insert_head(tn_buf *out, size_t at, uint64_t count, void (*put_head)(tn_buf *, uint64_t))
{
    size_t end = out->size;
    put_head(out, count);
    if (out->bad)
        return;
    uint8_t head[9];
    size_t n = out->size - end;
    memcpy(head, out->data + end, n);
    memmove(out->data + at + n, out->data + at, end - at);
    memcpy(out->data + at, head, n);
}

static void encode_array(encoder *e)
{
    size_t at = e->out->size;
    uint64_t count = 0;
    tn_json_array(e->j);
    for (; tn_json_item(e->j); count++)
        encode_value(e);
    insert_head(e->out, at, count, tn_cbor_put_array);
}

static void encode_object(encoder *e)
{
    size_t at = e->out->size, first = e->keys.count;
    uint64_t count = 0;
    tn_text text;
    tn_json_object(e->j);
    for (; tn_json_key(e->j, &text) && tn_json_push_key(e->j, &e->keys, text); count++) {
        tn_cbor_put_text(e->out, text.ptr, text.len);
        encode_value(e);
    }
    tn_json_pop_keys(e->j, &e->keys, first);
    insert_head(e->out, at, count, tn_cbor_put_map);
}

/* Whether the digits of an integer (no sign, no leading zero) are at most `limit`. */
static bool at_most(tn_text digits, const char *limit)
{
    size_t n = strlen(limit);
    return digits.len < n || (digits.len == n && memcmp(digits.ptr, limit, n) <= 0);
}

static void encode_number(encoder *e)
{
    tn_json *j = e->j;
    size_t begin = j->pos;
    tn_text number = tn_json_number(j);
    if (j->status)
        return;
    j->pos = begin;             /* its text decides how it is read */
    bool integer = !memchr(number.ptr, '.', number.len) && !memchr(number.ptr, 'e', number.len) &&
                   !memchr(number.ptr, 'E', number.len);
    bool negative = number.ptr[0] == '-';
    tn_text digits = { number.ptr + negative, number.len - negative };
    if (integer && !negative && at_most(digits, "18446744073709551615"))
        tn_cbor_put_u64(e->out, tn_json_u64(j));
    else if (integer && negative && digits.ptr[0] != '0' && at_most(digits, "9223372036854775808"))
        tn_cbor_put_i64(e->out, tn_json_i64(j));
    else
        tn_cbor_put_f64(e->out, tn_json_f64(j));
}

static void encode_value(encoder *e)
{
    tn_text text;
    switch (tn_json_peek(e->j)) {
    case TN_JSON_OBJECT: encode_object(e); break;
    case TN_JSON_ARRAY:  encode_array(e); break;
    case TN_JSON_NUMBER: encode_number(e); break;
    case TN_JSON_STRING:
        text = tn_json_string(e->j);
        tn_cbor_put_text(e->out, text.ptr, text.len);
        break;
    case TN_JSON_TRUE:
    case TN_JSON_FALSE:
        tn_cbor_put_bool(e->out, tn_json_bool(e->j));
        break;
    case TN_JSON_NULL:
        tn_json_null(e->j);
        tn_cbor_put_null(e->out);
        break;
    default:
        tn_json_skip(e->j);     /* not a value: fails */
        break;
    }
}

void tn_json_to_cbor(tn_json *j, tn_buf *out)
{
    encoder e = { .j = j, .out = out };
    size_t before = out->size;
    encode_value(&e);
    free(e.keys.items);
    if (out->bad)
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    if (j->status)
        out->size = before;
}

/* --- CBOR to JSON --- */

static bool decode_item(tn_cbor *c, tn_buf *out);

/* The items of an array or the entries of a map. */
static bool decode_items(tn_cbor *c, tn_buf *out, bool map)
{
    tn_text text;
    (map ? tn_cbor_map : tn_cbor_array)(c);
    tn_buf_putc(out, map ? '{' : '[');
    for (bool first = true; map ? tn_cbor_key(c, &text) : tn_cbor_item(c); first = false) {
        if (!first)
            tn_buf_putc(out, ',');
        if (map) {
            tn_json_put_string(out, text.ptr, text.len);
            tn_buf_putc(out, ':');
        }
        if (!decode_item(c, out))
            return false;
    }
    tn_buf_putc(out, map ? '}' : ']');
    return true;
}

static bool decode_float(tn_cbor *c, tn_buf *out)
{
    double value = tn_cbor_f64(c);
    if (!isfinite(value))
        return false;
    tn_json_put_f64(out, value);
    return true;
}

/* False if JSON has no such value.  The caller checks for failures of `c`, and that the JSON reads back as
 * the same CBOR. */
static bool decode_item(tn_cbor *c, tn_buf *out)
{
    tn_text text;
    switch (tn_cbor_peek(c)) {
    case TN_CBOR_UINT:     tn_buf_printf(out, "%" PRIu64, tn_cbor_u64(c)); return true;
    case TN_CBOR_NEGATIVE: tn_buf_printf(out, "%" PRId64, tn_cbor_i64(c)); return true;
    case TN_CBOR_TEXT:
        text = tn_cbor_text(c);
        tn_json_put_string(out, text.ptr, text.len);
        return true;
    case TN_CBOR_ARRAY:    return decode_items(c, out, false);
    case TN_CBOR_MAP:      return decode_items(c, out, true);
    case TN_CBOR_FLOAT:    return decode_float(c, out);
    case TN_CBOR_FALSE:
    case TN_CBOR_TRUE:     tn_buf_puts(out, tn_cbor_bool(c) ? "true" : "false"); return true;
    case TN_CBOR_NULL:     tn_cbor_null(c); tn_buf_puts(out, "null"); return true;
    default:               return false;
    }
}

/* Whether the JSON reads back as the same bytes.  Sets out->bad if memory ran out. */
static bool comes_back(tn_buf *out, size_t begin, const void *item, size_t n, tn_arena *arena)
{
    tn_json j;
    tn_buf again = { 0 };
    tn_json_init(&j, (const char *)out->data + begin, out->size - begin, arena);
    tn_json_to_cbor(&j, &again);
    bool same = !j.status && again.size == n && memcmp(again.data, item, n) == 0;
    out->bad = j.status == TN_ERR_NOMEM;
    tn_buf_free(&again);
    return same;
}

bool tn_cbor_to_json(const void *item, size_t n, tn_buf *out)
{
    tn_arena arena = { 0 };
    tn_cbor c;
    size_t before = out->size;
    tn_cbor_init(&c, item, n, &arena);
    bool exact =
        decode_item(&c, out) && tn_cbor_done(&c) && !out->bad && comes_back(out, before, item, n, &arena);
    if (c.status == TN_ERR_NOMEM)
        out->bad = true;
    if (!exact)
        out->size = before;
    tn_arena_free(&arena);
    return exact;
}
