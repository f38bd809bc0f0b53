/* sparse/sparse.c - converts tensors to another form: checks, sizes, tn_convert_form(). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/kept.h"
#include "base/options.h"
#include "base/pages.h"
#include "tensor/array.h"
#include "tensor/form.h"
#include "sparse/sparse_plan.h"

enum { PIECE_BYTES = 1 << 20 };         /* another thread does not pay for less */

/* --- arguments -------------------------------------------------------------------- */

static bool is_known(tn_form form)
{
    return form == TN_FORM_DENSE || form == TN_FORM_COO || form == TN_FORM_CSR;
}

static tn_status check_options(const tn_sparse_options *o, tn_error *err)
{
    bool known = o->index == TN_UNKNOWN || o->index == TN_INT32 || o->index == TN_INT64 ||
                 o->index == TN_UINT32 || o->index == TN_UINT64;
    const tn_dtype_info *index = tn_dtype_get(o->index);
    if (isnan(o->threshold) || o->threshold < 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a threshold of 0 or more but found %g", o->threshold);
    if (o->threshold > 0 && !o->drop)
        return tn_fail(err, TN_ERR_ARGUMENT, "a threshold of %g has no effect without drop", o->threshold);
    if (o->duplicates != TN_DUPLICATES_REFUSE && o->duplicates != TN_DUPLICATES_SUM)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a duplicates mode of 0 or 1 but found %d",
                       (int)o->duplicates);
    if (!known)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected indices of int32, int64, uint32 or uint64 but found %s",
                       index ? index->name : "an unknown type");
    return TN_OK;
}

static tn_status check_element(const tn_tensor *t, tn_form to, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    if (type->bits < 8)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "%s is narrower than a byte: cast it to a type of whole bytes first", type->name);
    if (type->specials == TN_SPECIALS_E8M0)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "%s has no zero, so it cannot be sparse",
                       type->name);
    if (to == TN_FORM_CSR && t->rank != 2 && t->rank != 3)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "form csr has two dimensions, or three: a batch; but found %" PRIu32, t->rank);
    return TN_OK;
}

/* Every part is dense and has its data; *nbytes: of all of them. */
static tn_status check_parts(const tn_tensor *t, uint64_t *nbytes, tn_error *err)
{
    *nbytes = 0;
    for (uint32_t i = 0; i < t->nparts; i++) {
        const tn_part *p = &t->parts[i];
        uint64_t count, bytes = 0;
        char which[120];
        snprintf(which, sizeof which, "part %s", tn_quote_z(p->role ? p->role : "").text);
        TN_TRY(tn_array_check_dense(&p->array, p->data, which, &count, err));
        tn_array_nbytes(&p->array, &bytes);
        if (!tn_add_u64(*nbytes, bytes, nbytes))
            *nbytes = UINT64_MAX;
    }
    return TN_OK;
}

static tn_status check_source(const tn_tensor *t, tn_form to, uint64_t *nbytes, tn_error *err)
{
    if (!is_known(to))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected form dense, coo or csr but found %s",
                       tn_form_name(to));
    if (!t->parts)
        return tn_fail(err, TN_ERR_ARGUMENT, "a tensor without parts");
    if (tn_shape_count(t->rank, t->shape, nbytes) == TN_ERR_ARGUMENT)
        return tn_fail(err, TN_ERR_ARGUMENT, "a negative extent or a rank above %d", TN_MAX_RANK);
    tn_tensor named = *t;
    named.name = t->name ? t->name : "";
    if (!is_known(t->form))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "form %s does not become %s: only dense, coo and csr do",
                       tn_quote_z(tn_tensor_form_name(t)).text, tn_form_name(to));
    TN_TRY(check_parts(t, nbytes, err));
    TN_TRY(tn_form_check(&named, NULL, err));
    return check_element(t, to, err);
}

/* --- the source -------------------------------------------------------------------- */

