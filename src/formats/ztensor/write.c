/* formats/ztensor/write.c - the index of a zTensor 0.1 file, new or edited. */
#include "base/error.h"
#include "bytes/checksum.h"
#include "store/record.h"
#include "tensor/form.h"
#include "formats/ztensor/ztensor.h"

#include <string.h>

/* A custom field must not have the name of a field of the format. */
static tn_status check_keys(const tn_meta *meta, size_t n, tn_status if_not, tn_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (zt_field_of((tn_text){ meta[i].key, strlen(meta[i].key) }) != ZT_CUSTOM)
            return tn_fail(err, if_not, "metadata key %s is a field of zTensor",
                           tn_quote_z(meta[i].key).text);
    return TN_OK;
}

/* Only raw elements of several bytes have a byte order. */
static bool has_order(const tn_out_entry *e)
{
    return e->encoding == TN_ENCODING_RAW && tn_dtype_get(e->dtype)->bits > 8;
}

tn_status zt_plan(tn_writer *w, tn_error *err)
{
    bool big = tn_writer_choice(w, "byte-order") != 0;
    for (size_t i = 0; i < w->count; i++) {
        tn_out_entry *e = &w->entries[i];
        e->swap = big && has_order(e) ? tn_dtype_get(e->dtype)->swap_bytes : 0;
        if (!w->options.drop_metadata && check_keys(e->more->meta, e->more->nmeta, TN_ERR_LOSS, err))
            return tn_in_tensor(err->status, e->name, err);
    }
    uint32_t file;
    if (tn_writer_check_file_meta(w, "zTensor 0.1", err) || tn_writer_add_file(w, w->path, &file, err))
        return err->status;
    w->files[file].end = ZT_MAGIC_BYTES;
    return TN_OK;
}

static void put_text(tn_buf *b, const char *key, const char *text)
{
    tn_cbor_put_z(b, key);
    tn_cbor_put_z(b, text);
}

static void put_custom(tn_buf *b, const tn_meta *meta, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (zt_field_of((tn_text){ meta[i].key, strlen(meta[i].key) }) != ZT_CUSTOM)
            continue;           /* may be dropped: zt_plan() checked */
        tn_cbor_put_z(b, meta[i].key);
        if (meta[i].text)
            tn_cbor_put_z(b, meta[i].text);
        else
            tn_buf_put(b, meta[i].cbor, meta[i].cbor_size);
    }
}

/* The fields of an entry after its size, in an index. */
typedef struct fields {
    const tn_out_entry *entry;
    size_t              at, size;
} fields;

/* Whether they are those of another entry, too. */
static bool has_fields(const tn_out_entry *e, const fields *of)
{
    const tn_out_entry *a = of->entry;
    return a && a->more == e->more && a->shape == e->shape && a->rank == e->rank && a->dtype == e->dtype &&
           a->encoding == e->encoding && a->swap == e->swap && !a->checksum && !e->checksum;
}

static tn_status put_fields(tn_writer *w, tn_buf *b, const tn_out_entry *e, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(e->dtype);
    put_text(b, "dtype", type->ztensor);
    put_text(b, "layout", "dense");
    tn_cbor_put_z(b, "shape");
    tn_cbor_put_array(b, e->rank);
    for (uint32_t i = 0; i < e->rank; i++)
        tn_cbor_put_u64(b, (uint64_t)e->shape[i]);
    put_text(b, "encoding", tn_codec_of(e->encoding)->name);
    if (has_order(e))
        put_text(b, "data_endianness", e->swap ? "big" : "little");
    if (e->checksum != TN_CHECKSUM_NONE) {
        char text[TN_CHECKSUM_TEXT_MAX];
        tn_digest_format(e->digest, text);
        put_text(b, "checksum", text);
    }
    put_custom(b, e->more->meta, e->more->nmeta);
    if (e == w->entries && w->nmeta)            /* the first entry has the file's metadata */
        return tn_record_put_edited(e->more->record, "tenon", w->meta, w->nmeta, &w->arena, b, err);
    if (e->more->record.len) {
        tn_cbor_put_z(b, "tenon");
        tn_buf_put(b, e->more->record.ptr, e->more->record.len);
    }
    return TN_OK;
}

