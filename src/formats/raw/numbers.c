/* formats/raw/numbers.c - parts that are numbers of the document: scales, zero
 * points, sparse tensors. */
#include "formats/raw/raw.h"
#include "base/error.h"
#include "descriptor/descriptor.h"
#include "tensor/array.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64 };            /* of every part: the least that the specification allows */

/* --- memory --- */

/* Never 0: a part without bytes has an offset too. */
static size_t room_for(uint64_t nbytes)
{
    return (size_t)(nbytes / ALIGN + 1) * ALIGN;
}

static bool has_zeros(const tn_wia_quantization *q)
{
    return q->scheme == TN_QUANT_PER_TENSOR_ASYMMETRIC || q->scheme == TN_QUANT_PER_CHANNEL_ASYMMETRIC;
}

bool tn_raw_is_quantized(const tn_descriptor *d)
{
    return d->quantization.scheme != TN_QUANT_NONE && !d->sparse.format;
}

bool tn_raw_is_sparse(const tn_descriptor *d)
{
    uint64_t elements;
    return d->sparse.format && d->quantization.scheme == TN_QUANT_NONE && !tn_other_scheme(d) &&
           tn_shape_count(d->sparse.rank, d->sparse.shape, &elements) == TN_OK;
}

size_t tn_raw_numbers_size(const tn_descriptor *d)
{
    const tn_wia_sparse *s = &d->sparse;
    const tn_wia_quantization *q = &d->quantization;
    const int64_t count = (int64_t)s->nvalues;
    uint64_t values = 0;
    if (tn_raw_is_quantized(d))
        return room_for(q->nscales * sizeof(float)) * (has_zeros(q) ? 2 : 1);
    if (!tn_raw_is_sparse(d) || tn_shape_nbytes(s->value_type, 1, &count, &values))
        return 0;
    return room_for(values) + room_for(s->nindices * sizeof *s->indices) +
           room_for(s->npointers * sizeof *s->pointers);
}

tn_status tn_raw_numbers_open(tn_raw_numbers *n, tn_file *file, size_t size, tn_error *err)
{
    uint8_t *block = tn_arena_alloc(&file->arena, size + ALIGN - 1);
    TN_NEED(block, err);
    n->file = file;
    n->bytes = block + (ALIGN - (uintptr_t)block % ALIGN) % ALIGN;
    return tn_file_add_decoded(file, n->bytes, size, &n->shard, err);
}

/* A new part, whose elements are at *to.  Without memory its `stored` is NULL. */
static tn_part next_part(tn_raw_numbers *n, const char *role, tn_array array, uint8_t **to)
{
    const tn_dtype_info *type = tn_dtype_get(array.dtype);
    tn_part part = { .role = role, .array = array };
    /* they are in memory already: no overflow */
    tn_shape_nbytes(array.dtype, array.rank, array.shape, &part.nbytes);
    *to = n->bytes + n->used;
    part.data = *to;
    const tn_stored stored = { .offset = n->used, .size = part.nbytes,
                               .type = tn_type_label(type),
                               .order = TN_HOST_ORDER, .shard = n->shard };
    part.stored = tn_file_keep_stored(n->file, &stored, &(tn_stored_more){ .encoding_name = "text" });
    n->used += room_for(part.nbytes);
    return part;
}

/* --- scales --- */

/* A float32, or a number with the digits of one. */
static bool to_float(double number, float *value)
{
    if (!(number >= -(double)FLT_MAX && number <= (double)FLT_MAX))
        return false;
    *value = (float)number;
    return (double)*value == number || tn_raw_number(*value) == number;
}

/* "dtype.quantization.scale", or "dtype.quantization.scales[3]" of several channels. */
typedef struct number_path { char text[64]; } number_path;
static number_path path_of(const tn_wia_quantization *q, const char *name, size_t i)
{
    number_path p;
    if (tn_is_per_channel(q->scheme))
        snprintf(p.text, sizeof p.text, "dtype.quantization.%ss[%zu]", name, i);
    else
        snprintf(p.text, sizeof p.text, "dtype.quantization.%s", name);
    return p;
}

static tn_status take_scales(const tn_wia_quantization *q, const tn_entry *e, uint8_t *to, tn_error *err)
{
    for (size_t i = 0; i < q->nscales; i++) {
        float scale;
        char text[48];
        if (to_float(q->scales[i], &scale)) {
            memcpy(to + i * sizeof scale, &scale, sizeof scale);
            continue;
        }
        const tn_value found = { .kind = TN_KIND_FLOAT, .re = q->scales[i] };
        tn_value_format(text, sizeof text, TN_FLOAT64, found);
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, e->at,
                          "%s: expected a number that float32 holds but found %s",
                          path_of(q, "scale", i).text, text);
    }
    return TN_OK;
}

static tn_status take_zeros(const tn_wia_quantization *q, const tn_entry *e, uint8_t *to, tn_error *err)
{
    for (size_t i = 0; i < q->nscales; i++) {
        int64_t found = i < q->nzero_points ? q->zero_points[i] : 0;
        int32_t zero = (int32_t)found;
        if (zero != found)
            return tn_fail_at(err, TN_ERR_UNSUPPORTED, e->at,
                              "%s: expected an integer of 32 bits but found %lld",
                              path_of(q, "zero_point", i).text, (long long)found);
        memcpy(to + i * sizeof zero, &zero, sizeof zero);
    }
    return TN_OK;
}

