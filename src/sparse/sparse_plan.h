/* sparse/sparse_plan.h - what the files of the sparse conversion share.
 *
 * sparse_sieve.c  which elements stay, for a type and a threshold
 * sparse_items.c  where the items of a source are: keys, rows, indices
 * sparse_block.c  counts and makes blocks
 * sparse_once.c   counts and makes those of a dense source in one pass
 * sparse_tensor.c the tensor that is made as a whole, and its memory
 * sparse.c        checks, sizes, tn_convert_form() */
#ifndef TN_SPARSE_SPARSE_PLAN_H
#define TN_SPARSE_SPARSE_PLAN_H

#include "kernels/sparse/table.h"
#include "sparse/sparse.h"
#include "sparse/sparse_sort.h"

/* The sieve of a type: exact zeros, all bits, or with `drop` whatever is not
 * above the threshold. */
tn_sieve tn_sieve_for(const tn_dtype_info *type, bool drop, double threshold);

/* --- items ------------------------------------------------------------------ */

/* The source in row-major order: all elements or, where it is sparse, entries.
 * An item's key is its element's number in that order. */
typedef struct tn_items {
    tn_form         form;
    uint64_t        count;
    size_t          width;      /* bytes of a value */
    const uint8_t  *values, *indices, *indptr;
    unsigned        index_bits; /* of indices and indptr: 32 or 64 */
    const uint64_t *keys;       /* of entries that had to be sorted: instead of indices; else NULL */
    uint32_t        rank;
    const int64_t  *shape;
    /* rows: UINT64_MAX where they do not fit, and there is no element */
    uint64_t        elements, rows, columns;
} tn_items;

/* Items at + places[i] for i < n, ascending, or with places NULL at + i. */
typedef struct tn_item_run {
    uint64_t        at;
    const uint32_t *places;
    size_t          n;
} tn_item_run;

void tn_items_keys(const tn_items *items, tn_item_run run, uint64_t *keys);

/* The row of each: its key without the last dimension.  Sparse sources. */
void tn_items_rows(const tn_items *items, tn_item_run run, uint64_t *rows);

/* Their indices as a sparse tensor of this form has them, of `bits`. */
void tn_items_indices(const tn_items *items, tn_item_run run, tn_form to, unsigned bits, void *indices);

/* The first item whose key is not below this one, or their number; it is known to be one of low .. high. */
uint64_t tn_items_find(const tn_items *items, uint64_t key, uint64_t low, uint64_t high);

/* --- the conversion ------------------------------------------------------------ */

enum {
    TN_SPARSE_CHUNK = 2048,     /* items done together, so that what is known of them stays in the first-level
                                 * cache */
    TN_SPARSE_KEPT  = TN_SPARSE_BLOCK / 8   /* entries of a block that is made while it is counted, at most */
};

struct tn_sparse_conversion {
    tn_items      items;
    tn_entries    sorted;       /* owned; what items refers to if they had to be sorted */
    bool          sifted;       /* items fall through a sieve; else all stay */
    tn_sieve      sieve;
    const tn_sparse_kernels *kernels;

    tn_form       to;
    unsigned      index_bits;   /* of the result */
    uint64_t      blocks;
    uint64_t      count;        /* entries (elements) of the result */
    uint64_t     *starts;       /* sifted into a sparse form: the first entry of each block, and `count`; else
                                 * NULL */
    uint32_t     *row_ends;     /* dense to CSR, until there are pointers: what stays of a block up to the end
                                 * of a row in it */
    uint8_t      *pointers;     /* of a CSR result */
    bool          is_gathered;  /* values and indices are made already, but of blocks of more than
                                 * TN_SPARSE_KEPT entries */
    uint8_t      *gathered[2];
    bool          zeroed;       /* a dense result goes where all is zero already */

    tn_tensor     result;
    tn_part       parts[3];
    int64_t       values_shape[1], indices_shape[2], indptr_shape[1];
    uint64_t      limit;
};

/* The items (elements of a dense result) of a block: the first of n. */
uint64_t tn_sparse_items(const tn_sparse_conversion *r, uint64_t block, size_t *n);

/* Bytes of an entry's indices. */
size_t tn_sparse_index_bytes(const tn_sparse_conversion *r);

/* True where places of items in their row are the indices that are wanted. */
bool tn_sparse_is_direct(const tn_sparse_conversion *r);

/* Counts what stays in each block: starts, and row_ends where there are. */
tn_status tn_sparse_count(tn_sparse_conversion *r, tn_pool *pool, tn_error *err);

/* Of one block, in starts[block + 1]. */
void tn_sparse_count_block(const tn_sparse_conversion *r, uint64_t block);

/* The row_ends of rows that end in [at, at + n), after `before` entries of the
 * same block: `stay` items stay there, at these places. */
void tn_sparse_end_rows(const tn_sparse_conversion *r, uint64_t at, size_t n, const uint32_t *places,
                        size_t stay, uint64_t before);

/* Counts as tn_sparse_count() and makes the values and indices, but those of
 * dense blocks, where that is faster: a large dense source, few entries.
 * `done` is false where nothing was counted. */
tn_status tn_sparse_gather(tn_sparse_conversion *r, tn_pool *pool, bool *done, tn_error *err);

/* Makes counts of blocks their places. */
void tn_sparse_add_up(tn_sparse_conversion *r);

/* Fills the pointers. */
tn_status tn_sparse_point(tn_sparse_conversion *r, tn_pool *pool, tn_error *err);

/* Makes all blocks that were not gathered. */
tn_status tn_sparse_make_all(const tn_sparse_conversion *r, void *values, void *indices, tn_pool *pool,
                             tn_error *err);

/* The result in memory of its own, for tn_tensor_free(). */
tn_status tn_sparse_make_tensor(tn_sparse_conversion *r, tn_pool *pool, tn_tensor **made, tn_error *err);

/* Memory on cache lines, for free(). */
void *tn_lines_alloc(uint64_t nbytes);

#endif
