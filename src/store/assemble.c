/* store/assemble.c - joining flat entries to tensors by their records. */
#include "store/file.h"
#include "base/error.h"
#include "store/record.h"
#include "tensor/array.h"
#include "store/forms.h"
#include "tensor/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The entry's bytes are an array of another type, for which this container would use such an entry. */
static tn_status apply_array(tn_file *f, size_t i, const tn_record *r, tn_error *err)
{
    tn_part *p = &f->parts[i];
    tn_tensor *t = &f->tensors[i];
    tn_carrier c;
    if (r->dtype == TN_UNKNOWN) {       /* of a later version: listed, cannot be read */
        tn_stored stored = *p->stored;
        stored.type = r->type;
        t->dtype = p->array.dtype = TN_UNKNOWN;
        p->data = NULL;
        p->stored = tn_file_keep_stored(f, &stored, stored.more);
        return p->stored ? TN_OK : tn_fail_nomem(err);
    }
    TN_TRY(tn_carrier_for(f->format, r->dtype, r->rank, r->shape, &c, err));
    if (c.dtype != p->array.dtype || !tn_same_shape(c.rank, c.shape, p->array.rank, p->array.shape))
        return tn_fail_at(err, TN_ERR_CORRUPT, f->at[i],
                          "its record says %s, which is not kept in an array of this type and shape",
                          tn_dtype_get(r->dtype)->name);
    t->dtype = p->array.dtype = r->dtype;
    t->rank = p->array.rank = r->rank;
    t->shape = p->array.shape = r->shape;
    p->data = tn_file_view(f, p);
    return TN_OK;
}

static bool has_room_for_padding(const tn_part *p, const tn_record *r)
{
    bool fits = r->extents_rank == p->array.rank && p->array.dtype != TN_UNKNOWN && isfinite(r->fill);
    for (uint32_t k = 0; fits && k < p->array.rank; k++)
        fits = r->extents[k] <= p->array.shape[k];
    return fits;
}

/* The entry's array has padding: the tensor is smaller and its elements are strided. */
static tn_status apply_extents(tn_file *f, size_t i, const tn_record *r, tn_error *err)
{
    tn_part *p = &f->parts[i];
    tn_tensor *t = &f->tensors[i];
    int64_t *stride = tn_arena_zalloc(&f->arena, p->array.rank, sizeof *stride);
    tn_padded *padded = tn_arena_alloc(&f->arena, sizeof *padded);
    if (!stride || !padded)
        return tn_fail_nomem(err);
    if (!has_room_for_padding(p, r))
        return tn_fail_at(err, TN_ERR_CORRUPT, f->at[i],
                          "its record says that it has padding, which its array cannot hold");
    if (p->stored->encoding != TN_ENCODING_RAW && p->stored->encoding != TN_ENCODING_DEFLATE)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, f->at[i],
                          "it has padding, with which its data may be raw or deflated but not %s",
                          tn_quote_z(tn_stored_encoding(p->stored)).text);
    tn_dense_strides(p->array.rank, p->array.shape, stride);
    tn_stored_more more = *tn_stored_more_of(p);
    more.stride = stride;
    *padded = (tn_padded){ p->array.shape, r->fill };
    p->padded = padded;
    p->array.shape = t->shape = r->extents;
    p->data = NULL;
    p->stored = tn_file_keep_stored(f, p->stored, &more);
    if (!p->stored)
        return tn_fail_nomem(err);
    /* fits: it is no larger than before */
    tn_shape_nbytes(p->array.dtype, p->array.rank, p->array.shape, &p->nbytes);
    return TN_OK;
}

/* A tie stays only if the other tensor exists, comes earlier and has the same type and size. */
static void check_ties(tn_file *f)
{
    for (size_t i = 0; i < f->count; i++) {
        tn_tensor *t = &f->tensors[i];
        const tn_tensor *other = t->tied ? tn_file_find(f, t->tied) : NULL;
        bool good = other && other < t && other->nparts == 1 && t->nparts == 1 && other->dtype == t->dtype &&
                    other->parts[0].array.dtype == t->parts[0].array.dtype &&
                    other->parts[0].nbytes == t->parts[0].nbytes;
        t->tied = good ? other->name : NULL;
    }
}

/* The entry name of part k > 0. */
static const char *entry_of(tn_file *f, const char *name, const tn_record *r, uint32_t k)
{
    return r->entries ? r->entries[k - 1] : tn_arena_printf(&f->arena, "%s.%s", name, r->roles[k]);
}

