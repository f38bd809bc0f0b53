#include "support.h"

#include "base/vector.h"

static void an_array_grows_one_by_one(void)
{
    int *items = NULL;
    size_t cap = 0;
    for (size_t n = 0; n < 1000; n++) {
        assert_true(TN_GROW(items, n, cap));
        assert_non_null(items);
        CHECK(cap > n);
        items[n] = (int)n;
    }
    for (int i = 0; i < 1000; i++)
        CHECK(items[i] == i);
    free(items);
}

static void an_array_that_cannot_grow_stays(void)
{
    int one = 1, *items = &one;
    size_t cap = SIZE_MAX / sizeof one;
    CHECK(!TN_GROW(items, cap, cap));
    CHECK(cap == SIZE_MAX / sizeof one && items == &one && one == 1);
}

static void bytes_are_put_one_behind_the_other(void)
{
    tn_buf b = { 0 };
    tn_buf_put(&b, NULL, 0);
    CHECK(b.size == 0 && !b.bad);
    tn_buf_puts(&b, "text");
    tn_buf_putc(&b, '-');
    tn_buf_fill(&b, 'z', 3);
    tn_buf_printf(&b, "%d", 42);
    CHECK(b.size == 10 && memcmp(b.data, "text-zzz42", 10) == 0 && !b.bad);
    for (int i = 0; i < 5000; i++)
        tn_buf_putc(&b, (char)i);
    CHECK(b.size == 5010 && b.data[5009] == (uint8_t)4999);
    tn_buf_free(&b);
    CHECK(b.data == NULL && b.size == 0 && !b.bad);
}

static void a_string_that_failed_stays_failed(void)
{
    tn_buf b = { 0 };
    char long_text[300];
    tn_buf_puts(&b, "kept");
    memset(long_text, 'x', sizeof long_text);
    long_text[299] = '\0';
    tn_buf_printf(&b, "%s", long_text);
    CHECK(b.bad && b.size == 4);
    tn_buf_puts(&b, "more");
    tn_buf_putc(&b, 'c');
    tn_buf_fill(&b, 0, 1);
    CHECK(b.bad && b.size == 4 && memcmp(b.data, "kept", 4) == 0);
    tn_buf_free(&b);
}

static void a_size_that_overflows_is_a_failure(void)
{
    tn_buf b = { 0 };
    tn_buf_puts(&b, "1");
    tn_buf_fill(&b, 0, SIZE_MAX);
    CHECK(b.bad && b.size == 1);
    tn_buf_free(&b);
}

static void numbers_are_written_as_printf_writes_them(void)
{
    const int64_t values[] = { 0, 7, -7, 10, 4294967296, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char expected[32];
        tn_buf b = { 0 };
        snprintf(expected, sizeof expected, "%lld", (long long)values[i]);
        tn_buf_put_int(&b, values[i]);
        tn_buf_putc(&b, '\0');
        assert_string_equal((const char *)b.data, expected);
        tn_buf_free(&b);
    }
}

static void room_is_not_counted(void)
{
    tn_buf b = { 0 };
    uint8_t *to = tn_buf_room(&b, 100);
    CHECK(to && b.size == 0);
    memset(to, 1, 100);
    CHECK(tn_buf_room(&b, 0) && b.size == 0 && !b.bad);
    tn_buf_putc(&b, '1');
    CHECK(!tn_buf_room(&b, SIZE_MAX) && b.bad && b.size == 1);
    tn_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_array_grows_one_by_one),
        TEST(an_array_that_cannot_grow_stays),
        TEST(bytes_are_put_one_behind_the_other),
        TEST(a_string_that_failed_stays_failed),
        TEST(a_size_that_overflows_is_a_failure),
        TEST(numbers_are_written_as_printf_writes_them),
        TEST(room_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
