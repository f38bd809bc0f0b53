/* formats/pytorch/tensors.c - from views of storages to entries of the file.
 *
 * A view is a storage, an offset, sizes and strides.  One that covers dense bytes is a range of the file; any
 * other is strided.  What is in the pickle as numbers is written to `decoded`. */
#include "formats/pytorch/pytorch.h"
#include "base/checked.h"
#include "store/archive.h"
#include "tensor/array.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    AHEAD = 8,                  /* tensors that are fetched into the cache before their turn */
    MAX_DECODED = 32,           /* bytes that are decoded for each byte of a pickle, and... */
    FREE_DECODED = 1 << 16      /* ...these */
};

/* The entry being made. */
typedef struct making {
    tn_pt_reader       *r;
    const tn_pt_pickle *pickle;
    const tn_pt_found  *found;
    uint64_t            at;     /* byte of the file for messages */
} making;

static tn_status fail(const making *k, tn_status status, const char *text, tn_error *err)
{
    return tn_fail_at(err, status, k->at, "%s", text);
}

/* --- dimensions --- */

/* Integers of the pickle: sizes or strides. */
static tn_status take_dims(const making *k, const tn_pt_value *v, int64_t dims[TN_MAX_RANK], uint32_t *rank,
                           tn_error *err)
{
    uint32_t n = *rank = v->items->count;
    if (n > TN_MAX_RANK)
        return tn_fail_at(err, TN_ERR_LIMIT, k->at, "expected at most %d dimensions but found %u",
                          TN_MAX_RANK, n);
    for (uint32_t i = 0; i < n; i++) {
        const tn_pt_value *item = &v->items->at[i];
        if (item->kind != TN_PT_INT)
            return fail(k, TN_ERR_CORRUPT, "a size or stride is not an integer below 2^63", err);
        if (item->i < 0)
            return fail(k, TN_ERR_CORRUPT, "a size or stride is negative", err);
        dims[i] = item->i;
    }
    return TN_OK;
}

static const int64_t *keep_dims(const making *k, const int64_t *dims, uint32_t rank)
{
    return tn_arena_copy(&k->r->file->arena, dims, rank * sizeof *dims);
}

/* The shape of an array; neighbours often have the same, which is kept once. */
static tn_status read_shape(const making *k, const tn_pt_value *v, uint32_t *rank, const int64_t **shape,
                            tn_error *err)
{
    int64_t dims[TN_MAX_RANK];
    const tn_file *file = k->r->file;
    TN_TRY(take_dims(k, v, dims, rank, err));
    const tn_array *last = file->count ? &file->parts[file->count - 1].array : NULL;
    bool same = last && tn_same_shape(last->rank, last->shape, *rank, dims);
    *shape = same ? last->shape : keep_dims(k, dims, *rank);
    return *shape ? TN_OK : tn_fail_nomem(err);
}

/* Whether strides are those of dense rows; those along one index do not matter. */
static bool is_dense(uint32_t rank, const int64_t *shape, const int64_t *stride)
{
    uint64_t step = 1;
    for (uint32_t i = rank; i-- > 0; step *= (uint64_t)shape[i])
        if (shape[i] != 1 && (uint64_t)stride[i] != step)
            return false;
    return true;
}

/* Elements from the first to behind the last one; false: more than 2^63. */
static bool find_span(const tn_entry *e, const int64_t *stride, uint64_t *span)
{
    uint64_t sum = 1, step;
    for (uint32_t i = 0; i < e->rank; i++)
        if (!tn_mul_u64((uint64_t)e->shape[i] - 1, (uint64_t)stride[i], &step) ||
            !tn_add_u64(sum, step, &sum))
            return false;
    *span = sum;
    return sum <= INT64_MAX;
}

/* --- views of storages --- */

/* A view whose dimensions are known, in elements and bytes of its storage. */
typedef struct view {
    const int64_t *stride;
    uint64_t count, span;       /* elements, and from the first to behind the last */
    uint64_t first;             /* byte of the decoded storage */
    tn_pt_place place;
    uint64_t width;
} view;

