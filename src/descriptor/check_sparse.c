/* descriptor/check_sparse.c - COO and CSR data in the document. */
#include "descriptor/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- both formats ---- */

static const char *type_name(tn_dtype dtype)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    return type ? tn_type_label(type) : "none";
}

/* COO has an object for the values, CSR a plain array. */
static const char *values_path(const tn_wia_sparse *s)
{
    return strcmp(s->format, "COO") == 0 ? "values.data" : "values";
}

static void check_values(tn_checker *c, size_t nnz)
{
    const tn_wia_sparse *s = &c->d->sparse;
    if (!s->values)
        tn_error_at(c, values_path(s), "expected an array but found none");
    else if (s->indices && s->nvalues != nnz)
        tn_error_at(c, values_path(s), "expected %zu values but found %zu", nnz, s->nvalues);
    if (c->d->base_type && s->value_type != c->d->dtype)
        tn_error_at(c, "values.dtype", "expected %s, the base_type, but found %s", type_name(c->d->dtype),
                    type_name(s->value_type));
}

/* An index outside its dimension, or too large for the type of the indices. */
static bool is_outside(const tn_wia_sparse *s, int64_t index, uint32_t dimension, int64_t *end)
{
    *end = s->shape[dimension];
    if (s->index_type == TN_INT32 && *end > (int64_t)INT32_MAX + 1)
        *end = (int64_t)INT32_MAX + 1;
    return index < 0 || index >= *end;
}

/* ---- places that are there twice ---- */

typedef struct row {
    const int64_t *indices;
    size_t         place;       /* in the document */
    uint32_t       rank;
} row;

/* Compares rows of COO indices, or single columns; equal ones by their place in the document. */
static int by_indices(const void *a, const void *b)
{
    const row *x = a, *y = b;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->indices[i] != y->indices[i])
            return x->indices[i] < y->indices[i] ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static bool same_indices(const row *x, const row *y)
{
    return memcmp(x->indices, y->indices, x->rank * sizeof *x->indices) == 0;
}

/* The same place twice is allowed (values add up), but rarely intended. Sorts the rows. */
static void report_twice(tn_checker *c, const char *list, row *rows, size_t n)
{
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_indices);
    for (size_t i = 1; i < n; i++)
        if (same_indices(&rows[i - 1], &rows[i]))
            tn_remark_at(c, tn_item_path(list, rows[i].place).text, "the same place as %s",
                         tn_item_path(list, rows[i - 1].place).text);
}

/* ---- COO ---- */

static void check_coo_row(tn_checker *c, size_t place)
{
    const tn_wia_sparse *s = &c->d->sparse;
    const int64_t *indices = s->indices + place * s->rank;
    int64_t end;
    for (uint32_t i = 0; i < s->rank; i++)
        if (is_outside(s, indices[i], i, &end))
            tn_error_at(c, tn_item_path(tn_item_path("indices.data", place).text, i).text,
                        "expected an index in [0, %" PRId64 ") but found %" PRId64, end, indices[i]);
}

/* One row of indices and one value per element. */
static void check_coo_counts(tn_checker *c, size_t n)
{
    const tn_wia_sparse *s = &c->d->sparse;
    if (s->rank == 0)
        tn_error_at(c, "shape", "expected at least one dimension for COO but found none");
    if (!s->has_nnz)
        tn_error_at(c, "nnz", "expected a number but found none");
    else if (s->indices && (s->nnz < 0 || (uint64_t)s->nnz != n))
        tn_error_at(c, "nnz", "expected %zu, the rows of indices, but found %" PRId64, n, s->nnz);
    if (!s->indices)
        tn_error_at(c, "indices.data", "expected an array but found none");
    if (s->nindices != n * s->rank)
        tn_error_at(c, "indices.data", "expected rows of %u indices but found %zu", s->rank, s->nindices);
    check_values(c, n);
}

static tn_status check_coo(tn_checker *c, tn_error *err)
{
    const tn_wia_sparse *s = &c->d->sparse;
    size_t n = s->rank ? s->nindices / s->rank : 0;
    check_coo_counts(c, n);
    for (size_t i = 0; i < n; i++)
        check_coo_row(c, i);
    row *rows = calloc(n + 1, sizeof *rows);
    TN_NEED(rows, err);
    for (size_t i = 0; i < n; i++)
        rows[i] = (row){ s->indices + i * s->rank, i, s->rank };
    report_twice(c, "indices.data", rows, n);
    free(rows);
    return TN_OK;
}

