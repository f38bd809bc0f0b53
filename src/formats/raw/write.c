/* formats/raw/write.c - the data and its descriptors.
 *
 * Sparse tensors, and the scales and zero points of integer codes, are numbers of
 * the document.  Their bytes are kept in memory until it is written. */
#include "formats/raw/raw.h"
#include "base/checked.h"
#include "base/error.h"
#include "store/publish.h"
#include "store/record.h"
#include "bytes/json.h"
#include "tensor/code.h"
#include "tensor/form.h"
#include "tensor/number.h"

#include <stdlib.h>
#include <string.h>

/* --- planning --- */

static const tn_tensor *whole_of(const tn_writer *w, const tn_out_entry *e)
{
    return w->entries[w->first_entry[e->tensor]].more->whole;
}

static bool is_number(const tn_writer *w, const tn_out_entry *e)
{
    const tn_tensor *t = whole_of(w, e);
    return tn_form_is_sparse(t->form) || (e->part && !tn_form_has_datatype(t));
}

/* A sparse tensor must be read back: its type, and the length of its text. */
static tn_status check_sparse(const tn_tensor *t, uint64_t *least, tn_error *err)
{
    tn_dtype index = t->parts[1].array.dtype;
    TN_TRY(tn_raw_check_sparse(t, err));
    if (index != TN_INT32 && index != TN_INT64)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM,
                         t->form == TN_FORM_COO ? "coo,index=int64" : "csr,index=int64",
                         "a descriptor has indices of int32 or int64 but these are %s",
                         tn_dtype_get(index)->name);
    return tn_raw_check_length(t, least, err);
}

static tn_status check_tensor(const tn_tensor *t, uint64_t *least, tn_error *err)
{
    if (tn_form_is_sparse(t->form))
        return check_sparse(t, least, err);
    if (t->scaling && !t->scaling->datatype && t->parts[1].array.dtype != TN_FLOAT32)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_CAST, "f32",
                         "raw holds scales of float32, not of float64: cast it to a float type");
    if (t->form == TN_FORM_DENSE || t->form == TN_FORM_SCALED)
        return TN_OK;
    return tn_fail(err, TN_ERR_UNSUPPORTED, "raw cannot hold a tensor of form %s",
                   tn_quote_z(tn_tensor_form_name(t)).text);
}

static tn_status check_plan(const tn_writer *w, tn_error *err)
{
    uint64_t least = 0;
    if (tn_ends_with(w->path, TN_RAW_DATA_SUFFIX))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected the name of the descriptors, NAME" TN_RAW_SUFFIX
                       ": the data goes to NAME" TN_RAW_DATA_SUFFIX);
    tn_status status = tn_writer_check_file_meta(w, "raw", err);
    for (size_t i = 0; i < w->ntensors && !status; i++) {
        const tn_tensor *t = w->entries[w->first_entry[i]].more->whole;
        status = tn_in_tensor(check_tensor(t, &least, err), t->name, err);
    }
    return status;
}

/* The largest index of part k that the tensor can have. */
static uint64_t largest_index(const tn_tensor *t, uint32_t k, uint64_t i)
{
    if (k == 2)
        return (uint64_t)t->parts[0].array.shape[0];
    uint32_t dimension = t->parts[1].array.rank == 2 ? (uint32_t)(i % t->rank) : t->rank - 1;
    int64_t extent = t->shape[dimension];
    return extent ? (uint64_t)extent - 1 : 0;
}

/* A dry run has no numbers: it assumes long ones. */
static void fill_in(tn_writer *w, const tn_out_entry *e)
{
    uint8_t *at = w->files[e->file].memory + e->offset;
    const tn_tensor *t = whole_of(w, e);
    const tn_dtype_info *type = tn_real_type(tn_dtype_get(e->dtype));
    bool index = e->part && tn_form_is_sparse(t->form);
    uint64_t longest = tn_dtype_limit(type, type->kind != TN_KIND_UINT);
    for (uint64_t i = 0; i < e->nbytes * 8 / type->bits; i++)
        tn_code_put(at, i, type->bits, index ? largest_index(t, e->part, i) : longest);
}

