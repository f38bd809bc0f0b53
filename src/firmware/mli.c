/* mli.c - checks, sizes, sub-tensors, scalars and conversions of MLI's tensors.
 *
 * Freestanding: it includes only its own header and computes with integers only.  The structures of the three
 * versions are read into one view, which is checked. */
#include <tenon/mli.h>

typedef enum zero_stride {      /* what a stride of 0 means */
    ZERO_IS_WRONG,
    ZERO_IS_DENSE
} zero_stride;

typedef struct view {
    uint8_t *data;
    uint32_t capacity;
    uint32_t rank;
    uint32_t shape[TN_MLI_MAX_RANK];
    uint32_t stride[TN_MLI_MAX_RANK];   /* in elements, none of them 0 */
    uint32_t size;                      /* bytes of one element */
    uint32_t bytes;                     /* from the first element to the end of the last */
    bool     in_field;                  /* the value is stored instead of the pointer */
    int32_t  axis;                      /* dimension with arrays of parameters, or -1 */
    uint32_t first;                     /* entry of these arrays; not 0 in sub-tensors */
} view;

static void copy_bytes(void *to, const void *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
}

/* Reads entry `index` of an array of integers of 1, 2 or 4 bytes, which may be unaligned. */
static int32_t load(const void *array, uint32_t index, uint32_t size)
{
    const uint8_t *entry = (const uint8_t *)array + (size_t)index * size;
    int16_t i16;
    int32_t i32;
    if (size == 1)
        return (int8_t)*entry;
    if (size == 2) {
        copy_bytes(&i16, entry, 2);
        return i16;
    }
    copy_bytes(&i32, entry, 4);
    return i32;
}

static void store(void *p, int32_t value, uint32_t size)
{
    int16_t i16 = (int16_t)value;
    if (size == 1)
        *(uint8_t *)p = (uint8_t)value;
    else if (size == 2)
        copy_bytes(p, &i16, 2);
    else
        copy_bytes(p, &value, 4);
}

/* ---- Checks ---- */

/* Sets v->bytes from shape, strides and element size; false: more than 32 bits. */
static bool measure(view *v)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < v->rank; i++) {
        uint64_t reach = (uint64_t)(v->shape[i] - 1) * v->stride[i];
        if (reach > UINT32_MAX)
            return false;
        elements += reach;
    }
    uint64_t bytes = elements * v->size;
    v->bytes = v->in_field ? 0 : (uint32_t)bytes;
    return bytes <= UINT32_MAX;
}

/* Sets v->stride; `given` may be NULL: dense.  A stride must be at least the size of the inner dimensions. */
static bool set_strides(view *v, const int32_t *given, zero_stride zero)
{
    uint64_t inside = 1;
    for (uint32_t i = v->rank; i-- > 0;) {
        if (given && given[i] != 0) {
            if (given[i] < 0 || (uint32_t)given[i] < inside)
                return false;
            inside = (uint32_t)given[i];
        } else if (zero == ZERO_IS_WRONG) {
            return false;
        }
        if (inside > UINT32_MAX)
            return false;
        v->stride[i] = (uint32_t)inside;
        inside *= v->shape[i];
    }
    return true;
}

/* What all versions share; v->rank, ->size and ->in_field are set. */
static tn_mli_status set_shape(view *v, const uint32_t *shape, const int32_t *mem_stride, zero_stride zero)
{
    if (v->rank > TN_MLI_MAX_RANK || v->size == 0)
        return TN_MLI_BAD_TENSOR;
    for (uint32_t i = 0; i < v->rank; i++) {
        if (shape[i] == 0)
            return TN_MLI_BAD_TENSOR;
        v->shape[i] = shape[i];
    }
    v->axis = -1;
    v->first = 0;
    return set_strides(v, mem_stride, zero) && measure(v) ? TN_MLI_OK : TN_MLI_BAD_TENSOR;
}

/* Whether this can be memory: not NULL, and its end does not overflow. */
static bool is_memory(const void *p, uint64_t bytes)
{
    return p && bytes <= UINTPTR_MAX - (uintptr_t)p;
}

