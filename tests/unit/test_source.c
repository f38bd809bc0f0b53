/* Sources: mapped, read, memory; what they refuse. */
#include "support.h"

#include "bytes/source.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SIZE 10000

static uint8_t content[SIZE];
static char folder[] = "/tmp/tenon-test-XXXXXX";
static char path[64];

static void write_file(size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    CHECK(fwrite(content, 1, n, f) == n);
    CHECK(fclose(f) == 0);
}

static int set_up(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 7 + i / 256);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    unlink(path);
    return rmdir(folder);
}

static tn_source *open_source(tn_io io)
{
    tn_source *s = NULL;
    tn_error err;
    CHECK(tn_source_open(path, io, &s, &err) == TN_OK);
    assert_non_null(s);
    return s;
}

/* Every way to ask for every kind of range. */
static void check_bytes(const tn_source *s, size_t size, bool in_place)
{
    static const size_t at[] = { 0, 1, 4095, 4096, 9999, 10000 };
    uint8_t buffer[SIZE];
    const uint8_t *bytes;
    tn_error err;
    CHECK(tn_source_size(s) == size);
    for (size_t i = 0; i < sizeof at / sizeof *at && at[i] <= size; i++)
        for (size_t n = 0; n <= size - at[i]; n += n < 3 ? 1 : (size - at[i] - n) / 2 + 1) {
            memset(buffer, 0xee, sizeof buffer);
            CHECK(tn_source_read(s, at[i], buffer, n, &err) == TN_OK);
            CHECK(memcmp(buffer, content + at[i], n) == 0);
            CHECK(n == sizeof buffer || buffer[n] == 0xee);
            const uint8_t *view = tn_source_view(s, at[i], n);
            CHECK((view != NULL) == in_place);
            CHECK(!view || memcmp(view, content + at[i], n) == 0);
            CHECK(tn_source_get(s, at[i], n, buffer, &bytes, &err) == TN_OK);
            CHECK((bytes == buffer) == !in_place && memcmp(bytes, content + at[i], n) == 0);
        }
}

static void check_outside(const tn_source *s)
{
    static const struct { uint64_t offset, n; } outside[] = {
        { 0, SIZE + 1 }, { SIZE, 1 }, { SIZE + 1, 0 }, { 1, SIZE }, { UINT64_MAX, 1 }, { UINT64_MAX, 0 },
        { 1, UINT64_MAX }, { UINT64_MAX, UINT64_MAX },
    };
    uint8_t byte;
    const uint8_t *bytes;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        tn_error err = { .status = TN_OK };
        CHECK(tn_source_view(s, outside[i].offset, outside[i].n) == NULL);
        CHECK(tn_source_read(s, outside[i].offset, &byte, (size_t)outside[i].n, &err) == TN_ERR_TRUNCATED);
        CHECK(err.status == TN_ERR_TRUNCATED && err.offset == outside[i].offset);
        CHECK(tn_source_get(s, outside[i].offset, (size_t)outside[i].n, &byte, &bytes, NULL) ==
              TN_ERR_TRUNCATED);
    }
}

static void a_file_is_the_same_mapped_and_read(void)
{
    write_file(SIZE);
    for (int io = TN_IO_AUTO; io <= TN_IO_PREAD; io++) {
        tn_source *s = open_source((tn_io)io);
        check_bytes(s, SIZE, io != TN_IO_PREAD);
        check_outside(s);
        int fd;
        CHECK(tn_source_hold(s, &fd, NULL) == TN_OK && fd >= 0);
        tn_source_release(s);
        tn_source_close(s);
    }
}

static void a_descriptor_is_duplicated(void)
{
    write_file(SIZE);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    CHECK(lseek(fd, 17, SEEK_SET) == 17);
    for (int io = TN_IO_AUTO; io <= TN_IO_PREAD; io++) {
        tn_source *s;
        CHECK(tn_source_open_fd(fd, (tn_io)io, &s, NULL) == TN_OK);
        int own;
        CHECK(tn_source_hold(s, &own, NULL) == TN_OK && own >= 0 && own != fd);
        tn_source_release(s);
        check_bytes(s, SIZE, io != TN_IO_PREAD);
        tn_source_close(s);
    }
    CHECK(lseek(fd, 0, SEEK_CUR) == 17);        /* still open, and where it was */
    close(fd);
    tn_source *s;
    tn_error err;
    CHECK(tn_source_open_fd(-1, TN_IO_AUTO, &s, &err) == TN_ERR_IO);
}

static void memory_is_seen_in_place(void)
{
    uint8_t *copy = exact_copy(content, SIZE);
    tn_source *s;
    CHECK(tn_source_open_memory(copy, SIZE, &s, NULL) == TN_OK);
    check_bytes(s, SIZE, true);
    check_outside(s);
    CHECK(tn_source_view(s, 0, SIZE) == copy);
    int fd;
    CHECK(tn_source_hold(s, &fd, NULL) == TN_OK && fd == -1);
    tn_source_release(s);
    tn_source_close(s);
    free(copy);
    CHECK(tn_source_open_memory(NULL, 0, &s, NULL) == TN_OK);
    check_bytes(s, 0, true);
    tn_source_close(s);
    tn_source_close(NULL);
}

