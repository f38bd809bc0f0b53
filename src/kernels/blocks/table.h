/* kernels/blocks/table.h - values of block types.
 *
 * Products and sums are float32 in the order that scalar.c writes them, without fused operations: these are
 * the bits of ggml's x86-64 base library.  A NaN scale gives NaNs of any kind. */
#ifndef TN_KERNELS_BLOCKS_TABLE_H
#define TN_KERNELS_BLOCKS_TABLE_H

#include "kernels/level.h"
#include "tensor/block.h"

/* The values of n blocks; `values` is aligned as a float is, the blocks anyhow. */
typedef void (*tn_block_decode_fn)(const uint8_t *blocks, size_t n, float *values);

/* Encodes n blocks of finite values.  `importance` has a number for each value, or is NULL; `mean_square` is
 * that of the whole row, for q4_0, q4_1, q5_0 and q5_1 with importance.  A scale may be infinite: see
 * tn_block_check(). */
typedef void (*tn_block_encode_fn)(const float *values, const float *importance, float mean_square, size_t n,
                                   uint8_t *blocks);

typedef struct tn_block_kernels {
    tn_block_decode_fn decode[TN_BLOCK_COUNT];
    tn_block_decode_fn stream[TN_BLOCK_COUNT];  /* past the caches, see tn_stream_fence(); aligned to 16 */
    tn_block_encode_fn encode[TN_BLOCK_COUNT];
} tn_block_kernels;

TN_KERNEL_TABLE(tn_block_kernels);

/* ---- grids (grids.c, grid.c) ---- */

/* Points of 8 levels of 2 bits (iq1, iq2) or 4 of 3 bits (iq3), the first in the lowest bits. */
extern const uint16_t tn_grid_iq1[2048], tn_grid_iq2_xxs[256], tn_grid_iq2_xs[512], tn_grid_iq2_s[1024];
extern const uint16_t tn_grid_iq3_xxs[256], tn_grid_iq3_s[512];

void tn_block_kernels_init_grids(tn_block_kernels *k);  /* of the scalar level (scalar_grid.c) */

/* What 4-bit codes of mxfp4 and nvfp4 stand for, twice; and of iq4_nl and iq4_xs. */
extern const int8_t tn_block_fp4[16], tn_block_iq4[16];

#endif
