/* formats/safetensors/write.c - the header is made before any data, because
 * the data follows it.
 *
 * The format allows no gaps, so arrays of wide elements come first: each size
 * is a multiple of the ones after it and every array is aligned to its
 * element.  (A complex64 counts as 8 bytes, more than it needs.)  The header is
 * padded so that all of this begins at a multiple of the alignment. */
#include "formats/safetensors/safetensors.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/sink_set.h"

#include <stdlib.h>

enum { LENGTH_BYTES = 8, WIDEST_ELEMENT = 8, BLOCK = 4096 };

static void store_u64le(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* --- planning --- */

static tn_status check_entry(const tn_writer *w, const tn_out_entry *e, tn_error *err)
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
    if (w->options.filler && tn_st_is_filler(e->name))
        return tn_in_tensor(tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_FILLER, NULL,
                                      "it has the name of a filler: rename it, or write without fillers"),
                            e->name, err);
    return TN_OK;
}

/* Copies the file's metadata and takes out, where that is allowed, what would be read back as something
 * else. */
static tn_status choose_meta(tn_writer *w, tn_st_out *out, tn_error *err)
{
    tn_meta *meta = tn_arena_copy(&w->arena, w->meta, w->nmeta * sizeof *meta);
    tn_st_reserved reserved;
    if (!meta)
        return tn_fail_nomem(err);
    tn_status status = tn_st_reserved_init(&reserved, w->meta, w->nmeta, err);
    for (size_t i = 0; i < w->nmeta && !status; i++) {
        if (strcmp(meta[i].key, TN_ST_FILE_RECORD) != 0)
            continue;
        status = w->options.drop_metadata ? TN_OK : tn_st_fail_reserved(meta[i].key, err);
        meta[i].key = NULL;
    }
    for (size_t i = 0; i < w->count && reserved.any && !status; i++) {
        size_t k = tn_st_reserved_find(&reserved, w->entries[i].name);
        if (k == SIZE_MAX)
            continue;
        status = w->options.drop_metadata ? TN_OK : tn_st_fail_reserved(w->meta[k].key, err);
        meta[k].key = NULL;
    }
    tn_st_reserved_free(&reserved);
    out->meta = meta;
    out->nmeta = w->nmeta;
    return status;
}

static uint64_t element_bytes(const tn_out_entry *e)
{
    unsigned bits = tn_dtype_get(e->dtype)->bits;
    return bits < 8 ? 1 : bits / 8;
}

/* The order of the data: wide elements first, else as given.  With fillers
 * every array is aligned wherever it is. */
static void order_entries(const tn_writer *w, const tn_st_out_file *f, size_t *order)
{
    size_t n = 0;
    for (uint64_t size = WIDEST_ELEMENT; size; size /= 2)
        for (size_t i = f->first; i < f->last; i++)
            if (w->options.filler ? size == WIDEST_ELEMENT : element_bytes(&w->entries[i]) == size)
                order[n++] = i;
}

static void put_entry(tn_buf *b, const char *type, uint32_t rank, const int64_t *shape, uint64_t begin,
                      uint64_t end)
{
    tn_buf_puts(b, ":{\"dtype\":\"");
    tn_buf_puts(b, type);
    tn_buf_puts(b, "\",\"shape\":[");
    for (uint32_t i = 0; i < rank; i++)
        tn_buf_printf(b, i ? ",%lld" : "%lld", (long long)shape[i]);
    tn_buf_printf(b, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin, (unsigned long long)end);
}

static void separate(tn_buf *b)
{
    if (b->size > 1)
        tn_buf_putc(b, ',');
}

