/* bytes/sink.c - a file that appears whole or not at all, a descriptor, and memory. */
#include "bytes/sink.h"
#include "bytes/attributes.h"
#include "bytes/guard.h"
#include "bytes/identity.h"
#include "bytes/place.h"
#include "bytes/remote/upload.h"
#include "bytes/sink_calls.h"
#include "bytes/sink_inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MAX_TRIES TN_TEMP_TRIES
#define COPY_SIZE ((size_t)256 << 10)
#define SYNC_PIECE ((uint64_t)16 << 20)

static int open_tmpfile(int folder, mode_t mode)
{
    return openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

static int clone_range(int fd, const struct file_clone_range *range)
{
    return ioctl(fd, FICLONERANGE, range);
}

struct tn_sink_calls tn_sink_calls = {
    .open_tmpfile = open_tmpfile,
    .flock = flock,
    .pwrite = pwrite,
    .clone_range = clone_range,
    .copy_file_range = copy_file_range,
    .fallocate = fallocate,
    .ftruncate = ftruncate,
    .fsync = fsync,
    .linkat = linkat,
    .renameat2 = renameat2,
};

tn_status tn_sink_fail_exists(tn_error *err)
{
    return tn_refuse(err, TN_ERR_EXISTS, TN_REASON_REPLACE, NULL, "already exists");
}

static tn_status fail_range(tn_error *err, uint64_t offset, uint64_t n)
{
    return tn_fail(err, TN_ERR_LIMIT,
                   "cannot write %llu bytes at %llu: expected a file of at most %lld bytes",
                   (unsigned long long)n, (unsigned long long)offset, (long long)INT64_MAX);
}

/* ---- temporary names ---- */

bool tn_is_named(int folder, const char *name, int fd)
{
    struct stat there, open;
    return fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &open) == 0 &&
           tn_same_file(&there, &open);
}

/* A temporary file that is not locked has no writer any more: a writer holds the lock until the name is gone.
 * A writer that has not locked its file yet notices the removal (create_named). */
static void remove_if_forgotten(int folder, const char *name)
{
    int flags = O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
    if (!tn_is_temporary_name(name))
        return;
    int fd = openat(folder, name, O_RDWR | flags);      /* NFS locks only what can be written */
    if (fd < 0 && errno == EISDIR) {
        tn_sink_remove_parking(folder, name);
        return;
    }
    if (fd < 0 && errno == EACCES)
        fd = openat(folder, name, O_RDONLY | flags);
    if (fd < 0)
        return;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && tn_sink_calls.flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        tn_is_named(folder, name, fd))
        unlinkat(folder, name, 0);
    close(fd);
}

void tn_sink_each_name(int folder, void (*visit)(int folder, const char *name))
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        visit(folder, entry->d_name);
    if (dir)
        closedir(dir);
}

void tn_sink_remove_litter(int folder)
{
    tn_sink_each_name(folder, remove_if_forgotten);
}

/* ---- opening ---- */

/* -1 if the file system has no unnamed files, or if there is no /proc to name one later. */
static int create_unnamed(tn_sink *s, mode_t mode)
{
    char self[40];
    int fd = tn_sink_calls.open_tmpfile(s->folder, mode);
    if (fd < 0)
        return -1;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (access(self, F_OK) != 0) {
        close(fd);
        return -1;
    }
    tn_sink_calls.flock(fd, LOCK_EX | LOCK_NB);   /* for the moment when it has a temporary name */
    return fd;
}

static int create_named(tn_sink *s, mode_t mode)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        if (!tn_temporary_name(s->temp))
            break;
        int fd = openat(s->folder, s->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            break;
        /* Another sink may have removed it before it was locked, unless files cannot be locked at all. */
        bool lost = tn_sink_calls.flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!lost && tn_is_named(s->folder, s->temp, fd)) {
            s->leftover = (tn_leftover){ .folder = s->folder, .name = s->temp };
            tn_leftover_add(&s->leftover);
            return fd;
        }
        close(fd);
        errno = EEXIST;
    }
    s->temp[0] = '\0';
    return -1;
}