static tn_status check_view(const making *k, const tn_pt_tensor *t, const tn_entry *e, view *v, tn_error *err)
{
    const tn_pt_storage *s = t->storage;
    uint64_t wide = s->type ? s->type->width : 1, have = s->used * wide / v->width, end = 0, bytes = 0;
    if (t->offset < 0)
        return fail(k, TN_ERR_CORRUPT, "its offset is negative", err);
    if (tn_shape_count(e->rank, e->shape, &v->count))
        return fail(k, TN_ERR_LIMIT, "it has more than 2^63 - 1 elements", err);
    v->first = s->first * wide;
    if (!v->count)
        return TN_OK;
    bool fits = find_span(e, v->stride, &v->span) && tn_add_u64((uint64_t)t->offset, v->span, &end);
    if (!fits || end > have)
        return tn_fail_at(err, TN_ERR_CORRUPT, k->at,
                          "it needs element %" PRIu64 " of a storage of %" PRIu64,
                          fits ? end - 1 : UINT64_MAX, have);
    v->first += (uint64_t)t->offset * v->width;
    if (!tn_mul_u64(v->count, v->width, &bytes) || bytes / TN_GROWTH_MAX > v->place.decoded)
        return tn_fail_at(err, TN_ERR_LIMIT, k->at,
                          "its %" PRIu64 " elements take more than %d times the %" PRIu64
                          " bytes of its storage", v->count, TN_GROWTH_MAX, v->place.decoded);
    return TN_OK;
}

/* The checksum of a storage goes to the tensors that are all of it, else to the first view of it. */
static tn_status set_checksum(const making *k, const view *v, bool whole, tn_entry *e, tn_error *err)
{
    if (!v->place.has_crc || !v->count || (!whole && *v->place.is_summed))
        return TN_OK;
    *v->place.is_summed = true;
    if (!whole && v->place.encoding == TN_ENCODING_RAW)
        e->more.sum = (tn_range){ v->place.offset, v->place.size };
    return tn_stored_set_crc32(&e->stored, v->place.crc, &k->r->file->arena, err);
}

/* A view of a deflated storage: unless it is all of it, the storage is decoded and read with strides. */
static void place_deflated(const view *v, bool whole, tn_entry *e)
{
    e->stored.encoding = v->place.encoding;
    e->stored.offset = v->place.offset;
    e->stored.size = v->place.size;
    if (whole)
        return;
    e->more.stride = v->stride;
    e->more.decoded = v->place.decoded;
    e->more.skip = v->first;
}

static tn_status place_view(const making *k, const view *v, bool dense, tn_entry *e, tn_error *err)
{
    bool whole = dense && v->count * v->width == v->place.decoded;
    e->stored.shard = k->r->shard;
    e->stored.order = (uint8_t)k->r->order;
    if (v->place.encoding != TN_ENCODING_RAW && v->count) {
        place_deflated(v, whole, e);
    } else {
        e->stored.offset = v->place.offset + v->first;
        e->stored.size = (dense ? v->count : v->span) * v->width;
        e->more.stride = dense ? NULL : v->stride;
    }
    return set_checksum(k, v, whole, e, err);
}

/* torch counts pairs of float4: the last extent is doubled, and only dense ones are read. */
static tn_status double_last(const making *k, tn_entry *e, bool dense, tn_error *err)
{
    int64_t *shape = tn_arena_copy(&k->r->file->arena, e->shape, e->rank * sizeof *shape);
    TN_NEED(shape, err);
    if (!e->rank || !dense || __builtin_mul_overflow(shape[e->rank - 1], 2, &shape[e->rank - 1])) {
        e->dtype = TN_UNKNOWN;
        e->more.never = "pairs of float4 with strides are not read";
        e->more.stride = NULL;
        return TN_OK;
    }
    e->shape = shape;
    return TN_OK;
}

