/* reorder/layout.h - elements to other places: one block at a time.
 *
 * tn_reorder() and the convert pipeline both work through this, tn_move()
 * through tn_reorder(). */
#ifndef TN_REORDER_LAYOUT_H
#define TN_REORDER_LAYOUT_H

#include "kernels/reorder/table.h"

#include <tenon/layout.h>

/* TN_ERR_ARGUMENT: types or ranks differ, or are none.  TN_ERR_LIMIT: more bytes than fit 63 bits. */
tn_status tn_reorder_check(const tn_array *dst, const tn_array *src, tn_error *err);

/* TN_ERR_ARGUMENT: not a permutation of `rank` dimensions, at most TN_MAX_RANK.  NULL is one. */
tn_status tn_order_check(const uint32_t *order, uint32_t rank, tn_error *err);

/* One dimension, as both sides have it.  Strides in elements. */
typedef struct tn_reorder_dim {
    int64_t dst_extent, src_extent;     /* what dst has more is filled, what src has more is left out */
    int64_t dst_stride, src_stride;
} tn_reorder_dim;

/* Copies a block with one thread.  `bits` is that of an element: 1, 2, 4, 6, 8,
 * 16, 32, 64 or 128.  Dimensions in the order of dst.  dst and src point to
 * element 0.  `fill` as in tn_reorder_options.  `stream`: dst is large and will
 * not be read soon, stores that bypass the cache are worth it. */
void tn_reorder_block(const tn_reorder_kernels *kernels, unsigned bits, uint32_t rank,
                      const tn_reorder_dim *dims, void *dst, const void *src, const void *fill, bool stream);

#endif
