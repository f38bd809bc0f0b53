/* share/server.c - one thread that answers many clients and blocks on none.
 *
 * A client has a time limit to its first packet and another to its last; then its connection is closed.
 * Nothing is kept about clients that have received everything.
 *
 * An honest client sends as soon as it is connected.  So each user may have only a few silent connections at
 * a time.  Beyond that the oldest are closed, and a client behind thousands of them waits a second at most.
 *
 * Descriptors that were sent and not read count against this user, and the kernel limits them.  So each
 * client has at most one on its way: it asks for each item after it has read the one before.  Another user
 * that leaves one unread keeps its place, one of the few it may have, until it hangs up. */
#include "share/server.h"
#include "base/error.h"
#include "share/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    STOP, LISTEN, FIRST_CLIENT,         /* of tn_offer.polls */
    AT_A_TIME = 16,             /* clients accepted before others are served */
    RETRY     = 20,             /* milliseconds to wait when descriptors or memory run out */
    PART      = 4,              /* another user gets at most one in 4 connections */
    SILENT    = 8,              /* silent connections of one user are at most one in 8... */
    YOUNG     = 10,             /* ...and each stays at least this many milliseconds */
    FIRST     = 1000,           /* milliseconds to the first packet */
    A_SECOND  = 1000            /* between two lines of the log about silent connections */
};

void tn_offer_say(const tn_offer *o, const char *format, ...)
{
    char text[600];
    va_list args;
    if (!o->options.log)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    o->options.log(o->options.context, text);
}

static void forget(tn_offer *o, size_t i)
{
    close(o->clients[i].fd);
    o->clients[i] = o->clients[--o->nclients];
    o->no_room_until = 0;
}

/* ---- accepting ---- */

static bool may_attach(const tn_offer *o, int fd, const tn_peer *peer)
{
    return peer->uid == o->uid || tn_is_among(peer->uid, o->uids, o->options.nuids) ||
           tn_socket_peer_in(fd, peer, o->gids, o->options.ngids);
}

/* Whether this user, or all other users together, have the most connections they may have.  The rest is
 * reserved for the server's own user. */
static bool is_crowded(const tn_offer *o, const tn_peer *peer)
{
    size_t same = 0, others = 0, part = o->options.max_clients / PART;
    for (size_t i = 0; i < o->nclients; i++) {
        same += o->clients[i].peer.uid == peer->uid;
        others += o->clients[i].peer.uid != o->uid;
    }
    return peer->uid != o->uid && (same > part || others >= o->options.max_clients - part);
}

/* Sends the reason if the socket takes it without blocking.  Then reads what the client sent: closing a
 * socket with unread data would discard the answer. */
static void refuse(const tn_offer *o, int fd, const tn_peer *peer, const char *what)
{
    char why[100], ignored[64];
    tn_buf packet = { 0 };
    tn_moved moved;
    size_t n;
    snprintf(why, sizeof why, "user %" PRIu32 " %s", peer->uid, what);
    if (!tn_wire_encode(&(tn_wire){ .kind = TN_WIRE_REFUSED, .why = why }, &packet, NULL))
        tn_socket_send(fd, packet.data, packet.size, -1, &moved, NULL);
    tn_buf_free(&packet);
    shutdown(fd, SHUT_RD);
    for (int i = 0; i < AT_A_TIME; i++)
        if (tn_socket_receive(fd, ignored, sizeof ignored, &n, NULL, &moved, NULL) == TN_OK &&
            moved != TN_MOVED_DONE)
            break;
    tn_offer_say(o, "refused process %" PRId32 ": %s", peer->pid, why);
    close(fd);
}

static bool has_spoken(int fd)
{
    struct pollfd heard = { .fd = fd, .events = POLLIN };
    return tn_socket_calls.poll(&heard, 1, 0) > 0;
}

/* Closes silently: an honest client that was too slow connects again.  There may be
 * thousands of them, and strangers must not fill the log. */
static void evict(tn_offer *o, size_t i, int64_t now)
{
    uint32_t uid = o->clients[i].peer.uid;
    forget(o, i);
    o->evicted++;
    if (now - o->told < A_SECOND)
        return;
    tn_offer_say(o, "user %" PRIu32 " has too many connections here that say nothing: %zu closed", uid,
                 o->evicted);
    o->evicted = 0;
    o->told = now;
}

static bool is_silent(const tn_client *c) { return !c->greeted && !c->debtor; }

/* Counts the silent connections of this user and finds the oldest. */
static size_t count_silent(const tn_offer *o, uint32_t uid, size_t *oldest)
{
    size_t n = 0;
    for (size_t i = 0; i < o->nclients; i++) {
        const tn_client *c = &o->clients[i];
        if (is_silent(c) && c->peer.uid == uid && (n++ == 0 || c->since < o->clients[*oldest].since))
            *oldest = i;
    }
    return n;
}

