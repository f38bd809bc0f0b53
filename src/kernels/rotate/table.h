/* kernels/rotate/table.h - inner loops of rotations: Hadamard's transform.
 *
 * No allocation, no errors, no I/O.  A block has `size` values, 4 to 128 and a
 * power of two.  It becomes, in float32 with one rounding per operation:
 *
 *     z[k] = value k, its sign bit flipped where sign[k] has it
 *     for s = 1, 2, 4 ... size / 2, all k without bit s:  z[k], z[k + s] = z[k] + z[k + s], z[k] - z[k + s]
 *     value k = z[k] * factor[k]; NaN is TN_ROTATE_NAN
 *
 * Every level gives the same bits: the scalar one is the definition. */
#ifndef TN_KERNELS_ROTATE_TABLE_H
#define TN_KERNELS_ROTATE_TABLE_H

#include "kernels/level.h"

enum {
    TN_ROTATE_MAX   = 128,              /* largest size */
    TN_ROTATE_LANES = 16,               /* columns that are rotated at a time */
    TN_ROTATE_NAN   = 0x7fc00000
};

typedef struct tn_rotate_step {
    unsigned size;
    uint32_t sign[TN_ROTATE_MAX];       /* 0 or the sign bit; both go on with period `size` */
    float    factor[TN_ROTATE_MAX];
} tn_rotate_step;

/* Blocks one after another.  dst may be src. */
typedef void (*tn_rotate_blocks_fn)(float *dst, const float *src, size_t blocks, const tn_rotate_step *step);

/* TN_ROTATE_LANES blocks side by side, in place: value k of block c is
 * x[k * pitch + c].  Rows may be in another order, `in` before and `out` after:
 * z[in[k]] was row k, row k is then z[out[k]]. */
typedef void (*tn_rotate_columns_fn)(float *x, size_t pitch, const uint8_t *in, const uint8_t *out,
                                     const tn_rotate_step *step);

typedef struct tn_rotate_kernels {
    tn_rotate_blocks_fn  blocks;
    tn_rotate_columns_fn columns;
} tn_rotate_kernels;

TN_KERNEL_TABLE(tn_rotate_kernels);

/* The scalar level, which the others use for blocks that do not fill a vector. */
void tn_rotate_blocks_scalar(float *dst, const float *src, size_t blocks, const tn_rotate_step *step);

#endif
