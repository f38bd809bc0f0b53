/* tests/support/scaled_tensor.h - a tensor of a datatype in memory, with the
 * values it stands for.  Include it after support.h. */
#ifndef TN_TESTS_SCALED_TENSOR_H
#define TN_TESTS_SCALED_TENSOR_H

#include <stdbool.h>

#include <tenon/tenon.h>

#include "datatype.h"

typedef struct scaled_tensor {
    tn_tensor    tensor;        /* "t" */
    tn_scaling   scaling;
    tn_part      parts[7];
    tn_scaled_shapes shapes;
    uint8_t     *bytes[7];      /* of the parts, each in a block of exactly its size */
    tn_datatype *datatype;
    tn_quantize_options options;
    tn_quantize_stats  report;
    uint64_t     count;
    float       *source;        /* what was quantized */
    uint8_t     *expected;      /* tn_dequantize() */
    size_t       size;          /* bytes of it */
} scaled_tensor;

/* Numbers of many magnitudes, zeros of both signs among them. */
static inline float scaled_source(uint64_t i)
{
    uint32_t state = (uint32_t)i * 2654435769u ^ (uint32_t)(i >> 7) * 40503u;
    state ^= state >> 15;
    state *= 2246822519u;
    state ^= state >> 13;
    float x = (float)(int32_t)state * 0x1p-31f;
    return state % 17 == 0   ? 0.0f
           : state % 19 == 0 ? -0.0f
           : state % 5 == 0  ? x * 40
           : state % 7 == 0  ? x * 0x1p-9f
                             : x * x * x;
}

static inline void expect_scaled(scaled_tensor *s)
{
    const tn_array array = { s->tensor.dtype, s->tensor.rank, s->tensor.shape, NULL };
    const void *parts[7];
    tn_error err = { .text = "" };
    for (uint32_t k = 0; k < s->shapes.count; k++)
        parts[k] = s->bytes[k];
    if (tn_dequantize(s->datatype, &array, parts, s->expected, &s->options, &err))
        fail_msg("%s: %s", s->scaling.datatype, line_of(&err));
}

static inline void make_scaled_part(scaled_tensor *s, uint32_t k)
{
    const tn_scaled_part *p = &s->shapes.parts[k];
    bool plain = s->options.unpacked && k == 0;
    tn_part *part = &s->parts[k];
    *part = (tn_part){ .role = p->role, .array = { .dtype = plain ? p->plain_dtype : p->dtype,
                                                   .rank = p->rank,
                                                   .shape = plain ? p->plain_shape : p->shape } };
    assert_int_equal(tn_array_nbytes(&part->array, &part->nbytes), TN_OK);
    part->data = s->bytes[k] = malloc(part->nbytes ? (size_t)part->nbytes : 1);
    assert_non_null(part->data);
}

/* `shape` must live on, and so must `s` where it is. */
static inline void make_scaled(scaled_tensor *s, const char *datatype, tn_dtype dtype, uint32_t rank,
                               const int64_t *shape, tn_quantize_options options)
{
    tn_error err = { .text = "" };
    *s = (scaled_tensor){ .options = options };
    s->options.size = sizeof s->options;
    s->datatype = datatype_of(datatype);
    s->scaling = (tn_scaling){ .datatype = tn_datatype_text(s->datatype), .unpacked = options.unpacked,
                               .rotation = options.rotation };
    s->tensor = (tn_tensor){ .name = "t", .form = TN_FORM_SCALED, .dtype = dtype, .rank = rank,
                             .shape = shape,
                             .parts = s->parts,
                             .scaling = &s->scaling };
    if (tn_scaled_shapes_for(s->datatype, rank, shape, &s->shapes, &err) ||
        tn_shape_count(rank, shape, &s->count))
        fail_msg("%s: %s", datatype, line_of(&err));
    s->tensor.nparts = s->shapes.count;
    for (uint32_t k = 0; k < s->shapes.count; k++)
        make_scaled_part(s, k);
    s->source = malloc((size_t)s->count * sizeof *s->source + 1);
    s->size = (size_t)s->count * tn_dtype_get(dtype)->bits / 8;
    s->expected = malloc(s->size + 1);
    assert_true(s->source && s->expected);
    for (uint64_t i = 0; i < s->count; i++)
        s->source[i] = scaled_source(i);
    if (tn_quantize(s->datatype, &(tn_array){ TN_FLOAT32, rank, shape, NULL }, s->source,
                           (void *const *)s->bytes, &s->options,
                           &s->report, &err))
        fail_msg("%s: %s", datatype, line_of(&err));
    expect_scaled(s);
}

static inline void free_scaled(scaled_tensor *s)
{
    for (uint32_t k = 0; k < s->shapes.count; k++)
        free(s->bytes[k]);
    tn_datatype_free(s->datatype);
    free(s->source);
    free(s->expected);
}

#endif