static tn_status describe_view(const making *k, const tn_pt_tensor *t, tn_entry *e, tn_error *err)
{
    uint32_t rank = 0;
    int64_t strides[TN_MAX_RANK];
    view v = { .width = t->type->width, .stride = strides };
    TN_TRY(k->r->locate(k->r, k->pickle, t->storage, &v.place, err));
    TN_TRY(take_dims(k, &t->stride, strides, &rank, err));
    if (rank != e->rank)
        return fail(k, TN_ERR_CORRUPT, "it has not as many strides as sizes", err);
    TN_TRY(check_view(k, t, e, &v, err));
    bool dense = !v.count || is_dense(e->rank, e->shape, v.stride);
    if (dense && v.count)
        tn_dense_strides(e->rank, e->shape, strides);
    if (!dense || v.place.encoding != TN_ENCODING_RAW)
        v.stride = keep_dims(k, strides, rank);
    TN_NEED(v.stride, err);
    TN_TRY(place_view(k, &v, dense, e, err));
    e->more.never = t->never;
    if (e->dtype == TN_UNKNOWN) {
        e->more.never = "elements of this type are not read";
        e->more.stride = NULL;
    }
    return e->dtype == TN_FLOAT4_E2M1 ? double_last(k, e, dense, err) : TN_OK;
}

/* --- NumPy arrays --- */

static bool is_in_file(const tn_pt_pickle *p, tn_text bytes)
{
    return p->is_raw && bytes.ptr >= p->bytes.ptr && bytes.ptr <= p->bytes.ptr + p->bytes.len;
}

static tn_status describe_numpy(const making *k, const tn_pt_tensor *t, tn_entry *e, tn_error *err)
{
    uint64_t nbytes = 0;
    if (tn_shape_nbytes(e->dtype, e->rank, e->shape, &nbytes) || nbytes != t->bytes.len)
        return tn_fail_at(err, TN_ERR_CORRUPT, k->at,
                          "shape and type of a NumPy array take %" PRIu64 " bytes but it has %zu", nbytes,
                          t->bytes.len);
    bool here = is_in_file(k->pickle, t->bytes);
    e->stored.shard = here ? k->r->shard : k->r->decoded_shard;
    e->stored.offset = here ? k->pickle->at + (uint64_t)(t->bytes.ptr - k->pickle->bytes.ptr)
                            : k->found->decoded[0];
    e->stored.size = nbytes;
    e->stored.order = t->is_big_endian ? TN_BIG_ENDIAN : TN_LITTLE_ENDIAN;
    return t->is_fortran && nbytes ? tn_entry_make_fortran(k->r->file, e, err) : TN_OK;
}

/* An array: its type, shape and place. */
static tn_status describe(const making *k, const tn_pt_tensor *t, tn_entry *e, tn_error *err)
{
    e->at = k->at;
    e->dtype = t->type->dtype;
    e->stored.type = t->type->name;
    TN_TRY(read_shape(k, &t->size, &e->rank, &e->shape, err));
    return t->is_numpy ? describe_numpy(k, t, e, err) : describe_view(k, t, e, err);
}

/* The same as a part of a tensor. */
static tn_status describe_part(const making *k, const tn_pt_tensor *t, const char *role, tn_part *p,
                               tn_error *err)
{
    tn_entry e = { .name = k->found->name };
    TN_TRY(describe(k, t, &e, err));
    if (e.dtype == TN_UNKNOWN || e.more.never)
        return fail(k, TN_ERR_UNSUPPORTED, "a part of it is of a kind that is not read", err);
    *p = (tn_part){ .role = role, .array = { e.dtype, e.rank, e.shape, NULL },
                    .stored = tn_file_keep_stored(k->r->file, &e.stored, &e.more) };
    TN_NEED(p->stored, err);
    tn_shape_nbytes(e.dtype, e.rank, e.shape, &p->nbytes);      /* fits: it was counted */
    return TN_OK;
}

/* --- quantized tensors --- */

