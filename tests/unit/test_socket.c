/* Packets with descriptors, deadlines, and system calls that fail: an error or
 * another try, and nothing left behind. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "make.h"
#include "offering.h"

#include "share/socket.h"

static struct tn_socket_calls real;

static int set_up(void **state)
{
    real = tn_socket_calls;
    return make_folder(state);
}

static int tear_down(void **state)
{
    tn_socket_calls = real;
    return remove_folder(state);
}

#define HERE(test) { #test, (CMUnitTestFunction)(void (*)(void))test, set_up, tear_down, NULL }

static full_path place(void)
{
    return in_folder("socket");
}

/* ---- packets ---- */

static void a_packet_carries_a_descriptor_or_none(void)
{
    int pair[2], fd = memfd_create("tenon-test", MFD_CLOEXEC), got = 0;
    char bytes[8];
    size_t n;
    tn_moved moved;
    struct stat sent, received;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(tn_socket_receive(pair[1], bytes, sizeof bytes, &n, &got, &moved, NULL) == TN_OK &&
          moved == TN_MOVED_LATER);
    CHECK(tn_socket_send(pair[0], "abc", 3, fd, &moved, NULL) == TN_OK && moved == TN_MOVED_DONE);
    CHECK(tn_socket_send(pair[0], "defgh", 5, -1, &moved, NULL) == TN_OK);
    CHECK(tn_socket_receive(pair[1], bytes, sizeof bytes, &n, &got, &moved, NULL) == TN_OK &&
          moved == TN_MOVED_DONE);
    CHECK(n == 3 && memcmp(bytes, "abc", 3) == 0);
    CHECK(fstat(fd, &sent) == 0 && fstat(got, &received) == 0 && sent.st_ino == received.st_ino);
    CHECK(fcntl(got, F_GETFD) & FD_CLOEXEC);
    close(got);
    CHECK(tn_socket_receive(pair[1], bytes, sizeof bytes, &n, &got, &moved, NULL) == TN_OK && n == 5 &&
          got == -1);
    close(pair[0]);
    CHECK(tn_socket_receive(pair[1], bytes, sizeof bytes, &n, &got, &moved, NULL) == TN_OK &&
          moved == TN_MOVED_CLOSED);
    CHECK(tn_socket_send(pair[1], "abc", 3, -1, &moved, NULL) == TN_OK && moved == TN_MOVED_CLOSED);    /* and no SIGPIPE */
    close(pair[1]);
    close(fd);
}

static void what_is_too_long_or_not_wanted_is_refused_and_closed(void)
{
    int pair[2], fd = memfd_create("tenon-test", MFD_CLOEXEC), got = 77;
    char bytes[4];
    size_t n;
    tn_moved moved;
    tn_error err = { .text = "" };
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    int before = held_descriptors();
    CHECK(tn_socket_send(pair[0], "abcde", 5, fd, &moved, NULL) == TN_OK);
    CHECK(tn_socket_receive(pair[1], bytes, sizeof bytes, &n, &got, &moved, &err) == TN_ERR_LIMIT &&
          strstr(line_of(&err), "more than 4 bytes"));
    CHECK(tn_socket_send(pair[0], "abc", 3, fd, &moved, NULL) == TN_OK);
    CHECK(tn_socket_receive(pair[1], bytes, sizeof bytes, &n, NULL, &moved, &err) == TN_ERR_LIMIT &&
          strstr(line_of(&err), "than the 0 expected"));
    CHECK(held_descriptors() == before && got == 77);
    close(pair[0]);
    close(pair[1]);
    close(fd);
}

static void who_can_have_no_more_descriptors_is_told_so(void)
{
    int pair[2], got = 77;
    char bytes[4], said[64];
    size_t n;
    tn_moved moved;
    tn_error err = { .text = "" };
    struct rlimit usual, few;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(tn_socket_send(pair[0], "abc", 3, pair[0], &moved, NULL) == TN_OK);
    CHECK(getrlimit(RLIMIT_NOFILE, &usual) == 0);
    few = usual;
    few.rlim_cur = (rlim_t)dup(pair[0]);        /* the lowest that is free */
    close((int)few.rlim_cur);
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    tn_status status = tn_socket_receive(pair[1], bytes, sizeof bytes, &n, &got, &moved, &err);
    CHECK(setrlimit(RLIMIT_NOFILE, &usual) == 0);
    snprintf(said, sizeof said, "may have %llu (ulimit -n)", (unsigned long long)few.rlim_cur);
    CHECK(status == TN_ERR_IO && strstr(line_of(&err), said) && got == 77);
    close(pair[0]);
    close(pair[1]);
}