/* This and other functions that take a status return it if it is an error. */
static tn_mli_status check_memory(tn_mli_status status, const view *v)
{
    if (status != TN_MLI_OK || v->in_field)
        return status;
    if (!is_memory(v->data, v->bytes))
        return TN_MLI_BAD_TENSOR;
    return v->bytes <= v->capacity ? TN_MLI_OK : TN_MLI_NOT_ENOUGH_MEM;
}

static bool all_positive(const void *array, uint32_t n, uint32_t size)
{
    for (uint32_t i = 0; i < n; i++)
        if (load(array, i, size) <= 0)
            return false;
    return true;
}

static uint32_t count(uint32_t rank, const uint32_t *shape, uint32_t start)
{
    if (rank > TN_MLI_MAX_RANK || start > rank || (start == rank && rank != 0))
        return 0;
    uint64_t n = 1;
    for (uint32_t i = start; i < rank; i++) {
        n *= shape[i];
        if (n > UINT32_MAX)
            return 0;
    }
    return (uint32_t)n;
}

/* ---- The three structures as views ---- */

/* measure10 .. measure20 check the shape only, open10 .. open20 everything.  They check parameters last:
 * their arrays have as many entries as the shape says, and the shape must first fit the capacity. */
static tn_mli_status measure10(const tn_mli10_tensor *t, view *v)
{
    if (!t)
        return TN_MLI_BAD_TENSOR;
    v->data = (uint8_t *)t->data;
    v->capacity = t->capacity;
    v->rank = t->rank;
    v->size = tn_mli10_element_size(t->el_type);
    v->in_field = t->rank == 0;
    return set_shape(v, t->shape, NULL, ZERO_IS_DENSE);
}

static tn_mli_status open10(const tn_mli10_tensor *t, view *v)
{
    return check_memory(measure10(t, v), v);
}

static tn_mli_status measure11(const tn_mli11_tensor *t, view *v)
{
    if (!t)
        return TN_MLI_BAD_TENSOR;
    const int32_t *stride = t->mem_stride;
    for (uint32_t i = 0; i < t->rank && i < TN_MLI_MAX_RANK; i++) {
        if (t->mem_stride[i] < 0)
            return TN_MLI_BAD_TENSOR;
        if (t->mem_stride[i] == 0)
            stride = NULL;
    }
    v->data = (uint8_t *)t->data;
    v->capacity = t->capacity;
    v->rank = t->rank;
    v->size = tn_mli11_element_size(t->el_type);
    v->in_field = t->rank == 0;
    return set_shape(v, t->shape, stride, ZERO_IS_DENSE);
}

static bool is_affine11(const tn_mli11_tensor *t)
{
    return t->el_type == TN_MLI1_SA8 || t->el_type == TN_MLI1_SA32;
}

static bool parameters11(const tn_mli11_tensor *t, view *v)
{
    int32_t dim = t->el_params.asym.dim;
    if (!is_affine11(t))
        return true;
    if (dim < 0)
        return t->el_params.asym.scale.i32 > 0;
    if ((uint32_t)dim >= v->rank)
        return false;
    v->axis = dim;
    uint32_t n = v->shape[dim];
    const tn_mli11_container *zero = &t->el_params.asym.zero_point, *scale = &t->el_params.asym.scale;
    return is_memory(zero->pi16, (uint64_t)n * 2) && is_memory(scale->pi32, (uint64_t)n * 4) &&
           all_positive(scale->pi32, n, 4);
}

static tn_mli_status open11(const tn_mli11_tensor *t, view *v)
{
    tn_mli_status status = check_memory(measure11(t, v), v);
    return status == TN_MLI_OK && !parameters11(t, v) ? TN_MLI_BAD_TENSOR : status;
}

