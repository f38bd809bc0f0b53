/* formats/gguf/put.c - metadata as the bytes of a header. */
#include "formats/gguf/gguf.h"
#include "base/error.h"
#include "tensor/array.h"

void tn_gguf_put_uint(const tn_gguf_out *o, uint64_t value, unsigned bytes)
{
    if (o->style.big) {
        for (unsigned i = bytes; i-- > 0;)
            tn_buf_putc(o->b, (char)(value >> 8 * i));
        return;
    }
    tn_buf_put_le(o->b, value, bytes);
}

void tn_gguf_put_wide(const tn_gguf_out *o, uint64_t value)
{
    tn_gguf_put_uint(o, value, o->style.wide);
}

void tn_gguf_put_string(const tn_gguf_out *o, tn_text text)
{
    tn_gguf_put_wide(o, text.len);
    tn_buf_put(o->b, text.ptr, text.len);
}

/* ---- values ---- */

static bool has_type(const tn_gguf_out *o, tn_meta_type type)
{
    return type != TN_META_NONE && (o->style.version > 1 || type <= TN_META_ARRAY);
}

/* An array of numbers, or an empty one. */
static void put_numbers(const tn_gguf_out *o, const tn_meta_value *v)
{
    unsigned bytes = tn_meta_type_get(v->items)->bytes;
    size_t begin = o->b->size;
    tn_buf_put(o->b, v->text.ptr, v->text.len);
    if (v->big != o->style.big && bytes > 1 && !o->b->bad)
        tn_swap_bytes(o->b->data + begin, o->b->data + begin, v->text.len, bytes);
}

static bool put_array(const tn_gguf_out *o, tn_cbor *c, const tn_meta_value *v);

/* An item of an array whose items are of this type. */
static bool put_item(const tn_gguf_out *o, tn_cbor *c, tn_meta_type type)
{
    tn_meta_value v;
    uint64_t bits;
    tn_meta_take_value(c, &v);
    if (type == TN_META_ARRAY)
        return put_array(o, c, &v);
    if (type == TN_META_STRING) {
        tn_gguf_put_string(o, v.text);
        return true;
    }
    if (!tn_meta_convert(&v, type, &bits))
        return false;
    tn_gguf_put_uint(o, bits, tn_meta_type_get(type)->bytes);
    return true;
}

/* Type and count of the items, and the items.  Recurses once per nested array, which the reader limits. */
static bool put_array(const tn_gguf_out *o, tn_cbor *c, const tn_meta_value *v)
{
    uint64_t count = v->count;
    bool follow = v->items == TN_META_NONE, good = true;
    tn_meta_type items = follow ? tn_meta_items(c, &count) : v->items;
    if (!has_type(o, items))
        return false;
    tn_gguf_put_uint(o, items, 4);
    tn_gguf_put_wide(o, count);
    if (!follow)
        put_numbers(o, v);
    while (follow && good && tn_cbor_item(c))
        good = put_item(o, c, items);
    return good;
}

/* The type of a value and the value; false: GGUF has none like it. */
static bool put_value(const tn_gguf_out *o, tn_cbor *c)
{
    tn_meta_value v;
    tn_meta_take_value(c, &v);
    if (!has_type(o, v.type))
        return false;
    tn_gguf_put_uint(o, v.type, 4);
    if (v.type == TN_META_ARRAY)
        return put_array(o, c, &v);
    if (v.type == TN_META_STRING)
        tn_gguf_put_string(o, v.text);
    else
        tn_gguf_put_uint(o, v.bits, tn_meta_type_get(v.type)->bytes);
    return true;
}

static tn_status cannot_hold(const tn_gguf_out *o, const tn_meta *m, tn_error *err)
{
    if (!*m->key)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                         "GGUF cannot hold metadata with an empty key");
    return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                     "metadata %s: GGUF version %u holds numbers, bools, texts and arrays of one type only",
                     tn_quote_z(m->key).text, (unsigned)o->style.version);
}

tn_status tn_gguf_put_pair(const tn_gguf_out *o, const tn_meta *m, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_cbor c;
    size_t before = o->b->size;
    bool good = *m->key != '\0';
    tn_gguf_put_string(o, (tn_text){ m->key, strlen(m->key) });
    if (m->text) {
        tn_gguf_put_uint(o, TN_META_STRING, 4);
        tn_gguf_put_string(o, (tn_text){ m->text, strlen(m->text) });
    } else {
        tn_cbor_init(&c, m->cbor, m->cbor_size, &arena);
        good = put_value(o, &c) && tn_cbor_done(&c) && good;
    }
    tn_arena_free(&arena);
    if (o->b->bad)
        return tn_fail_nomem(err);
    if (good)
        return TN_OK;
    o->b->size = before;
    return cannot_hold(o, m, err);
}

void tn_gguf_put_number(const tn_gguf_out *o, const char *key, tn_meta_type type, uint64_t value)
{
    tn_gguf_put_string(o, (tn_text){ key, strlen(key) });
    tn_gguf_put_uint(o, type, 4);
    tn_gguf_put_uint(o, value, tn_meta_type_get(type)->bytes);
}

void tn_gguf_put_start(const tn_gguf_out *o, uint64_t tensors, uint64_t pairs)
{
    tn_buf_put(o->b, TN_GGUF_MAGIC, TN_GGUF_MAGIC_BYTES);
    tn_gguf_put_uint(o, o->style.version, 4);
    tn_gguf_put_wide(o, tensors);
    tn_gguf_put_wide(o, pairs);
}
