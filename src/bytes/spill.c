/* bytes/spill.c - bytes that may be too many for memory. */
#include "bytes/spill.h"
#include "base/error.h"
#include "bytes/temporary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ZEROS = 1 << 16 };

/* The text says that it is the temporary file, unless it is next to the output: then the error names that. */
static tn_status fail_file(const char *beside, const tn_error *why, tn_error *err)
{
    const char *where = beside ? "" : "a temporary file (TMPDIR says where): ";
    return tn_fail(err, why->status, "%s%s", where, why->text);
}

static tn_status open_file(tn_spill *s, const char *beside, tn_error *err)
{
    int fd;
    tn_error why;
    TN_TRY(beside ? tn_temporary_open_beside(beside, &fd, err) : tn_temporary_open(&fd, err));
    tn_status status = tn_sink_open_fd(fd, &s->sink, &why);
    close(fd);
    return status ? fail_file(beside, &why, err) : TN_OK;
}

/* Allocates all blocks: writing to a mapped hole on a full disk would raise a signal. */
static tn_status fill_holes(const tn_spill *s, tn_error *err)
{
    static const uint8_t zeros[ZEROS];
    struct stat st;
    if (fstat(tn_sink_fd(s->sink), &st) == 0 && (uint64_t)st.st_size >= s->size &&
        (uint64_t)st.st_blocks * 512 >= s->size)
        return TN_OK;
    for (uint64_t at = 0; at < s->size; at += ZEROS)
        TN_TRY(tn_sink_write(s->sink, at, zeros, (size_t)(s->size - at < ZEROS ? s->size - at : ZEROS), err));
    return TN_OK;
}

static tn_status map_file(tn_spill *s, tn_error *err)
{
    void *map = MAP_FAILED;
    errno = ENOMEM;
    if (s->size <= SIZE_MAX)
        map = mmap(NULL, (size_t)s->size, PROT_READ | PROT_WRITE, MAP_SHARED, tn_sink_fd(s->sink), 0);
    if (map == MAP_FAILED)
        return tn_fail_errno(err, errno, "cannot map a temporary file");
    s->bytes = map;
    return TN_OK;
}

/* true: the bytes are few and on the heap (NULL: out of memory). */
static bool fits_memory(tn_spill *s, uint64_t size)
{
    tn_spill_free(s);
    s->size = size;
    if (size <= TN_SPILL_IN_MEMORY)
        s->bytes = calloc(1, size ? (size_t)size : 1);
    return size <= TN_SPILL_IN_MEMORY;
}

static tn_status make_file(tn_spill *s, const char *beside, uint64_t size, tn_error *err)
{
    tn_error why;
    TN_TRY(open_file(s, beside, err));
    tn_status status = tn_sink_reserve(s->sink, size, &why);
    if (!status)
        status = fill_holes(s, &why);
    return status ? fail_file(beside, &why, err) : map_file(s, err);
}

tn_status tn_spill_make(tn_spill *s, const char *beside, uint64_t size, tn_error *err)
{
    beside = beside && tn_is_url(beside) ? NULL : beside;
    if (!fits_memory(s, size))
        return tn_in_file(make_file(s, beside, size, err), beside, err);
    return s->bytes ? TN_OK : tn_in_file(tn_fail_nomem(err), beside, err);
}

static tn_status open_source(tn_spill *s, tn_error *err)
{
    return s->sink ? tn_source_open_fd(tn_sink_fd(s->sink), TN_IO_PREAD, &s->source, err)
                   : tn_source_open_memory(s->bytes, (size_t)s->size, &s->source, err);
}

tn_status tn_spill_begin(tn_spill *s, uint64_t size, tn_error *err)
{
    if (!fits_memory(s, size))
        return open_file(s, NULL, err);
    TN_NEED(s->bytes, err);
    return size ? TN_OK : open_source(s, err);
}

tn_status tn_spill_begin_in(tn_spill *s, int fd, uint64_t size, tn_error *err)
{
    tn_spill_free(s);
    s->size = size;
    TN_TRY(tn_sink_open_fd(fd, &s->sink, err));
    return size ? TN_OK : open_source(s, err);
}

tn_status tn_spill_append(tn_spill *s, const void *bytes, size_t n, tn_error *err)
{
    tn_error why;
    if (s->sink && tn_sink_write(s->sink, s->filled, bytes, n, &why))
        return fail_file(NULL, &why, err);
    if (!s->sink && n)
        memcpy(s->bytes + s->filled, bytes, n);
    s->filled += n;
    return s->filled == s->size && !s->source ? open_source(s, err) : TN_OK;
}

tn_status tn_spill_end(tn_spill *s, tn_error *err)
{
    s->size = s->filled;
    return s->source ? TN_OK : open_source(s, err);
}

void tn_spill_free(tn_spill *s)
{
    tn_source_close(s->source);
    if (!s->sink)
        free(s->bytes);
    else if (s->bytes)
        munmap(s->bytes, (size_t)s->size);
    tn_sink_abandon(s->sink);
    *s = (tn_spill){ 0 };
}
