/* Memory that crosses process boundaries: what a peer can do with it, what it
 * cannot, and what is believed of a peer. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "folder.h"
#include "held.h"

#include "bytes/guard.h"
#include "share/memory_calls.h"
#include "share/provider.h"

enum { BYTES = 10000 };

static struct tn_memory_calls real;

static int set_up(void **state)
{
    real = tn_memory_calls;
    return make_folder(state);
}

static int tear_down(void **state)
{
    tn_memory_calls = real;
    return remove_folder(state);
}

#define HERE(test) { #test, (CMUnitTestFunction)(void (*)(void))test, set_up, tear_down, NULL }

static tn_buffer *shared_buffer(const char *text)
{
    tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_MEMFD };
    tn_buffer *b = NULL;
    CHECK(tn_buffer_new(BYTES, &options, &b, NULL) == TN_OK);
    strcpy(tn_buffer_data(b), text);
    return b;
}

static const char *text_of(const tn_buffer *b)
{
    return tn_buffer_data(b);
}

static tn_exported export_of(tn_buffer *b, bool read_only)
{
    tn_exported e;
    tn_error err = { .text = "" };
    if (tn_buffer_export(b, read_only, &e, &err))
        fail_msg("%s", line_of(&err));
    return e;
}

static tn_buffer *import_of(tn_exported e)
{
    tn_buffer *b;
    tn_error err = { .text = "" };
    if (tn_buffer_import(&e, false, &b, &err))
        fail_msg("%s", line_of(&err));
    CHECK(e.fd == -1);
    return b;
}

/* ---- handing over ---- */

static void what_is_imported_is_the_same_memory(void)
{
    held before = held_now();
    tn_buffer *mine = shared_buffer("mine");
    tn_exported e = export_of(mine, false);
    CHECK(e.type == TN_HANDLE_MEMFD && e.bytes == BYTES && e.offset == 0 && !e.read_only);
    CHECK(fcntl(e.fd, F_GETFD) & FD_CLOEXEC);
    tn_buffer *theirs = import_of(e);
    CHECK(tn_buffer_data(theirs) != tn_buffer_data(mine));
    CHECK(tn_buffer_size(theirs) == BYTES && tn_buffer_flags(theirs) == TN_MEM_SHARED);
    CHECK(strcmp(text_of(theirs), "mine") == 0);
    strcpy(tn_buffer_data(theirs), "theirs");
    CHECK(strcmp(text_of(mine), "theirs") == 0);
    tn_buffer_unref(mine);
    CHECK(strcmp(text_of(theirs), "theirs") == 0);      /* outlives who made it */
    tn_buffer_unref(theirs);
    CHECK(nothing_more_than(before));
}

static void handle_and_mapping_say_what_is_true_in_this_process(void)
{
    tn_buffer *b = shared_buffer("x");
    tn_buffer_handle h = tn_buffer_handle_of(b);
    tn_wia_mapping m = tn_buffer_mapping_of(b);
    uint64_t address = (uintptr_t)tn_buffer_data(b);
    struct stat st;
    CHECK(h.type == TN_HANDLE_MEMFD && h.size_bytes == BYTES && !h.read_only);
    CHECK(fstat((int)h.handle, &st) == 0 && st.st_size == BYTES);
    CHECK(m.present && m.cpu_mapped && m.cpu_device && m.cpu_address == address &&
          m.device_address == address);
    tn_buffer *r = import_of(export_of(b, true));
    CHECK(tn_buffer_handle_of(r).read_only && tn_buffer_handle_of(r).handle != h.handle);
    CHECK(tn_buffer_mapping_of(r).cpu_address == (uintptr_t)tn_buffer_data(r));
    tn_buffer_unref(r);
    tn_buffer_unref(b);
}

static tn_exported given;       /* to the child */

static void write_in_child(void)
{
    tn_buffer *b;
    REQUIRE(tn_buffer_import(&given, false, &b, NULL) == TN_OK);
    REQUIRE(strcmp(text_of(b), "from the parent") == 0);
    strcpy((char *)tn_buffer_data(b) + BYTES - 20, "from the child");
    tn_buffer_unref(b);
}

static void what_another_process_writes_is_seen(void)
{
    tn_buffer *b = shared_buffer("from the parent");
    given = export_of(b, false);
    CHECK(in_child(write_in_child) == 0);
    CHECK(strcmp(text_of(b) + BYTES - 20, "from the child") == 0);
    tn_exported_close(&given);
    CHECK(given.fd == -1);
    tn_exported_close(&given);
    tn_buffer_unref(b);
}