/* Closes the oldest silent connections of this user beyond its limit.  If the oldest is
 * too new to be closed, nobody is accepted until it may be. */
static void thin_out(tn_offer *o, uint32_t uid)
{
    size_t most = o->options.max_clients / SILENT, oldest = 0;
    int64_t now = tn_clock();
    while (count_silent(o, uid, &oldest) > (most ? most : 1)) {
        const tn_client *c = &o->clients[oldest];
        bool young = now - c->since < YOUNG;
        if (young || has_spoken(c->fd)) {
            o->no_room_until = young ? c->since + YOUNG : now + 1;
            return;
        }
        evict(o, oldest, now);
    }
}

static void take_in(tn_offer *o, int fd)
{
    tn_client c = { .fd = fd, .since = tn_clock() };
    c.deadline = c.since + (o->options.patience < FIRST ? o->options.patience : FIRST);
    if (tn_socket_peer(fd, &c.peer, NULL) != TN_OK) {
        close(fd);
    } else if (!may_attach(o, fd, &c.peer)) {
        refuse(o, fd, &c.peer, "may not attach here");
    } else if (is_crowded(o, &c.peer)) {
        refuse(o, fd, &c.peer, "has, or others have, too many connections here");
    } else {
        o->clients[o->nclients++] = c;
        thin_out(o, c.peer.uid);
    }
}

static bool is_short(int problem)
{
    return problem == EMFILE || problem == ENFILE || problem == ENOBUFS || problem == ENOMEM;
}

static bool has_room(const tn_offer *o, int64_t now)
{
    return o->nclients < o->options.max_clients && now >= o->no_room_until;
}

static tn_status accept_some(tn_offer *o, tn_error *err)
{
    for (int i = 0; i < AT_A_TIME && has_room(o, tn_clock()); i++) {
        int fd = tn_socket_calls.accept4(o->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            take_in(o, fd);
        } else if (is_short(errno)) {
            tn_offer_say(o, "no clients are accepted for a while: %s", strerror(errno));
            o->no_room_until = tn_clock() + RETRY;
            return TN_OK;
        } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
            return tn_fail_errno(err, errno, "cannot accept");
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return TN_OK;       /* EAGAIN, or the connection failed while it was accepted */
        }
    }
    return TN_OK;
}

/* ---- answering ---- */

/* Reads HELLO, later NEXT.  False: the connection is finished or failed. */
static bool listen_to(const tn_offer *o, tn_client *c)
{
    uint8_t bytes[256];
    size_t n;
    tn_moved moved;
    tn_arena arena = { 0 };
    tn_wire said = { 0 };
    tn_wire_kind expected = c->greeted ? TN_WIRE_NEXT : TN_WIRE_HELLO;
    tn_error err = { .text = "" };
    tn_status status = tn_socket_receive(c->fd, bytes, sizeof bytes, &n, NULL, &moved, &err);
    if (!status && moved == TN_MOVED_CLOSED)
        return false;
    if (!status && moved != TN_MOVED_DONE)
        return true;
    if (!status)
        status = tn_wire_decode(bytes, n, 0, &arena, &said, &err);
    if (!status && said.kind != expected)
        status = tn_fail_at(&err, TN_ERR_CORRUPT, 6, "expected kind %d but found %d", (int)expected,
                            (int)said.kind);
    if (!status && tn_socket_unread(c->fd))
        status = tn_fail(&err, TN_ERR_CORRUPT, "asks for more without having read the last packet");
    if (status)
        tn_offer_say(o, "process %" PRId32 " of user %" PRIu32 " violates the protocol: %s",
                     c->peer.pid, c->peer.uid, err.text);
    c->in_place |= said.in_place;
    c->greeted = c->asked = true;
    c->deadline = c->since + o->options.patience;
    tn_wire_free(&said);
    tn_arena_free(&arena);
    return status == TN_OK;
}

static tn_status send_end(const tn_offer *o, const tn_client *c, tn_moved *moved, tn_error *err)
{
    tn_buf packet = { 0 };
    tn_status status = tn_wire_encode(&(tn_wire){ .kind = TN_WIRE_END, .items = c->sent,
                                                  .withheld = o->nitems - c->sent }, &packet, err);
    if (!status)
        status = tn_socket_send(c->fd, packet.data, packet.size, -1, moved, err);
    tn_buf_free(&packet);
    return status;
}

/* The next packet.  *done: it was the last. */
static tn_status send_next(const tn_offer *o, tn_client *c, bool *done, tn_moved *moved, tn_error *err)
{
    while (c->next < o->nitems && o->items[c->next].in_place && !c->in_place)
        c->next++;
    *done = c->next == o->nitems;
    if (*done)
        return send_end(o, c, moved, err);
    const tn_offered *item = &o->items[c->next];
    tn_status status = tn_socket_send(c->fd, item->packet.data, item->packet.size, item->fd, moved, err);
    if (!status && *moved == TN_MOVED_DONE) {
        c->next++;
        c->sent++;
    }
    return status;
}

