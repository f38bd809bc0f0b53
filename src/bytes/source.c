/* bytes/source.c - files, mapped or read, and memory. */
#include "bytes/source.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct tn_source {
    int            fd;          /* -1: memory */
    int            watched;     /* the file that is looked at: fd, or that of a memory, or -1 */
    uint64_t       size;
    tn_identity    identity;    /* of fd */
    const uint8_t *base;        /* all bytes in place, or NULL: not mapped */
    const tn_guard *guard;      /* of what is mapped, or NULL */
    tn_guard      *own;         /* the same if it was mapped here */
};

static const uint8_t nothing[1];    /* where zero bytes lie */

static tn_status check_regular(mode_t mode, tn_error *err)
{
    if (S_ISREG(mode))
        return TN_OK;
    const char *kind = S_ISDIR(mode)  ? "directory"
                     : S_ISFIFO(mode) ? "FIFO"
                     : S_ISSOCK(mode) ? "socket"
                     : S_ISCHR(mode) || S_ISBLK(mode) ? "device" : "special file";
    return tn_fail(err, TN_ERR_IO, TN_NO_OFFSET, "is a %s: expected a regular file", kind);
}

/* Maps the whole file, guarded.  PRIVATE, because some file systems (FUSE with direct
 * I/O) refuse SHARED; for reading there is no other difference.  No madvise:
 * neither SEQUENTIAL, WILLNEED nor POPULATE_READ moved a checksum over cached
 * or uncached files by a tenth. */
static tn_status map_whole(tn_source *s, tn_error *err)
{
    tn_guarded what = { .grain = tn_guard_grain(s->fd), .fd = s->fd };
    if (s->size == 0) {
        s->base = nothing;
        return TN_OK;
    }
    if (s->size > PTRDIFF_MAX || !tn_align_u64(s->size, what.grain, &what.extent))
        return tn_fail_errno(err, EFBIG, "cannot map");
    what.base = mmap(NULL, (size_t)s->size, PROT_READ, MAP_PRIVATE, s->fd, 0);
    if (what.base == MAP_FAILED)
        return tn_fail_errno(err, errno, "cannot map");
    tn_status status = tn_guard_add(&what, &s->own, err);
    if (status) {
        munmap(what.base, (size_t)s->size);
        return status;
    }
    s->guard = s->own;
    s->base = what.base;
    return TN_OK;
}

/* Takes over fd, also when it fails. */
static tn_status open_taken(int fd, tn_io io, tn_source **source, tn_error *err)
{
    struct stat st;
    tn_status status = TN_OK;
    if (fstat(fd, &st) != 0)
        status = tn_fail_errno(err, errno, "cannot open");
    else
        status = check_regular(st.st_mode, err);
    tn_source *s = status == TN_OK ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        close(fd);
        return status ? status : tn_fail_nomem(err);
    }
    s->fd = s->watched = fd;
    s->size = (uint64_t)st.st_size;
    s->identity = tn_identity_of(&st);
    if (io != TN_IO_PREAD)
        status = map_whole(s, io == TN_IO_MMAP ? err : NULL);
    if (status && io == TN_IO_MMAP) {
        tn_source_close(s);
        return status;
    }
    *source = s;
    return TN_OK;
}

tn_status tn_source_open(const char *path, tn_io io, tn_source **source, tn_error *err)
{
    /* Looking first spares devices, which opening alone may disturb, and finds
     * sockets, which cannot be opened.  What appears in between is caught by
     * O_NONBLOCK (a FIFO) and by the look at the open file. */
    struct stat st;
    if (stat(path, &st) != 0)
        return tn_fail_errno(err, errno, "cannot open");
    tn_status status = check_regular(st.st_mode, err);
    if (status)
        return status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return tn_fail_errno(err, errno, "cannot open");
    return open_taken(fd, io, source, err);
}

tn_status tn_source_open_fd(int fd, tn_io io, tn_source **source, tn_error *err)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return tn_fail_errno(err, errno, "cannot open");
    return open_taken(own, io, source, err);
}

tn_status tn_source_open_memory(const void *data, size_t size, tn_source **source, tn_error *err)
{
    tn_source *s = calloc(1, sizeof *s);
    if (!s)
        return tn_fail_nomem(err);
    s->fd = s->watched = -1;
    s->size = size;
    s->base = size ? data : nothing;
    *source = s;
    return TN_OK;
}

