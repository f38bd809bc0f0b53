/* bytes/source_file.c - files, mapped or read. */
#include "bytes/source_kind.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/guard.h"
#include "bytes/fd_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file {
    tn_source    source;        /* first: a tn_source of this kind is a file */
    tn_cached_fd cached;        /* in the cache if there is a path */
    char        *path;          /* to reopen it, or NULL */
    tn_identity  identity;      /* when it was opened */
    tn_guard    *own;           /* of the mapping, or NULL */
} file;

/* NULL: not a file. */
static file *file_of(const tn_source *s)
{
    return s->kind == &tn_source_file ? (file *)(uintptr_t)s : NULL;
}

/* ---- descriptors ---- */

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static tn_status fail_shrunk(uint64_t size, uint64_t found, tn_error *err)
{
    return tn_fail_at(err, TN_ERR_TRUNCATED, found, "the file has shrunk: expected %llu bytes, found %llu",
                      (unsigned long long)size, (unsigned long long)found);
}

/* A new file may have the inode of one that was removed, so size and time must be the same, too.  Its mode
 * and its links do not matter. */
static tn_status check_same(const file *f, const struct stat *st, tn_error *err)
{
    tn_identity now = tn_identity_of(st);
    now.changed = f->identity.changed;
    if (!tn_identity_same_file(&now, &f->identity))
        return tn_fail(err, TN_ERR_IO, "cannot be opened again: its name leads to another file now");
    if (now.size < f->identity.size)
        return fail_shrunk((uint64_t)f->identity.size, (uint64_t)now.size, err);
    if (!tn_identity_unchanged(&now, &f->identity))
        return tn_fail(err, TN_ERR_IO, "has changed while it was read");
    return TN_OK;
}

static file *file_of_cached(tn_cached_fd *cached)
{
    return (file *)(void *)((char *)cached - offsetof(file, cached));
}

static tn_status reopen(tn_cached_fd *cached, tn_error *err)
{
    file *f = file_of_cached(cached);
    struct stat st;
    int fd = open(f->path, OPEN_FLAGS);
    if (fd < 0)
        return tn_fail_errno(err, errno, "cannot open it again");
    tn_status status = fstat(fd, &st) == 0 ? check_same(f, &st, err)
                                           : tn_fail_errno(err, errno, "cannot open it again");
    if (status) {
        close(fd);
        return status;
    }
    cached->fd = fd;
    if (f->own)
        tn_guard_look_at(f->own, fd);
    return TN_OK;
}

static bool close_unused(tn_cached_fd *cached)
{
    file *f = file_of_cached(cached);
    if (f->own)
        tn_guard_look_at(f->own, -1);
    close(cached->fd);
    return true;
}

/* Shared by all sources of the process. */
static tn_fd_list open_files = { .lock = PTHREAD_MUTEX_INITIALIZER };
static const tn_fd_cache cache = { &open_files, reopen, close_unused };

tn_status tn_source_hold(const tn_source *s, int *fd, tn_error *err)
{
    file *f = file_of(s);
    if (f && f->path)
        return tn_fd_cache_hold(cache, &f->cached, fd, err);
    *fd = f ? f->cached.fd : -1;
    return TN_OK;
}

/* Holds the descriptor if that is open; false: the file is closed. */
static bool hold_open(file *f, int *fd)
{
    if (f->path)
        return tn_fd_cache_hold_open(cache, &f->cached, fd);
    *fd = f->cached.fd;
    return true;
}

void tn_source_release(const tn_source *s)
{
    file *f = file_of(s);
    if (f && f->path)
        tn_fd_cache_release(cache, &f->cached);
}

const tn_identity *tn_source_identity(const tn_source *s)
{
    const file *f = file_of(s);
    return f ? &f->identity : NULL;
}

/* ---- opening ---- */

static tn_status check_regular(mode_t mode, tn_error *err)
{
    if (S_ISREG(mode))
        return TN_OK;
    const char *kind = "special file";
    if (S_ISDIR(mode))
        kind = "directory";
    else if (S_ISFIFO(mode))
        kind = "FIFO";
    else if (S_ISSOCK(mode))
        kind = "socket";
    else if (S_ISCHR(mode) || S_ISBLK(mode))
        kind = "device";
    return tn_fail(err, TN_ERR_IO, "is a %s: expected a regular file", kind);
}

/* Maps the whole file, guarded.  PRIVATE, because some file systems (FUSE with direct I/O) refuse SHARED; for
 * reading they are the same.  No madvise(): it changed the time of a checksum by less than a tenth. */
static tn_status map_whole(file *f, tn_error *err)
{
    static const uint8_t nothing[1];
    tn_source *s = &f->source;
    tn_guarded what = { .grain = tn_guard_grain(f->cached.fd), .fd = f->cached.fd };
    if (s->size == 0) {
        s->base = nothing;
        return TN_OK;
    }
    if (s->size > PTRDIFF_MAX || !tn_align_u64(s->size, what.grain, &what.extent))
        return tn_fail_errno(err, EFBIG, "cannot map");
    what.base = mmap(NULL, (size_t)s->size, PROT_READ, MAP_PRIVATE, f->cached.fd, 0);
    if (what.base == MAP_FAILED)
        return tn_fail_errno(err, errno, "cannot map");
    tn_status status = tn_guard_add(&what, &f->own, err);
    if (status) {
        munmap(what.base, (size_t)s->size);
        return status;
    }
    s->guard = f->own;
    s->base = what.base;
    s->copies = what.grain == (uint64_t)sysconf(_SC_PAGESIZE);
    return TN_OK;
}

