/* share/socket.h - packets with at most one descriptor over Unix domain sockets (SOCK_SEQPACKET), and the
 * identity of the peer.
 *
 * Only tn_socket_connect() and tn_socket_wait() block, until their deadline, and tn_socket_rest().  Every
 * descriptor is close-on-exec. */
#ifndef TN_SHARE_SOCKET_H
#define TN_SHARE_SOCKET_H

#include "base/error.h"
#include "base/sealed.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The system calls, in a table so that tests can make each of them fail. */
struct tn_socket_calls {
    int     (*socket)(int domain, int type, int protocol);
    int     (*bind)(int fd, const struct sockaddr *address, socklen_t n);
    int     (*listen)(int fd, int backlog);
    int     (*connect)(int fd, const struct sockaddr *address, socklen_t n);
    int     (*accept4)(int fd, struct sockaddr *address, socklen_t *n, int flags);
    int     (*getsockopt)(int fd, int level, int name, void *value, socklen_t *n);
    int     (*setsockopt)(int fd, int level, int name, const void *value, socklen_t n);
    ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);
    ssize_t (*recvmsg)(int fd, struct msghdr *message, int flags);
    int     (*poll)(struct pollfd *fds, nfds_t n, int timeout);
};

/* Changed by tests only, and only while nobody uses sockets. */
extern TN_RELRO struct tn_socket_calls tn_socket_calls;

/* Milliseconds of the monotonic clock. */
int64_t tn_clock(void);

/* The path of a socket as an address.  TN_ERR_ARGUMENT: it is empty or too long. */
tn_status tn_socket_address(const char *path, struct sockaddr_un *address, tn_error *err);

/* ---- listening ---- */

typedef struct tn_server_socket {
    int         fd;             /* listening, non-blocking */
    int         folder;         /* of the socket */
    const char *name;           /* in the folder; part of the caller's path */
    struct stat own;            /* of the socket, to see whether it was replaced */
    pid_t       pid;            /* of the process that created it; a child does not remove it */
} tn_server_socket;

/* Binds `path` (borrowed) with the permissions `mode`, and listens.  A socket that no process listens on is
 * replaced.  TN_ERR_EXISTS, TN_ERR_ARGUMENT (the path is empty or too long), TN_ERR_IO. */
tn_status tn_server_socket_open(const char *path, mode_t mode, tn_server_socket *socket, tn_error *err);

/* Closes the socket and removes it, unless another has replaced it or this is a child process. */
void tn_server_socket_close(tn_server_socket *socket);

/* ---- both ends ---- */

/* TN_ERR_IO: no process listens there, or none accepts before the deadline. */
tn_status tn_socket_connect(const char *path, int64_t deadline, int *fd, tn_error *err);

/* The peer when it connected, according to the kernel. */
typedef struct tn_peer {
    uint32_t uid, gid;
    int32_t  pid;
} tn_peer;
tn_status tn_socket_peer(int fd, tn_peer *peer, tn_error *err);

static inline bool tn_is_among(uint32_t id, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Whether one of these groups is the peer's primary or supplementary group. */
bool tn_socket_peer_in(int fd, const tn_peer *peer, const uint32_t *gids, size_t n);

/* Whether the peer has unread packets. */
bool tn_socket_unread(int fd);

typedef enum tn_moved {
    TN_MOVED_DONE,
    TN_MOVED_LATER,             /* not ready: use poll() */
    TN_MOVED_SHORT,             /* the system is out of a resource: retry later */
    TN_MOVED_CLOSED             /* the peer has closed the connection */
} tn_moved;

/* Sends one packet, with a descriptor unless it is -1. */
tn_status tn_socket_send(int fd, const void *bytes, size_t n, int descriptor, tn_moved *moved, tn_error *err);

/* Receives one packet of at most `cap` bytes.  *descriptor is the one that came with it, or -1; NULL: none is
 * accepted.  A packet without bytes is the end, but may have a descriptor.  TN_ERR_LIMIT: the packet is
 * longer or has more descriptors, which are closed.  TN_ERR_IO: this process cannot open more descriptors. */
tn_status tn_socket_receive(int fd, void *bytes, size_t cap, size_t *n, int *descriptor, tn_moved *moved,
                            tn_error *err);

/* Whether a packet can be received.  Does not take it. */
bool tn_socket_has_packet(int fd);

/* Waits for `events`.  TN_ERR_IO: the deadline has passed. */
tn_status tn_socket_wait(int fd, short events, int64_t deadline, tn_error *err);

/* Waits a few milliseconds after a shortage. */
void tn_socket_rest(void);

#endif