void tn_source_watch(tn_source *source, const tn_guard *guard, int fd)
{
    source->guard = guard;
    source->watched = fd;
}

void tn_source_close(tn_source *source)
{
    if (!source)
        return;
    if (source->own) {
        tn_guard_drop(source->own);
        munmap((void *)(uintptr_t)source->base, (size_t)source->size);
    }
    if (source->fd >= 0)
        close(source->fd);
    free(source);
}

uint64_t tn_source_size(const tn_source *source)
{
    return source->size;
}

int tn_source_fd(const tn_source *source)
{
    return source->fd;
}

const tn_identity *tn_source_identity(const tn_source *source)
{
    return source->fd >= 0 ? &source->identity : NULL;
}

/* So many bytes are copied faster by the kernel, which maps nothing for it. */
enum { BY_THE_KERNEL = 256 << 10 };

static bool inside(const tn_source *s, uint64_t offset, uint64_t n)
{
    return offset <= s->size && n <= s->size - offset;
}

static tn_status outside(const tn_source *s, uint64_t offset, uint64_t n, tn_error *err)
{
    return tn_fail(err, TN_ERR_TRUNCATED, offset, "expected %llu more bytes, found %llu", (unsigned long long)n,
                   (unsigned long long)(offset < s->size ? s->size - offset : 0));
}

const uint8_t *tn_source_view(const tn_source *source, uint64_t offset, uint64_t n)
{
    return source->base && inside(source, offset, n) ? source->base + offset : NULL;
}

/* ---- what became of the file ---- */

static tn_status fail_shrunk(const tn_source *s, uint64_t found, tn_error *err)
{
    return tn_fail(err, TN_ERR_TRUNCATED, found, "the file has shrunk: expected %llu bytes, found %llu", (unsigned long long)s->size,
                   (unsigned long long)found);
}

tn_status tn_source_check(const tn_source *s, tn_error *err)
{
    struct stat st;
    uint64_t at = 0;
    tn_harm harm = s->guard ? tn_guard_harm(s->guard, &at) : TN_HARM_NONE;
    if (s->watched >= 0 && fstat(s->watched, &st) == 0 && (uint64_t)st.st_size < s->size)
        return fail_shrunk(s, (uint64_t)st.st_size, err);
    if (harm == TN_HARM_CUT)            /* and has grown again */
        return fail_shrunk(s, at, err);
    return harm ? tn_fail(err, TN_ERR_IO, at, "cannot read: %s", strerror(EIO)) : TN_OK;
}

/* A cut that raises no signal is one inside a page, whose rest is zeros: then so
 * is the last byte that was seen. */
tn_status tn_source_check_range(const tn_source *s, uint64_t offset, uint64_t n, tn_error *err)
{
    uint64_t at;
    if (!s->guard || !n || (s->base[offset + n - 1] && tn_guard_harm(s->guard, &at) == TN_HARM_NONE))
        return TN_OK;
    return tn_source_check(s, err);
}

/* ---- reading ---- */

static tn_status read_file(const tn_source *s, uint64_t offset, uint8_t *buffer, size_t n, tn_error *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(s->fd, buffer + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tn_fail_errno(err, errno, "cannot read");
        if (got == 0)
            return fail_shrunk(s, offset + done, err);
        done += (size_t)got;
    }
    return TN_OK;
}

tn_status tn_source_read(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    if (!inside(source, offset, n))
        return outside(source, offset, n, err);
    if (!source->base || (source->own && n >= BY_THE_KERNEL))
        return read_file(source, offset, buffer, n, err);
    if (n)
        memcpy(buffer, source->base + offset, n);
    return tn_source_check_range(source, offset, n, err);
}

tn_status tn_source_copy(const tn_source *source, uint64_t offset, uint64_t n, tn_arena *arena, const uint8_t **bytes,
                         tn_error *err)
{
    if (!inside(source, offset, n))
        return outside(source, offset, n, err);
    void *copy = n <= SIZE_MAX ? tn_arena_alloc(arena, (size_t)n) : NULL;
    *bytes = copy;
    return copy ? tn_source_read(source, offset, copy, (size_t)n, err) : tn_fail_nomem(err);
}

tn_status tn_source_get(const tn_source *source, uint64_t offset, size_t n, void *buffer, const uint8_t **bytes,
                        tn_error *err)
{
    *bytes = tn_source_view(source, offset, n);
    if (*bytes)
        return TN_OK;
    *bytes = buffer;
    return tn_source_read(source, offset, buffer, n, err);
}
