/* formats/npy/write.c - the bytes that numpy.save() writes, and nothing that it would not write. */
#include "formats/npy/npy.h"
#include "base/error.h"

#include <string.h>

/* NumPy leaves room for this many digits of the first dimension, so that a header can be changed in place. */
enum { GROWING_DIGITS = 21 };

/* --- the header --- */

tn_npy_array tn_npy_array_of(const tn_out_entry *e)
{
    return (tn_npy_array){ .type = tn_npy_type_name(tn_dtype_get(e->dtype)), .rank = e->rank,
                           .shape = e->shape };
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

/* Adds the magic and the length before the text, and spaces behind it. */
static tn_status frame(tn_writer *w, const tn_buf *text, uint64_t before, tn_text *header, tn_error *err)
{
    size_t align = (size_t)w->options.align;
    /* at least one, as NumPy does */
    size_t fill = align - (size_t)((before + TN_NPY_SHORTEST + text->size + 1) & (align - 1));
    size_t length = text->size + fill + 1;
    if (length > TN_NPY_NUMPY_MAX)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_HEADER, NULL,
                         "the header would take %zu bytes but NumPy reads at most %u: choose a smaller "
                         "alignment", length, TN_NPY_NUMPY_MAX);
    uint8_t *bytes = tn_arena_alloc(&w->arena, TN_NPY_SHORTEST + length);
    TN_NEED(bytes, err);
    memset(bytes, ' ', TN_NPY_SHORTEST + length);
    memcpy(bytes, TN_NPY_MAGIC "\x01", TN_NPY_MAGIC_BYTES + 2);
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    memcpy(bytes + TN_NPY_SHORTEST, text->data, text->size);
    bytes[TN_NPY_SHORTEST + length - 1] = '\n';
    *header = (tn_text){ (const char *)bytes, TN_NPY_SHORTEST + length };
    return TN_OK;
}

tn_status tn_npy_build_header(tn_writer *w, const tn_npy_array *a, uint64_t before, tn_text *header,
                              tn_error *err)
{
    tn_buf text = { 0 };
    put_literal(&text, a);
    tn_status status = text.bad ? tn_fail_nomem(err) : frame(w, &text, before, header, err);
    tn_buf_free(&text);
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

static bool is_stem(const char *path, const char *name, const char *suffix)
{
    const char *base = tn_base_name(path);
    return tn_begins_with(base, name) && strcmp(base + strlen(name), suffix) == 0;
}

/* The array gets this name from its file anyway, or had it from the file that it was in. */
static bool is_name_of_file(const tn_writer *w, const char *name)
{
    return is_stem(w->path, name, TN_NPY_SUFFIX) ||
           (w->reading && is_stem(tn_file_path(w->reading), name, w->reading->format->info.suffix));
}

/* A type to cast to that NumPy has. */
static const char *nearest_type(const tn_dtype_info *type)
{
    if (type->kind == TN_KIND_INT)
        return "int8";
    return type->kind == TN_KIND_UINT ? "uint8" : "f32";
}

/* What the array itself does not say would be lost. */
static tn_status check_array(const tn_writer *w, tn_error *err)
{
    const tn_out_entry *e = w->entries;
    const tn_tensor *t = e->more->whole;
    bool drops = w->options.drop_metadata;
    if (t->scaling)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_CAST, "f32",
                         "npy cannot hold codes with scales: use npz");
    if (t->parts[0].padded)
        return tn_fail(err, TN_ERR_LOSS, "npy cannot hold padding: use npz");
    if (t->dtype != e->dtype)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_CAST, nearest_type(tn_dtype_get(t->dtype)),
                         "NumPy has no type %s: use npz, or cast it", tn_dtype_get(t->dtype)->name);
    if (t->layout && !drops)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                         "npy cannot hold its layout: use npz, or leave it out");
    if ((e->more->nmeta || w->nmeta) && !drops)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                         "npy cannot hold metadata: use npz, or leave it out");
    if (!is_name_of_file(w, e->name) && !w->options.drop_names)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_NAMES, NULL,
                         "npy has no place for its name but the name of the file, %s: use npz, or leave the "
                         "name out", tn_quote_z(tn_base_name(w->path)).text);
    return TN_OK;
}

tn_status tn_npy_plan(tn_writer *w, tn_error *err)
{
    tn_text *header = tn_arena_zalloc(&w->arena, 1, sizeof *header);
    tn_out_entry *e = w->entries;
    TN_NEED(header, err);
    TN_TRY(check_count(w, err));
    TN_TRY(tn_in_tensor(check_array(w, err), e->name, err));
    const tn_npy_array array = tn_npy_array_of(e);
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