/* The header's text; offsets of entries are set within the data section. */
static tn_status put_header(tn_writer *w, tn_st_out *out, tn_st_out_file *f, const size_t *order, tn_buf *b,
                            tn_error *err)
{
    tn_st_put p = { .out = b };
    tn_buf_putc(b, '{');
    tn_st_put_file(&p, out->meta, out->nmeta, w->options.filler);
    for (size_t i = f->first; i < f->last; i++)
        tn_st_put_record(&p, w->entries[i].name, w->entries[i].more->record, w->entries[i].more->meta,
                         w->entries[i].more->nmeta);
    tn_st_put_end(&p);
    uint64_t at = 0;
    for (size_t i = 0; i < f->last - f->first; i++) {
        tn_out_entry *e = &w->entries[order[i]];
        uint64_t begin = tn_st_place(w, at, e->nbytes), end;
        if (!tn_add_u64(begin, e->nbytes, &end))
            return tn_fail(err, TN_ERR_LIMIT, "the data would take more than 2^64 bytes");
        if (begin > at) {
            int64_t gap = (int64_t)(begin - at);
            separate(b);
            tn_buf_printf(b, "\"" TN_ST_FILLER_START "%zu" TN_ST_FILLER_END "\"", out->fillers++);
            put_entry(b, "U8", 1, &gap, at, begin);
        }
        separate(b);
        tn_json_put_z(b, e->name);
        put_entry(b, tn_dtype_get(e->dtype)->safetensors, e->rank, e->shape, begin, end);
        e->offset = begin;
        at = end;
    }
    tn_buf_putc(b, '}');
    f->data_size = at;
    return b->bad ? tn_fail_nomem(err) : TN_OK;
}

/* Pads the header so that the data begins at a multiple of the alignment, and moves the entries there. */
static tn_status settle(tn_writer *w, tn_st_out_file *f, tn_buf *b, tn_error *err)
{
    uint64_t begin, end;
    if (!tn_align_u64(LENGTH_BYTES + b->size, w->options.align, &begin) ||
        begin - LENGTH_BYTES > TN_ST_HEADER_MAX)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_SHARD_SIZE, NULL,
                         "the header would take %zu bytes but safetensors allows %u: use zTensor, or shards",
                         b->size, TN_ST_HEADER_MAX);
    tn_buf_fill(b, ' ', (size_t)(begin - LENGTH_BYTES - b->size));
    char *header = b->bad ? NULL : tn_arena_alloc(&w->arena, (size_t)begin);
    if (!header)
        return tn_fail_nomem(err);
    store_u64le((uint8_t *)header, b->size);
    memcpy(header + LENGTH_BYTES, b->data, b->size);
    f->header = (tn_text){ header, (size_t)begin };
    if (w->files[f->file].member && w->files[f->file].sink)
        tn_sink_set_head(w->files[f->file].sink, header, (size_t)begin);
    if (!tn_add_u64(begin, f->data_size, &end) || end > INT64_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the file would take more than 2^63 bytes");
    for (size_t i = f->first; i < f->last; i++) {
        w->entries[i].file = f->file;
        w->entries[i].offset += begin;
    }
    w->files[f->file].end = end;
    return TN_OK;
}

static tn_status plan_file(tn_writer *w, tn_st_out *out, tn_st_out_file *f, tn_error *err)
{
    size_t n = f->last - f->first, *order = malloc((n ? n : 1) * sizeof *order);
    tn_buf header = { 0 };
    if (!order)
        return tn_fail_nomem(err);
    order_entries(w, f, order);
    f->first_filler = out->fillers;
    tn_status status = put_header(w, out, f, order, &header, err);
    f->fillers = out->fillers - f->first_filler;
    if (!status)
        status = settle(w, f, &header, err);
    tn_buf_free(&header);
    free(order);
    return status;
}

tn_status tn_st_plan(tn_writer *w, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < w->count && !status; i++)
        status = check_entry(w, &w->entries[i], err);
    if (status)
        return status;
    tn_st_out *out = tn_arena_zalloc(&w->arena, 1, sizeof *out);
    if (!out)
        return tn_fail_nomem(err);
    w->state = out;
    status = choose_meta(w, out, err);
    if (!status)
        status = tn_st_cut(w, out, err);
    for (size_t i = 0; i < out->nfiles && !status; i++)
        status = plan_file(w, out, &out->files[i], err);
    return status ? status : tn_st_plan_index(w, out, err);
}

/* --- finishing --- */

/* The files of a set have had their headers since they were made. */
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
    tn_buf          metadata, entries;
    tn_st_put       put;
} edit;

