/* sparse/sparse_sort.h - the entries of a sparse tensor in row-major order. */
#ifndef TN_SPARSE_SPARSE_SORT_H
#define TN_SPARSE_SPARSE_SORT_H

#include "base/pool.h"

#include <tenon/sparse.h>

/* What a pass over the indices finds. */
typedef struct tn_entry_order {
    bool     ascending;         /* canonical: in order, none twice */
    uint64_t first_wrong;       /* else: the first entry that does not come after the one before it... */
    bool     duplicate;         /* ...for it has the same indices */
} tn_entry_order;

/* Goes through the indices (and pointers) of a COO or CSR tensor whose parts have
 * their data and fit its form, on all cores.  TN_ERR_CORRUPT: an index outside the shape,
 * pointers that do not ascend from 0 to the number of entries; the text is
 * that of the first such entry, whatever the number of threads. */
tn_status tn_entries_check(const tn_tensor *tensor, tn_pool *pool, tn_entry_order *order, tn_error *err);

/* Entries by their number in row-major order, ascending, none twice. */
typedef struct tn_entries {
    uint64_t  count;
    uint64_t *keys;             /* (i0 * shape[1] + i1) * shape[2] + ... */
    uint8_t  *values;           /* in the tensor's type */
} tn_entries;

/* Sorts those of a tensor that tn_entries_check() found no fault with; equal
 * ones stay in their order until they are summed.  TN_ERR_LOSS: duplicates
 * that are refused, a sum that overflows its integer type. */
tn_status tn_entries_sort(const tn_tensor *tensor, tn_duplicates duplicates, tn_pool *pool,
                          tn_entries *entries, tn_error *err);

void tn_entries_free(tn_entries *entries);

#endif
