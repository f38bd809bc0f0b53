/* bytes/source.c - files, mapped or read, and memory. */
#include "bytes/source.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct tn_source {
    int            fd;          /* -1: memory */
    uint64_t       size;
    const uint8_t *base;        /* all bytes in place, or NULL: not mapped */
    bool           mapped;      /* base is ours to unmap */
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

/* Maps the whole file.  PRIVATE, because some file systems (FUSE with direct
 * I/O) refuse SHARED; for reading there is no other difference.  No madvise:
 * neither SEQUENTIAL, WILLNEED nor POPULATE_READ moved a checksum over cached
 * or uncached files by a tenth. */
static int map_whole(tn_source *s)
{
    if (s->size == 0) {
        s->base = nothing;
        return 0;
    }
    if (s->size > PTRDIFF_MAX)
        return EFBIG;
    void *map = mmap(NULL, (size_t)s->size, PROT_READ, MAP_PRIVATE, s->fd, 0);
    if (map == MAP_FAILED)
        return errno;
    s->base = map;
    s->mapped = true;
    return 0;
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
    s->fd = fd;
    s->size = (uint64_t)st.st_size;
    int problem = io == TN_IO_PREAD ? 0 : map_whole(s);
    if (problem && io == TN_IO_MMAP) {
        tn_source_close(s);
        return tn_fail_errno(err, problem, "cannot map");
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
    s->fd = -1;
    s->size = size;
    s->base = size ? data : nothing;
    *source = s;
    return TN_OK;
}

void tn_source_close(tn_source *source)
{
    if (!source)
        return;
    if (source->mapped)
        munmap((void *)(uintptr_t)source->base, (size_t)source->size);
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
            return tn_fail(err, TN_ERR_TRUNCATED, offset + done,
                           "the file has shrunk: expected %llu bytes, found %llu", (unsigned long long)s->size,
                           (unsigned long long)(offset + done));
        done += (size_t)got;
    }
    return TN_OK;
}

tn_status tn_source_read(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    if (!inside(source, offset, n))
        return outside(source, offset, n, err);
    if (!source->base || (source->mapped && n >= BY_THE_KERNEL))
        return read_file(source, offset, buffer, n, err);
    if (n)
        memcpy(buffer, source->base + offset, n);
    return TN_OK;
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
