/* store/writer_add.c - declaring tensors and metadata to a writer. */
#include "base/checked.h"
#include "base/error.h"
#include "base/pages.h"
#include "store/forms.h"
#include "store/record.h"
#include "store/stored.h"
#include "store/writer.h"
#include "tensor/array.h"
#include "tensor/layout.h"

#include <stdlib.h>
#include <string.h>

static tn_out_more nothing_more;        /* never changed */

static const char *entry_name(const void *owner, size_t i)
{
    return ((const tn_writer *)owner)->entries[i].name;
}

/* ---- metadata ---- */

/* A value is copied into the index: it must be one item, and not nested too deep to be read back from inside
 * index, entry, record and file metadata. */
static tn_status check_cbor(tn_writer *w, const tn_meta *meta, tn_error *err)
{
    enum { LEVELS = 4, ARRAY_OF_1 = 0x81 };
    tn_buf nested = { 0 };
    tn_cbor c;
    tn_buf_fill(&nested, ARRAY_OF_1, LEVELS);
    tn_buf_put(&nested, meta->cbor, meta->cbor_size);
    tn_cbor_init(&c, nested.data, nested.bad ? 0 : nested.size, &w->arena);
    tn_cbor_skip(&c);
    tn_cbor_done(&c);
    bool nomem = nested.bad || c.status == TN_ERR_NOMEM;
    tn_buf_free(&nested);
    if (nomem)
        return tn_fail_nomem(err);
    return c.status
               ? tn_fail(err, TN_ERR_ARGUMENT, "metadata %s: expected text or one CBOR item: %s",
                         tn_quote_z(meta->key).text, c.why)
               : TN_OK;
}

static tn_status copy_meta(tn_writer *w, const tn_meta *from, tn_meta *to, tn_error *err)
{
    size_t n = strlen(from->key);
    if (tn_utf8_valid(from->key, n) != n ||
        (from->text && tn_utf8_valid(from->text, strlen(from->text)) != strlen(from->text)))
        return tn_fail(err, TN_ERR_ARGUMENT, "metadata %s is not UTF-8", tn_quote_z(from->key).text);
    TN_TRY(from->text ? TN_OK : check_cbor(w, from, err));
    to->key = tn_arena_text(&w->arena, from->key, n);
    to->text = from->text ? tn_arena_text(&w->arena, from->text, strlen(from->text)) : NULL;
    to->cbor = from->text ? NULL : tn_arena_copy(&w->arena, from->cbor, from->cbor_size);
    to->cbor_size = from->text ? 0 : from->cbor_size;
    return to->key && (to->text || to->cbor) ? TN_OK : tn_fail_nomem(err);
}

static tn_status still_declaring(const tn_writer *w, tn_error *err)
{
    if (w->planned && !w->failed)
        return tn_fail(err, TN_ERR_ARGUMENT, "tensors and metadata are added before any data is written");
    return tn_writer_is_good(w, err);
}

tn_status tn_writer_add_meta(tn_writer *w, const tn_meta *meta, tn_error *err)
{
    TN_GIVEN(w, "a writer", err);
    TN_GIVEN(meta, "metadata", err);
    TN_GIVEN(meta->key, "a key", err);
    TN_GIVEN(meta->text || meta->cbor, "a value", err);
    tn_status ready = still_declaring(w, err);
    if (ready)
        return ready;
    TN_NEED(TN_GROW(w->meta, w->nmeta, w->meta_cap), err);
    tn_status status = copy_meta(w, meta, &w->meta[w->nmeta], err);
    w->nmeta += !status;
    return tn_writer_settle(w, status, err);
}

/* ---- entries ---- */

/* The suffix that other software uses for the scales of NAME; NULL: none for this part. */
static const char *ocp_name(const tn_tensor *t, uint32_t part)
{
    const char *role = t->parts[part].role;
    if (t->form != TN_FORM_SCALED)
        return NULL;
    if (strcmp(role, "scale") == 0)
        return "_scale";
    return strcmp(role, "tscale") == 0 ? "_scale_2" : NULL;
}

/* NAME for the first part, NAME.ROLE for the others. */
static const char *name_of_part(tn_writer *w, const tn_tensor *t, uint32_t part)
{
    if (part == 0)
        return tn_arena_text(&w->arena, t->name, strlen(t->name));
    const char *ocp = w->ocp_names ? ocp_name(t, part) : NULL;
    if (ocp)
        return tn_arena_printf(&w->arena, "%s%s", t->name, ocp);
    return tn_arena_printf(&w->arena, "%s.%s", t->name, t->parts[part].role);
}