/* Numbers that are in the pickle: one, or a list. */
static tn_status number_part(const making *k, const tn_pt_value *v, bool zero, const char *role, tn_part *p,
                             tn_error *err)
{
    bool list = tn_pt_is_list(v);
    int64_t *shape = tn_arena_alloc(&k->r->file->arena, sizeof *shape);
    const tn_stored stored = { .shard = k->r->decoded_shard, .offset = k->found->decoded[zero],
                               .size = 8 * (uint64_t)(list ? v->items->count : 1), .order = TN_HOST_ORDER,
                               .type = zero ? "int64" : "float64" };
    TN_NEED(shape, err);
    *shape = list ? v->items->count : 1;
    *p = (tn_part){ .role = role, .array = { zero ? TN_INT64 : TN_FLOAT64, list, shape, NULL },
                    .nbytes = stored.size, .stored = tn_file_keep_stored(k->r->file, &stored, NULL) };
    return p->stored ? TN_OK : tn_fail_nomem(err);
}

static tn_status scaling_part(const making *k, const tn_pt_value *v, bool zero, tn_part *p, tn_error *err)
{
    const char *role = zero ? "zero" : "scale";
    return v->kind == TN_PT_TENSOR ? describe_part(k, v->tensor, role, p, err)
                                   : number_part(k, v, zero, role, p, err);
}

static bool is_number(const tn_pt_value *v, bool zero)
{
    return v->kind == TN_PT_INT || (!zero && v->kind == TN_PT_FLOAT);
}

/* Whether scales or zero points are such numbers as a scaled tensor has. */
static bool are_numbers(const tn_pt_value *v, bool zero, bool each)
{
    if (v->kind == TN_PT_TENSOR) {
        const tn_pt_tensor *t = v->tensor;
        bool plain = t->type && t->storage && !t->layout && !t->scaling && !t->never && !t->is_meta;
        bool fits = plain && t->type->dtype == (zero ? TN_INT64 : TN_FLOAT64);
        return each && (fits || (plain && !zero && t->type->dtype == TN_FLOAT32));
    }
    if (!each || !tn_pt_is_list(v))
        return !each && is_number(v, zero);
    for (uint32_t i = 0; i < v->items->count; i++)
        if (!is_number(&v->items->at[i], zero))
            return false;
    return true;
}

static tn_status add_scaled(const making *k, tn_entry *e, tn_error *err)
{
    const tn_pt_scaling *s = k->found->tensor->scaling;
    tn_file *file = k->r->file;
    bool each = s->axis >= 0;
    if (e->dtype == TN_UNKNOWN || e->more.never || !are_numbers(&s->scale, false, each) ||
        !are_numbers(&s->zero, true, each) || s->axis >= (int64_t)e->rank) {
        e->dtype = TN_UNKNOWN;
        e->more.stride = NULL;
        e->more.never = e->more.never ? e->more.never : "its zero points are not integers";
        return tn_file_add(file, e, err);
    }
    const tn_dtype_info *type = tn_dtype_get(e->dtype);
    int64_t high = (INT64_C(1) << (type->bits - (type->kind == TN_KIND_INT))) - 1;
    const tn_scaling scaling = { .axis = (int32_t)s->axis,
                                 .range = { type->kind == TN_KIND_INT ? -high - 1 : 0, high } };
    tn_part parts[2];
    TN_TRY(scaling_part(k, &s->scale, false, &parts[0], err));
    TN_TRY(scaling_part(k, &s->zero, true, &parts[1], err));
    e->scaling = tn_arena_copy(&file->arena, &scaling, sizeof scaling);
    TN_NEED(e->scaling, err);
    e->value_dtype = TN_FLOAT32;
    e->companions = parts;
    e->ncompanions = 2;
    return tn_file_add(file, e, err);
}

/* --- sparse tensors --- */

typedef struct layout_row {
    const char *name;
    const char *parts[3];       /* in torch's order */
} layout_row;

