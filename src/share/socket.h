/* share/socket.h - one packet with at most one descriptor over a Unix domain
 * socket (SOCK_SEQPACKET), and who is at the other end.
 *
 * Nothing here blocks but tn_socket_connect() and tn_socket_wait(), and those
 * no longer than they are told, and tn_socket_rest().  Every descriptor is close-on-exec. */
#ifndef TN_SHARE_SOCKET_H
#define TN_SHARE_SOCKET_H

#include "base/error.h"
#include "base/sealed.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The system calls in one table, so that tests can make each of them fail. */
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

/* Milliseconds of a clock that only goes forward. */
int64_t tn_clock(void);

/* The path of a socket as an address.  TN_ERR_ARGUMENT: it is empty or too long. */
tn_status tn_socket_address(const char *path, struct sockaddr_un *address, tn_error *err);

/* ---- a place to listen ---- */

typedef struct tn_place {
    int         fd;             /* listening, non-blocking */
    int         folder;         /* that the socket stands in */
    const char *name;           /* in it; part of the path that was given */
    struct stat own;            /* of the socket: to see whether it still is there */
    pid_t       pid;            /* whose it is: not a child's */
} tn_place;

/* Binds `path`, which must stay, with the permissions `mode`, and listens.  A
 * socket that nobody listens on is replaced.  TN_ERR_EXISTS, TN_ERR_ARGUMENT (the
 * path is empty or too long), TN_ERR_IO. */
tn_status tn_place_open(const char *path, mode_t mode, tn_place *place, tn_error *err);

/* Removes the socket unless another stands there by now, or this is a child of the process that made it. */
void tn_place_close(tn_place *place);

/* ---- both ends ---- */

/* TN_ERR_IO: nobody listens there, or takes us in before the deadline. */
tn_status tn_socket_connect(const char *path, int64_t deadline, int *fd, tn_error *err);

/* Who was there when the connection was made, as the kernel says. */
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

/* Whether the peer is in one of these groups, by its primary or any other. */
bool tn_socket_peer_in(int fd, const tn_peer *peer, const uint32_t *gids, size_t n);

/* Whether the peer has not yet read all that was sent. */
bool tn_socket_unread(int fd);

typedef enum tn_moved {
    TN_MOVED_DONE,
    TN_MOVED_LATER,             /* the socket is not ready: poll() says when */
    TN_MOVED_SHORT,             /* the system is short of something: try again in a while */
    TN_MOVED_CLOSED             /* the peer is gone */
} tn_moved;

/* Sends one packet, with a descriptor unless it is -1. */
tn_status tn_socket_send(int fd, const void *bytes, size_t n, int descriptor, tn_moved *moved, tn_error *err);

/* Receives one packet of at most `cap` bytes.  `descriptor` NULL: none may come
 * with it; else it gets the one that did, or -1.  A packet without bytes counts as
 * the end, and may have a descriptor all the same.  TN_ERR_LIMIT: a packet that is longer,
 * or has more descriptors: they are closed.  TN_ERR_IO: this process can have no more. */
tn_status tn_socket_receive(int fd, void *bytes, size_t cap, size_t *n, int *descriptor, tn_moved *moved,
                            tn_error *err);

/* Whether a packet is there that can be received.  Nothing of it is. */
bool tn_socket_has_packet(int fd);

/* Waits for `events` until the deadline.  TN_ERR_IO: it passed. */
tn_status tn_socket_wait(int fd, short events, int64_t deadline, tn_error *err);

/* Waits a few milliseconds: what the system was short of may be there then. */
void tn_socket_rest(void);

#endif
