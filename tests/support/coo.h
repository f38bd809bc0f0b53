/* tests/support/coo.h - a small tensor of form coo in a file.  Include it after make.h. */
#ifndef TN_TESTS_COO_H
#define TN_TESTS_COO_H

/* Writes NAME with one tensor "t" of rank 2: n values of `dtype` and their int64 indices. */
static inline void write_entries(const char *name, tn_dtype dtype, const int64_t *shape, const void *values,
                                 const int64_t *indices, int64_t n)
{
    const int64_t many[] = { n }, rows[] = { n, 2 };
    const tn_part parts[] = {
        { .role = "values", .array = { dtype, 1, many, NULL }, .data = values },
        { .role = "indices", .array = { TN_INT64, 2, rows, NULL }, .data = indices },
    };
    const tn_tensor t = { .name = "t", .form = TN_FORM_COO, .dtype = dtype, .rank = 2, .shape = shape,
                          .parts = parts, .nparts = 2 };
    CHECK(try_write_tensor(name, (tn_create_options){ 0 }, &t, NULL) == TN_OK);
}

#endif
