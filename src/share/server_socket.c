/* share/server_socket.c - a socket in the file system: bind it, replace a stale one, remove it. */
#include "share/socket.h"
#include "base/text.h"
#include "bytes/identity.h"
#include "bytes/place.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    BACKLOG      = 4096,        /* the kernel lowers it to its limit */
    LOCK_SECONDS = 1
};

static tn_status enter_folder(tn_server_socket *p, const char *path, struct sockaddr_un *address,
                              tn_error *err)
{
    char folder[PATH_MAX];
    TN_TRY(tn_socket_address(path, address, err));
    tn_folder_of(path, folder);         /* fits: an address is shorter */
    p->name = tn_base_name(path);
    p->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->folder < 0 && errno == EACCES)       /* may be entered, but not listed */
        p->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return p->folder < 0 ? tn_fail_errno(err, errno, "cannot open its folder") : TN_OK;
}

static bool is_socket(const tn_server_socket *p)
{
    struct stat st;
    return fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

/* Whether there is a socket that nobody listens on. */
static bool is_stale(const tn_server_socket *p, const struct sockaddr_un *address)
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

static tn_status bind_socket(tn_server_socket *p, const struct sockaddr_un *address, mode_t mode,
                             tn_error *err)
{
    const struct sockaddr *any = (const struct sockaddr *)address;
    if (fchmod(p->fd, mode) != 0)       /* what bind() gives it, less the umask */
        return tn_fail_errno(err, errno, "cannot set the permissions of a socket");
    int problem = tn_socket_calls.bind(p->fd, any, sizeof *address) == 0 ? 0 : errno;
    if (problem == EADDRINUSE && is_stale(p, address) && unlinkat(p->folder, p->name, 0) == 0)
        problem = tn_socket_calls.bind(p->fd, any, sizeof *address) == 0 ? 0 : errno;
    if (problem == EADDRINUSE)
        return tn_fail(err, TN_ERR_EXISTS, is_socket(p) ? "another process listens there already"
                       : "already exists and is not a socket");
    return problem ? tn_fail_errno(err, problem, "cannot bind a socket") : TN_OK;
}

/* Nobody can connect before listen(), so all of this is set before the first client. */
static tn_status open_up(tn_server_socket *p, mode_t mode, tn_error *err)
{
    if (fstatat(p->folder, p->name, &p->own, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(p->own.st_mode))
        return tn_fail(err, TN_ERR_IO, "the socket was removed while it was made");
    if ((p->own.st_mode & 0777) != mode && fchmodat(p->folder, p->name, mode, AT_SYMLINK_NOFOLLOW) != 0)
        return tn_fail_errno(err, errno, "cannot set the permissions of a socket");
    if (tn_socket_calls.listen(p->fd, BACKLOG) != 0)
        return tn_fail_errno(err, errno, "cannot listen");
    return TN_OK;
}

tn_status tn_server_socket_open(const char *path, mode_t mode, tn_server_socket *socket, tn_error *err)
{
    struct sockaddr_un address;
    tn_server_socket own = { .fd = -1, .folder = -1, .pid = getpid() };
    tn_status status = enter_folder(&own, path, &address, err);
    if (status)
        return status;
    own.fd = tn_socket_calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (own.fd < 0)
        status = tn_fail_errno(err, errno, "cannot make a socket");
    /* Two processes that find the same stale socket must not both replace it.  Without a lock they may. */
    bool locked = tn_identity_lock(own.folder, LOCK_SECONDS) == TN_LOCK_HELD;
    if (!status)
        status = bind_socket(&own, &address, mode, err);
    if (!status)
        status = open_up(&own, mode, err);
    if (locked)
        flock(own.folder, LOCK_UN);
    if (status)
        tn_server_socket_close(&own);
    else
        *socket = own;
    return status;
}

void tn_server_socket_close(tn_server_socket *p)
{
    struct stat st;
    if (p->own.st_ino && p->pid == getpid() && fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        tn_same_file(&st, &p->own))
        unlinkat(p->folder, p->name, 0);
    if (p->fd >= 0)
        close(p->fd);
    if (p->folder >= 0)
        close(p->folder);
    *p = (tn_server_socket){ .fd = -1, .folder = -1 };
}
