/* tests/support/subject.h - tensors of every form for the tests of conversions, and the slow way to make
 * them. */
#ifndef TN_TESTS_SUBJECT_H
#define TN_TESTS_SUBJECT_H

#include "support.h"

#include <stdbool.h>

#include "random.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "store/forms.h"

#include <tenon/sparse.h>

static const tn_dtype index_types[] = { TN_INT32, TN_INT64, TN_UINT32, TN_UINT64 };

/* Types that a sparse tensor may have. */
static inline bool is_whole(tn_dtype dtype)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    return type && type->bits >= 8 && dtype != TN_FLOAT8_E8M0;
}

static inline size_t width_of(tn_dtype dtype) { return tn_dtype_get(dtype)->bits / 8u; }

/* --- tensors to begin with ---------------------------------------------------- */

/* A tensor with all it needs, on exact blocks of the heap. */
typedef struct subject {
    tn_tensor t;
    tn_part   parts[3];
    int64_t   shape[TN_MAX_RANK], shapes[3][2];
    uint8_t  *data[3];
} subject;

static inline void drop_subject(subject *s)
{
    for (int i = 0; i < 3; i++)
        free(s->data[i]);
    free(s);
}

static inline subject *new_subject(tn_form form, tn_dtype dtype, uint32_t rank, const int64_t *shape)
{
    subject *s = calloc(1, sizeof *s);
    assert_non_null(s);
    if (rank)
        memcpy(s->shape, shape, rank * sizeof *shape);
    s->t = (tn_tensor){ .name = "t", .form = form, .dtype = dtype, .rank = rank, .shape = s->shape,
                        .parts = s->parts };
    return s;
}

static inline void add_part(subject *s, tn_dtype dtype, uint32_t rank, const int64_t *shape, const void *data)
{
    uint32_t i = s->t.nparts++;
    tn_part *p = &s->parts[i];
    p->role = tn_form_get(s->t.form)->roles[i];
    p->array = (tn_array){ .dtype = dtype, .rank = rank, .shape = s->shapes[i] };
    if (i == 0 && s->t.form == TN_FORM_DENSE)
        p->array.shape = s->shape;
    else if (rank)
        memcpy(s->shapes[i], shape, rank * sizeof *shape);
    CHECK(tn_array_nbytes(&p->array, &p->nbytes) == TN_OK);
    s->data[i] = exact_copy(data, (size_t)p->nbytes);
    p->data = s->data[i];
}

static inline subject *new_dense(tn_dtype dtype, uint32_t rank, const int64_t *shape, const void *data)
{
    subject *s = new_subject(TN_FORM_DENSE, dtype, rank, shape);
    add_part(s, dtype, rank, shape, data);
    return s;
}

static inline void *narrowed(const uint64_t *numbers, size_t n, tn_dtype index)
{
    uint8_t *out = malloc(n * 8 + 1);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++)
        tn_code_put(out, i, tn_dtype_get(index)->bits, numbers[i]);
    return out;
}

/* `indices`: n rows of as many as there are dimensions. */
static inline subject *new_coo(tn_dtype dtype, uint32_t rank, const int64_t *shape, tn_dtype index, size_t n,
                               const void *values, const uint64_t *indices)
{
    subject *s = new_subject(TN_FORM_COO, dtype, rank, shape);
    void *rows = narrowed(indices, n * rank, index);
    add_part(s, dtype, 1, (int64_t[]){ (int64_t)n }, values);
    add_part(s, index, 2, (int64_t[]){ (int64_t)n, rank }, rows);
    free(rows);
    return s;
}

static inline subject *new_csr(tn_dtype dtype, uint32_t rank, const int64_t *shape, tn_dtype index, size_t n,
                               const void *values, const uint64_t *indices, const uint64_t *indptr)
{
    subject *s = new_subject(TN_FORM_CSR, dtype, rank, shape);
    int64_t pointers = shape[0] * (rank == 3 ? shape[1] : 1) + 1;
    void *columns = narrowed(indices, n, index), *ends = narrowed(indptr, (size_t)pointers, index);
    add_part(s, dtype, 1, (int64_t[]){ (int64_t)n }, values);
    add_part(s, index, 1, (int64_t[]){ (int64_t)n }, columns);
    add_part(s, index, 1, &pointers, ends);
    free(columns);
    free(ends);
    return s;
}

/* --- the slow way ------------------------------------------------------------------ */

static inline bool is_zero(const uint8_t *element, size_t width)
{
    for (size_t i = 0; i < width; i++)
        if (element[i])
            return false;
    return true;
}

