/* store/sparse.h - checking the indices of sparse tensors. */
#ifndef TN_STORE_SPARSE_H
#define TN_STORE_SPARSE_H

#include "store/file.h"

/* Whether the part holds indices or row pointers of a sparse tensor. */
bool tn_is_sparse_index(const tn_tensor *tensor, const tn_part *part);

/* Reads such a part.  TN_ERR_CORRUPT: an index is outside the shape, or a row pointer is wrong.  TN_OK: the
 * text of *why is "", or names the first entry that is out of order or a duplicate. */
tn_status tn_sparse_check(const tn_file *file, const tn_tensor *tensor, const tn_part *part, tn_error *why);

/* The same for each form; *why is empty. */
tn_status tn_coo_check_data(const tn_file *file, const tn_tensor *tensor, const tn_part *part, tn_error *why);
tn_status tn_csr_check_data(const tn_file *file, const tn_tensor *tensor, const tn_part *part, tn_error *why);

#endif
