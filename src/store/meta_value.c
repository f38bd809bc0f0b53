/* store/meta_value.c - metadata values that have a type. */
#include "store/meta_value.h"
#include "bytes/transcode.h"

#include <math.h>
#include <stdio.h>

#define PREFIX "gguf:"

enum { TAG_NAMED = 27, TAG_ARRAYS = 64, TAG_ARRAYS_END = 88 };
/* of the tag of an array */
enum { IS_FLOAT = 0x10, IS_SIGNED = 0x08, IS_LITTLE = 0x04, WIDTH = 0x03 };

static const tn_meta_type_info table[TN_META_TYPES] = {
    [TN_META_U8] = { "u8", 1, 64 },     [TN_META_I8] = { "i8", 1, 72 },
    [TN_META_U16] = { "u16", 2, 69 },   [TN_META_I16] = { "i16", 2, 77 },
    [TN_META_U32] = { "u32", 4, 70 },   [TN_META_I32] = { "i32", 4, 78 },
    [TN_META_F32] = { "f32", 4, 85 },   [TN_META_BOOL] = { "bool", 1, 0 },
    [TN_META_STRING] = { "str", 0, 0 }, [TN_META_ARRAY] = { "arr", 0, 0 },
    [TN_META_U64] = { "u64", 8, 71 },   [TN_META_I64] = { "i64", 8, 79 },
    [TN_META_F64] = { "f64", 8, 86 },
};

const tn_meta_type_info *tn_meta_type_get(uint32_t type)
{
    return type < TN_META_TYPES ? &table[type] : NULL;
}

tn_meta_type tn_meta_type_named(tn_text name)
{
    unsigned type = 0;
    while (type < TN_META_TYPES && !tn_text_is(name, table[type].name))
        type++;
    return (tn_meta_type)type;
}

bool tn_meta_is_signed(tn_meta_type type)
{
    return type == TN_META_I8 || type == TN_META_I16 || type == TN_META_I32 || type == TN_META_I64;
}

static bool is_unsigned(tn_meta_type type)
{
    return type == TN_META_U8 || type == TN_META_U16 || type == TN_META_U32 || type == TN_META_U64;
}

bool tn_meta_is_integer(tn_meta_type type) { return tn_meta_is_signed(type) || is_unsigned(type); }

/* ---- integers ---- */

/* An integer of any type; below 0: `bits` are those of an int64_t. */
typedef struct integer {
    uint64_t bits;
    bool     negative;
} integer;

static bool holds(tn_meta_type type, integer n)
{
    unsigned bits = 8u * table[type].bytes;
    if (n.negative)
        return tn_meta_is_signed(type) && (int64_t)n.bits >= -(INT64_C(1) << (bits - 2)) * 2;
    return n.bits <= UINT64_MAX >> (64 - bits + tn_meta_is_signed(type));
}

/* The type of an integer that does not say it. */
static tn_meta_type usual_type(integer n)
{
    static const tn_meta_type order[] = { TN_META_U32, TN_META_I32, TN_META_U64, TN_META_I64 };
    size_t i = 0;
    while (!holds(order[i], n))
        i++;
    return order[i];
}

static integer integer_of(const tn_meta_value *v)
{
    return (integer){ v->bits, tn_meta_is_signed(v->type) && (int64_t)v->bits < 0 };
}

/* ---- writing ---- */

static void put_name(tn_buf *out, tn_meta_type type)
{
    char name[16];
    snprintf(name, sizeof name, PREFIX "%s", table[type].name);
    tn_cbor_put_tag(out, TAG_NAMED);
    tn_cbor_put_array(out, 2);
    tn_cbor_put_z(out, name);
}

void tn_meta_put_number(tn_buf *out, tn_meta_type type, uint64_t bits)
{
    integer n = { bits, tn_meta_is_signed(type) && (int64_t)bits < 0 };
    if (type == TN_META_BOOL) {
        tn_cbor_put_bool(out, bits != 0);
        return;
    }
    if (tn_meta_is_float(type)) {
        tn_cbor_put_float(out, table[type].bytes, bits);
        return;
    }
    if (usual_type(n) != type)
        put_name(out, type);
    if (n.negative)
        tn_cbor_put_i64(out, (int64_t)bits);
    else
        tn_cbor_put_u64(out, bits);
}

