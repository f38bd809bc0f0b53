/* sparse/sparse_entries.c - reads and checks the indices of sparse tensors. */
#include "sparse/sparse_entries.h"
#include "tensor/indices.h"
#include "kernels/sparse/table.h"
#include "sparse/sparse_sort.h"

#include <stdlib.h>

enum {
    BLOCK = 512,                /* keys at a time: they stay in the L1 cache */
    SPAN  = 1 << 16             /* entries checked by one item of work */
};

tn_entry_view tn_entry_view_of(const tn_tensor *t)
{
    tn_entry_view v = { .tensor = t, .values = t->parts[0].data, .indices = t->parts[1].data,
                        .type = t->parts[1].array.dtype, .count = (uint64_t)t->parts[0].array.shape[0] };
    if (t->nparts == 3) {
        v.indptr = t->parts[2].data;
        v.rows = (uint64_t)t->parts[2].array.shape[0] - 1;
        v.columns = (uint64_t)t->shape[t->rank - 1];
    }
    return v;
}

static uint64_t pointer_at(const tn_entry_view *v, uint64_t row)
{
    return tn_index_get(v->type, v->indptr, row);
}

/* --- keys ---------------------------------------------------------------- */

/* Compiled once per type, and once more for matrices. */
INLINE bool coo_keys_ranked(const tn_entry_view *v, uint64_t first, size_t n, uint64_t *restrict keys,
                            tn_dtype type, uint32_t rank)
{
    const int64_t *shape = v->tensor->shape;
    uint64_t at = first * rank;
    unsigned outside = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = 0;
        for (uint32_t k = 0; k < rank; k++) {
            uint64_t index = tn_index_get(type, v->indices, at++), extent = (uint64_t)shape[k];
            outside |= index >= extent;
            key = key * extent + index;
        }
        keys[i] = key;
    }
    return !outside;
}

INLINE bool coo_keys_typed(const tn_entry_view *v, uint64_t first, size_t n, uint64_t *keys, tn_dtype type)
{
    uint32_t rank = v->tensor->rank;
    return rank == 2 ? coo_keys_ranked(v, first, n, keys, type, 2)
                     : coo_keys_ranked(v, first, n, keys, type, rank);
}

static bool coo_keys(const tn_entry_view *v, uint64_t first, size_t n, uint64_t *keys)
{
    switch (v->type) {
    case TN_INT32:  return coo_keys_typed(v, first, n, keys, TN_INT32);
    case TN_UINT32: return coo_keys_typed(v, first, n, keys, TN_UINT32);
    default:        return coo_keys_typed(v, first, n, keys, TN_UINT64);
    }
}