static void a_peer_that_does_not_read_fills_its_socket_only(void)
{
    int pair[2];
    static const char bytes[1000];
    tn_moved moved = TN_MOVED_DONE;
    tn_error err = { .text = "" };
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    for (int i = 0; i < 100000 && moved == TN_MOVED_DONE; i++)
        CHECK(tn_socket_send(pair[0], bytes, sizeof bytes, -1, &moved, NULL) == TN_OK);
    CHECK(moved == TN_MOVED_LATER);
    CHECK(tn_socket_wait(pair[0], POLLOUT, tn_clock() + 20, &err) == TN_ERR_IO &&
          strstr(line_of(&err), "does not answer"));
    CHECK(tn_socket_wait(pair[1], POLLIN, tn_clock() + 10000, &err) == TN_OK);
    CHECK(tn_socket_wait(pair[1], POLLIN, tn_clock() - 1, &err) == TN_ERR_IO);
    close(pair[0]);
    close(pair[1]);
}

static void a_peer_is_who_the_kernel_says(void)
{
    int pair[2];
    tn_peer peer = { .pid = 0 };
    const uint32_t none[] = { 4000000 }, own[] = { 4000000, getegid() };
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(tn_socket_peer(pair[0], &peer, NULL) == TN_OK);
    CHECK(peer.pid == getpid() && peer.uid == geteuid() && peer.gid == getegid());
    CHECK(!tn_socket_peer_in(pair[0], &peer, NULL, 0) && !tn_socket_peer_in(pair[0], &peer, none, 1) &&
          tn_socket_peer_in(pair[0], &peer, own, 2));
    close(pair[0]);
    close(pair[1]);
}

/* ---- calls that fail ---- */

static int calls, failing, problem;

static bool fails(void)
{
    if (++calls != failing)
        return false;
    errno = problem;
    return true;
}

static int failing_socket(int a, int b, int c)
{
    return fails() ? -1 : real.socket(a, b, c);
}
static int failing_bind(int fd, const struct sockaddr *a, socklen_t n)
{
    return fails() ? -1 : real.bind(fd, a, n);
}
static int failing_listen(int fd, int n)
{
    return fails() ? -1 : real.listen(fd, n);
}
static int failing_connect(int fd, const struct sockaddr *a, socklen_t n)
{
    return fails() ? -1 : real.connect(fd, a, n);
}
static int failing_get(int fd, int a, int b, void *v, socklen_t *n)
{
    return fails() ? -1 : real.getsockopt(fd, a, b, v, n);
}
static int failing_set(int fd, int a, int b, const void *v, socklen_t n)
{
    return fails() ? -1 : real.setsockopt(fd, a, b, v, n);
}
static ssize_t failing_send(int fd, const struct msghdr *m, int flags)
{
    return fails() ? -1 : real.sendmsg(fd, m, flags);
}
static ssize_t failing_receive(int fd, struct msghdr *m, int flags)
{
    return fails() ? -1 : real.recvmsg(fd, m, flags);
}
static int failing_poll(struct pollfd *p, nfds_t n, int timeout)
{
    return fails() ? -1 : real.poll(p, n, timeout);
}
static int failing_accept(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
    return fails() ? -1 : real.accept4(fd, a, n, flags);
}

static const struct tn_socket_calls failing_calls = {
    .socket = failing_socket, .bind = failing_bind, .listen = failing_listen, .connect = failing_connect,
    .accept4 = failing_accept,
    .getsockopt = failing_get, .setsockopt = failing_set, .sendmsg = failing_send, .recvmsg = failing_receive,
    .poll = failing_poll,
};

