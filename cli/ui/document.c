/* cli/ui/document.c - WIA-AI-011 documents without their data. */
#include "ui/document.h"
#include "ui/json.h"
#include "ui/open_file.h"
#include "ui/table.h"
#include "ui/text.h"
#include "ui/whole_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LARGEST_DOCUMENT 100000000u     /* bytes */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

tn_status document_read(const char *path, tn_descriptors **set, bool *list, tn_error *err)
{
    char *text;
    size_t n, first = 0;
    tn_status status = whole_file_read(path, LARGEST_DOCUMENT, &text, &n, err);
    if (status != TN_OK)
        return status;
    while (first < n && is_space(text[first]))
        first++;
    *list = first < n && text[first] == '[';
    status = tn_descriptors_parse(text, n, set, err);
    free(text);
    return status;
}

/* ---- reading ---- */

/* A regular file (a pipe has been consumed) that begins like JSON. */
static bool may_be_document(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode))
        return false;
    FILE *f = fopen(path, "rb");
    int c = f ? getc(f) : EOF;
    while (c != EOF && is_space((char)c))
        c = getc(f);
    if (f)
        fclose(f);
    return c == '{' || c == '[';
}

/* The errors that "tenon check" would report. */
static bool is_right(const tn_descriptors *set)
{
    for (size_t i = 0; i < tn_descriptors_count(set); i++) {
        size_t wrong;
        if (tn_descriptor_check(tn_descriptors_at(set, i), NULL, &wrong, NULL) != TN_OK || wrong > 0)
            return false;
    }
    return true;
}

/* The descriptors of a document that passes "tenon check"; NULL: it does not. */
static tn_descriptors *read_right(const char *path)
{
    tn_descriptors *set = NULL;
    bool list;
    if (!may_be_document(path) || document_read(path, &set, &list, &(tn_error){ .status = TN_OK }) != TN_OK)
        return NULL;
    if (is_right(set))
        return set;
    tn_descriptors_free(set);
    return NULL;
}

static bool has_shape(const tn_descriptor *d)
{
    return d->dimensions || !tn_descriptor_is_fragment(d);
}

/* ---- one descriptor as text ---- */

static const char *form_of(const tn_descriptor *d)
{
    if (d->sparse.format)
        return tn_form_name(strcmp(d->sparse.format, "COO") == 0 ? TN_FORM_COO : TN_FORM_CSR);
    for (size_t i = 0; i < d->nextra; i++) {
        if (strcmp(d->extra[i].path, "dtype") == 0 && strcmp(d->extra[i].key, "quantization") == 0)
            return "quantized";         /* by a scheme that the specification does not define */
    }
    return tn_form_name(d->quantization.scheme != TN_QUANT_NONE ? TN_FORM_SCALED : TN_FORM_DENSE);
}

static tn_dtype type_in(const tn_descriptor *d)
{
    return d->sparse.format ? d->sparse.value_type : d->dtype;
}

/* "[batch, 768]"; the names are letters, digits and _, but of any length. */
static void put_shape(char *text, size_t room, const tn_descriptor *d)
{
    size_t used = (size_t)snprintf(text, room, "[");
    for (uint32_t i = 0; i < d->rank && used < room; i++) {
        const tn_wia_extent *e = &d->dimensions[i];
        const char *comma = i > 0 ? ", " : "";
        if (e->symbol)
            used += (size_t)snprintf(text + used, room - used, "%s%.60s", comma, e->symbol);
        else
            used += (size_t)snprintf(text + used, room - used, "%s%lld", comma, (long long)e->value);
    }
    if (used < room)
        snprintf(text + used, room - used, "]");
}

/* The bytes of the elements, for symbols the most they allow.  False: unknown, or no bound. */
static bool size_of(const tn_descriptor *d, uint64_t *bytes, bool *most)
{
    int64_t shape[TN_MAX_RANK];
    *most = false;
    for (uint32_t i = 0; i < d->rank; i++) {
        *most |= d->dimensions[i].symbol != NULL;
        shape[i] = d->dimensions[i].value;
    }
    if (*most)
        return tn_descriptor_max_bytes(d, bytes, NULL) == TN_OK;
    const tn_array array = { .dtype = d->dtype, .rank = d->rank, .shape = shape };
    return !d->sparse.format && has_shape(d) && tn_array_nbytes(&array, bytes) == TN_OK;
}

static void size_cell(table *t, const tn_descriptor *d)
{
    uint64_t bytes;
    bool most;
    char text[80] = "-";
    if (size_of(d, &bytes, &most))
        snprintf(text, sizeof text, "%s%s", most ? "up to " : "", human_size(bytes).s);
    table_cell(t, text);
}