static tn_mli_status measure20(const tn_mli20_tensor *t, view *v, zero_stride zero)
{
    if (!t)
        return TN_MLI_BAD_TENSOR;
    for (uint32_t i = 0; i < t->rank && i < TN_MLI_MAX_RANK; i++)
        if (t->shape[i] > INT32_MAX)
            return TN_MLI_BAD_TENSOR;
    v->data = (uint8_t *)t->data.mem.void_p;
    v->capacity = t->data.capacity;
    v->rank = t->rank;
    v->size = tn_mli20_element_size(t->el_type);
    v->in_field = t->rank == 0 && t->data.capacity == 0;
    return set_shape(v, t->shape, t->mem_stride, zero);
}

static bool is_affine20(const tn_mli20_tensor *t)
{
    return t->el_type == TN_MLI2_SA8 || t->el_type == TN_MLI2_SA32;
}

static bool holds(const tn_mli20_container *array, uint32_t entries, uint32_t size)
{
    uint64_t bytes = (uint64_t)entries * size;
    return bytes <= array->capacity && is_memory(array->mem.void_p, bytes);
}

/* Whether all three containers hold their value in the field itself. */
static bool in_fields20(const tn_mli20_tensor *t)
{
    return t->el_params.sa.zero_point.capacity == 0 && t->el_params.sa.scale.capacity == 0 &&
           t->el_params.sa.scale_frac_bits.capacity == 0;
}

static bool parameters20(const tn_mli20_tensor *t, view *v)
{
    int32_t dim = t->el_params.sa.dim;
    if (!is_affine20(t))
        return true;
    if (t->el_params.sa.type != 0)
        return false;
    if (dim < 0)
        return in_fields20(t) && t->el_params.sa.scale.mem.i16 > 0;
    if ((uint32_t)dim >= v->rank)
        return false;
    v->axis = dim;
    uint32_t n = v->shape[dim];
    return holds(&t->el_params.sa.zero_point, n, 2) && holds(&t->el_params.sa.scale, n, 2) &&
           holds(&t->el_params.sa.scale_frac_bits, n, 1) &&
           all_positive(t->el_params.sa.scale.mem.pi16, n, 2);
}

static tn_mli_status open20(const tn_mli20_tensor *t, view *v, zero_stride zero)
{
    tn_mli_status status = measure20(t, v, zero);
    if (status == TN_MLI_OK && v->capacity > INT32_MAX)
        return TN_MLI_BAD_TENSOR;
    status = check_memory(status, v);
    return status == TN_MLI_OK && !parameters20(t, v) ? TN_MLI_BAD_TENSOR : status;
}

tn_mli_status tn_mli10_check(const tn_mli10_tensor *tensor)
{
    view v;
    return open10(tensor, &v);
}

tn_mli_status tn_mli11_check(const tn_mli11_tensor *tensor)
{
    view v;
    return open11(tensor, &v);
}

tn_mli_status tn_mli20_check(const tn_mli20_tensor *tensor)
{
    view v;
    return open20(tensor, &v, ZERO_IS_WRONG);
}

uint32_t tn_mli10_element_size(uint32_t el_type)
{
    if (el_type == TN_MLI1_FX8)
        return 1;
    return el_type == TN_MLI1_FX16 ? 2 : 0;
}

uint32_t tn_mli11_element_size(uint32_t el_type)
{
    if (el_type == TN_MLI1_SA8)
        return 1;
    return el_type == TN_MLI1_SA32 ? 4 : tn_mli10_element_size(el_type);
}

uint32_t tn_mli20_element_size(uint32_t el_type)
{
    switch (el_type) {
    case TN_MLI2_FX8:
    case TN_MLI2_SA8:
        return 1;
    case TN_MLI2_FX16:
    case TN_MLI2_FP16:
        return 2;
    case TN_MLI2_SA32:
    case TN_MLI2_FP32:
        return 4;
    default:
        return 0;
    }
}

uint32_t tn_mli10_count(const tn_mli10_tensor *tensor, uint32_t start_dim)
{
    return tensor ? count(tensor->rank, tensor->shape, start_dim) : 0;
}

