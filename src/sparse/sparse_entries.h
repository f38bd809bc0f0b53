/* sparse/sparse_entries.h - the entries of a sparse tensor as they lie in memory. */
#ifndef TN_SPARSE_SPARSE_ENTRIES_H
#define TN_SPARSE_SPARSE_ENTRIES_H

#include "tensor/code.h"

#include <tenon/tensor.h>

typedef struct tn_entry_view {
    const tn_tensor *tensor;
    const uint8_t   *values, *indices, *indptr;     /* indptr: CSR only */
    tn_dtype         type;                          /* of indices and indptr */
    uint64_t         count, rows, columns;          /* rows and columns: CSR only */
} tn_entry_view;

tn_entry_view tn_entry_view_of(const tn_tensor *tensor);

/* The keys of n entries from number `first` on: what they are numbered by in
 * row-major order.  False where an index is outside the shape.  The pointers of CSR
 * are known to ascend; where they do not any more, keys are any. */
bool tn_entry_keys(const tn_entry_view *v, uint64_t first, size_t n, uint64_t *keys);

/* Where those that were found to be right are not when they are read again: TN_ERR_CORRUPT. */
tn_status tn_entry_fail_changed(tn_error *err);

/* "(0, 5)": the indices that a key stands for, as messages show them. */
typedef struct tn_indices_text { char text[120]; } tn_indices_text;
tn_indices_text tn_entry_indices(const tn_entry_view *v, uint64_t key);

#endif
