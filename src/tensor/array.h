/* tensor/array.h - sizes of arrays, byte order of their elements. */
#ifndef TN_TENSOR_ARRAY_H
#define TN_TENSOR_ARRAY_H

#include <tenon/tensor.h>

/* The byte order of this machine. */
#define TN_HOST_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? TN_LITTLE_ENDIAN : TN_BIG_ENDIAN)

/* tn_array_nbytes() without a tn_array: same rules, same statuses. */
tn_status tn_shape_nbytes(tn_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t *nbytes);

/* Copies `n` bytes (a multiple of `unit`) and reverses the bytes of each unit
 * of 1, 2, 4 or 8: tn_dtype_info.swap_bytes.  dst and src may be unaligned and
 * either equal or apart, but must not overlap in part. */
void tn_swap_bytes(void *dst, const void *src, size_t n, unsigned unit);

#endif
