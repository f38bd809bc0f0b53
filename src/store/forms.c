/* store/forms.c - checking that the parts of a tensor fit its form. */
#include "store/forms.h"
#include "base/checked.h"
#include "base/error.h"
#include "quant/grammar/datatype.h"
#include "tensor/array.h"

#include <string.h>

tn_status tn_check_dense(const tn_tensor *t, const tn_datatype *datatype, tn_error *err)
{
    (void)datatype;
    const tn_array *a = &t->parts[0].array;
    if (a->dtype != t->dtype || !tn_same_shape(a->rank, a->shape, t->rank, t->shape))
        return tn_fail(err, TN_ERR_ARGUMENT, "a dense tensor's data must have its type and shape");
    return TN_OK;
}

/* ---- sparse ---- */

static bool is_index_type(tn_dtype dtype)
{
    return dtype == TN_INT32 || dtype == TN_INT64 || dtype == TN_UINT32 || dtype == TN_UINT64;
}

/* Elements are numbered in row-major order. */
static bool is_countable(const tn_tensor *t)
{
    uint64_t count;
    return tn_shape_count(t->rank, t->shape, &count) == TN_OK;
}

/* Values [n] and a row of indices per value [n, rank]. */
tn_status tn_check_coo(const tn_tensor *t, const tn_datatype *datatype, tn_error *err)
{
    (void)datatype;
    const tn_array *values = &t->parts[0].array, *indices = &t->parts[1].array;
    const char *wrong = NULL;
    if (!is_countable(t))
        wrong = "it has more than 2^63 - 1 elements";
    else if (values->dtype != t->dtype || values->rank != 1)
        wrong = "its values must be a vector of its type";
    else if (!is_index_type(indices->dtype))
        wrong = "its indices must be int32, int64, uint32 or uint64";
    else if (indices->rank != 2 || indices->shape[0] != values->shape[0] ||
             indices->shape[1] != (int64_t)t->rank)
        wrong = "its indices must be one row for each value, as long as it has dimensions";
    return wrong ? tn_fail(err, TN_ERR_ARGUMENT, "%s", wrong) : TN_OK;
}

/* All dimensions but the last. */
static bool is_row_count(const tn_tensor *t, int64_t pointers)
{
    int64_t rows;
    return !__builtin_mul_overflow(t->shape[0], t->rank == 3 ? t->shape[1] : 1, &rows) && pointers > 0 &&
           pointers - 1 == rows;
}

/* Values [n], an index along the last dimension per value [n], and row pointers [rows + 1]. */
tn_status tn_check_csr(const tn_tensor *t, const tn_datatype *datatype, tn_error *err)
{
    (void)datatype;
    const tn_array *values = &t->parts[0].array, *indices = &t->parts[1].array, *indptr = &t->parts[2].array;
    const char *wrong = NULL;
    if (t->rank != 2 && t->rank != 3)
        wrong = "form csr has two dimensions, or three: a batch";
    else if (!is_countable(t))
        wrong = "it has more than 2^63 - 1 elements";
    else if (values->dtype != t->dtype || values->rank != 1)
        wrong = "its values must be a vector of its type";
    else if (!is_index_type(indices->dtype) || indptr->dtype != indices->dtype)
        wrong = "its indices and row pointers must be of one type: int32, int64, uint32 or uint64";
    else if (indices->rank != 1 || indices->shape[0] != values->shape[0])
        wrong = "its indices must be one for each value";
    else if (indptr->rank != 1 || !is_row_count(t, indptr->shape[0]))
        wrong = "its row pointers must be one more than it has rows";
    return wrong ? tn_fail(err, TN_ERR_ARGUMENT, "%s", wrong) : TN_OK;
}

/* ---- scaled ---- */

/* One number, or one per index along the axis. */
static bool is_scale_shape(const tn_tensor *t, const tn_array *a)
{
    int32_t axis = t->scaling->axis;
    return axis < 0 ? a->rank == 0 : a->rank == 1 && a->shape[0] == t->shape[axis];
}

static bool is_code_range(const tn_dtype_info *type, const int64_t range[2])
{
    bool sign = type->kind == TN_KIND_INT;
    int64_t high = (INT64_C(1) << (type->bits - sign)) - 1;
    return range[0] < range[1] && range[0] >= (sign ? -high - 1 : 0) && range[1] <= high;
}

/* 64 bits are what PyTorch stores. */
static bool is_scale_type(tn_dtype dtype) { return dtype == TN_FLOAT32 || dtype == TN_FLOAT64; }
static bool is_zero_type(tn_dtype dtype)  { return dtype == TN_INT32 || dtype == TN_INT64; }

/* Parts are codes, scales, and perhaps zero points. */
static bool has_affine_parts(const tn_tensor *t)
{
    return t->nparts >= 2 && t->nparts <= 3 && strcmp(t->parts[1].role, "scale") == 0 &&
           (t->nparts == 2 || strcmp(t->parts[2].role, "zero") == 0);
}

