/* quant/rotate.h - rotations: multiply each block along a dimension by an orthogonal
 * matrix, or undo it.
 *
 * H(1) = [1], H(2n) = [[H(n), H(n)], [H(n), -H(n)]]; M = H / sqrt(size).  In Walsh's
 * order the rows are sorted by their number of sign changes.  With random signs, row
 * k is negated if number k of the generator of base/random.h, started at the seed,
 * has its highest bit set. */
#ifndef TN_QUANT_ROTATE_H
#define TN_QUANT_ROTATE_H

#include "base/pool.h"

#include <tenon/tensor.h>

/* Writes the matrix: size * size values, row by row. */
void tn_rotate_matrix(const tn_rotation *rotation, float *m);

/* x has the shape [outer][extent][inner].  Each block of `size` values along the
 * extent becomes x M; with `back` it becomes x M^T, which undoes x M up to rounding.
 * A fast transform in float32: sums and differences in the order of kernels/rotate.h,
 * then one multiplication by the magnitude of the matrix entries.  So [1, 0, 0 ...]
 * becomes the first row of M.  NaN becomes 0x7fc00000.  The bits do not depend on the
 * number of threads.  Size 0 does nothing.
 * TN_ERR_ARGUMENT: the extent is not a multiple of the size. */
tn_status tn_rotate(const tn_rotation *rotation, bool back, uint64_t outer, uint64_t extent, uint64_t inner,
                    float *x, tn_pool *pool, tn_error *err);

/* The same of x with the shape [blocks][size][inner], in the calling thread. */
void tn_rotate_blocks(const tn_rotation *rotation, bool back, uint64_t blocks, uint64_t inner, float *x);

#endif