void tn_meta_put_array(tn_buf *out, tn_meta_type items, uint64_t count)
{
    if (table[items].tag) {
        tn_cbor_put_tag(out, table[items].tag);
        tn_cbor_put_bytes_head(out, count * table[items].bytes);
        return;
    }
    if (!count && items != TN_META_STRING)
        put_name(out, items);
    tn_cbor_put_array(out, count);
}

/* ---- reading ---- */

static bool take_integer(tn_cbor *c, integer *n)
{
    tn_cbor_type type = tn_cbor_peek(c);
    n->negative = type == TN_CBOR_NEGATIVE;
    if (type != TN_CBOR_UINT && !n->negative)
        return false;
    n->bits = n->negative ? (uint64_t)tn_cbor_i64(c) : tn_cbor_u64(c);
    return !c->status;
}

/* ["gguf:TYPE", VALUE]; false: it is something else. */
static bool take_named(tn_cbor *c, tn_meta_value *v)
{
    integer n;
    if (tn_cbor_peek(c) != TN_CBOR_ARRAY || !tn_cbor_array(c) || !tn_cbor_item(c) ||
        tn_cbor_peek(c) != TN_CBOR_TEXT)
        return false;
    tn_text name = tn_cbor_text(c);
    size_t prefix = strlen(PREFIX);
    if (name.len < prefix || memcmp(name.ptr, PREFIX, prefix) != 0 || !tn_cbor_item(c))
        return false;
    tn_meta_type type = tn_meta_type_named((tn_text){ name.ptr + prefix, name.len - prefix });
    if (tn_meta_is_integer(type)) {
        if (!take_integer(c, &n) || !holds(type, n))
            return false;
        *v = (tn_meta_value){ .type = type, .bits = n.bits };
    } else if (type == TN_META_BOOL || type == TN_META_ARRAY) {
        if (tn_cbor_peek(c) != TN_CBOR_ARRAY || !tn_cbor_array(c) || tn_cbor_item(c))
            return false;
        *v = (tn_meta_value){ .type = TN_META_ARRAY, .items = type };
    } else {
        return false;
    }
    return !tn_cbor_item(c) && !c->status;
}

static tn_meta_type array_type(uint64_t tag)
{
    uint64_t kind = tag - TAG_ARRAYS;
    for (unsigned type = 0; type < TN_META_TYPES; type++) {
        uint64_t own = table[type].tag - (uint64_t)TAG_ARRAYS;
        bool one_byte = table[type].bytes == 1;
        if (table[type].tag && (kind == own || (!one_byte && (kind | IS_LITTLE) == own)))
            return (tn_meta_type)type;
    }
    return TN_META_NONE;
}

static bool take_numbers(tn_cbor *c, uint64_t tag, tn_meta_value *v)
{
    tn_meta_type items = array_type(tag);
    if (items == TN_META_NONE || tn_cbor_peek(c) != TN_CBOR_BYTES)
        return false;
    tn_text bytes = tn_cbor_bytes(c);
    unsigned width = table[items].bytes;
    *v = (tn_meta_value){ .type = TN_META_ARRAY, .text = bytes, .items = items, .count = bytes.len / width,
                          .big = width > 1 && !((tag - TAG_ARRAYS) & IS_LITTLE) };
    return !c->status && bytes.len % width == 0;
}

static void take_tagged(tn_cbor *c, uint64_t tag, tn_meta_value *v)
{
    const tn_cbor before = *c;
    bool known = false;
    if (tag == TAG_NAMED)
        known = take_named(c, v);
    else if (tag >= TAG_ARRAYS && tag < TAG_ARRAYS_END)
        known = take_numbers(c, tag, v);
    if (known)
        return;
    *c = before;
    *v = (tn_meta_value){ .type = TN_META_NONE };
    tn_cbor_skip(c);
}

static void take_float(tn_cbor *c, tn_meta_value *v)
{
    tn_cbor again = *c;
    unsigned width = tn_cbor_float(c, &v->bits);
    v->type = width == 8 ? TN_META_F64 : TN_META_F32;
    if (width == 2) {
        float value = (float)tn_cbor_f64(&again);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        v->bits = bits;
    }
}

