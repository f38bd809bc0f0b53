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

static const tn_tensor *find(const tn_file *file, const char *name, const char *end, tn_arena *arena)
{
    size_t size = strlen(name) + strlen(end) + 1;
    char *whole = tn_arena_alloc(arena, size);
    if (!whole)
        return NULL;
    snprintf(whole, size, "%s%s", name, end);
    return tn_file_find(file, whole);
}

static tn_status read_floats(const tn_file *file, const tn_tensor *t, tn_arena *arena, float **values,
                             tn_error *err)
{
    uint64_t nbytes = t->parts[0].nbytes;
    if (t->form != TN_FORM_DENSE || t->dtype != TN_FLOAT32)
        return tn_fail(err, TN_ERR_CORRUPT, "expected float32 numbers in %s", tn_quote_z(t->name).text);
    *values = tn_arena_alloc(arena, (size_t)nbytes);
    return *values ? tn_read(file, t, TN_FLOAT32, *values, (size_t)nbytes, err) : tn_fail_nomem(err);
}

static tn_status check(const char *name, const float *values, uint64_t n, tn_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        if (!(values[i] >= 0) || !isfinite(values[i]))
            return tn_fail(err, TN_ERR_CORRUPT,
                           "the importance of column %llu of %s is %g: expected a finite number that is not "
                           "negative", (unsigned long long)i, tn_quote_z(name).text,
                           (double)values[i]);
    return TN_OK;
}

tn_status tn_importance_read(const tn_file *file, const char *name, tn_arena *arena, const float **values,
                             uint64_t *count, tn_error *err)
{
    const tn_tensor *sums = find(file, name, SUMS, arena), *counts = find(file, name, COUNTS, arena);
    float *mean = NULL, *counted = NULL;
    *count = 0;
    *values = NULL;
    if (!sums)
        return TN_OK;
    uint64_t n = sums->parts[0].nbytes / sizeof(float),
             matrices = counts ? counts->parts[0].nbytes / sizeof(float) : 0;
    uint64_t columns = sums->rank ? (uint64_t)sums->shape[sums->rank - 1] : 1;
    if (!matrices || n % matrices || n / matrices != columns)
        return tn_fail(err, TN_ERR_CORRUPT,
                       "the importance of %s has %llu sums of %llu columns for %llu counts",
                       tn_quote_z(name).text, (unsigned long long)n, (unsigned long long)columns,
                       (unsigned long long)matrices);
    TN_TRY(read_floats(file, sums, arena, &mean, err));
    TN_TRY(read_floats(file, counts, arena, &counted, err));
    for (uint64_t i = 0; i < matrices; i++)
        if (!(counted[i] >= 0))
            return tn_fail(err, TN_ERR_CORRUPT,
                           "count %llu of the importance of %s is %g: expected 0 or more",
                           (unsigned long long)i, tn_quote_z(name).text, (double)counted[i]);
    for (uint64_t i = 0; i < n; i++) {
        float divisor = counted[i / (n / matrices)];
        mean[i] = divisor > 0 ? mean[i] / divisor : 1;
    }
    *values = mean;
    *count = n;
    return check(name, mean, n, err);
}