static void offer_three(tn_offer *offer)
{
    tn_file *f;
    REQUIRE(tn_open(in_folder("good.zt").text, NULL, &f, NULL) == TN_OK);
    REQUIRE(tn_offer_file(offer, "one", f, false, NULL) == TN_OK);
    REQUIRE(tn_offer_file(offer, "two", f, false, NULL) == TN_OK);
    REQUIRE(tn_offer_file(offer, "three", f, false, NULL) == TN_OK);
    tn_close(f);
}

static void make_good(void)
{
    static float data[100];
    write_file("good.zt", (tn_create_options){ .replace = true },
               &(simple){ "w", TN_FLOAT32, 1, { 100 }, data, NULL, NULL, 0 }, 1);
}

static tn_status attach_once(tn_error *err)
{
    tn_attachment *a;
    tn_attach_options options = { .size = sizeof options, .patience = LONG };
    tn_status status = tn_share_attach(place().text, &options, &a, err);
    if (!status) {
        CHECK(tn_attached_count(a) == 3);
        tn_detach(a);
    }
    return status;
}

static void whatever_call_fails_attaching_says_so_and_leaves_nothing(void)
{
    static const int problems[] = { ENOBUFS, EIO, EINTR };
    make_good();
    pid_t server = start_offering(place().text, NULL, offer_three);
    CHECK(attach_once(NULL) == TN_OK);
    tn_socket_calls = failing_calls;
    for (size_t i = 0; i < 3; i++) {
        size_t failures = 0;
        problem = problems[i];
        failing = 0;
        do {
            tn_error err = { .text = "" };
            held before = held_now();
            calls = 0;
            failing++;
            tn_status status = attach_once(&err);
            CHECK(status == err.status && (status == TN_OK) == (err.text[0] == '\0'));
            CHECK(nothing_more_than(before));
            failures += status != TN_OK;
        } while (failing <= calls);
        CHECK(failing > 10 && failures >= (problem == EIO ? 10 : 1));
    }
    tn_socket_calls = real;
    end_offering(server);
}

static void whatever_call_fails_an_offer_says_so_and_leaves_nothing(void)
{
    tn_socket_calls = failing_calls;
    held before = held_now();
    problem = EACCES;
    failing = 0;
    tn_status status;
    do {
        tn_offer *offer;
        tn_error err = { .text = "" };
        calls = 0;
        failing++;
        status = tn_share_offer(place().text, NULL, &offer, &err);
        CHECK(status == err.status && (status == TN_OK) == (err.text[0] == '\0'));
        if (!status)
            tn_offer_close(offer);
        CHECK(nothing_more_than(before) && access(place().text, F_OK) != 0);
    } while (failing <= calls);
    CHECK(failing > 3 && status == TN_OK);
}

/* Every third call meets one of the troubles that pass. */
static int trouble(const int *kinds, int n)
{
    static int turn;
    calls++;
    errno = kinds[turn % n];
    return calls % 3 ? 0 : 1 + turn++ % n;
}

static ssize_t troubled_send(int fd, const struct msghdr *m, int flags)
{
    static const int kinds[] = { EINTR, EAGAIN, ETOOMANYREFS, ENOBUFS, ENOMEM };
    return trouble(kinds, 5) ? -1 : real.sendmsg(fd, m, flags);
}

static ssize_t troubled_receive(int fd, struct msghdr *m, int flags)
{
    static const int kinds[] = { EINTR, EAGAIN, ENOMEM };
    return trouble(kinds, 3) ? -1 : real.recvmsg(fd, m, flags);
}

static int troubled_accept(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
    static const int kinds[] = { EINTR, EAGAIN, EMFILE, ENFILE, ECONNABORTED, ENOMEM };
    return trouble(kinds, 6) ? -1 : real.accept4(fd, a, n, flags);
}

static int troubled_poll(struct pollfd *p, nfds_t n, int timeout)
{
    static const int kinds[] = { EINTR, ENOMEM };
    return trouble(kinds, 2) ? -1 : real.poll(p, n, timeout);
}

static void offer_in_trouble(tn_offer *offer)
{
    offer_three(offer);
    tn_socket_calls.sendmsg = troubled_send;
    tn_socket_calls.recvmsg = troubled_receive;
    tn_socket_calls.accept4 = troubled_accept;
    tn_socket_calls.poll = troubled_poll;
}

