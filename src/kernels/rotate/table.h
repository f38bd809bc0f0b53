/* kernels/rotate/table.h - inner loops of rotations: the Hadamard transform.
 *
 * No allocation, no errors, no I/O.  A block has `size` values, 4 to 128 and a
 * power of two.  It becomes, in float32 with one rounding per operation:
 *
 *     z[k] = value k, its sign bit flipped where sign[k] has it
 *     for s = 1, 2, 4 ... size / 2, all k without bit s:  z[k], z[k + s] = z[k] + z[k + s], z[k] - z[k + s]
 *     value k = z[k] * factor[k]; NaN is TN_ROTATE_NAN
 */
#ifndef TN_KERNELS_ROTATE_TABLE_H
#define TN_KERNELS_ROTATE_TABLE_H

#include "kernels/level.h"

enum {
    TN_ROTATE_MAX   = 128,              /* largest size */
    TN_ROTATE_LANES = 16,               /* columns rotated at a time */
    TN_ROTATE_NAN   = 0x7fc00000
};

typedef struct tn_rotate_step {
    unsigned size;
    uint32_t sign[TN_ROTATE_MAX];       /* 0 or the sign bit; sign and factor repeat with period `size` */
    float    factor[TN_ROTATE_MAX];
} tn_rotate_step;

/* Blocks one after another.  dst may be src. */
typedef void (*tn_rotate_blocks_fn)(float *dst, const float *src, size_t blocks, const tn_rotate_step *step);

/* TN_ROTATE_LANES blocks in columns, in place: value k of block c is
 * x[k * pitch + c].  Rows are permuted: row k is read as z[in[k]], and z[out[k]]
 * is written as row k. */
typedef void (*tn_rotate_columns_fn)(float *x, size_t pitch, const uint8_t *in, const uint8_t *out,
                                     const tn_rotate_step *step);

/* Blocks one after another, in place, whose values are permuted like the rows of columns. */
typedef void (*tn_rotate_permuted_fn)(float *x, size_t blocks, const uint8_t *in, const uint8_t *out,
                                      const tn_rotate_step *step);

typedef struct tn_rotate_kernels {
    tn_rotate_blocks_fn   blocks;
    tn_rotate_columns_fn  columns;
    tn_rotate_permuted_fn permuted;
} tn_rotate_kernels;

TN_KERNEL_TABLE(tn_rotate_kernels);

/* The scalar level, which the others use for blocks shorter than a vector. */
void tn_rotate_blocks_scalar(float *dst, const float *src, size_t blocks, const tn_rotate_step *step);

#endif