static void an_empty_file_opens_every_way(void)
{
    write_file(0);
    for (int io = TN_IO_AUTO; io <= TN_IO_PREAD; io++) {
        tn_source *s = open_source((tn_io)io);
        check_bytes(s, 0, io != TN_IO_PREAD);
        tn_source_close(s);
    }
}

static void a_file_that_shrinks_is_truncated_when_read(void)
{
    write_file(SIZE);
    tn_source *s = open_source(TN_IO_PREAD);
    uint8_t buffer[SIZE];
    tn_error err;
    CHECK(truncate(path, 6000) == 0);
    CHECK(tn_source_read(s, 0, buffer, 6000, &err) == TN_OK);
    CHECK(tn_source_read(s, 5000, buffer, 2000, &err) == TN_ERR_TRUNCATED);
    CHECK(err.offset == 6000 && strstr(line_of(&err), "expected 10000 bytes, found 6000") != NULL);
    tn_source_close(s);
}

static void expect_refusal(const char *name, const char *text)
{
    tn_source *s = NULL;
    for (int io = TN_IO_AUTO; io <= TN_IO_PREAD; io++) {
        tn_error err = { .status = TN_OK };
        CHECK(tn_source_open(name, (tn_io)io, &s, &err) == TN_ERR_IO);
        CHECK(tn_source_open(name, (tn_io)io, &s, NULL) == TN_ERR_IO);
        CHECK(err.status == TN_ERR_IO && strstr(line_of(&err), text) != NULL);
        CHECK(s == NULL);
    }
}

static void only_regular_files_are_opened(void)
{
    char other[64];
    snprintf(other, sizeof other, "%s/other", folder);
    expect_refusal(folder, "is a directory: expected a regular file");
    expect_refusal("/dev/null", "is a device: expected a regular file");
    expect_refusal(other, "No such file or directory");
    expect_refusal("", "No such file or directory");
    CHECK(mkfifo(other, 0600) == 0);
    expect_refusal(other, "is a FIFO: expected a regular file");
    unlink(other);

    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, other);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    expect_refusal(other, "is a socket: expected a regular file");
    close(fd);
    unlink(other);

    CHECK(symlink(folder, other) == 0);
    expect_refusal(other, "is a directory");
    unlink(other);
}

static void descriptors_of_other_things_are_refused(void)
{
    int ends[2];
    tn_source *s;
    tn_error err;
    CHECK(pipe(ends) == 0);
    CHECK(tn_source_open_fd(ends[0], TN_IO_AUTO, &s, &err) == TN_ERR_IO);
    CHECK(strstr(line_of(&err), "is a FIFO") != NULL);
    close(ends[0]);
    close(ends[1]);
}

/* A sparse file larger than any address space stands for one larger than `ulimit -v`. */
static void what_cannot_be_mapped_is_read(void)
{
    write_file(SIZE);
    const off_t huge = (off_t)1 << 43, at = huge - SIZE;
    int fd = open(path, O_WRONLY);
    CHECK(fd >= 0 && ftruncate(fd, huge) == 0 && pwrite(fd, content, SIZE, at) == SIZE);
    close(fd);
    struct rlimit old, limit;
    CHECK(getrlimit(RLIMIT_AS, &old) == 0);
    limit = old;
    limit.rlim_cur = (rlim_t)1 << 42;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    tn_source *s = NULL;
    tn_error err;
    tn_status mapped = tn_source_open(path, TN_IO_MMAP, &s, &err);
    tn_source *read = open_source(TN_IO_AUTO);
    CHECK(setrlimit(RLIMIT_AS, &old) == 0);

    CHECK(mapped == TN_ERR_NOMEM && strstr(line_of(&err), "cannot map") != NULL);
    uint8_t buffer[SIZE];
    CHECK(tn_source_view(read, 0, 1) == NULL);
    CHECK(tn_source_read(read, (uint64_t)at, buffer, SIZE, &err) == TN_OK);
    CHECK(memcmp(buffer, content, SIZE) == 0);
    tn_source_close(read);
}

/* ---- many files ---- */

enum { MANY = 120, DESCRIPTORS = 64 };  /* of which a quarter is for sources */

static void many_path(int i, char *to)
{
    snprintf(to, 64, "%s/%d", folder, i);
}

static void write_many(int i, const char *text)
{
    char name[64];
    many_path(i, name);
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    CHECK(fwrite(text, 1, strlen(text), f) == strlen(text) && fclose(f) == 0);
}