/* ---- read-only means that the kernel refuses ---- */

/* All ways to change a file by its descriptor. */
static void try_to_change(int fd)
{
    void *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(map == MAP_FAILED);
    REQUIRE(write(fd, "x", 1) < 0);
    REQUIRE(pwrite(fd, "x", 1, 0) < 0);
    REQUIRE(ftruncate(fd, 0) < 0 && ftruncate(fd, 2 * BYTES) < 0);
    REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0);
    REQUIRE(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096) < 0);
    REQUIRE(fallocate(fd, 0, 0, 4 * BYTES) < 0);
    map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        REQUIRE(mprotect(map, BYTES, PROT_READ | PROT_WRITE) < 0);
}

static void attack_in_child(void)
{
    static const int ways[] = { O_RDWR, O_WRONLY, O_RDWR | O_TRUNC, O_RDWR | O_APPEND };
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", given.fd);
    try_to_change(given.fd);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int fd = open(name, ways[i]);           /* which is no barrier: seals are */
        if (fd >= 0)
            try_to_change(fd);
    }
    tn_exported lie = given;
    tn_buffer *b;
    tn_error err;
    lie.read_only = false;
    REQUIRE(tn_buffer_import(&lie, false, &b, &err) == TN_ERR_CORRUPT &&
            strstr(line_of(&err), "sealed against that"));
    REQUIRE(tn_buffer_import(&given, false, &b, &err) == TN_OK);
    REQUIRE(tn_buffer_flags(b) & TN_MEM_READ_ONLY);
    tn_exported again;
    REQUIRE(tn_buffer_export(b, false, &again, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "read-only"));
    REQUIRE(tn_buffer_export(b, true, &again, &err) == TN_OK);
    try_to_change(again.fd);
    /* Where the mapping can be made writable at all, it is a copy. */
    if (mprotect(b->base, b->extent, PROT_READ | PROT_WRITE) == 0)
        memset(tn_buffer_data(b), 'x', BYTES);
}

static void write_to_read_only(void)
{
    tn_buffer *b;
    signal(SIGSEGV, SIG_DFL);           /* no report of a sanitizer's */
    REQUIRE(tn_buffer_import(&given, false, &b, NULL) == TN_OK);
    *(volatile char *)tn_buffer_data(b) = 'x';
}

static void who_gets_it_read_only_cannot_write_by_any_way(void)
{
    for (int frozen = 0; frozen < 2; frozen++) {
        tn_buffer *b = shared_buffer("original");
        if (frozen)
            CHECK(tn_buffer_freeze(b, NULL) == TN_OK);
        given = export_of(b, true);
        CHECK(in_child(attack_in_child) == 0);
        CHECK(strcmp(text_of(b), "original") == 0);
        int status = in_child(write_to_read_only);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        CHECK(strcmp(text_of(b), "original") == 0);
        tn_exported_close(&given);
        tn_buffer_unref(b);
    }
}

static int go[2], done[2];      /* pipes */

static void watch_in_child(void)
{
    tn_buffer *b;
    char c;
    REQUIRE(tn_buffer_import(&given, false, &b, NULL) == TN_OK);
    REQUIRE(strcmp(text_of(b), "first") == 0);
    REQUIRE(write(done[1], "1", 1) == 1 && read(go[0], &c, 1) == 1);
    REQUIRE(strcmp(text_of(b), "second") == 0);
}

