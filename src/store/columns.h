/* store/columns.h - reading a matrix whose columns are extents of their own. */
#ifndef TN_STORE_COLUMNS_H
#define TN_STORE_COLUMNS_H

#include "store/file.h"

/* Each of the parts that it is made of is a column: a vector of the same type. */
extern const tn_derive tn_derive_columns;

/* Copies n items of `size` bytes; a step is from the beginning of one item to that of the next. */
void tn_copy_apart(uint8_t *to, size_t to_step, const uint8_t *from, size_t from_step, size_t size, size_t n);

#endif
