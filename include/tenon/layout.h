/* tenon/layout.h - names for the order of dimensions, and data in another order.
 *
 * A layout is a string of distinct letters, one per dimension, in the order in
 * which shape and strides list them: a tensor of layout "NHWC" has the shape
 * [N, H, W, C] and, dense, lies in memory in that order.  Any letters do, and
 * once the digit 1, which is for a dimension of extent 1 ("HW1N");
 * tn_layout_at() lists those with a meaning of their own.  Thread-safe. */
#ifndef TENON_LAYOUT_H
#define TENON_LAYOUT_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_layout_info {
    const char *name;           /* "NHWC" */
    const char *title;          /* "batch, height, width, channel: TensorFlow, ARM, mobile NPUs" */
} tn_layout_info;

/* Layout i of those with a meaning of their own; NULL when i is out of range. */
TN_API const tn_layout_info *tn_layout_at(size_t i);

/* TN_ERR_ARGUMENT: not distinct ASCII letters (or 1, whose extent is not looked
 * at here), or not `rank` of them. */
TN_API tn_status tn_layout_check(const char *layout, uint32_t rank, tn_error *err);

/* order[i] is the place in `from` of letter i of `to`: the `order` of
 * tn_reorder().  TN_ERR_ARGUMENT: not the same letters. */
TN_API tn_status tn_layout_order(const char *from, const char *to, uint32_t order[TN_MAX_RANK],
                                 tn_error *err);

/* The strides, in elements and in the order of `layout`, of a tensor with this
 * shape (padding included) that lies densely in memory in the order `memory`:
 * shape [2, 3, 4, 5] as NCHW lying in memory as NHWC has strides
 * [60, 1, 15, 3].  A column-major matrix is "RC" lying as "CR".
 * TN_ERR_ARGUMENT: not the same letters, a negative extent.  TN_ERR_LIMIT: a
 * stride does not fit. */
TN_API tn_status tn_layout_strides(const char *layout, const int64_t *shape, const char *memory,
                                   int64_t *stride, tn_error *err);

typedef struct tn_reorder_options {
    size_t          size;       /* sizeof(tn_reorder_options), set by the caller */
    const uint32_t *order;      /* dimension i of dst is dimension order[i] of src; NULL: the same */
    const void     *fill;       /* one element in host order (narrower than a byte: its low bits); NULL: zero
                                 * bits */
    unsigned        jobs;       /* threads; 0: one per core */
} tn_reorder_options;

/* Copies every element of `src` to its place in `dst`: same type and rank, any
 * strides.  Where an extent of dst is larger, the elements beyond that of src
 * get `fill` (padding is added); where it is smaller, the rest of src is left
 * out (padding is removed).  Strides may be negative, those of src zero; `data`
 * points to the first element.  Elements narrower than a byte: strides are not
 * negative, and element 0 begins at data's first bit; bits of dst between its
 * elements stay as they are.  The two must not overlap, nor elements of dst
 * each other.
 *
 * TN_ERR_ARGUMENT: types or ranks differ, an order that is no permutation, a
 * stride that is not allowed. */
TN_API tn_status tn_reorder(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                            const tn_reorder_options *options, tn_error *err);

/* A box of a tensor with padding around it, thinned out, in another order of
 * dimensions.  Arrays have one item for each dimension of src; where they are
 * NULL, and where the struct is, all items are what stands behind the colon. */
typedef struct tn_move_options {
    size_t          size;       /* sizeof(tn_move_options), set by the caller */
    const int64_t  *before;     /* elements of padding: 0 */
    const int64_t  *after;      /* : 0 */
    const int64_t  *offset;     /* of the box in what is padded: 0 */
    const int64_t  *extent;     /* of the box: 0, which means the rest */
    const int64_t  *step;       /* every so many elements of the box, the first included: 1 */
    const uint32_t *order;      /* dimension i of dst is dimension order[i] of src: the same */
    const void     *fill;       /* what padding consists of, as in tn_reorder_options */
    unsigned        jobs;
} tn_move_options;

/* The shape of the result, in its own order: ceil(extent / step) elements a
 * dimension, possibly none.  TN_ERR_ARGUMENT: something negative, a box that is
 * not inside, a step below 1, an order that is no permutation.  TN_ERR_LIMIT: an
 * extent with its padding does not fit.  Written on success only. */
TN_API tn_status tn_move_shape(uint32_t rank, const int64_t *shape, const tn_move_options *options,
                               int64_t *result, tn_error *err);

/* Copies it to `dst`, which has that shape, the type of `src` and any strides,
 * as in tn_reorder(); what lies between its elements stays as it is.
 *
 * TN_ERR_ARGUMENT: also a dst of another shape.  TN_ERR_UNSUPPORTED: of elements
 * narrower than a byte the first to be read, or the first behind some padding,
 * does not begin on one.  Nothing is written then. */
TN_API tn_status tn_move(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                         const tn_move_options *options, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
