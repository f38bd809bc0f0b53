/* transform/layout.h - elements to other places: one block at a time.
 *
 * tn_reorder() and the convert pipeline both work through this. */
#ifndef TN_TRANSFORM_LAYOUT_H
#define TN_TRANSFORM_LAYOUT_H

#include "transform/kernels/layout.h"

#include <tenon/layout.h>

/* One dimension, as both sides have it.  Strides in elements. */
typedef struct tn_reorder_dim {
    int64_t dst_extent, src_extent;     /* what dst has more is filled, what src has more is left out */
    int64_t dst_stride, src_stride;
} tn_reorder_dim;

/* Copies a block with one thread.  `bits` is that of an element: 1, 2, 4, 6, 8,
 * 16, 32, 64 or 128.  Dimensions in the order of dst.  dst and src point to
 * element 0.  `fill` as in tn_reorder_options.  `stream`: dst is large and will
 * not be read soon, stores that bypass the cache are worth it. */
void tn_reorder_block(const tn_layout_kernels *kernels, unsigned bits, uint32_t rank, const tn_reorder_dim *dims, void *dst,
                      const void *src, const void *fill, bool stream);

#endif
