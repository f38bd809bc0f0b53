/* bytes/identity.c - which file was read, and whether it is still there. */
#include "bytes/identity.h"
#include "bytes/sink_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    WAIT_SECONDS = 10,          /* for a lock that others hold while they rename and sync */
    FIRST_NAP    = 1 << 20,     /* nanoseconds */
    LAST_NAP     = 1 << 25
};

tn_identity tn_identity_of(const struct stat *st)
{
    return (tn_identity){
        .device = st->st_dev, .inode = st->st_ino, .size = st->st_size,
        .modified = st->st_mtim, .changed = st->st_ctim,
    };
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool tn_identity_same_file(const tn_identity *a, const tn_identity *b)
{
    return a->device == b->device && a->inode == b->inode;
}

bool tn_identity_unchanged(const tn_identity *a, const tn_identity *b)
{
    return tn_identity_same_file(a, b) && a->size == b->size && same_time(a->modified, b->modified) &&
           same_time(a->changed, b->changed);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Polls, because waiting in the kernel has no time limit. */
tn_lock tn_identity_lock(int fd, unsigned seconds)
{
    double end = now() + seconds;
    long nap = FIRST_NAP;
    while (tn_sink_calls.flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return TN_LOCK_NONE;
        if (now() >= end)
            return TN_LOCK_BUSY;
        nanosleep(&(struct timespec){ .tv_nsec = nap }, NULL);
        if (nap < LAST_NAP)
            nap *= 2;
    }
    return TN_LOCK_HELD;
}

bool tn_identity_is_locked(int fd)
{
    return tn_sink_calls.flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

static tn_status fail_changed(tn_error *err)
{
    return tn_fail(err, TN_ERR_CHANGED, "has changed since it was read: it is not replaced; try again");
}

tn_status tn_identity_check(int folder, const char *name, const tn_identity *read, tn_error *err)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return fail_changed(err);
    tn_identity found = tn_identity_of(&st);
    return tn_identity_unchanged(&found, read) ? TN_OK : fail_changed(err);
}

tn_status tn_identity_claim(int folder, const char *name, const tn_identity *read, int *lock, tn_error *err)
{
    *lock = -1;
    tn_status status = tn_identity_check(folder, name, read, err);
    if (status)
        return status;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    tn_lock got = fd >= 0 ? tn_identity_lock(fd, WAIT_SECONDS) : TN_LOCK_NONE;
    if (got == TN_LOCK_BUSY)
        status = tn_fail(err, TN_ERR_IO,
                         "is locked by another program, for more than %d seconds: it is not replaced",
                         WAIT_SECONDS);
    else                        /* it may have changed while we waited */
        status = tn_identity_check(folder, name, read, err);
    if (status && fd >= 0)
        close(fd);
    else
        *lock = fd;
    return status;
}
