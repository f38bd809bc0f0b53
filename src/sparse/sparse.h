/* sparse/sparse.h - converts a tensor in memory to another form, block by block.
 *
 * tn_sparse_begin() checks and sorts the indices, counts the entries and divides
 * them into blocks.  Then any thread converts any block.
 *
 * sparse.c       the conversion as a whole; tn_convert_form()
 * sparse_sort.c  sorts entries into row-major order */
#ifndef TN_SPARSE_SPARSE_H
#define TN_SPARSE_SPARSE_H

#include "base/pool.h"

#include <tenon/sparse.h>

/* The most entries (elements of a dense result) of a block. */
#define TN_SPARSE_BLOCK ((uint64_t)1 << 16)

typedef struct tn_sparse_conversion tn_sparse_conversion;

/* `source` and its data must stay until tn_sparse_end(); options->jobs is
 * ignored.  Fails as tn_convert_form() does; the texts do not name the tensor. */
tn_status tn_sparse_begin(const tn_tensor *source, tn_form form, const tn_sparse_options *options,
                          tn_pool *pool, tn_sparse_conversion **conversion, tn_error *err);

/* The description of the result: form, type, rank, shape and the parts (role,
 * array, nbytes) without data.  It lives as long as the conversion. */
const tn_tensor *tn_sparse_result(const tn_sparse_conversion *r);

/* True if it holds a sorted copy of the entries, not only counts and row pointers. */
bool tn_sparse_is_sorted_copy(const tn_sparse_conversion *r);

uint64_t tn_sparse_blocks(const tn_sparse_conversion *r);

/* The entries (elements) of the first part that a block has: [first, first + n). */
void tn_sparse_place(const tn_sparse_conversion *r, uint64_t block, uint64_t *first, uint64_t *n);

/* Converts a block of the first part and, of a sparse result, of the indices;
 * either may be NULL.  Any thread. */
void tn_sparse_make(const tn_sparse_conversion *r, uint64_t block, void *values, void *indices);

/* The row pointers of a CSR result, in its index type. */
const void *tn_sparse_indptr(const tn_sparse_conversion *r);

void tn_sparse_end(tn_sparse_conversion *r);

#endif
