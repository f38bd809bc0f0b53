/* base/pages.h - large blocks of memory. */
#ifndef TN_BASE_PAGES_H
#define TN_BASE_PAGES_H

#include <stddef.h>

/* malloc() that asks for huge pages if the block is large: page faults in the tables of a file with many
 * tensors would cost as much as the parsing.  free() and realloc() as usual. */
void *tn_pages_alloc(size_t size);

/* realloc() that does the same. */
void *tn_pages_grow(void *block, size_t size);

#endif
