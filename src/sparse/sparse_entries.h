/* sparse/sparse_entries.h - the entries of a sparse tensor in memory. */
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

/* The keys of n entries from number `first` on: their linear indices in
 * row-major order.  False if an index is outside the shape.  The row pointers of
 * CSR must ascend; if they no longer do, keys have any value. */
bool tn_entry_keys(const tn_entry_view *v, uint64_t first, size_t n, uint64_t *keys);

/* TN_ERR_CORRUPT: indices that were right are wrong when they are read again. */
tn_status tn_entry_fail_changed(tn_error *err);

bool tn_is_ascending(const uint64_t *keys, size_t n);

#endif