/* Never NULL, even if there are no bytes. */
static const uint8_t *data_of(const tn_part *part)
{
    static const uint8_t nothing[1];
    return part->data ? part->data : nothing;
}

static void take_source(tn_sparse_conversion *r, const tn_tensor *t)
{
    tn_items *s = &r->items;
    s->form = t->form;
    s->width = tn_dtype_get(t->dtype)->bits / 8u;
    s->values = data_of(&t->parts[0]);
    s->rank = t->rank;
    s->shape = t->shape;
    tn_shape_count(t->rank, t->shape, &s->elements);    /* fits: tn_form_check() counted them */
    s->columns = t->rank ? (uint64_t)t->shape[t->rank - 1] : 1;
    s->rows = 1;
    for (uint32_t i = 0; i + 1 < t->rank; i++)
        if (!tn_mul_u64(s->rows, (uint64_t)t->shape[i], &s->rows))
            s->rows = UINT64_MAX;
    s->count = s->form == TN_FORM_DENSE ? s->elements : (uint64_t)t->parts[0].array.shape[0];
    if (s->form != TN_FORM_DENSE) {
        s->indices = data_of(&t->parts[1]);
        s->index_bits = tn_dtype_get(t->parts[1].array.dtype)->bits;
    }
    if (s->form == TN_FORM_CSR)
        s->indptr = data_of(&t->parts[2]);
}

/* Sorts the entries of a sparse source into a copy unless they are in row-major order. */
static tn_status sort_entries(tn_sparse_conversion *r, const tn_tensor *t, tn_duplicates duplicates,
                              tn_pool *pool, tn_error *err)
{
    tn_entry_order order;
    if (r->items.form == TN_FORM_DENSE)
        return TN_OK;
    tn_status status = tn_entries_check(t, pool, &order, err);
    if (status != TN_OK || order.ascending)
        return status;
    status = tn_entries_sort(t, duplicates, pool, &r->sorted, err);
    r->items.count = r->sorted.count;
    r->items.keys = r->sorted.keys;
    r->items.values = r->sorted.values;
    return status;
}

/* --- sizes -------------------------------------------------------------------------- */

static bool add_product(uint64_t *sum, uint64_t a, uint64_t b)
{
    uint64_t product;
    return tn_mul_u64(a, b, &product) && tn_add_u64(*sum, product, sum) && *sum <= INT64_MAX;
}

/* TN_ERR_LIMIT: a result of `entries` (or, with at_least, more) is too large. */
static tn_status check_size(const tn_sparse_conversion *r, uint64_t entries, unsigned index_bits,
                            bool at_least, tn_error *err)
{
    const tn_items *s = &r->items;
    uint64_t bytes = 0, width = index_bits / 8;
    bool fits;
    if (r->to == TN_FORM_DENSE)
        fits = add_product(&bytes, s->elements, s->width);
    else if (r->to == TN_FORM_COO)
        fits = add_product(&bytes, entries, s->width + s->rank * width);
    else
        fits = add_product(&bytes, entries, s->width + width) && s->rows < INT64_MAX &&
               add_product(&bytes, s->rows + 1, width);
    if (fits && bytes <= r->limit)
        return TN_OK;
    const char *as = r->to == TN_FORM_DENSE ? "" : "as ", *form = tn_form_name(r->to);
    if (!fits)
        return tn_fail(err, TN_ERR_LIMIT, "%s%s it would take 2^63 bytes or more: no limit allows that", as,
                       form);
    return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_MAX_BYTES, NULL,
                     "%s%s it would take %s%" PRIu64 " bytes, more than the %" PRIu64 " allowed", as, form,
                     at_least && r->to != TN_FORM_DENSE ? "at least " : "", bytes, r->limit);
}

static tn_dtype likely_index(tn_dtype wanted, tn_dtype had)
{
    if (wanted != TN_UNKNOWN)
        return wanted;
    return had != TN_UNKNOWN ? had : TN_INT32;
}