/* Only the owner can access a file that replaces another, until it is published. */
tn_status tn_sink_create(tn_sink *s, tn_error *err)
{
    mode_t mode = s->exists ? 0600 : 0666;
    s->fd = create_unnamed(s, mode);
    if (s->fd < 0)
        s->fd = create_named(s, mode);
    return s->fd < 0 ? tn_fail_write(err, errno) : TN_OK;
}

static tn_status check_old(const struct stat *old, bool replace, tn_error *err)
{
    if (S_ISDIR(old->st_mode))
        return tn_fail(err, TN_ERR_IO, "is a directory: expected a regular file or none");
    if (!S_ISREG(old->st_mode))
        return tn_fail(err, TN_ERR_IO, "is a FIFO, socket or device: expected a regular file or none");
    return replace ? TN_OK : tn_sink_fail_exists(err);
}

tn_sink *tn_sink_new(void)
{
    tn_sink *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->fd = s->member.cached.fd = s->shared = s->own = -1;
    s->folder = AT_FDCWD;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

tn_status tn_sink_open(const char *path, bool replace, tn_sink **sink, tn_error *err)
{
    tn_place place;
    if (tn_is_url(path))
        return tn_sink_open_far(path, replace, sink, err);
    TN_TRY(tn_place_find(path, &place, err));
    tn_sink *s = tn_sink_new();
    size_t n = strlen(place.name) + 1;
    if (!s || !(s->name = malloc(n))) {
        tn_sink_abandon(s);
        close(place.folder);
        return tn_fail_nomem(err);
    }
    memcpy(s->name, place.name, n);
    s->replace = replace;
    s->folder = place.folder;
    s->exists = place.exists;
    s->old = place.old;
    tn_status status = place.exists ? check_old(&place.old, replace, err) : TN_OK;
    if (!status) {
        tn_sink_remove_litter(s->folder);
        status = tn_sink_create(s, err);
    }
    if (status)
        tn_sink_abandon(s);
    else
        *sink = s;
    return status;
}

void tn_sink_listen(tn_sink *sink, tn_listener listener) { sink->listener = listener; }

void tn_sink_expect(tn_sink *sink, const tn_identity *read, bool locked)
{
    sink->expects = true;
    sink->locked = locked;
    sink->read = *read;
}

/* If the file does not have the name any more, the name counts. */
bool tn_sink_replaces(const tn_sink *sink, const tn_identity *read, const char *path)
{
    struct stat ours, theirs;
    tn_place place;
    tn_identity old = tn_identity_of(&sink->old);
    if (sink->exists && tn_identity_same_file(&old, read))
        return true;
    if (sink->out || sink->nameless || !path || tn_place_find(path, &place, NULL) != TN_OK)
        return false;
    bool same = sink->name && strcmp(sink->name, place.name) == 0 && fstat(sink->folder, &ours) == 0 &&
                fstat(place.folder, &theirs) == 0 && tn_same_file(&ours, &theirs);
    close(place.folder);
    return same;
}

bool tn_sink_is_beside(const tn_sink *sink, const char *path)
{
    struct stat ours, theirs;
    char folder[PATH_MAX];
    return tn_folder_of(path, folder) && fstat(sink->folder, &ours) == 0 && stat(folder, &theirs) == 0 &&
           tn_same_file(&ours, &theirs);
}

tn_status tn_sink_check(const tn_sink *sink, tn_error *err)
{
    return sink->expects ? tn_identity_check(sink->folder, sink->name, &sink->read, err) : TN_OK;
}

tn_status tn_sink_open_fd(int fd, tn_sink **sink, tn_error *err)
{
    tn_sink *s = tn_sink_new();
    TN_NEED(s, err);
    s->nameless = true;
    s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (s->fd < 0) {
        tn_status status = tn_fail_errno(err, errno, "cannot duplicate a descriptor");
        tn_sink_abandon(s);
        return status;
    }
    *sink = s;
    return TN_OK;
}

tn_status tn_sink_open_memory(tn_buf *out, tn_sink **sink, tn_error *err)
{
    tn_sink *s = tn_sink_new();
    TN_NEED(s, err);
    s->out = out;
    *sink = s;
    return TN_OK;
}

/* ---- sharing ---- */

static tn_status check_shared(const tn_sink *s, int fd, tn_error *err)
{
    struct stat ours, theirs;
    if (fstat(fd, &theirs) != 0 || !S_ISREG(theirs.st_mode))
        return tn_fail(err, TN_ERR_CORRUPT, "a file of the work folder is no regular file");
    if (!s->upload && (fstat(s->folder, &ours) != 0 || ours.st_dev != theirs.st_dev))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "the work folder is on another file system than the output, "
                       "whose files it is to hold");
    return TN_OK;
}