static void the_owner_keeps_writing_what_others_only_read(void)
{
    char c;
    int status;
    tn_buffer *b = shared_buffer("first");
    given = export_of(b, true);
    CHECK(pipe(go) == 0 && pipe(done) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        watch_in_child();
        _exit(0);
    }
    close(done[1]);
    CHECK(read(done[0], &c, 1) == 1);
    strcpy(tn_buffer_data(b), "second");
    CHECK(write(go[1], "1", 1) == 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(done[0]), close(go[0]), close(go[1]);
    tn_exported_close(&given);
    tn_buffer_unref(b);
}

static void once_exported_read_only_it_is_not_given_for_writing(void)
{
    tn_buffer *b = shared_buffer("x");
    tn_exported e, writable = export_of(b, false), read_only = export_of(b, true);
    tn_error err;
    tn_buffer *late;
    CHECK(tn_buffer_export(b, false, &e, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "exported read-only before"));
    CHECK(tn_buffer_freeze(b, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "exported read-only before"));
    CHECK(tn_buffer_import(&writable, false, &late, &err) == TN_ERR_CORRUPT);      /* it came too late */
    tn_exported_close(&writable);
    tn_exported_close(&read_only);
    strcpy(tn_buffer_data(b), "still ours");
    tn_buffer_unref(b);
}

static void the_size_is_sealed_for_everybody(void)
{
    for (int read_only = 0; read_only < 2; read_only++) {
        tn_buffer *b = shared_buffer("x");
        tn_exported e = export_of(b, read_only);
        CHECK(ftruncate(e.fd, 0) != 0 && errno == EPERM);
        CHECK(ftruncate(e.fd, BYTES + 1) != 0 && errno == EPERM);
        tn_exported_close(&e);
        tn_buffer_unref(b);
    }
}

/* ---- freezing ---- */

static void write_to_frozen(void)
{
    tn_buffer *b = shared_buffer("x");
    signal(SIGSEGV, SIG_DFL);
    REQUIRE(tn_buffer_freeze(b, NULL) == TN_OK);
    *(volatile char *)tn_buffer_data(b) = 'y';
}

static void frozen_memory_stays_where_it_is_and_as_it_is(void)
{
    held before = held_now();
    tn_buffer *b = shared_buffer("for good");
    const void *place = tn_buffer_data(b);
    CHECK(tn_buffer_freeze(b, NULL) == TN_OK && tn_buffer_freeze(b, NULL) == TN_OK);
    CHECK(tn_buffer_data(b) == place && strcmp(text_of(b), "for good") == 0);
    CHECK(tn_buffer_flags(b) == (TN_MEM_SHARED | TN_MEM_READ_ONLY) && tn_buffer_handle_of(b).read_only);
    int seals = fcntl(b->fd, F_GET_SEALS), all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    CHECK((seals & all) == all);
    tn_buffer_unref(b);
    int status = in_child(write_to_frozen);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(nothing_more_than(before));
}

static void what_others_map_for_writing_cannot_be_frozen(void)
{
    tn_buffer *b = shared_buffer("before"), *other = import_of(export_of(b, false));
    tn_error err;
    CHECK(tn_buffer_freeze(b, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "mapped for writing elsewhere"));
    CHECK(!(tn_buffer_flags(b) & TN_MEM_READ_ONLY));
    strcpy(tn_buffer_data(b), "after");
    CHECK(strcmp(text_of(other), "after") == 0);
    tn_buffer_unref(other);
    CHECK(tn_buffer_freeze(b, &err) == TN_OK && strcmp(text_of(b), "after") == 0);
    tn_buffer_unref(b);
}

static void what_its_owner_still_writes_is_not_called_frozen(void)
{
    tn_buffer *b = shared_buffer("before"), *other = import_of(export_of(b, true));
    tn_error err;
    CHECK(tn_buffer_freeze(other, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "others may still write it"));
    tn_buffer_unref(other);
    tn_buffer_unref(b);
    b = shared_buffer("for good");
    CHECK(tn_buffer_freeze(b, NULL) == TN_OK);
    other = import_of(export_of(b, true));
    CHECK(tn_buffer_freeze(other, NULL) == TN_OK);
    tn_buffer_unref(other);
    tn_buffer_unref(b);
}

/* ---- huge pages ---- */

static unsigned long long free_huge_pages(void)
{
    char line[200];
    unsigned long long number = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) && sscanf(line, "HugePages_Free: %llu", &number) != 1)
        ;
    fclose(f);
    return number;
}

static void pages_of_the_pool_are_handed_over_like_others(void)
{
    if (free_huge_pages() < 2)
        skip();
    held before = held_now();
    tn_buffer_options options = { .size = sizeof options, .flags = TN_MEM_SHARED | TN_MEM_HUGE };
    tn_buffer *b, *part;
    CHECK(tn_buffer_new(BYTES, &options, &b, NULL) == TN_OK && tn_buffer_flags(b) & TN_MEM_HUGE);
    CHECK(b->extent > BYTES && free_huge_pages() > 0);
    strcpy((char *)tn_buffer_data(b) + 5000, "in the middle");
    CHECK(tn_buffer_freeze(b, NULL) == TN_OK);
    tn_exported e = export_of(b, true);
    e.offset = 5000;
    e.bytes = 100;
    part = import_of(e);
    CHECK(strcmp(text_of(part), "in the middle") == 0);
    tn_buffer_unref(b);
    tn_buffer_unref(part);
    CHECK(nothing_more_than(before));
}