static uint64_t largest_index(tn_dtype index)
{
    if (index == TN_INT32)
        return INT32_MAX;
    return index == TN_UINT32 ? UINT32_MAX : INT64_MAX;
}

/* The first dimension that is too long for indices of this type, or `rank`.
 * Indices that are copied unchanged always fit. */
static uint32_t too_long(const tn_sparse_conversion *r, tn_dtype index, tn_dtype had)
{
    const tn_items *s = &r->items;
    uint32_t d = r->to == TN_FORM_CSR ? s->rank - 1 : 0;
    for (; d < s->rank; d++) {
        bool kept = index == had && (s->form == TN_FORM_COO || (s->form == TN_FORM_CSR && d == s->rank - 1));
        if (!kept && s->shape[d] && (uint64_t)s->shape[d] - 1 > largest_index(index))
            break;
    }
    return d;
}

static bool counts_entries(const tn_sparse_conversion *r, tn_dtype index)
{
    return r->to != TN_FORM_CSR || r->count <= largest_index(index);
}

/* Chooses the index type of the result; `had`: that of the source, or TN_UNKNOWN. */
static tn_status choose_index(const tn_sparse_conversion *r, tn_dtype wanted, tn_dtype had, tn_dtype *index,
                              tn_error *err)
{
    *index = likely_index(wanted, had);
    uint32_t dimension = too_long(r, *index, had);
    if (wanted == TN_UNKNOWN && had == TN_UNKNOWN &&
        (dimension < r->items.rank || !counts_entries(r, *index))) {
        *index = TN_INT64;
        return TN_OK;
    }
    const char *name = tn_dtype_get(*index)->name;
    if (dimension < r->items.rank)
        return tn_fail(err, TN_ERR_LOSS,
                       "dimension %" PRIu32 " has %" PRId64 " elements, more than %s can number: int64 can",
                       dimension, r->items.shape[dimension], name);
    if (!counts_entries(r, *index))
        return tn_fail(err, TN_ERR_LOSS, "%" PRIu64 " entries are more than %s can count: int64 can",
                       r->count, name);
    return TN_OK;
}

/* --- the result ----------------------------------------------------------------------- */

static void describe_part(tn_part *part, const char *role, tn_dtype dtype, uint32_t rank,
                          const int64_t *shape)
{
    *part = (tn_part){ .role = role, .array = { .dtype = dtype, .rank = rank, .shape = shape } };
    tn_array_nbytes(&part->array, &part->nbytes);       /* fits: check_size() */
}

static void describe(tn_sparse_conversion *r, const tn_tensor *t, tn_dtype index)
{
    const tn_form_info *form = tn_form_get(r->to);
    bool dense = r->to == TN_FORM_DENSE, csr = r->to == TN_FORM_CSR;
    r->values_shape[0] = r->indices_shape[0] = (int64_t)r->count;
    r->indices_shape[1] = r->items.rank;
    r->indptr_shape[0] = csr ? (int64_t)r->items.rows + 1 : 0;
    if (dense)
        describe_part(&r->parts[0], form->roles[0], t->dtype, t->rank, t->shape);
    else
        describe_part(&r->parts[0], form->roles[0], t->dtype, 1, r->values_shape);
    if (!dense)
        describe_part(&r->parts[1], form->roles[1], index, csr ? 1 : 2, r->indices_shape);
    if (csr)
        describe_part(&r->parts[2], form->roles[2], index, 1, r->indptr_shape);
    r->result = (tn_tensor){ .name = t->name, .form = r->to, .dtype = t->dtype, .rank = t->rank,
                             .shape = t->shape,
                             .parts = r->parts, .nparts = form->required, .layout = t->layout };
}

typedef struct request {
    const tn_tensor  *source;
    tn_form           form;
    tn_sparse_options options;
    bool              whole;    /* the result is converted at once, in memory */
    const tn_sparse_reader *reader;     /* of a dense source, or NULL */
} request;