tn_status tn_sink_share(tn_sink *s, int folder, const char *name, tn_error *err)
{
    if (s->upload)
        return tn_sink_share_far(s, folder, name, err);
    if (s->out || s->nameless)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "several processes can only make a file together");
    int fd = openat(folder, name, TN_SHARED_FLAGS);
    if (fd < 0)
        return tn_fail_errno(err, errno, "cannot open a file of the work folder");
    tn_status status = check_shared(s, fd, err);
    if (!status && (s->shared = fcntl(folder, F_DUPFD_CLOEXEC, 0)) < 0)
        status = tn_fail_errno(err, errno, "cannot open the work folder");
    if (status) {
        close(fd);
        return status;
    }
    tn_leftover_remove(&s->leftover);
    if (s->temp[0])
        unlinkat(s->folder, s->temp, 0);
    s->temp[0] = '\0';
    close(s->fd);
    s->fd = fd;
    snprintf(s->shared_name, sizeof s->shared_name, "%s", name);
    return TN_OK;
}

void tn_sink_plan(tn_sink *sink, uint64_t size)
{
    if (sink->planned < size)
        sink->planned = size;
}

tn_status tn_sink_make_shared(tn_sink *s, int folder, const char *name, tn_error *err)
{
    int fd = openat(folder, name, TN_SHARED_FLAGS | O_CREAT, s->exists ? 0600 : 0666);
    if (fd < 0)
        return tn_fail_errno(err, errno, "cannot make a file of the work folder");
    tn_status status = check_shared(s, fd, err);
    if (!status && ftruncate(fd, (off_t)s->planned) != 0)
        status = tn_fail_write(err, errno);
    close(fd);
    return status;
}

tn_status tn_sink_sync(tn_sink *sink, tn_error *err)
{
    int fd;
    if (sink->out)
        return TN_OK;
    TN_TRY(tn_sink_hold(sink, &fd, err));
    tn_status status = tn_sync_fd(fd) == 0 ? TN_OK : tn_fail_write(err, errno);
    tn_sink_release(sink);
    return status;
}

/* ---- writing ---- */

/* Extends to `size` with zeros.  The lock is held. */
static bool extend_memory(tn_buf *bytes, uint64_t size)
{
    if (size > SIZE_MAX)
        bytes->bad = true;
    else if (size > bytes->size)
        tn_buf_fill(bytes, 0, (size_t)size - bytes->size);
    return !bytes->bad;
}

static tn_status write_memory(tn_sink *s, uint64_t offset, const void *data, size_t n, tn_error *err)
{
    pthread_mutex_lock(&s->lock);       /* also while copying: growing may move the bytes */
    bool ok = extend_memory(&s->bytes, offset + n);
    if (ok && n)
        memcpy(s->bytes.data + offset, data, n);
    pthread_mutex_unlock(&s->lock);
    return ok ? TN_OK : tn_fail_nomem(err);
}

static bool fits_file(uint64_t offset, uint64_t n)
{
    return offset <= INT64_MAX && n <= INT64_MAX - offset;
}