/* ---- nothing is believed ---- */

static int sealed_memfd(off_t size, int seals)
{
    int fd = memfd_create("tenon-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && ftruncate(fd, size) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

/* Refused, with a text that says so, and the descriptor is still the caller's. */
static void check_refused(tn_exported e, bool allow_file, tn_status status, const char *says)
{
    tn_buffer *b = NULL;
    tn_error err = { .text = "" };
    held before = held_now();
    int fd = e.fd;
    CHECK(tn_buffer_import(&e, allow_file, &b, &err) == status);
    if (!strstr(line_of(&err), says))
        fail_msg("expected \"%s\" but found \"%s\"", says, line_of(&err));
    CHECK(err.status == status && b == NULL && e.fd == fd);
    CHECK(tn_buffer_import(&e, allow_file, &b, NULL) == status);
    CHECK(nothing_more_than(before));
}

static void a_size_that_is_a_lie_is_found(void)
{
    static const struct { uint64_t bytes, offset; tn_status status; } lies[] = {
        { BYTES + 1, 0, TN_ERR_CORRUPT }, { BYTES, 1, TN_ERR_CORRUPT }, { 1, BYTES, TN_ERR_CORRUPT },
        { 1, BYTES + 1, TN_ERR_CORRUPT },
        { 2, UINT64_MAX, TN_ERR_CORRUPT }, { BYTES, UINT64_MAX - BYTES + 1, TN_ERR_CORRUPT },
        { 12288, 0, TN_ERR_CORRUPT },
        { 1, (uint64_t)1 << 63, TN_ERR_CORRUPT }, { (uint64_t)1 << 40, 0, TN_ERR_CORRUPT },
        { 0, 0, TN_ERR_CORRUPT },
        { UINT64_MAX, 0, TN_ERR_LIMIT }, { UINT64_MAX, 1, TN_ERR_LIMIT },
        { (uint64_t)1 << 63, 0, TN_ERR_LIMIT },
    };
    int fd = sealed_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_WRITE);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        check_refused((tn_exported){ .type = TN_HANDLE_MEMFD, .bytes = lies[i].bytes,
                                     .offset = lies[i].offset, .read_only = true,
                                     .fd = fd }, i % 2, lies[i].status, "handle");
    close(fd);
}

static void a_part_of_a_memfd_is_found_at_any_offset(void)
{
    enum { SIZE = 20000 };
    static const uint64_t offsets[] = { 0, 1, 100, 4095, 4096, 4097, 12288, 19999 };
    uint8_t bytes[SIZE];
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 7 % 251);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (int way = 0; way < 3; way++) {
            held before = held_now();
            int fd = sealed_memfd(SIZE, F_SEAL_SHRINK), seal = way == 0   ? 0
                                                               : way == 1 ? F_SEAL_WRITE
                                                                          : F_SEAL_FUTURE_WRITE;
            CHECK(pwrite(fd, bytes, SIZE, 0) == SIZE && fcntl(fd, F_ADD_SEALS, seal) == 0);
            uint64_t n = SIZE - offsets[i] < 5000 ? SIZE - offsets[i] : 5000;
            tn_exported e = { .type = TN_HANDLE_MEMFD, .bytes = n, .offset = offsets[i],
                              .read_only = seal != 0, .fd = fd };
            tn_buffer *b = import_of(e), *again;
            CHECK(tn_buffer_size(b) == n && memcmp(tn_buffer_data(b), bytes + offsets[i], n) == 0);
            again = import_of(export_of(b, seal != 0));
            CHECK(tn_buffer_size(again) == n && memcmp(tn_buffer_data(again), bytes + offsets[i], n) == 0);
            tn_buffer_unref(again);
            if (!seal)
                CHECK(tn_buffer_freeze(b, NULL) == TN_OK &&
                      memcmp(tn_buffer_data(b), bytes + offsets[i], n) == 0);
            tn_buffer_unref(b);
            CHECK(nothing_more_than(before));
        }
}