uint32_t tn_mli11_count(const tn_mli11_tensor *tensor, uint32_t start_dim)
{
    return tensor ? count(tensor->rank, tensor->shape, start_dim) : 0;
}

uint32_t tn_mli20_count(const tn_mli20_tensor *tensor, uint32_t start_dim)
{
    return tensor ? count(tensor->rank, tensor->shape, start_dim) : 0;
}

static tn_mli_status give_bytes(tn_mli_status status, const view *v, uint32_t *bytes)
{
    if (status == TN_MLI_OK && !bytes)
        return TN_MLI_ARGUMENT_ERROR;
    if (status == TN_MLI_OK)
        *bytes = v->bytes;
    return status;
}

tn_mli_status tn_mli10_bytes(const tn_mli10_tensor *tensor, uint32_t *bytes)
{
    view v;
    return give_bytes(measure10(tensor, &v), &v, bytes);
}

tn_mli_status tn_mli11_bytes(const tn_mli11_tensor *tensor, uint32_t *bytes)
{
    view v;
    return give_bytes(measure11(tensor, &v), &v, bytes);
}

tn_mli_status tn_mli20_bytes(const tn_mli20_tensor *tensor, uint32_t *bytes)
{
    view v;
    return give_bytes(measure20(tensor, &v, ZERO_IS_WRONG), &v, bytes);
}

/* ---- Sub-tensors ---- */

static bool is_inside(const view *v, const tn_mli_cut *cfg)
{
    for (uint32_t i = 0; i < v->rank; i++)
        if (cfg->offset[i] >= v->shape[i] || cfg->size[i] == 0 || cfg->size[i] > v->shape[i] - cfg->offset[i])
            return false;
    return cfg->sub_tensor_rank >= 1 && cfg->sub_tensor_rank <= v->rank;
}

/* Reduces the view to the box. */
static tn_mli_status cut(tn_mli_status status, view *v, const tn_mli_cut *cfg)
{
    if (status != TN_MLI_OK)
        return status;
    if (!cfg || !is_inside(v, cfg))
        return TN_MLI_BAD_FUNC_CFG;
    uint32_t to_drop = v->rank - cfg->sub_tensor_rank, kept = 0, skipped = 0;
    int32_t axis = -1;
    for (uint32_t i = 0; i < v->rank; i++) {
        skipped += cfg->offset[i] * v->stride[i];       /* within v->bytes */
        if ((int32_t)i == v->axis)
            v->first = cfg->offset[i];
        if (to_drop > 0 && cfg->size[i] == 1) {
            to_drop--;
            continue;
        }
        if ((int32_t)i == v->axis)
            axis = (int32_t)kept;
        v->shape[kept] = cfg->size[i];
        v->stride[kept++] = v->stride[i];
    }
    if (to_drop > 0)
        return TN_MLI_BAD_FUNC_CFG;
    v->axis = axis;
    v->rank = kept;
    v->data += (size_t)skipped * v->size;
    v->capacity -= skipped * v->size;
    measure(v);                                         /* no more than it was */
    return TN_MLI_OK;
}

/* The same for the box of a point. */
static tn_mli_status cut_point(tn_mli_status status, view *v, const tn_mli_point *cfg)
{
    if (status != TN_MLI_OK)
        return status;
    if (!cfg || cfg->coord_num < 1 || cfg->coord_num > v->rank)
        return TN_MLI_BAD_FUNC_CFG;
    tn_mli_cut box;
    for (uint32_t i = 0; i < v->rank; i++) {
        bool given = i < cfg->coord_num, last = i + 1 == cfg->coord_num;
        box.offset[i] = given ? cfg->start_coord[i] : 0;
        box.size[i] = given ? 1 : v->shape[i];
        if (last)
            box.size[i] = cfg->first_out_dim_size;
    }
    box.sub_tensor_rank = v->rank - cfg->coord_num + 1;
    status = cut(TN_MLI_OK, v, &box);
    if (status == TN_MLI_OK)
        v->capacity = v->bytes;
    return status;
}

