/* tests/support/npz_samples.h - small archives, and what must hold of them.
 * Include it after support.h. */
#ifndef TN_TESTS_NPZ_SAMPLES_H
#define TN_TESTS_NPZ_SAMPLES_H

#include "files.h"
#include "make.h"
#include "npz_bytes.h"

static const uint8_t numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                   22, 23, 24, 25 };

#define BYTES_24 "{'descr': '|u1', 'fortran_order': False, 'shape': (24,), }\n"
enum { MEMBER = 10 + sizeof BYTES_24 - 1 + 24 };       /* bytes of a member of it */
#define WORDS_12 "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }\n"
#define COLUMNS  "{'descr': '>u2', 'fortran_order': True, 'shape': (3, 4), }\n"

static inline archive sample(void)
{
    archive a = { .count = 0 };
    add_array(&a, "stored.npy", TN_ZIP_STORED, WORDS_12, numbers, 24);
    add_array(&a, "deflated.npy", TN_ZIP_DEFLATED, WORDS_12, numbers, 24);
    add_array(&a, "columns.npy", TN_ZIP_STORED, COLUMNS, numbers, 24);
    add_array(&a, "deflated/columns.npy", TN_ZIP_DEFLATED, COLUMNS, numbers, 24);
    end_archive(&a);
    return a;
}

static inline tn_file *open_bytes(const tn_buf *b)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    if (tn_open_memory(b->data, b->size, NULL, &f, &err))
        fail_msg("%s", line_of(&err));
    assert_string_equal(tn_file_format(f), "npz");
    walk_file(f);
    return f;
}

/* And frees it. */
static inline void check_refused(archive *a, tn_status expected, const char *text)
{
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "npz" };
    tn_status status = tn_open_memory(a->bytes.data, a->bytes.size, &options, &f, &err);
    if (status != expected || !strstr(line_of(&err), text))
        fail_msg("expected %d \"%s\"\nfound    %d \"%s\"", (int)expected, text, (int)status, line_of(&err));
    CHECK(err.offset <= a->bytes.size);
    CHECK(tn_open_memory(a->bytes.data, a->bytes.size, &options, &f, NULL) == expected);
    tn_buf_free(&a->bytes);
}

static inline void check_data(const tn_file *f, const char *name, const void *expected, size_t n)
{
    const tn_tensor *t = tn_file_find(f, name);
    assert_non_null(t);
    CHECK(t->parts[0].nbytes == n);
    uint8_t *found = read_tensor(f, t);
    CHECK(memcmp(found, expected, n) == 0);
    free(found);
}

static inline void count_good(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                              const tn_error *why)
{
    (void)tensor, (void)part, (void)why;
    *(size_t *)context += verdict == TN_VERDICT_OK;
}

static inline size_t good_parts(const tn_file *f)
{
    size_t good = 0;
    tn_verify_options options = { .size = sizeof options, .jobs = 2, .context = &good };
    CHECK(tn_verify(f, &options, count_good, NULL) == TN_OK);
    return good;
}

/* A tensor that cannot be read, and the message. */
static inline void check_unreadable(const tn_file *f, const char *name, tn_status expected, const char *text)
{
    const tn_part *p = tn_file_find(f, name)->parts;
    tn_error err = { .text = "" };
    void *buffer = malloc(p->nbytes ? p->nbytes : 1);
    assert_non_null(buffer);
    CHECK(tn_part_read(f, p, buffer, p->nbytes, &err) == expected);
    if (!strstr(line_of(&err), text))
        fail_msg("expected \"%s\"\nfound    \"%s\"", text, line_of(&err));
    free(buffer);
}

static inline void save_archive(archive *a, const char *name)
{
    put_bytes(name, a->bytes.data, a->bytes.size);
    tn_buf_free(&a->bytes);
}

#endif