/* An entry stays as its text; its record gets the tensor's present metadata. */
static tn_status edit_entry(edit *x, tn_text key, tn_text value, tn_error *err)
{
    const char *name = tn_arena_text(&x->arena, key.ptr, key.len);
    if (!name)
        return tn_fail_nomem(err);
    size_t k = tn_st_reserved_find(&x->reserved, name);
    if (k != SIZE_MAX)
        return tn_st_fail_reserved(x->file->meta[k].key, err);
    tn_text record = { 0 };
    tn_status status = tn_st_metadata_claim(&x->old, &x->arena, name, &record, err);
    if (status)
        return status;
    const tn_tensor *t = tn_file_find(x->file, name);      /* NULL: a part of another, or a filler */
    tn_st_put_record(&x->put, name, record, t ? t->meta : NULL, t ? t->nmeta : 0);
    tn_buf_putc(&x->entries, ',');
    tn_json_put_string(&x->entries, name, key.len);
    tn_buf_putc(&x->entries, ':');
    tn_buf_put(&x->entries, value.ptr, value.len);
    return TN_OK;
}

/* The old metadata, wherever it stands: entries need their records. */
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
    tn_status status = find_metadata(x, j, err);
    if (!status)
        status = tn_st_reserved_init(&x->reserved, x->file->meta, x->file->nmeta, err);
    for (size_t i = 0; i < x->file->nmeta && !status; i++)
        if (strcmp(x->file->meta[i].key, TN_ST_FILE_RECORD) == 0)
            status = tn_st_fail_reserved(TN_ST_FILE_RECORD, err);
    if (status)
        return status;
    x->put.out = &x->metadata;
    tn_st_put_file(&x->put, x->file->meta, x->file->nmeta, x->old.fillers);
    while (!status && tn_json_key(&j, &key)) {
        tn_text value = tn_json_raw(&j);
        if (!j.status && !tn_text_is(key, TN_ST_METADATA))
            status = edit_entry(x, key, value, err);
    }
    tn_st_put_end(&x->put);
    if (!status && j.status)
        status = tn_json_fail(&j, LENGTH_BYTES, err);
    return status;
}

/* The header that fits where the old one was, or moves the data by whole
 * blocks, so that a file system can share them. */
static tn_status join_header(edit *x, size_t old_size, tn_buf *b, tn_error *err)
{
    size_t skip = x->metadata.size ? 0 : 1;        /* the first entry's comma */
    tn_buf_fill(b, 0, LENGTH_BYTES);
    tn_buf_putc(b, '{');
    tn_buf_put(b, x->metadata.data, x->metadata.size);
    if (x->entries.size)
        tn_buf_put(b, x->entries.data + skip, x->entries.size - skip);
    tn_buf_putc(b, '}');
    if (b->bad || x->metadata.bad || x->entries.bad)
        return tn_fail_nomem(err);
    size_t room = LENGTH_BYTES + old_size;
    if (b->size > room)
        room += (b->size - room + BLOCK - 1) / BLOCK * BLOCK;
    if (room - LENGTH_BYTES > TN_ST_HEADER_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the header would take %zu bytes but safetensors allows %u",
                       room - LENGTH_BYTES, TN_ST_HEADER_MAX);
    tn_buf_fill(b, ' ', room - b->size);
    if (b->bad)
        return tn_fail_nomem(err);
    store_u64le(b->data, room - LENGTH_BYTES);
    return TN_OK;
}

static tn_status rewrite_one(edit *x, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err)
{
    tn_text json = { 0 };
    tn_buf header = { 0 };
    tn_status status = tn_st_load_header(x->file, 0, &x->arena, &json, err);
    if (!status)
        status = edit_all(x, json, err);
    if (!status)
        status = join_header(x, json.len, &header, err);
    if (!status)
        status = tn_sink_write(sink, 0, header.data, header.size, err);
    if (!status) {
        const tn_shard *s = &x->file->shards[0];
        uint64_t n = tn_source_size(s->source) - s->data_begin;
        *size = header.size + n;
        status = tn_sink_copy_range(sink, header.size, s->source, s->data_begin, n, shared, err);
    }
    tn_buf_free(&header);
    return status;
}

tn_status tn_st_rewrite(tn_file *file, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err)
{
    edit x = { .file = file };
    if (file->nshards > 1)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "the metadata of a sharded set is in each of its files: edit those");
    tn_status status = rewrite_one(&x, sink, size, shared, err);
    tn_st_metadata_free(&x.old);
    tn_st_reserved_free(&x.reserved);
    tn_buf_free(&x.metadata);
    tn_buf_free(&x.entries);
    tn_arena_free(&x.arena);
    return status;
}