/* Reserves memory for the numbers of the document. */
static tn_status plan_numbers(tn_writer *w, tn_error *err)
{
    uint64_t size = 0;
    uint32_t file;
    for (size_t i = 0; i < w->count; i++) {
        tn_out_entry *e = &w->entries[i];
        if (!is_number(w, e))
            continue;
        e->offset = size;
        if (!tn_add_u64(size, e->nbytes, &size) || !tn_align_u64(size, sizeof(int64_t), &size))
            return tn_fail(err, TN_ERR_LIMIT,
                           "the numbers of the descriptors would take more than 2^64 bytes");
    }
    tn_status status = tn_writer_add_memory(w, size, &file, err);
    for (size_t i = 0; i < w->count && !status; i++) {
        tn_out_entry *e = &w->entries[i];
        if (!is_number(w, e))
            continue;
        e->file = file;
        if (w->dry_run)
            fill_in(w, e);
    }
    return status;
}

/* Entries whose elements are numbers of the document. */
static size_t count_numbers(const tn_writer *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->count; i++)
        n += is_number(w, &w->entries[i]);
    return n;
}

/* The writer's state. */
typedef struct pair {
    bool replaces;              /* another pair: the name of the data gets an id */
    bool data;                  /* there is a data file */
} pair;

/* The data is the first of the writer's files. */
static tn_status add_data(tn_writer *w, const pair *p, tn_error *err)
{
    uint32_t file;
    const char *name = tn_raw_member_name(w, 0, p->replaces ? TN_SET_NO_ID : NULL);
    tn_status status = name ? tn_writer_check_name(w, name, err) : tn_fail_nomem(err);
    return status ? status : tn_writer_add_member(w, &file, err);
}

tn_status tn_raw_plan(tn_writer *w, tn_error *err)
{
    uint32_t file;
    pair *p = tn_arena_zalloc(&w->arena, 1, sizeof *p);
    TN_NEED(p, err);
    w->state = p;
    if (check_plan(w, err) || tn_raw_plan_old(w, &p->replaces, err))
        return err->status;
    /* Without a tensor there is no descriptor that could name the data. */
    p->data = w->count ? count_numbers(w) < w->count : !p->replaces;
    for (size_t i = 0; i < w->count; i++)
        w->entries[i].checksum = TN_CHECKSUM_CRC32C;        /* for the tensor's id */
    if ((p->data && add_data(w, p, err)) || plan_numbers(w, err))
        return err->status;
    return tn_writer_add_file(w, w->path, &file, err);
}

/* --- the descriptors --- */

static const void *numbers_of(const tn_writer *w, const tn_out_entry *e)
{
    return w->files[e->file].memory + e->offset;
}

/* The checksums of all parts in the data, one after another; NULL without memory. */
static const char *content_of(tn_writer *w, const tn_out_entry *e)
{
    uint32_t n = tn_form_has_datatype(e->more->whole) ? e->more->whole->nparts : 1;
    char *text = tn_arena_zalloc(&w->arena, n, TN_CHECKSUM_TEXT_MAX), *end = text;
    for (uint32_t k = 0; text && k < n; k++) {
        tn_digest_format(e[k].digest, end);
        end += strlen(end);
    }
    return text;
}

/* The tensor whose first part is entry i. */
static tn_status describe(tn_writer *w, size_t i, const tn_buf *own, tn_descriptor *d, tn_error *err)
{
    const tn_out_entry *e = &w->entries[i];
    const tn_tensor *t = e->more->whole;
    bool sparse = tn_form_is_sparse(t->form), typed = tn_form_has_datatype(t), codes = t->scaling && !typed;
    tn_raw_place places[TN_MAX_PARTS];
    const char *content = content_of(w, e);
    TN_NEED(content, err);
    tn_raw_subject s = {
        .tensor = t, .meta = e->more->meta, .nmeta = e->more->nmeta, .properties = e->more->properties,
        .offset = e->offset, .end = e->offset + e->nbytes, .align = w->options.align, .in_place = true,
        .own = i == 0 ? own : NULL,
    };
    if (t->parts[0].padded)
        s.physical = t->parts[0].padded->shape;
    if (!sparse)
        s.content = content;
    if (typed)
        s.places = places;
    if (codes)
        s.scale = numbers_of(w, e + 1);
    if (codes && t->nparts > 2)
        s.zero = numbers_of(w, e + 2);
    for (uint32_t k = 0; k < t->nparts; k++) {
        places[k] = (tn_raw_place){ .offset = e[k].offset, .size = e[k].nbytes };
        if (sparse)
            s.data[k] = numbers_of(w, e + k);
    }
    tn_status status = tn_raw_describe(&s, &w->arena, d, err);
    /* A descriptor that would be refused, such as one with a scale of 0, must not be written. */
    return status || w->dry_run ? status : tn_raw_check(d, TN_NO_OFFSET, TN_ERR_UNSUPPORTED, err);
}

