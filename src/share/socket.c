/* share/socket.c - packets with descriptors, deadlines, credentials. */
#include "share/socket.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS           /* Linux 4.13 */
#define SO_PEERGROUPS 59
#endif

/* glibc declares these with other parameter types. */
static int bind_to(int fd, const struct sockaddr *address, socklen_t n)    { return bind(fd, address, n); }
static int connect_to(int fd, const struct sockaddr *address, socklen_t n) { return connect(fd, address, n); }

static int get_option(int fd, int level, int name, void *value, socklen_t *n)
{
    return getsockopt(fd, level, name, value, n);
}

static int accept_from(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
    return accept4(fd, address, n, flags);
}

struct tn_socket_calls tn_socket_calls = {
    .socket = socket,
    .bind = bind_to,
    .listen = listen,
    .connect = connect_to,
    .accept4 = accept_from,
    .getsockopt = get_option,
    .setsockopt = setsockopt,
    .sendmsg = sendmsg,
    .recvmsg = recvmsg,
    .poll = poll,
};

int64_t tn_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- connecting ---- */

tn_status tn_socket_address(const char *path, struct sockaddr_un *address, tn_error *err)
{
    size_t n = strlen(path);
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (n == 0 || n >= sizeof address->sun_path)
        return tn_fail(err, TN_ERR_ARGUMENT, "a path of %zu bytes: expected 1 to %zu for a socket", n,
                       sizeof address->sun_path - 1);
    memcpy(address->sun_path, path, n);
    return TN_OK;
}

/* How long a blocking connect() may wait for a place in the listener's queue. */
static bool set_patience(int fd, int64_t deadline)
{
    int64_t left = deadline - tn_clock();
    left = left < 1 ? 1 : left;
    struct timeval time = { .tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 };
    return tn_socket_calls.setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0;
}

static int connect_in_time(int fd, const struct sockaddr_un *address, int64_t deadline)
{
    int result;
    do {
        if (!set_patience(fd, deadline))
            return -1;
        result = tn_socket_calls.connect(fd, (const struct sockaddr *)address, sizeof *address);
    } while (result != 0 && errno == EINTR);
    return result;
}

static tn_status fail_connect(const char *path, int problem, tn_error *err)
{
    struct stat st;
    if (problem == EAGAIN)
        return tn_fail(err, TN_ERR_IO, "cannot attach: the connection was not accepted in time");
    if (problem == ECONNREFUSED && stat(path, &st) == 0)
        return tn_fail(err, TN_ERR_IO, S_ISSOCK(st.st_mode)
                       ? "cannot attach: no process offers at this socket any more"
                       : "cannot attach: it is not a socket");
    return tn_fail_errno(err, problem, "cannot attach");
}

tn_status tn_socket_connect(const char *path, int64_t deadline, int *fd, tn_error *err)
{
    struct sockaddr_un address;
    TN_TRY(tn_socket_address(path, &address, err));
    int own = tn_socket_calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (own < 0)
        return tn_fail_errno(err, errno, "cannot make a socket");
    if (connect_in_time(own, &address, deadline) != 0) {
        int problem = errno;
        close(own);
        return fail_connect(path, problem, err);
    }
    *fd = own;
    return TN_OK;
}

/* ---- who it is ---- */

tn_status tn_socket_peer(int fd, tn_peer *peer, tn_error *err)
{
    struct ucred who;
    socklen_t n = sizeof who;
    if (tn_socket_calls.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0 || n != sizeof who)
        return tn_fail_errno(err, errno, "cannot see who is at the other end");
    *peer = (tn_peer){ .uid = who.uid, .gid = who.gid, .pid = who.pid };
    return TN_OK;
}

