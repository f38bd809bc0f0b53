/* formats/safetensors/write.c - the header is written before any data, because
 * the data follows it.
 *
 * The format allows no gaps, so arrays of wide elements come first.  Each size is
 * then a multiple of the sizes after it, and every array is aligned to its
 * element.  (A complex64 counts as 8 bytes, more than it needs.)  The header is
 * padded so that the data begins at a multiple of the alignment. */
#include "formats/safetensors/safetensors.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/error.h"
#include "bytes/sink_set.h"

#include <stdlib.h>

enum { LENGTH_BYTES = 8, WIDEST_ELEMENT = 8, BLOCK = 4096, USUAL_ENTRY = 128 };

/* --- planning --- */

static tn_status check_entry(const tn_st_out *out, const tn_out_entry *e, tn_error *err)
{
    if (e->encoding != TN_ENCODING_RAW)
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_ENCODING, "none",
                         "safetensors cannot hold compressed data: use zTensor, or no compression");
    if (e->checksum != TN_CHECKSUM_NONE)
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_CHECKSUM, "none",
                         "safetensors cannot hold checksums: use zTensor, or no checksums");
    if (strcmp(e->name, TN_ST_METADATA) == 0)
        return tn_fail(err, TN_ERR_LOSS, "safetensors cannot hold a tensor called %s",
                       tn_quote_z(e->name).text);
    if (out->fills && tn_st_is_filler(e->name))
        return tn_in_tensor(tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_FORMAT_OPTION, "safetensors.filler",
                                      "it has the name of a filler: rename it, or write without fillers"),
                            e->name, err);
    return TN_OK;
}

/* Drops an item that would be read back as a record, if that is allowed. */
static tn_status drop_item(const tn_writer *w, tn_meta *meta, tn_error *err)
{
    tn_status status = w->options.drop_metadata ? TN_OK : tn_st_fail_reserved(meta->key, err);
    meta->key = NULL;
    return status;
}

/* Copies the file's metadata without the items that would be read back as records. */
static tn_status choose_meta(tn_writer *w, tn_st_out *out, tn_error *err)
{
    tn_meta *meta = tn_arena_copy(&w->arena, w->meta, w->nmeta * sizeof *meta);
    tn_st_reserved reserved;
    TN_NEED(meta, err);
    tn_status status = tn_st_reserved_init(&reserved, w->meta, w->nmeta, err);
    for (size_t i = 0; i < w->nmeta && !status; i++)
        if (strcmp(meta[i].key, TN_ST_FILE_RECORD) == 0)
            status = drop_item(w, &meta[i], err);
    for (size_t i = 0; i < w->count && reserved.names.count && !status; i++) {
        size_t k = tn_st_reserved_find(&reserved, w->entries[i].name);
        if (k != SIZE_MAX)
            status = drop_item(w, &meta[k], err);
    }
    tn_names_free(&reserved.names);
    out->meta = meta;
    out->nmeta = w->nmeta;
    return status;
}

/* The order of the data: wide elements first.  With fillers, which align every
 * array, the order is that of the entries. */
static void order_entries(const tn_writer *w, const tn_st_out *out, const tn_st_out_file *f, size_t *order)
{
    size_t n = 0;
    for (unsigned size = WIDEST_ELEMENT; size; size /= 2) {
        for (size_t i = f->first; i < f->last; i++) {
            unsigned bits = out->fills ? 8 * WIDEST_ELEMENT : tn_dtype_get(w->entries[i].dtype)->bits;
            if (size == (bits + 7) / 8)
                order[n++] = i;
        }
    }
}

/* An array of a header. */
typedef struct array_text {
    const char    *type;
    uint32_t       rank;
    const int64_t *shape;
    size_t         at, size;        /* its text up to the offsets, in the buffer */
} array_text;

static void put_array(tn_buf *b, const array_text *a)
{
    tn_buf_puts(b, "{\"dtype\":\"");
    tn_buf_puts(b, a->type);
    tn_buf_puts(b, "\",\"shape\":");
    tn_json_put_shape(b, a->rank, a->shape);
    tn_buf_puts(b, ",\"data_offsets\":[");
}