/* `last` has the fields of an entry before it. */
static tn_status put_entry(tn_writer *w, tn_buf *b, const tn_out_entry *e, fields *last, tn_error *err)
{
    tn_status status = TN_OK;
    tn_cbor_open_map(b);
    put_text(b, "name", e->name);
    tn_cbor_put_z(b, "offset");
    tn_cbor_put_u64(b, e->offset);
    tn_cbor_put_z(b, "size");
    tn_cbor_put_u64(b, e->size);
    if (has_fields(e, last) && tn_buf_room(b, last->size)) {
        tn_buf_put(b, b->data + last->at, last->size);
    } else {
        *last = (fields){ w->nmeta && e == w->entries ? NULL : e, b->size, 0 };
        status = put_fields(w, b, e, err);
        last->size = b->size - last->at;
    }
    tn_cbor_close(b);
    return status;
}

/* Ends an index with its size. */
static tn_status put_tail(tn_buf *b, tn_error *err)
{
    tn_buf_put_le(b, b->size, ZT_TAIL_BYTES);
    return b->bad ? tn_fail_nomem(err) : tn_index_check_size(b->size, TN_NO_OFFSET, err);
}

tn_status zt_finish(tn_writer *w, tn_error *err)
{
    tn_buf index = { 0 };
    fields last[TN_MAX_PARTS] = { { 0 } };
    tn_cbor_put_array(&index, w->count);
    tn_status status = TN_OK;
    for (size_t i = 0; i < w->count && !status; i++) {
        status = put_entry(w, &index, &w->entries[i], &last[w->entries[i].part], err);
        if (i == 0)             /* others take about as much */
            tn_buf_room(&index, index.size * w->count);
    }
    bool failed = status || put_tail(&index, err) || tn_writer_put(w, 0, 0, ZT_MAGIC, ZT_MAGIC_BYTES, err) ||
                  tn_writer_put(w, 0, w->files[0].end, index.data, index.size, err);
    w->files[0].end += index.size;
    tn_buf_free(&index);
    return failed ? err->status : TN_OK;
}

/* ---- editing metadata ---- */

/* Copies one entry's map with the custom fields its tensor has now. */
static tn_status edit_entry(tn_file *f, tn_cbor *c, bool first, tn_buf *out, tn_error *err)
{
    tn_text key, name = { 0 }, record = { 0 };
    tn_cbor_open_map(out);
    tn_cbor_map(c);
    while (tn_cbor_key(c, &key)) {
        zt_field field = zt_field_of(key);
        tn_text value = tn_cbor_raw(c);
        if (field == ZT_TENON)
            record = value;
        if (field >= ZT_TENON)
            continue;
        tn_cbor_put_text(out, key.ptr, key.len);
        tn_buf_put(out, value.ptr, value.len);
        if (field == ZT_NAME) {
            tn_cbor one;
            tn_cbor_init(&one, value.ptr, value.len, &f->arena);
            name = tn_cbor_text(&one);
        }
    }
    const char *z = tn_arena_text(&f->arena, name.ptr, name.len);
    TN_NEED(z, err);
    const tn_tensor *t = tn_file_find(f, z);
    if (t && check_keys(t->meta, t->nmeta, TN_ERR_ARGUMENT, err))
        return tn_in_tensor(err->status, z, err);
    if (t)
        put_custom(out, t->meta, t->nmeta);
    tn_status status =
        tn_record_put_edited(record, "tenon", f->meta, first ? f->nmeta : 0, &f->arena, out, err);
    tn_cbor_close(out);
    return status;
}

tn_status zt_rewrite(tn_file *f, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err)
{
    zt_index index = { 0 };
    tn_buf out = { 0 };
    tn_cbor c;
    uint64_t entries = 0;
    tn_status status = zt_find_index(f, &index, err);
    if (status)
        return status;
    /* Opened before: the index is known to be good.  Count the entries, then copy them. */
    tn_cbor_init(&c, index.bytes, index.size, &f->arena);
    for (tn_cbor_array(&c); tn_cbor_item(&c); entries++)
        tn_cbor_skip(&c);
    if (f->nmeta && !entries)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "zTensor 0.1 keeps a file's metadata with its first tensor and there is none");
    tn_cbor_put_array(&out, entries);
    tn_cbor_init(&c, index.bytes, index.size, &f->arena);
    tn_cbor_array(&c);
    for (uint64_t i = 0; !status && i < entries && tn_cbor_item(&c); i++)
        status = edit_entry(f, &c, i == 0, &out, err);
    if (!status && c.status)
        status = tn_cbor_fail(&c, index.at, err);
    bool failed = status || put_tail(&out, err) ||
                  tn_sink_copy_range(sink, 0, f->shards[0].source, 0, index.at, shared, err) ||
                  tn_sink_write(sink, index.at, out.data, out.size, err);
    *size = index.at + out.size;
    tn_buf_free(&out);
    return failed ? err->status : TN_OK;
}