static void seals_that_are_missing_are_found(void)
{
    static const struct { int seals; bool read_only; const char *says; } cases[] = {
        { 0, false, "can still shrink" },
        { 0, true, "can still shrink" },
        { F_SEAL_GROW | F_SEAL_WRITE, true, "can still shrink" },
        { F_SEAL_SHRINK | F_SEAL_GROW, true, "sealed against writing but it is not" },
        { F_SEAL_SHRINK | F_SEAL_WRITE, false, "sealed against that" },
        { F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE, false, "sealed against that" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int allow_file = 0; allow_file < 2; allow_file++) {
            int fd = sealed_memfd(BYTES, cases[i].seals);
            check_refused((tn_exported){ .type = TN_HANDLE_MEMFD, .bytes = BYTES,
                                         .read_only = cases[i].read_only, .fd = fd },
                          allow_file, TN_ERR_CORRUPT, cases[i].says);
            close(fd);
        }
}

/* Cuts and seals the memfd between the first and the second look at it. */
static int looks;

static void attack_between_looks(int fd)
{
    if (++looks == 1)
        CHECK(ftruncate(fd, 0) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE) == 0);
}

static int slow_get_seals(int fd)
{
    int seals = real.get_seals(fd);
    attack_between_looks(fd);
    return seals;
}

static int slow_fstat(int fd, struct stat *st)
{
    int answer = real.fstat(fd, st);
    attack_between_looks(fd);
    return answer;
}

static void a_memfd_that_is_cut_and_sealed_meanwhile_is_refused(void)
{
    int fd = sealed_memfd(BYTES, 0);
    tn_exported e = { .type = TN_HANDLE_MEMFD, .bytes = BYTES, .read_only = true, .fd = fd };
    tn_buffer *b;
    looks = 0;
    tn_memory_calls.get_seals = slow_get_seals;
    tn_memory_calls.fstat = slow_fstat;
    CHECK(tn_buffer_import(&e, false, &b, NULL) == TN_ERR_CORRUPT && looks == 2);
    close(fd);
}

static void descriptors_of_other_things_are_refused(void)
{
    int pipes[2], sockets[2], dir = open("/tmp", O_RDONLY | O_DIRECTORY), null = open("/dev/zero", O_RDWR),
                              closed = dup(0);
    CHECK(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 && dir >= 0 && null >= 0);
    close(closed);
    const int fds[] = { pipes[0], pipes[1], sockets[0], dir, null };
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        for (int k = 0; k < 4; k++)
            check_refused((tn_exported){ .type = TN_HANDLE_MEMFD, .bytes = 1, .read_only = k % 2,
                                         .fd = fds[i] }, k / 2, TN_ERR_CORRUPT,
                          "expected the descriptor of a memfd but found mode 0");
    check_refused((tn_exported){ .type = TN_HANDLE_MEMFD, .bytes = 1, .fd = -1 }, true, TN_ERR_ARGUMENT,
                  "without a descriptor");
    check_refused((tn_exported){ .type = TN_HANDLE_MEMFD, .bytes = 1, .fd = closed }, true, TN_ERR_IO,
                  "Bad file descriptor");
    check_refused((tn_exported){ .type = TN_HANDLE_NONE, .bytes = 1, .fd = dir }, true, TN_ERR_ARGUMENT,
                  "without a type");
    check_refused((tn_exported){ .type = TN_HANDLE_METAL, .bytes = 1, .fd = dir }, true, TN_ERR_UNSUPPORTED,
                  "metal_shared is not available");
    check_refused((tn_exported){ .type = (tn_handle_type)77, .bytes = 1, .fd = dir }, true,
                  TN_ERR_UNSUPPORTED, "handle type 77");
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
    close(sockets[1]);
}

static void a_plain_file_is_mapped_only_where_that_is_asked_for(void)
{
    put_file("plain", "some text");
    int fd = open(in_folder("plain").text, O_RDWR | O_CLOEXEC),
        unread = open(in_folder("plain").text, O_PATH | O_CLOEXEC);
    tn_exported e = { .type = TN_HANDLE_MEMFD, .bytes = 9, .read_only = true, .fd = fd };
    check_refused(e, false, TN_ERR_CORRUPT, "found a plain file");
    e.read_only = false;
    check_refused(e, true, TN_ERR_CORRUPT, "read-only or not at all");
    e.read_only = true;
    e.bytes = 10;
    check_refused(e, true, TN_ERR_CORRUPT, "10 bytes at byte 0 but there are 9 in all");
    e.bytes = 9;
    e.fd = unread;              /* cannot be read at all */
    check_refused(e, true, TN_ERR_IO, "Bad file descriptor");
    e.fd = fd;
    e.offset = 5;
    e.bytes = 4;
    tn_buffer *b;
    CHECK(tn_buffer_import(&e, true, &b, NULL) == TN_OK && e.fd == -1);
    CHECK(memcmp(tn_buffer_data(b), "text", 4) == 0 && !tn_buffer_broken(b));
    CHECK(tn_buffer_flags(b) == (TN_MEM_SHARED | TN_MEM_READ_ONLY));
    tn_buffer_unref(b);
    close(unread);
}