/* Arrays of the same type and shape follow one another, or every other one: those of codes and of scales.
 * `known` is of two arrays; entries share their shapes. */
static void put_entry(tn_buf *b, array_text *known, array_text a, uint64_t begin, uint64_t end)
{
    array_text *k = a.shape == known[0].shape && a.type == known[0].type ? &known[0] : &known[1];
    a.at = b->size;
    if (k->size && a.shape == k->shape && a.type == k->type && a.rank == k->rank) {
        if (tn_buf_reserve(b, k->size))
            tn_buf_put(b, b->data + k->at, k->size);
    } else {
        put_array(b, &a);
        a.size = b->size - a.at;
        known[1] = known[0];
        known[0] = a;
    }
    tn_buf_put_int(b, (int64_t)begin);      /* below 2^63 */
    tn_buf_putc(b, ',');
    tn_buf_put_int(b, (int64_t)end);
    tn_buf_puts(b, "]}");
}

/* Sets the offsets of entries in the data section. */
static tn_status place_entries(tn_writer *w, tn_st_out_file *f, const size_t *order, tn_error *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < f->last - f->first; i++) {
        tn_out_entry *e = &w->entries[order[i]];
        e->offset = tn_st_place(w, at, e->nbytes);
        if (!tn_add_u64(e->offset, e->nbytes, &at))
            return tn_fail(err, TN_ERR_LIMIT, "the data would take more than 2^64 bytes");
    }
    f->data_size = at;
    return TN_OK;
}

/* In their own order: readers find the data by its offsets, and the order of tensors is kept. */
static void put_entries(const tn_writer *w, tn_st_out *out, const tn_st_out_file *f, tn_buf *b)
{
    uint64_t at = 0;
    array_text known[2] = { { 0 } };
    for (size_t i = f->first; i < f->last; i++) {
        const tn_out_entry *e = &w->entries[i];
        if (out->fills && e->offset > at) {
            int64_t gap = (int64_t)(e->offset - at);
            array_text own[2] = { { 0 } };
            tn_json_put_key(b, tn_st_filler_name(out->fillers++).text);
            put_entry(b, own, (array_text){ "U8", 1, &gap, 0, 0 }, at, e->offset);
        }
        at = e->offset + e->nbytes;
        tn_json_put_key(b, e->name);
        put_entry(b, known, (array_text){ tn_dtype_get(e->dtype)->safetensors, e->rank, e->shape, 0, 0 },
                  e->offset, at);
    }
}

static tn_status put_header(tn_writer *w, tn_st_out *out, tn_st_out_file *f, tn_buf *b, tn_error *err)
{
    tn_st_put p = { .out = b };
    tn_buf_putc(b, '{');
    tn_st_put_file(&p, out->meta, out->nmeta, out->fills);
    for (size_t i = f->first; i < f->last; i++) {
        const tn_out_more *more = w->entries[i].more;
        tn_st_put_record(&p, w->entries[i].name, more->record, more->meta, more->nmeta);
    }
    tn_st_put_end(&p);
    put_entries(w, out, f, b);
    tn_buf_putc(b, '}');
    return b->bad ? tn_fail_nomem(err) : TN_OK;
}

/* Pads the header so that the data is aligned, and adds its size to the offsets of the entries. */
static tn_status finish_header(tn_writer *w, tn_st_out_file *f, tn_buf *b, tn_error *err)
{
    uint64_t begin, end;
    if (!tn_align_u64(b->size, w->options.align, &begin) || begin - LENGTH_BYTES > TN_ST_HEADER_MAX)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_SHARD_SIZE, NULL,
                         "the header would take %zu bytes but safetensors allows %u: use zTensor, or shards",
                         b->size - LENGTH_BYTES, TN_ST_HEADER_MAX);
    tn_buf_fill(b, ' ', (size_t)(begin - b->size));
    TN_NEED(!b->bad, err);
    tn_store_u64le(b->data, begin - LENGTH_BYTES);
    f->header = (tn_text){ (const char *)b->data, (size_t)begin };
    w->files[f->file].head = b->data;
    *b = (tn_buf){ 0 };
    if (w->files[f->file].member && w->files[f->file].sink)
        tn_sink_set_head(w->files[f->file].sink, f->header.ptr, f->header.len);
    if (!tn_add_u64(begin, f->data_size, &end) || end > INT64_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the file would take more than 2^63 bytes");
    for (size_t i = f->first; i < f->last; i++) {
        w->entries[i].file = f->file;
        w->entries[i].offset += begin;
    }
    w->files[f->file].end = end;
    return TN_OK;
}

