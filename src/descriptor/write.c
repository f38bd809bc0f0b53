/* descriptor/write.c - descriptors as JSON, in the specification's order.
 *
 * What a descriptor holds is written, default or not; what it marks as absent
 * (has_memory and the like, NULL) is not.  So reading gives the same
 * descriptor, and writing that the same bytes. */
#include "descriptor/descriptor.h"
#include "descriptor/extents.h"
#include "base/error.h"
#include "bytes/json.h"

#include <math.h>
#include <stdlib.h>

enum { STEP = 2, FULL_LINE = 100 };

typedef struct writer {
    const tn_descriptor *d;
    tn_buf          *out;
    unsigned         indent;
    bool             first;         /* in the object that is open */
    const tn_wia_extra **extra;         /* sorted by path, else as they were */
    size_t           written;       /* of extra */
    tn_error        *err;
    tn_status        status;        /* TN_OK, or that something cannot be written */
} writer;

/* --- objects --- */

static void open_object(writer *w)
{
    tn_buf_putc(w->out, '{');
    w->indent += STEP;
    w->first = true;
}

static void new_line(writer *w)
{
    tn_buf_putc(w->out, '\n');
    tn_buf_fill(w->out, ' ', w->indent);
}

static void put_key(writer *w, const char *key)
{
    if (!w->first)
        tn_buf_putc(w->out, ',');
    w->first = false;
    new_line(w);
    tn_json_put_z(w->out, key);
    tn_buf_puts(w->out, ": ");
}

static void begin_object(writer *w, const char *key)
{
    put_key(w, key);
    open_object(w);
}

static int compare_paths(const void *a, const void *b)
{
    const tn_wia_extra *x = *(const tn_wia_extra *const *)a, *y = *(const tn_wia_extra *const *)b;
    int order = strcmp(x->path, y->path);
    if (order)
        return order;
    return x < y ? -1 : x > y;
}

