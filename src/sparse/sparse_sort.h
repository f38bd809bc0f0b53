/* sparse/sparse_sort.h - checks and sorts the entries of a sparse tensor. */
#ifndef TN_SPARSE_SPARSE_SORT_H
#define TN_SPARSE_SPARSE_SORT_H

#include "base/pool.h"

#include <tenon/sparse.h>

typedef struct tn_entry_order {
    bool     ascending;         /* canonical: in order, none twice; else: */
    uint64_t first_wrong;       /* the first entry that does not come after the one before it... */
    bool     duplicate;         /* ...because it has the same indices */
} tn_entry_order;

/* Checks the indices (and row pointers) of a COO or CSR tensor on all cores.  Its
 * parts have their data and fit its form.  TN_ERR_CORRUPT: an index outside the
 * shape, or pointers that do not ascend from 0 to the number of entries; the text
 * names the first wrong entry for any number of threads. */
tn_status tn_entries_check(const tn_tensor *tensor, tn_pool *pool, tn_entry_order *order, tn_error *err);

/* Entries by their linear index, ascending, none twice. */
typedef struct tn_entries {
    uint64_t  count;
    uint64_t *keys;             /* (i0 * shape[1] + i1) * shape[2] + ... */
    uint8_t  *values;           /* in the tensor's type */
} tn_entries;

/* Sorts the entries of a tensor that passed tn_entries_check().  Duplicates are
 * summed in their order.  TN_ERR_LOSS: duplicates that are refused, or a sum that
 * overflows its integer type. */
tn_status tn_entries_sort(const tn_tensor *tensor, tn_duplicates duplicates, tn_pool *pool,
                          tn_entries *entries, tn_error *err);

void tn_entries_free(tn_entries *entries);

#endif