tn_status tn_sink_write_to(int fd, uint64_t offset, const void *data, size_t n, tn_error *err)
{
    const uint8_t *p = data;
    while (n) {
        ssize_t done = tn_sink_calls.pwrite(fd, p, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        int problem = done < 0 ? errno : EIO;
        if (done <= 0 && problem == EFAULT)
            tn_guard_touch(p, n);       /* a mapped input was truncated: its error is reported instead */
        if (done <= 0)
            return tn_fail_write(err, problem);
        p += done;
        offset += (size_t)done;
        n -= (size_t)done;
    }
    return TN_OK;
}

tn_status tn_sink_write_open(tn_sink *sink, uint64_t offset, const void *data, size_t n, tn_error *err)
{
    return tn_sink_write_to(sink->fd, offset, data, n, err);
}

tn_status tn_sink_write(tn_sink *sink, uint64_t offset, const void *data, size_t n, tn_error *err)
{
    int fd;
    if (!fits_file(offset, n))
        return fail_range(err, offset, n);
    if (sink->out)
        return write_memory(sink, offset, data, n, err);
    if (sink->parts)
        return tn_sink_write_parts(sink, offset, data, n, err);
    TN_TRY(tn_sink_hold(sink, &fd, err));
    atomic_fetch_add(&sink->writing, 1);
    tn_status status = tn_sink_write_open(sink, offset, data, n, err);
    atomic_fetch_sub(&sink->writing, 1);
    if (!status && sink->upload)
        tn_upload_wrote(sink->upload, sink->fd, offset, n);
    tn_sink_release(sink);
    return status;
}

bool tn_sink_is_busy(const tn_sink *sink)
{
    return atomic_load(&sink->writing) > 0;
}

void tn_sink_begin_sync(tn_sink *sink, uint64_t offset, size_t n)
{
    uint64_t from = offset / SYNC_PIECE * SYNC_PIECE, to = (offset + n) / SYNC_PIECE * SYNC_PIECE;
    int fd;
    if (sink->out || sink->parts || to <= from || tn_sink_hold(sink, &fd, NULL) != TN_OK)
        return;
    /* fsync() will say what went wrong */
    (void)sync_file_range(fd, (off_t)from, (off_t)(to - from), SYNC_FILE_RANGE_WRITE);
    tn_sink_release(sink);
}

/* Whether the file is in memory, where nothing is gained by allocating first, and all threads would wait;
 * *room is how many bytes can be written. */
static bool is_in_memory(int fd, uint64_t *room)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC)
        return false;
    *room = fs.f_blocks ? (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize : UINT64_MAX;    /* 0: no limit */
    return true;
}

/* On ext4 allocating first saves 10 % or more. */
tn_status tn_sink_reserve_open(tn_sink *sink, uint64_t size, tn_error *err)
{
    int result;
    uint64_t room;
    if (size <= sink->reserved)
        return TN_OK;
    if (is_in_memory(sink->fd, &room)) {
        if (size - sink->reserved > room)
            return tn_fail_write(err, ENOSPC);
        sink->reserved = size;
        return TN_OK;
    }
    do
        result = tn_sink_calls.fallocate(sink->fd, 0, (off_t)sink->reserved, (off_t)(size - sink->reserved));
    while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return tn_fail_write(err, errno);
    sink->reserved = size;
    return TN_OK;
}

tn_status tn_sink_reserve(tn_sink *sink, uint64_t size, tn_error *err)
{
    int fd;
    if (!fits_file(0, size))
        return fail_range(err, 0, size);
    if (sink->out || sink->parts || size == 0 || tn_sink_set_postpones(sink, size))
        return TN_OK;
    TN_TRY(tn_sink_hold(sink, &fd, err));
    tn_status status = tn_sink_reserve_open(sink, size, err);
    tn_sink_release(sink);
    return status;
}

/* ---- copying ---- */

typedef struct copy {
    tn_sink         *sink;
    const tn_source *source;
    uint64_t         to, from;
    int              to_fd, from_fd;    /* -1: memory */
} copy;

/* Shares whole blocks; false when the file system cannot. */
static bool share(const copy *c, uint64_t n)
{
    struct file_clone_range range = {
        .src_fd = c->from_fd, .src_offset = c->from, .src_length = n, .dest_offset = c->to
    };
    return tn_sink_calls.clone_range(c->to_fd, &range) == 0;
}