/* False: the connection is finished. */
static bool answer(const tn_offer *o, tn_client *c)
{
    bool done;
    tn_moved moved;
    tn_error err = { .text = "" };
    tn_status status = send_next(o, c, &done, &moved, &err);
    if (status)
        tn_offer_say(o, "process %" PRId32 " of user %" PRIu32 ": %s", c->peer.pid, c->peer.uid, err.text);
    else if (moved == TN_MOVED_DONE && done)
        tn_offer_say(o, "process %" PRId32 " of user %" PRIu32 " attached: %zu item%s", c->peer.pid,
                     c->peer.uid, c->sent, c->sent == 1 ? "" : "s");
    c->asked = moved != TN_MOVED_DONE;
    c->not_before = moved == TN_MOVED_SHORT ? tn_clock() + RETRY : 0;
    return !status && moved != TN_MOVED_CLOSED && !(moved == TN_MOVED_DONE && done);
}

static bool serve(const tn_offer *o, tn_client *c, short events, int64_t now)
{
    if (c->debtor)
        return !events;         /* it has hung up */
    if (now >= c->deadline) {
        tn_offer_say(o, "process %" PRId32 " of user %" PRIu32 " has %s for %" PRId64 " ms: forgotten",
                     c->peer.pid, c->peer.uid, c->greeted ? "kept us waiting" : "said nothing",
                     now - c->since);
        return false;
    }
    if (!c->asked)
        return !events || (listen_to(o, c) && (!c->asked || answer(o, c)));
    return (!events && (!c->not_before || now < c->not_before)) || answer(o, c);
}

/* Closes the connection, unless another user has not read a descriptor yet. */
static void dismiss(tn_offer *o, size_t i)
{
    tn_client *c = &o->clients[i];
    if (c->debtor || c->peer.uid == o->uid || !c->sent || !tn_socket_unread(c->fd)) {
        forget(o, i);
        return;
    }
    c->debtor = true;
    c->deadline = INT64_MAX;
    c->not_before = 0;
}

/* ---- the loop ---- */

static short events_of(const tn_client *c)
{
    if (c->debtor)
        return 0;
    return c->asked ? POLLOUT : POLLIN;
}

/* Fills o->polls; returns the time of the next timeout. */
static int64_t arrange(const tn_offer *o)
{
    int64_t due = INT64_MAX, now = tn_clock();
    bool room = has_room(o, now);
    if (o->nclients < o->options.max_clients && !room)
        due = o->no_room_until;
    o->polls[STOP] = (struct pollfd){ .fd = o->stop, .events = POLLIN };
    o->polls[LISTEN] = (struct pollfd){ .fd = room ? o->socket.fd : -1, .events = POLLIN };
    for (size_t i = 0; i < o->nclients; i++) {
        const tn_client *c = &o->clients[i];
        int64_t next = c->not_before ? c->not_before : c->deadline;
        if (next < due)
            due = next;
        o->polls[FIRST_CLIENT + i] = (struct pollfd){ .fd = c->not_before ? -1 : c->fd,
                                                      .events = events_of(c) };
    }
    return due;
}

static int wait_until(const tn_offer *o, int64_t due)
{
    int64_t left = due - tn_clock();
    int timeout = left < INT_MAX ? (int)left : INT_MAX;
    if (left < 0)
        timeout = 0;
    if (due == INT64_MAX)
        timeout = -1;           /* no limit */
    return tn_socket_calls.poll(o->polls, FIRST_CLIENT + o->nclients, timeout);
}

tn_status tn_offer_run(tn_offer *o, tn_error *err)
{
    TN_GIVEN(o, "an offer", err);
    tn_status status = TN_OK;
    while (!status) {
        int ready = wait_until(o, arrange(o));
        if (ready < 0 && errno != EINTR && !is_short(errno)) {
            status = tn_fail_errno(err, errno, "cannot wait for clients");
            break;
        }
        if (ready < 0) {
            if (errno != EINTR)
                tn_socket_rest();
            continue;
        }
        if (o->polls[STOP].revents)
            break;
        int64_t now = tn_clock();
        /* from the last: removing one moves only those after it */
        for (size_t i = o->nclients; i-- > 0;)
            if (!serve(o, &o->clients[i], o->polls[FIRST_CLIENT + i].revents, now))
                dismiss(o, i);
        if (o->polls[LISTEN].revents)
            status = accept_some(o, err);
    }
    while (o->nclients)
        forget(o, o->nclients - 1);
    return status;
}

void tn_offer_stop(tn_offer *o)
{
    int before = errno;
    uint64_t one = 1;
    ssize_t told = o ? write(o->stop, &one, sizeof one) : 0;
    (void)told;                 /* fails only where it has been told 2^64 - 2 times */
    errno = before;
}
