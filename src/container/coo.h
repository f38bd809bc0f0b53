/* container/coo.h - what only the data of a COO tensor tells. */
#ifndef TN_CONTAINER_COO_H
#define TN_CONTAINER_COO_H

#include "container/file.h"

/* The part holds the indices of a COO tensor. */
bool tn_is_coo_indices(const tn_tensor *tensor, const tn_part *part);

/* Goes through the indices of a COO tensor.  TN_ERR_CORRUPT: one is outside
 * the shape.  TN_OK: the text of *why is "", or says which entry is the first
 * that does not come after the one before it. */
tn_status tn_coo_check(const tn_file *file, const tn_tensor *tensor, tn_error *why);

#endif
