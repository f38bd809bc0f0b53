/* share/dlpack.c - exports and imports arrays as DLPack. */
#include "base/checked.h"
#include "share/dlpack_abi.h"
#include "share/provider.h"
#include "tensor/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The address after the last element must be representable: others iterate that way. */
#define MAX_REACH ((uint64_t)INT64_MAX / 2)

/* ---- strides ---- */

/* The strides of an array.  They are those of a dense one if `stride` is NULL, along dimensions of one
 * element, and if there are no elements. */
static void settle_strides(uint32_t rank, const int64_t *shape, const int64_t *stride, int64_t *settled)
{
    uint64_t count = 0;
    tn_shape_count(rank, shape, &count);
    tn_dense_strides(rank, shape, settled);
    for (uint32_t i = 0; i < rank && stride && count; i++)
        if (shape[i] > 1)
            settled[i] = stride[i];
}

static bool is_dense(uint32_t rank, const int64_t *shape, const int64_t *settled)
{
    int64_t dense[TN_MAX_RANK];
    tn_dense_strides(rank, shape, dense);
    return rank == 0 || memcmp(dense, settled, rank * sizeof *dense) == 0;
}

typedef struct reach {
    uint64_t below;             /* bytes before element 0 */
    uint64_t bytes;             /* of all, from the lowest to the highest */
} reach;

/* False: larger than memory can be.  Size and strides are valid otherwise; types narrower than a byte are
 * dense. */
static bool find_reach(const tn_array *a, const int64_t *settled, reach *r)
{
    *r = (reach){ .below = 0 };
    if (tn_array_nbytes(a, &r->bytes) || r->bytes > MAX_REACH)
        return false;
    unsigned bits = tn_dtype_get(a->dtype)->bits;
    if (r->bytes == 0 || bits < 8)
        return true;
    uint64_t below = 0, above = 0;
    for (uint32_t i = 0; i < a->rank; i++) {
        uint64_t step = settled[i] < 0 ? -(uint64_t)settled[i] : (uint64_t)settled[i], way;
        uint64_t *side = settled[i] < 0 ? &below : &above;
        if (!tn_mul_u64((uint64_t)a->shape[i] - 1, step, &way) || !tn_add_u64(*side, way, side))
            return false;
    }
    uint64_t elements;
    if (!tn_add_u64(below, above, &elements) || elements >= MAX_REACH / (bits / 8))
        return false;
    *r = (reach){ .below = below * (bits / 8), .bytes = (elements + 1) * (bits / 8) };
    return true;
}

/* ---- out ---- */

typedef struct exported {
    struct DLManagedTensorVersioned managed;
    tn_buffer *buffer;
    int64_t    extents[];       /* the shape, then the strides */
} exported;

static void delete_exported(struct DLManagedTensorVersioned *managed)
{
    exported *e = managed->context;
    tn_buffer_unref(e->buffer);
    free(e);
}

static tn_status check_type(const tn_array *array, const int64_t *settled, tn_error *err)
{
    const tn_dtype_info *info = tn_dtype_get(array->dtype);
    if (info->dlpack_code < 0)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "DLPack has no name for type %s", info->name);
    if (info->bits < 8 && !is_dense(array->rank, array->shape, settled))
        return tn_fail(err, TN_ERR_ARGUMENT, "elements of %u bits must be dense", info->bits);
    return TN_OK;
}

static tn_status check_place(const tn_array *array, const int64_t *settled, const tn_buffer *buffer,
                             uint64_t offset, tn_error *err)
{
    reach r;
    if (buffer->provider->map)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "memory of a device (%s): expected memory of the host",
                       buffer->provider->name);
    if (!find_reach(array, settled, &r))
        return tn_fail(err, TN_ERR_LIMIT, "the array reaches over more than %" PRIu64 " bytes", MAX_REACH);
    if (r.below > offset)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "the array begins %" PRIu64 " bytes before its element 0, which is "
                       "at byte %" PRIu64 " of the buffer", r.below, offset);
    uint64_t first = offset - r.below;
    if (first > buffer->size || r.bytes > buffer->size - first)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "the array has %" PRIu64 " bytes from byte %" PRIu64 " on, but the buffer has %" PRIu64
                       " bytes", r.bytes, first, buffer->size);
    return TN_OK;
}

/* Element 0 is at `data`.  DLPack recommends a multiple of 256 there and the rest in byte_offset, but some
 * consumers ignore byte_offset. */
