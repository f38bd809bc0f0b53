#include "support.h"

#include "base/arena.h"

static void memory_is_aligned_and_its_own(void)
{
    tn_arena a = { 0 };
    uint8_t *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = tn_arena_alloc(&a, i * 37);
        assert_non_null(blocks[i]);
        CHECK((uintptr_t)blocks[i] % _Alignof(max_align_t) == 0);
        memset(blocks[i], (int)i, i * 37);
        assert_non_null(tn_arena_text(&a, "odd", i % 4));      /* leaves the next one at an odd place */
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 37; k++)
            CHECK(blocks[i][k] == i);
    tn_arena_free(&a);
}

static void nothing_has_a_place_too(void)
{
    tn_arena a = { 0 };
    assert_non_null(tn_arena_alloc(&a, 0));
    assert_non_null(tn_arena_zalloc(&a, 0, 8));
    assert_non_null(tn_arena_zalloc(&a, 8, 0));
    assert_non_null(tn_arena_copy(&a, NULL, 0));
    assert_string_equal(tn_arena_text(&a, NULL, 0), "");
    tn_arena_free(&a);
    tn_arena_free(&a);          /* an empty one may be freed, and used again */
    assert_string_equal(tn_arena_text(&a, "again", 5), "again");
    tn_arena_free(&a);
}

static void sizes_that_overflow_are_refused(void)
{
    tn_arena a = { 0 };
    assert_null(tn_arena_zalloc(&a, SIZE_MAX, 2));
    assert_null(tn_arena_zalloc(&a, SIZE_MAX / 2 + 1, 2));
    assert_null(tn_arena_alloc(&a, SIZE_MAX));
    assert_null(tn_arena_alloc(&a, SIZE_MAX - 8));
    assert_null(tn_arena_text(&a, "", SIZE_MAX));
    assert_non_null(tn_arena_alloc(&a, 1));
    tn_arena_free(&a);
}

static void zeroed_memory_is_zero_also_after_use(void)
{
    tn_arena a = { 0 };
    for (size_t i = 1; i < 100; i++) {
        memset(tn_arena_alloc(&a, 100), 0xff, 100);
        const uint8_t *z = tn_arena_zalloc(&a, i, 3);
        for (size_t k = 0; k < i * 3; k++)
            CHECK(z[k] == 0);
    }
    tn_arena_free(&a);
}

static void formatted_text_of_any_length_is_kept_whole(void)
{
    tn_arena a = { 0 };
    char *first = tn_arena_printf(&a, "%s.%d", "first", 1);
    for (int n = 0; n < 9000; n += 7) {
        const char *text = tn_arena_printf(&a, "%0*d", n, 0);
        assert_non_null(text);
        CHECK(strlen(text) == (size_t)(n ? n : 1));
    }
    assert_string_equal(first, "first.1");
    tn_arena_free(&a);
}

static void text_is_copied_with_its_nul(void)
{
    tn_arena a = { 0 };
    char from[] = "one\0two";
    const char *copy = tn_arena_text(&a, from, 7), *part = tn_arena_text(&a, from, 2);
    from[0] = 'X';
    CHECK(memcmp(copy, "one\0two", 8) == 0);
    assert_string_equal(part, "on");
    tn_arena_free(&a);
}

/* Of several blocks too, and from the very beginning. */
static void what_was_taken_since_a_mark_is_given_back(void)
{
    tn_arena a = { 0 };
    tn_arena_mark empty = a;
    const char *kept = tn_arena_text(&a, "kept", 4);
    tn_arena_mark mark = a;
    for (size_t i = 0; i < 3; i++) {
        void *again = tn_arena_alloc(&a, 100);
        for (size_t k = 0; k < 50; k++)
            memset(tn_arena_alloc(&a, 1000 * i), 0xff, 1000 * i);
        tn_arena_rewind(&a, mark);
        assert_string_equal(kept, "kept");
        CHECK(tn_arena_alloc(&a, 100) == again);
        tn_arena_rewind(&a, mark);
    }
    tn_arena_rewind(&a, empty);
    CHECK(!a.blocks && tn_arena_alloc(&a, 1));
    tn_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_is_aligned_and_its_own),
        TEST(nothing_has_a_place_too),
        TEST(sizes_that_overflow_are_refused),
        TEST(zeroed_memory_is_zero_also_after_use),
        TEST(formatted_text_of_any_length_is_kept_whole),
        TEST(text_is_copied_with_its_nul),
        TEST(what_was_taken_since_a_mark_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
