/* sparse/sparse_plan.h - declarations that the files of a conversion share.
 *
 * sparse_filter.c  which elements are kept, for a type and a threshold
 * sparse_items.c   the items of a source: their keys, rows and indices
 * sparse_block.c   counts and converts blocks
 * sparse_scatter.c puts entries into a dense block
 * sparse_once.c    counts and converts blocks of a dense source in one pass
 * sparse_tensor.c  the result as a tensor, and its memory
 * sparse.c         checks, sizes, tn_convert_form() */
#ifndef TN_SPARSE_SPARSE_PLAN_H
#define TN_SPARSE_SPARSE_PLAN_H

#include "kernels/sparse/table.h"
#include "sparse/sparse.h"
#include "sparse/sparse_sort.h"

/* The filter for a type.  It drops exact zeros (all bits) or, with `drop`,
 * elements whose magnitude is not above the threshold. */
tn_filter tn_filter_for(const tn_dtype_info *type, bool drop, double threshold);

/* --- items ------------------------------------------------------------------ */

/* The source in row-major order: its elements if it is dense, else its entries.
 * The key of an item is the linear index of its element. */
typedef struct tn_items {
    tn_form         form;
    uint64_t        count;
    size_t          width;      /* bytes of a value */
    const uint8_t  *values, *indices, *indptr;
    unsigned        index_bits; /* of indices and indptr: 32 or 64 */
    const uint64_t *keys;       /* of entries that had to be sorted, instead of indices; else NULL */
    uint32_t        rank;
    const int64_t  *shape;
    uint64_t        elements, columns;
    uint64_t        rows;       /* UINT64_MAX: more than fit, and there are no elements */
} tn_items;

/* Items at + places[i] for i < n, ascending; without places at + i. */
typedef struct tn_item_run {
    uint64_t        at;
    const uint32_t *places;
    size_t          n;
} tn_item_run;

void tn_items_keys(const tn_items *items, tn_item_run run, uint64_t *keys);

/* The row of each item: its key without the last dimension.  Sparse sources only. */
void tn_items_rows(const tn_items *items, tn_item_run run, uint64_t *rows);

/* The row of an item of CSR: the last one that does not begin after it. */
uint64_t tn_items_row(const tn_items *items, uint64_t item);

/* The indices of the items as a sparse tensor of this form stores them, `bits` wide. */
void tn_items_indices(const tn_items *items, tn_item_run run, tn_form to, unsigned bits, void *indices);

/* The first item in low .. high whose key is at least `key`; `high` if there is none. */
uint64_t tn_items_find(const tn_items *items, uint64_t key, uint64_t low, uint64_t high);

/* --- the conversion ------------------------------------------------------------ */

enum {
    TN_SPARSE_CHUNK = 2048,     /* items processed together: their keys and places stay in the L1 cache */
    TN_SPARSE_FEW   = TN_SPARSE_BLOCK / 8   /* most entries of a block that the one-pass conversion buffers */
};

static inline size_t tn_sparse_chunk(uint64_t left)
{
    return left < TN_SPARSE_CHUNK ? (size_t)left : TN_SPARSE_CHUNK;
}

struct tn_sparse_conversion {
    tn_items      items;
    tn_entries    sorted;       /* owned; items refers to it if the entries had to be sorted */
    bool          filtered;     /* the filter drops items; else all are kept */
    tn_filter     filter;
    const tn_sparse_kernels *kernels;

    tn_form       to;
    unsigned      index_bits;   /* of the result */
    uint64_t      blocks;
    uint64_t      count;        /* entries (elements) of the result */
    uint64_t     *starts;       /* filtered into a sparse form: the first entry of each block, then `count` */
    uint32_t     *row_ends;     /* dense to CSR, until there are row pointers: for each row, how many entries
                                 * of its last block come before its end */
    uint8_t      *pointers;     /* of a CSR result */
    bool          collected;    /* converted[] holds all blocks of at most TN_SPARSE_FEW entries */
    uint8_t      *converted[2]; /* values and indices */
    bool          zeroed;       /* the memory for a dense result is already zero */

    tn_tensor     result;
    tn_part       parts[3];
    int64_t       values_shape[1], indices_shape[2], indptr_shape[1];
    uint64_t      limit;
};

/* Bytes of an entry's indices. */
size_t tn_sparse_index_bytes(const tn_sparse_conversion *r);

/* True if the places of items in their row are the indices of the result. */
bool tn_sparse_is_direct(const tn_sparse_conversion *r);

/* Picks the items [at, at + n) that are kept. */
size_t tn_sparse_pick(const tn_sparse_conversion *r, uint64_t at, size_t n, tn_picked to);

/* The places of those items.  n <= TN_SPARSE_CHUNK. */
size_t tn_sparse_pick_places(const tn_sparse_conversion *r, uint64_t at, size_t n, uint32_t *places);

/* Elements [first, first + n) of a dense result. */
typedef struct tn_sparse_target {
    uint8_t *to;
    uint64_t first, n;
} tn_sparse_target;

/* Puts the entries [at, end) of a sparse source to their places, if they are in the target. */
void tn_sparse_scatter(const tn_sparse_conversion *r, tn_sparse_target t, uint64_t at, uint64_t end);

/* Counts the entries of each block into `starts`, and fills row_ends if there are any. */
tn_status tn_sparse_count(tn_sparse_conversion *r, tn_pool *pool, tn_error *err);

/* The same of elements that are read. */
tn_status tn_sparse_count_read(tn_sparse_conversion *r, const tn_sparse_reader *reader, tn_error *err);

/* Counts one block into starts[block + 1]. */
void tn_sparse_count_block(const tn_sparse_conversion *r, uint64_t block);

/* Sets the row_ends of rows that end in [at, at + n).  `kept` items are kept
 * there, at these places, after `before` entries of the same block. */
void tn_sparse_end_rows(const tn_sparse_conversion *r, uint64_t at, size_t n, const uint32_t *places,
                        size_t kept, uint64_t before);

/* Counts as tn_sparse_count() and converts blocks of few entries, if that is
 * faster: for a large dense source.  *done is false if nothing was counted. */
tn_status tn_sparse_collect(tn_sparse_conversion *r, tn_pool *pool, bool *done, tn_error *err);

/* Turns the counts of blocks into offsets. */
void tn_sparse_add_up(tn_sparse_conversion *r);

/* Fills the row pointers. */
tn_status tn_sparse_point(tn_sparse_conversion *r, tn_pool *pool, tn_error *err);

/* Converts all blocks that were not collected. */
tn_status tn_sparse_convert_all(const tn_sparse_conversion *r, void *values, void *indices, tn_pool *pool,
                                tn_error *err);

/* The result with memory of its own, for tn_tensor_free(). */
tn_status tn_sparse_tensor(tn_sparse_conversion *r, tn_pool *pool, tn_tensor **result, tn_error *err);

/* Allocates memory on a cache line, for free(). */
void *tn_lines_alloc(uint64_t nbytes);

#endif
