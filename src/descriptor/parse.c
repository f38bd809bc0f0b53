/* descriptor/parse.c - a WIA-AI-011 document: one descriptor or an array of
 * them.
 *
 * Every member of every object is a row in a table.  Members may come in any
 * order, so what one says about another (how many strides there are, what type
 * inline values have) waits for the end of the descriptor. */
#include "descriptor/reader.h"
#include "base/pages.h"

#include <stdlib.h>

/* --- properties and metadata --- */

static void read_properties(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_VALUE("requires_grad", TN_WIA_BOOL, tn_descriptor, requires_grad),
        TN_WIA_VALUE("is_pinned", TN_WIA_BOOL, tn_descriptor, is_pinned),
        TN_WIA_VALUE("is_contiguous", TN_WIA_BOOL, tn_descriptor, is_contiguous),
        TN_WIA_VALUE("zero_copy_compatible", TN_WIA_BOOL, tn_descriptor, zero_copy_compatible)
    };
    r->d->has_properties = true;
    tn_wia_object(r, "properties", fields, TN_WIA_COUNT(fields), r->d);
}

static void read_metadata(tn_wia_reader *r)
{
    if (tn_json_peek(&r->j) == TN_JSON_OBJECT)
        r->d->metadata = tn_wia_raw(r);
    else
        tn_json_unexpected(&r->j, "an object");
}

/* --- the zero-copy block --- */

/* Required members: a missing address or handle is not 0. Bit i means fields[i]. */
static void require(tn_wia_reader *r, size_t at, const tn_wia_field *fields, unsigned required, unsigned have)
{
    for (unsigned i = 0, missing = required & ~have; missing >> i; i++)
        if (missing >> i & 1)
            tn_wia_reject(r, at, "expected the member %s but found none", fields[i].name.ptr);
}

static void read_buffer_handle(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_WORD("type", TN_WIA_ENUM, buffer_handle.type, &tn_handle_type_words),
        TN_WIA_VALUE("handle", TN_WIA_I64, tn_descriptor, buffer_handle.handle),
        TN_WIA_VALUE("size_bytes", TN_WIA_SIZE, tn_descriptor, buffer_handle.size_bytes),
        TN_WIA_WORD("permissions", TN_WIA_FLAG, buffer_handle.read_only, &tn_permission_words)
    };
    size_t at = tn_wia_at(r);
    require(r, at, fields, 0xf, tn_wia_object(r, "buffer_handle", fields, TN_WIA_COUNT(fields), r->d));
}

/* "0x7f0012345000" */
static uint64_t read_address(tn_wia_reader *r)
{
    size_t at, digits = 0;
    tn_text text = tn_wia_string(r, &at);
    uint64_t address = 0;
    for (size_t i = 2; i < text.len; i++, digits++) {
        int digit = tn_hex_digit(text.ptr[i]);
        if (digit < 0 || address >> 60) {
            digits = 0;
            break;
        }
        address = address << 4 | (uint64_t)digit;
    }
    if (!digits || memcmp(text.ptr, "0x", 2) != 0)
        tn_wia_reject(r, at, "expected a hexadecimal address of 64 bits as \"0x1f00\" but found %s",
                      tn_quote(text.ptr, text.len).text);
    return address;
}

static void read_device_address(tn_wia_reader *r)
{
    r->d->mapping.device_address = read_address(r);
}

static void read_cpu_address(tn_wia_reader *r)
{
    tn_wia_mapping *m = &r->d->mapping;
    m->cpu_mapped = tn_json_peek(&r->j) != TN_JSON_NULL;
    if (m->cpu_mapped)
        m->cpu_address = read_address(r);
    else
        tn_json_null(&r->j);
}

static void read_mapping(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("device_address", read_device_address),
        TN_WIA_WORD("access_mode", TN_WIA_FLAG, mapping.cpu_device, &tn_access_mode_words),
        TN_WIA_FIELD("cpu_address", read_cpu_address)           /* optional; null by default */
    };
    size_t at = tn_wia_at(r);
    r->d->mapping.present = true;
    require(r, at, fields, 0x3, tn_wia_object(r, "mapping", fields, TN_WIA_COUNT(fields), r->d));
}

/* --- a descriptor --- */

static void read_version(tn_wia_reader *r)
{
    size_t at;
    tn_text text = tn_wia_string(r, &at);
    r->d->version = tn_text_is(text, TN_WIA_VERSION) ? TN_WIA_VERSION : tn_wia_kept(r, text);
}

/* Rows of the table below, as bits. */
enum { SHAPE = 1 << 3, PROPERTIES = 1 << 6, METADATA = 1 << 7, HANDLE = 1 << 10, MAPPING = 1 << 11 };