/* About as many bytes as the header will have. */
static size_t usual_header(const tn_writer *w, const tn_st_out_file *f)
{
    size_t n = LENGTH_BYTES + (f->last - f->first) * USUAL_ENTRY;
    for (size_t i = f->first; i < f->last; i++)
        if (w->entries[i].more->record.len)
            n += USUAL_ENTRY + 2 * w->entries[i].more->record.len;
    return n;
}

static tn_status plan_file(tn_writer *w, tn_st_out *out, tn_st_out_file *f, tn_error *err)
{
    size_t n = f->last - f->first, *order = malloc((n ? n : 1) * sizeof *order);
    tn_buf header = { 0 };
    TN_NEED(order, err);
    order_entries(w, out, f, order);
    tn_buf_reserve(&header, usual_header(w, f));
    tn_buf_fill(&header, 0, LENGTH_BYTES);
    f->first_filler = out->fillers;
    bool failed = place_entries(w, f, order, err) || put_header(w, out, f, &header, err) ||
                  finish_header(w, f, &header, err);
    f->fillers = out->fillers - f->first_filler;
    tn_buf_free(&header);
    free(order);
    return failed ? err->status : TN_OK;
}

tn_status tn_st_plan(tn_writer *w, tn_error *err)
{
    tn_st_out *out = tn_arena_zalloc(&w->arena, 1, sizeof *out);
    TN_NEED(out, err);
    w->state = out;
    out->fills = tn_writer_choice(w, TN_ST_FILLER) != 0;
    for (size_t i = 0; i < w->count; i++)
        TN_TRY(check_entry(out, &w->entries[i], err));
    TN_TRY(choose_meta(w, out, err));
    TN_TRY(tn_st_cut(w, out, err));
    for (size_t i = 0; i < out->nfiles; i++)
        TN_TRY(plan_file(w, out, &out->files[i], err));
    return tn_st_plan_index(w, out, err);
}

/* --- finishing --- */

/* The headers of a set were written when its files were opened. */
tn_status tn_st_finish(tn_writer *w, tn_error *err)
{
    tn_st_out *out = w->state;
    for (size_t i = 0; i < out->nfiles; i++)
        w->files[out->files[i].file].end = out->files[i].header.len + out->files[i].data_size;
    if (out->nfiles > 1)
        return tn_st_put_index(w, out, err);
    const tn_st_out_file *f = &out->files[0];
    return tn_writer_put(w, f->file, 0, f->header.ptr, f->header.len, err);
}

/* --- rewriting with other metadata --- */

typedef struct edit {
    tn_file        *file;
    tn_st_metadata  old;
    tn_st_reserved  reserved;
    tn_arena        arena;
    tn_buf          header;     /* its length and the metadata; then all of it */
    tn_buf          entries;
    tn_st_put       put;
} edit;

/* Copies an entry.  Its record gets the tensor's present metadata. */
static tn_status edit_entry(edit *x, tn_text key, tn_text value, tn_error *err)
{
    const char *name = tn_arena_text(&x->arena, key.ptr, key.len);
    TN_NEED(name, err);
    size_t k = tn_st_reserved_find(&x->reserved, name);
    if (k != SIZE_MAX)
        return tn_st_fail_reserved(x->file->meta[k].key, err);
    tn_text record = { 0 };
    TN_TRY(tn_st_metadata_claim(&x->old, &x->arena, name, &record, err));
    static const tn_tensor none;
    const tn_tensor *t = tn_file_find(x->file, name);
    t = t ? t : &none;          /* a part of another tensor, or a filler */
    tn_st_put_record(&x->put, name, record, t->meta, t->nmeta);
    tn_json_put_key(&x->entries, name);
    tn_buf_put(&x->entries, value.ptr, value.len);
    return TN_OK;
}