/* Integer codes, (data - zero) * scale. */
static tn_status check_affine(const tn_tensor *t, tn_error *err)
{
    const tn_array *a = &t->parts[0].array;
    const tn_dtype_info *type = tn_dtype_get(a->dtype);
    const tn_scaling *s = t->scaling;
    const char *wrong = NULL;
    if (!has_affine_parts(t))
        wrong = "its parts must be data, scale and perhaps zero";
    else if (s->axis < -1 || s->axis >= (int32_t)t->rank)
        wrong = "its scaling names no dimension";
    else if (!type || (type->kind != TN_KIND_INT && type->kind != TN_KIND_UINT) || type->bits > 32)
        wrong = "its codes must be integers of at most 32 bits";
    else if (!is_code_range(type, s->range))
        wrong = "the range of its codes is not one of their type";
    else if (!tn_same_shape(a->rank, a->shape, t->rank, t->shape))
        wrong = "its codes must have its shape";
    else if (!is_scale_type(t->parts[1].array.dtype) || !is_scale_shape(t, &t->parts[1].array))
        wrong = "its scales must be float32 or float64, one or as many as the dimension is long";
    else if (t->nparts > 2 &&
             (!is_zero_type(t->parts[2].array.dtype) || !is_scale_shape(t, &t->parts[2].array)))
        wrong = "its zero points must be int32 or int64, as many as scales";
    return wrong ? tn_fail(err, TN_ERR_ARGUMENT, "%s", wrong) : TN_OK;
}

/* The tiled dimension, the second of two; the last dimension if there is one scale or none. */
static int64_t tiled_dimension(const tn_tensor *t, const tn_datatype *d)
{
    if (d->dims == 0)
        return (int64_t)t->rank - 1;
    return (int64_t)d->dim + d->dims - 1 + (d->dim < 0 ? t->rank : 0);
}

/* A rotation applies to blocks along the tiled dimension. */
static tn_status check_rotation(const tn_tensor *t, const tn_datatype *d, tn_error *err)
{
    uint32_t size = t->scaling->rotation.size;
    int64_t dim = tiled_dimension(t, d);
    uint64_t count;
    if (size == 0)
        return TN_OK;
    if (size < 4 || size > 128 || !tn_is_power_of_two(size))
        return tn_fail(err, TN_ERR_ARGUMENT, "a rotation is of 4 to 128 values, a power of two, but found %u",
                       size);
    bool empty = tn_shape_count(t->rank, t->shape, &count) == TN_OK && count == 0;
    if (!empty && (dim < 0 || t->shape[dim] % size))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a rotation of %u values needs a dimension that is a multiple of it", size);
    return TN_OK;
}

static bool is_part(const tn_part *p, const tn_scaled_part *of, bool plain)
{
    const int64_t *shape = plain ? of->plain_shape : of->shape;
    return p->array.dtype == (plain ? of->plain_dtype : of->dtype) &&
           tn_same_shape(p->array.rank, p->array.shape, of->rank, shape);
}

static tn_status check_scaled_parts(const tn_tensor *t, const tn_scaled_shapes *shapes, tn_error *err)
{
    if (t->nparts != shapes->count)
        return tn_fail(err, TN_ERR_ARGUMENT, "its datatype has %u parts but found %u", shapes->count,
                       t->nparts);
    for (uint32_t i = 0; i < t->nparts; i++) {
        const tn_scaled_part *p = &shapes->parts[i];
        if (strcmp(t->parts[i].role, p->role) != 0)
            return tn_fail(err, TN_ERR_ARGUMENT, "part %u of its datatype is \"%s\" but found %s", i, p->role,
                           tn_quote_z(t->parts[i].role).text);
        bool plain = i == 0 && t->scaling->unpacked;
        if (!is_part(&t->parts[i], p, plain))
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "its part \"%s\" does not have the type %s and the shape that its datatype gives "
                           "it", p->role, tn_dtype_get(plain ? p->plain_dtype : p->dtype)->name);
    }
    return TN_OK;
}

/* Every part must be as the datatype says. */
static tn_status check_datatype(const tn_tensor *t, const tn_datatype *d, tn_error *err)
{
    tn_scaled_shapes shapes;
    tn_error why;
    if (tn_scaled_shapes_for(d, t->rank, t->shape, &shapes, &why))
        return tn_fail(err, TN_ERR_ARGUMENT, "its datatype %s", why.text);
    if (t->scaling->store != TN_UNKNOWN && !t->scaling->unpacked)
        return tn_fail(err, TN_ERR_ARGUMENT, "its data is said to be numbers of %s, and packed",
                       tn_dtype_get(t->scaling->store)->name);
    tn_status status = check_scaled_parts(t, &shapes, err);
    return status ? status : check_rotation(t, d, err);
}

static tn_status read_and_check_datatype(const tn_tensor *t, tn_error *err)
{
    tn_datatype *d;
    tn_error why;
    tn_status status = tn_datatype_parse_stored(t->scaling->datatype, t->scaling->store, &d, &why);
    if (status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    if (status)
        return tn_fail(err, TN_ERR_ARGUMENT, "its datatype %s", why.text);
    status = check_datatype(t, d, err);
    tn_datatype_free(d);
    return status;
}

tn_status tn_check_scaled(const tn_tensor *t, const tn_datatype *datatype, tn_error *err)
{
    const tn_dtype_info *value = tn_dtype_get(t->dtype);
    const char *wrong = NULL;
    if (!t->scaling)
        wrong = "its scaling is not known";
    else if (!value || value->kind != TN_KIND_FLOAT || value->specials == TN_SPECIALS_E8M0)
        wrong = "its values must be of a signed float type";
    if (wrong)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s", wrong);
    if (!t->scaling->datatype)
        return check_affine(t, err);
    return datatype ? check_datatype(t, datatype, err) : read_and_check_datatype(t, err);
}
