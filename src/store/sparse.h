/* store/sparse.h - what only the data of a sparse tensor tells. */
#ifndef TN_STORE_SPARSE_H
#define TN_STORE_SPARSE_H

#include "store/file.h"

/* The part holds indices or row pointers of a sparse tensor. */
bool tn_is_sparse_index(const tn_tensor *tensor, const tn_part *part);

/* Goes through such a part.  TN_ERR_CORRUPT: an index is outside the shape, or
 * a pointer is not where it must be.  TN_OK: the text of *why is "", or says
 * which entry is the first that does not come after the one before it. */
tn_status tn_sparse_check(const tn_file *file, const tn_tensor *tensor, const tn_part *part, tn_error *why);

/* What it does for each form; *why is empty. */
tn_status tn_coo_check_data(const tn_file *file, const tn_tensor *tensor, const tn_part *part, tn_error *why);
tn_status tn_csr_check_data(const tn_file *file, const tn_tensor *tensor, const tn_part *part, tn_error *why);

#endif
