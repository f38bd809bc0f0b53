/* formats/raw/describe.c - the descriptor of one tensor. */
#include "formats/raw/raw.h"
#include "base/error.h"
#include "store/record.h"
#include "bytes/json.h"
#include "descriptor/descriptor.h"
#include "tensor/array.h"
#include "tensor/form.h"

#include <math.h>
#include <string.h>

/* The descriptor being filled.  `nomem` is tested once, at the end. */
typedef struct builder {
    const tn_raw_subject *s;
    tn_arena             *arena;
    tn_descriptor        *d;
    uint32_t              rank;         /* of a sparse tensor, or of the codes of a scaled one */
    const int64_t        *shape;
    bool                  nomem;
} builder;

static void *keep(builder *m, void *block)
{
    m->nomem |= !block;
    return block;
}

static const char *keep_text(builder *m, const tn_buf *text)
{
    return keep(m, text->bad ? NULL : tn_arena_text(m->arena, (const char *)text->data, text->size));
}

/* --- shape and memory --- */

static void describe_shape(builder *m)
{
    const tn_tensor *t = m->s->tensor;
    tn_wia_extent *dims = keep(m, tn_arena_zalloc(m->arena, m->rank, sizeof *dims));
    for (uint32_t i = 0; dims && i < m->rank; i++)
        dims[i].value = m->shape[i];
    m->d->rank = m->rank;
    m->d->dimensions = dims;
    m->d->layout = t->layout ? keep(m, tn_arena_text(m->arena, t->layout, strlen(t->layout))) : NULL;
}

/* An array without elements needs no strides, and the product of its extents may overflow. */
static bool is_empty(const builder *m)
{
    uint64_t count = 0;
    return tn_shape_count(m->rank, m->shape, &count) || count == 0;
}

static bool is_padded(const builder *m)
{
    for (uint32_t i = 0; m->s->physical && i < m->rank; i++)
        if (m->s->physical[i] != m->shape[i])
            return true;
    return false;
}

static void describe_strides(builder *m)
{
    int64_t dense[TN_MAX_RANK];
    const int64_t *stride = m->s->stride ? m->s->stride : dense;
    m->d->is_contiguous = !is_padded(m);
    if (is_empty(m))
        return;
    tn_dense_strides(m->rank, m->s->physical ? m->s->physical : m->shape, dense);
    tn_wia_product *strides = keep(m, tn_arena_zalloc(m->arena, m->rank, sizeof *strides));
    for (uint32_t i = 0; strides && i < m->rank; i++) {
        strides[i].factor = stride[i];
        m->d->is_contiguous &= stride[i] == dense[i];
    }
    m->d->strides = strides;
}

static void describe_padding(builder *m)
{
    tn_descriptor *d = m->d;
    if (!m->s->physical)
        return;
    bool *dims = keep(m, tn_arena_zalloc(m->arena, m->rank, sizeof *dims));
    int64_t *values = keep(m, tn_arena_zalloc(m->arena, m->rank, sizeof *values));
    d->physical_shape = keep(m, tn_arena_copy(m->arena, m->s->physical, m->rank * sizeof *m->s->physical));
    for (uint32_t i = 0; dims && values && i < m->rank; i++) {
        values[i] = m->s->physical[i] - m->shape[i];
        dims[i] = values[i] > 0;
    }
    d->has_padding = true;
    const tn_padded *padded = m->s->tensor->parts[0].padded;
    double fill = padded ? padded->fill : 0;
    d->padding = (tn_wia_padding){ .dims = dims, .values = values, .fill = fill,
                                   .mode = fill == 0 ? "zero_fill" : "value_fill" };
}

static void describe_memory(builder *m)
{
    tn_descriptor *d = m->d;
    d->has_memory = d->has_total = d->has_properties = true;
    d->offset_bytes = m->s->offset;
    d->total_bytes = m->s->end;
    d->alignment = m->s->align;
    d->zero_copy_compatible = m->s->in_place;
    describe_strides(m);
    describe_padding(m);
}

/* --- quantization --- */

double tn_raw_number(float value)
{
    char text[48];
    tn_json j;
    tn_value v = { .kind = TN_KIND_FLOAT, .re = (double)value };
    int n = tn_value_format(text, sizeof text, TN_FLOAT32, v);
    tn_json_init(&j, text, (size_t)n, NULL);
    double number = tn_json_f64(&j);
    return j.status || (float)number != value ? (double)value : number;
}

/* A power of two keeps all its digits, so that a reader of doubles recognises fixed point. */
static double scale_number(float scale)
{
    int exponent;
    return frexpf(scale, &exponent) == 0.5f ? (double)scale : tn_raw_number(scale);
}