static void troubles_that_pass_keep_no_client_from_its_answer(void)
{
    make_good();
    pid_t server = start_offering(place().text, NULL, offer_in_trouble);
    for (int i = 0; i < 50; i++)
        CHECK(attach_once(NULL) == TN_OK);
    end_offering(server);
}

static int shortages, rests;

static int short_poll(struct pollfd *p, nfds_t n, int timeout)
{
    rests += n == 0;
    errno = ENOMEM;
    return n > 0 && shortages-- > 0 ? -1 : real.poll(p, n, timeout);
}

static ssize_t short_send(int fd, const struct msghdr *m, int flags)
{
    errno = ENOBUFS;
    return shortages-- > 0 ? -1 : real.sendmsg(fd, m, flags);
}

static ssize_t short_receive(int fd, struct msghdr *m, int flags)
{
    errno = ENOMEM;
    return shortages-- > 0 ? -1 : real.recvmsg(fd, m, flags);
}

static int count_rests(struct pollfd *p, nfds_t n, int timeout)
{
    rests += n == 0;
    return real.poll(p, n, timeout);
}

static void whoever_meets_a_shortage_rests_before_the_next_try(void)
{
    tn_offer *offer;
    make_good();
    pid_t server = start_offering(place().text, NULL, offer_three);
    for (int i = 0; i < 2; i++) {
        tn_socket_calls = real;
        tn_socket_calls.poll = count_rests;
        if (i == 0)
            tn_socket_calls.sendmsg = short_send;
        else
            tn_socket_calls.recvmsg = short_receive;
        shortages = 3;
        rests = 0;
        CHECK(attach_once(NULL) == TN_OK && rests == 3);
    }
    tn_socket_calls = real;
    end_offering(server);
    CHECK(tn_share_offer(place().text, NULL, &offer, NULL) == TN_OK);
    tn_socket_calls.poll = short_poll;
    shortages = 3;
    rests = 0;
    tn_offer_stop(offer);
    CHECK(tn_offer_run(offer, NULL) == TN_OK && rests == 3);
    tn_offer_close(offer);
}

static int no_longer_polled(struct pollfd *p, nfds_t n, int timeout)
{
    (void)p, (void)n, (void)timeout;
    errno = EINVAL;
    return -1;
}

/* ---- coming again ---- */

enum { SHORT = 600 };           /* milliseconds that the server waits */

static int connections;

static int connect_and_dawdle(int fd, const struct sockaddr *address, socklen_t n)
{
    int result = real.connect(fd, address, n);
    if (connections++ == 0)
        usleep(2 * SHORT * 1000);
    return result;
}

static void who_was_too_slow_to_be_heard_comes_again(void)
{
    tn_offer_options options = { .size = sizeof options, .patience = SHORT };
    make_good();
    pid_t server = start_offering(place().text, &options, offer_three);
    connections = 0;
    tn_socket_calls.connect = connect_and_dawdle;
    tn_attachment *a = attach_so(place().text, NULL);
    CHECK(connections >= 2 && tn_attached_count(a) == 3);
    tn_detach(a);
    end_offering(server);
}

static void a_socket_that_fails_for_good_ends_the_server(void)
{
    tn_offer *offer;
    tn_error err = { .text = "" };
    CHECK(tn_share_offer(place().text, NULL, &offer, NULL) == TN_OK);
    tn_socket_calls.poll = no_longer_polled;
    CHECK(tn_offer_run(offer, &err) == TN_ERR_IO && strstr(line_of(&err), "cannot wait for clients"));
    tn_offer_close(offer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HERE(a_packet_carries_a_descriptor_or_none),
        HERE(what_is_too_long_or_not_wanted_is_refused_and_closed),
        HERE(who_can_have_no_more_descriptors_is_told_so),
        HERE(a_peer_that_does_not_read_fills_its_socket_only),
        HERE(a_peer_is_who_the_kernel_says),
        HERE(whatever_call_fails_attaching_says_so_and_leaves_nothing),
        HERE(whatever_call_fails_an_offer_says_so_and_leaves_nothing),
        HERE(troubles_that_pass_keep_no_client_from_its_answer),
        HERE(whoever_meets_a_shortage_rests_before_the_next_try),
        HERE(who_was_too_slow_to_be_heard_comes_again),
        HERE(a_socket_that_fails_for_good_ends_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
