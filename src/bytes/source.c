/* bytes/source.c - files, mapped or read, and memory. */
#include "bytes/source.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/guard.h"
#include "bytes/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that can be opened again by its path: files take turns in having a descriptor. */
typedef struct named {
    tn_turn     turn;           /* first: one is found by the other */
    tn_guard   *guard;          /* that looks at the descriptor, or NULL */
    tn_identity opened;         /* the file */
    char        path[];
} named;

struct tn_source {
    int            fd;          /* that it was opened with, without a path; -1: none */
    named         *named;       /* or NULL: no path */
    int            watched;     /* the file that is looked at: fd, or that of a memory, or -1 */
    uint64_t       size;
    tn_identity    identity;    /* of fd */
    const uint8_t *base;        /* all bytes in place, or NULL: not mapped */
    const tn_guard *guard;      /* of what is mapped, or NULL */
    tn_guard      *own;         /* the same if it was mapped here */
};

static const uint8_t nothing[1];    /* where zero bytes lie */

/* ---- descriptors ---- */

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static tn_status fail_shrunk(uint64_t size, uint64_t found, tn_error *err)
{
    return tn_fail(err, TN_ERR_TRUNCATED, found, "the file has shrunk: expected %llu bytes, found %llu",
                   (unsigned long long)size, (unsigned long long)found);
}

static bool is_file_of(const named *n, const struct stat *st)
{
    tn_identity now = tn_identity_of(st);
    return tn_identity_same_file(&now, &n->opened);
}

/* A new file may have got the number of one that was removed: so it must be unchanged, too.  Its mode and
 * its links do not matter. */
static tn_status check_same(const named *n, const struct stat *st, tn_error *err)
{
    tn_identity now = tn_identity_of(st);
    now.changed = n->opened.changed;
    if (!is_file_of(n, st))
        return tn_fail(err, TN_ERR_IO, TN_NO_OFFSET,
                       "cannot be opened again: its name leads to another file now");
    if (now.size < n->opened.size)
        return fail_shrunk((uint64_t)n->opened.size, (uint64_t)now.size, err);
    if (!tn_identity_unchanged(&now, &n->opened))
        return tn_fail(err, TN_ERR_IO, TN_NO_OFFSET, "has changed while it was read");
    return TN_OK;
}

static tn_status wake(tn_turn *turn, tn_error *err)
{
    named *n = (named *)turn;
    struct stat st;
    int fd = open(n->path, OPEN_FLAGS);
    if (fd < 0)
        return tn_fail_errno(err, errno, "cannot open it again");
    tn_status status = fstat(fd, &st) == 0 ? check_same(n, &st, err)
                                           : tn_fail_errno(err, errno, "cannot open it again");
    if (status) {
        close(fd);
        return status;
    }
    turn->fd = fd;
    if (n->guard)
        tn_guard_look_at(n->guard, fd);
    return TN_OK;
}

static bool put_to_sleep(tn_turn *turn)
{
    named *n = (named *)turn;
    if (n->guard)
        tn_guard_look_at(n->guard, -1);
    close(turn->fd);
    return true;
}

/* Of all sources of the process. */
static tn_awake awake = { .lock = PTHREAD_MUTEX_INITIALIZER };
static const tn_turns turns = { &awake, wake, put_to_sleep };

tn_status tn_source_hold(const tn_source *s, int *fd, tn_error *err)
{
    *fd = s->fd;
    return s->named ? tn_turns_hold(&turns, &s->named->turn, fd, err) : TN_OK;
}

void tn_source_release(const tn_source *s)
{
    if (s->named)
        tn_turns_release(&turns, &s->named->turn);
}

/* ---- opening ---- */

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

/* From here on others may have the descriptor in its turn.  The path is made absolute: a program may
 * change its folder. */
static tn_status share_descriptor(tn_source *s, const char *path, tn_error *err)
{
    char whole[PATH_MAX];
    const char *kept = realpath(path, whole) ? whole : path;
    size_t n = strlen(kept) + 1;
    named *name = malloc(sizeof *name + n);
    if (name) {
        *name = (named){ .turn = { .fd = s->fd }, .guard = s->own, .opened = s->identity };
        memcpy(name->path, kept, n);
        s->named = name;
        s->fd = s->watched = -1;
        tn_turns_join(&turns, &name->turn);
    }
    return name ? TN_OK : tn_fail_nomem(err);
}