/* The arrays that a record of several parts points to. */
typedef struct roles_and_names {
    const char *roles[TN_MAX_PARTS], *entries[TN_MAX_PARTS];
} roles_and_names;

/* Describes the tensor in the record of its first part. */
static tn_status record_tensor(tn_writer *w, const tn_tensor *t, tn_record *r, roles_and_names *names,
                               tn_error *err)
{
    bool own_names = false;
    for (uint32_t k = 0; k < t->nparts; k++) {
        names->roles[k] = t->parts[k].role;
        own_names |= w->ocp_names && k && ocp_name(t, k);
    }
    for (uint32_t k = 1; own_names && k < t->nparts; k++)
        if (!(names->entries[k - 1] = name_of_part(w, t, k)))
            return tn_fail_nomem(err);
    r->form = tn_tensor_form_name(t);
    r->tensor_dtype = t->dtype;
    r->tensor_rank = t->rank;
    r->tensor_shape = t->shape;
    r->roles = names->roles;
    r->nroles = t->nparts;
    r->entries = own_names ? names->entries : NULL;
    r->scaling = t->scaling;
    return TN_OK;
}

static tn_status make_record(tn_writer *w, const tn_tensor *t, uint32_t part, bool same, tn_text *out,
                             tn_error *err)
{
    const tn_array *a = &t->parts[part].array;
    roles_and_names names;
    tn_status status = TN_OK;
    tn_record r = { .layout = part == 0 ? t->layout : NULL };
    if (!same) {
        r.has_array = true;
        r.dtype = a->dtype;
        r.rank = a->rank;
        r.shape = tn_padded_shape(&t->parts[part]);
    }
    if (t->parts[part].padded) {
        r.extents = a->shape;
        r.extents_rank = a->rank;
        r.fill = t->parts[part].padded->fill;
    }
    if (part == 0 && (t->nparts > 1 || t->form != TN_FORM_DENSE))
        status = record_tensor(w, t, &r, &names, err);
    if (part == 0 && t->tied && !w->format->shares)
        r.tied = t->tied;
    if (status || tn_record_empty(&r))
        return status;
    tn_buf cbor = { 0 };
    tn_record_put(&r, &cbor);
    out->ptr = cbor.bad ? NULL : tn_arena_copy(&w->arena, cbor.data, cbor.size);
    out->len = cbor.size;
    tn_buf_free(&cbor);
    return out->ptr ? TN_OK : tn_fail_nomem(err);
}

static tn_status find_tie(tn_writer *w, const tn_tensor *t, const tn_out_entry *e, uint32_t *tied,
                          tn_error *err)
{
    size_t k = tn_names_find(&w->names, w, entry_name, t->tied);
    if (k >= w->count || w->entries[k].nbytes != e->nbytes || w->entries[k].dtype != e->dtype ||
        t->nparts != 1 || w->entries[k].encoding != e->encoding || w->entries[k].checksum != e->checksum)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "it cannot be tied to %s: expected an earlier one of the same type and size",
                       tn_quote_z(t->tied).text);
    *tied = w->entries[k].tied != TN_NOT_TIED ? w->entries[k].tied : (uint32_t)k;
    return TN_OK;
}

/* Padding is for mapped files: it is never compressed. */
static tn_status check_padding(const tn_part *p, tn_encoding encoding, tn_error *err)
{
    const int64_t *physical = p->padded ? p->padded->shape : NULL;
    if (physical && encoding != TN_ENCODING_RAW)
        return tn_fail(err, TN_ERR_ARGUMENT, "a tensor with padding cannot be compressed (rows of codes "
                       "narrower than a byte have some too)");
    for (uint32_t i = 0; physical && i < p->array.rank; i++)
        if (physical[i] < p->array.shape[i])
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected at least %lld elements with padding along dimension %u but found %lld",
                           (long long)p->array.shape[i], i, (long long)physical[i]);
    return TN_OK;
}

/* The entry's own `more`, to be filled in; NULL without memory. */
static tn_out_more *more_of(tn_writer *w, tn_out_entry *e)
{
    tn_out_more *more = e->more;
    if (more == &nothing_more)
        more = tn_arena_zalloc(&w->arena, 1, sizeof *more);
    e->more = more ? more : e->more;
    return more;
}

/* Neighbours often have the same shape and share a copy. */
static const int64_t *keep_shape(tn_writer *w, uint32_t rank, const int64_t *shape)
{
    const tn_out_entry *last = w->count ? &w->entries[w->count - 1] : NULL;
    if (last && tn_same_shape(last->rank, last->shape, rank, shape))
        return last->shape;
    return tn_arena_copy(&w->arena, shape, rank * sizeof *shape);
}