static void describe_scaling(builder *m)
{
    const tn_tensor *t = m->s->tensor;
    tn_wia_quantization *q = &m->d->quantization;
    int32_t axis = t->scaling->axis;
    size_t n = axis < 0 ? 1 : (size_t)t->shape[axis];
    double *scales = keep(m, tn_arena_zalloc(m->arena, n, sizeof *scales));
    int64_t *zeros = m->s->zero ? keep(m, tn_arena_zalloc(m->arena, n, sizeof *zeros)) : NULL;
    for (size_t i = 0; scales && i < n; i++)
        scales[i] = scale_number(m->s->scale[i]);
    for (size_t i = 0; zeros && i < n; i++)
        zeros[i] = m->s->zero[i];
    *q = (tn_wia_quantization){ .scales = scales, .nscales = n, .zero_points = zeros,
                                .nzero_points = zeros ? n : 0, .has_range = true,
                                .range = { t->scaling->range[0], t->scaling->range[1] } };
    if (axis < 0) {
        q->scheme = m->s->zero ? TN_QUANT_PER_TENSOR_ASYMMETRIC : TN_QUANT_PER_TENSOR_SYMMETRIC;
        return;
    }
    q->scheme = m->s->zero ? TN_QUANT_PER_CHANNEL_ASYMMETRIC : TN_QUANT_PER_CHANNEL_SYMMETRIC;
    q->has_axis = true;
    q->channel_axis = axis;
}

/* --- metadata and the member of Tenon --- */

static void put_type(tn_buf *text, const char *key, tn_dtype dtype)
{
    tn_json_put_key(text, key);
    tn_json_put_z(text, tn_dtype_get(dtype)->name);
}

static void put_own(const builder *m, tn_buf *text)
{
    const tn_tensor *t = m->s->tensor;
    const tn_wia_sparse *sparse = &m->d->sparse;
    const tn_buf *given = m->s->own;
    if (t->scaling && t->dtype != TN_FLOAT32)
        put_type(text, TN_RAW_VALUE_TYPE, t->dtype);
    if (sparse->pointers && sparse->index_type != TN_INT32)
        put_type(text, TN_RAW_INDEX_TYPE, sparse->index_type);
    if (m->s->places)
        tn_raw_put_scaled(text, t, m->s->places);
    if (given && given->size) {
        tn_json_put_comma(text);
        tn_buf_put(text, given->data, given->size);
    }
    text->bad |= given && given->bad;
}

/* All properties but is_contiguous, which depends on the new bytes. */
static void describe_properties(builder *m)
{
    tn_descriptor *d = m->d;
    const tn_properties *p = m->s->properties;
    if (!p || !p->given)
        return;
    d->has_properties = true;
    d->requires_grad = p->requires_grad;
    d->is_pinned = p->is_pinned;
    d->zero_copy_compatible &= p->zero_copy_compatible;
}

/* Copies of other properties: the descriptor may outlive their file. */
static void put_other_properties(builder *m, tn_wia_extra *extra)
{
    const tn_properties *p = m->s->properties;
    for (size_t i = 0; p && p->given && i < p->nextra; i++) {
        const char *key = keep(m, tn_arena_text(m->arena, p->extra[i].key, strlen(p->extra[i].key)));
        const char *json = keep(m, tn_arena_text(m->arena, p->extra[i].json, strlen(p->extra[i].json)));
        extra[m->d->nextra++] = (tn_wia_extra){ .path = "properties", .key = key, .json = json };
    }
}

static void describe_meta(builder *m)
{
    enum { OWN = 2 };           /* TN_RAW_OWN and the scheme */
    tn_buf text = { 0 };
    tn_meta_put_json(&text, m->s->meta, m->s->nmeta);
    m->d->metadata = keep_text(m, &text);
    text.size = 0;
    size_t others = m->s->properties ? m->s->properties->nextra : 0;
    tn_wia_extra *extra = keep(m, tn_arena_zalloc(m->arena, OWN + others, sizeof *extra));
    tn_buf_putc(&text, '{');
    put_own(m, &text);
    tn_buf_putc(&text, '}');
    if (extra && (text.bad || text.size > 2))
        extra[m->d->nextra++] = (tn_wia_extra){ .path = "", .key = TN_RAW_OWN, .json = keep_text(m, &text) };
    if (extra && m->s->places)
        extra[m->d->nextra++] = tn_raw_scheme();
    if (extra)
        put_other_properties(m, extra);
    m->d->extra = extra;
    tn_buf_free(&text);
}

/* --- the descriptor --- */

tn_status tn_raw_describe(const tn_raw_subject *s, tn_arena *arena, tn_descriptor *d, tn_error *err)
{
    const tn_tensor *t = s->tensor;
    const tn_array *first = &t->parts[0].array;
    tn_dtype type = first->dtype;
    bool sparse = tn_form_is_sparse(t->form);
    builder m = { .s = s, .arena = arena, .d = d, .rank = first->rank, .shape = first->shape };
    if (sparse) {
        m.rank = t->rank;
        m.shape = t->shape;
    }
    *d = (tn_descriptor){ .version = TN_WIA_VERSION, .name = tn_arena_text(arena, t->name, strlen(t->name)),
                          .dtype = type, .base_type = tn_wia_type_name(type, arena),
                          .byte_order = TN_HOST_ORDER };
    m.nomem |= !d->base_type || !d->name;
    describe_shape(&m);
    TN_TRY(sparse ? tn_raw_describe_sparse(s, arena, &d->sparse, err) : TN_OK);
    if (!d->sparse.format)
        describe_memory(&m);
    if (s->scale)
        describe_scaling(&m);
    describe_properties(&m);
    describe_meta(&m);
    return m.nomem ? tn_fail_nomem(err) : tn_descriptor_identify(d, s->content, arena, err);
}
