/* Copying ranges from a source into a sink: exactly, and sharing whole blocks. */
#include "support.h"
#include "folder.h"

#include "bytes/sink.h"
#include "bytes/sink_calls.h"
#include "file_systems.h"

#include <errno.h>
#include <fcntl.h>

enum { COPIED = 5 * BLOCK + 100 };
static int copy_error, copy_calls;

/* Copies at most 1000 bytes a time; the third call is the last that works. */
static ssize_t faulty_copy(int from, off_t *from_at, int to, off_t *to_at, size_t n, unsigned flags)
{
    if (++copy_calls > 3 && copy_error >= 0) {
        errno = copy_error;
        return copy_error ? -1 : 0;
    }
    return real_calls.copy_file_range(from, from_at, to, to_at, n < 1000 ? n : 1000, flags);
}

static tn_source *open_copied(uint8_t content[COPIED], tn_io io)
{
    tn_source *source;
    for (int i = 0; i < COPIED; i++)
        content[i] = (uint8_t)(i * 31 + i / 256);
    FILE *f = fopen(in_folder("from").text, "w");
    assert_non_null(f);
    CHECK(fwrite(content, 1, COPIED, f) == COPIED && fclose(f) == 0);
    CHECK(tn_source_open(in_folder("from").text, io, &source, NULL) == TN_OK);
    return source;
}

/* Copies one range into a new file and compares; returns the bytes shared. */
static uint64_t check_copy(const tn_source *source, const uint8_t *content, uint64_t to, uint64_t from,
                           uint64_t n)
{
    uint64_t shared = 5;
    uint8_t found[2 * COPIED] = { 0 };
    tn_sink *s;
    tn_error err;
    copy_calls = 0;
    CHECK(tn_sink_open(in_folder("to").text, true, &s, NULL) == TN_OK);
    CHECK(tn_sink_copy_range(s, to, source, from, n, &shared, &err) == TN_OK);
    CHECK(tn_sink_publish(s, to + n, NULL) == TN_OK);
    int fd = open(in_folder("to").text, O_RDONLY);
    CHECK(read(fd, found, sizeof found) == (ssize_t)(to + n));
    close(fd);
    CHECK(memcmp(found + to, content + from, n) == 0);
    for (uint64_t i = 0; i < to; i++)
        CHECK(found[i] == 0);
    return shared - 5;
}

static const struct { uint64_t to, from, n, shared; } ranges[] = {
    { 0, 0, COPIED, 5 * BLOCK },
    { BLOCK, 0, COPIED, 5 * BLOCK },
    { 100, 100, COPIED - 100, 4 * BLOCK },
    { BLOCK + 100, 100, BLOCK - 100, 0 },
    { BLOCK + 100, 100, 2 * BLOCK - 101, 0 },
    { 100, 100, 2 * BLOCK - 100, BLOCK },
    { 17, BLOCK + 17, 3 * BLOCK, 2 * BLOCK },
    { 64, 0, COPIED, 0 },
    { 0, 1, COPIED - 1, 0 },
    { 0, 0, 0, 0 },
    { 9, COPIED, 0, 0 },
};
enum { RANGES = sizeof ranges / sizeof *ranges };

static void ranges_are_copied_exactly_and_whole_blocks_shared(void)
{
    static const int errors[] = { -1, 0, EXDEV, ENOSYS, EINVAL, EOPNOTSUPP };
    uint8_t content[COPIED];
    for (int io = TN_IO_MMAP; io <= TN_IO_PREAD; io++) {
        tn_source *source = open_copied(content, (tn_io)io);
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
            for (int i = 0; i < RANGES; i++) {
                copy_error = errors[e];
                tn_sink_calls.copy_file_range = faulty_copy;
                tn_sink_calls.clone_range = fake_clone;
                cloned = 0;
                CHECK(check_copy(source, content, ranges[i].to, ranges[i].from, ranges[i].n) ==
                      ranges[i].shared);
                CHECK(cloned == ranges[i].shared);
            }
        tn_source_close(source);
    }
}

static void ranges_are_copied_exactly_by_the_real_calls(void)
{
    uint8_t content[COPIED];
    tn_source *source = open_copied(content, TN_IO_AUTO);
    for (int i = 0; i < RANGES; i++) {
        uint64_t shared = check_copy(source, content, ranges[i].to, ranges[i].from, ranges[i].n);
        CHECK(shared == 0 || shared == ranges[i].shared);       /* as the file system can */
    }
    tn_source_close(source);
}