static tn_status describe_part(tn_writer *w, const tn_tensor *t, uint32_t part, tn_out_entry *e,
                               tn_error *err)
{
    const tn_part *p = &t->parts[part];
    tn_carrier carrier;
    uint64_t nbytes;
    if (!tn_dtype_get(p->array.dtype) || p->array.stride)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "expected dense elements of a known type");
    tn_status status = check_padding(p, e->encoding, err);
    if (status)
        return status;
    status = tn_carrier_for(w->format, p->array.dtype, p->array.rank, tn_padded_shape(p), &carrier, err);
    if (!status)
        status = tn_shape_nbytes(p->array.dtype, p->array.rank, tn_padded_shape(p), &nbytes);
    if (status)
        return tn_fail(err, status, "its shape has no size");
    e->name = name_of_part(w, t, part);
    e->dtype = carrier.dtype;
    e->rank = carrier.rank;
    e->shape = keep_shape(w, carrier.rank, carrier.shape);
    e->nbytes = nbytes;
    e->data = p->data;
    e->part = part;
    if (!e->name || !e->shape)
        return tn_fail_nomem(err);
    if (part == 0 && t->tied)
        status = find_tie(w, t, e, &e->tied, err);
    tn_text record = { NULL, 0 };
    if (!status)
        status = make_record(w, t, part, carrier.same, &record, err);
    if (status || !record.len)
        return status;
    if (!more_of(w, e))
        return tn_fail_nomem(err);
    e->more->record = record;
    return TN_OK;
}

static const int64_t *copy_shape(tn_writer *w, uint32_t rank, const int64_t *shape)
{
    return shape ? tn_arena_copy(&w->arena, shape, rank * sizeof *shape) : NULL;
}

static const tn_padded *copy_padded(tn_writer *w, const tn_part *p)
{
    const tn_padded padded = { copy_shape(w, p->array.rank, p->padded->shape), p->padded->fill };
    return padded.shape ? tn_arena_copy(&w->arena, &padded, sizeof padded) : NULL;
}

/* For formats that describe tensors rather than arrays. */
static tn_status keep_whole(tn_writer *w, const tn_tensor *t, tn_out_entry *e, tn_error *err)
{
    tn_tensor *copy = tn_arena_copy(&w->arena, t, sizeof *t);
    tn_part *parts = tn_arena_zalloc(&w->arena, t->nparts, sizeof *parts);
    if (!copy || !parts)
        return tn_fail_nomem(err);
    *copy = (tn_tensor){ .name = e->name, .form = t->form, .dtype = t->dtype,
                         .rank = t->rank, .shape = copy_shape(w, t->rank, t->shape), .parts = parts,
                         .nparts = t->nparts };
    bool good = copy->shape || !t->rank;
    if (t->layout)
        good = good && (copy->layout = tn_arena_text(&w->arena, t->layout, strlen(t->layout)));
    if (t->form_text)
        good = good && (copy->form_text = tn_arena_text(&w->arena, t->form_text, strlen(t->form_text)));
    copy->scaling = t->scaling;
    for (uint32_t k = 0; k < t->nparts && good; k++) {
        const tn_part *p = &t->parts[k];
        parts[k].role = tn_arena_text(&w->arena, p->role, strlen(p->role));
        parts[k].array = (tn_array){ p->array.dtype, p->array.rank,
                                     copy_shape(w, p->array.rank, p->array.shape), NULL };
        parts[k].padded = p->padded ? copy_padded(w, p) : NULL;
        good = parts[k].role && (parts[k].array.shape || !p->array.rank) &&
               !parts[k].padded == !p->padded;
    }
    if (!good || !more_of(w, e))
        return tn_fail_nomem(err);
    e->more->whole = copy;
    return TN_OK;
}

static tn_status add_entry(tn_writer *w, const tn_out_entry *e, tn_error *err)
{
    TN_NEED(TN_GROW(w->entries, w->count, w->cap), err);
    w->entries[w->count] = *e;
    size_t other = tn_names_add(&w->names, w, entry_name, w->count);
    if (other == TN_NAMES_NOMEM)
        return tn_fail_nomem(err);
    if (other != TN_NAMES_ADDED)
        return tn_fail(err, TN_ERR_ARGUMENT, "two tensors (or parts) would be called %s",
                       tn_quote_z(e->name).text);
    w->count++;
    return TN_OK;
}