static const tn_wia_field descriptor_fields[] = {
    TN_WIA_FIELD("version", read_version),
    TN_WIA_VALUE("tensor_id", TN_WIA_TEXT, tn_descriptor, tensor_id),
    TN_WIA_VALUE("name", TN_WIA_TEXT, tn_descriptor, name),
    TN_WIA_FIELD("shape", tn_wia_read_shape),
    TN_WIA_FIELD("dtype", tn_wia_read_dtype),
    TN_WIA_FIELD("memory", tn_wia_read_memory),
    TN_WIA_FIELD("properties", read_properties),
    TN_WIA_FIELD("metadata", read_metadata),
    TN_WIA_FIELD("physical_shape", tn_wia_read_physical_shape),
    TN_WIA_FIELD("padding", tn_wia_read_padding),
    TN_WIA_FIELD("buffer_handle", read_buffer_handle),
    TN_WIA_FIELD("mapping", read_mapping),
    TN_WIA_FIELD("format", tn_wia_read_format),
    TN_WIA_FIELD("nnz", tn_wia_read_nnz),
    TN_WIA_FIELD("indices", tn_wia_read_indices),
    TN_WIA_FIELD("row_pointers", tn_wia_read_pointers),
    TN_WIA_FIELD("column_indices", tn_wia_read_columns),
    TN_WIA_FIELD("values", tn_wia_read_values),
};

bool tn_wia_is_member(tn_text name)
{
    return tn_wia_has_field(descriptor_fields, TN_WIA_COUNT(descriptor_fields), name) ||
        tn_wia_is_quantization_member(name);
}

/* Checks that need the rank, which may come last. */
static void check_lists(tn_wia_reader *r)
{
    for (int i = 0; i < TN_WIA_LISTS; i++)
        if (r->notes.lists[i].there && r->notes.lists[i].count != r->d->rank)
            tn_wia_reject(r, r->notes.lists[i].at, "expected %u items, one for each dimension, but found %u",
                          r->d->rank, r->notes.lists[i].count);
}

/* Two examples of the specification have no shape: only a quantization, or a handle with its mapping. */
static void read_without_shape(tn_wia_reader *r, unsigned have)
{
    const unsigned sharing = HANDLE | MAPPING, beside = PROPERTIES | METADATA;
    if (r->j.status)
        return;
    if (!have && tn_find_extra(r->extra, r->nextra, "", "scheme"))
        tn_wia_read_quantization_alone(r, r->notes.at);
    else if (!(have & sharing) || (have & ~(sharing | beside)))
        tn_wia_reject(r, r->notes.at, "expected a shape but found none");
}

static void read_descriptor(tn_wia_reader *r)
{
    r->d = tn_descriptors_add(r->set);
    if (!r->d) {
        tn_wia_nomem(r);
        return;
    }
    r->notes = (struct tn_wia_notes){ .at = tn_wia_at(r) };
    r->nextra = r->nconstraints = 0;
    unsigned have = tn_wia_object(r, "", descriptor_fields, TN_WIA_COUNT(descriptor_fields), r->d);
    if (!(have & SHAPE))
        read_without_shape(r, have);
    check_lists(r);
    tn_wia_finish_sparse(r);
    r->d->nextra = r->nextra;
    if (r->nextra)
        r->d->extra = tn_wia_copy(r, r->extra, r->nextra * sizeof *r->extra);
}

/* --- a document --- */

/* Room for the usual number of descriptors in n bytes; it grows when needed. */
static void expect(tn_wia_reader *r, size_t n)
{
    enum { USUAL = 512 };
    size_t cap = n / USUAL + 1;
    r->set->items =
        cap <= SIZE_MAX / sizeof *r->set->items ? tn_pages_alloc(cap * sizeof *r->set->items) : NULL;
    r->set->cap = r->set->items ? cap : 0;
    if (!r->set->items)
        tn_wia_nomem(r);
}

static void read_document(tn_wia_reader *r)
{
    switch (tn_json_peek(&r->j)) {
    case TN_JSON_OBJECT:
        read_descriptor(r);
        break;
    case TN_JSON_ARRAY:
        expect(r, r->j.end);
        tn_json_array(&r->j);
        while (tn_json_item(&r->j))
            read_descriptor(r);
        break;
    default:
        tn_json_unexpected(&r->j, "a descriptor or an array of them");
    }
    tn_json_done(&r->j);
}

/* `depth`: the containers around the text. */
static tn_status parse(const char *json, size_t n, unsigned depth, tn_descriptors **set, tn_error *err)
{
    tn_wia_reader r = { 0 };
    tn_status status = tn_descriptors_new(&r.set, err);
    if (status)
        return status;
    tn_json_init(&r.j, json, n, &r.set->arena);
    r.j.depth = depth;
    read_document(&r);
    if (r.j.status)
        status = tn_wia_fail(&r, n ? json : "", n, err);
    if (status)
        tn_descriptors_free(r.set);
    else
        *set = r.set;
    free(r.keys.items);
    free(r.extra);
    free(r.constraints);
    free(r.words);
    return status;
}

tn_status tn_descriptors_parse(const char *json, size_t n, tn_descriptors **set, tn_error *err)
{
    TN_GIVEN(json || !n, "a text", err);
    TN_GIVEN(set, "a place for the descriptors", err);
    return parse(json ? json : "", n, 0, set, err);
}

tn_status tn_descriptor_readable(const char *json, size_t n, bool in_list, tn_error *err)
{
    tn_descriptors *set;
    TN_TRY(parse(json, n, in_list, &set, err));
    tn_descriptors_free(set);
    return TN_OK;
}
