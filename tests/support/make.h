/* tests/support/make.h - small tensor files in the test's folder.  Include it
 * after support.h. */
#ifndef TN_TESTS_MAKE_H
#define TN_TESTS_MAKE_H

#include "folder.h"
#include "walk.h"

/* A test that has a folder of its own. */
#define IN_FOLDER(test) { #test, (CMUnitTestFunction)(void (*)(void))test, make_folder, remove_folder, NULL }

typedef struct simple {
    const char    *name;
    tn_dtype       dtype;
    uint32_t       rank;
    int64_t        shape[TN_MAX_RANK];
    const void    *data;
    const char    *tied;
    const tn_meta *meta;
    uint32_t       nmeta;
} simple;

/* The end of a file whose tensors were added with this status. */
static inline tn_status finish_or_abandon(tn_writer *w, tn_status status, tn_error *err)
{
    if (!status)
        return tn_writer_finish(w, err);
    tn_writer_abandon(w);
    return status;
}

/* Writes NAME in the test's folder in place of another file; the status of the first call that failed. */
static inline tn_status try_write_tensors(const char *name, tn_create_options options,
                                          const tn_tensor *const *tensors, size_t n, tn_error *err)
{
    tn_writer *w;
    options.size = sizeof options;
    options.replace = true;
    tn_status status = tn_create(in_folder(name).text, &options, &w, err);
    if (status)
        return status;
    for (size_t i = 0; i < n && !status; i++)
        status = tn_writer_add(w, tensors[i], err);
    return finish_or_abandon(w, status, err);
}

static inline tn_status try_write_tensor(const char *name, tn_create_options options, const tn_tensor *t,
                                         tn_error *err)
{
    return try_write_tensors(name, options, &t, 1, err);
}

static inline tn_status add_simple(tn_writer *w, const simple *s, tn_error *err)
{
    tn_part part = { .role = "data", .array = { .dtype = s->dtype, .rank = s->rank, .shape = s->shape },
                     .data = s->data };
    tn_tensor t = { .name = s->name, .form = TN_FORM_DENSE, .dtype = s->dtype, .rank = s->rank,
                    .shape = s->shape,
                    .tied = s->tied, .parts = &part, .nparts = 1, .meta = s->meta, .nmeta = s->nmeta };
    return tn_writer_add(w, &t, err);
}

/* Writes NAME in the test's folder; the status of the first call that failed. */
static inline tn_status try_write(const char *name, tn_create_options options, const simple *tensors,
                                  size_t n, tn_error *err)
{
    tn_writer *w;
    options.size = sizeof options;
    tn_status status = tn_create(in_folder(name).text, &options, &w, err);
    if (status)
        return status;
    for (size_t i = 0; i < n && !status; i++)
        status = add_simple(w, &tensors[i], err);
    return finish_or_abandon(w, status, err);
}

static inline void write_file(const char *name, tn_create_options options, const simple *tensors, size_t n)
{
    tn_error err = { .text = "" };
    if (try_write(name, options, tensors, n, &err))
        fail_msg("%s: %s", name, line_of(&err));
}

/* This status, and a message that has `text` in it. */
static inline void check_status(tn_status status, const tn_error *err, tn_status expected, const char *text)
{
    if (status != expected || !strstr(line_of(err), text))
        fail_msg("expected %d \"%s\"\nfound    %d \"%s\"", (int)expected, text, (int)status, line_of(err));
}

static inline tn_file *open_file(const char *name)
{
    tn_file *f;
    tn_error err = { .text = "" };
    if (tn_open(in_folder(name).text, NULL, &f, &err))
        fail_msg("%s: %s", name, line_of(&err));
    walk_file(f);
    return f;
}

#endif