static tn_status count(tn_sparse_conversion *r, const request *q, bool collect, tn_pool *pool, tn_error *err)
{
    const tn_items *s = &r->items;
    bool rows = s->form == TN_FORM_DENSE && r->to == TN_FORM_CSR && s->count, counted = false;
    tn_status status = TN_OK;
    if (!r->filtered || r->to == TN_FORM_DENSE)
        return TN_OK;
    r->starts = calloc((size_t)r->blocks + 1, sizeof *r->starts);
    r->row_ends = rows ? tn_pages_alloc((size_t)s->rows * sizeof *r->row_ends) : NULL;
    if (!r->starts || (rows && !r->row_ends))
        return tn_fail_nomem(err);
    if (collect)
        status = tn_sparse_collect(r, pool, &counted, err);
    if (status == TN_OK && !counted)
        status = q->reader ? tn_sparse_count_read(r, q->reader, err) : tn_sparse_count(r, pool, err);
    tn_sparse_add_up(r);
    return status;
}

static tn_status point(tn_sparse_conversion *r, tn_pool *pool, tn_error *err)
{
    if (r->to != TN_FORM_CSR)
        return TN_OK;
    r->pointers = tn_lines_alloc(r->parts[2].nbytes);
    TN_NEED(r->pointers, err);
    tn_status status = tn_sparse_point(r, pool, err);
    free(r->row_ends);
    r->row_ends = NULL;
    return status;
}

/* The bits of the result's indices if they do not depend on the number of entries, else 0. */
static unsigned certain_bits(const tn_sparse_conversion *r, tn_dtype wanted, tn_dtype had)
{
    tn_sparse_conversion none = { .items = r->items, .to = r->to };
    tn_dtype most, least;
    if (choose_index(r, wanted, had, &most, NULL) != TN_OK ||
        choose_index(&none, wanted, had, &least, NULL) != TN_OK)
        return 0;
    return most == least ? tn_dtype_get(most)->bits : 0;
}

static tn_status begin(tn_sparse_conversion *r, const request *q, tn_pool *pool, tn_error *err)
{
    bool from_dense = r->items.form == TN_FORM_DENSE, to_dense = r->to == TN_FORM_DENSE;
    tn_dtype had = from_dense ? TN_UNKNOWN : q->source->parts[1].array.dtype, index = TN_UNKNOWN;
    tn_dtype wanted = q->options.index, likely = likely_index(wanted, had);
    TN_TRY(check_size(r, 0, tn_dtype_get(likely)->bits, true, err));
    TN_TRY(sort_entries(r, q->source, q->options.duplicates, pool, err));
    r->count = to_dense ? r->items.elements : r->items.count;
    r->blocks = tn_div_up_u64(r->count, TN_SPARSE_BLOCK);
    r->index_bits = to_dense ? 0 : certain_bits(r, wanted, had);
    TN_TRY(count(r, q, q->whole && from_dense && r->index_bits, pool, err));
    if (!to_dense)
        TN_TRY(choose_index(r, wanted, had, &index, err));
    r->index_bits = index != TN_UNKNOWN ? tn_dtype_get(index)->bits : 0;
    TN_TRY(check_size(r, r->count, r->index_bits, false, err));
    describe(r, q->source, index);
    return point(r, pool, err);
}

/* --- the calls -------------------------------------------------------------------------- */

