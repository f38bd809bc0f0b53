/* quant/rotate.h - rotations: values along a dimension times an orthogonal
 * matrix, block by block, and back.
 *
 * H(1) = [1], H(2n) = [[H(n), H(n)], [H(n), -H(n)]]; M = H / sqrt(size), in
 * Walsh's order with its rows sorted by the number of sign changes.  With random
 * signs, row k of it is negated where number k of the generator of
 * base/random.h, started at the seed, has its highest bit. */
#ifndef TN_QUANT_ROTATE_H
#define TN_QUANT_ROTATE_H

#include "base/pool.h"

#include <tenon/tensor.h>

/* The matrix, row by row: size * size values. */
void tn_rotate_matrix(const tn_rotation *rotation, float *m);

/* x, of shape [outer][extent][inner], becomes x M for each block of `size`
 * values along the extent; with `back` x M^T, which undoes it but for rounding.
 * A fast transform in float32: sums first, in the order of kernels/rotate.h,
 * then one multiplication by the matrix's own number, so that what M makes of
 * [1, 0, 0 ...] is M's row.  NaN comes out as 0x7fc00000.  The same bits for any
 * number of threads.
 * TN_ERR_ARGUMENT: the extent is no multiple of the size.  Size 0 does nothing. */
tn_status tn_rotate(const tn_rotation *rotation, bool back, uint64_t outer, uint64_t extent, uint64_t inner,
                    float *x, tn_pool *pool, tn_error *err);

/* Blocks that lie one after another, by the calling thread. */
void tn_rotate_blocks(const tn_rotation *rotation, bool back, float *x, uint64_t blocks);

#endif