static void memory_is_copied_both_ways(void)
{
    uint8_t content[COPIED];
    uint64_t shared = 0;
    tn_source *file = open_copied(content, TN_IO_PREAD), *memory;
    CHECK(tn_source_open_memory(content, COPIED, &memory, NULL) == TN_OK);
    CHECK(check_copy(memory, content, 0, 0, COPIED) == 0);
    tn_buf out = { 0 };
    tn_sink *s;
    CHECK(tn_sink_open_memory(&out, &s, NULL) == TN_OK);
    CHECK(tn_sink_copy_range(s, 0, file, 0, COPIED, &shared, NULL) == TN_OK);
    CHECK(tn_sink_publish(s, COPIED, NULL) == TN_OK);
    CHECK(shared == 0 && out.size == COPIED && memcmp(out.data, content, COPIED) == 0);
    tn_buf_free(&out);
    tn_source_close(memory);
    tn_source_close(file);
}

static void a_copy_that_cannot_be_is_refused(void)
{
    uint8_t content[COPIED];
    uint64_t shared = 0;
    tn_error err;
    tn_sink *s;
    tn_source *source = open_copied(content, TN_IO_PREAD);
    CHECK(tn_sink_open(in_folder("to").text, true, &s, NULL) == TN_OK);
    CHECK(tn_sink_copy_range(s, 0, source, 1, COPIED, &shared, &err) == TN_ERR_TRUNCATED);
    CHECK(tn_sink_copy_range(s, 0, source, UINT64_MAX, 1, &shared, &err) == TN_ERR_TRUNCATED);
    CHECK(tn_sink_copy_range(s, 0, source, 1, UINT64_MAX, &shared, &err) == TN_ERR_TRUNCATED);
    CHECK(tn_sink_copy_range(s, INT64_MAX, source, 0, 1, &shared, &err) == TN_ERR_LIMIT);
    copy_calls = 0;
    copy_error = ENOSPC;
    tn_sink_calls.copy_file_range = faulty_copy;
    CHECK(tn_sink_copy_range(s, 1, source, 0, COPIED, &shared, &err) == TN_ERR_IO);
    assert_string_equal(said_of(&err), "cannot write: No space left on device (nothing was replaced)");
    tn_sink_calls = real_calls;
    CHECK(truncate(in_folder("from").text, 1000) == 0);
    CHECK(tn_sink_copy_range(s, 1, source, 0, COPIED, &shared, &err) == TN_ERR_TRUNCATED);
    CHECK(shared == 0);
    tn_sink_abandon(s);
    tn_source_close(source);
}

static void a_file_can_be_replaced_by_parts_of_itself(void)
{
    uint8_t content[COPIED];
    uint64_t shared = 0;
    tn_sink *s;
    tn_source *source = open_copied(content, TN_IO_MMAP);
    CHECK(tn_sink_open(in_folder("from").text, true, &s, NULL) == TN_OK);
    CHECK(tn_sink_copy_range(s, 0, source, BLOCK, COPIED - BLOCK, &shared, NULL) == TN_OK);
    CHECK(tn_sink_publish(s, COPIED - BLOCK, NULL) == TN_OK);
    /* the old one, while it is open */
    CHECK(memcmp(tn_source_view(source, 0, COPIED), content, COPIED) == 0);
    tn_source_close(source);
    CHECK(tn_source_open(in_folder("from").text, TN_IO_MMAP, &source, NULL) == TN_OK);
    CHECK(tn_source_size(source) == COPIED - BLOCK);
    CHECK(memcmp(tn_source_view(source, 0, COPIED - BLOCK), content + BLOCK, COPIED - BLOCK) == 0);
    tn_source_close(source);
}

#define IN_FOLDER(function) \
    { #function, (CMUnitTestFunction)(void (*)(void))function, keep_calls, restore_calls, NULL }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(ranges_are_copied_exactly_and_whole_blocks_shared),
        IN_FOLDER(ranges_are_copied_exactly_by_the_real_calls),
        IN_FOLDER(memory_is_copied_both_ways),
        IN_FOLDER(a_copy_that_cannot_be_is_refused),
        IN_FOLDER(a_file_can_be_replaced_by_parts_of_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
