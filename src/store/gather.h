/* store/gather.h - elements that lie apart in a file, one after the other.
 *
 * Many are taken at a time, in the order of the file: a column at least, where
 * columns are stored, and whatever lies so near that it is read along. */
#ifndef TN_STORE_GATHER_H
#define TN_STORE_GATHER_H

#include "store/file.h"

typedef struct tn_gather {
    const tn_source *source;
    uint64_t         at;        /* of the first element in it */
    uint8_t         *buffer;    /* for reading what is not mapped; at least 64 bytes */
    size_t           cap;
} tn_gather;

/* How elements lie: strides are in elements, never negative. */
typedef struct tn_grid {
    unsigned       bits;        /* of an element */
    uint32_t       rank;
    const int64_t *shape, *stride;
} tn_grid;

/* `count` elements from number `first` on in row-major order, into `out`, where the first begins on a
 * byte. */
tn_status tn_gather_elements(const tn_gather *g, const tn_grid *grid, uint64_t first, uint64_t count,
                             uint8_t *out, tn_error *err);

#endif