/* ---- systems that refuse ---- */

static unsigned refused_flags;
static int refused_seals, refuse_with;

static int picky_create(const char *name, unsigned flags)
{
    if (!(flags & refused_flags))
        return real.memfd_create(name, flags);
    errno = refuse_with;
    return -1;
}

static int picky_seals(int fd, int seals)
{
    if (!(seals & refused_seals))
        return real.add_seals(fd, seals);
    errno = refuse_with;
    return -1;
}

/* As before 6.7: no shared mapping under F_SEAL_WRITE. */
static void *mmap_of_old(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fd < 0 || !(flags & MAP_SHARED) || !(real.get_seals(fd) & F_SEAL_WRITE))
        return real.mmap(address, n, protection, flags, fd, offset);
    errno = EPERM;
    return MAP_FAILED;
}

static void older_kernels_do_what_they_can(void)
{
    tn_error err;
    tn_exported e;
    refuse_with = EINVAL;
    refused_flags = 0x8;        /* MFD_NOEXEC_SEAL, 6.3 */
    tn_memory_calls.memfd_create = picky_create;
    tn_buffer *b = shared_buffer("x");
    refused_seals = F_SEAL_FUTURE_WRITE;        /* 5.1 */
    tn_memory_calls.add_seals = picky_seals;
    CHECK(tn_buffer_export(b, true, &e, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "Linux 5.1"));
    CHECK(tn_buffer_freeze(b, &err) == TN_OK);
    tn_memory_calls.mmap = mmap_of_old;
    tn_buffer *other = import_of(export_of(b, true));
    CHECK(strcmp(text_of(other), "x") == 0);
    tn_buffer_unref(other);
    tn_buffer_unref(b);
}

static void a_system_without_memfd_says_so(void)
{
    tn_buffer_options options = { .size = sizeof options, .flags = TN_MEM_SHARED };
    tn_buffer *b;
    tn_error err;
    refuse_with = ENOSYS;
    refused_flags = MFD_CLOEXEC;
    tn_memory_calls.memfd_create = picky_create;
    CHECK(tn_buffer_new(1, &options, &b, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "memfd is not available: "));
}

/* Every call in turn, each time it is called. */
static int calls, failing;

static bool fails(int problem)
{
    if (++calls != failing)
        return false;
    errno = problem;
    return true;
}

static void *failing_mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    return fails(ENOMEM) ? MAP_FAILED : real.mmap(address, n, protection, flags, fd, offset);
}
static int failing_madvise(void *address, size_t n, int advice)
{
    return fails(EINVAL) ? -1 : real.madvise(address, n, advice);
}
static int failing_mlock(const void *address, size_t n)
{
    return fails(EAGAIN) ? -1 : real.mlock(address, n);
}
static int failing_create(const char *name, unsigned flags)
{
    return fails(EMFILE) ? -1 : real.memfd_create(name, flags);
}
static int failing_ftruncate(int fd, off_t size)
{
    return fails(ENOSPC) ? -1 : real.ftruncate(fd, size);
}
static int failing_fstat(int fd, struct stat *st)
{
    return fails(EOVERFLOW) ? -1 : real.fstat(fd, st);
}
static int failing_get_seals(int fd)
{
    return fails(EINVAL) ? -1 : real.get_seals(fd);
}
static int failing_add_seals(int fd, int seals)
{
    return fails(EPERM) ? -1 : real.add_seals(fd, seals);
}
static int failing_duplicate(int fd)
{
    return fails(EMFILE) ? -1 : real.duplicate(fd);
}
static int failing_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    return fails(EINVAL) ? -1 : sigaction(number, action, old);
}

static const struct tn_memory_calls failing_calls = {
    .mmap = failing_mmap, .madvise = failing_madvise, .mlock = failing_mlock, .memfd_create = failing_create,
    .ftruncate = failing_ftruncate, .fstat = failing_fstat, .get_seals = failing_get_seals,
    .add_seals = failing_add_seals,
    .duplicate = failing_duplicate,
};

