/* Peers that lie, are silent, talk forever or die: they cost the other side an
 * error or a little time, and nothing else. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "make.h"
#include "offering.h"

#include "share/wire.h"

enum { PATIENCE = 300, SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW, ALL_SEALS = SIZE_SEALS | F_SEAL_WRITE };

static full_path place(void)
{
    return in_folder("socket");
}

/* ---- sockets by hand ---- */

static int new_socket(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    REQUIRE(strlen(place().text) < sizeof address->sun_path);
    strcpy(address->sun_path, place().text);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    return fd;
}

/* Sends as many descriptors as are said, all of them `fd`. */
static bool send_with(int to, const void *bytes, size_t n, int fd, size_t count)
{
    union { struct cmsghdr align; char bytes[CMSG_SPACE(8 * sizeof(int))]; } control = { .bytes = { 0 } };
    struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    if (count) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
                                  .cmsg_len = CMSG_LEN(count * sizeof(int)) };
        for (size_t i = 0; i < count; i++)
            memcpy(CMSG_DATA(head) + i * sizeof fd, &fd, sizeof fd);
    }
    return sendmsg(to, &message, MSG_NOSIGNAL) >= 0;
}

static bool send_packet(int to, const tn_wire *w, int fd, size_t count)
{
    tn_buf b = { 0 };
    REQUIRE(tn_wire_encode(w, &b, NULL) == TN_OK);
    bool sent = send_with(to, b.data, b.size, fd, count);
    tn_buf_free(&b);
    return sent;
}

/* ---- a hostile server ---- */

