/* sparse/sparse.h - a tensor in memory into another form, block by block.
 *
 * What is found out once (are the indices inside the shape and in order, how
 * many entries will there be, which come in which block) is a tn_sparse_conversion;
 * then any thread makes any block of the result.
 *
 * sparse.c       the conversion as a whole; tn_convert_form()
 * sparse_sort.c  entries in any order into row-major order */
#ifndef TN_SPARSE_SPARSE_H
#define TN_SPARSE_SPARSE_H

#include "base/pool.h"

#include <tenon/sparse.h>

/* Entries (or, of a dense result, elements) of a block at most. */
#define TN_SPARSE_BLOCK ((uint64_t)1 << 16)

typedef struct tn_sparse_conversion tn_sparse_conversion;

/* Checks the tensor and its indices, sorts them where they are out of order,
 * counts.  `source` and its data must stay until the end; options->jobs is not
 * looked at.  Fails as tn_convert_form() does; the texts do not name the tensor. */
tn_status tn_sparse_begin(const tn_tensor *source, tn_form form, const tn_sparse_options *options,
                          tn_pool *pool, tn_sparse_conversion **reforming, tn_error *err);

/* What comes out: form, type, rank, shape and the parts (role, array, nbytes),
 * without data; lives as long as the reforming. */
const tn_tensor *tn_sparse_result(const tn_sparse_conversion *r);

/* True where it holds more than counts and row pointers: sorted entries. */
bool tn_sparse_is_sorted_copy(const tn_sparse_conversion *r);

uint64_t tn_sparse_blocks(const tn_sparse_conversion *r);

/* Entries (elements) of the first part that a block makes: [first, first + n). */
void tn_sparse_place(const tn_sparse_conversion *r, uint64_t block, uint64_t *first, uint64_t *n);

/* Makes a block of the first part and, of a sparse result, of the indices;
 * either may be NULL.  Any thread. */
void tn_sparse_make(const tn_sparse_conversion *r, uint64_t block, void *values, void *indices);

/* The row pointers of a CSR result, of its index type. */
const void *tn_sparse_indptr(const tn_sparse_conversion *r);

void tn_sparse_end(tn_sparse_conversion *r);

#endif