/* Everything a buffer goes through; the first status that is not TN_OK. */
static tn_status live(unsigned flags, bool freezes, tn_error *err)
{
    tn_buffer_options options = { .size = sizeof options, .flags = flags, .alignment = 1 << 16 };
    tn_buffer *b, *other;
    tn_exported e;
    tn_status status = tn_buffer_new(BYTES, &options, &b, err);
    if (status)
        return status;
    strcpy(tn_buffer_data(b), "alive");
    if (freezes) {
        status = tn_buffer_freeze(b, err);
        if (status)             /* nothing has changed */
            strcpy(tn_buffer_data(b), "alive");
    }
    if (!status && flags & TN_MEM_SHARED && !(status = tn_buffer_export(b, freezes, &e, err))) {
        status = tn_buffer_import(&e, false, &other, err);
        tn_exported_close(&e);
        if (!status) {
            REQUIRE(strcmp(text_of(other), "alive") == 0);
            tn_buffer_unref(other);
        }
    }
    REQUIRE(strcmp(text_of(b), "alive") == 0);
    tn_buffer_unref(b);
    return status;
}

static tn_status take_file(tn_error *err)
{
    tn_exported e = { .type = TN_HANDLE_MEMFD, .bytes = 4, .read_only = true,
                      .fd = open(in_folder("plain").text, O_RDONLY | O_CLOEXEC) };
    tn_buffer *b;
    tn_status status = tn_buffer_import(&e, true, &b, err);
    tn_exported_close(&e);
    if (!status)
        tn_buffer_unref(b);
    return status;
}

static tn_status live_so(int way, tn_error *err)
{
    static const unsigned flags[] = { 0, TN_MEM_PINNED, TN_MEM_HUGE, TN_MEM_SHARED,
                                      TN_MEM_SHARED | TN_MEM_HUGE,
                                      TN_MEM_SHARED | TN_MEM_PINNED };
    enum { WAYS = sizeof flags / sizeof *flags };
    return way < WAYS       ? live(flags[way], false, err)
           : way < WAYS + 3 ? live(flags[way - 3], true, err)
                            : take_file(err);
}

static void fail_each_call_once(void)
{
    size_t failures = 0;
    for (int way = 0; way < 10; way++) {
        tn_memory_calls = failing_calls;
        tn_guard_sigaction = failing_sigaction;
        tn_memory_calls.munmap = real.munmap;
        held before = held_now();
        calls = 0;
        failing = 1;
        do {
            tn_error err = { .text = "" };
            calls = 0;
            tn_status status = live_so(way, &err);
            REQUIRE(status == err.status && (status == TN_OK) == (err.text[0] == '\0'));
            REQUIRE(nothing_more_than(before));
            failures += status != TN_OK;
        } while (failing++ <= calls);
        REQUIRE(failing > 2);
    }
    REQUIRE(failures > 30);
}

static void whatever_call_fails_nothing_is_left_behind(void)
{
    put_file("plain", "text");
    CHECK(in_child(fail_each_call_once) == 0);          /* whose handler for SIGBUS is not there yet */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HERE(whatever_call_fails_nothing_is_left_behind),
        HERE(what_is_imported_is_the_same_memory),
        HERE(handle_and_mapping_say_what_is_true_in_this_process),
        HERE(what_another_process_writes_is_seen),
        HERE(who_gets_it_read_only_cannot_write_by_any_way),
        HERE(the_owner_keeps_writing_what_others_only_read),
        HERE(once_exported_read_only_it_is_not_given_for_writing),
        HERE(the_size_is_sealed_for_everybody),
        HERE(frozen_memory_stays_where_it_is_and_as_it_is),
        HERE(what_others_map_for_writing_cannot_be_frozen),
        HERE(what_its_owner_still_writes_is_not_called_frozen),
        HERE(pages_of_the_pool_are_handed_over_like_others),
        HERE(a_size_that_is_a_lie_is_found),
        HERE(a_part_of_a_memfd_is_found_at_any_offset),
        HERE(seals_that_are_missing_are_found),
        HERE(a_memfd_that_is_cut_and_sealed_meanwhile_is_refused),
        HERE(descriptors_of_other_things_are_refused),
        HERE(a_plain_file_is_mapped_only_where_that_is_asked_for),
        HERE(older_kernels_do_what_they_can),
        HERE(a_system_without_memfd_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