static void long_notes(table *t, const tn_descriptor *d)
{
    if (d->layout && *d->layout)
        table_note(t, "layout %s", escaped(d->layout));
    if (d->physical_shape)
        table_note(t, "padded to %s", shape_of(d->rank, d->physical_shape).s);
    for (size_t i = 0; i < d->nconstraints; i++) {
        const tn_wia_constraint *k = &d->constraints[i];
        char bound[40] = " or more", multiple[60] = "";
        if (k->max != INT64_MAX)
            snprintf(bound, sizeof bound, " to %lld", (long long)k->max);
        if (k->multiple_of > 1)
            snprintf(multiple, sizeof multiple, ", a multiple of %lld", (long long)k->multiple_of);
        table_note(t, "%s: %lld%s%s", escaped(k->symbol), (long long)k->min, bound, multiple);
    }
}

/* What a fragment without a shape describes. */
static const char *kind_of(const tn_descriptor *d)
{
    if (has_shape(d))
        return "-";
    return d->buffer_handle.type || d->mapping.present ? "sharing" : "quantization";
}

static void list_rows(const tn_descriptors *set, bool long_list)
{
    static const char *const headings[] = { "name", "type", "shape", "size", NULL };
    enum { ROOM = TN_MAX_RANK * 64 };
    char *shape = must_allocate(ROOM, 1);
    table t;
    table_begin(&t, headings, 1u << 3);
    for (size_t i = 0; i < tn_descriptors_count(set); i++) {
        const tn_descriptor *d = tn_descriptors_at(set, i);
        put_shape(shape, ROOM, d);
        table_name(&t, d->name ? d->name : "-");
        if (tn_descriptor_is_fragment(d))
            table_cell(&t, kind_of(d));
        else
            table_cell(&t, type_and_form(type_in(d), form_of(d), d->base_type).s);
        table_cell(&t, has_shape(d) ? shape : "-");
        size_cell(&t, d);
        if (long_list)
            long_notes(&t, d);
    }
    table_end(&t);
    out("%s without data\n", counted(tn_descriptors_count(set), "descriptor").s);
    free(shape);
}

/* ---- JSON ---- */

static void json_dimensions(const tn_descriptor *d)
{
    json_key("shape");
    if (!has_shape(d)) {
        json_word("null");
        return;
    }
    json_open('[');
    for (uint32_t i = 0; i < d->rank; i++) {
        if (d->dimensions[i].symbol)
            json_text(d->dimensions[i].symbol);
        else
            json_int(d->dimensions[i].value);
    }
    json_close(']');
}

static void json_descriptor(const tn_descriptor *d)
{
    const tn_dtype_info *info = tn_dtype_get(type_in(d));
    uint64_t bytes;
    bool most, sized = size_of(d, &bytes, &most);
    json_open('{');
    json_text_field("name", d->name);
    json_bool_field("fragment", tn_descriptor_is_fragment(d));
    json_text_field("form", form_of(d));
    json_text_field("dtype", info ? info->name : NULL);
    json_text_field("type", d->base_type);
    json_dimensions(d);
    if (sized)
        json_uint_field(most ? "max_bytes" : "nbytes", bytes);
    json_text_field("layout", d->layout);
    json_close('}');
}

static void list_json(const char *path, const tn_descriptors *set, const tn_error *why)
{
    json_open('{');
    json_text_field("file", path);
    json_text_field("format", "raw");
    json_text_field("without_data", error_text(path, why));
    json_key("tensors");
    json_open('[');
    for (size_t i = 0; i < tn_descriptors_count(set); i++)
        json_descriptor(tn_descriptors_at(set, i));
    json_close(']');
    json_close('}');
    json_end();
}

/* ---- a document ---- */

int document_list(const opts *o, const char *path, bool *listed, const tn_error *why)
{
    tn_descriptors *set = o->from && strcmp(o->from, "raw") != 0 ? NULL : read_right(path);
    if (!set)
        return refuse_file(o, path, why);
    if (o->json) {
        list_json(path, set, why);
    } else {
        list_heading(o, path, listed);
        list_rows(set, o->long_list);
    }
    tn_descriptors_free(set);
    if (why->status != TN_ERR_UNSUPPORTED && why->status != TN_ERR_IO)
        return say_error(path, why);        /* data contradicts its descriptor */
    say("%s: listed without data: %s", escaped(path), error_text(path, why));
    return EXIT_DONE;
}