bool tn_socket_peer_in(int fd, const tn_peer *peer, const uint32_t *gids, size_t n)
{
    if (n == 0 || tn_is_among(peer->gid, gids, n))
        return n != 0;
    socklen_t size = NGROUPS_MAX * sizeof(gid_t);
    gid_t *groups = malloc(size);
    bool found = false;
    if (groups && tn_socket_calls.getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
        for (size_t i = 0; i < size / sizeof *groups && !found; i++)
            found = tn_is_among(groups[i], gids, n);
    free(groups);
    return found;
}

bool tn_socket_unread(int fd)
{
    int bytes = 0;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/* ---- packets ---- */

/* Classifies a failed sendmsg() or recvmsg(); anything else is an error. */
static tn_status judge(int problem, const char *what, tn_moved *moved, tn_error *err)
{
    switch (problem) {
    case EAGAIN:
    case EINTR:
        *moved = TN_MOVED_LATER;
        return TN_OK;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
        *moved = TN_MOVED_CLOSED;
        return TN_OK;
    case ETOOMANYREFS:          /* too many descriptors of this user on their way */
    case ENOBUFS:
    case ENOMEM:
        *moved = TN_MOVED_SHORT;
        return TN_OK;
    default:
        return tn_fail_errno(err, problem, what);
    }
}

tn_status tn_socket_send(int fd, const void *bytes, size_t n, int descriptor, tn_moved *moved, tn_error *err)
{
    union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control = { .bytes = { 0 } };
    struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    }
    *moved = TN_MOVED_DONE;
    if (tn_socket_calls.sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return judge(errno, "cannot send", moved, err);
    return TN_OK;               /* a packet is sent whole or not at all */
}

/* *descriptor is the first descriptor that came; others are closed and counted. */
static size_t take_descriptors(struct msghdr *message, int *descriptor)
{
    size_t count = 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int one;
            memcpy(&one, CMSG_DATA(head) + i * sizeof one, sizeof one);
            if (count++ == 0)
                *descriptor = one;
            else
                close(one);
        }
    }
    return count;
}

static tn_status none_left(tn_error *err)
{
    struct rlimit most = { 0 };
    getrlimit(RLIMIT_NOFILE, &most);
    return tn_fail(err, TN_ERR_IO, "cannot take another descriptor: this process may have %llu (ulimit -n)",
                   (unsigned long long)most.rlim_cur);
}

tn_status tn_socket_receive(int fd, void *bytes, size_t cap, size_t *n, int *descriptor, tn_moved *moved,
                            tn_error *err)
{
    union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control = { .bytes = { 0 } };
    struct iovec part = { .iov_base = bytes, .iov_len = cap };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    int own = -1;
    if (descriptor) {           /* without a buffer the kernel drops all descriptors */
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
    }
    *moved = TN_MOVED_DONE;
    ssize_t got = tn_socket_calls.recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0)
        return judge(errno, "cannot receive", moved, err);
    size_t count = descriptor ? take_descriptors(&message, &own) : 0;
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || count > 1) {
        if (own >= 0)
            close(own);
        if (message.msg_flags & MSG_TRUNC)
            return tn_fail(err, TN_ERR_LIMIT, "a packet of more than %zu bytes", cap);
        if (descriptor && own < 0)      /* the kernel could not install the descriptor */
            return none_left(err);
        return tn_fail(err, TN_ERR_LIMIT, "a packet with more descriptors than the %d expected",
                       descriptor ? 1 : 0);
    }
    if (got == 0)
        *moved = TN_MOVED_CLOSED;
    if (descriptor)
        *descriptor = own;
    *n = (size_t)got;
    return TN_OK;
}

bool tn_socket_has_packet(int fd)
{
    char ignored;
    struct iovec part = { .iov_base = &ignored, .iov_len = 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    return tn_socket_calls.recvmsg(fd, &message, MSG_DONTWAIT | MSG_PEEK) > 0;
}

tn_status tn_socket_wait(int fd, short events, int64_t deadline, tn_error *err)
{
    struct pollfd poll_fd = { .fd = fd, .events = events };
    for (;;) {
        int64_t left = deadline - tn_clock();
        if (left <= 0)
            return tn_fail(err, TN_ERR_IO, "the other end does not answer");
        int ready = tn_socket_calls.poll(&poll_fd, 1, left < INT_MAX ? (int)left : INT_MAX);
        if (ready > 0)
            return TN_OK;
        if (ready < 0 && errno != EINTR)
            return tn_fail_errno(err, errno, "cannot wait for the other end");
    }
}

void tn_socket_rest(void)
{
    tn_socket_calls.poll(NULL, 0, 5);
}
