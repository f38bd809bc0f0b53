/* tests/support/datatype_tensor.h - tensors of a datatype, generated from random
 * values, and the same ones found in a file.  Include it after support.h. */
#ifndef TN_TESTS_DATATYPE_TENSOR_H
#define TN_TESTS_DATATYPE_TENSOR_H

#include <tenon/tenon.h>

#include "datatype.h"

typedef struct scaled_tensor {
    tn_tensor        t;
    tn_scaling       scaling;
    tn_datatype     *datatype;
    tn_scaled_shapes shapes;
    tn_part          parts[7];
    uint8_t         *data[7];
    int64_t          shape[TN_MAX_RANK];
} scaled_tensor;

/* Values of a few magnitudes, some of them 0. */
static inline float *random_values(uint64_t count, uint32_t seed)
{
    float *x = malloc(count ? count * sizeof *x : 1);
    assert_non_null(x);
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int32_t)(seed >> 8) - (1 << 23)) / (float)(1u << (10 + seed % 13));
        if (seed >> 28 == 0)
            x[i] = 0;
    }
    return x;
}

/* The array that part k is stored as. */
static inline tn_array scaled_array(const scaled_tensor *s, uint32_t k)
{
    const tn_scaled_part *p = &s->shapes.parts[k];
    bool plain = k == 0 && s->scaling.unpacked;
    return (tn_array){ .dtype = plain ? p->plain_dtype : p->dtype, .rank = p->rank,
                       .shape = plain ? p->plain_shape : p->shape };
}

static inline void quantize_scaled(scaled_tensor *s, uint32_t seed)
{
    uint64_t count;
    tn_error err = { .text = "" };
    const tn_array array = { .dtype = TN_FLOAT32, .rank = s->t.rank, .shape = s->shape };
    const tn_quantize_options options = { .size = sizeof options, .unpacked = s->scaling.unpacked,
                                        .nan = TN_NAN_ZERO, .jobs = 1,
                                        .rotation = s->scaling.rotation };
    CHECK(tn_shape_count(s->t.rank, s->shape, &count) == TN_OK);
    float *x = random_values(count, seed);
    if (tn_quantize(s->datatype, &array, x, (void *const *)s->data, &options, NULL, &err))
        fail_msg("%s: %s", tn_datatype_text(s->datatype), line_of(&err));
    free(x);
}

/* A tensor of float values called `name`; takes over the datatype. */
static inline scaled_tensor *scaled_of(const char *name, tn_datatype *d, uint32_t rank, const int64_t *shape,
                                       bool unpacked, const char *rotation)
{
    scaled_tensor *s = calloc(1, sizeof *s);
    tn_error err = { .text = "" };
    assert_non_null(s);
    if (rank)
        memcpy(s->shape, shape, rank * sizeof *shape);
    s->datatype = d;
    s->scaling = (tn_scaling){ .axis = -1, .datatype = tn_datatype_text(d), .unpacked = unpacked };
    CHECK(tn_rotation_parse(rotation ? rotation : "none", &s->scaling.rotation, NULL) == TN_OK);
    if (tn_scaled_shapes_for(d, rank, shape, &s->shapes, &err))
        fail_msg("%s: %s", tn_datatype_text(d), line_of(&err));
    s->t = (tn_tensor){ .name = name, .form = TN_FORM_SCALED, .dtype = TN_FLOAT32, .rank = rank,
                        .shape = s->shape,
                        .parts = s->parts,
                        .nparts = s->shapes.count, .scaling = &s->scaling };
    for (uint32_t k = 0; k < s->shapes.count; k++) {
        tn_part *p = &s->parts[k];
        p->role = s->shapes.parts[k].role;
        p->array = scaled_array(s, k);
        CHECK(tn_array_nbytes(&p->array, &p->nbytes) == TN_OK);
        p->data = s->data[k] = calloc(1, p->nbytes ? p->nbytes : 1);
        assert_non_null(s->data[k]);
    }
    quantize_scaled(s, (uint32_t)strlen(name) * 7919 + rank);
    return s;
}

static inline void scaled_free(scaled_tensor *s)
{
    for (uint32_t k = 0; k < s->shapes.count; k++)
        free(s->data[k]);
    tn_datatype_free(s->datatype);
    free(s);
}

/* All of a tensor that was read is what was written. */
static inline void check_scaled_tensor(const tn_file *f, const scaled_tensor *s)
{
    const tn_tensor *t = tn_file_find(f, s->t.name);
    if (!t)
        fail_msg("%s is not there", s->t.name);
    CHECK(!t->layout == !s->t.layout && (!t->layout || strcmp(t->layout, s->t.layout) == 0));
    CHECK(t->form == TN_FORM_SCALED && t->dtype == s->t.dtype && t->rank == s->t.rank &&
          t->nparts == s->t.nparts);
    CHECK(t->rank == 0 || memcmp(t->shape, s->shape, t->rank * sizeof *t->shape) == 0);
    assert_non_null(t->scaling);
    assert_string_equal(t->scaling->datatype, tn_datatype_text(s->datatype));
    CHECK(t->scaling->unpacked == s->scaling.unpacked && t->scaling->axis == -1);
    const tn_rotation *a = &t->scaling->rotation, *b = &s->scaling.rotation;
    CHECK(a->size == b->size && a->walsh == b->walsh && a->random == b->random && a->seed == b->seed);
    for (uint32_t k = 0; k < t->nparts; k++) {
        const tn_part *p = &t->parts[k];
        uint8_t *bytes = malloc(p->nbytes ? p->nbytes : 1);
        assert_non_null(bytes);
        CHECK(strcmp(p->role, s->parts[k].role) == 0 && p->array.dtype == s->parts[k].array.dtype &&
              p->nbytes == s->parts[k].nbytes);
        CHECK(tn_part_read(f, p, bytes, p->nbytes, NULL) == TN_OK);
        if (p->nbytes)
            assert_memory_equal(bytes, s->data[k], p->nbytes);
        free(bytes);
    }
}

#endif
