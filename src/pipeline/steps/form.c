/* pipeline/steps/form.c - a tensor in another form: dense, coo, csr.
 *
 * How many entries a sparse result has is part of its description: the data is
 * read when the step is added. */
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/kept.h"
#include "sparse/sparse.h"
#include "store/load.h"

#include <stdlib.h>

typedef struct forming {
    tn_loaded    *source;       /* parts of a stored input that are not in memory as they are; or NULL */
    const tn_tensor *whole;     /* all parts of the input in memory, wherever; NULL: it is made twice */
    tn_sparse_conversion *conversion;   /* of dense, coo and csr; else NULL: its values are made dense */
    uint64_t      count;        /* of the values */
    bool          is_large;     /* it holds a copy: better made again than kept */
} forming;

/* ---- the input as memory ---- */

static tn_status tick(void *context, tn_error *err)
{
    return tn_walk_check(context, err);
}

/* Whether loading has found the very parts that the tensor has: checksums are compared now. */
static bool is_in_place(const tn_loaded *l, const tn_tensor *t)
{
    bool same = l->tensor.nparts == t->nparts && !l->decoded;
    for (uint32_t k = 0; k < t->nparts && same; k++)
        same = t->parts[k].data && l->tensor.parts[k].data == t->parts[k].data &&
               l->tensor.parts[k].nbytes == t->parts[k].nbytes;
    return same;
}

static void free_source(forming *f)
{
    if (f->source)
        tn_loaded_free(f->source);
    free(f->source);
    f->source = NULL;
}

static tn_status load_stored(const tn_view *v, forming *f, tn_error *err)
{
    uint64_t limit = v->place->max_bytes;
    tn_loading loading = { .in = v->place->file, .tensor = tn_stored_tensor(v), .beside = v->place->beside,
                           .limit = limit, .tick = tick, .context = v->place->walk };
    TN_NEED(f->source = calloc(1, sizeof *f->source), err);
    TN_TRY(tn_load(&loading, f->source, err));
    f->is_large = f->source->decoded;
    f->whole = &f->source->tensor;
    if (is_in_place(f->source, tn_stored_tensor(v))) {
        f->whole = tn_stored_tensor(v);
        free_source(f);
    }
    return TN_OK;
}

/* ---- what comes out ---- */

static tn_status count_values(tn_view *v, forming *f, uint64_t limit, tn_error *err)
{
    const tn_tensor *t = f->whole;
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    uint64_t stored = 0;
    if (!type || type->bits < 8)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "its elements are narrower than a byte");
    for (uint32_t k = 0; k < t->nparts; k++)
        stored += t->parts[k].nbytes;
    v->parts[0] = (tn_part){ .role = tn_form_get(TN_FORM_DENSE)->roles[0],
                             .array = { t->dtype, t->rank, t->shape, NULL } };
    v->tensor.nparts = 1;
    v->tensor.scaling = NULL;
    if (tn_shape_count(t->rank, t->shape, &f->count) ||
        tn_array_nbytes(&v->parts[0].array, &v->parts[0].nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "dense it would take 2^63 bytes or more");
    limit = tn_kept_limit(limit, stored);
    if (v->parts[0].nbytes > limit)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_MAX_BYTES, NULL,
                         "dense it would take %llu bytes, more than the %llu allowed",
                         (unsigned long long)v->parts[0].nbytes, (unsigned long long)limit);
    return TN_OK;
}

/* The description outlives what has counted the entries. */
static tn_status declare_parts(tn_view *v, const tn_tensor *result, tn_error *err)
{
    v->tensor.nparts = result->nparts;
    for (uint32_t k = 0; k < result->nparts; k++) {
        const tn_part *p = &result->parts[k];
        int64_t *shape = tn_arena_copy(v->arena, p->array.shape, p->array.rank * sizeof *shape);
        if (!shape)
            return tn_fail_nomem(err);
        v->parts[k] = (tn_part){ .role = p->role, .array = { p->array.dtype, p->array.rank, shape, NULL },
                                 .nbytes = p->nbytes };
    }
    return TN_OK;
}

