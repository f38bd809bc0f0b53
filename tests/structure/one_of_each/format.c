/* A container for the test that adds one of each: "VEC NAME COUNT" in 64 bytes, then float32 numbers. */
#include "base/error.h"
#include "store/file.h"
#include "store/writer.h"

#include <stdio.h>
#include <string.h>

enum { HEAD = 64 };

static int probe(const uint8_t *head, size_t n)
{
    return n >= 4 && memcmp(head, "VEC ", 4) == 0 ? 100 : 0;
}

static tn_status open_vector(tn_file *f, tn_error *err)
{
    const tn_source *source = f->shards[0].source;
    char head[HEAD + 1] = "", name[33];
    long long count;
    tn_status status = tn_source_read(source, 0, head, HEAD, err);
    if (status)
        return status;
    if (sscanf(head, "VEC %32s %lld", name, &count) != 2)
        return tn_fail_at(err, TN_ERR_CORRUPT, 0, "expected VEC, a name and a count");
    tn_entry e = {
        .name = tn_arena_text(&f->arena, name, strlen(name)), .dtype = TN_FLOAT32, .rank = 1,
        .shape = tn_arena_copy(&f->arena, &(int64_t){ count }, sizeof(int64_t)),
        .stored = { .offset = HEAD, .size = tn_source_size(source) - HEAD, .type = "float32" },
    };
    return e.name && e.shape ? tn_file_add(f, &e, err) : tn_fail_nomem(err);
}

static const char *type_name(const tn_dtype_info *type)
{
    return type == tn_dtype_get(TN_FLOAT32) ? type->name : NULL;
}

static tn_status plan(tn_writer *w, tn_error *err)
{
    tn_out_entry *e = w->entries;
    if (w->count != 1 || e->rank != 1 || e->more->record.len)
        return tn_fail(err, TN_ERR_ARGUMENT, "vec holds one vector of float32");
    tn_status status = tn_writer_add_file(w, w->path, &e->file, err);
    if (!status) {
        e->offset = HEAD;
        w->files[e->file].end = HEAD + e->nbytes;
    }
    return status;
}

static tn_status finish(tn_writer *w, tn_error *err)
{
    char head[HEAD + 1] = "";
    snprintf(head, sizeof head, "VEC %.32s %lld\n", w->entries[0].name, (long long)w->entries[0].shape[0]);
    return tn_writer_put(w, 0, 0, head, HEAD, err);
}

const tn_format tn_format_vec = {
    .info = { .name = "vec", .suffix = ".vec", .title = "one vector", .reads = true, .writes = true,
              .probes = true },
    .probe = probe, .open = open_vector, .type_name = type_name, .min_align = 1, .plan = plan,
    .finish = finish,
};