static bool is_dense(const view *v)
{
    uint32_t inside = 1;
    for (uint32_t i = v->rank; i-- > 0;) {
        if (v->shape[i] != 1 && v->stride[i] != inside)
            return false;
        inside *= v->shape[i];
    }
    return true;
}

static bool strides_fit(const view *v)
{
    for (uint32_t i = 0; i < v->rank; i++)
        if (v->stride[i] > INT32_MAX)
            return false;
    return true;
}

static void put_shape(const view *v, uint32_t *shape, int32_t *mem_stride)
{
    for (uint32_t i = 0; i < TN_MLI_MAX_RANK; i++) {
        shape[i] = i < v->rank ? v->shape[i] : 0;
        if (mem_stride)
            mem_stride[i] = i < v->rank ? (int32_t)v->stride[i] : 0;
    }
}

static tn_mli_status put10(tn_mli_status status, const tn_mli10_tensor *in, const view *v,
                           tn_mli10_tensor *out)
{
    if (status != TN_MLI_OK)
        return status;
    if (!out)
        return TN_MLI_BAD_TENSOR;
    if (!is_dense(v))
        return TN_MLI_NOT_SUPPORTED;
    *out = *in;
    out->data = v->data;
    out->capacity = v->capacity;
    out->rank = v->rank;
    put_shape(v, out->shape, NULL);
    return TN_MLI_OK;
}

static tn_mli_status put11(tn_mli_status status, const tn_mli11_tensor *in, const view *v,
                           tn_mli11_tensor *out)
{
    if (status != TN_MLI_OK)
        return status;
    if (!out)
        return TN_MLI_BAD_TENSOR;
    if (!strides_fit(v))
        return TN_MLI_NOT_SUPPORTED;
    out->el_type = in->el_type;                         /* one by one: *out = *in would need memcpy() */
    out->el_params = in->el_params;
    out->data = v->data;
    out->capacity = v->capacity;
    out->rank = v->rank;
    put_shape(v, out->shape, out->mem_stride);
    if (!is_affine11(out) || out->el_params.asym.dim < 0)
        return TN_MLI_OK;
    tn_mli11_container *zero = &out->el_params.asym.zero_point, *scale = &out->el_params.asym.scale;
    out->el_params.asym.dim = v->axis;
    if (v->axis >= 0) {
        zero->pi16 += v->first;
        scale->pi32 += v->first;
    } else {
        int32_t only_zero = load(zero->pi16, v->first, 2), only_scale = load(scale->pi32, v->first, 4);
        zero->pi16 = NULL;                              /* no byte of the pointers stays */
        scale->pi32 = NULL;
        zero->i16 = (int16_t)only_zero;
        scale->i32 = only_scale;
    }
    return TN_MLI_OK;
}

/* Advances an array of parameters to v->first, or stores that one entry in the field. */
static void advance(tn_mli20_container *array, const view *v, uint32_t size)
{
    if (v->axis >= 0) {
        array->mem.pi8 += (size_t)v->first * size;
        array->capacity -= v->first * size;
        return;
    }
    const int8_t *entry = array->mem.pi8 + (size_t)v->first * size;
    array->capacity = 0;
    array->mem.void_p = NULL;
    copy_bytes(&array->mem, entry, size);
}

static tn_mli_status put20(tn_mli_status status, const tn_mli20_tensor *in, const view *v,
                           tn_mli20_tensor *out)
{
    if (status != TN_MLI_OK)
        return status;
    if (!out)
        return TN_MLI_BAD_TENSOR;
    if (!strides_fit(v))
        return TN_MLI_NOT_SUPPORTED;
    out->el_type = in->el_type;
    out->el_params = in->el_params;
    out->data.mem.void_p = v->data;
    out->data.capacity = v->capacity;
    out->rank = v->rank;
    put_shape(v, out->shape, out->mem_stride);
    if (is_affine20(out) && out->el_params.sa.dim >= 0) {
        out->el_params.sa.dim = v->axis;
        advance(&out->el_params.sa.zero_point, v, 2);
        advance(&out->el_params.sa.scale, v, 2);
        advance(&out->el_params.sa.scale_frac_bits, v, 1);
    }
    return TN_MLI_OK;
}