static void open_many(tn_io io, tn_source *sources[MANY])
{
    for (int i = 0; i < MANY; i++) {
        char name[64], text[32];
        snprintf(text, sizeof text, "number %04d", i);
        write_many(i, text);
        many_path(i, name);
        CHECK(tn_source_open(name, io, &sources[i], NULL) == TN_OK);
    }
}

static void close_many(tn_source *sources[MANY])
{
    for (int i = 0; i < MANY; i++) {
        char name[64];
        tn_source_close(sources[i]);
        many_path(i, name);
        unlink(name);
    }
}

static void check_many(tn_source *sources[MANY])
{
    for (int i = 0; i < 2 * MANY; i++) {
        int k = i * 7 % MANY, fd;
        char expected[32], found[16] = "";
        snprintf(expected, sizeof expected, "number %04d", k);
        CHECK(tn_source_read(sources[k], 0, found, 11, NULL) == TN_OK);
        assert_string_equal(found, expected);
        CHECK(tn_source_check(sources[k], NULL) == TN_OK);
        CHECK(tn_source_hold(sources[k], &fd, NULL) == TN_OK && fd >= 0 && fd < DESCRIPTORS);
        CHECK(pread(fd, found, 11, 0) == 11 && strcmp(found, expected) == 0);
        tn_source_release(sources[k]);
    }
}

static void many_files_take_turns_with_few_descriptors(void)
{
    struct rlimit old, few;
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    few = old;
    few.rlim_cur = DESCRIPTORS;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (int io = TN_IO_AUTO; io <= TN_IO_PREAD; io++) {
        tn_source *sources[MANY];
        open_many((tn_io)io, sources);
        check_many(sources);
        close_many(sources);
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
}

/* The first files are asleep when the last are open. */
static void a_file_that_cannot_be_opened_again_is_an_error(void)
{
    tn_source *sources[MANY];
    char name[64], other[64], found[16];
    tn_error err;
    open_many(TN_IO_PREAD, sources);
    many_path(0, name);
    CHECK(unlink(name) == 0);
    CHECK(tn_source_read(sources[0], 0, found, 11, &err) == TN_ERR_IO && strstr(line_of(&err), "open it again"));
    many_path(1, name);
    snprintf(other, sizeof other, "%s/other", folder);
    CHECK(rename(name, other) == 0);
    write_many(1, "number 0001");       /* the same bytes, but another file */
    CHECK(tn_source_read(sources[1], 0, found, 11, &err) == TN_ERR_IO &&
          strstr(line_of(&err), "another file now"));
    CHECK(unlink(other) == 0);
    many_path(2, name);
    CHECK(truncate(name, 5) == 0);
    CHECK(tn_source_check(sources[2], &err) == TN_ERR_TRUNCATED && strstr(line_of(&err), "has shrunk"));
    CHECK(tn_source_read(sources[2], 0, found, 11, &err) == TN_ERR_TRUNCATED);
    many_path(3, name);
    write_many(3, "NUMBER 0003");       /* as a new file does that got the number of the old one */
    CHECK(utimensat(AT_FDCWD, name, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }, 0) == 0);
    CHECK(tn_source_read(sources[3], 0, found, 11, &err) == TN_ERR_IO && strstr(line_of(&err), "has changed"));
    many_path(4, name);
    CHECK(chmod(name, 0600) == 0 && tn_source_read(sources[4], 0, found, 11, &err) == TN_OK);
    close_many(sources);
}

/* A mapping needs no descriptor: what becomes of the name does not matter. */
static void a_mapped_file_that_is_asleep_is_still_seen_and_still_guarded(void)
{
    tn_source *sources[MANY];
    char name[64], found[16] = "";
    tn_error err;
    open_many(TN_IO_MMAP, sources);
    many_path(0, name);
    CHECK(unlink(name) == 0);
    CHECK(tn_source_read(sources[0], 0, found, 11, NULL) == TN_OK && strcmp(found, "number 0000") == 0);
    CHECK(tn_source_check(sources[0], NULL) == TN_OK);
    many_path(1, name);
    CHECK(truncate(name, 0) == 0);
    CHECK(tn_source_read(sources[1], 0, found, 11, &err) == TN_ERR_TRUNCATED &&
          strstr(line_of(&err), "has shrunk"));
    close_many(sources);
}

int main(void)
{
    struct rlimit old, few;             /* chosen once, by the first source */
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    few.rlim_cur = DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &few);
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_the_same_mapped_and_read),
        TEST(a_descriptor_is_duplicated),
        TEST(memory_is_seen_in_place),
        TEST(an_empty_file_opens_every_way),
        TEST(a_file_that_shrinks_is_truncated_when_read),
        TEST(only_regular_files_are_opened),
        TEST(descriptors_of_other_things_are_refused),
        TEST(what_cannot_be_mapped_is_read),
        TEST(many_files_take_turns_with_few_descriptors),
        TEST(a_file_that_cannot_be_opened_again_is_an_error),
        TEST(a_mapped_file_that_is_asleep_is_still_seen_and_still_guarded),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
