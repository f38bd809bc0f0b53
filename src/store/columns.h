/* store/columns.h - reading a matrix whose columns are extents of their own. */
#ifndef TN_STORE_COLUMNS_H
#define TN_STORE_COLUMNS_H

#include "store/file.h"

typedef struct tn_columns tn_columns;

/* Begins a part that has columns, which tn_file_add() has checked. */
tn_status tn_columns_open(const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                          tn_columns **columns, tn_error *err);

/* The next whole rows, at most `cap` bytes, in host byte order.  *n is 0 at the end, after the checksum of
 * every column was checked. */
tn_status tn_columns_next(tn_columns *c, uint8_t *out, size_t cap, size_t *n, tn_error *err);

void tn_columns_free(tn_columns *c);

/* Copies n items of `size` bytes; a step is from the beginning of one item to that of the next. */
void tn_copy_apart(uint8_t *to, size_t to_step, const uint8_t *from, size_t from_step, size_t size, size_t n);

#endif