/* Copies in the kernel; *n is the rest if that is not possible. */
static tn_status copy_in_kernel(copy *c, uint64_t *n, tn_error *err)
{
    while (*n) {
        off_t from = (off_t)c->from, to = (off_t)c->to;
        size_t piece = *n < (1u << 30) ? (size_t)*n : 1u << 30;
        ssize_t done = tn_sink_calls.copy_file_range(c->from_fd, &from, c->to_fd, &to, piece, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno != EXDEV && errno != ENOSYS && errno != EINVAL && errno != EOPNOTSUPP)
            return tn_fail_write(err, errno);
        if (done <= 0)          /* 0: the source has shrunk, or a file system that does not say no */
            return TN_OK;
        c->from += (size_t)done;
        c->to += (size_t)done;
        *n -= (size_t)done;
    }
    return TN_OK;
}

static tn_status copy_by_hand(copy *c, uint64_t n, tn_error *err)
{
    uint8_t *buffer = malloc(COPY_SIZE);
    tn_status status = buffer ? TN_OK : tn_fail_nomem(err);
    while (n && !status) {
        const uint8_t *bytes;
        size_t piece = n < COPY_SIZE ? (size_t)n : COPY_SIZE;
        status = tn_source_get(c->source, c->from, piece, buffer, &bytes, err);
        if (!status)
            status = tn_sink_write(c->sink, c->to, bytes, piece, err);
        c->from += piece;
        c->to += piece;
        n -= piece;
    }
    free(buffer);
    return status;
}

static tn_status copy_plain(copy *c, uint64_t n, tn_error *err)
{
    tn_status status = TN_OK;
    if (c->to_fd >= 0 && c->from_fd >= 0 && !c->sink->parts)
        status = copy_in_kernel(c, &n, err);
    return status || n == 0 ? status : copy_by_hand(c, n, err);
}

/* How many of n bytes are before the first whole block, and how many in whole blocks: none if the two offsets
 * within a block differ. */
static void find_blocks(const copy *c, uint64_t n, uint64_t *before, uint64_t *blocks)
{
    struct statvfs fs;
    *before = *blocks = 0;
    if (c->to_fd < 0 || c->from_fd < 0 || c->sink->parts || fstatvfs(c->to_fd, &fs) != 0 || fs.f_frsize == 0)
        return;
    uint64_t block = fs.f_frsize;
    if (c->from % block != c->to % block)
        return;
    uint64_t head = (block - c->from % block) % block;
    if (head < n) {
        *before = head;
        *blocks = (n - head) / block * block;
    }
}

static tn_status copy_open(copy *c, uint64_t n, uint64_t *shared, tn_error *err)
{
    uint64_t before, blocks;
    find_blocks(c, n, &before, &blocks);
    TN_TRY(copy_plain(c, before, err));
    if (blocks && share(c, blocks)) {
        c->from += blocks;
        c->to += blocks;
        *shared += blocks;
        before += blocks;
    }
    return copy_plain(c, n - before, err);
}

tn_status tn_sink_copy_range(tn_sink *sink, uint64_t offset, const tn_source *source, uint64_t from,
                             uint64_t n, uint64_t *shared, tn_error *err)
{
    uint64_t size = tn_source_size(source);
    if (from > size || n > size - from)
        return tn_fail_at(err, TN_ERR_TRUNCATED, from, "expected %llu more bytes, found %llu",
                          (unsigned long long)n, (unsigned long long)(from < size ? size - from : 0));
    if (!fits_file(offset, n))
        return fail_range(err, offset, n);
    copy c = { .sink = sink, .source = source, .to = offset, .from = from };
    TN_TRY(tn_sink_hold(sink, &c.to_fd, err));
    tn_status status = tn_source_hold(source, &c.from_fd, err);
    if (!status) {
        status = copy_open(&c, n, shared, err);
        tn_source_release(source);
    }
    if (!status && sink->upload)
        tn_upload_wrote(sink->upload, sink->fd, offset, n);
    tn_sink_release(sink);
    return status;
}