/* The row that has this entry. */
static uint64_t row_of(const tn_entry_view *v, uint64_t entry)
{
    uint64_t low = 0, high = v->rows;           /* pointer[low] <= entry < pointer[high] */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (pointer_at(v, middle) <= entry)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The last row gets all remaining entries: pointers may have changed since they were checked. */
static bool csr_keys(const tn_entry_view *v, uint64_t first, size_t n, uint64_t *restrict keys)
{
    uint64_t row = row_of(v, first);
    unsigned outside = 0;
    for (size_t i = 0; i < n; row++) {
        uint64_t end = row + 1 < v->rows ? pointer_at(v, row + 1) - first : n, base = row * v->columns;
        for (; i < n && i < end; i++) {
            uint64_t index = tn_index_get(v->type, v->indices, first + i);
            outside |= index >= v->columns;
            keys[i] = base + index;
        }
    }
    return !outside;
}

bool tn_entry_keys(const tn_entry_view *v, uint64_t first, size_t n, uint64_t *keys)
{
    return v->indptr ? csr_keys(v, first, n, keys) : coo_keys(v, first, n, keys);
}

/* --- checking ------------------------------------------------------------ */

typedef struct checking {
    tn_entry_view   v;
    tn_entry_order *order;
    tn_entry_order *found;          /* one per result */
} checking;

static uint64_t span_size(uint64_t count, uint64_t span)
{
    uint64_t left = count - span * SPAN;
    return left < SPAN ? left : SPAN;
}

static tn_status check_pointers(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const tn_entry_view *v = &((const checking *)context)->v;
    (void)use;
    uint64_t first = item * SPAN, end = first + span_size(v->rows + 1, item);
    tn_row_pointer p = { .dtype = v->type, .i = first, .rows = v->rows, .entries = v->count,
                         .before = first ? pointer_at(v, first - 1) : 0 };
    for (; p.i < end; p.i++, p.before = p.found) {
        p.found = pointer_at(v, p.i);
        if (!tn_row_pointer_is_right(&p))
            return tn_fail(err, TN_ERR_CORRUPT, "%s", tn_row_pointer_fault(&p).text);
    }
    return TN_OK;
}

tn_status tn_entry_fail_changed(tn_error *err)
{
    return tn_fail(err, TN_ERR_CORRUPT, "the indices changed while they were read");
}

/* Names the first index outside the shape; one of the n entries has one. */
static tn_status fail_index(const tn_entry_view *v, uint64_t first, size_t n, tn_error *err)
{
    uint32_t columns = v->indptr ? 1 : v->tensor->rank, before = v->tensor->rank - columns;
    for (uint64_t i = first * columns; i < (first + n) * columns; i++) {
        uint64_t found = tn_index_get(v->type, v->indices, i);
        uint32_t dimension = before + (uint32_t)(i % columns);
        int64_t extent = v->tensor->shape[dimension];
        if (found >= (uint64_t)extent)
            return tn_fail(err, TN_ERR_CORRUPT, "%s",
                           tn_index_fault(v->type, i / columns, dimension, extent, found).text);
    }
    return tn_entry_fail_changed(err);
}

bool tn_is_ascending(const uint64_t *keys, size_t n)
{
    unsigned wrong = 0;
    for (size_t i = 1; i < n; i++)
        wrong |= keys[i] <= keys[i - 1];
    return !wrong;
}

/* keys[0] is that of entry `first`. */
static tn_entry_order order_of(const uint64_t *keys, size_t n, uint64_t first)
{
    if (!tn_is_ascending(keys, n))
        for (size_t i = 1; i < n; i++)
            if (keys[i] <= keys[i - 1])
                return (tn_entry_order){ .first_wrong = first + i, .duplicate = keys[i] == keys[i - 1] };
    return (tn_entry_order){ .ascending = true };
}

/* --- a quick look: most tensors are in order --------------------------------------- */

static const uint8_t *indices_at(const tn_entry_view *v, uint64_t i)
{
    return v->indices + i * sizeof(uint32_t);
}

/* Entries [at, end) of CSR, whose columns ascend within each row. */
static bool rows_ascend(const tn_entry_view *v, const tn_sparse_kernels *k, uint64_t at, uint64_t end)
{
    uint64_t row = row_of(v, at);
    bool follows = at > pointer_at(v, row);
    for (; at < end && row < v->rows; row++, follows = false) {
        uint64_t next = pointer_at(v, row + 1), first = follows ? at - 1 : at;
        next = next < end ? next : end;
        if (next < at || (next > at && tn_index_get(v->type, v->indices, next - 1) >= v->columns) ||
            !k->ascend(indices_at(v, first), next > at ? (size_t)(next - first) : 0))
            return false;
        at = next;
    }
    return at == end;
}

/* Entries of a matrix as COO: pairs of a row and a column. */
static bool pairs_ascend(const tn_entry_view *v, const tn_sparse_kernels *k, uint64_t at, uint64_t end)
{
    const uint32_t limits[2] = { (uint32_t)v->tensor->shape[0], (uint32_t)v->tensor->shape[1] };
    uint64_t first = at ? at - 1 : at;
    return k->pairs_ascend(indices_at(v, 2 * first), (size_t)(end - first), limits);
}

/* True only if the entries [at, end) are right and ascend, after the one before them.  Negative indices are
 * large without their sign. */
static bool is_in_order(const tn_entry_view *v, uint64_t at, uint64_t end)
{
    const tn_tensor *t = v->tensor;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->shape[i] > INT32_MAX)
            return false;
    if (tn_dtype_get(v->type)->bits != 32)
        return false;
    if (v->indptr)
        return rows_ascend(v, tn_sparse_kernels_get(), at, end);
    return t->rank == 2 && pairs_ascend(v, tn_sparse_kernels_get(), at, end);
}

static tn_status check_span(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const checking *c = context;
    const tn_entry_view *v = &c->v;
    uint64_t at = item * SPAN, end = at + span_size(v->count, item), keys[BLOCK + 1];
    tn_entry_order order = { .ascending = true };
    if (is_in_order(v, at, end)) {
        c->found[use.result] = order;
        return TN_OK;
    }
    if (at)
        tn_entry_keys(v, at - 1, 1, keys);      /* the span before checks it */
    for (size_t n; at < end; at += n) {
        n = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
        if (!tn_entry_keys(v, at, n, keys + 1))
            return fail_index(v, at, n, err);
        if (order.ascending)
            order = at ? order_of(keys, n + 1, at - 1) : order_of(keys + 1, n, at);
        keys[0] = keys[n];
    }
    c->found[use.result] = order;
    return TN_OK;
}

static tn_status keep_first(void *context, uint64_t item, unsigned result, tn_error *err)
{
    const checking *c = context;
    (void)item;
    (void)err;
    if (c->order->ascending)
        *c->order = c->found[result];
    return TN_OK;
}

tn_status tn_entries_check(const tn_tensor *tensor, tn_pool *pool, tn_entry_order *order, tn_error *err)
{
    checking c = { .v = tn_entry_view_of(tensor), .order = order };
    *order = (tn_entry_order){ .ascending = true };
    c.found = calloc(tn_pool_results(pool), sizeof *c.found);
    TN_NEED(c.found, err);
    const tn_ordered pointers = { .work = check_pointers, .context = &c };
    const tn_ordered indices = { .work = check_span, .emit = keep_first, .context = &c };
    tn_status status = TN_OK;
    if (c.v.indptr)
        status = tn_pool_run(pool, c.v.rows / SPAN + 1, &pointers, err);
    if (!status)
        status = tn_pool_run(pool, (c.v.count + SPAN - 1) / SPAN, &indices, err);
    free(c.found);
    return status;
}