/* The elements that `keep` keeps. */
static inline subject *slow_sparse(tn_form form, tn_dtype dtype, uint32_t rank, const int64_t *shape,
                                   tn_dtype index, const uint8_t *elements, const bool *keep)
{
    uint64_t count, all = 0, n = 0;
    size_t width = width_of(dtype);
    CHECK(tn_shape_count(rank, shape, &count) == TN_OK);
    for (uint64_t i = 0; i < count; i++)
        all += keep[i];
    bool csr = form == TN_FORM_CSR;
    uint64_t columns = rank ? (uint64_t)shape[rank - 1] : 1, rows = 1;
    for (uint32_t d = 0; d + 1 < rank; d++)
        rows *= (uint64_t)shape[d];
    uint8_t *values = malloc(all * width + 1);
    uint64_t *indices = malloc((all * (rank + 1) + 1) * sizeof *indices),
             *indptr = calloc(rows + 1, sizeof *indptr);
    assert_non_null(values);
    assert_non_null(indices);
    assert_non_null(indptr);
    for (uint64_t i = 0; i < count; i++) {
        if (!keep[i])
            continue;
        memcpy(values + n * width, elements + i * width, width);
        uint64_t rest = i;
        for (uint32_t d = rank; d-- > 0 && !csr; rest /= (uint64_t)shape[d])
            indices[n * rank + d] = rest % (uint64_t)shape[d];
        if (csr) {
            indices[n] = i % columns;
            indptr[i / columns + 1]++;
        }
        n++;
    }
    for (uint64_t i = 0; i < rows; i++)
        indptr[i + 1] += indptr[i];
    subject *s = csr ? new_csr(dtype, rank, shape, index, n, values, indices, indptr)
                     : new_coo(dtype, rank, shape, index, n, values, indices);
    free(values);
    free(indices);
    free(indptr);
    return s;
}

static inline bool same_array(const tn_array *a, const tn_array *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && !a->stride &&
           (!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* Form, type, shape and every byte of every part. */
static inline bool same_tensor(const tn_tensor *a, const tn_tensor *b)
{
    if (a->form != b->form || a->dtype != b->dtype || a->rank != b->rank || a->nparts != b->nparts ||
        (a->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape)))
        return false;
    for (uint32_t i = 0; i < a->nparts; i++) {
        const tn_part *p = &a->parts[i], *q = &b->parts[i];
        if (strcmp(p->role, q->role) || !same_array(&p->array, &q->array) || p->nbytes != q->nbytes ||
            (uintptr_t)p->data % 64 || (p->nbytes && memcmp(p->data, q->data, (size_t)p->nbytes)))
            return false;
    }
    return true;
}

/* --- converting and checking --------------------------------------------------------- */

static inline tn_tensor *reform(const tn_tensor *t, tn_form form, const tn_sparse_options *o)
{
    tn_tensor *result = NULL;
    tn_error err = { 0 };
    tn_status status = tn_convert_form(t, form, o, &result, &err);
    if (status != TN_OK)
        print_error("%s\n", line_of(&err));
    CHECK(status == TN_OK && result);
    CHECK(tn_form_check(result, NULL, &err) == TN_OK);
    return result;
}

/* Fails so, with a text that has these words in it. */
static inline void refused(const tn_tensor *t, tn_form form, const tn_sparse_options *o, tn_status want,
                           const char *words)
{
    tn_tensor *result = NULL;
    tn_error err = { 0 };
    tn_status status = tn_convert_form(t, form, o, &result, &err);
    if (status != want || !strstr(line_of(&err), words))
        print_error("expected %d (%s) but found %d: %s\n", (int)want, words, (int)status, line_of(&err));
    CHECK(status == want && err.status == want && strstr(line_of(&err), words) && !result);
    CHECK(tn_convert_form(t, form, o, &result, NULL) == want);
}

/* Zeros mostly, else any bits. */
static inline uint8_t *random_elements(tn_dtype dtype, uint64_t count, unsigned percent)
{
    size_t width = width_of(dtype);
    uint8_t *data = calloc(count * width + 1, 1);
    assert_non_null(data);
    for (uint64_t i = 0; i < count; i++)
        for (size_t b = 0; bits64() % 100 < percent && b < width; b++)
            data[i * width + b] = (uint8_t)(bits64() >> 7);
    return data;
}

static inline bool *nonzeros(tn_dtype dtype, uint64_t count, const uint8_t *elements)
{
    bool *keep = calloc(count + 1, sizeof *keep);
    assert_non_null(keep);
    for (uint64_t i = 0; i < count; i++)
        keep[i] = !is_zero(elements + i * width_of(dtype), width_of(dtype));
    return keep;
}

#endif
