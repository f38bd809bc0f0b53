/* pipeline/importance.c - how much each column of a weight counts. */
#include "pipeline/importance.h"
#include "base/error.h"

#include <tenon/view.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SUMS ".in_sum2"
#define COUNTS ".counts"

static tn_status open_path(const char *path, tn_file **file, tn_error *err)
{
    size_t i = 0;
    TN_TRY(tn_open(path, NULL, file, err));
    while (i < tn_file_count(*file) && !tn_ends_with(tn_file_tensor(*file, i)->name, SUMS))
        i++;
    if (i < tn_file_count(*file))
        return TN_OK;
    tn_close(*file);
    *file = NULL;
    tn_status status = tn_fail(err, TN_ERR_ARGUMENT, "expected importance data, tensors named NAME" SUMS
                               " and NAME" COUNTS ", but found none");
    return tn_in_file(status, path, err);
}

tn_status tn_importance_open(tn_text path, tn_file **file, bool *none, tn_error *err)
{
    tn_arena arena = { 0 };
    *none = tn_text_is(path, "none");
    *file = NULL;
    if (!path.len || *none)
        return TN_OK;
    const char *own = tn_arena_text(&arena, path.ptr, path.len);
    tn_status status = own ? open_path(own, file, err) : tn_fail_nomem(err);
    tn_arena_free(&arena);
    return status;
}

/* *found is NULL if there is no such tensor. */
static tn_status find(const tn_file *file, const char *name, const char *end, tn_arena *arena,
                      const tn_tensor **found, tn_error *err)
{
    size_t size = strlen(name) + strlen(end) + 1;
    char *whole = tn_arena_alloc(arena, size);
    TN_NEED(whole, err);
    snprintf(whole, size, "%s%s", name, end);
    *found = tn_file_find(file, whole);
    return TN_OK;
}

/* The numbers of a tensor, in the arena. */
typedef struct numbers {
    float   *values;
    uint64_t n;
} numbers;

static tn_status read_numbers(const tn_file *file, const tn_tensor *t, tn_arena *arena, numbers *out,
                              tn_error *err)
{
    if (t->form != TN_FORM_DENSE || t->dtype != TN_FLOAT32)
        return tn_fail(err, TN_ERR_CORRUPT, "expected float32 numbers in %s", tn_quote_z(t->name).text);
    uint64_t nbytes = t->parts[0].nbytes;
    out->n = nbytes / sizeof(float);
    TN_NEED(out->values = tn_arena_alloc(arena, (size_t)nbytes), err);
    return tn_read(file, t, TN_FLOAT32, out->values, (size_t)nbytes, err);
}

static uint64_t columns_of(const tn_tensor *t)
{
    return t->rank ? (uint64_t)t->shape[t->rank - 1] : 1;
}

/* The product of all dimensions but the last two. */
static uint64_t matrices_of(const tn_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i + 2 < t->rank; i++)
        n *= (uint64_t)t->shape[i];
    return n;
}

/* Sums have a row for each count.  Each row is of all columns of a matrix, or of all matrices. */
static tn_status check_shape(const char *name, uint64_t n, uint64_t columns, uint64_t counts,
                             const tn_tensor *weight, tn_error *err)
{
    if (!counts || n % counts || n / counts != columns)
        return tn_fail(err, TN_ERR_CORRUPT,
                       "the importance of %s has %llu sums of %llu columns for %llu counts",
                       tn_quote_z(name).text, (unsigned long long)n, (unsigned long long)columns,
                       (unsigned long long)counts);
    uint64_t matrices = matrices_of(weight);
    if (columns != columns_of(weight) || (counts != 1 && counts != matrices))
        return tn_fail(err, TN_ERR_CORRUPT,
                       "expected importance data of %s for %llu columns of %llu matrices but found %llu "
                       "columns of %llu", tn_quote_z(name).text, (unsigned long long)columns_of(weight),
                       (unsigned long long)matrices, (unsigned long long)columns, (unsigned long long)counts);
    return TN_OK;
}

static tn_status check_counts(const char *name, const numbers *counts, tn_error *err)
{
    for (uint64_t i = 0; i < counts->n; i++)
        if (!(counts->values[i] >= 0))
            return tn_fail(err, TN_ERR_CORRUPT,
                           "count %llu of the importance of %s is %g: expected 0 or more",
                           (unsigned long long)i, tn_quote_z(name).text, (double)counts->values[i]);
    return TN_OK;
}

static tn_status check_means(const char *name, const numbers *means, tn_error *err)
{
    for (uint64_t i = 0; i < means->n; i++)
        if (!(means->values[i] >= 0) || !isfinite(means->values[i]))
            return tn_fail(err, TN_ERR_CORRUPT,
                           "the importance of column %llu of %s is %g: expected a finite number that is not "
                           "negative", (unsigned long long)i, tn_quote_z(name).text,
                           (double)means->values[i]);
    return TN_OK;
}

tn_status tn_importance_read(const tn_file *file, const char *name, const tn_tensor *weight, tn_arena *arena,
                             tn_quantize_options *o, tn_error *err)
{
    const tn_tensor *of_sums, *of_counts;
    numbers means = { 0 }, counts = { 0 };
    TN_TRY(find(file, name, SUMS, arena, &of_sums, err));
    TN_TRY(find(file, name, COUNTS, arena, &of_counts, err));
    if (!of_sums)
        return TN_OK;
    TN_TRY(read_numbers(file, of_sums, arena, &means, err));
    if (of_counts)
        TN_TRY(read_numbers(file, of_counts, arena, &counts, err));
    TN_TRY(check_shape(name, means.n, columns_of(of_sums), counts.n, weight, err));
    TN_TRY(check_counts(name, &counts, err));
    for (uint64_t i = 0; i < means.n; i++) {
        float divisor = counts.values[i / columns_of(of_sums)];
        means.values[i] = divisor > 0 ? means.values[i] / divisor : 1;
    }
    o->importance = means.values;
    o->nimportance = means.n;
    return check_means(name, &means, err);
}