/* The tensors of a good file, in memory with these seals. */
static int image(int seals)
{
    char buffer[4096];
    int fd = memfd_create("tenon-test", MFD_CLOEXEC | MFD_ALLOW_SEALING),
        from = open(in_folder("good.zt").text, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && from >= 0);
    for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
        REQUIRE(write(fd, buffer, (size_t)n) == n);
    close(from);
    REQUIRE(fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static uint64_t size_of(int fd)
{
    struct stat st;
    REQUIRE(fstat(fd, &st) == 0);
    return (uint64_t)st.st_size;
}

static void make_good(void)
{
    static float data[1000];
    write_file("good.zt", (tn_create_options){ .replace = true },
               &(simple){ "w", TN_FLOAT32, 1, { 1000 }, data, NULL, NULL, 0 }, 1);
}

static bool offer_called(int to, const char *name, int fd, uint64_t bytes)
{
    return send_packet(to, &(tn_wire){ .kind = TN_WIRE_FILE, .name = name, .format = "ztensor",
                                       .bytes = bytes }, fd, 1);
}

static void say_end(int to, uint64_t items)
{
    send_packet(to, &(tn_wire){ .kind = TN_WIRE_END, .items = items }, -1, 0);
}

/* A tensor of 100 floats in memory of so many bytes, as far as is said. */
static void offer_floats(int to, int fd, uint64_t bytes, uint64_t offset, bool read_only)
{
    static const tn_wia_extent extent = { .value = 100 };
    const tn_descriptor d = {
        .version = TN_WIA_VERSION, .name = "w", .rank = 1, .dimensions = &extent, .dtype = TN_FLOAT32,
        .base_type = "FLOAT32",
        .has_memory = true, .has_total = true, .total_bytes = 400,
        .buffer_handle = { .type = TN_HANDLE_MEMFD, .size_bytes = (int64_t)bytes, .read_only = read_only },
    };
    send_packet(to, &(tn_wire){ .kind = TN_WIRE_TENSOR, .tensor = &d, .offset = offset }, fd, 1);
    say_end(to, 1);
}

static void offer_image(int to, int seals, int64_t more)
{
    int fd = image(seals);
    offer_called(to, "good", fd, (uint64_t)((int64_t)size_of(fd) + more));
    say_end(to, 1);
}

static int memory(int seals)
{
    int fd = memfd_create("tenon-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(fd >= 0 && ftruncate(fd, 4096) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static void is_good(int to)               { offer_image(to, ALL_SEALS, 0); }
static void can_shrink(int to)            { offer_image(to, F_SEAL_WRITE, 0); }
static void can_be_written(int to)        { offer_image(to, SIZE_SEALS, 0); }
static void will_be_written(int to)       { offer_image(to, SIZE_SEALS | F_SEAL_FUTURE_WRITE, 0); }
static void says_too_much(int to)         { offer_image(to, ALL_SEALS, 1); }
static void says_far_too_much(int to)     { offer_image(to, ALL_SEALS, INT64_C(1) << 61); }
static void says_too_little(int to)       { offer_image(to, ALL_SEALS, -1); }
static void tensor_is_good(int to)        { offer_floats(to, memory(ALL_SEALS), 4096, 0, true); }
static void tensor_says_too_much(int to)  { offer_floats(to, memory(ALL_SEALS), 4097, 0, true); }
static void tensor_lies_outside(int to)   { offer_floats(to, memory(ALL_SEALS), 4096, 4096, true); }
static void tensor_is_not_in_it(int to)   { offer_floats(to, memory(ALL_SEALS), 399, 0, true); }
static void tensor_can_shrink(int to)     { offer_floats(to, memory(F_SEAL_WRITE), 4096, 0, true); }
static void tensor_can_be_written(int to) { offer_floats(to, memory(SIZE_SEALS), 4096, 0, true); }
static void tensor_cannot_be(int to)      { offer_floats(to, memory(ALL_SEALS), 4096, 0, false); }

/* Asked for the next one before this one was looked at: an honest server does not wait while an index is
 * read. */
static void is_looked_at_later(int to)
{
    char next[64];
    int fd = image(F_SEAL_WRITE);
    offer_called(to, "good", fd, size_of(fd));
    REQUIRE(recv(to, next, sizeof next, 0) > 0);
    say_end(to, 1);
}

static void is_a_plain_file(int to)
{
    int fd = open(in_folder("good.zt").text, O_RDWR | O_CLOEXEC);
    offer_called(to, "good", fd, size_of(fd));
    say_end(to, 1);
}

/* Called in place: not asked for. */
static void is_in_place(int to)
{
    int fd = open(in_folder("good.zt").text, O_RDONLY | O_CLOEXEC);
    send_packet(to, &(tn_wire){ .kind = TN_WIRE_FILE, .name = "good", .format = "ztensor",
                                .bytes = size_of(fd), .in_place = true }, fd, 1);
    say_end(to, 1);
}

static void offer_descriptor(int to, int fd)
{
    offer_called(to, "good", fd, 100);
    say_end(to, 1);
}

static void is_a_pipe(int to)
{
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    offer_descriptor(to, ends[0]);
}

static void is_a_folder(int to)   { offer_descriptor(to, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
static void is_a_device(int to)   { offer_descriptor(to, open("/dev/zero", O_RDWR | O_CLOEXEC)); }
static void is_an_eventfd(int to) { offer_descriptor(to, eventfd(0, EFD_CLOEXEC)); }
static void is_the_socket(int to) { offer_descriptor(to, to); }

static void is_garbage(int to)
{
    int fd = memory(0);
    REQUIRE(pwrite(fd, "garbage", 7, 0) == 7 && fcntl(fd, F_ADD_SEALS, ALL_SEALS) == 0);
    offer_called(to, "good", fd, 4096);
    say_end(to, 1);
}

static void send_file_with(int to, size_t descriptors)
{
    int fd = image(ALL_SEALS);
    send_packet(to, &(tn_wire){ .kind = TN_WIRE_FILE, .name = "good", .format = "ztensor",
                                .bytes = size_of(fd) }, fd, descriptors);
    say_end(to, 1);
}

static void sends_none(int to)  { send_file_with(to, 0); }
static void sends_two(int to)   { send_file_with(to, 2); }
static void sends_eight(int to) { send_file_with(to, 8); }

static void sends_one_with_the_end(int to)
{
    send_packet(to, &(tn_wire){ .kind = TN_WIRE_END }, image(ALL_SEALS), 1);
}

static void sends_garbage(int to)
{
    send_with(to, "garbage that is no packet at all", 32, -1, 0);
}

static void sends_bad_json(int to)
{
    static const char packet[] = "TNSH\1\0\4\0\4\0\0\0\0\0\0\0{\"a\"";
    send_with(to, packet, sizeof packet - 1, -1, 0);
}

static void sends_too_much(int to)
{
    int size = 1 << 20;
    uint8_t *bytes = calloc(1, 100000);
    REQUIRE(bytes && setsockopt(to, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    memcpy(bytes, "TNSH\1\0\4\0", 8);
    send_with(to, bytes, 100000, image(ALL_SEALS), 1);
    free(bytes);
}

static void sends_nothing_as_a_packet(int to)
{
    send_with(to, "", 0, image(ALL_SEALS), 1);
}

static void says_hello(int to)
{
    send_packet(to, &(tn_wire){ .kind = TN_WIRE_HELLO }, -1, 0);
}

static void counts_wrong(int to)
{
    int fd = image(ALL_SEALS);
    offer_called(to, "good", fd, size_of(fd));
    say_end(to, 2);
}

static void offers_twice(int to)
{
    int fd = image(ALL_SEALS);
    offer_called(to, "good", fd, size_of(fd));
    offer_called(to, "good", fd, size_of(fd));
    say_end(to, 2);
}

static void hangs_up(int to)
{
    int fd = image(ALL_SEALS);
    offer_called(to, "good", fd, size_of(fd));
}

static void falls_silent(int to)
{
    char byte;
    int fd = image(ALL_SEALS);
    offer_called(to, "good", fd, size_of(fd));
    while (recv(to, &byte, 1, 0) > 0)
        ;
}

static void talks_forever(int to)
{
    char name[20];
    int fd = image(ALL_SEALS);
    uint64_t n = size_of(fd);
    char request[64];
    do {
        while (recv(to, request, sizeof request, MSG_DONTWAIT) > 0)
            ;
        snprintf(name, sizeof name, "%u", (unsigned)rand());
    } while (offer_called(to, name, fd, n));
}

/* Never so long that a wait for one packet would end. */
static void talks_slowly_forever(int to)
{
    char name[20];
    int fd = image(ALL_SEALS);
    uint64_t n = size_of(fd);
    do {
        snprintf(name, sizeof name, "%u", (unsigned)rand());
        usleep(PATIENCE * 1000 / 4);
    } while (offer_called(to, name, fd, n));
}

static void refuses_with_escapes(int to)
{
    send_packet(to, &(tn_wire){ .kind = TN_WIRE_REFUSED, .why = "\x1b[2Jgone" }, -1, 0);
}

static void names_with_escapes(int to)
{
    int fd = image(SIZE_SEALS);
    offer_called(to, "\x1b[2Jgone", fd, size_of(fd));
    say_end(to, 1);
}

static void answer_one(void (*lie)(int to))
{
    struct sockaddr_un address;
    char hello[256];
    int fd = new_socket(&address);
    REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
    int to = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    REQUIRE(to >= 0 && recv(to, hello, sizeof hello, 0) > 0);
    lie(to);
    shutdown(to, SHUT_WR);
    /* closing it with something unread would take back what was sent */
    while (recv(to, hello, sizeof hello, 0) > 0)
        ;
    close(to);
}

/* What attaching to such a server gives; nothing stays behind. */
static tn_status attach_to(void (*lie)(int to), tn_attach_options options, tn_error *err)
{
    tn_attachment *a = NULL;
    int state;
    held before = held_now();
    unlink(place().text);
    fflush(NULL);
    pid_t server = fork();
    CHECK(server >= 0);
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        answer_one(lie);
        _exit(0);
    }
    tn_status status;
    do {                        /* until it listens */
        usleep(1000);
        *err = (tn_error){ .status = TN_OK };
        status = tn_share_attach(place().text, &options, &a, err);
    } while (status == TN_ERR_IO && strstr(line_of(err), "cannot attach: "));
    tn_detach(status ? NULL : a);
    CHECK(nothing_more_than(before));
    CHECK(waitpid(server, &state, 0) == server && state == 0);
    return status;
}

typedef struct deception {
    void     (*lie)(int to);
    tn_status  status;
    const char *says;
} deception;

static void try_all(const deception *all, size_t n, bool in_place)
{
    make_good();
    for (size_t i = 0; i < n; i++) {
        tn_error err;
        bool is_awaited = strstr(all[i].says, "does not answer");
        tn_attach_options options = { .size = sizeof options, .patience = is_awaited ? PATIENCE : LONG,
                                      .in_place = in_place };
        tn_status status = attach_to(all[i].lie, options, &err);
        if (status != all[i].status || (status && !strstr(line_of(&err), all[i].says)))
            fail_msg("%zu: status %d, %s; expected %d, %s", i, (int)status, line_of(&err), (int)all[i].status,
                     all[i].says);
        CHECK(!strchr(line_of(&err), '\x1b'));
    }
}

static void a_server_that_lies_about_memory_is_found_out(void)
{
    static const deception all[] = {
        { is_good, TN_OK, "" },
        { can_shrink, TN_ERR_CORRUPT, "good: expected a memfd with seals 0xa but found 0x8" },
        { is_looked_at_later, TN_ERR_CORRUPT, "seals 0xa but found 0x8" },
        { can_be_written, TN_ERR_CORRUPT, "seals 0xa but found 0x6" },
        { will_be_written, TN_ERR_CORRUPT, "seals 0xa but found 0x16" },
        { says_too_much, TN_ERR_CORRUPT, "there are" },
        { says_far_too_much, TN_ERR_CORRUPT, "there are" },
        { says_too_little, TN_ERR_CORRUPT, "good: " },
        { tensor_is_good, TN_OK, "" },
        { tensor_says_too_much, TN_ERR_CORRUPT,
          "w: the handle says 4097 bytes at byte 0 but there are 4096" },
        { tensor_lies_outside, TN_ERR_CORRUPT, "at byte 4096 but there are 4096" },
        { tensor_is_not_in_it, TN_ERR_CORRUPT, "w: " },
        { tensor_can_shrink, TN_ERR_CORRUPT, "seals 0x2 but found 0x8" },
        { tensor_can_be_written, TN_ERR_CORRUPT, "sealed against writing" },
        { tensor_cannot_be, TN_ERR_CORRUPT, "found it sealed" },
        { is_garbage, TN_ERR_CORRUPT, "good: " },
    };
    try_all(all, sizeof all / sizeof *all, false);
}

static void a_server_that_sends_other_descriptors_is_refused(void)
{
    static const deception all[] = {
        { is_a_plain_file, TN_ERR_CORRUPT, "good: expected" },
        { is_in_place, TN_ERR_CORRUPT, "was not asked for" },
        { is_a_pipe, TN_ERR_CORRUPT, "another kind" },
        { is_a_folder, TN_ERR_CORRUPT, "expected a" },
        { is_a_device, TN_ERR_CORRUPT, "another kind" },
        { is_an_eventfd, TN_ERR_CORRUPT, "another kind" },
        { is_the_socket, TN_ERR_CORRUPT, "another kind" },
        { sends_none, TN_ERR_CORRUPT, "expected 1 descriptors with the packet but found 0" },
        { sends_two, TN_ERR_LIMIT, "more descriptors" },
        { sends_eight, TN_ERR_LIMIT, "more descriptors" },
        { sends_one_with_the_end, TN_ERR_CORRUPT, "expected 0 descriptors" },
    };
    try_all(all, sizeof all / sizeof *all, false);
}

static void where_files_are_welcome_the_rest_is_still_refused(void)
{
    static const deception all[] = {
        { is_good, TN_OK, "" },
        { is_in_place, TN_OK, "" },
        { tensor_is_good, TN_OK, "" },
        { is_a_plain_file, TN_ERR_CORRUPT, "good: expected" },          /* which is not said to be one */
        { can_shrink, TN_ERR_CORRUPT, "seals" },
        { tensor_can_shrink, TN_ERR_CORRUPT, "can still shrink" },
        { tensor_says_too_much, TN_ERR_CORRUPT, "there are 4096" },
        { is_a_pipe, TN_ERR_CORRUPT, "another kind" },
    };
    try_all(all, sizeof all / sizeof *all, true);
}

static void a_server_that_does_not_speak_as_it_should_is_left(void)
{
    static const deception all[] = {
        { sends_garbage, TN_ERR_CORRUPT, "begins with \"TNSH\"" },
        { sends_bad_json, TN_ERR_TRUNCATED, "" },
        { sends_too_much, TN_ERR_LIMIT, "more than 65536 bytes" },
        { sends_nothing_as_a_packet, TN_ERR_TRUNCATED, "hung up after 0 items" },
        { says_hello, TN_ERR_CORRUPT, "kind 1" },
        { counts_wrong, TN_ERR_CORRUPT, "expected 2 items but 1 came" },
        { offers_twice, TN_ERR_CORRUPT, "\"good\" is offered twice" },
        { hangs_up, TN_ERR_TRUNCATED, "hung up after 1 item," },
        { falls_silent, TN_ERR_IO, "does not answer" },
        { talks_slowly_forever, TN_ERR_IO, "does not answer" },
        { talks_forever, TN_ERR_LIMIT, "" },
        { refuses_with_escapes, TN_ERR_IO, "refused: \"\\x1b[2Jgone\"" },
        { names_with_escapes, TN_ERR_CORRUPT, "\\x1b[2Jgone: expected" },
    };
    try_all(all, sizeof all / sizeof *all, false);
}

/* ---- hostile clients ---- */

static void offer_good(tn_offer *offer)
{
    tn_file *f;
    char name[20];
    REQUIRE(tn_open(in_folder("good.zt").text, NULL, &f, NULL) == TN_OK);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%d", i);
        REQUIRE(tn_offer_file(offer, name, f, false, NULL) == TN_OK);
    }
    tn_close(f);
}

static void offer_with_few_descriptors(tn_offer *offer)
{
    offer_good(offer);
    struct rlimit few = { .rlim_cur = (rlim_t)held_descriptors() + 4, .rlim_max = 1024 };
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
}

static int come(void)
{
    struct sockaddr_un address;
    int fd = new_socket(&address);
    REQUIRE(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* Somebody who behaves gets everything: in so many tries, for on a busy machine he may be too slow
 * himself. */
static void check_answers(void)
{
    tn_attach_options options = { .size = sizeof options, .patience = LONG };
    tn_attachment *a = NULL;
    tn_error err = { .text = "" };
    for (int i = 0; i < 20 && !a; i++)
        if (tn_share_attach(place().text, &options, &a, &err))
            a = NULL;
    if (!a)
        fail_msg("%s", line_of(&err));
    CHECK(tn_attached_count(a) == 40);
    tn_detach(a);
}

static pid_t begin(void (*fill)(tn_offer *))
{
    tn_offer_options options = { .size = sizeof options, .patience = PATIENCE };
    make_good();
    return start_offering(place().text, &options, fill);
}

static void clients_that_say_nothing_or_garbage_are_forgotten(void)
{
    pid_t server = begin(offer_good);
    int fds[20];
    uint8_t large[5000] = "TNSH\1\0\1";
    for (int i = 0; i < 20; i++) {
        fds[i] = come();
        if (i % 4 == 1)
            REQUIRE(send(fds[i], "garbage", 7, 0) == 7);
        if (i % 4 == 2)
            REQUIRE(send(fds[i], large, sizeof large, 0) == sizeof large);
        if (i % 4 == 3)
            REQUIRE(send(fds[i], "", 0, 0) == 0);
    }
    check_answers();
    for (int i = 0; i < 20; i++) {
        char byte;
        CHECK(recv(fds[i], &byte, 1, 0) <= 0);          /* each of them is hung up on */
        close(fds[i]);
    }
    end_offering(server);
}

static void descriptors_that_a_client_sends_are_not_taken(void)
{
    pid_t server = begin(offer_good);
    for (int i = 0; i < 50; i++) {
        int fd = come();
        CHECK(send_packet(fd, &(tn_wire){ .kind = TN_WIRE_HELLO }, 0, 1 + (size_t)i % 8));
        char byte;
        CHECK(recv(fd, &byte, 1, 0) <= 0);
        close(fd);
    }
    check_answers();
    end_offering(server);       /* which looks at its descriptors */
}

static void three_hundred_at_once_do_not_keep_others_out(void)
{
    pid_t server = begin(offer_good);
    int fds[300];
    for (int i = 0; i < 300; i++)
        fds[i] = come();
    check_answers();
    for (int i = 0; i < 300; i++)
        close(fds[i]);
    check_answers();
    end_offering(server);
}

static void clients_that_do_not_read_are_forgotten(void)
{
    pid_t server = begin(offer_good);
    int fds[60];
    for (int i = 0; i < 60; i++) {      /* 40 descriptors on their way to each */
        fds[i] = come();
        CHECK(send_packet(fds[i], &(tn_wire){ .kind = TN_WIRE_HELLO }, -1, 0));
    }
    check_answers();
    for (int i = 0; i < 60; i++)
        close(fds[i]);
    end_offering(server);
}

enum { SERVANT = 65533, STRANGER = 65532 };

/* Root may have any number of descriptors on their way: so another user answers, who may not. */
static void offer_as_a_servant(tn_offer *offer)
{
    offer_good(offer);
    struct rlimit few = { .rlim_cur = (rlim_t)held_descriptors() + 70, .rlim_max = 1024 };
    REQUIRE(chmod(folder, 0777) == 0 && setrlimit(RLIMIT_NOFILE, &few) == 0);
    REQUIRE(geteuid() != 0 || setresuid(SERVANT, SERVANT, SERVANT) == 0);
}

static void descriptors_on_their_way_are_one_a_client(void)
{
    pid_t server = begin(offer_as_a_servant);
    int fds[40];
    for (int i = 0; i < 40; i++) {
        fds[i] = come();
        send_packet(fds[i], &(tn_wire){ .kind = TN_WIRE_HELLO }, -1, 0);
        for (int k = 0; k < 5; k++)     /* nor does asking help without reading */
            send_packet(fds[i], &(tn_wire){ .kind = TN_WIRE_NEXT }, -1, 0);
    }
    for (int i = 0; i < 40; i++) {
        struct pollfd left = { .fd = fds[i] };
        CHECK(poll(&left, 1, -1) == 1 && left.revents & POLLHUP);
    }
    check_answers();            /* although nothing of it has been read */
    for (int i = 0; i < 40; i++)
        close(fds[i]);
    end_offering(server);
}

/* What a client that does not read would read first. */
static int first_kind(void)
{
    uint8_t header[16] = { 0 };
    int fd = come();
    send_packet(fd, &(tn_wire){ .kind = TN_WIRE_HELLO }, -1, 0);
    REQUIRE(recv(fd, header, sizeof header, MSG_PEEK) == sizeof header);
    return header[6];           /* and fd stays open */
}

/* The process of another user that keeps all it can get and reads nothing; it writes one byte when it has
 * it. */
static void grab(int ready)
{
    int got = 0;
    REQUIRE(setresuid(STRANGER, STRANGER, STRANGER) == 0);
    for (int i = 0; i < 60; i++)
        got += first_kind() == TN_WIRE_FILE;
    REQUIRE(got >= 1 && got <= 5);      /* a quarter of 16, and one */
    usleep(2 * PATIENCE * 1000);
    for (int i = 0; i < 10; i++)
        REQUIRE(first_kind() == TN_WIRE_REFUSED);
    REQUIRE(write(ready, "", 1) == 1);
    pause();
}

static void another_user_gets_no_more_than_its_share(void)
{
    const uint32_t stranger[] = { STRANGER };
    tn_offer_options options = { .size = sizeof options, .patience = PATIENCE, .max_clients = 16,
                                 .uids = stranger, .nuids = 1 };
    int ends[2];
    char byte;
    if (geteuid() != 0) {
        print_message("not root: other users are not tried\n");
        return;
    }
    make_good();
    pid_t server = start_offering(place().text, &options, offer_as_a_servant);
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        grab(ends[1]);
    close(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 1);
    check_answers();
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    close(ends[0]);
    check_answers();
    end_offering(server);
}

/* A process of that user, which writes how many places it got and keeps them. */
static pid_t keep_places(uid_t user, int tell)
{
    char got = 0;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    REQUIRE(setresuid(user, user, user) == 0);
    for (int i = 0; i < 10; i++)
        got = (char)(got + (first_kind() == TN_WIRE_FILE));
    REQUIRE(write(tell, &got, 1) == 1);
    for (;;)
        pause();
}

static void other_users_together_leave_places_for_the_own(void)
{
    const uint32_t others[] = { STRANGER, STRANGER - 1, STRANGER - 2 };
    tn_offer_options options = { .size = sizeof options, .patience = LONG, .max_clients = 16, .uids = others,
                                 .nuids = 3 };
    int ends[2], total = 0;
    pid_t children[3];
    if (geteuid() != 0) {
        print_message("not root: other users are not tried\n");
        return;
    }
    make_good();
    pid_t server = start_offering(place().text, &options, offer_as_a_servant);
    CHECK(pipe(ends) == 0);
    for (int i = 0; i < 3; i++) {
        char got = 0;
        children[i] = keep_places(others[i], ends[1]);
        CHECK(read(ends[0], &got, 1) == 1);
        total += got;
    }
    CHECK(total == 12);         /* of 16, though three users could have 5 each */
    check_answers();
    for (int i = 0; i < 3; i++)
        CHECK(kill(children[i], SIGKILL) == 0 && waitpid(children[i], NULL, 0) == children[i]);
    close(ends[0]), close(ends[1]);
    end_offering(server);
}

static void without_descriptors_for_more_a_server_waits_and_goes_on(void)
{
    pid_t server = begin(offer_with_few_descriptors);
    int fds[60];
    for (int i = 0; i < 60; i++)
        fds[i] = come();
    for (int i = 0; i < 56; i++)
        close(fds[i]);
    check_answers();
    for (int i = 56; i < 60; i++)
        close(fds[i]);
    end_offering(server);
}

static void clients_that_are_killed_leave_nothing(void)
{
    pid_t server = begin(offer_good);
    unsigned seed = 1;
    fflush(NULL);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            for (;;) {
                tn_attachment *a;
                if (tn_share_attach(place().text, NULL, &a, NULL) == TN_OK)
                    tn_detach(a);
            }
        seed = seed * 1664525u + 1013904223u;
        usleep((seed >> 8) % 8000);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    }
    check_answers();
    end_offering(server);
}

static void clients_that_leave_at_once_are_no_trouble(void)
{
    pid_t server = begin(offer_good);
    for (int i = 0; i < 300; i++) {
        int fd = come();
        if (i % 2)
            CHECK(send_packet(fd, &(tn_wire){ .kind = TN_WIRE_HELLO }, -1, 0));
        if (i % 3 == 0)
            shutdown(fd, SHUT_RDWR);
        close(fd);
    }
    check_answers();
    end_offering(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_server_that_lies_about_memory_is_found_out),
        IN_FOLDER(a_server_that_sends_other_descriptors_is_refused),
        IN_FOLDER(where_files_are_welcome_the_rest_is_still_refused),
        IN_FOLDER(a_server_that_does_not_speak_as_it_should_is_left),
        IN_FOLDER(clients_that_say_nothing_or_garbage_are_forgotten),
        IN_FOLDER(descriptors_that_a_client_sends_are_not_taken),
        IN_FOLDER(three_hundred_at_once_do_not_keep_others_out),
        IN_FOLDER(clients_that_do_not_read_are_forgotten),
        IN_FOLDER(descriptors_on_their_way_are_one_a_client),
        IN_FOLDER(another_user_gets_no_more_than_its_share),
        IN_FOLDER(other_users_together_leave_places_for_the_own),
        IN_FOLDER(without_descriptors_for_more_a_server_waits_and_goes_on),
        IN_FOLDER(clients_that_are_killed_leave_nothing),
        IN_FOLDER(clients_that_leave_at_once_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
