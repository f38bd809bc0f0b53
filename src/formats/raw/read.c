/* formats/raw/read.c - descriptors, the index of their data. */
#include "formats/raw/raw.h"
#include "base/error.h"
#include "store/record.h"
#include "bytes/json.h"
#include "descriptor/descriptor.h"
#include "tensor/array.h"

#include <stdlib.h>
#include <string.h>

/* The document being read. */
typedef struct reader {
    tn_file        *file;
    tn_descriptors *set;
    const uint64_t *at;         /* offset of each descriptor */
    uint32_t        data;       /* shard of the .bin */
    tn_raw_numbers  numbers;
    tn_properties  *properties; /* of each descriptor; NULL: none has any */
} reader;

/* The descriptor being read. */
typedef struct subject {
    const tn_descriptor *d;
    tn_entry             e;
    tn_dtype             value_dtype;   /* of a quantized tensor */
    tn_dtype             index_dtype;   /* of a CSR tensor; TN_UNKNOWN: missing */
    bool                 typed;         /* codes of a datatype... */
    tn_raw_scaled        scaled;        /* ...which this describes */
    tn_text              file_meta;     /* JSON, or len 0 */
} subject;

/* --- for writing too --- */

const char *tn_raw_data_path(const char *path, const char *name, tn_arena *arena)
{
    if (name)
        return tn_arena_printf(arena, "%.*s%s", (int)(tn_base_name(path) - path), path, name);
    return tn_arena_printf(arena, "%.*s" TN_RAW_DATA_SUFFIX, (int)tn_pair_stem(&tn_raw_pair, path), path);
}

/* The member TN_RAW_OWN, or an empty object. */
static const char *own_json(const tn_descriptor *d)
{
    for (size_t i = 0; i < d->nextra; i++)
        if (!*d->extra[i].path && strcmp(d->extra[i].key, TN_RAW_OWN) == 0)
            return d->extra[i].json;
    return "{}";
}

tn_status tn_raw_data_name(const tn_descriptor *first, uint64_t at, tn_arena *arena, const char **name,
                           tn_error *err)
{
    const char *json = own_json(first);
    tn_text key, text;
    tn_json j;
    *name = NULL;
    tn_json_init(&j, json, strlen(json), arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (!tn_text_is(key, TN_RAW_DATA)) {
            tn_json_skip(&j);
            continue;
        }
        text = tn_json_string(&j);
        if (j.status == TN_ERR_NOMEM)
            return tn_fail_nomem(err);
        if (j.status || !tn_is_plain_name(text))
            return tn_fail_at(err, TN_ERR_CORRUPT, at, TN_RAW_OWN "." TN_RAW_DATA
                              ": expected the plain name of a file in the same folder but found %s",
                              j.status ? "something else" : tn_quote(text.ptr, text.len).text);
        *name = tn_arena_text(arena, text.ptr, text.len);
        TN_NEED(*name, err);
    }
    return TN_OK;               /* other faults are reported by take_own() */
}

tn_status tn_raw_check(const tn_descriptor *d, uint64_t at, tn_status if_wrong, tn_error *err)
{
    tn_error why;
    tn_status status = tn_descriptor_check_first(d, true, &why);
    if (status == TN_ERR_CORRUPT)
        return tn_in_tensor(tn_fail_at(err, if_wrong, at, "%s", why.text), d->name, err);
    if (status && err)
        *err = why;
    return status;
}

/* --- the document --- */

/* Where each descriptor begins; the text is known to be good. */
static tn_status locate(reader *r, tn_text text, tn_error *err)
{
    size_t n = tn_descriptors_count(r->set);
    uint64_t *at = tn_arena_zalloc(&r->file->arena, n, sizeof *at);
    tn_json j;
    TN_NEED(at, err);
    tn_json_init(&j, text.ptr, text.len, &r->file->arena);
    bool list = tn_json_peek(&j) == TN_JSON_ARRAY;
    if (list)
        tn_json_array(&j);
    for (size_t i = 0; i < n && (!list || tn_json_item(&j)); i++) {
        tn_json_peek(&j);
        at[i] = j.pos;
        tn_json_skip(&j);
    }
    r->at = at;
    return TN_OK;
}

