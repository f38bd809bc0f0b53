/* formats/npy/write.c - headers are the bytes that numpy.save() writes, if
 * NumPy can express everything. */
#include "formats/npy/npy.h"
#include "base/error.h"
#include "store/record.h"

#include <string.h>

/* NumPy leaves room for this many digits of the first dimension, so that a header can be changed in place. */
enum { GROWING_DIGITS = 21 };

/* --- the header --- */

tn_npy_array tn_npy_array_of(const tn_out_entry *e)
{
    return (tn_npy_array){ .type = tn_npy_type_name(tn_dtype_get(e->dtype)), .rank = e->rank,
                           .shape = e->shape, .entry = e };
}

static void put_literal(tn_buf *b, const tn_npy_array *a)
{
    tn_buf_printf(b, "{'descr': '%s', 'fortran_order': False, 'shape': (", a->type);
    for (uint32_t i = 0; i < a->rank; i++)
        tn_buf_printf(b, i ? ", %lld" : "%lld", (long long)a->shape[i]);
    tn_buf_puts(b, a->rank == 1 ? ",), }" : "), }");
    if (!a->rank)
        return;
    int digits = 0;
    for (int64_t left = a->shape[0]; left || !digits; left /= 10)
        digits++;
    tn_buf_fill(b, ' ', (size_t)(GROWING_DIGITS - digits));
}

/* One item of the comment; its CBOR is in `map`. */
static void add_meta(tn_meta *items, size_t *n, const char *key, const tn_meta *meta, size_t count,
                     tn_buf *map)
{
    if (!count)
        return;
    tn_meta_put_map(meta, count, map);
    items[(*n)++] = (tn_meta){ .key = key, .cbor = map->data, .cbor_size = map->size };
}

static void put_comment(tn_buf *b, const tn_writer *w, const tn_npy_array *a, bool with_meta)
{
    const tn_out_entry *e = a->entry;
    tn_meta items[4];
    tn_buf meta = { 0 }, file = { 0 };
    size_t n = 0;
    if (a->name)
        items[n++] = (tn_meta){ .key = TN_NPY_NAME, .text = a->name };
    if (e->more->record.len)
        items[n++] = (tn_meta){ .key = TN_NPY_RECORD, .cbor = (const uint8_t *)e->more->record.ptr,
                                .cbor_size = e->more->record.len };
    if (with_meta)
        add_meta(items, &n, TN_NPY_META, e->more->meta, e->more->nmeta, &meta);
    if (with_meta && e == w->entries)
        add_meta(items, &n, TN_NPY_FILE_META, w->meta, w->nmeta, &file);
    b->bad |= meta.bad || file.bad;
    if (n && !b->bad) {
        tn_buf_puts(b, " " TN_NPY_COMMENT);
        tn_meta_put_json(b, items, n);
    }
    tn_buf_free(&meta);
    tn_buf_free(&file);
}

static bool is_ascii(const tn_buf *b)
{
    for (size_t i = 0; i < b->size; i++)
        if (b->data[i] & 0x80)
            return false;
    return true;
}

/* Adds the magic and the length before the text, and spaces behind it. */
static tn_status frame(tn_writer *w, const tn_buf *text, uint64_t before, tn_text *header, tn_error *err)
{
    bool ascii = is_ascii(text);
    size_t prefix = ascii ? TN_NPY_SHORTEST : TN_NPY_PREFIX_MAX, align = (size_t)w->options.align;
    /* at least one, as NumPy does */
    size_t fill = align - (size_t)((before + prefix + text->size + 1) & (align - 1));
    size_t length = text->size + fill + 1;
    if (length > TN_NPY_NUMPY_MAX)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_HEADER, NULL,
                         "the header would take %zu bytes but NumPy reads at most %u: choose a smaller "
                         "alignment, or leave out metadata or a long name",
                         length, TN_NPY_NUMPY_MAX);
    uint8_t *bytes = tn_arena_alloc(&w->arena, prefix + length);
    TN_NEED(bytes, err);
    memset(bytes, ' ', prefix + length);
    memcpy(bytes, TN_NPY_MAGIC, TN_NPY_MAGIC_BYTES);
    bytes[6] = ascii ? 1 : 3;
    bytes[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        bytes[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(bytes + prefix, text->data, text->size);
    bytes[prefix + length - 1] = '\n';
    *header = (tn_text){ (const char *)bytes, prefix + length };
    return TN_OK;
}

static tn_status try_header(tn_writer *w, const tn_npy_array *a, bool with_meta, uint64_t before,
                            tn_text *header, tn_error *err)
{
    tn_buf text = { 0 };
    put_literal(&text, a);
    if (a->entry)
        put_comment(&text, w, a, with_meta);
    tn_status status = text.bad ? tn_fail_nomem(err) : frame(w, &text, before, header, err);
    tn_buf_free(&text);
    return status;
}

tn_status tn_npy_build_header(tn_writer *w, const tn_npy_array *a, uint64_t before, tn_text *header,
                              tn_error *err)
{
    tn_status status = try_header(w, a, true, before, header, err);
    if (status == TN_ERR_LIMIT && w->options.drop_metadata)
        status = try_header(w, a, false, before, header, err);
    return status;
}

/* --- a file of one array --- */

static tn_status check_count(const tn_writer *w, tn_error *err)
{
    const tn_tensor *only = w->ntensors == 1 ? w->entries[0].more->whole : NULL;
    if (only && (only->form == TN_FORM_COO || only->form == TN_FORM_CSR))
        return tn_in_tensor(tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_FORM, "dense",
                                      "npy holds one array and a tensor of form %s has %u: use scipy-npz, or "
                                      "make it dense", tn_form_name(only->form), only->nparts),
                            only->name, err);
    if (w->count != 1)
        return tn_fail(err, TN_ERR_ARGUMENT, "npy holds one array and there are %zu: use npz", w->count);
    return TN_OK;
}

/* The array gets this name from its file anyway. */
static bool is_stem(const char *path, const char *name)
{
    const char *base = tn_base_name(path);
    return tn_begins_with(base, name) && strcmp(base + strlen(name), TN_NPY_SUFFIX) == 0;
}

tn_status tn_npy_plan(tn_writer *w, tn_error *err)
{
    tn_text *header = tn_arena_zalloc(&w->arena, 1, sizeof *header);
    tn_out_entry *e = w->entries;
    TN_NEED(header, err);
    TN_TRY(check_count(w, err));
    tn_npy_array array = tn_npy_array_of(e);
    array.name = w->options.drop_names || is_stem(w->path, e->name) ? NULL : e->name;
    if (tn_npy_build_header(w, &array, 0, header, err) || tn_writer_add_file(w, w->path, &e->file, err))
        return err->status;
    if (e->nbytes > INT64_MAX - header->len)
        return tn_fail(err, TN_ERR_LIMIT, "the file would take more than 2^63 bytes");
    w->state = header;
    e->offset = header->len;
    w->files[e->file].end = header->len + e->nbytes;
    return TN_OK;
}

tn_status tn_npy_finish(tn_writer *w, tn_error *err)
{
    const tn_text *header = w->state;
    w->files[0].end = header->len + w->entries[0].nbytes;
    return tn_writer_put(w, 0, 0, header->ptr, header->len, err);
}
