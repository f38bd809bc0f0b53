/* bytes/source.c - the table of sources by name, memory, and what all sources do. */
#include "bytes/source_kind.h"
#include "base/error.h"
#include "base/text.h"
#include "bytes/guard.h"
#include "bytes/remote/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const tn_source_kind *const kinds[] = {
    &tn_source_http,
    &tn_source_https,
    &tn_source_s3,
    &tn_source_hub,
    &tn_source_file,            /* last: any name can be that of a file */
};

static const tn_source_kind *kind_of(const char *name)
{
    const tn_source_kind *const *kind = kinds;
    while (!tn_begins_with(name, (*kind)->scheme))
        kind++;
    return *kind;
}

bool tn_is_url(const char *name) { return kind_of(name)->start != NULL; }

static tn_status start(const char *name, tn_io io, tn_source **source, tn_error *err)
{
    const tn_source_kind *kind = kind_of(name);
    return kind->start ? kind->start(name, source, err) : kind->open(name, io, source, err);
}

static tn_status settle(tn_source *source, bool *missing, tn_error *err)
{
    return source->kind->settle ? source->kind->settle(source, missing, err) : TN_OK;
}

static tn_status open_whole(const char *name, tn_io io, tn_source **source, bool *missing, tn_error *err)
{
    TN_TRY(start(name, io, source, err));
    tn_status status = settle(*source, missing, err);
    if (status || (missing && *missing)) {
        tn_source_close(*source);
        *source = NULL;
    }
    return status;
}

tn_status tn_source_open(const char *name, tn_io io, tn_source **source, tn_error *err)
{
    return open_whole(name, io, source, NULL, err);
}

static tn_status in_file(tn_status status, const char *name, tn_error *err)
{
    char shown[sizeof err->file];
    size_t n = tn_source_shown(name);
    snprintf(shown, sizeof shown, "%.*s", (int)(n < sizeof shown ? n : sizeof shown - 1), name);
    return tn_in_file(status, shown, err);
}

static tn_status open_group(const char *const *names, size_t n, tn_io io, tn_source **sources, tn_error *err)
{
    size_t started = 0;
    tn_status status = TN_OK;
    for (; started < n && !status; started += !status)
        status = in_file(start(names[started], io, &sources[started], err), names[started], err);
    for (size_t i = 0; i < started && !status; i++)
        status = in_file(settle(sources[i], NULL, err), names[i], err);
    for (size_t i = 0; i < started && status; i++)
        tn_source_close(sources[i]);
    return status;
}

tn_status tn_source_open_all(const char *const *names, size_t n, tn_io io, tn_source **sources, tn_error *err)
{
    enum { AT_ONCE = 32 };
    tn_status status = TN_OK;
    size_t done = 0;
    while (done < n && !status) {
        size_t some = n - done < AT_ONCE ? n - done : AT_ONCE;
        status = open_group(names + done, some, io, sources + done, err);
        done += status ? 0 : some;
    }
    for (size_t i = 0; i < done && status; i++)
        tn_source_close(sources[i]);
    return status;
}

tn_status tn_source_open_first(const char *const *names, size_t n, tn_source **source, size_t *which,
                               tn_error *err)
{
    enum { MOST = 8 };
    tn_source *all[MOST];
    size_t started = 0;
    tn_status status = TN_OK;
    *which = n;
    for (; started < n && started < MOST && !status; started += !status)
        status = in_file(start(names[started], TN_IO_AUTO, &all[started], err), names[started], err);
    for (size_t i = 0; i < started && *which == n && !status; i++) {
        bool missing = false;
        status = in_file(settle(all[i], &missing, err), names[i], err);
        if (!status && !missing)
            *which = i;
    }
    for (size_t i = 0; i < started; i++)
        if (status || i != *which)
            tn_source_close(all[i]);
    if (!status && *which < n)
        *source = all[*which];
    return status;
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

bool tn_is_far_folder(const char *name) { return tn_is_url(name) && tn_url_is_folder(name); }

size_t tn_source_shown(const char *name) { return tn_url_shown(name); }

bool tn_source_is_far(const tn_source *source) { return source->kind->expect != NULL; }

const char *tn_source_version(const tn_source *source)
{
    return source->kind->version ? source->kind->version(source) : NULL;
}

void tn_source_expect(const tn_source *source, const tn_range *ranges, size_t n)
{
    if (source->kind->expect && n)
        source->kind->expect(source, ranges, n);
}

/* A fault maps 16 pages, which takes about as long as copying them. */
enum { BY_THE_KERNEL = 64 << 10 };

bool tn_source_copies(const tn_source *source, uint64_t n)
{
    return source->copies && n >= BY_THE_KERNEL;
}

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

tn_status tn_source_load_if(const char *path, size_t most, const char *what, tn_arena *arena, tn_text *text,
                            bool *there, tn_error *err)
{
    tn_source *source = NULL;
    const uint8_t *bytes = NULL;
    bool missing = false, is_near = !tn_is_url(path);
    *there = !is_near || access(path, F_OK) == 0 || errno != ENOENT;
    if (!*there)
        return TN_OK;
    tn_status status = open_whole(path, TN_IO_PREAD, &source, is_near ? NULL : &missing, err);
    *there = !missing;
    if (status || missing)
        return in_file(status, path, err);
    uint64_t size = tn_source_size(source);
    if (size > most)
        status = tn_fail(err, TN_ERR_LIMIT, "expected %s of at most %zu bytes but found %llu", what, most,
                         (unsigned long long)size);
    else
        status = tn_source_copy(source, 0, size, arena, &bytes, err);
    tn_source_close(source);
    *text = (tn_text){ (const char *)bytes, (size_t)size };
    return in_file(status, path, err);
}

tn_status tn_source_load(const char *path, size_t most, const char *what, tn_arena *arena, tn_text *text,
                         tn_error *err)
{
    bool there;
    TN_TRY(tn_source_load_if(path, most, what, arena, text, &there, err));
    return there ? TN_OK : in_file(tn_fail_errno(err, ENOENT, "cannot open"), path, err);
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