tn_mli_status tn_mli10_point_to_subtensor(const tn_mli10_tensor *in, const tn_mli_point *cfg,
                                          tn_mli10_tensor *out)
{
    view v;
    return put10(cut_point(open10(in, &v), &v, cfg), in, &v, out);
}

tn_mli_status tn_mli11_point_to_subtensor(const tn_mli11_tensor *in, const tn_mli_point *cfg,
                                          tn_mli11_tensor *out)
{
    view v;
    return put11(cut_point(open11(in, &v), &v, cfg), in, &v, out);
}

tn_mli_status tn_mli20_point_to_subtensor(const tn_mli20_tensor *in, const tn_mli_point *cfg,
                                          tn_mli20_tensor *out)
{
    view v;
    return put20(cut_point(open20(in, &v, ZERO_IS_DENSE), &v, cfg), in, &v, out);
}

tn_mli_status tn_mli10_create_subtensor(const tn_mli10_tensor *in, const tn_mli_cut *cfg,
                                        tn_mli10_tensor *out)
{
    view v;
    return put10(cut(open10(in, &v), &v, cfg), in, &v, out);
}

tn_mli_status tn_mli11_create_subtensor(const tn_mli11_tensor *in, const tn_mli_cut *cfg,
                                        tn_mli11_tensor *out)
{
    view v;
    return put11(cut(open11(in, &v), &v, cfg), in, &v, out);
}

tn_mli_status tn_mli20_create_subtensor(const tn_mli20_tensor *in, const tn_mli_cut *cfg,
                                        tn_mli20_tensor *out)
{
    view v;
    return put20(cut(open20(in, &v, ZERO_IS_DENSE), &v, cfg), in, &v, out);
}

/* ---- Scalars ---- */

static tn_mli_status want_scalar(tn_mli_status status, const view *v)
{
    if (status != TN_MLI_OK)
        return status;
    return v->bytes <= v->size ? TN_MLI_OK : TN_MLI_SHAPE_MISMATCH;
}

static bool fits(int32_t value, uint32_t size)
{
    int32_t highest = INT32_MAX >> (32 - 8 * size);
    return value <= highest && value >= -highest - 1;
}

/* 1.x: the value is in the low bits of the pointer. */
static tn_mli_status get1(tn_mli_status status, const view *v, int32_t *value)
{
    status = want_scalar(status, v);
    if (status != TN_MLI_OK)
        return status;
    if (!value)
        return TN_MLI_ARGUMENT_ERROR;
    int32_t low = (int32_t)(uint32_t)(uintptr_t)v->data;
    if (!v->in_field)
        *value = load(v->data, 0, v->size);
    else if (v->size == 1)
        *value = (int8_t)low;
    else
        *value = v->size == 2 ? (int16_t)low : low;
    return TN_MLI_OK;
}

static tn_mli_status set1(tn_mli_status status, const view *v, void **data, int32_t value)
{
    status = want_scalar(status, v);
    if (status != TN_MLI_OK)
        return status;
    if (!fits(value, v->size))
        return TN_MLI_ARGUMENT_ERROR;
    if (v->in_field)
        *data = (void *)(intptr_t)value;
    else
        store(v->data, value, v->size);
    return TN_MLI_OK;
}

tn_mli_status tn_mli10_scalar_get(const tn_mli10_tensor *tensor, int32_t *value)
{
    view v;
    return get1(open10(tensor, &v), &v, value);
}

tn_mli_status tn_mli11_scalar_get(const tn_mli11_tensor *tensor, int32_t *value)
{
    view v;
    return get1(open11(tensor, &v), &v, value);
}

tn_mli_status tn_mli10_scalar_set(tn_mli10_tensor *tensor, int32_t value)
{
    view v;
    return set1(open10(tensor, &v), &v, tensor ? &tensor->data : NULL, value);
}

