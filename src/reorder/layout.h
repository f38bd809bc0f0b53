/* reorder/layout.h - moves elements to other places, one block at a time.
 *
 * tn_reorder() and the convert pipeline use this; tn_move() uses tn_reorder(). */
#ifndef TN_REORDER_LAYOUT_H
#define TN_REORDER_LAYOUT_H

#include "kernels/reorder/table.h"

#include <tenon/layout.h>

/* TN_ERR_ARGUMENT: types or ranks differ or are unknown.  TN_ERR_LIMIT: more bytes than fit 63 bits. */
tn_status tn_reorder_check(const tn_array *dst, const tn_array *src, tn_error *err);

/* TN_ERR_ARGUMENT: not a permutation of `rank` dimensions, at most TN_MAX_RANK.  NULL is one. */
tn_status tn_order_check(const uint32_t *order, uint32_t rank, tn_error *err);

/* Adds the bits from the first to the last of `extent` elements to *reach; false: they do not fit. */
bool tn_add_reach(int64_t *reach, int64_t extent, int64_t stride, unsigned bits);

/* One dimension of both sides.  Strides are in elements. */
typedef struct tn_reorder_dim {
    int64_t dst_extent, src_extent;     /* if dst is longer the rest is filled; if src is, ignored */
    int64_t dst_stride, src_stride;
} tn_reorder_dim;

/* Copies a block on one thread.  Elements have `bits` bits: 1, 2, 4, 6, 8, 16, 32,
 * 64 or 128.  Dimensions are in the order of dst.  dst and src point to element 0.
 * `fill` as in tn_reorder_options.  `stream`: dst is large and not read soon, so
 * stores bypass the cache. */
void tn_reorder_block(const tn_reorder_kernels *kernels, unsigned bits, uint32_t rank,
                      const tn_reorder_dim *dims, void *dst, const void *src, const void *fill, bool stream);

#endif
