/* store/dims.h - reading a shape dimension by dimension. */
#ifndef TN_STORE_DIMS_H
#define TN_STORE_DIMS_H

#include "base/arena.h"

#include <tenon/tensor.h>

/* Initialise rank to 0. */
typedef struct tn_dims {
    uint32_t rank;
    int64_t  dims[TN_MAX_RANK];
} tn_dims;

tn_status tn_dims_refuse(const tn_dims *d, uint64_t dim, tn_error *err);

/* TN_ERR_LIMIT: more than TN_MAX_RANK dimensions, or one of 2^63 or more. */
static inline tn_status tn_dims_add(tn_dims *d, uint64_t dim, tn_error *err)
{
    if (d->rank == TN_MAX_RANK || dim > INT64_MAX)
        return tn_dims_refuse(d, dim, err);
    d->dims[d->rank++] = (int64_t)dim;
    return TN_OK;
}

/* The shape in the arena, or NULL without memory.  Neighbours often have the same shape and share a copy:
 * `known`, which may be NULL, is returned if it has the same dimensions. */
const int64_t *tn_dims_keep(const tn_dims *d, tn_arena *arena, const int64_t *known, uint32_t known_rank);

/* A shape in messages: "[2, 3]", a long one "[2, 3, ...]". */
typedef struct tn_shown_shape { char text[80]; } tn_shown_shape;
tn_shown_shape tn_show_shape(uint32_t rank, const int64_t *shape);

#endif