static tn_status copy_tensor_meta(tn_writer *w, const tn_tensor *t, tn_out_entry *e, tn_error *err)
{
    if (!t->nmeta)
        return TN_OK;
    tn_meta *copy = more_of(w, e) ? tn_arena_zalloc(&w->arena, t->nmeta, sizeof *copy) : NULL;
    TN_TRY(copy ? tn_meta_check_unique(t->meta, t->nmeta, TN_NO_OFFSET, err) : tn_fail_nomem(err));
    for (uint32_t i = 0; i < t->nmeta; i++)
        TN_TRY(copy_meta(w, &t->meta[i], &copy[i], err));
    e->more->meta = copy;
    e->more->nmeta = t->nmeta;
    return TN_OK;
}

static tn_status check_name(const tn_writer *w, const char *name, tn_error *err)
{
    size_t n = strlen(name);
    TN_TRY(still_declaring(w, err));
    if (tn_utf8_valid(name, n) != n)
        return tn_fail(err, TN_ERR_ARGUMENT, "tensor name %s is not UTF-8", tn_quote_z(name).text);
    return TN_OK;
}

static tn_status check_tensor(const tn_writer *w, const tn_tensor *t, tn_error *err)
{
    TN_TRY(check_name(w, t->name, err));
    if (t->dtype == TN_UNKNOWN)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "its type is not known to this build");
    if (t->layout && tn_layout_check_shape(t->layout, t->rank, t->shape, err))
        return TN_ERR_ARGUMENT;
    if (t->nparts == 0 || t->nparts > TN_MAX_PARTS)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected 1 to %d parts but found %u", TN_MAX_PARTS, t->nparts);
    return TN_OK;
}

tn_status tn_writer_expect(tn_writer *w, size_t tensors, size_t entries, tn_error *err)
{
    uint64_t bytes;
    tn_names_free(&w->names);
    if (!tn_mul_u64(entries, sizeof *w->entries, &bytes) || bytes > SIZE_MAX || tensors > entries)
        return tn_fail_nomem(err);
    TN_NEED(w->entries = tn_pages_alloc((size_t)bytes), err);
    w->cap = entries;
    TN_NEED(w->first_entry = malloc((tensors + 1) * sizeof *w->first_entry), err);
    w->tensor_cap = tensors;
    return tn_names_init(&w->names, entries) ? TN_OK : tn_fail_nomem(err);
}

/* Entries are numbered in 32 bits. */
static tn_status begin_tensor(tn_writer *w, tn_error *err)
{
    TN_NEED(w->ntensors < UINT32_MAX / TN_MAX_PARTS && TN_GROW(w->first_entry, w->ntensors, w->tensor_cap),
            err);
    w->first_entry[w->ntensors] = (uint32_t)w->count;
    return TN_OK;
}

static tn_status add_parts(tn_writer *w, const tn_tensor *t, const tn_stored_as *how, tn_error *err)
{
    TN_TRY(begin_tensor(w, err));
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < t->nparts && !status; k++) {
        tn_out_entry e = {
            .more = &nothing_more, .tensor = (uint32_t)w->ntensors, .tied = TN_NOT_TIED,
            .encoding = (uint8_t)how[k].encoding, .checksum = (uint8_t)how[k].checksum,
            .offset = TN_UNPLACED,
        };
        status = describe_part(w, t, k, &e, err);
        if (!status && k == 0)
            status = copy_tensor_meta(w, t, &e, err);
        if (!status && k == 0 && !w->format->names_parts)
            status = keep_whole(w, t, &e, err);
        if (!status)
            status = add_entry(w, &e, err);
    }
    w->ntensors += !status;
    return status;
}

tn_status tn_writer_add_as(tn_writer *w, const tn_tensor *t, const tn_stored_as *how, tn_error *err)
{
    tn_tensor own = *t;
    tn_status status = check_tensor(w, t, err);
    if (!status && t->scaling && !(own.scaling = tn_scaling_keep(&w->arena, t->scaling, &w->datatype)))
        status = tn_fail_nomem(err);
    if (!status)
        status = add_parts(w, &own, how, err);
    return tn_writer_settle(w, tn_in_tensor(status, t->name, err), err);
}

bool tn_writer_repeats(const tn_writer *w, size_t like)
{
    const tn_out_entry *e = &w->entries[w->first_entry[like]];
    return w->format->names_parts && !w->ocp_names && e->tied == TN_NOT_TIED && !e->more->nmeta &&
           !e->more->properties;
}

/* Data that will be found for each tensor. */
static tn_status repeat_data(tn_writer *w, tn_out_entry *e, tn_error *err)
{
    if (e->data)
        TN_NEED(e->data = tn_arena_copy(&w->arena, e->data, (size_t)e->nbytes), err);
    return TN_OK;
}

