/* share/wire_tensor.c - the tensor of a descriptor from another process. */
#include "base/error.h"
#include "descriptor/descriptor.h"
#include "share/wire.h"
#include "tensor/array.h"

#include <string.h>

static tn_status check_dense(const tn_descriptor *d, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(d->dtype);
    const char *wrong = NULL;
    if (!type || d->dtype == TN_UNKNOWN)
        wrong = "its type is not one that this build knows";
    else if (d->symbolic)
        wrong = "its shape has symbols";
    else if (d->sparse.format || d->quantization.scheme != TN_QUANT_NONE || tn_other_scheme(d) ||
             d->physical_shape)
        wrong = "expected a dense tensor, neither sparse nor quantized nor padded";
    else if (type->swap_bytes > 1 && d->byte_order != TN_HOST_ORDER)
        wrong = "its bytes are in the order of another machine";
    return wrong ? tn_fail(err, TN_ERR_UNSUPPORTED, "%s", wrong) : TN_OK;
}

/* Shape and strides in the arena, and the bytes from the first element to the end of the last. */
static tn_status take_array(const tn_descriptor *d, tn_arena *arena, tn_array *a, uint64_t *span,
                            tn_error *err)
{
    int64_t *shape = tn_arena_zalloc(arena, d->rank, sizeof *shape);
    int64_t *stride = d->strides ? tn_arena_zalloc(arena, d->rank, sizeof *stride) : NULL;
    if (!shape || (d->strides && !stride))
        return tn_fail_nomem(err);
    for (uint32_t i = 0; i < d->rank; i++) {
        shape[i] = d->dimensions[i].value;
        if (stride)
            stride[i] = d->strides[i].factor;
    }
    *a = (tn_array){ d->dtype, d->rank, shape, stride };
    tn_status status =
        stride ? tn_strided_nbytes(d->dtype, d->rank, shape, stride, span) : tn_array_nbytes(a, span);
    if (status)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "its strides are negative, or it spans more than 2^63 bytes");
    return TN_OK;
}

/* Dense strides become NULL. */
static void forget_dense_strides(tn_array *a)
{
    int64_t dense[TN_MAX_RANK];
    uint64_t nbytes;
    if (!a->stride || tn_shape_nbytes(a->dtype, a->rank, a->shape, &nbytes))
        return;
    tn_dense_strides(a->rank, a->shape, dense);
    if (a->rank == 0 || memcmp(dense, a->stride, a->rank * sizeof *dense) == 0)
        a->stride = NULL;
}

static tn_status make_tensor(const tn_descriptor *d, const void *data, uint64_t bytes, tn_arena *arena,
                             tn_tensor *tensor, tn_error *err)
{
    tn_part *part = tn_arena_zalloc(arena, 1, sizeof *part);
    uint64_t span = 0;
    TN_TRY(part ? tn_descriptor_check_first(d, false, err) : tn_fail_nomem(err));
    TN_TRY(check_dense(d, err));
    TN_TRY(take_array(d, arena, &part->array, &span, err));
    if (d->offset_bytes > bytes || span > bytes - d->offset_bytes)
        return tn_fail(err, TN_ERR_CORRUPT,
                       "its elements take %llu bytes from byte %llu on but the buffer has %llu",
                       (unsigned long long)span, (unsigned long long)d->offset_bytes,
                       (unsigned long long)bytes);
    if (tn_shape_nbytes(d->dtype, d->rank, part->array.shape, &part->nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "its shape takes more than 2^63 bytes");
    forget_dense_strides(&part->array);
    part->role = "data";
    part->data = data ? (const uint8_t *)data + d->offset_bytes : NULL;
    *tensor = (tn_tensor){
        .name = d->name, .form = TN_FORM_DENSE, .dtype = d->dtype, .rank = d->rank,
            .shape = part->array.shape,
        .parts = part, .nparts = 1,
        .layout = d->layout,
    };
    return TN_OK;
}

tn_status tn_wire_tensor(const tn_descriptor *d, const void *data, uint64_t bytes, tn_arena *arena,
                         tn_tensor *tensor, tn_error *err)
{
    return tn_in_tensor(make_tensor(d, data, bytes, arena, tensor, err), d->name, err);
}