/* ---- the input, made twice ---- */

typedef struct reading {
    const tn_view *view;
    tn_worker    **workers;
} reading;

static tn_status read_made(void *context, unsigned thread, uint64_t first, size_t n, const uint8_t **elements,
                           tn_error *err)
{
    const reading *r = context;
    TN_TRY(tn_walk_check(r->view->place->walk, err));
    return tn_view_range(r->view, first, n, r->workers[thread], elements, err);
}

/* Whether preparing it took more than a little memory. */
static bool holds_data(const tn_view *v)
{
    bool any = v->filled || v->step == &tn_step_decode;
    for (uint32_t i = 0; i < v->ninputs && !any; i++)
        any = holds_data(v->inputs[i]);
    return any;
}

static tn_status count_made(tn_view *v, forming *f, const tn_form_rule *rule, const tn_preparing *p,
                            tn_error *err)
{
    tn_view *input = v->input;
    tn_sparse_options o = rule->options;
    reading r = { input, p->workers };
    const tn_sparse_reader reader = { read_made, &r, p->pool };
    o.limit = v->place->max_bytes;
    TN_TRY(tn_view_prepare(input, p, err));
    if (!tn_view_has_ranges(input))
        TN_TRY(tn_view_fill(input, p, err));
    f->is_large = holds_data(input);
    /* which has the padding of its input as elements */
    TN_TRY(tn_sparse_begin_read(&v->tensor, rule->form, &o, &reader, &f->conversion, err));
    return declare_parts(v, tn_sparse_result(f->conversion), err);
}

/* Entries or other parts in memory. */
static tn_status count_whole(tn_view *v, forming *f, const tn_form_rule *rule, tn_pool *pool, tn_error *err)
{
    tn_sparse_options o = rule->options;
    o.limit = v->place->max_bytes;
    if (tn_form_get(f->whole->form)->values)
        return count_values(v, f, o.limit, err);
    TN_TRY(tn_sparse_begin(f->whole, rule->form, &o, pool, &f->conversion, err));
    f->is_large |= tn_sparse_is_sorted_copy(f->conversion);
    return declare_parts(v, tn_sparse_result(f->conversion), err);
}

static tn_status count_complete(tn_view *v, forming *f, const tn_form_rule *rule, const tn_preparing *p,
                                tn_error *err)
{
    TN_TRY(tn_view_prepare(v->input, p, err));
    TN_TRY(tn_view_complete(v->input, p, &f->whole, err));
    f->is_large = true;
    return count_whole(v, f, rule, p->pool, err);
}

/* A result of other steps. */
static tn_status count_result(tn_view *v, forming *f, const tn_form_rule *rule, tn_pool *pool, tn_error *err)
{
    bool is_dense = v->tensor.form == TN_FORM_DENSE;
    unsigned jobs = tn_pool_jobs(pool);
    tn_worker *own = calloc(jobs, sizeof *own), **workers = calloc(jobs, sizeof *workers);
    tn_status status = own && workers ? TN_OK : tn_fail_nomem(err);
    for (unsigned i = 0; i < jobs && !status; i++)
        workers[i] = &own[i];
    const tn_preparing p = { .pool = pool, .workers = workers };
    if (!status)
        status = is_dense ? count_made(v, f, rule, &p, err) : count_complete(v, f, rule, &p, err);
    for (unsigned i = 0; own && i < jobs; i++)
        tn_worker_free(&own[i]);
    free(own);
    free(workers);
    return status;
}

/* ---- any input ---- */