static tn_status start(const request *q, tn_pool *pool, tn_sparse_conversion **conversion, tn_error *err)
{
    const tn_sparse_options *o = &q->options;
    uint64_t nbytes;
    TN_TRY(check_options(o, err));
    TN_TRY(check_source(q->source, q->form, &nbytes, err));
    tn_sparse_conversion *r = calloc(1, sizeof *r);
    TN_NEED(r, err);
    take_source(r, q->source);
    r->to = q->form;
    r->kernels = tn_sparse_kernels_get();
    r->filtered = o->drop || (r->items.form == TN_FORM_DENSE && r->to != TN_FORM_DENSE);
    r->filter = tn_filter_for(tn_dtype_get(q->source->dtype), o->drop, o->threshold);
    r->limit = tn_kept_limit(o->limit, nbytes);
    tn_status status = begin(r, q, pool, err);
    if (status == TN_OK)
        *conversion = r;
    else
        tn_sparse_end(r);
    return status;
}

tn_status tn_sparse_begin(const tn_tensor *source, tn_form form, const tn_sparse_options *options,
                          tn_pool *pool, tn_sparse_conversion **conversion, tn_error *err)
{
    request q = { .source = source, .form = form };
    TN_TRY(tn_take_options(TN_SIZED(tn_sparse_options, jobs), &q.options, options, err));
    return start(&q, pool, conversion, err);
}

tn_status tn_sparse_begin_read(const tn_tensor *source, tn_form form, const tn_sparse_options *options,
                               const tn_sparse_reader *reader, tn_sparse_conversion **conversion,
                               tn_error *err)
{
    tn_tensor there = *source;
    tn_part part = source->parts[0];
    request q = { .source = &there, .form = form, .reader = reader };
    part.data = (const uint8_t *)"";    /* which nobody looks at */
    there.parts = &part;
    there.nparts = 1;
    TN_TRY(tn_take_options(TN_SIZED(tn_sparse_options, jobs), &q.options, options, err));
    return start(&q, reader->pool, conversion, err);
}

const tn_tensor *tn_sparse_result(const tn_sparse_conversion *r)     { return &r->result; }
bool             tn_sparse_is_sorted_copy(const tn_sparse_conversion *r) { return r->items.keys != NULL; }
uint64_t         tn_sparse_blocks(const tn_sparse_conversion *r)     { return r->blocks; }
const void      *tn_sparse_indptr(const tn_sparse_conversion *r)     { return r->pointers; }

void tn_sparse_end(tn_sparse_conversion *r)
{
    if (!r)
        return;
    tn_entries_free(&r->sorted);
    free(r->starts);
    free(r->row_ends);
    free(r->pointers);
    free(r->converted[0]);
    free(r->converted[1]);
    free(r);
}

/* --- tensors in memory ------------------------------------------------------------------- */

/* The threads that have enough work. */
static unsigned threads_for(const tn_tensor *t, tn_form form, unsigned jobs)
{
    uint64_t bytes = 0, dense = 0;
    for (uint32_t i = 0; t->parts && i < t->nparts; i++)
        if (tn_array_nbytes(&t->parts[i].array, &dense) == TN_OK && dense > bytes)
            bytes = dense;
    if (form == TN_FORM_DENSE &&
        tn_shape_nbytes(t->dtype, t->rank, t->shape, &dense) == TN_OK && dense > bytes)
        bytes = dense;
    return tn_jobs_for(jobs, bytes / PIECE_BYTES);
}

tn_status tn_convert_form(const tn_tensor *tensor, tn_form form, const tn_sparse_options *options,
                          tn_tensor **result, tn_error *err)
{
    TN_GIVEN(tensor, "a tensor", err);
    TN_GIVEN(result, "a place for the result", err);
    request q = { .source = tensor, .form = form, .whole = true };
    tn_pool *pool;
    tn_sparse_conversion *r = NULL;
    TN_TRY(tn_take_options(TN_SIZED(tn_sparse_options, jobs), &q.options, options, err));
    TN_TRY(tn_pool_new(threads_for(tensor, form, q.options.jobs), &pool, err));
    tn_status status = start(&q, pool, &r, err);
    if (status == TN_OK)
        status = tn_sparse_tensor(r, pool, result, err);
    tn_sparse_end(r);
    tn_pool_free(pool);
    return status;
}