/* The first extra member of the object at `path`, or where it would be. */
static size_t first_extra(const writer *w, const char *path)
{
    size_t low = 0, high = w->d->nextra;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(w->extra[middle]->path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_extra(const writer *w, size_t i, const char *path)
{
    return i < w->d->nextra && strcmp(w->extra[i]->path, path) == 0;
}

/* Text that is JSON: exactly one value, because another bracket would close the object around it. */
static void put_json(writer *w, const char *key, const char *json)
{
    tn_arena arena = { 0 };
    tn_json j;
    tn_json_init(&j, json, strlen(json), &arena);
    tn_json_skip(&j);
    tn_json_done(&j);
    tn_arena_free(&arena);
    if (j.status == TN_ERR_NOMEM)
        w->out->bad = true;
    else if (j.status)
        w->status = tn_fail(w->err, TN_ERR_ARGUMENT, "expected one JSON value for %s: %s",
                            tn_quote_z(key).text, j.why);
    put_key(w, key);
    tn_buf_puts(w->out, json);
}

static void close_object(writer *w, const char *path)
{
    for (size_t i = first_extra(w, path); is_extra(w, i, path); i++) {
        put_json(w, w->extra[i]->key, w->extra[i]->json);
        w->written++;
    }
    w->indent -= STEP;
    if (!w->first)
        new_line(w);
    tn_buf_putc(w->out, '}');
    w->first = false;
}

/* --- values --- */

static void put_string(writer *w, const char *key, const char *text)
{
    if (!text)
        return;
    put_key(w, key);
    tn_json_put_z(w->out, text);
}

static void refuse_value(writer *w, const char *key)
{
    w->status = tn_fail(w->err, TN_ERR_ARGUMENT, "%s has a value that the specification has no word for",
                        key);
}

static void put_word(writer *w, const char *key, const tn_words *words, int value)
{
    if (value >= 0 && value < words->count && words->words[value])
        put_string(w, key, words->words[value]);
    else
        refuse_value(w, key);
}

static void put_int(writer *w, const char *key, int64_t value)
{
    put_key(w, key);
    tn_buf_printf(w->out, "%lld", (long long)value);
}

static void put_uint(writer *w, const char *key, uint64_t value)
{
    put_key(w, key);
    tn_buf_printf(w->out, "%llu", (unsigned long long)value);
}

static void put_bool(writer *w, const char *key, bool value)
{
    put_key(w, key);
    tn_buf_puts(w->out, value ? "true" : "false");
}

/* JSON has no number for these three. */
static const char *not_finite(double x)
{
    if (isnan(x))
        return "\"NaN\"";
    if (!isinf(x))
        return NULL;
    return x < 0 ? "\"-Infinity\"" : "\"Infinity\"";
}

static void put_f64(tn_buf *out, double x)
{
    if (not_finite(x))
        tn_buf_puts(out, not_finite(x));
    else
        tn_json_put_f64(out, x);
}

/* --- lists --- */

typedef void (*put_item)(tn_buf *out, const void *items, size_t i);

static void put_integer(tn_buf *out, const void *items, size_t i)
{
    tn_buf_printf(out, "%lld", (long long)((const int64_t *)items)[i]);
}

static void put_number(tn_buf *out, const void *items, size_t i)
{
    put_f64(out, ((const double *)items)[i]);
}

static void put_boolean(tn_buf *out, const void *items, size_t i)
{
    tn_buf_puts(out, ((const bool *)items)[i] ? "true" : "false");
}

/* Bytes after the last newline. */
static size_t column(const tn_buf *out)
{
    size_t n = out->size;
    while (n && out->data[n - 1] != '\n')
        n--;
    return out->size - n;
}

/* Lines are filled with items until they are full. */
static void put_long_list(writer *w, const void *items, size_t n, put_item put)
{
    tn_buf *out = w->out;
    size_t line = 0;
    w->indent += STEP;
    tn_buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            tn_buf_putc(out, ',');
        if (!i || out->size - line >= FULL_LINE) {
            new_line(w);
            line = out->size - w->indent;
        } else {
            tn_buf_putc(out, ' ');
        }
        put(out, items, i);
    }
    w->indent -= STEP;
    new_line(w);
    tn_buf_putc(out, ']');
}

/* Nothing if `items` is NULL. */
static void put_list(writer *w, const char *key, const void *items, size_t n, put_item put)
{
    tn_buf *out = w->out;
    if (!items)
        return;
    put_key(w, key);
    size_t begin = out->size, left = column(out) < FULL_LINE ? FULL_LINE - column(out) : 0;
    tn_buf_putc(out, '[');
    for (size_t i = 0; i < n && out->size - begin <= left; i++) {
        if (i)
            tn_buf_puts(out, ", ");
        put(out, items, i);
    }
    tn_buf_putc(out, ']');
    if (out->bad || out->size - begin <= left || n < 2)
        return;
    out->size = begin;
    put_long_list(w, items, n, put);
}

/* --- shape --- */

static void put_dimension(tn_buf *out, const void *descriptor, size_t i)
{
    const tn_wia_extent *e = &((const tn_descriptor *)descriptor)->dimensions[i];
    if (e->symbol)
        tn_json_put_z(out, e->symbol);
    else
        put_integer(out, &e->value, 0);
}

static void put_constraint(writer *w, const tn_wia_constraint *c, tn_buf *path)
{
    path->size = 0;
    tn_buf_puts(path, "shape.constraints.");
    tn_buf_put(path, c->symbol, strlen(c->symbol) + 1);
    if (path->bad) {
        w->out->bad = true;
        return;
    }
    begin_object(w, c->symbol);
    put_int(w, "min", c->min);
    if (c->max != INT64_MAX)
        put_int(w, "max", c->max);
    if (c->multiple_of != 1)
        put_int(w, "multiple_of", c->multiple_of);
    close_object(w, (const char *)path->data);
}

static void put_shape(writer *w)
{
    const tn_descriptor *d = w->d;
    if (tn_has_no_shape(d))
        return;
    begin_object(w, "shape");
    put_list(w, "dimensions", d, d->rank, put_dimension);
    put_string(w, "layout", d->layout);
    put_bool(w, "symbolic", d->symbolic);
    if (d->constraints) {
        tn_buf path = { 0 };
        begin_object(w, "constraints");
        for (size_t i = 0; i < d->nconstraints; i++)
            put_constraint(w, &d->constraints[i], &path);
        close_object(w, "shape.constraints");
        tn_buf_free(&path);
    }
    close_object(w, "shape");
}

/* --- dtype --- */

static void put_quantization_members(writer *w)
{
    const tn_wia_quantization *q = &w->d->quantization;
    bool per_tensor = !tn_is_per_channel(q->scheme);
    put_word(w, "scheme", &tn_quant_scheme_words, (int)q->scheme);
    if (q->scales && per_tensor && q->nscales == 1) {
        put_key(w, "scale");
        put_f64(w->out, q->scales[0]);
    } else {
        put_list(w, "scales", q->scales, q->nscales, put_number);
    }
    if (q->zero_points && per_tensor && q->nzero_points == 1)
        put_int(w, "zero_point", q->zero_points[0]);
    else
        put_list(w, "zero_points", q->zero_points, q->nzero_points, put_integer);
    if (q->has_range)
        put_list(w, "range", q->range, 2, put_integer);
    if (q->has_axis)
        put_int(w, "channel_axis", q->channel_axis);
}

/* `dtype` wins over a different spelling. */
static void put_base_type(writer *w, const char *key, tn_dtype dtype, const char *spelled)
{
    tn_arena arena = { 0 };
    const char *name = spelled && tn_wia_type(spelled) == dtype ? spelled : tn_wia_type_name(dtype, &arena);
    if (name)
        put_string(w, key, name);
    else if (tn_dtype_get(dtype))
        w->out->bad = true;
    else
        refuse_value(w, key);
    tn_arena_free(&arena);
}

static void put_dtype(writer *w)
{
    const tn_descriptor *d = w->d;
    if (tn_has_no_shape(d) && d->quantization.scheme != TN_QUANT_NONE)
        put_quantization_members(w);            /* that is all there is */
    if (!d->base_type && d->dtype == TN_UNKNOWN)
        return;
    begin_object(w, "dtype");
    put_base_type(w, "base_type", d->dtype, d->base_type);
    if (d->quantization.scheme != TN_QUANT_NONE) {
        begin_object(w, "quantization");
        put_quantization_members(w);
        close_object(w, "dtype.quantization");
    } else if (!tn_other_scheme(d)) {
        put_key(w, "quantization");
        tn_buf_puts(w->out, "null");
    }
    put_word(w, "byte_order", &tn_byte_order_words, (int)d->byte_order);
    close_object(w, "dtype");
}

/* --- memory and properties --- */

/* "768*sequence_length", or a number where there is no symbol. */
static void put_stride(tn_buf *out, const void *strides, size_t i)
{
    const tn_wia_product *p = &((const tn_wia_product *)strides)[i];
    if (!p->nsymbols) {
        put_integer(out, &p->factor, 0);
        return;
    }
    tn_buf_putc(out, '"');
    if (p->factor != 1)
        put_integer(out, &p->factor, 0);
    for (uint32_t k = 0; k < p->nsymbols; k++) {
        if (k || p->factor != 1)
            tn_buf_putc(out, '*');
        tn_buf_puts(out, p->symbols[k]);        /* letters, digits and _ */
    }
    tn_buf_putc(out, '"');
}

/* A product may only contain symbols: other text would be read as something else. */
static void check_stride_symbols(writer *w)
{
    const tn_descriptor *d = w->d;
    for (uint32_t i = 0; d->strides && i < d->rank; i++)
        for (uint32_t k = 0; k < d->strides[i].nsymbols; k++)
            if (!tn_is_symbol(d->strides[i].symbols[k]))
                w->status =
                    tn_fail(w->err, TN_ERR_ARGUMENT,
                            "memory.strides[%u]: expected symbols of letters, digits and _ but found %s", i,
                            tn_quote_z(d->strides[i].symbols[k]).text);
}

static void put_memory(writer *w)
{
    const tn_descriptor *d = w->d;
    if (!d->has_memory)
        return;
    begin_object(w, "memory");
    check_stride_symbols(w);
    put_list(w, "strides", d->strides, d->rank, put_stride);
    put_uint(w, "offset_bytes", d->offset_bytes);
    if (d->has_total)
        put_uint(w, "total_bytes", d->total_bytes);
    if (d->alignment)
        put_uint(w, "alignment", d->alignment);
    begin_object(w, "device");
    put_word(w, "type", &tn_device_type_words, (int)d->device.type);
    put_int(w, "id", d->device.id);
    put_word(w, "memory_space", &tn_memory_space_words, (int)d->device.space);
    close_object(w, "memory.device");
    close_object(w, "memory");
}

static void put_properties(writer *w)
{
    const tn_descriptor *d = w->d;
    if (d->has_properties) {
        begin_object(w, "properties");
        put_bool(w, "requires_grad", d->requires_grad);
        put_bool(w, "is_pinned", d->is_pinned);
        put_bool(w, "is_contiguous", d->is_contiguous);
        put_bool(w, "zero_copy_compatible", d->zero_copy_compatible);
        close_object(w, "properties");
    }
    if (d->metadata)
        put_json(w, "metadata", d->metadata);
}

/* --- padding and the zero-copy block --- */

static void put_padding(writer *w)
{
    const tn_descriptor *d = w->d;
    const tn_wia_padding *p = &d->padding;
    put_list(w, "physical_shape", d->physical_shape, d->rank, put_integer);
    if (!d->has_padding)
        return;
    begin_object(w, "padding");
    put_list(w, "dims", p->dims, d->rank, put_boolean);
    put_list(w, "values", p->values, d->rank, put_integer);
    put_string(w, "mode", p->mode);
    if (p->fill != 0 || signbit(p->fill) || (p->mode && strcmp(p->mode, "value_fill") == 0)) {
        put_key(w, "fill");
        put_f64(w->out, p->fill);
    }
    close_object(w, "padding");
}

static void put_address(writer *w, const char *key, bool known, uint64_t address)
{
    put_key(w, key);
    if (known)
        tn_buf_printf(w->out, "\"0x%llx\"", (unsigned long long)address);
    else
        tn_buf_puts(w->out, "null");
}

static void put_zero_copy(writer *w)
{
    const tn_buffer_handle *h = &w->d->buffer_handle;
    const tn_wia_mapping *m = &w->d->mapping;
    if (h->type != TN_HANDLE_NONE) {
        begin_object(w, "buffer_handle");
        put_word(w, "type", &tn_handle_type_words, (int)h->type);
        put_int(w, "handle", h->handle);
        put_int(w, "size_bytes", h->size_bytes);
        put_word(w, "permissions", &tn_permission_words, h->read_only);
        close_object(w, "buffer_handle");
    }
    if (m->present) {
        begin_object(w, "mapping");
        put_address(w, "device_address", true, m->device_address);
        put_address(w, "cpu_address", m->cpu_mapped, m->cpu_address);
        put_word(w, "access_mode", &tn_access_mode_words, m->cpu_device);
        close_object(w, "mapping");
    }
}

/* --- the sparse block --- */

static void put_row(tn_buf *out, const void *sparse, size_t i)
{
    const tn_wia_sparse *s = sparse;
    for (size_t k = 0; k < s->rank; k++) {
        tn_buf_puts(out, k ? ", " : "[");
        put_integer(out, s->indices, i * s->rank + k);
    }
    tn_buf_putc(out, ']');
}

static void put_real(tn_buf *out, tn_dtype dtype, tn_value value)
{
    char text[64];
    if (value.kind == TN_KIND_FLOAT && not_finite(value.re)) {
        tn_buf_puts(out, not_finite(value.re));
        return;
    }
    tn_value_format(text, sizeof text, dtype, value);
    tn_buf_puts(out, text);
}

static void put_value(tn_buf *out, const void *sparse, size_t i)
{
    const tn_wia_sparse *s = sparse;
    tn_value value = tn_value_get(s->value_type, s->values, i);
    if (value.kind != TN_KIND_COMPLEX) {
        put_real(out, s->value_type, value);
        return;
    }
    tn_buf_putc(out, '[');
    put_real(out, s->value_type, (tn_value){ .kind = TN_KIND_FLOAT, .re = value.re });
    tn_buf_puts(out, ", ");
    put_real(out, s->value_type, (tn_value){ .kind = TN_KIND_FLOAT, .re = value.im });
    tn_buf_putc(out, ']');
}

static void put_indices(writer *w, bool coo)
{
    const tn_wia_sparse *s = &w->d->sparse;
    if (!coo) {
        put_list(w, "row_pointers", s->pointers, s->npointers, put_integer);
        put_list(w, "column_indices", s->indices, s->nindices, put_integer);
    } else if (s->indices) {
        begin_object(w, "indices");
        put_base_type(w, "dtype", s->index_type, NULL);
        put_list(w, "data", s, s->rank ? s->nindices / s->rank : 0, put_row);
        close_object(w, "indices");
    }
}

/* A plain array has the type of the descriptor, or FLOAT32, and no extra members. */
static void put_values(writer *w, bool coo)
{
    const tn_descriptor *d = w->d;
    bool has_type = d->base_type || d->dtype != TN_UNKNOWN;
    bool usual = d->sparse.value_type == (has_type ? d->dtype : TN_FLOAT32);
    if (!d->sparse.values)
        return;
    if (!coo && usual && !is_extra(w, first_extra(w, "values"), "values")) {
        put_list(w, "values", &d->sparse, d->sparse.nvalues, put_value);
        return;
    }
    begin_object(w, "values");
    put_base_type(w, "dtype", d->sparse.value_type, NULL);
    put_list(w, "data", &d->sparse, d->sparse.nvalues, put_value);
    close_object(w, "values");
}

static void put_sparse(writer *w)
{
    const tn_wia_sparse *s = &w->d->sparse;
    if (!s->format)
        return;
    bool coo = strcmp(s->format, "COO") == 0;
    put_string(w, "format", s->format);
    if (s->has_nnz)
        put_int(w, "nnz", s->nnz);
    put_indices(w, coo);
    put_values(w, coo);
}

/* --- descriptors --- */

static void put_descriptor(writer *w)
{
    const tn_descriptor *d = w->d;
    open_object(w);
    put_string(w, "version", d->version);
    put_string(w, "tensor_id", d->tensor_id);
    put_string(w, "name", d->name);
    put_shape(w);
    put_dtype(w);
    put_memory(w);
    put_properties(w);
    put_padding(w);
    put_zero_copy(w);
    put_sparse(w);
    close_object(w, "");
}

/* Writes one. TN_ERR_ARGUMENT: a value has no word in JSON. */
static tn_status write_one(const tn_descriptor *d, unsigned indent, tn_buf *out, tn_error *err)
{
    writer w = { .d = d, .out = out, .indent = indent, .err = err };
    if (d->nextra) {
        w.extra = calloc(d->nextra, sizeof *w.extra);
        if (!w.extra) {
            out->bad = true;
            return tn_fail_nomem(err);
        }
        for (size_t i = 0; i < d->nextra; i++)
            w.extra[i] = &d->extra[i];
        qsort(w.extra, d->nextra, sizeof *w.extra, compare_paths);
    }
    put_descriptor(&w);
    free(w.extra);
    TN_NEED(!out->bad, err);
    if (w.status)
        return w.status;
    if (w.written < d->nextra)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%zu of %zu extra members are in objects that the descriptor does not have",
                       d->nextra - w.written, d->nextra);
    return TN_OK;
}