static const layout_row layouts[] = {
    [TN_PT_COO] = { "coo", { "indices", "values", NULL } },
    [TN_PT_CSR] = { "csr", { "crow_indices", "col_indices", "values" } },
    [TN_PT_CSC] = { "csc", { "ccol_indices", "row_indices", "values" } },
    [TN_PT_BSR] = { "bsr", { "crow_indices", "col_indices", "values" } },
    [TN_PT_BSC] = { "bsc", { "ccol_indices", "row_indices", "values" } },
};

/* Hybrid, batched and other layouts are listed as their parts. */
static tn_status add_parts(const making *k, tn_error *err)
{
    const tn_pt_tensor *t = k->found->tensor;
    const layout_row *row = &layouts[t->layout];
    tn_file_warn(k->r->file, k->at, "tensor %s: sparse layout %s is listed as its parts",
                 tn_quote_z(k->found->name).text, row->name);
    for (unsigned i = 0; i < 3 && row->parts[i]; i++) {
        tn_entry e = { .name = tn_arena_printf(&k->r->file->arena, "%s.%s", k->found->name, row->parts[i]) };
        TN_NEED(e.name, err);
        TN_TRY(describe(k, t->parts[i], &e, err));
        TN_TRY(tn_file_add(k->r->file, &e, err));
    }
    return TN_OK;
}

/* torch has a row of indices per dimension, we have one per value. */
static tn_status turn_indices(const making *k, tn_part *p, tn_error *err)
{
    tn_arena *arena = &k->r->file->arena;
    const tn_stored *s = p->stored;
    const int64_t *was = tn_stored_more_of(p)->stride, *old = p->array.shape;
    const int64_t dense[] = { old[1], 1 };
    const int64_t *from = was ? was : dense, shape[] = { old[1], old[0] }, stride[] = { from[1], from[0] };
    tn_stored_more more = *tn_stored_more_of(p);
    p->array.shape = tn_arena_copy(arena, shape, sizeof shape);
    more.stride = p->nbytes ? tn_arena_copy(arena, stride, sizeof stride) : NULL;
    p->stored = tn_file_keep_stored(k->r->file, s, &more);
    return p->array.shape && p->stored && (more.stride || !p->nbytes) ? TN_OK : tn_fail_nomem(err);
}

static tn_status add_sparse(const making *k, tn_error *err)
{
    const tn_pt_tensor *t = k->found->tensor;
    bool coo = t->layout == TN_PT_COO;
    uint32_t indices_rank = coo ? 2 : 1, rank = t->size.items->count;
    const tn_pt_tensor *values = t->parts[coo ? 1 : 2];
    bool plain = t->layout <= TN_PT_CSR && !values->never && tn_pt_is_list(&values->size) &&
                 values->size.items->count == 1 && values->type->dtype != TN_UNKNOWN &&
                 t->parts[0]->size.items->count == indices_rank && (coo || rank == 2);
    if (!plain)
        return add_parts(k, err);
    tn_entry e = { .name = k->found->name };
    tn_part parts[2];
    TN_TRY(describe(k, values, &e, err));
    const int64_t *count = e.shape;
    TN_TRY(describe_part(k, t->parts[coo ? 0 : 1], "indices", &parts[0], err));
    if (coo)
        TN_TRY(turn_indices(k, &parts[0], err));
    else
        TN_TRY(describe_part(k, t->parts[0], "indptr", &parts[1], err));
    TN_TRY(read_shape(k, &t->size, &e.rank, &e.shape, err));
    tn_entry_make_sparse(&e, coo ? TN_FORM_COO : TN_FORM_CSR, count, parts, coo ? 1 : 2);
    return tn_file_add(k->r->file, &e, err);
}

/* --- all --- */

/* Writes what the pickle has as numbers or as text to `decoded`. */
static void put_number(tn_buf *b, const tn_pt_value *v, bool zero)
{
    double f = v->kind == TN_PT_INT ? (double)v->i : v->f;
    if (zero)
        tn_buf_put(b, &v->i, sizeof v->i);
    else
        tn_buf_put(b, &f, sizeof f);
}

