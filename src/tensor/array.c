/* tensor/array.c - sizes of arrays, byte order of their elements. */
#include "tensor/array.h"

#include "base/checked.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>

tn_status tn_shape_count(uint32_t rank, const int64_t *shape, uint64_t *count)
{
    if (rank > TN_MAX_RANK || (rank > 0 && !shape) || !count)
        return TN_ERR_ARGUMENT;
    bool empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return TN_ERR_ARGUMENT;
        empty = empty || shape[i] == 0;
    }
    /* Decided first: the answer must not depend on the order of a zero and extents that overflow. */
    uint64_t product = empty ? 0 : 1;
    for (uint32_t i = 0; i < rank && !empty; i++)
        if (!tn_mul_u64(product, (uint64_t)shape[i], &product) || product > INT64_MAX)
            return TN_ERR_LIMIT;
    *count = product;
    return TN_OK;
}

tn_status tn_shape_nbytes(tn_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t *nbytes)
{
    const tn_dtype_info *info = tn_dtype_get(dtype);
    if (!info)
        return TN_ERR_ARGUMENT;
    uint64_t count;
    TN_TRY(tn_shape_count(rank, shape, &count));
    /* Eight elements take `bits` bytes exactly; counting bits could overflow. */
    uint64_t whole, total;
    uint64_t rest = (count % 8 * info->bits + 7) / 8;
    if (!tn_mul_u64(count / 8, info->bits, &whole) || !tn_add_u64(whole, rest, &total) || total > INT64_MAX)
        return TN_ERR_LIMIT;
    *nbytes = total;
    return TN_OK;
}

tn_status tn_array_nbytes(const tn_array *array, uint64_t *nbytes)
{
    if (!array || !nbytes)
        return TN_ERR_ARGUMENT;
    return tn_shape_nbytes(array->dtype, array->rank, array->shape, nbytes);
}

tn_status tn_strided_nbytes(tn_dtype dtype, uint32_t rank, const int64_t *shape, const int64_t *stride,
                            uint64_t *nbytes)
{
    uint64_t count = 0, last = 0, step;
    tn_status status = tn_shape_count(rank, shape, &count);
    for (uint32_t i = 0; i < rank && !status; i++) {
        if (stride[i] < 0)
            status = TN_ERR_ARGUMENT;
        else if (count && (!tn_mul_u64((uint64_t)shape[i] - 1, (uint64_t)stride[i], &step) ||
                           !tn_add_u64(last, step, &last)))
            status = TN_ERR_LIMIT;
    }
    int64_t span = count && last < INT64_MAX ? (int64_t)last + 1 : 0;
    if (!status && last >= INT64_MAX)
        status = TN_ERR_LIMIT;
    return status ? status : tn_shape_nbytes(dtype, 1, &span, nbytes);
}

tn_status tn_array_check(const tn_array *array, const char *which, uint64_t *count, tn_error *err)
{
    uint64_t nbytes;
    tn_status status = tn_array_nbytes(array, &nbytes);
    if (status == TN_OK)
        status = tn_shape_count(array->rank, array->shape, count);
    if (status == TN_ERR_LIMIT)
        return tn_fail(err, status, "the %s has more bytes than fit 63 bits", which);
    if (status != TN_OK)
        return tn_fail(err, status, "the %s has an unknown type, a negative extent or a rank above %d", which,
                       TN_MAX_RANK);
    return TN_OK;
}

tn_status tn_array_check_dense(const tn_array *array, const void *data, const char *which, uint64_t *count,
                               tn_error *err)
{
    int64_t dense[TN_MAX_RANK];
    TN_TRY(tn_array_check(array, which, count, err));
    if (*count && !data)
        return tn_fail(err, TN_ERR_ARGUMENT, "the %s has no data", which);
    tn_dense_strides(array->rank, array->shape, dense);
    for (uint32_t i = 0; array->stride && *count && i < array->rank; i++)
        if (array->shape[i] > 1 && array->stride[i] != dense[i])
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected a dense %s, with a stride of %" PRId64 " in dimension %" PRIu32
                           ", but found %" PRId64, which, dense[i], i, array->stride[i]);
    return TN_OK;
}

tn_status tn_array_check_ranks(const tn_array *dst, const tn_array *src, tn_error *err)
{
    if (dst->rank != src->rank)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "the destination has rank %" PRIu32 " but the source has %" PRIu32, dst->rank,
                       src->rank);
    return TN_OK;
}

tn_status tn_array_check_shapes(const tn_array *dst, const tn_array *src, tn_error *err)
{
    tn_status status = tn_array_check_ranks(dst, src, err);
    for (uint32_t i = 0; i < dst->rank && status == TN_OK; i++)
        if (dst->shape[i] != src->shape[i])
            status = tn_fail(err, TN_ERR_ARGUMENT,
                             "dimension %" PRIu32 " has %" PRId64 " elements in the destination but %" PRId64
                             " in the source", i, dst->shape[i], src->shape[i]);
    return status;
}

tn_status tn_array_check_data(const void *dst, const void *src, tn_error *err)
{
    if (!dst || !src)
        return tn_fail(err, TN_ERR_ARGUMENT, "the %s has no data", dst ? "source" : "destination");
    return TN_OK;
}

tn_status tn_array_check_stride(int64_t extent, int64_t stride, tn_error *err)
{
    if (extent > 1 && stride == 0)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "the destination has a stride of 0: %" PRId64 " elements in one place", extent);
    return TN_OK;
}

void tn_array_strides(const tn_array *array, int64_t *stride)
{
    tn_dense_strides(array->rank, array->shape, stride);
    for (uint32_t i = 0; array->stride && i < array->rank; i++)
        stride[i] = array->stride[i];
}

void tn_dense_strides(uint32_t rank, const int64_t *shape, int64_t *stride)
{
    uint64_t step = 1;          /* may wrap if there are no elements: no stride is used then */
    for (uint32_t i = rank; i-- > 0;) {
        stride[i] = (int64_t)(step & INT64_MAX);
        step *= (uint64_t)shape[i];
    }
}

/* Eight bytes at a time for any unit: as fast as memory, and simple enough for the compiler to vectorize.
 * The same on little- and big-endian hosts. */
static inline uint64_t swap_word(uint64_t w, unsigned unit)
{
    const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
    switch (unit) {
    case 2:  return (w & even) << 8 | (w >> 8 & even);
    case 4:  w = __builtin_bswap64(w);
             return w << 32 | w >> 32;
    default: return __builtin_bswap64(w);
    }
}

static inline void swap_all(uint8_t *dst, const uint8_t *src, size_t n, unsigned unit)
{
    uint64_t w = 0;
    size_t whole = n / sizeof w * sizeof w;
    for (size_t i = 0; i < whole; i += sizeof w) {
        memcpy(&w, src + i, sizeof w);
        w = swap_word(w, unit);
        memcpy(dst + i, &w, sizeof w);
    }
    if (whole < n) {
        memcpy(&w, src + whole, n - whole);
        w = swap_word(w, unit);
        memcpy(dst + whole, &w, n - whole);
    }
}

void tn_swap_bytes(void *dst, const void *src, size_t n, unsigned unit)
{
    switch (unit) {     /* one loop per constant */
    case 2: swap_all(dst, src, n, 2); break;
    case 4: swap_all(dst, src, n, 4); break;
    case 8: swap_all(dst, src, n, 8); break;
    default:
        if (dst != src && n > 0)
            memcpy(dst, src, n);
    }
}