static tn_status count(tn_view *v, forming *f, const tn_form_rule *rule, tn_pool *pool, tn_error *err)
{
    if (v->input->step != &tn_step_stored)
        return count_result(v, f, rule, pool, err);
    TN_TRY(load_stored(v, f, err));
    return count_whole(v, f, rule, pool, err);
}

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    const tn_form_rule *rule = options;
    forming *f = v->state = calloc(1, sizeof *f);
    tn_pool *own = NULL, *pool = v->place->walk ? v->place->walk->pool : NULL;
    if (!f)
        return tn_fail_nomem(err);
    TN_TRY(tn_view_take_padding(v, err));
    tn_status status = pool ? TN_OK : tn_pool_new(1, &own, err);
    if (!status)
        status = count(v, f, rule, pool ? pool : own, err);
    tn_pool_free(own);
    v->tensor.form = rule->form;
    v->grain = 0;
    if (status)
        return status;
    v->bits = tn_dtype_get(v->parts[0].array.dtype)->bits;
    tn_shape_count(v->parts[0].array.rank, v->parts[0].array.shape, &v->count);
    return TN_OK;
}

/* All is done. */
static tn_status prepare(tn_view *v, const tn_preparing *p, tn_error *err)
{
    (void)v, (void)p, (void)err;
    return TN_OK;
}

/* ---- blocks ---- */

static uint64_t blocks(const tn_view *v)
{
    const forming *f = v->state;
    uint64_t n = f->conversion ? tn_sparse_blocks(f->conversion) : tn_div_up_u64(f->count, TN_SPARSE_BLOCK);
    return n ? n : 1;           /* row pointers are there without entries */
}

static tn_status convert(const tn_view *v, uint64_t number, tn_worker *w, uint8_t *values, uint8_t *indices,
                         tn_error *err)
{
    const forming *f = v->state;
    const uint8_t *elements;
    size_t n;
    if (f->whole) {
        tn_sparse_make(f->conversion, number, values, indices);
        return TN_OK;
    }
    uint64_t first = tn_sparse_items(f->conversion, number, &n);
    TN_TRY(tn_view_range(v->input, first, n, w, &elements, err));
    tn_sparse_make_of(f->conversion, number, elements, values, indices);
    return TN_OK;
}

static tn_status block(const tn_view *v, uint64_t number, tn_worker *w, tn_part_bytes *out, tn_error *err)
{
    const forming *f = v->state;
    const tn_array *index = &v->parts[1].array;
    bool has_indices = v->tensor.nparts > 1;
    uint64_t first = number * TN_SPARSE_BLOCK, n = 0, width = v->bits / 8, index_width = 0;
    uint8_t *values, *indices = NULL;
    if (f->conversion && tn_sparse_blocks(f->conversion))
        tn_sparse_place(f->conversion, number, &first, &n);
    else if (!f->conversion && f->count > first)
        n = tn_min_u64(f->count - first, TN_SPARSE_BLOCK);
    if (has_indices)
        index_width = tn_dtype_get(index->dtype)->bits / 8;
    if (has_indices && index->rank == 2)
        index_width *= (uint64_t)index->shape[1];
    tn_status status = tn_worker_buffer(w, v, 0, TN_SPARSE_BLOCK * width, &values, err);
    if (!status && has_indices)
        status = tn_worker_buffer(w, v, 1, TN_SPARSE_BLOCK * index_width, &indices, err);
    bool reads = n || (!f->whole && v->input->reports && f->conversion && tn_sparse_blocks(f->conversion));
    if (!status && reads && f->conversion)
        status = convert(v, number, w, values, indices, err);
    else if (!status && n)
        status = tn_form_get(f->whole->form)->values(f->whole, first, (size_t)n, values, err);
    out[0] = (tn_part_bytes){ values, first * width, n * width };
    if (has_indices)
        out[1] = (tn_part_bytes){ indices, first * index_width, n * index_width };
    if (v->tensor.nparts > 2 && number == 0)
        out[2] = (tn_part_bytes){ tn_sparse_indptr(f->conversion), 0, v->parts[2].nbytes };
    return status;
}

static void free_forming(tn_view *v)
{
    forming *f = v->state;
    if (!f)
        return;
    tn_sparse_end(f->conversion);
    free_source(f);
    free(f);
}

bool tn_form_is_large(const tn_view *v)
{
    const forming *f = v->state;
    return v->step == &tn_step_form && f->is_large;
}

const tn_step tn_step_form = {
    .name = "form", .most_parts = 3, .describe = describe, .prepare = prepare, .blocks = blocks,
    .block = block, .free = free_forming,
};