static void put_numbers(tn_buf *b, const tn_pt_value *v, bool zero)
{
    if (is_number(v, zero))
        put_number(b, v, zero);
    for (uint32_t i = 0; tn_pt_is_list(v) && i < v->items->count && is_number(&v->items->at[i], zero); i++)
        put_number(b, &v->items->at[i], zero);
}

static void put_decoded(tn_pt_reader *r, tn_pt_found *f)
{
    const tn_pt_tensor *t = f->tensor;
    f->decoded[0] = r->decoded.size;
    if (t->scaling)
        put_numbers(&r->decoded, &t->scaling->scale, false);
    f->decoded[1] = r->decoded.size;
    if (t->scaling)
        put_numbers(&r->decoded, &t->scaling->zero, true);
    if (t->is_numpy && !is_in_file(f->from, t->bytes))
        tn_buf_put(&r->decoded, t->bytes.ptr, t->bytes.len);
    tn_buf_fill(&r->decoded, 0, (0 - r->decoded.size) % 8);
}

/* Tensors may share what they are made of: all of it takes a constant times the pickle. */
static tn_status check_decoded(const tn_pt_reader *r, uint64_t most, tn_error *err)
{
    if (r->decoded.size <= most)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_LIMIT, r->found[0].from->at,
                      "numbers in the pickle take more than the %" PRIu64 " bytes allowed", most);
}

static tn_status keep_decoded(tn_pt_reader *r, tn_error *err)
{
    const tn_pt_pickle *last = NULL;
    uint64_t most = FREE_DECODED;
    for (size_t i = 0; i < r->nfound; i++) {
        const tn_pt_pickle *from = r->found[i].from;
        most += from == last ? 0 : MAX_DECODED * (uint64_t)from->bytes.len;
        last = from;
        put_decoded(r, &r->found[i]);
        TN_NEED(!r->decoded.bad, err);
        TN_TRY(check_decoded(r, most, err));
    }
    if (!r->decoded.size)
        return TN_OK;
    void *copy = tn_arena_copy(&r->file->arena, r->decoded.data, r->decoded.size);
    TN_NEED(copy, err);
    return tn_file_add_decoded(r->file, copy, r->decoded.size, &r->decoded_shard, err);
}

static tn_status add_one(tn_pt_reader *r, const tn_pt_found *f, tn_error *err)
{
    const tn_pt_tensor *t = f->tensor;
    const making k = { r, f->from, f, f->from->at + (f->from->is_raw ? t->at : 0) };
    if (t->layout)
        return add_sparse(&k, err);
    tn_entry e = { .name = f->name };
    TN_TRY(describe(&k, t, &e, err));
    return t->scaling ? add_scaled(&k, &e, err) : tn_file_add(r->file, &e, err);
}

/* A file that is one tensor names it. */
static tn_status name_after_file(tn_pt_reader *r, tn_pt_found *f, tn_error *err)
{
    static const char *const suffixes[] = { ".pt", ".pth", ".bin", ".ckpt" };
    const char *path = r->file->shards[0].path, *suffix = "";
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (tn_ends_with(path, suffixes[i]))
            suffix = suffixes[i];
    f->name = tn_file_stem(r->file, suffix);
    return f->name ? TN_OK : tn_fail_nomem(err);
}

tn_status tn_pt_add_tensors(tn_pt_reader *r, tn_error *err)
{
    TN_TRY(keep_decoded(r, err));
    TN_TRY(tn_file_expect(r->file, r->file->count + r->nfound, err));
    for (size_t i = 0; i < r->nfound; i++) {
        tn_pt_found *f = &r->found[i];
        if (i + AHEAD < r->nfound)
            __builtin_prefetch(r->found[i + AHEAD].tensor);
        if (!f->name)
            TN_TRY(name_after_file(r, f, err));
        TN_TRY(tn_in_tensor(add_one(r, f, err), f->name, err));
    }
    return TN_OK;
}