void tn_meta_take_value(tn_cbor *c, tn_meta_value *v)
{
    uint64_t tag;
    integer n;
    *v = (tn_meta_value){ .type = TN_META_NONE, .items = TN_META_NONE };
    if (tn_cbor_tag(c, &tag)) {
        take_tagged(c, tag, v);
        return;
    }
    switch (tn_cbor_peek(c)) {
    case TN_CBOR_UINT:
    case TN_CBOR_NEGATIVE:
        if (take_integer(c, &n))
            *v = (tn_meta_value){ .type = usual_type(n), .bits = n.bits };
        return;
    case TN_CBOR_TEXT:
    case TN_CBOR_BYTES:
        v->type = TN_META_STRING;
        v->text = tn_cbor_peek(c) == TN_CBOR_TEXT ? tn_cbor_text(c) : tn_cbor_bytes(c);
        return;
    case TN_CBOR_FLOAT:
        take_float(c, v);
        return;
    case TN_CBOR_FALSE:
    case TN_CBOR_TRUE:
        v->type = TN_META_BOOL;
        v->bits = tn_cbor_bool(c);
        return;
    case TN_CBOR_ARRAY:
        v->type = TN_META_ARRAY;
        tn_cbor_array(c);
        return;
    default:
        tn_cbor_skip(c);
    }
}

/* What the items of an array have been so far. */
typedef struct seen {
    tn_meta_type type;          /* of all; NONE: they differ */
    bool         numbers, integers, wide;       /* all are; one is an f64 or an integer beyond 2^24 */
    integer      least, most;
} seen;

static void see(seen *s, const tn_meta_value *v, bool first)
{
    bool is_integer = tn_meta_is_integer(v->type);
    if (first)
        *s = (seen){ .type = v->type, .numbers = true, .integers = true };
    s->type = s->type == v->type ? s->type : TN_META_NONE;
    s->integers &= is_integer;
    s->numbers &= is_integer || tn_meta_is_float(v->type);
    s->wide |= v->type == TN_META_F64;
    if (!is_integer)
        return;
    integer n = integer_of(v);
    uint64_t magnitude = n.negative ? -n.bits : n.bits;
    s->wide |= magnitude > UINT64_C(1) << 24;
    if (n.negative && (int64_t)n.bits < (int64_t)s->least.bits)
        s->least = n;
    if (!n.negative && n.bits > s->most.bits)
        s->most = n;
}

/* Integers of several types have the first that holds all of them; with floats among them all are floats. */
static tn_meta_type common_type(const seen *s)
{
    static const tn_meta_type order[] = { TN_META_U32, TN_META_I32, TN_META_U64, TN_META_I64 };
    if (s->type != TN_META_NONE || !s->numbers)
        return s->type;
    if (!s->integers)
        return s->wide ? TN_META_F64 : TN_META_F32;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (holds(order[i], s->least) && holds(order[i], s->most))
            return order[i];
    return TN_META_NONE;
}

tn_meta_type tn_meta_items(const tn_cbor *array, uint64_t *count)
{
    tn_cbor c = *array;
    seen s = { .type = TN_META_STRING };
    for (*count = 0; tn_cbor_item(&c); ++*count) {
        tn_meta_value v;
        tn_meta_take_value(&c, &v);
        while (v.type == TN_META_ARRAY && v.items == TN_META_NONE && tn_cbor_item(&c))
            tn_cbor_skip(&c);
        see(&s, &v, *count == 0);
    }
    return c.status ? TN_META_NONE : common_type(&s);
}

/* ---- other types ---- */

static double number_of(const tn_meta_value *v)
{
    uint32_t word = (uint32_t)v->bits;
    float single;
    double value;
    memcpy(&single, &word, sizeof single);
    memcpy(&value, &v->bits, sizeof value);
    if (v->type == TN_META_F32)
        return single;
    if (v->type == TN_META_F64)
        return value;
    return tn_meta_is_signed(v->type) ? (double)(int64_t)v->bits : (double)v->bits;
}

static bool convert_float(const tn_meta_value *v, tn_meta_type to, uint64_t *bits)
{
    double value = number_of(v);
    float single = (float)value;
    uint32_t word;
    memcpy(&word, &single, sizeof word);
    memcpy(bits, &value, sizeof value);
    if (to == TN_META_F32)
        *bits = word;
    return to == TN_META_F64 || isinf(value) || !isinf(single);
}

bool tn_meta_convert(const tn_meta_value *v, tn_meta_type to, uint64_t *bits)
{
    *bits = v->bits;
    if (v->type == to)
        return true;
    if (tn_meta_is_integer(v->type) && tn_meta_is_integer(to))
        return holds(to, integer_of(v));
    bool is_number = tn_meta_is_integer(v->type) || tn_meta_is_float(v->type);
    return is_number && tn_meta_is_float(to) && convert_float(v, to, bits);
}