/* The name of a descriptor without one: NAME of the file, or NAME.3. */
static const char *default_name(reader *r, size_t i)
{
    const char *stem = tn_file_stem(r->file, TN_RAW_SUFFIX);
    if (!stem || tn_descriptors_count(r->set) == 1)
        return stem;
    return tn_arena_printf(&r->file->arena, "%s.%zu", stem, i);
}

/* Names and checks all descriptors before any of them is used. */
static tn_status check_all(reader *r, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < r->set->count && !status; i++) {
        tn_descriptor *d = &r->set->items[i];
        if (tn_descriptor_is_fragment(d))
            return tn_fail_at(err, TN_ERR_UNSUPPORTED, r->at[i],
                              "a fragment of a descriptor, without version, name and dtype: "
                              "it describes no tensor");
        d->name = d->name ? tn_arena_text(&r->file->arena, d->name, strlen(d->name)) : default_name(r, i);
        status = d->name ? tn_raw_check(d, r->at[i], TN_ERR_CORRUPT, err) : tn_fail_nomem(err);
        if (!status && d->symbolic)
            status = tn_with_reason(tn_fail_at(err, TN_ERR_UNSUPPORTED, r->at[i],
                                            "its shape has symbols: its data cannot be read before they have "
                                            "values"),
                                    TN_REASON_BIND, NULL, err);
        if (d->name)
            tn_in_tensor(status, d->name, err);
    }
    return status;
}

/* --- the data --- */

/* The suffix of descriptors of a file of another format. */
#define SIDECAR ".wia.json"

static tn_status open_data(reader *r, tn_error *err)
{
    tn_file *f = r->file;
    if (!*f->shards[0].path)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "these are descriptors, whose data is in a .bin file: open them by path");
    const char *name = NULL;
    TN_TRY(tn_raw_data_name(&r->set->items[0], r->at[0], &f->arena, &name, err));
    const char *path = tn_raw_data_path(f->shards[0].path, name, &f->arena);
    TN_NEED(path, err);
    tn_status status = tn_file_add_shard(f, path, &r->data, err);
    size_t n = strlen(f->shards[0].path), suffix = strlen(SIDECAR);
    if (status == TN_ERR_IO && n > suffix && tn_ends_with(f->shards[0].path, SIDECAR))
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "it describes the tensors of %s, which has the data: open that",
                       tn_quote(f->shards[0].path, n - suffix).text);
    return tn_in_file(status, path, err);
}

static tn_status open_shards(reader *r, tn_error *err)
{
    bool data = false;
    size_t size = 0;
    for (size_t i = 0; i < r->set->count; i++) {
        data |= !r->set->items[i].sparse.format;
        size += tn_raw_numbers_size(&r->set->items[i]);
    }
    if (data && open_data(r, err))
        return err->status;
    return size ? tn_raw_numbers_open(&r->numbers, r->file, size, err) : TN_OK;
}

/* --- shape and strides --- */

static tn_status take_shape(reader *r, subject *s, tn_error *err)
{
    const tn_descriptor *d = s->d;
    bool sparse = d->sparse.format != NULL;
    uint32_t rank = sparse ? d->sparse.rank : d->rank;
    int64_t *shape = tn_arena_zalloc(&r->file->arena, rank, sizeof *shape);
    TN_NEED(shape, err);
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = sparse ? d->sparse.shape[i] : d->dimensions[i].value;
    s->e.rank = rank;
    s->e.shape = shape;
    return TN_OK;
}

/* Whether these are the strides of a dense array.  Its size is known to fit. */
static bool is_dense(uint32_t rank, const int64_t *extents, const int64_t *stride)
{
    int64_t dense[TN_MAX_RANK];
    tn_dense_strides(rank, extents, dense);
    for (uint32_t i = 0; i < rank; i++)
        if (extents[i] > 1 && stride[i] != dense[i])
            return false;
    return true;
}