static tn_dlpack_tensor describe(const tn_array *array, const tn_buffer *buffer, uint64_t offset, exported *e)
{
    const tn_dtype_info *info = tn_dtype_get(array->dtype);
    uint64_t count = 0;
    tn_shape_count(array->rank, array->shape, &count);
    tn_dlpack_tensor tensor = {
        .data = count ? buffer->data + offset : NULL,
        .device_type = TN_DLPACK_CPU,
        .ndim = (int32_t)array->rank,
        .type = { .code = (uint8_t)info->dlpack_code, .bits = info->bits, .lanes = 1 },
    };
    if (array->rank) {
        tensor.shape = e->extents;
        tensor.strides = e->extents + array->rank;
    }
    return tensor;
}

tn_status tn_dlpack_export(const tn_array *array, tn_buffer *buffer, uint64_t offset,
                           struct DLManagedTensorVersioned **managed, tn_error *err)
{
    uint64_t count;
    int64_t settled[TN_MAX_RANK];
    TN_GIVEN(buffer, "a buffer", err);
    TN_GIVEN(managed, "a place for the tensor", err);
    TN_TRY(tn_array_check(array, "array", &count, err));
    settle_strides(array->rank, array->shape, array->stride, settled);
    TN_TRY(check_type(array, settled, err));
    TN_TRY(check_place(array, settled, buffer, offset, err));
    size_t row = array->rank * sizeof *settled;
    exported *e = malloc(sizeof *e + 2 * row);
    TN_NEED(e, err);
    if (row) {
        memcpy(e->extents, array->shape, row);
        memcpy(e->extents + array->rank, settled, row);
    }
    e->buffer = tn_buffer_ref(buffer);
    e->managed = (struct DLManagedTensorVersioned){
        .major = TN_DLPACK_MAJOR, .minor = TN_DLPACK_MINOR, .context = e, .deleter = delete_exported,
        .flags = buffer->flags & TN_MEM_READ_ONLY ? TN_DLPACK_READ_ONLY : 0,
        .tensor = describe(array, buffer, offset, e),
    };
    *managed = &e->managed;
    return TN_OK;
}

/* ---- in ---- */

static tn_dtype find_type(unsigned code, unsigned bits)
{
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *info = tn_dtype_get((tn_dtype)i);
        if (info && info->dlpack_code == (int)code && info->bits == bits)
            return info->dtype;
    }
    return TN_UNKNOWN;
}

static tn_status take_type(const tn_dlpack_tensor *t, uint64_t flags, tn_dtype *dtype, tn_error *err)
{
    unsigned bits = t->type.bits, lanes = t->type.lanes;
    *dtype = find_type(t->type.code, bits);
    if (*dtype == TN_UNKNOWN)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "DLPack's type code %u with %u bits is not in this build",
                       t->type.code, bits);
    if (lanes == 0)
        return tn_fail(err, TN_ERR_CORRUPT, "a type of 0 lanes: expected at least 1");
    if (bits < 8 && flags & TN_DLPACK_PADDED)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "elements of %u bits are padded to a byte each: expected packed ones", bits);
    if (lanes > 1 && bits * lanes % 8)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "%u lanes of %u bits: expected whole bytes", lanes, bits);
    return TN_OK;
}

/* Lanes become the last dimension. */
static tn_status take_shape(const tn_dlpack_tensor *t, tn_dlpack_array *own, tn_error *err)
{
    unsigned lanes = t->type.lanes;
    int32_t most = TN_MAX_RANK - (lanes > 1);
    if (t->ndim < 0)
        return tn_fail(err, TN_ERR_CORRUPT, "%" PRId32 " dimensions: expected at least 0", t->ndim);
    if (t->ndim > most)
        return tn_fail(err, TN_ERR_LIMIT, "%" PRId32 " dimensions: expected at most %" PRId32, t->ndim, most);
    if (t->ndim > 0 && !t->shape)
        return tn_fail(err, TN_ERR_CORRUPT, "%" PRId32 " dimensions without a shape", t->ndim);
    uint32_t rank = (uint32_t)t->ndim;
    if (rank)
        memcpy(own->shape, t->shape, rank * sizeof *own->shape);
    for (uint32_t i = 0; i < rank; i++)
        if (own->shape[i] < 0)
            return tn_fail(err, TN_ERR_CORRUPT,
                           "dimension %" PRIu32 " has %" PRId64 " elements: expected at least 0", i,
                           own->shape[i]);
    if (lanes > 1)
        own->shape[rank++] = lanes;
    own->array.rank = rank;
    own->array.shape = own->shape;
    uint64_t nbytes;
    if (tn_array_nbytes(&own->array, &nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "the array has more bytes than fit 63 bits");
    return TN_OK;
}

/* Strides in elements of several lanes become strides in lanes. */
static tn_status take_strides(const tn_dlpack_tensor *t, tn_dlpack_array *own, tn_error *err)
{
    uint32_t ndim = (uint32_t)t->ndim;
    int64_t given[TN_MAX_RANK] = { 0 };
    if (t->strides && ndim)
        memcpy(given, t->strides, ndim * sizeof *given);
    settle_strides(ndim, own->shape, t->strides ? given : NULL, own->stride);
    uint64_t nbytes = 0;
    tn_array_nbytes(&own->array, &nbytes);
    for (uint32_t i = 0; i < ndim && nbytes; i++)
        if (__builtin_mul_overflow(own->stride[i], (int64_t)t->type.lanes, &own->stride[i]))
            return tn_fail(err, TN_ERR_LIMIT, "dimension %" PRIu32 " has a stride of %" PRId64 " elements", i,
                           given[i]);
    if (own->array.rank > ndim)
        own->stride[ndim] = 1;
    if (nbytes == 0)
        tn_dense_strides(own->array.rank, own->shape, own->stride);
    bool dense = is_dense(own->array.rank, own->shape, own->stride);
    unsigned bits = tn_dtype_get(own->array.dtype)->bits;
    if (!dense && bits < 8)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "elements of %u bits with strides: expected dense ones",
                       bits);
    own->array.stride = dense ? NULL : own->stride;
    return TN_OK;
}

