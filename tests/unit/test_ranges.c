/* How the data of entries may share the bytes of a file: views that overlap in any way. */
#include "support.h"

#include "store/file.h"

#include <stdlib.h>

/* A file of `size` bytes in memory, without entries. */
static tn_file *empty_file(size_t size)
{
    static const uint8_t bytes[4096];
    tn_file *f = calloc(1, sizeof *f);
    CHECK(f && size <= sizeof bytes && (f->shards = calloc(1, sizeof *f->shards)));
    f->shards[0].path = "";
    CHECK(tn_source_open_memory(bytes, size, &f->shards[0].source, NULL) == TN_OK);
    f->nshards = 1;
    return f;
}

static void add_view(tn_file *f, const char *name, uint64_t offset, uint64_t size, uint32_t rank,
                     const int64_t *shape, const int64_t *stride)
{
    const tn_entry e = { .name = name, .dtype = TN_UINT16, .rank = rank, .shape = shape,
                         .stored = { .offset = offset, .size = size }, .more = { .stride = stride } };
    CHECK(tn_file_add(f, &e, NULL) == TN_OK);
}

static void check_tied(const tn_file *f, size_t i, const char *to)
{
    const char *tied = f->tensors[i].tied;
    CHECK(to ? tied && strcmp(tied, to) == 0 : !tied);
}

static void views_that_are_equal_in_all_are_tied(void)
{
    static const int64_t flat[] = { 6 }, rows[] = { 2, 3 }, columns[] = { 3, 2 }, down[] = { 1, 3 };
    tn_file *f = empty_file(64);
    add_view(f, "a", 0, 12, 1, flat, NULL);
    add_view(f, "b", 0, 12, 2, rows, NULL);
    add_view(f, "c", 0, 12, 2, columns, down);
    add_view(f, "d", 2, 12, 1, flat, NULL);
    add_view(f, "e", 0, 12, 2, rows, NULL);
    add_view(f, "f", 0, 12, 1, flat, NULL);
    add_view(f, "g", 0, 12, 2, columns, NULL);
    add_view(f, "h", 0, 12, 2, columns, down);
    CHECK(tn_file_check_ranges(f, TN_TILING_VIEWS, NULL, NULL, NULL) == TN_OK);
    static const char *const tied[] = { NULL, NULL, NULL, NULL, "b", "a", NULL, "c" };
    for (size_t i = 0; i < 8; i++)
        check_tied(f, i, tied[i]);
    tn_close(f);
}

/* The growth that deflate could reach is allowed, no more. */
static void views_do_not_make_a_small_file_large(void)
{
    static const int64_t most[] = { 32 * TN_GROWTH_MAX / 2 }, none[] = { 0 }, one[] = { 1 };
    tn_error err;
    tn_file *f = empty_file(64);
    add_view(f, "a", 0, 2, 1, most, none);
    add_view(f, "b", 0, 2, 1, most, none);
    CHECK(tn_file_check_ranges(f, TN_TILING_VIEWS, NULL, NULL, NULL) == TN_OK);
    check_tied(f, 1, "a");
    add_view(f, "c", 0, 2, 1, one, NULL);
    CHECK(tn_file_check_ranges(f, TN_TILING_VIEWS, NULL, NULL, &err) == TN_ERR_LIMIT);
    assert_string_equal(err.text, "its tensors share bytes and take more than 1032 times the 64 bytes of the "
                                  "file");
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(views_that_are_equal_in_all_are_tied),
        TEST(views_do_not_make_a_small_file_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
