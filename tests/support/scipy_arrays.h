/* tests/support/scipy_arrays.h - matrices of SciPy written by hand.  Include it after support.h and files.h. */
#ifndef TN_TESTS_SCIPY_ARRAYS_H
#define TN_TESTS_SCIPY_ARRAYS_H

#include "npz_bytes.h"

#include <stdio.h>

/* The bytes of all parts after one another. */
static tn_buf all_parts(const tn_file *f, const tn_tensor *t)
{
    tn_buf b = { 0 };
    for (uint32_t k = 0; k < t->nparts; k++) {
        size_t n = (size_t)t->parts[k].nbytes;
        uint8_t *bytes = malloc(n ? n : 1);
        CHECK(bytes && tn_part_read(f, &t->parts[k], bytes, n, NULL) == TN_OK);
        tn_buf_put(&b, bytes, n);
        free(bytes);
    }
    return b;
}

static void count_good(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                       const tn_error *why)
{
    (void)tensor, (void)part, (void)why;
    *(size_t *)context += verdict <= TN_VERDICT_NONE;
}

static size_t good_parts(const tn_file *f)
{
    size_t good = 0;
    tn_verify_options options = { .size = sizeof options, .jobs = 2, .context = &good };
    CHECK(tn_verify(f, &options, count_good, NULL) == TN_OK);
    return good;
}

typedef struct array {
    const char *name, *type, *shape;
    const void *data;
    size_t      n;
    bool        fortran, meta;
} array;

enum { CSR_ARRAYS = 5 };

static archive make_archive(const array *arrays, size_t n, unsigned method)
{
    archive a = { .count = 0 };
    for (size_t i = 0; i < n; i++) {
        char header[160], name[80];
        if (!arrays[i].name)
            continue;
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }%s",
                 arrays[i].type, arrays[i].fortran ? "True" : "False", arrays[i].shape,
                 arrays[i].meta ? " # tenon {\"meta\":{\"k\":\"v\"}}" : "");
        snprintf(name, sizeof name, "%s" TN_NPY_SUFFIX, arrays[i].name);
        add_array(&a, name, method, header, arrays[i].data, arrays[i].n);
    }
    end_archive(&a);
    return a;
}

static tn_status open_archive(archive *a, const char *format, tn_file **f, tn_error *err)
{
    tn_open_options options = { .size = sizeof options, .format = format };
    tn_status status = tn_open_memory(a->bytes.data, a->bytes.size, &options, f, err);
    if (!status)
        walk_file(*f);
    CHECK(!status || tn_open_memory(a->bytes.data, a->bytes.size, &options, f, NULL) == status);
    return status;
}

/* `of` with one array replaced: by the name of `instead`, or left out when that has no type. */
static archive change(const array *of, array instead, unsigned method)
{
    array own[CSR_ARRAYS + 1];
    bool found = false;
    memcpy(own, of, CSR_ARRAYS * sizeof *own);
    own[CSR_ARRAYS] = instead;
    for (size_t i = 0; i < CSR_ARRAYS; i++) {
        if (strcmp(own[i].name, instead.name) != 0)
            continue;
        own[i] = instead.type ? instead : (array){ .name = NULL };
        found = true;
    }
    return make_archive(own, found ? CSR_ARRAYS : CSR_ARRAYS + 1, method);
}

#endif