/* Finds the entry of part k > 0 of the tensor that entry i begins. */
static tn_status find_part(tn_file *f, size_t i, const tn_record *r, uint32_t k, size_t *entry, tn_error *err)
{
    const char *name = f->tensors[i].name, *full = entry_of(f, name, r, k), *wrong = NULL;
    if (!full)
        return tn_fail_nomem(err);
    const tn_tensor *t = tn_file_find(f, full);
    *entry = t ? (size_t)(t - f->tensors) : 0;
    if (!t)
        wrong = "not in the file";
    else if (!t->nparts)
        wrong = "in use by another tensor";
    else if (*entry == i || t->parts != &f->parts[*entry])
        wrong = "a tensor of several parts";
    if (wrong)
        return tn_fail_at(err, TN_ERR_CORRUPT, f->at[i], "its part %s is %s", tn_quote_z(full).text, wrong);
    if (t->nmeta)
        return tn_fail_at(err, TN_ERR_CORRUPT, f->at[*entry], "its part %s has metadata of its own",
                          tn_quote_z(full).text);
    return TN_OK;
}

/* Joins entry i and its other parts to one tensor. The parts get nparts == 0 and are dropped from the
 * list. */
static tn_status apply_tensor(tn_file *f, size_t i, const tn_record *r, tn_error *err)
{
    tn_tensor *t = &f->tensors[i];
    tn_part *parts = tn_arena_zalloc(&f->arena, r->nroles, sizeof *parts);
    if (!parts)
        return tn_fail_nomem(err);
    for (uint32_t k = 0; k < r->nroles; k++) {
        size_t entry = i;
        tn_status status = k ? find_part(f, i, r, k, &entry, err) : TN_OK;
        if (status)
            return status;
        if (k)
            f->tensors[entry].nparts = 0;
        parts[k] = f->parts[entry];
        parts[k].role = r->roles[k];
    }
    t->form = tn_form_parse(r->form);
    t->form_text = t->form == TN_FORM_UNKNOWN ? r->form : NULL;
    t->dtype = r->tensor_dtype;
    t->rank = r->tensor_rank;
    t->shape = r->tensor_shape;
    t->scaling = r->scaling ? tn_scaling_keep(&f->arena, r->scaling, &f->datatype) : NULL;
    t->parts = parts;
    t->nparts = r->nroles;
    if (!r->scaling != !t->scaling)
        return tn_fail_nomem(err);
    const tn_datatype *datatype = tn_scaling_datatype(t->scaling, &f->datatype);
    if (tn_form_check(t, datatype, NULL) == TN_ERR_UNSUPPORTED)
        return TN_OK;           /* a form of a later version is kept as it is */
    return tn_file_says(tn_form_check(t, datatype, err), f->at[i], err);
}

static tn_status apply_layout(tn_file *f, size_t i, const tn_record *r, tn_error *err)
{
    uint32_t rank = r->form ? r->tensor_rank : f->tensors[i].rank;
    const int64_t *shape = r->form ? r->tensor_shape : f->tensors[i].shape;
    tn_status status = tn_layout_check_shape(r->layout, rank, shape, err);
    f->tensors[i].layout = r->layout;
    return tn_file_says(status, f->at[i], err);
}

static tn_status apply_plain(tn_file *f, size_t i, const tn_record *r, tn_error *err)
{
    if (f->tensors[i].nparts > 1 && (r->has_array || r->extents || r->form))
        return tn_fail_at(err, TN_ERR_CORRUPT, f->at[i],
                          "its record and its layout both describe its parts");
    if ((r->has_array && apply_array(f, i, r, err)) || (r->extents && apply_extents(f, i, r, err)) ||
        (r->layout && apply_layout(f, i, r, err)))
        return err->status;
    if (r->nmeta && f->tensors[i].nmeta)
        return tn_fail_at(err, TN_ERR_CORRUPT, f->at[i], "its metadata is in two places");
    if (r->nmeta) {
        f->tensors[i].meta = r->meta;
        f->tensors[i].nmeta = (uint32_t)r->nmeta;
    }
    if (r->nfile_meta && i == 0) {
        f->meta = r->file_meta;
        f->nmeta = r->nfile_meta;
    }
    if (r->tied)
        f->tensors[i].tied = r->tied;
    return TN_OK;
}

/* Drops the entries that became parts and indexes the rest again. */
static tn_status drop_parts(tn_file *f, tn_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (!f->tensors[i].nparts)
            continue;
        f->at[kept] = f->at[i];
        f->tensors[kept++] = f->tensors[i];
    }
    if (kept == f->count)
        return TN_OK;
    f->count = kept;
    return tn_file_index_names(f, err);
}

tn_status tn_file_assemble(tn_file *f, tn_error *err)
{
    tn_record *records = calloc(f->count ? f->count : 1, sizeof *records);
    if (!records)
        return tn_fail_nomem(err);
    tn_status status = TN_OK;
    for (size_t i = 0; i < f->count && !status; i++)
        if (f->records[i].len && (tn_record_parse(f->records[i], f->at[i], &f->arena, &records[i], err) ||
                                  apply_plain(f, i, &records[i], err)))
            status = tn_in_tensor(err->status, f->tensors[i].name, err);
    for (size_t i = 0; i < f->count && !status; i++)
        if (records[i].form && f->tensors[i].nparts)
            status = tn_in_tensor(apply_tensor(f, i, &records[i], err), f->tensors[i].name, err);
    free(records);
    if (!status)
        status = drop_parts(f, err);
    if (!status)
        check_ties(f);
    return status;
}