tn_mli_status tn_mli11_scalar_set(tn_mli11_tensor *tensor, int32_t value)
{
    view v;
    return set1(open11(tensor, &v), &v, tensor ? &tensor->data : NULL, value);
}

/* A scalar of integers. */
static tn_mli_status open_scalar20(const tn_mli20_tensor *tensor, view *v)
{
    tn_mli_status status = want_scalar(open20(tensor, v, ZERO_IS_WRONG), v);
    if (status != TN_MLI_OK)
        return status;
    bool is_float = tensor->el_type == TN_MLI2_FP16 || tensor->el_type == TN_MLI2_FP32;
    return is_float ? TN_MLI_TYPE_MISMATCH : TN_MLI_OK;
}

tn_mli_status tn_mli20_scalar_get(const tn_mli20_tensor *tensor, int32_t *value)
{
    view v;
    tn_mli_status status = open_scalar20(tensor, &v);
    if (status != TN_MLI_OK)
        return status;
    if (!value)
        return TN_MLI_ARGUMENT_ERROR;
    *value = load(v.in_field ? (const void *)&tensor->data.mem : v.data, 0, v.size);
    return TN_MLI_OK;
}

tn_mli_status tn_mli20_scalar_set(tn_mli20_tensor *tensor, int32_t value)
{
    view v;
    tn_mli_status status = open_scalar20(tensor, &v);
    if (status != TN_MLI_OK)
        return status;
    if (!fits(value, v.size))
        return TN_MLI_ARGUMENT_ERROR;
    if (v.in_field)
        tensor->data.mem.void_p = NULL;                 /* no byte of an older value stays */
    store(v.in_field ? (void *)&tensor->data.mem : v.data, value, v.size);
    return TN_MLI_OK;
}

/* ---- Conversion of one value ---- */

enum { EXPONENT_LIMIT = 1024 };  /* larger exponents give the same results */

static int32_t limit_exponent(int64_t e)
{
    if (e > EXPONENT_LIMIT)
        return EXPONENT_LIMIT;
    return e < -EXPONENT_LIMIT ? -EXPONENT_LIMIT : (int32_t)e;
}

/* A number as sign, magnitude and exponent: +-m * 2^e, m < 2^24. */
typedef struct number {
    bool     negative;
    uint32_t m;
    int32_t  e;
} number;

static int32_t cut_to(uint32_t magnitude, bool negative, int32_t highest)
{
    if (negative)
        return magnitude > (uint32_t)highest ? -highest - 1 : -(int32_t)magnitude;
    return magnitude > (uint32_t)highest ? highest : (int32_t)magnitude;
}

static int32_t round_to(number x, tn_mli_round round, int32_t highest)
{
    uint32_t whole = 0;
    if (x.e >= 0) {
        bool beyond = x.m > 0 && (x.e > 16 || x.m > 0x10000u >> x.e);
        if (x.m > 0)
            whole = beyond ? 0x10000u : x.m << x.e;
    } else if (x.e >= -24) {                            /* below that less than half of 1 */
        uint32_t s = (uint32_t)-x.e, rest = x.m & ((1u << s) - 1), half = 1u << (s - 1);
        whole = x.m >> s;
        bool tie_grows = round == TN_FX_HALF_EVEN ? (whole & 1) != 0 : true;
        if (round == TN_FX_HALF_UP)
            tie_grows = !x.negative;
        if (rest > half || (rest == half && tie_grows))
            whole++;
    }
    return cut_to(whole, x.negative, highest);
}

/* MLI's steps in binary32: add half of 1 with the sign, round to 24 bits (to even), drop the fraction. */
static int32_t round_in_steps(number x, int32_t highest)
{
    uint32_t whole = 0;
    if (x.m == 0)
        return 0;
    if (x.e > 7)
        return -highest - 1;                            /* beyond int32_t x86 gives the lowest */
    if (x.e >= 0) {
        whole = x.m << x.e;                             /* 2^23 or more: out of range, whatever a half adds */
    } else if (x.e >= -25) {
        uint32_t sum = x.m + (1u << (-x.e - 1)), s = (uint32_t)-x.e;
        if (sum >= 0x1000000u) {
            sum = (sum >> 1) + (sum & (sum >> 1) & 1);
            s--;
        }
        whole = sum >> s;
    }
    return cut_to(whole, x.negative, highest);
}