void tn_descriptor_put(const tn_descriptor *d, unsigned indent, tn_buf *out)
{
    write_one(d, indent, out, NULL);
}

/* Refuses what cannot be read back: duplicate keys, negative extents, text that is not UTF-8. */
static tn_status write_readable(const tn_descriptor *d, bool in_list, tn_buf *out, tn_error *err)
{
    size_t begin = out->size;
    tn_error why;
    tn_status status = write_one(d, in_list ? STEP : 0, out, err);
    if (status)
        return status;
    status = tn_descriptor_readable((const char *)out->data + begin, out->size - begin, in_list, &why);
    if (status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    return status ? tn_fail(err, TN_ERR_ARGUMENT, "%s", why.text) : TN_OK;
}

static tn_status write_list(const tn_descriptor *descriptors, size_t n, tn_buf *out, tn_error *err)
{
    tn_buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        tn_buf_puts(out, i ? ",\n  " : "\n  ");
        TN_TRY(write_readable(&descriptors[i], true, out, err));
    }
    tn_buf_puts(out, n ? "\n]" : "]");
    return TN_OK;
}

tn_status tn_descriptors_write(const tn_descriptor *descriptors, size_t n, bool list, char **json,
                               size_t *size, tn_error *err)
{
    tn_buf out = { 0 };
    TN_GIVEN(descriptors || !n, "descriptors", err);
    TN_GIVEN(json && size, "a place for the text and its size", err);
    if (!list && n != 1)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected 1 descriptor where there is no list but found %zu", n);
    tn_status status =
        list ? write_list(descriptors, n, &out, err) : write_readable(descriptors, false, &out, err);
    tn_buf_put(&out, "\n", 2);
    if (!status && out.bad)
        status = tn_fail_nomem(err);
    if (status) {
        tn_buf_free(&out);
        return status;
    }
    *json = (char *)out.data;
    *size = out.size - 1;
    return TN_OK;
}