/* ---- CSR ---- */

/* One more pointer than rows, from 0 up to the number of values; true: the rows can be read. */
static bool check_pointers(tn_checker *c)
{
    const tn_wia_sparse *s = &c->d->sparse;
    size_t before = c->wrong;
    if (!s->pointers || s->npointers == 0) {
        tn_error_at(c, "row_pointers", "expected an array that begins with 0 but found none");
        return false;
    }
    if (s->rank == 2 && s->npointers - 1 != (uint64_t)s->shape[0])
        tn_error_at(c, "row_pointers", "expected %s numbers for %" PRId64 " rows but found %zu",
                    tn_wide_phrase((tn_wide)s->shape[0] + 1).text, s->shape[0], s->npointers);
    if (s->pointers[0] != 0)
        tn_error_at(c, "row_pointers[0]", "expected 0 but found %" PRId64, s->pointers[0]);
    for (size_t i = 1; i < s->npointers; i++)
        if (s->pointers[i] < s->pointers[i - 1])
            tn_error_at(c, tn_item_path("row_pointers", i).text,
                        "expected at least the %" PRId64 " before it but found %" PRId64, s->pointers[i - 1],
                        s->pointers[i]);
    int64_t last = s->pointers[s->npointers - 1];
    if (s->indices && (last < 0 || (uint64_t)last != s->nindices))
        tn_error_at(c, tn_item_path("row_pointers", s->npointers - 1).text,
                    "expected %zu, the number of column_indices, but found %" PRId64, s->nindices, last);
    return c->wrong == before;
}

static void check_columns(tn_checker *c)
{
    const tn_wia_sparse *s = &c->d->sparse;
    int64_t end;
    if (!s->indices)
        tn_error_at(c, "column_indices", "expected an array but found none");
    for (size_t i = 0; i < s->nindices && s->rank == 2; i++)
        if (is_outside(s, s->indices[i], 1, &end))
            tn_error_at(c, tn_item_path("column_indices", i).text,
                        "expected a column in [0, %" PRId64 ") but found %" PRId64, end, s->indices[i]);
}

/* A column twice in one row. */
static tn_status check_csr_rows(tn_checker *c, tn_error *err)
{
    const tn_wia_sparse *s = &c->d->sparse;
    row *columns = calloc(s->nindices + 1, sizeof *columns);
    TN_NEED(columns, err);
    for (size_t i = 0; i < s->nindices; i++)
        columns[i] = (row){ s->indices + i, i, 1 };
    for (size_t i = 1; i < s->npointers; i++)
        report_twice(c, "column_indices", columns + s->pointers[i - 1],
                     (size_t)(s->pointers[i] - s->pointers[i - 1]));
    free(columns);
    return TN_OK;
}

static tn_status check_csr(tn_checker *c, tn_error *err)
{
    const tn_wia_sparse *s = &c->d->sparse;
    if (s->rank != 2)
        tn_error_at(c, "shape", "expected two dimensions for CSR but found %u", s->rank);
    if (s->has_nnz && s->indices && (s->nnz < 0 || (uint64_t)s->nnz != s->nindices))
        tn_error_at(c, "nnz", "expected %zu, the number of column_indices, but found %" PRId64, s->nindices,
                    s->nnz);
    bool walkable = check_pointers(c);
    check_columns(c);
    check_values(c, s->nindices);
    return walkable && s->indices ? check_csr_rows(c, err) : TN_OK;
}

tn_status tn_check_sparse(tn_checker *c, tn_error *err)
{
    const char *format = c->d->sparse.format;
    if (!format)
        return TN_OK;
    if (strcmp(format, "COO") == 0)
        return check_coo(c, err);
    if (strcmp(format, "CSR") == 0)
        return check_csr(c, err);
    tn_error_at(c, "format", "expected COO or CSR but found %s", tn_quote_z(format).text);
    return TN_OK;
}
