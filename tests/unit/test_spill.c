/* Bytes that are written once and then read: in memory, and in a file that nobody sees. */
#include "support.h"

#include "bytes/spill.h"
#include "make.h"

#include <stdlib.h>

enum { PIECE = 100000 };

static uint8_t piece[PIECE];

static void fill(tn_spill *s, uint64_t size)
{
    for (size_t i = 0; i < PIECE; i++)
        piece[i] = (uint8_t)(i * 7 + i / 251);
    CHECK(tn_spill_begin(s, size, NULL) == TN_OK);
    for (uint64_t done = 0; done < size; done += PIECE) {
        CHECK(!s->source);
        CHECK(tn_spill_append(s, piece, size - done < PIECE ? (size_t)(size - done) : PIECE, NULL) ==
              TN_OK);
    }
    CHECK(s->source && tn_source_size(s->source) == size);
}

static void check_bytes(const tn_spill *s, uint64_t at, size_t n)
{
    uint8_t *found = malloc(n + 1);
    assert_non_null(found);
    CHECK(tn_source_read(s->source, at, found, n, NULL) == TN_OK);
    for (size_t i = 0; i < n; i++)
        CHECK(found[i] == piece[(at + i) % PIECE]);
    free(found);
}

/* Files are never seen, and leave nothing. */
static void few_bytes_are_in_memory_and_many_in_a_file(void)
{
    static const uint64_t sizes[] = { 0, 1, PIECE, TN_SPILL_IN_MEMORY, TN_SPILL_IN_MEMORY + 1,
                                      TN_SPILL_IN_MEMORY * 2 };
    tn_spill s = { 0 };
    CHECK(setenv("TMPDIR", folder, 1) == 0);
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        uint64_t size = sizes[i / 2];
        fill(&s, size);
        bool has_file = s.sink != NULL;
        CHECK(has_file == (size > TN_SPILL_IN_MEMORY) && (s.bytes == NULL) == has_file);
        CHECK(!tn_source_view(s.source, 0, size) == has_file);
        check_bytes(&s, size / 2, size - size / 2 < 300000 ? (size_t)(size - size / 2) : 300000);
        CHECK(count_entries(folder) == 0);
    }
    tn_spill_free(&s);
    tn_spill_free(&s);
}

static void a_folder_that_is_not_there_is_an_error(void)
{
    tn_spill s = { 0 };
    tn_error err = { .text = "" };
    CHECK(setenv("TMPDIR", in_folder("none").text, 1) == 0);
    CHECK(tn_spill_begin(&s, TN_SPILL_IN_MEMORY + 1, &err) == TN_ERR_IO);
    assert_string_equal(said_of(&err),
                        "cannot write a temporary file (TMPDIR says where): No such file or directory");
    fill(&s, TN_SPILL_IN_MEMORY);
    tn_spill_free(&s);
}

static void without_a_choice_it_is_where_large_temporary_files_are(void)
{
    static const char *const unset[] = { NULL, "" };
    for (size_t i = 0; i < 2; i++) {
        tn_spill s = { 0 };
        CHECK((unset[i] ? setenv("TMPDIR", unset[i], 1) : unsetenv("TMPDIR")) == 0);
        fill(&s, TN_SPILL_IN_MEMORY + 1);
        check_bytes(&s, TN_SPILL_IN_MEMORY - 10, 11);
        tn_spill_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(few_bytes_are_in_memory_and_many_in_a_file),
        IN_FOLDER(a_folder_that_is_not_there_is_an_error),
        TEST(without_a_choice_it_is_where_large_temporary_files_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