/* From here on the cache may close the descriptor.  The path is absolute, because a program may change its
 * working directory. */
static tn_status share_descriptor(file *f, const char *path, tn_error *err)
{
    char whole[PATH_MAX];
    const char *kept = realpath(path, whole) ? whole : path;
    size_t n = strlen(kept) + 1;
    f->path = malloc(n);
    TN_NEED(f->path, err);
    memcpy(f->path, kept, n);
    tn_fd_cache_add(cache, &f->cached);
    return TN_OK;
}

/* Owns fd, also if it fails; `path` may be NULL. */
static tn_status open_taken(int fd, const char *path, tn_io io, tn_source **source, tn_error *err)
{
    struct stat st;
    tn_status status = TN_OK;
    if (fstat(fd, &st) != 0)
        status = tn_fail_errno(err, errno, "cannot open");
    else
        status = check_regular(st.st_mode, err);
    file *f = status == TN_OK ? calloc(1, sizeof *f) : NULL;
    if (!f) {
        close(fd);
        return status ? status : tn_fail_nomem(err);
    }
    f->source.kind = &tn_source_file;
    f->source.size = (uint64_t)st.st_size;
    f->cached.fd = fd;
    f->identity = tn_identity_of(&st);
    if (io != TN_IO_PREAD)
        status = map_whole(f, io == TN_IO_MMAP ? err : NULL);
    f->source.copies &= io == TN_IO_AUTO;
    if (io != TN_IO_MMAP)
        status = TN_OK;
    if (!status && path)
        status = share_descriptor(f, path, err);
    if (status) {
        tn_source_close(&f->source);
        return status;
    }
    *source = &f->source;
    return TN_OK;
}

static tn_status open_path(const char *path, tn_io io, tn_source **source, tn_error *err)
{
    /* stat() first: opening may disturb a device, and sockets cannot be opened.  A FIFO that appears in
     * between is caught by O_NONBLOCK, everything else by fstat(). */
    struct stat st;
    if (stat(path, &st) != 0)
        return tn_fail_errno(err, errno, "cannot open");
    TN_TRY(check_regular(st.st_mode, err));
    int fd = open(path, OPEN_FLAGS);
    if (fd < 0)
        return tn_fail_errno(err, errno, "cannot open");
    return open_taken(fd, path, io, source, err);
}

tn_status tn_source_open_fd(int fd, tn_io io, tn_source **source, tn_error *err)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return tn_fail_errno(err, errno, "cannot open");
    return open_taken(own, NULL, io, source, err);
}

static void close_file(tn_source *source)
{
    file *f = file_of(source);
    if (f->path)
        tn_fd_cache_remove(cache, &f->cached);     /* before the guard is dropped */
    if (f->own) {
        tn_guard_drop(f->own);
        munmap((void *)(uintptr_t)source->base, (size_t)source->size);
    }
    if (f->cached.fd >= 0)
        close(f->cached.fd);
    free(f->path);
    free(f);
}

/* ---- truncation ---- */

/* A file that is closed is looked up by its path.  If that leads elsewhere now, the file has no name by which
 * it could be truncated. */
static bool look(const tn_source *s, struct stat *st)
{
    file *f = file_of(s);
    int fd;
    if (!f)
        return s->is_watched && fstat(s->watched, st) == 0;
    if (hold_open(f, &fd)) {
        bool seen = fstat(fd, st) == 0;
        tn_source_release(s);
        return seen;
    }
    if (stat(f->path, st) != 0)
        return false;
    tn_identity now = tn_identity_of(st);
    return tn_identity_same_file(&now, &f->identity);
}

tn_status tn_source_check(const tn_source *s, tn_error *err)
{
    struct stat st;
    uint64_t at = 0;
    tn_harm harm = s->guard ? tn_guard_harm(s->guard, &at) : TN_HARM_NONE;
    if (look(s, &st) && (uint64_t)st.st_size < s->size)
        return fail_shrunk(s->size, (uint64_t)st.st_size, err);
    if (harm == TN_HARM_CUT)            /* the file has grown again */
        return fail_shrunk(s->size, at, err);
    return harm ? tn_fail_at(err, TN_ERR_IO, at, "cannot read: %s", strerror(EIO)) : TN_OK;
}

/* ---- reading ---- */

static tn_status read_open(const tn_source *s, int fd, uint64_t offset, uint8_t *buffer, size_t n,
                           tn_error *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, buffer + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tn_fail_errno(err, errno, "cannot read");
        if (got == 0)
            return fail_shrunk(s->size, offset + done, err);
        done += (size_t)got;
    }
    return TN_OK;
}

static tn_status read_file(const tn_source *s, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    int fd;
    TN_TRY(tn_source_hold(s, &fd, err));
    tn_status status = read_open(s, fd, offset, buffer, n, err);
    tn_source_release(s);
    return status;
}

bool tn_source_read_by_kernel(const tn_source *s, uint64_t offset, void *buffer, size_t n, tn_status *status,
                              tn_error *err)
{
    file *f = file_of(s);
    int fd;
    if (!f || !f->own || !hold_open(f, &fd))
        return false;
    *status = read_open(s, fd, offset, buffer, n, err);
    tn_source_release(s);
    return true;
}

const tn_source_kind tn_source_file = {
    .scheme = "", .open = open_path, .read = read_file, .close = close_file,
};