tn_meta_type tn_meta_type_of(const tn_meta *meta, tn_meta_type *items)
{
    tn_arena arena = { 0 };
    tn_cbor c;
    tn_meta_value v;
    uint64_t count;
    *items = TN_META_NONE;
    if (meta->text)
        return TN_META_STRING;
    tn_cbor_init(&c, meta->cbor, meta->cbor_size, &arena);
    tn_meta_take_value(&c, &v);
    if (v.type == TN_META_ARRAY)
        *items = v.items != TN_META_NONE ? v.items : tn_meta_items(&c, &count);
    tn_meta_type type = c.status ? TN_META_NONE : v.type;
    tn_arena_free(&arena);
    return type;
}

/* ---- from text ---- */

static tn_status not_of(const char *key, const char *text, tn_meta_type type, const char *why, tn_error *err)
{
    return tn_fail(err, TN_ERR_ARGUMENT, "metadata %s: expected a value of type %s but found %s%s%s",
                   tn_quote_z(key).text, type == TN_META_NONE ? "json" : table[type].name,
                   tn_quote_z(text).text, why ? ": " : "", why ? why : "");
}

/* Appends a number as its little-endian bytes. */
static void put_bytes(tn_buf *out, tn_meta_type type, uint64_t bits)
{
    tn_buf_put_le(out, bits, table[type].bytes);
}

/* The next item as one of this type; false: it is not. */
static bool put_item(tn_cbor *c, tn_meta_type type, bool in_array, tn_buf *out)
{
    tn_meta_value v;
    uint64_t bits;
    tn_meta_take_value(c, &v);
    if (type == TN_META_STRING && v.type == TN_META_STRING) {
        tn_cbor_put_text(out, v.text.ptr, v.text.len);
        return true;
    }
    if (!table[type].bytes || !tn_meta_convert(&v, type, &bits))
        return false;
    if (in_array && table[type].tag)
        put_bytes(out, type, bits);
    else
        tn_meta_put_number(out, type, bits);
    return true;
}

/* JSON that was read as CBOR as a value of this type, or an array of such. */
static bool put_typed(const tn_buf *json, tn_meta_type type, tn_arena *arena, tn_buf *out)
{
    tn_cbor c;
    uint64_t count;
    bool good = true;
    tn_cbor_init(&c, json->data, json->size, arena);
    if (tn_cbor_peek(&c) != TN_CBOR_ARRAY)
        return put_item(&c, type, false, out) && tn_cbor_done(&c);
    tn_cbor_array(&c);
    tn_meta_items(&c, &count);
    tn_meta_put_array(out, type, count);
    while (good && tn_cbor_item(&c))
        good = put_item(&c, type, true, out);
    return good && tn_cbor_done(&c);
}

static tn_status keep(const tn_buf *cbor, tn_arena *arena, tn_meta *out, tn_error *err)
{
    tn_cbor c;
    tn_cbor_init(&c, cbor->data, cbor->size, arena);
    bool is_text = tn_cbor_peek(&c) == TN_CBOR_TEXT;
    if (is_text) {
        tn_text text = tn_cbor_text(&c);
        out->text = tn_text_has_nul(text) ? NULL : tn_arena_text(arena, text.ptr, text.len);
    }
    if (!out->text) {
        out->cbor = tn_arena_copy(arena, cbor->data, cbor->size);
        out->cbor_size = cbor->size;
    }
    return out->text || out->cbor ? TN_OK : tn_fail_nomem(err);
}

tn_status tn_meta_from_text(const char *text, tn_meta_type type, tn_arena *arena, tn_meta *out,
                            tn_error *err)
{
    tn_buf json = { 0 }, cbor = { 0 };
    tn_json j;
    tn_json_init(&j, text, strlen(text), arena);
    tn_json_to_cbor(&j, &json);
    tn_json_done(&j);
    bool typed = !j.status && (type == TN_META_NONE || put_typed(&json, type, arena, &cbor));
    tn_status status = TN_OK;
    if (json.bad || cbor.bad || j.status == TN_ERR_NOMEM)
        status = tn_fail_nomem(err);
    else if (!typed)
        status = not_of(out->key, text, type, j.status ? j.why : NULL, err);
    else
        status = keep(type == TN_META_NONE ? &json : &cbor, arena, out, err);
    tn_buf_free(&json);
    tn_buf_free(&cbor);
    return status;
}