static tn_scaling scaling_of(const tn_descriptor *d)
{
    const tn_wia_quantization *q = &d->quantization;
    const tn_dtype_info *type = tn_dtype_get(d->dtype);
    bool sign = type->kind == TN_KIND_INT;
    uint64_t most = UINT64_MAX >> (64 - (type->bits < 63 ? type->bits : 63)) >> sign;
    tn_scaling s = { .axis = -1, .range = { sign ? -(int64_t)most - 1 : 0, (int64_t)most } };
    if (tn_is_per_channel(q->scheme))
        s.axis = q->channel_axis >= 0 && q->channel_axis < d->rank ? (int32_t)q->channel_axis : TN_MAX_RANK;
    if (q->has_range)
        memcpy(s.range, q->range, sizeof s.range);
    return s;
}

tn_status tn_raw_take_scales(tn_raw_numbers *n, const tn_descriptor *d, tn_entry *e, tn_error *err)
{
    const tn_wia_quantization *q = &d->quantization;
    tn_arena *arena = &n->file->arena;
    uint32_t rank = tn_is_per_channel(q->scheme);
    int64_t count = (int64_t)q->nscales;
    tn_scaling scaling = scaling_of(d);
    tn_part *parts = tn_arena_zalloc(arena, 2, sizeof *parts);
    const int64_t *shape = tn_arena_copy(arena, &count, sizeof count);
    uint8_t *to;
    e->scaling = tn_arena_copy(arena, &scaling, sizeof scaling);
    TN_NEED(parts && shape && e->scaling, err);
    parts[0] = next_part(n, "scale", (tn_array){ .dtype = TN_FLOAT32, .rank = rank, .shape = shape }, &to);
    TN_NEED(parts[0].stored, err);
    TN_TRY(take_scales(q, e, to, err));
    e->companions = parts;
    e->ncompanions = 1;
    if (!has_zeros(q))
        return TN_OK;
    parts[e->ncompanions++] = next_part(n, "zero", (tn_array){ TN_INT32, rank, shape, NULL }, &to);
    TN_NEED(parts[1].stored, err);
    return take_zeros(q, e, to, err);
}

/* --- sparse tensors --- */

/* The type of a CSR tensor's indices: the specification has no field for it. */
static tn_status choose_index(const tn_wia_sparse *s, const tn_entry *e, tn_dtype given, tn_dtype *index,
                              tn_error *err)
{
    bool narrow = s->nindices <= INT32_MAX;
    for (size_t i = 0; i < s->nindices && narrow; i++)
        narrow = s->indices[i] <= INT32_MAX;
    *index = narrow ? TN_INT32 : TN_INT64;
    if (given)
        *index = given;
    if (*index == TN_INT64 || (*index == TN_INT32 && narrow))
        return TN_OK;
    return tn_fail_at(err, TN_ERR_UNSUPPORTED, e->at,
                      TN_RAW_OWN "." TN_RAW_INDEX_TYPE ": expected int64%s but found %s",
                      narrow ? " or int32" : "", tn_dtype_get(*index)->name);
}

static tn_part index_part(tn_raw_numbers *n, const char *role, tn_array array, const int64_t *from)
{
    uint8_t *to;
    tn_part part = next_part(n, role, array, &to);
    if (array.dtype == TN_INT64) {
        if (part.nbytes)
            memcpy(to, from, (size_t)part.nbytes);
        return part;
    }
    for (size_t i = 0; i < part.nbytes / sizeof(int32_t); i++) {
        int32_t index = (int32_t)from[i];
        memcpy(to + i * sizeof index, &index, sizeof index);
    }
    return part;
}

/* The values, which replace the entry's array; false without memory. */
static bool take_values(tn_raw_numbers *n, const tn_wia_sparse *s, const int64_t *count, tn_entry *e)
{
    uint8_t *to;
    const tn_array array = { .dtype = s->value_type, .rank = 1, .shape = count };
    tn_part values = next_part(n, "values", array, &to);
    if (values.nbytes)
        memcpy(to, s->values, (size_t)values.nbytes);
    if (!values.stored)
        return false;
    const char *type = e->stored.type;
    e->stored = *values.stored;
    e->stored.type = type;
    e->more = *tn_stored_more_of(&values);
    return true;
}

tn_status tn_raw_take_sparse(tn_raw_numbers *n, const tn_descriptor *d, tn_dtype given, tn_entry *e,
                             tn_error *err)
{
    const tn_wia_sparse *s = &d->sparse;
    bool coo = strcmp(s->format, "COO") == 0;
    const int64_t extents[] = { (int64_t)s->nvalues, s->rank, (int64_t)s->npointers };
    const int64_t *own = tn_arena_copy(&n->file->arena, extents, sizeof extents);
    tn_part *parts = tn_arena_zalloc(&n->file->arena, 2, sizeof *parts);
    tn_dtype index = s->index_type;
    TN_NEED(own && parts, err);
    if (!coo && choose_index(s, e, given, &index, err))
        return err->status;
    const tn_array indices = { .dtype = index, .rank = coo ? 2 : 1, .shape = own };
    const tn_array pointers = { .dtype = index, .rank = 1, .shape = own + 2 };
    bool good = take_values(n, s, own, e);
    parts[0] = index_part(n, "indices", indices, s->indices);
    if (!coo)
        parts[1] = index_part(n, "indptr", pointers, s->pointers);
    if (coo)
        tn_entry_make_sparse(e, TN_FORM_COO, own, parts, 1);
    else
        tn_entry_make_sparse(e, TN_FORM_CSR, own, parts, 2);
    good = good && parts[0].stored && (coo || parts[1].stored);
    return good ? TN_OK : tn_fail_nomem(err);
}