/* Takes over fd, also when it fails; `path` may be NULL. */
static tn_status open_taken(int fd, const char *path, tn_io io, tn_source **source, tn_error *err)
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
    if (io != TN_IO_MMAP)
        status = TN_OK;
    if (!status && path)
        status = share_descriptor(s, path, err);
    if (status) {
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
    if (source->named)
        tn_turns_leave(&turns, &source->named->turn);   /* before the guard is gone */
    if (source->own) {
        tn_guard_drop(source->own);
        munmap((void *)(uintptr_t)source->base, (size_t)source->size);
    }
    if (source->fd >= 0)
        close(source->fd);
    free(source->named);
    free(source);
}

uint64_t tn_source_size(const tn_source *source)
{
    return source->size;
}

const tn_identity *tn_source_identity(const tn_source *source)
{
    return source->fd >= 0 || source->named ? &source->identity : NULL;
}

enum { BY_THE_KERNEL = 256 << 10 };

static bool inside(const tn_source *s, uint64_t offset, uint64_t n)
{
    return offset <= s->size && n <= s->size - offset;
}

static tn_status outside(const tn_source *s, uint64_t offset, uint64_t n, tn_error *err)
{
    return tn_fail(err, TN_ERR_TRUNCATED, offset, "expected %llu more bytes, found %llu",
                   (unsigned long long)n, (unsigned long long)(offset < s->size ? s->size - offset : 0));
}

const uint8_t *tn_source_view(const tn_source *source, uint64_t offset, uint64_t n)
{
    return source->base && inside(source, offset, n) ? source->base + offset : NULL;
}

/* ---- what became of the file ---- */

/* What the file is now.  Of one that is asleep its name is asked: if that leads elsewhere by now nobody
 * can tell, and the file has no name by which it could be cut. */
static bool look(const tn_source *s, struct stat *st)
{
    int fd = s->watched;
    named *n = s->named;
    if (!n)
        return fd >= 0 && fstat(fd, st) == 0;
    if (tn_turns_hold_awake(&turns, &n->turn, &fd)) {
        bool seen = fstat(fd, st) == 0;
        tn_turns_release(&turns, &n->turn);
        return seen;
    }
    return stat(n->path, st) == 0 && is_file_of(n, st);
}

tn_status tn_source_check(const tn_source *s, tn_error *err)
{
    struct stat st;
    uint64_t at = 0;
    tn_harm harm = s->guard ? tn_guard_harm(s->guard, &at) : TN_HARM_NONE;
    if (look(s, &st) && (uint64_t)st.st_size < s->size)
        return fail_shrunk(s->size, (uint64_t)st.st_size, err);
    if (harm == TN_HARM_CUT)            /* and has grown again */
        return fail_shrunk(s->size, at, err);
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

static tn_status read_file(const tn_source *s, uint64_t offset, uint8_t *buffer, size_t n, tn_error *err)
{
    int fd;
    tn_status status = tn_source_hold(s, &fd, err);
    if (status)
        return status;
    status = read_open(s, fd, offset, buffer, n, err);
    tn_source_release(s);
    return status;
}

/* So many bytes are copied faster by the kernel, which maps nothing for it; not if the file had to be
 * opened again for that. */
static bool hold_for_kernel(const tn_source *s, size_t n, int *fd)
{
    *fd = s->fd;
    return s->own && n >= BY_THE_KERNEL && (!s->named || tn_turns_hold_awake(&turns, &s->named->turn, fd));
}

tn_status tn_source_read(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    int fd;
    if (!inside(source, offset, n))
        return outside(source, offset, n, err);
    if (!source->base)
        return read_file(source, offset, buffer, n, err);
    if (hold_for_kernel(source, n, &fd)) {
        tn_status status = read_open(source, fd, offset, buffer, n, err);
        tn_source_release(source);
        return status;
    }
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
    return tn_fail(err, TN_ERR_LIMIT, at, "expected an index of at most %llu bytes but found %llu",
                   (unsigned long long)TN_INDEX_MAX, (unsigned long long)size);
}