/* Reads the old metadata, which may stand behind the entries: they need their records. */
static tn_status find_metadata(edit *x, tn_json ahead, tn_error *err)
{
    tn_text key;
    while (tn_json_key(&ahead, &key)) {
        if (tn_text_is(key, TN_ST_METADATA))
            return tn_st_metadata_read(&x->old, x->file, &ahead, LENGTH_BYTES, err);
        tn_json_skip(&ahead);
    }
    return TN_OK;
}

static tn_status edit_all(edit *x, tn_text json, tn_error *err)
{
    tn_json j;
    tn_text key;
    tn_json_init(&j, json.ptr, json.len, &x->arena);
    tn_json_object(&j);
    if (find_metadata(x, j, err) ||
        tn_st_reserved_init(&x->reserved, x->file->meta, x->file->nmeta, err))
        return err->status;
    for (size_t i = 0; i < x->file->nmeta; i++)
        if (strcmp(x->file->meta[i].key, TN_ST_FILE_RECORD) == 0)
            return tn_st_fail_reserved(TN_ST_FILE_RECORD, err);
    tn_buf_fill(&x->header, 0, LENGTH_BYTES);
    tn_buf_putc(&x->header, '{');
    x->put.out = &x->header;
    tn_st_put_file(&x->put, x->file->meta, x->file->nmeta, x->old.fillers);
    while (tn_json_key(&j, &key)) {
        tn_text value = tn_json_raw(&j);
        if (!j.status && !tn_text_is(key, TN_ST_METADATA) && edit_entry(x, key, value, err))
            return err->status;
    }
    tn_st_put_end(&x->put);
    return j.status ? tn_json_fail(&j, LENGTH_BYTES, err) : TN_OK;
}

/* The new header fits where the old one was, or moves the data by whole blocks,
 * so that a file system can share them. */
static tn_status join_header(edit *x, size_t old_size, tn_error *err)
{
    tn_buf *b = &x->header;
    if (x->entries.size)
        tn_json_put_comma(b);
    tn_buf_put(b, x->entries.data, x->entries.size);
    tn_buf_putc(b, '}');
    size_t room = LENGTH_BYTES + old_size;
    if (b->size > room)
        room += (b->size - room + BLOCK - 1) / BLOCK * BLOCK;
    if (room - LENGTH_BYTES > TN_ST_HEADER_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the header would take %zu bytes but safetensors allows %u",
                       room - LENGTH_BYTES, TN_ST_HEADER_MAX);
    tn_buf_fill(b, ' ', room - b->size);
    TN_NEED(!b->bad && !x->entries.bad, err);
    tn_store_u64le(b->data, room - LENGTH_BYTES);
    return TN_OK;
}

tn_status tn_st_rewrite(tn_file *file, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err)
{
    edit x = { .file = file };
    tn_text json = { 0 };
    const tn_shard *s = &file->shards[0];
    uint64_t data_size = tn_source_size(s->source) - s->data_begin;
    if (file->nshards > 1)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "the metadata of a sharded set is in each of its files: edit those");
    bool failed =
        tn_st_load_header(file, 0, &x.arena, &json, err) || edit_all(&x, json, err) ||
        join_header(&x, json.len, err) || tn_sink_write(sink, 0, x.header.data, x.header.size, err) ||
        tn_sink_copy_range(sink, x.header.size, s->source, s->data_begin, data_size, shared, err);
    *size = x.header.size + data_size;
    tn_st_metadata_free(&x.old);
    tn_names_free(&x.reserved.names);
    tn_buf_free(&x.header);
    tn_buf_free(&x.entries);
    tn_arena_free(&x.arena);
    return failed ? err->status : TN_OK;
}
