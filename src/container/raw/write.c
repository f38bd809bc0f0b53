/* container/raw/write.c - the data, and the descriptors that speak of it.
 *
 * Scales and zero points are numbers of the descriptors: their bytes are kept
 * in memory until those are written. */
#include "container/raw/raw.h"
#include "base/checked.h"
#include "base/error.h"
#include "container/record.h"
#include "bytes/json.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DATA = 0 };              /* the first of the writer's files; the descriptors are the last */

/* --- planning --- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static tn_status check_plan(const tn_writer *w, tn_error *err)
{
    if (ends_with(w->path, TN_RAW_DATA_SUFFIX))
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected the name of the descriptors, NAME" TN_RAW_SUFFIX
                       ": the data goes to NAME" TN_RAW_DATA_SUFFIX " beside them");
    if (w->nmeta && !w->count && !w->options.drop_metadata)
        return tn_fail(err, TN_ERR_LOSS, TN_NO_OFFSET, "raw keeps a file's metadata with its first tensor and there is none "
                       "(--drop-metadata)");
    for (size_t i = 0; i < w->count; i++) {
        const tn_tensor *t = w->entries[i].whole;
        if (t && strcmp(t->form, "dense") != 0 && strcmp(t->form, "scaled") != 0)
            return tn_fail(err, TN_ERR_UNSUPPORTED, TN_NO_OFFSET, "tensor %s: raw cannot hold a tensor of form %s",
                           tn_quote_z(t->name).text, tn_quote_z(t->form).text);
    }
    return TN_OK;
}

/* A dry run has no numbers: it takes the longest. */
static void fill_in(tn_writer *w, const tn_out_entry *e)
{
    uint8_t *at = w->files[e->file].memory + e->offset;
    const float scale = -FLT_MIN;
    const int32_t zero = INT32_MIN;
    for (uint64_t i = 0; i < e->nbytes; i += sizeof scale)
        memcpy(at + i, e->dtype == TN_FLOAT32 ? (const void *)&scale : (const void *)&zero, sizeof scale);
}

/* Places the parts after the first in memory. */
static tn_status plan_numbers(tn_writer *w, tn_error *err)
{
    uint64_t size = 0;
    uint32_t file;
    for (size_t i = 0; i < w->count; i++)
        if (w->entries[i].part && !tn_add_u64(size, w->entries[i].nbytes, &size))
            return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET, "the scales would take more than 2^64 bytes");
    tn_status status = tn_writer_add_memory(w, size, &file, err);
    size = 0;
    for (size_t i = 0; i < w->count && !status; i++) {
        tn_out_entry *e = &w->entries[i];
        if (!e->part)
            continue;
        e->file = file;
        e->offset = size;
        size += e->nbytes;
        if (w->dry_run)
            fill_in(w, e);
    }
    return status;
}

/* A link could lead to the descriptors themselves. */
static tn_status add_data_file(tn_writer *w, const char *path, tn_error *err)
{
    uint32_t file;
    struct stat s;
    if (lstat(path, &s) == 0 && S_ISLNK(s.st_mode))
        return tn_fail(err, TN_ERR_IO, TN_NO_OFFSET, "%s is a symbolic link: the data is written under its own name only",
                       tn_quote_z(path).text);
    tn_status status = tn_writer_add_file(w, path, &file, err);
    return status ? tn_error_in_file(err, path) : TN_OK;
}

tn_status tn_raw_plan(tn_writer *w, tn_error *err)
{
    uint32_t file;
    tn_status status = check_plan(w, err);
    if (status)
        return status;
    const char *data = tn_raw_data_path(w->path, &w->arena);
    status = data ? add_data_file(w, data, err) : tn_fail_nomem(err);
    for (size_t i = 0; i < w->count; i++)
        w->entries[i].checksum = TN_CHECKSUM_CRC32C;        /* for the tensor's id */
    if (!status)
        status = plan_numbers(w, err);
    return status ? status : tn_writer_add_file(w, w->path, &file, err);
}

/* --- the descriptors --- */

static const void *numbers_of(const tn_writer *w, const tn_out_entry *e)
{
    return w->files[e->file].memory + e->offset;
}

/* The tensor whose first part is entry i. */
static tn_status describe(tn_writer *w, size_t i, const tn_buf *own, tn_descriptor *d, tn_error *err)
{
    const tn_out_entry *e = &w->entries[i];
    const tn_tensor *t = e->whole;
    char content[TN_CHECKSUM_TEXT_MAX];
    tn_digest_format(&e->digest, content);
    tn_raw_subject s = {
        .content = content,
        .tensor = t, .meta = e->meta, .nmeta = e->nmeta, .offset = e->offset, .end = e->offset + e->nbytes,
        .align = w->options.align, .physical = t->parts[0].storage.physical, .in_place = true,
        .scale = t->nparts > 1 ? numbers_of(w, e + 1) : NULL, .zero = t->nparts > 2 ? numbers_of(w, e + 2) : NULL,
        .own = i == 0 ? own : NULL,
    };
    tn_status status = tn_raw_describe(&s, &w->arena, d, err);
    /* What is written must be read again: a scale of 0, say, cannot be. */
    return status || w->dry_run ? status : tn_raw_check(d, TN_NO_OFFSET, TN_ERR_UNSUPPORTED, err);
}

static tn_status describe_all(tn_writer *w, tn_descriptor *all, tn_error *err)
{
    tn_buf own = { 0 };
    if (w->nmeta) {
        tn_buf_puts(&own, "\"" TN_RAW_FILE_META "\":");
        tn_meta_put_json(&own, w->meta, w->nmeta);
    }
    tn_status status = TN_OK;
    for (size_t i = 0, n = 0; i < w->count && !status; i++)
        if (w->entries[i].part == 0)
            status = describe(w, i, &own, &all[n++], err);
    tn_buf_free(&own);
    return status;
}

tn_status tn_raw_finish(tn_writer *w, tn_error *err)
{
    uint32_t file = (uint32_t)w->nfiles - 1;
    tn_descriptor *all = calloc(w->ntensors ? w->ntensors : 1, sizeof *all);
    char *json = NULL;
    size_t size = 0;
    tn_status status = all ? describe_all(w, all, err) : tn_fail_nomem(err);
    if (!status)
        status = tn_descriptors_write(all, w->ntensors, w->ntensors != 1, &json, &size, err);
    if (!status && size > TN_RAW_DOCUMENT_MAX)
        status = tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET, "the descriptors would take %zu bytes but at most %u can be read back",
                         size, TN_RAW_DOCUMENT_MAX);
    if (!status)
        status = tn_writer_put(w, file, 0, json, size, err);
    w->files[file].end = size;
    free(json);
    free(all);
    return status;
}
