/* store/gather.h - reading strided elements of a file as dense ones.
 *
 * Many are read at a time, in the order of the file: at least a column if columns are stored, and all that is
 * near enough to be read with it. */
#ifndef TN_STORE_GATHER_H
#define TN_STORE_GATHER_H

#include "store/file.h"

typedef struct tn_gather {
    const tn_source *source;
    uint64_t         at;        /* byte of the first element */
    uint8_t         *buffer;    /* for bytes that are not mapped; at least 64 bytes */
    size_t           cap;
} tn_gather;

/* Strides are in elements, not negative. */
typedef struct tn_grid {
    unsigned       bits;        /* of an element */
    uint32_t       rank;
    const int64_t *shape, *stride;
} tn_grid;

/* Copies `count` elements from number `first` on, in row-major order; the first begins on a byte of `out`. */
tn_status tn_gather_elements(const tn_gather *g, const tn_grid *grid, uint64_t first, uint64_t count,
                             uint8_t *out, tn_error *err);

#endif