static tn_mli_status from_float(float value, int32_t frac_bits, tn_mli_round round, int32_t highest,
                                int32_t *fx)
{
    union { float f; uint32_t u; } bits;
    bits.f = value;
    uint32_t exponent = bits.u >> 23 & 0xff, fraction = bits.u & 0x7fffff;
    int64_t e = exponent ? exponent : 1;                /* subnormals have the lowest */
    number x = { bits.u >> 31 != 0, exponent ? fraction | 0x800000 : fraction,
                 limit_exponent(e - 150 + frac_bits) };
    if (exponent == 0xff && fraction != 0 && round != TN_FX_FLOAT_STEPS) {
        *fx = 0;
        return TN_MLI_ARGUMENT_ERROR;
    }
    if (exponent == 0xff)                               /* infinite, whatever frac_bits is */
        x.e = EXPONENT_LIMIT;
    *fx = round == TN_FX_FLOAT_STEPS ? round_in_steps(x, highest) : round_to(x, round, highest);
    return TN_MLI_OK;
}

tn_mli_status tn_mli_float_to_fx8(float value, int32_t frac_bits, tn_mli_round round, int8_t *fx)
{
    if (!fx)
        return TN_MLI_ARGUMENT_ERROR;
    int32_t q;
    tn_mli_status status = from_float(value, frac_bits, round, INT8_MAX, &q);
    *fx = (int8_t)q;
    return status;
}

tn_mli_status tn_mli_float_to_fx16(float value, int32_t frac_bits, tn_mli_round round, int16_t *fx)
{
    if (!fx)
        return TN_MLI_ARGUMENT_ERROR;
    int32_t q;
    tn_mli_status status = from_float(value, frac_bits, round, INT16_MAX, &q);
    *fx = (int16_t)q;
    return status;
}

float tn_mli_fx_to_float(int16_t fx, int32_t frac_bits)
{
    union { float f; uint32_t u; } bits;
    uint32_t m = (uint32_t)(fx < 0 ? -(int32_t)fx : fx);
    int32_t exponent = limit_exponent(150 - (int64_t)frac_bits);  /* of a significand in 24 bits */
    while (m != 0 && m < 0x800000) {
        m <<= 1;
        exponent--;
    }
    if (m == 0) {
        bits.u = 0;
    } else if (exponent >= 0xff) {
        bits.u = 0x7f800000;
    } else if (exponent >= 1) {
        bits.u = (uint32_t)exponent << 23 | (m & 0x7fffff);
    } else {                            /* subnormal; rounding up to 2^23 gives the first normal number */
        number tiny = { false, m, exponent - 1 };
        bits.u = (uint32_t)round_to(tiny, TN_FX_HALF_EVEN, INT32_MAX);
    }
    bits.u |= fx < 0 ? 0x80000000u : 0;
    return bits.f;
}

static int32_t rescale(int16_t fx, int32_t from, int32_t to, tn_mli_round round, int32_t highest)
{
    number x = { fx < 0, (uint32_t)(fx < 0 ? -(int32_t)fx : fx), limit_exponent((int64_t)to - from) };
    return round_to(x, round, highest);
}

int8_t tn_mli_fx_to_fx8(int16_t fx, int32_t from_frac_bits, int32_t to_frac_bits, tn_mli_round round)
{
    return (int8_t)rescale(fx, from_frac_bits, to_frac_bits, round, INT8_MAX);
}

int16_t tn_mli_fx_to_fx16(int16_t fx, int32_t from_frac_bits, int32_t to_frac_bits, tn_mli_round round)
{
    return (int16_t)rescale(fx, from_frac_bits, to_frac_bits, round, INT16_MAX);
}