static tn_status check_device(const tn_dlpack_tensor *t, tn_error *err)
{
    switch (t->device_type) {
    case TN_DLPACK_CPU:
    case TN_DLPACK_CUDA_HOST:
    case TN_DLPACK_ROCM_HOST:
        return TN_OK;
    default:
        return tn_fail(err, TN_ERR_UNSUPPORTED, "memory of DLPack's device type %" PRId32
                       ": expected memory of the host (%d, %d or %d)", t->device_type, TN_DLPACK_CPU,
                       TN_DLPACK_CUDA_HOST, TN_DLPACK_ROCM_HOST);
    }
}

static void release_managed(void *context)
{
    struct DLManagedTensorVersioned *managed = context;
    if (managed->deleter)
        managed->deleter(managed);
}

/* The buffer covers exactly the bytes of the elements. */
static tn_status take_memory(struct DLManagedTensorVersioned *managed, const tn_dlpack_tensor *t,
                             tn_dlpack_array *own, tn_error *err)
{
    reach r;
    if (!find_reach(&own->array, own->stride, &r))
        return tn_fail(err, TN_ERR_LIMIT, "the array reaches over more than %" PRIu64 " bytes", MAX_REACH);
    if (r.bytes && !t->data)
        return tn_fail(err, TN_ERR_CORRUPT, "an array of %" PRIu64 " bytes at address NULL", r.bytes);
    uint64_t zero = 0;
    if (r.bytes && (!tn_add_u64((uintptr_t)t->data, t->byte_offset, &zero) || zero <= r.below ||
                    zero > UINTPTR_MAX || r.bytes > UINTPTR_MAX - (zero - r.below)))
        return tn_fail(err, TN_ERR_CORRUPT,
                       "an array of %" PRIu64 " bytes, %" PRIu64 " of them before element 0 at 0x%" PRIx64
                       " + %" PRIu64 ": no memory is there", r.bytes, r.below, (uint64_t)(uintptr_t)t->data,
                       t->byte_offset);
    own->data = r.bytes ? (void *)(uintptr_t)zero : NULL;
    void *lowest = r.bytes ? (void *)(uintptr_t)(zero - r.below) : NULL;
    return tn_buffer_wrap(lowest, r.bytes, managed->flags & TN_DLPACK_READ_ONLY, release_managed, managed,
                          &own->buffer, err);
}

tn_status tn_dlpack_import(struct DLManagedTensorVersioned *managed, tn_dlpack_array *result, tn_error *err)
{
    TN_GIVEN(managed, "a tensor", err);
    TN_GIVEN(result, "a place for the array", err);
    if (managed->major != TN_DLPACK_MAJOR)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "DLPack version %" PRIu32 ".%" PRIu32 ": expected %u.x",
                       managed->major, managed->minor, TN_DLPACK_MAJOR);
    tn_dlpack_tensor t = managed->tensor;
    tn_dlpack_array own = { .data = NULL };
    TN_TRY(check_device(&t, err));
    TN_TRY(take_type(&t, managed->flags, &own.array.dtype, err));
    TN_TRY(take_shape(&t, &own, err));
    TN_TRY(take_strides(&t, &own, err));
    TN_TRY(take_memory(managed, &t, &own, err));
    *result = own;
    result->array.shape = result->shape;
    if (own.array.stride)
        result->array.stride = result->stride;
    return TN_OK;
}
