/* share/place.c - a socket in the file system: bound, found stale, removed. */
#include "share/socket.h"
#include "bytes/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    BACKLOG    = 4096,          /* the kernel takes as many of them as it allows */
    LOCK_TRIES = 100            /* of 10 ms */
};

/* The folder of `path`, where the name in it begins, and the path as an address. */
static tn_status enter_folder(tn_place *p, const char *path, struct sockaddr_un *address, tn_error *err)
{
    const char *slash = strrchr(path, '/');
    char folder[sizeof address->sun_path] = ".";
    tn_status status = tn_socket_address(path, address, err);
    if (status)
        return status;
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    p->name = slash ? slash + 1 : path;
    p->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->folder < 0 && errno == EACCES)       /* may be entered, but not listed */
        p->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return p->folder < 0 ? tn_fail_errno(err, errno, "cannot open its folder") : TN_OK;
}

/* Two processes that find the same stale socket must not both replace it: one would
 * remove the other's.  A folder that somebody else keeps locked, or that cannot
 * be, is used without: then that may happen. */
static bool lock_folder(int folder)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    return false;
}

static bool is_socket(const tn_place *p)
{
    struct stat st;
    return fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

/* Whether there is a socket that nobody listens on. */
static bool is_stale(const tn_place *p, const struct sockaddr_un *address)
{
    if (!is_socket(p))
        return false;
    int fd = tn_socket_calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool stale = tn_socket_calls.connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                 errno == ECONNREFUSED;
    close(fd);
    return stale;
}

static tn_status bind_place(tn_place *p, const struct sockaddr_un *address, mode_t mode, tn_error *err)
{
    const struct sockaddr *any = (const struct sockaddr *)address;
    if (fchmod(p->fd, mode) != 0)       /* what bind() gives it, less the umask */
        return tn_fail_errno(err, errno, "cannot set the permissions of a socket");
    int problem = tn_socket_calls.bind(p->fd, any, sizeof *address) == 0 ? 0 : errno;
    if (problem == EADDRINUSE && is_stale(p, address) && unlinkat(p->folder, p->name, 0) == 0)
        problem = tn_socket_calls.bind(p->fd, any, sizeof *address) == 0 ? 0 : errno;
    if (problem == EADDRINUSE)
        return tn_fail(err, TN_ERR_EXISTS, is_socket(p) ? "somebody listens there already"
                       : "something else than a socket stands there already");
    return problem ? tn_fail_errno(err, problem, "cannot bind a socket") : TN_OK;
}

/* Nobody can connect before listen(), so all of this is set before the first client. */
static tn_status open_up(tn_place *p, mode_t mode, tn_error *err)
{
    if (fstatat(p->folder, p->name, &p->own, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(p->own.st_mode))
        return tn_fail(err, TN_ERR_IO, "the socket was removed while it was made");
    if ((p->own.st_mode & 0777) != mode && fchmodat(p->folder, p->name, mode, AT_SYMLINK_NOFOLLOW) != 0)
        return tn_fail_errno(err, errno, "cannot set the permissions of a socket");
    if (tn_socket_calls.listen(p->fd, BACKLOG) != 0)
        return tn_fail_errno(err, errno, "cannot listen");
    return TN_OK;
}

tn_status tn_place_open(const char *path, mode_t mode, tn_place *place, tn_error *err)
{
    struct sockaddr_un address;
    tn_place own = { .fd = -1, .folder = -1, .pid = getpid() };
    tn_status status = enter_folder(&own, path, &address, err);
    if (status)
        return status;
    own.fd = tn_socket_calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (own.fd < 0)
        status = tn_fail_errno(err, errno, "cannot make a socket");
    bool locked = lock_folder(own.folder);
    if (!status)
        status = bind_place(&own, &address, mode, err);
    if (!status)
        status = open_up(&own, mode, err);
    if (locked)
        flock(own.folder, LOCK_UN);
    if (status)
        tn_place_close(&own);
    else
        *place = own;
    return status;
}

void tn_place_close(tn_place *p)
{
    struct stat st;
    if (p->own.st_ino && p->pid == getpid() && fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        tn_same_file(&st, &p->own))
        unlinkat(p->folder, p->name, 0);
    if (p->fd >= 0)
        close(p->fd);
    if (p->folder >= 0)
        close(p->folder);
    *p = (tn_place){ .fd = -1, .folder = -1 };
}