static tn_status take_strides(const subject *s, int64_t *stride, tn_error *err)
{
    for (uint32_t i = 0; i < s->e.rank; i++) {
        stride[i] = s->d->strides[i].factor;
        if (stride[i] < 0)
            return tn_fail_at(err, TN_ERR_UNSUPPORTED, s->e.at,
                              "memory.strides[%u]: expected a stride that is not negative but found %lld", i,
                              (long long)stride[i]);
    }
    return TN_OK;
}

/* Elements with strides must not share bytes: a few bytes could be any number of
 * elements. */
static tn_status place_strided(subject *s, const int64_t *stride, uint64_t nbytes, tn_error *err)
{
    tn_stored *stored = &s->e.stored;
    if (tn_strided_nbytes(s->e.dtype, s->e.rank, s->e.shape, stride, &stored->size))
        return tn_fail_at(err, TN_ERR_LIMIT, s->e.at, "its strides span more than 2^63 bytes");
    if (nbytes > stored->size)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, s->e.at,
                          "its elements take %llu bytes but its strides span only %llu: elements that share "
                          "bytes are not read", (unsigned long long)nbytes, (unsigned long long)stored->size);
    s->e.more.stride = stride;
    return TN_OK;
}

/* Sets the size, strides and padding of the elements. */
static tn_status place(reader *r, subject *s, tn_error *err)
{
    const tn_descriptor *d = s->d;
    tn_entry *e = &s->e;
    const int64_t *extents = d->physical_shape ? d->physical_shape : e->shape;
    bool padded = e->rank && memcmp(extents, e->shape, e->rank * sizeof *extents) != 0;
    uint64_t nbytes;
    if (tn_shape_nbytes(e->dtype, e->rank, e->shape, &nbytes) ||
        tn_shape_nbytes(e->dtype, e->rank, extents, &e->stored.size))
        return tn_fail_at(err, TN_ERR_LIMIT, e->at, "its shape takes more than 2^63 bytes");
    if (!nbytes)
        e->stored.size = 0;
    if (!nbytes || (!padded && !d->strides))
        return TN_OK;
    int64_t *stride = tn_arena_zalloc(&r->file->arena, e->rank, sizeof *stride);
    TN_NEED(stride, err);
    if (d->strides && take_strides(s, stride, err))
        return err->status;
    if (d->strides && !is_dense(e->rank, extents, stride))
        return place_strided(s, stride, nbytes, err);
    if (!padded)
        return TN_OK;
    tn_dense_strides(e->rank, extents, stride);
    e->more.stride = stride;
    const tn_padded all = { tn_arena_copy(&r->file->arena, extents, e->rank * sizeof *extents),
                            d->has_padding ? d->padding.fill : 0 };
    e->padded = all.shape ? tn_arena_copy(&r->file->arena, &all, sizeof all) : NULL;
    return e->padded ? TN_OK : tn_fail_nomem(err);
}

static tn_status check_inside(const reader *r, const subject *s, tn_error *err)
{
    const tn_shard *data = &r->file->shards[r->data];
    const tn_stored *stored = &s->e.stored;
    uint64_t have = tn_source_size(data->source);
    if (s->d->has_total && s->d->total_bytes > have)
        return tn_fail_at(err, TN_ERR_CORRUPT, s->e.at,
                          "memory.total_bytes: expected at most the %llu bytes of %s but found %llu",
                          (unsigned long long)have, tn_quote_z(data->path).text,
                          (unsigned long long)s->d->total_bytes);
    if (stored->offset > have || stored->size > have - stored->offset)
        return tn_fail_at(err, TN_ERR_CORRUPT, s->e.at,
                          "its elements take %llu bytes from %llu on but %s has %llu",
                          (unsigned long long)stored->size, (unsigned long long)stored->offset,
                          tn_quote_z(data->path).text, (unsigned long long)have);
    return TN_OK;
}

/* --- metadata and the member of Tenon --- */