/* Adds the name of the data to the member TN_RAW_OWN.  This comes last: the id of a tensor does not depend on
 * the name of its file. */
static tn_status add_data_name(tn_writer *w, const char *name, tn_descriptor *d, tn_error *err)
{
    tn_wia_extra *extra = tn_arena_zalloc(&w->arena, d->nextra + 1, sizeof *extra);
    size_t own = 0;
    tn_buf json = { 0 };
    TN_NEED(extra, err);
    for (size_t i = 0; i < d->nextra; i++)
        extra[i] = d->extra[i];
    while (own < d->nextra && (*extra[own].path || strcmp(extra[own].key, TN_RAW_OWN) != 0))
        own++;
    const char *others = own < d->nextra ? extra[own].json + 1 : "}";       /* the object without its '{' */
    tn_buf_puts(&json, "{\"" TN_RAW_DATA "\":");
    tn_json_put_z(&json, name);
    if (own < d->nextra)
        tn_buf_putc(&json, ',');        /* it is not empty, or it would not be there */
    tn_buf_puts(&json, others);
    const char *text = json.bad ? NULL : tn_arena_text(&w->arena, (const char *)json.data, json.size);
    tn_buf_free(&json);
    extra[own] = (tn_wia_extra){ .path = "", .key = TN_RAW_OWN, .json = text };
    d->extra = extra;
    d->nextra += own == d->nextra;
    return text ? TN_OK : tn_fail_nomem(err);
}

static tn_status describe_all(tn_writer *w, tn_descriptor *all, tn_error *err)
{
    const pair *p = w->state;
    tn_buf own = { 0 };
    if (w->nmeta) {
        tn_buf_puts(&own, "\"" TN_RAW_FILE_META "\":");
        tn_meta_put_json(&own, w->meta, w->nmeta);
    }
    tn_status status = TN_OK;
    for (size_t i = 0, n = 0; i < w->count && !status; i++)
        if (w->entries[i].part == 0)
            status = describe(w, i, &own, &all[n++], err);
    tn_buf_free(&own);
    if (status || !p->data)
        return status;
    TN_TRY(tn_writer_name_members(w, tn_raw_member_name, p->replaces, err));
    return p->replaces ? add_data_name(w, w->files[0].path, &all[0], err) : TN_OK;
}

tn_status tn_raw_finish(tn_writer *w, tn_error *err)
{
    uint32_t file = (uint32_t)w->nfiles - 1;
    tn_descriptor *all = calloc(w->ntensors ? w->ntensors : 1, sizeof *all);
    char *json = NULL;
    size_t size = 0;
    tn_status status = all ? describe_all(w, all, err) : tn_fail_nomem(err);
    if (!status)
        status = tn_descriptors_write(all, w->ntensors, w->ntensors != 1, &json, &size, err);
    bool guessed = w->dry_run && count_numbers(w);
    if (!status && size > TN_RAW_DOCUMENT_MAX && !guessed)
        status = tn_fail(err, TN_ERR_LIMIT,
                         "the descriptors would take %zu bytes but at most %u can be read back", size,
                         TN_RAW_DOCUMENT_MAX);
    if (!status)
        status = tn_writer_put(w, file, 0, json, size, err);
    w->files[file].end = size;
    free(json);
    free(all);
    return status;
}