/* The names of its entries end alike. */
static tn_status repeat_parts(tn_writer *w, size_t like, const char *name, tn_error *err)
{
    size_t first = tn_writer_first(w, like), end = tn_writer_first(w, like + 1), n = strlen(name);
    size_t skip = strlen(w->entries[first].name);
    TN_TRY(begin_tensor(w, err));
    for (size_t i = first; i < end; i++) {
        tn_out_entry e = w->entries[i];
        e.tensor = (uint32_t)w->ntensors;
        e.name = tn_arena_join(&w->arena, name, n, e.name + skip);
        TN_NEED(e.name, err);
        TN_TRY(repeat_data(w, &e, err));
        TN_TRY(add_entry(w, &e, err));
    }
    w->ntensors++;
    return TN_OK;
}

tn_status tn_writer_add_like(tn_writer *w, size_t like, const char *name, tn_error *err)
{
    tn_status status = check_name(w, name, err);
    if (!status)
        status = repeat_parts(w, like, name, err);
    return tn_writer_settle(w, tn_in_tensor(status, name, err), err);
}

tn_status tn_writer_set_properties(tn_writer *w, const tn_properties *properties, tn_error *err)
{
    tn_out_more *more = properties ? more_of(w, &w->entries[w->first_entry[w->ntensors - 1]]) : NULL;
    if (more)
        more->properties = properties;
    return more || !properties ? TN_OK : tn_fail_nomem(err);
}

/* ---- what programs add ---- */

/* What the caller's structs point to; the role of the first part may be missing. */
static tn_status check_pointers(const tn_tensor *t, tn_error *err)
{
    TN_GIVEN(t->name, "a name", err);
    TN_GIVEN(t->parts, "parts", err);
    if (t->nparts == 0 || t->nparts > TN_MAX_PARTS || t->rank > TN_MAX_RANK)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected 1 to %d parts and at most %d dimensions but found %u "
                       "and %u", TN_MAX_PARTS, TN_MAX_RANK, t->nparts, t->rank);
    TN_GIVEN(t->shape || !t->rank, "a shape", err);
    TN_GIVEN(t->meta || !t->nmeta, "metadata", err);
    for (uint32_t i = 0; i < t->nmeta; i++)
        TN_GIVEN(t->meta[i].key && (t->meta[i].text || t->meta[i].cbor), "metadata, a key and a value", err);
    for (uint32_t k = 0; k < t->nparts; k++) {
        const tn_part *p = &t->parts[k];
        TN_GIVEN(p->role || k == 0, "a role of every part but the first", err);
        if (p->array.rank > TN_MAX_RANK)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected at most %d dimensions but found %u", TN_MAX_RANK,
                           p->array.rank);
        TN_GIVEN(p->array.shape || !p->array.rank, "a shape of every part", err);
        TN_GIVEN(!p->padded || p->padded->shape || !p->array.rank, "a shape with padding", err);
    }
    return TN_OK;
}

/* A part without a role is the first of the tensor's form. */
static tn_status add_whole(tn_writer *w, const tn_tensor *t, tn_error *err)
{
    tn_stored_as how[TN_MAX_PARTS];
    tn_part parts[TN_MAX_PARTS];
    tn_tensor own = *t;
    for (size_t k = 0; k < TN_MAX_PARTS; k++)
        how[k] = (tn_stored_as){ w->options.encoding, w->options.checksum };
    TN_TRY(check_pointers(t, err));
    memcpy(parts, t->parts, t->nparts * sizeof *parts);
    const tn_form_info *form = tn_form_get(t->form);
    if (!parts[0].role)
        parts[0].role = form ? form->roles[0] : "data";
    own.parts = parts;
    TN_TRY(tn_form_check(&own, NULL, err));
    return tn_writer_add_as(w, &own, how, err);
}

tn_status tn_writer_add(tn_writer *w, const tn_tensor *t, tn_error *err)
{
    TN_GIVEN(w, "a writer", err);
    TN_GIVEN(t, "a tensor", err);
    return tn_writer_settle(w, add_whole(w, t, err), err);
}

tn_status tn_writer_add_array(tn_writer *w, const char *name, tn_dtype dtype, uint32_t rank,
                              const int64_t *shape, const void *data, tn_error *err)
{
    const tn_part part = { .role = "data", .array = { dtype, rank, shape, NULL }, .data = data };
    const tn_tensor tensor = { .name = name, .form = TN_FORM_DENSE, .dtype = dtype, .rank = rank,
                               .shape = shape, .parts = &part, .nparts = 1 };
    return tn_writer_add(w, &tensor, err);
}
