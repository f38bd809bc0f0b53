/* Attaching to a hostile peer: whatever packets and descriptors it sends, we are
 * attached to what can be read, or told why not, and nothing stays open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mutate.h"
#include "scarce.h"
#include "walk.h"

#include "share/socket.h"

#include <tenon/share.h>

enum { PACKETS_MAX = 8 };

/* The input: for each packet its size (two bytes, little-endian), what kind of descriptor goes with it, and
 * its bytes; the content of that descriptor follows in the same way, with a byte that means nothing. */
typedef enum kind { NONE, SEALED, SHRINK_ONLY, UNSEALED, PIPE, DEVICE, TWO, KINDS } kind;

typedef struct piece {
    size_t at, n;
    uint8_t kind;
} piece;

static size_t take_piece(const uint8_t *data, size_t size, size_t at, piece *p)
{
    if (at > size || size - at < 3)
        return SIZE_MAX;
    size_t n = (size_t)get_le(data + at, 2);
    *p = (piece){ .at = at + 3, .n = n < size - at - 3 ? n : size - at - 3, .kind = data[at + 2] };
    return p->at + p->n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    piece pieces[2 * PACKETS_MAX];
    size_t count = 0, at = 0;
    while (count < 2 * PACKETS_MAX && (at = take_piece(data, size, at, &pieces[count])) != SIZE_MAX)
        count++;
    if (!count || mutant_pick(&m, 16) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    piece *p = &pieces[mutant_pick(&m, count)];
    if (mutant_pick(&m, 8) == 0) {
        data[p->at - 1] = (uint8_t)mutant_pick(&m, KINDS);
        return size;
    }
    uint8_t *copy = malloc(p->n + 400);
    REQUIRE(copy);
    memcpy(copy, data + p->at, p->n);
    bool packet = p->n > 4 && memcmp(copy, "TNSH", 4) == 0;
    size_t n = packet ? mutate_wire(copy, p->n, p->n + 400, seed)
            : mutate_ztensor(copy, p->n, p->n + 400, seed);
    if (n <= UINT16_MAX && replace_range(&m, p->at, p->n, copy, n))
        set_le(m.data + p->at - 3, n, 2);
    free(copy);
    return m.size;
}

/* ---- the peer ---- */

static int ours = -1;           /* what tn_share_attach() takes for a connection */

static int give_socket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    int fd = ours;
    ours = -1;
    return fd;
}

static int connected(int fd, const struct sockaddr *address, socklen_t n)
{
    (void)fd;
    (void)address;
    (void)n;
    return 0;
}

static int make_descriptor(uint8_t what, const uint8_t *bytes, size_t n)
{
    int ends[2];
    if (what == PIPE) {
        REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
        close(ends[1]);
        return ends[0];
    }
    if (what == DEVICE)
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    int fd = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    if (what == SEALED || what == TWO)
        REQUIRE(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
    else if (what == SHRINK_ONLY)
        REQUIRE(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    return fd;
}

static void send_packet(int peer, const uint8_t *bytes, size_t n, int fd, bool twice)
{
    struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n };
    union { struct cmsghdr head; char room[CMSG_SPACE(2 * sizeof(int))]; } control;
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    memset(&control, 0, sizeof control);
    if (fd >= 0) {
        size_t size = (twice ? 2 : 1) * sizeof(int);
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
        if (twice)
            memcpy(CMSG_DATA(c) + sizeof fd, &fd, sizeof fd);
    }
    (void)!sendmsg(peer, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* All that the peer will ever say lies in the socket before anybody listens. */
static int speak(const uint8_t *data, size_t size)
{
    int ends[2];
    piece packet, content;
    size_t at = 0;
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    for (int i = 0; i < PACKETS_MAX && (at = take_piece(data, size, at, &packet)) != SIZE_MAX; i++) {
        int fd = -1;
        if (packet.kind % KINDS != NONE) {
            at = take_piece(data, size, at, &content);
            if (at == SIZE_MAX)
                content.n = content.at = 0;
            fd = make_descriptor(packet.kind % KINDS, data + content.at, content.n);
        }
        send_packet(ends[1], data + packet.at, packet.n, fd, packet.kind % KINDS == TWO);
        if (fd >= 0)
            close(fd);
    }
    shutdown(ends[1], SHUT_WR);
    ours = ends[0];
    return ends[1];
}

/* ---- what came ---- */

static int open_descriptors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    REQUIRE(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void check_item(const tn_attached *item)
{
    static volatile uint8_t sum;
    REQUIRE(item->name && (item->file != NULL) != (item->tensor != NULL) && item->buffer);
    if (item->file) {
        walk_file(item->file);
        return;
    }
    const tn_part *p = &item->tensor->parts[0];
    REQUIRE(item->descriptor && item->tensor->rank <= TN_MAX_RANK);
    const uint8_t *data = p->data, *memory = tn_buffer_data(item->buffer);
    if (!data)
        return;
    REQUIRE(data >= memory && data <= memory + tn_buffer_size(item->buffer));
    for (uint64_t i = 0; !p->array.stride && i < p->nbytes; i += 16)
        sum = (uint8_t)(sum + data[i]);
}

typedef struct conversation {
    const uint8_t *data;
    size_t         size;
    bool           look;        /* at what came */
} conversation;

static tn_status attach(const void *context, tn_error *err)
{
    const conversation *c = context;
    tn_attach_options options = { .size = sizeof options, .in_place = c->size % 8 == 0, .patience = 1000 };
    tn_attachment *a = NULL;
    int before = open_descriptors(), peer = speak(c->data, c->size);
    tn_status status = tn_share_attach("/peer", &options, &a, err);
    REQUIRE(status ? !a : a != NULL);
    for (size_t i = 0; a && c->look && i < tn_attached_count(a); i++)
        check_item(tn_attached_at(a, i));
    REQUIRE(!a || (!tn_attached_at(a, tn_attached_count(a)) && tn_attached_withheld(a) < SIZE_MAX));
    tn_detach(a);
    close(peer);
    if (ours >= 0)
        close(ours);
    ours = -1;
    REQUIRE(open_descriptors() == before);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    conversation c = { data, size, .look = true };
    tn_error err = { .text = "" };
    tn_socket_calls.socket = give_socket;
    tn_socket_calls.connect = connected;
    tn_status status = attach(&c, &err);
    if (status)
        walk_error(&err, status);
    c.look = false;
    if (size % 4 == 0)
        scarce_check(attach, &c, scarce_choice(data, size));
    return 0;
}
