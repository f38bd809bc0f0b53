/* bytes/source.c - the table of sources by name, memory, and what all sources do. */
#include "bytes/source_kind.h"
#include "base/error.h"
#include "base/text.h"
#include "bytes/guard.h"

#include <stdlib.h>
#include <string.h>

static const tn_source_kind *const kinds[] = {
    &tn_source_file,            /* last: any name can be that of a file */
};

tn_status tn_source_open(const char *name, tn_io io, tn_source **source, tn_error *err)
{
    const tn_source_kind *const *kind = kinds;
    while (!tn_begins_with(name, (*kind)->scheme))
        kind++;
    return (*kind)->open(name, io, source, err);
}

/* ---- memory ---- */

static void close_memory(tn_source *source) { free(source); }

static const tn_source_kind memory = { .close = close_memory };

tn_status tn_source_open_memory(const void *data, size_t size, tn_source **source, tn_error *err)
{
    tn_source *s = calloc(1, sizeof *s);
    TN_NEED(s, err);
    *s = (tn_source){ .kind = &memory, .size = size, .base = size ? data : (const void *)"" };
    *source = s;
    return TN_OK;
}

void tn_source_watch(tn_source *source, const tn_guard *guard, int fd)
{
    source->guard = guard;
    source->is_watched = fd >= 0;
    source->watched = fd;
}

/* ---- all ---- */

void tn_source_close(tn_source *source)
{
    if (source)
        source->kind->close(source);
}

uint64_t tn_source_size(const tn_source *source) { return source->size; }

enum { BY_THE_KERNEL = 256 << 10 };

static bool inside(const tn_source *s, uint64_t offset, uint64_t n)
{
    return offset <= s->size && n <= s->size - offset;
}

static tn_status outside(const tn_source *s, uint64_t offset, uint64_t n, tn_error *err)
{
    return tn_fail_at(err, TN_ERR_TRUNCATED, offset, "expected %llu more bytes, found %llu",
                      (unsigned long long)n, (unsigned long long)(offset < s->size ? s->size - offset : 0));
}

const uint8_t *tn_source_view(const tn_source *source, uint64_t offset, uint64_t n)
{
    return source->base && inside(source, offset, n) ? source->base + offset : NULL;
}

/* Truncation inside a page raises no signal, but the rest of the page reads as zeros, and so does the last
 * byte of the range. */
tn_status tn_source_check_range(const tn_source *s, uint64_t offset, uint64_t n, tn_error *err)
{
    uint64_t at;
    if (!s->guard || !n || (s->base[offset + n - 1] && tn_guard_harm(s->guard, &at) == TN_HARM_NONE))
        return TN_OK;
    return tn_source_check(s, err);
}

tn_status tn_source_read(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    tn_status status;
    if (!inside(source, offset, n))
        return outside(source, offset, n, err);
    if (!source->base)
        return source->kind->read(source, offset, buffer, n, err);
    /* pread() is faster for many bytes, because it maps no pages */
    if (n >= BY_THE_KERNEL && tn_source_read_by_kernel(source, offset, buffer, n, &status, err))
        return status;
    if (n)
        memcpy(buffer, source->base + offset, n);
    return tn_source_check_range(source, offset, n, err);
}

tn_status tn_source_copy(const tn_source *source, uint64_t offset, uint64_t n, tn_arena *arena,
                         const uint8_t **bytes, tn_error *err)
{
    if (!inside(source, offset, n))
        return outside(source, offset, n, err);
    void *copy = n <= SIZE_MAX ? tn_arena_alloc(arena, (size_t)n) : NULL;
    *bytes = copy;
    return copy ? tn_source_read(source, offset, copy, (size_t)n, err) : tn_fail_nomem(err);
}

tn_status tn_source_load(const char *path, size_t most, const char *what, tn_arena *arena, tn_text *text,
                         tn_error *err)
{
    tn_source *source;
    const uint8_t *bytes = NULL;
    TN_TRY(tn_source_open(path, TN_IO_PREAD, &source, err));
    uint64_t size = tn_source_size(source);
    tn_status status = TN_OK;
    if (size > most)
        status = tn_fail(err, TN_ERR_LIMIT, "expected %s of at most %zu bytes but found %llu", what, most,
                         (unsigned long long)size);
    else
        status = tn_source_copy(source, 0, size, arena, &bytes, err);
    tn_source_close(source);
    *text = (tn_text){ (const char *)bytes, (size_t)size };
    return tn_in_file(status, path, err);
}

tn_status tn_source_get(const tn_source *source, uint64_t offset, size_t n, void *buffer,
                        const uint8_t **bytes, tn_error *err)
{
    *bytes = tn_source_view(source, offset, n);
    if (*bytes)
        return TN_OK;
    *bytes = buffer;
    return tn_source_read(source, offset, buffer, n, err);
}

tn_status tn_index_check_size(uint64_t size, uint64_t at, tn_error *err)
{
    if (size <= TN_INDEX_MAX)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_LIMIT, at, "expected an index of at most %llu bytes but found %llu",
                      (unsigned long long)TN_INDEX_MAX, (unsigned long long)size);
}