/* ---- the end ---- */

int tn_sink_link(tn_sink *s, int folder, const char *name)
{
    char self[40];
    if (s->shared >= 0)
        return tn_sink_calls.linkat(s->shared, s->shared_name, folder, name, 0);
    snprintf(self, sizeof self, "/proc/self/fd/%d", s->fd);
    return tn_sink_calls.linkat(AT_FDCWD, self, folder, name, AT_SYMLINK_FOLLOW);
}

static int link_as_temp(tn_sink *s)
{
    char temp[TN_TEMPORARY_NAME];
    for (int i = 0; i < MAX_TRIES; i++) {
        if (!tn_temporary_name(temp))
            return -1;
        if (tn_sink_link(s, s->folder, temp) == 0) {
            memcpy(s->temp, temp, sizeof temp);
            return 0;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* NFS has no RENAME_NOREPLACE but has links; FAT has no links but has RENAME_NOREPLACE. */
int tn_rename_if_free(int from_folder, const char *from, int folder, const char *name)
{
    if (tn_sink_calls.renameat2(from_folder, from, folder, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (tn_sink_calls.linkat(from_folder, from, folder, name, 0) != 0)
        return -1;
    unlinkat(from_folder, from, 0);
    return 0;
}

/* Two writers may race for the name: without `replace` the second one fails. */
static tn_status give_name(tn_sink *s, tn_error *err)
{
    if (s->temp[0] == '\0') {
        if (tn_sink_link(s, s->folder, s->name) == 0)
            return TN_OK;
        if (errno == EEXIST && !s->replace)
            return tn_sink_fail_exists(err);
        if (errno != EEXIST || link_as_temp(s) != 0)
            return tn_fail_write(err, errno);
    }
    int result = s->replace ? tn_sink_calls.renameat2(s->folder, s->temp, s->folder, s->name, 0)
                            : tn_rename_if_free(s->folder, s->temp, s->folder, s->name);
    if (result != 0)
        return errno == EEXIST && !s->replace ? tn_sink_fail_exists(err) : tn_fail_write(err, errno);
    if (s->shared >= 0)         /* another was faster: renaming does nothing between names of one file */
        unlinkat(s->folder, s->temp, 0);
    s->temp[0] = '\0';
    return TN_OK;
}

bool tn_sink_is_published(const tn_sink *s)
{
    return s->shared >= 0 && tn_is_named(s->folder, s->name, s->fd);
}

/* Gives the file its name if the file that was read is unchanged. */
tn_status tn_sink_take_place(tn_sink *s, tn_error *err)
{
    int lock = -1;
    tn_status status = TN_OK;
    if (tn_sink_is_published(s))
        return TN_OK;           /* by another process, or by one that was killed then */
    if (s->expects && s->locked)
        status = tn_sink_check(s, err);
    else if (s->expects)
        status = tn_identity_claim(s->folder, s->name, &s->read, &lock, err);
    if (!status)
        status = give_name(s, err);
    if (lock >= 0)
        close(lock);
    return status;
}

int tn_sync_fd(int fd)
{
    int result;
    do
        result = tn_sink_calls.fsync(fd);
    while (result != 0 && errno == EINTR);
    return result;
}

/* The file that has the name now may not be the one from when the sink was opened. */
static tn_status keep_attributes(tn_sink *s, tn_error *err)
{
    struct stat now;
    if (s->replace && fstatat(s->folder, s->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(now.st_mode)) {
        s->exists = true;
        s->old = now;
    }
    if (!s->exists)
        return TN_OK;
    return tn_attributes_keep((tn_replaced){ s->folder, s->name, &s->old }, s->fd, &s->lost, err);
}

void tn_sink_tell(const tn_listener *listener, const tn_lost *lost, const char *what)
{
    char text[sizeof lost->text + 80];
    if (lost->length == 0 || !listener->note)
        return;
    snprintf(text, sizeof text, "replaced, but not all of the old %s could be kept: %s", what, lost->text);
    listener->note(listener->context, listener->path, text);
}

tn_status tn_sink_settle_file(tn_sink *s, uint64_t size, tn_error *err)
{
    if (!fits_file(0, size))
        return fail_range(err, 0, size);
    if (!s->nameless && !s->member.set)         /* members got them when they were created */
        TN_TRY(keep_attributes(s, err));
    if (tn_sink_calls.ftruncate(s->fd, (off_t)size) != 0 || (!s->nameless && tn_sync_fd(s->fd) != 0))
        return tn_fail_write(err, errno);
    return TN_OK;
}

/* A failure here cannot be undone.  EINVAL: the file system does not sync folders. */
tn_status tn_sink_sync_folder(tn_sink *s, tn_error *err)
{
    tn_sink_tell(&s->listener, &s->lost, "file");
    if (tn_sync_fd(s->folder) != 0 && errno != EINVAL)
        return tn_fail_errno(err, errno,
                             "the new file is in its place, but its folder cannot be synced");
    return TN_OK;
}

static tn_status publish_file(tn_sink *s, uint64_t size, tn_error *err)
{
    if (s->parts)
        TN_TRY(tn_sink_share_again(s, err));
    TN_TRY(tn_sink_settle_file(s, size, err));
    if (s->upload)
        return tn_upload_finish(s->upload, s->fd, size, err);
    if (s->nameless)
        return TN_OK;
    tn_publishing_begin();
    tn_status status = tn_sink_take_place(s, err);
    tn_publishing_end();
    return status ? status : tn_sink_sync_folder(s, err);
}

static tn_status publish_memory(tn_sink *s, uint64_t size, tn_error *err)
{
    if (!extend_memory(&s->bytes, size))
        return tn_fail_nomem(err);
    s->bytes.size = (size_t)size;
    *s->out = s->bytes;
    s->bytes = (tn_buf){ 0 };
    return TN_OK;
}

int tn_sink_fd(const tn_sink *sink) { return sink->fd; }

/* One of several processes has it open for writing only. */
static int open_shared(const tn_sink *s)
{
    if (s->member.set)
        return tn_sink_open_member(s);
    return openat(s->shared, s->shared_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

tn_status tn_sink_read_back(tn_sink *sink, tn_source **source, tn_error *err)
{
    bool is_shared = sink->shared >= 0 || tn_sink_is_shared_member(sink);
    int fd = -1;
    TN_TRY(tn_sink_hold(sink, &fd, err));
    int own = is_shared ? open_shared(sink) : fd;
    tn_status status = own < 0 ? tn_fail_errno(err, errno, "cannot open a file of the work folder")
                               : tn_source_open_fd(own, TN_IO_PREAD, source, err);
    if (own >= 0 && is_shared)
        close(own);
    tn_sink_release(sink);
    return status;
}

void tn_sink_free(tn_sink *sink)
{
    free(sink->name);
    free(sink->parts);
    tn_buf_free(&sink->bytes);
    pthread_mutex_destroy(&sink->lock);
    free(sink);
}

tn_status tn_sink_publish(tn_sink *sink, uint64_t size, tn_error *err)
{
    tn_status status = fits_file(0, size) ? TN_OK : fail_range(err, 0, size);
    if (!status)
        status = sink->out ? publish_memory(sink, size, err) : publish_file(sink, size, err);
    tn_sink_abandon(sink);      /* frees it; the published bytes are not its own any more */
    return status;
}

void tn_sink_abandon(tn_sink *sink)
{
    if (!sink)
        return;
    if (sink->member.set) {
        tn_sink_drop_member(sink);
        return;
    }
    tn_upload_close(sink->upload);
    tn_leftover_remove(&sink->leftover);
    if (sink->temp[0] != '\0')
        unlinkat(sink->folder, sink->temp, 0);      /* while it is locked */
    if (sink->fd >= 0)
        close(sink->fd);
    if (sink->folder != AT_FDCWD)
        close(sink->folder);
    if (sink->shared >= 0)
        close(sink->shared);
    if (sink->own >= 0)
        close(sink->own);
    tn_sink_free(sink);
}
