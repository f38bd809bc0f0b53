/* tensor/array.h - sizes of arrays, byte order of their elements. */
#ifndef TN_TENSOR_ARRAY_H
#define TN_TENSOR_ARRAY_H

#include <tenon/tensor.h>

#include <string.h>

/* The byte order of this machine. */
#define TN_HOST_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? TN_LITTLE_ENDIAN : TN_BIG_ENDIAN)

/* tn_array_nbytes() without a tn_array: same rules, same statuses. */
tn_status tn_shape_nbytes(tn_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t *nbytes);

/* Bytes from the first element to the end of the last one.  Strides are in elements.  TN_ERR_ARGUMENT: a
 * stride is negative.  TN_ERR_LIMIT: does not fit int64_t. */
tn_status tn_strided_nbytes(tn_dtype dtype, uint32_t rank, const int64_t *shape, const int64_t *stride,
                            uint64_t *nbytes);

/* Checks an array and counts its elements.  TN_ERR_ARGUMENT, TN_ERR_LIMIT: the text calls it `which`, for
 * example "source". */
tn_status tn_array_check(const tn_array *array, const char *which, uint64_t *count, tn_error *err);
/* The same for an array that must be dense and, unless it is empty, have data. */
tn_status tn_array_check_dense(const tn_array *array, const void *data, const char *which, uint64_t *count,
                               tn_error *err);
/* TN_ERR_ARGUMENT: ranks or shapes differ. */
tn_status tn_array_check_ranks(const tn_array *dst, const tn_array *src, tn_error *err);
tn_status tn_array_check_shapes(const tn_array *dst, const tn_array *src, tn_error *err);
/* TN_ERR_ARGUMENT: one is NULL. */
tn_status tn_array_check_data(const void *dst, const void *src, tn_error *err);
/* TN_ERR_ARGUMENT: several elements of the destination are in one place. */
tn_status tn_array_check_stride(int64_t extent, int64_t stride, tn_error *err);

static inline bool tn_same_shape(uint32_t rank_a, const int64_t *a, uint32_t rank_b, const int64_t *b)
{
    return rank_a == rank_b && (rank_a == 0 || memcmp(a, b, rank_a * sizeof *a) == 0);
}

/* The strides of a dense, row-major array whose size fits. */
void tn_dense_strides(uint32_t rank, const int64_t *shape, int64_t *stride);

/* The strides of an array: its own, or those of a dense one. */
void tn_array_strides(const tn_array *array, int64_t *stride);

/* Copies `n` bytes and reverses the bytes of each unit of 1, 2, 4 or 8 (tn_dtype_info.swap_bytes).  dst and
 * src may be unaligned and may be equal, but must not overlap otherwise. */
void tn_swap_bytes(void *dst, const void *src, size_t n, unsigned unit);

#endif