static tn_status take_own(reader *r, subject *s, tn_error *err)
{
    const char *json = own_json(s->d);
    tn_text key;
    tn_json j;
    s->value_dtype = TN_FLOAT32;
    tn_json_init(&j, json, strlen(json), &r->file->arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (tn_text_is(key, TN_RAW_VALUE_TYPE))
            s->value_dtype = tn_json_dtype(&j);
        else if (tn_text_is(key, TN_RAW_INDEX_TYPE))
            s->index_dtype = tn_json_dtype(&j);
        else if (tn_text_is(key, TN_RAW_FILE_META))
            s->file_meta = tn_json_raw(&j);
        else if (!s->typed || !tn_raw_take_scaled_item(&j, key, &s->scaled))
            tn_json_skip(&j);
    }
    return j.status ? tn_fail_at(err, j.status, s->e.at, TN_RAW_OWN ": %s", j.why) : TN_OK;
}

/* Adds the path of the member to the error of its metadata. */
static tn_status fail_meta(const subject *s, const char *path, const tn_error *why, tn_error *err)
{
    if (why->status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    return tn_fail_at(err, why->status, s->e.at, "%s: %s", path, why->text);
}

static tn_status take_meta(reader *r, subject *s, bool first, tn_error *err)
{
    tn_arena *arena = &r->file->arena;
    size_t n = 0;
    const char *json = s->d->metadata;
    tn_error why;
    if (json && tn_meta_read_json((tn_text){ json, strlen(json) }, arena, &s->e.meta, &n, &why))
        return fail_meta(s, "metadata", &why, err);
    s->e.nmeta = (uint32_t)n;
    if (first && s->file_meta.len &&
        tn_meta_read_json(s->file_meta, arena, &r->file->meta, &r->file->nmeta, &why))
        return fail_meta(s, TN_RAW_OWN "." TN_RAW_FILE_META, &why, err);
    return TN_OK;
}

/* --- one tensor --- */

/* The form of a tensor that is listed but not read: codes of another scheme, and sparse tensors that are
 * quantized or too large; NULL: it is read. */
static const char *opaque_form(const subject *s)
{
    const tn_descriptor *d = s->d;
    if (!d->sparse.format)
        return tn_other_scheme(d) && !s->typed ? "quantized" : NULL;
    if (tn_raw_is_sparse(d))
        return NULL;
    return strcmp(d->sparse.format, "COO") == 0 ? "COO" : "CSR";
}

static tn_status take_storage(reader *r, subject *s, tn_error *err)
{
    const tn_descriptor *d = s->d;
    tn_entry *e = &s->e;
    e->stored = (tn_stored){ .order = (uint8_t)d->byte_order };
    e->more = (tn_stored_more){ .opaque = opaque_form(s) };
    e->dtype = d->sparse.format ? d->sparse.value_type : d->dtype;
    const tn_text type = { d->base_type, d->base_type ? strlen(d->base_type) : 0 };
    e->stored.type = type.ptr ? tn_file_text(r->file, type, "type", e->at, err)
                              : tn_type_label(tn_dtype_get(e->dtype));
    if (!e->stored.type)
        return err->status;
    if (d->sparse.format)
        return TN_OK;
    e->stored.shard = r->data;
    e->stored.offset = d->offset_bytes;
    tn_status status = place(r, s, err);
    return status ? status : check_inside(r, s, err);
}

#define PROPERTIES "properties"

static bool is_property(const tn_wia_extra *extra)
{
    return strcmp(extra->path, PROPERTIES) == 0;
}

/* A member that the reader uses. */
static bool is_taken(const subject *s, const tn_wia_extra *extra)
{
    bool scheme = strcmp(extra->path, "dtype") == 0 && strcmp(extra->key, "quantization") == 0;
    return scheme ? s->typed : !*extra->path && strcmp(extra->key, TN_RAW_OWN) == 0;
}

/* A member that a tensor cannot keep, or NULL.  An id is computed again when a tensor is written. */
static const char *left_out(const subject *s)
{
    const tn_descriptor *d = s->d;
    for (size_t i = 0; i < d->nextra; i++)
        if (!is_taken(s, &d->extra[i]) && !is_property(&d->extra[i]))
            return d->extra[i].key;
    if (d->device.type != TN_DEVICE_CPU || d->device.id || d->device.space != TN_SPACE_HOST)
        return "memory.device";
    if (d->buffer_handle.type != TN_HANDLE_NONE)
        return "buffer_handle";
    return d->mapping.present ? "mapping" : NULL;
}

/* A property, which only descriptors can keep, or NULL.  Losing zero_copy_compatible is no loss. */
static const char *left_out_property(const tn_descriptor *d)
{
    for (size_t i = 0; i < d->nextra; i++)
        if (is_property(&d->extra[i]))
            return d->extra[i].key;
    if (d->requires_grad)
        return "properties.requires_grad";
    return d->is_pinned ? "properties.is_pinned" : NULL;
}

/* Keeps the first of them. */
static tn_status keep_left_out(reader *r, const char *what, const char **left_out, tn_error *err)
{
    if (!what || *left_out)
        return TN_OK;
    *left_out = tn_arena_text(&r->file->arena, what, strlen(what));
    return *left_out ? TN_OK : tn_fail_nomem(err);
}

/* --- properties --- */

static tn_status keep_other_properties(reader *r, const tn_descriptor *d, tn_properties *p, tn_error *err)
{
    tn_arena *arena = &r->file->arena;
    tn_wia_extra *extra = tn_arena_zalloc(arena, d->nextra, sizeof *extra);
    TN_NEED(extra, err);
    for (size_t i = 0; i < d->nextra; i++) {
        const tn_wia_extra *from = &d->extra[i];
        if (!is_property(from))
            continue;
        tn_wia_extra *to = &extra[p->nextra++];
        to->path = PROPERTIES;
        to->key = tn_arena_text(arena, from->key, strlen(from->key));
        to->json = tn_arena_text(arena, from->json, strlen(from->json));
        TN_NEED(to->key && to->json, err);
    }
    p->extra = extra;
    return TN_OK;
}

static tn_status take_properties(reader *r, size_t i, tn_error *err)
{
    const tn_descriptor *d = &r->set->items[i];
    if (!d->has_properties)
        return TN_OK;
    if (!r->properties)
        r->file->properties = r->properties = tn_arena_zalloc(&r->file->arena, r->set->count,
                                                              sizeof *r->properties);
    TN_NEED(r->properties, err);
    r->properties[i] = (tn_properties){ .given = true, .requires_grad = d->requires_grad,
                                        .is_pinned = d->is_pinned,
                                        .zero_copy_compatible = d->zero_copy_compatible };
    tn_status status = keep_other_properties(r, d, &r->properties[i], err);
    return status ? status : keep_left_out(r, left_out_property(d), &r->file->left_out_property, err);
}

/* --- one descriptor --- */

/* The other parts of a tensor that has several. */
static tn_status take_parts(reader *r, subject *s, tn_error *err)
{
    const tn_descriptor *d = s->d;
    if (s->typed || tn_raw_is_quantized(d))
        s->e.value_dtype = s->value_dtype;
    if (tn_raw_is_quantized(d) && tn_raw_take_scales(&r->numbers, d, &s->e, err))
        return err->status;
    if (s->typed && tn_raw_take_datatype(r->file, &s->scaled, &s->e, err))
        return err->status;
    return tn_raw_is_sparse(d) ? tn_raw_take_sparse(&r->numbers, d, s->index_dtype, &s->e, err) : TN_OK;
}

static tn_status read_descriptor(reader *r, size_t i, tn_error *err)
{
    const tn_descriptor *d = &r->set->items[i];
    subject s = { .d = d, .e = { .name = d->name, .at = r->at[i] }, .typed = tn_raw_has_datatype(d) };
    if (take_shape(r, &s, err) || take_storage(r, &s, err) || take_own(r, &s, err) ||
        take_parts(r, &s, err) || take_meta(r, &s, i == 0, err))
        return err->status;
    if (d->layout && !(s.e.layout = tn_arena_text(&r->file->arena, d->layout, strlen(d->layout))))
        return tn_fail_nomem(err);
    if (keep_left_out(r, left_out(&s), &r->file->left_out, err) || take_properties(r, i, err))
        return err->status;
    return tn_file_add(r->file, &s.e, err);
}

/* --- ties --- */

/* NULL comes before any list. */
static int compare_lists(uint32_t rank, const int64_t *a, const int64_t *b)
{
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    return rank ? memcmp(a, b, rank * sizeof *a) : 0;
}

/* 0: the same elements of the same bytes; dense ones may have different shapes. */
static int compare_elements(const tn_part *a, const tn_part *b)
{
    const int64_t *stride = tn_stored_more_of(a)->stride, *other = tn_stored_more_of(b)->stride;
    bool ranks = stride && other;
    const uint64_t x[] = { a->stored->offset, a->stored->size, a->array.dtype, a->stored->order,
                           ranks * a->array.rank };
    const uint64_t y[] = { b->stored->offset, b->stored->size, b->array.dtype, b->stored->order,
                           ranks * b->array.rank };
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    int order = compare_lists(a->array.rank, stride, other);
    if (!order && stride)
        order = compare_lists(a->array.rank, a->array.shape, b->array.shape);
    const int64_t *padded = a->padded ? a->padded->shape : NULL;
    const int64_t *other_padded = b->padded ? b->padded->shape : NULL;
    return order ? order : compare_lists(a->array.rank, padded, other_padded);
}

static int by_elements(const void *a, const void *b)
{
    const tn_tensor *x = *(const tn_tensor *const *)a, *y = *(const tn_tensor *const *)b;
    int order = compare_elements(x->parts, y->parts);
    return order ? order : (x > y) - (x < y);
}

/* Two names for the same elements: the later one is tied to the earlier. */
static tn_status tie(tn_file *f, tn_error *err)
{
    size_t n = 0;
    tn_tensor **sorted = malloc((f->count ? f->count : 1) * sizeof *sorted);
    TN_NEED(sorted, err);
    for (size_t i = 0; i < f->count; i++)
        if (f->tensors[i].nparts == 1 && f->tensors[i].parts->stored->size)
            sorted[n++] = &f->tensors[i];
    qsort(sorted, n, sizeof *sorted, by_elements);
    for (size_t i = 1; i < n; i++)
        if (compare_elements(sorted[i - 1]->parts, sorted[i]->parts) == 0)
            sorted[i]->tied = sorted[i - 1]->tied ? sorted[i - 1]->tied : sorted[i - 1]->name;
    free(sorted);
    return TN_OK;
}

/* --- all --- */

static tn_status read_all(reader *r, tn_error *err)
{
    TN_TRY(check_all(r, err));
    TN_TRY(open_shards(r, err));
    for (size_t i = 0; i < r->set->count; i++)
        TN_TRY(tn_in_tensor(read_descriptor(r, i, err), r->set->items[i].name, err));
    return tie(r->file, err);
}

static tn_status open_raw(tn_file *file, tn_error *err)
{
    tn_text text = { 0 };
    reader r = { .file = file };
    bool failed = tn_file_load(file, TN_RAW_DOCUMENT_MAX, "descriptors", &text, err) ||
                  tn_descriptors_parse(text.ptr, text.len, &r.set, err) || locate(&r, text, err) ||
                  read_all(&r, err);
    tn_descriptors_free(r.set);
    return failed ? err->status : TN_OK;
}

const tn_format tn_format_raw = {
    .info = {
        .name = "raw", .suffix = TN_RAW_SUFFIX,
        .title = "WIA-AI-011 descriptors, and their raw data in a .bin file",
        .reads = true, .writes = true, .probes = true,
    },
    .probe = tn_raw_probe,
    .open = open_raw,
    .type_name = tn_type_label,         /* "tenon:NAME" is written where the specification has none */
    .shares = true,
    .keeps_properties = true,
    .min_align = 64,
    .usual_align = 256,
    .look_beside = tn_raw_look_beside,
    .plan = tn_raw_plan,
    .finish = tn_raw_finish,
};
