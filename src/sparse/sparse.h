/* sparse/sparse.h - converts a tensor to another form, block by block.
 *
 * tn_sparse_begin() checks and sorts the indices, counts the entries and divides
 * them into blocks.  Then any thread converts any block.  The tensor is in memory or,
 * if it is dense, made when it is asked for: once to count and once to convert.
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

/* The elements of a dense tensor that is not in memory. */
typedef struct tn_sparse_reader {
    /* Elements [first, first + n), valid until the same thread of the pool reads again. */
    tn_status (*read)(void *context, unsigned thread, uint64_t first, size_t n, const uint8_t **elements,
                      tn_error *err);
    void     *context;
    tn_pool  *pool;
} tn_sparse_reader;

/* The same of a dense source whose part has no data.  tn_sparse_make_of() makes its blocks. */
tn_status tn_sparse_begin_read(const tn_tensor *source, tn_form form, const tn_sparse_options *options,
                               const tn_sparse_reader *reader, tn_sparse_conversion **conversion,
                               tn_error *err);

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

/* The same of a dense source that is read: a block is made of *n elements from the returned one on, which
 * are `elements`. */
uint64_t tn_sparse_items(const tn_sparse_conversion *r, uint64_t block, size_t *n);
void tn_sparse_make_of(const tn_sparse_conversion *r, uint64_t block, const uint8_t *elements, void *values,
                       void *indices);

/* The row pointers of a CSR result, in its index type. */
const void *tn_sparse_indptr(const tn_sparse_conversion *r);

void tn_sparse_end(tn_sparse_conversion *r);

#endif
