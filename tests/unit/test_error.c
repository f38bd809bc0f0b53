#include "support.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

static void check_escape(const char *text, size_t n, const char *expected)
{
    char out[200];
    uint8_t *exact = exact_copy(text, n);
    CHECK(tn_escape(out, sizeof out, (const char *)exact, n) == strlen(expected));
    assert_string_equal(out, expected);
    free(exact);
}

static void what_a_terminal_would_obey_is_escaped(void)
{
    static const struct { const char *text; size_t n; const char *expected; } cases[] = {
        { "", 0, "" }, { "plain text 1.0", 14, "plain text 1.0" }, { "\n\t\r", 3, "\\n\\t\\r" },
        { "\"\\", 2, "\\\"\\\\" }, { "a\0b", 3, "a\\x00b" }, { "\x1b[31m", 5, "\\x1b[31m" },
        { "\x7f", 1, "\\x7f" },
        { "\x01\x1f", 2, "\\x01\\x1f" },
        { "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82", 11, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82" },
        { "\xff\xc3", 2, "\\xff\\xc3" }, { "\xc3(", 2, "\\xc3(" }, { "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" },
        { "\xf0\x9f\x99", 3, "\\xf0\\x9f\\x99" }, { "\x80", 1, "\\x80" },
        { "\xc2\x85", 2, "\\u{85}" },                       /* next line, of the C1 controls */
        { "\xc2\x9b", 2, "\\u{9b}" },                       /* begins a control sequence, as ESC [ does */
        { "\xc2\xa0", 2, "\xc2\xa0" }, { "\xc2\xad", 2, "\\u{ad}" },
        { "\xe2\x80\x8b", 3, "\\u{200b}" },                 /* zero width */
        { "\xe2\x80\xae", 3, "\\u{202e}" },                 /* right to left from here */
        { "\xe2\x81\xa6", 3, "\\u{2066}" }, { "\xef\xbb\xbf", 3, "\\u{feff}" }, { "\xd8\x9c", 2, "\\u{61c}" },
        { "\xf3\xa0\x81\x81", 4, "\\u{e0041}" },            /* a tag character */
        { "\xe2\x80\xa8", 3, "\\u{2028}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_escape(cases[i].text, cases[i].n, cases[i].expected);
}

/* Whatever comes in: what comes out is UTF-8 without control characters. */
static void every_pair_of_bytes_comes_out_clean(void)
{
    for (unsigned i = 0; i < 1 << 16; i++) {
        const char pair[] = { (char)(i >> 8), (char)i };
        char out[20];
        size_t n = tn_escape(out, sizeof out, pair, 2);
        CHECK(n == strlen(out) && tn_utf8_valid(out, n) == n);
        for (size_t k = 0; k < n; k++)
            CHECK((uint8_t)out[k] >= 0x20 && out[k] != 0x7f);
    }
}

/* Never half an escape, never half a character, "..." when cut. */
static void text_that_does_not_fit_is_cut_between_characters(void)
{
    static const char text[] = "ab\n\xe2\x82\xac\x01" "end";
    static const char *const expected[] = {
        /* by the room, NUL included */
        "", "", "a", "ab", "...", "a...", "ab...", "ab...", "ab\\n...", "ab\\n...", "ab\\n...",
        "ab\\n\xe2\x82\xac...", "ab\\n\xe2\x82\xac...", "ab\\n\xe2\x82\xac...", "ab\\n\xe2\x82\xac...",
        "ab\\n\xe2\x82\xac\\x01end",
    };
    for (size_t cap = 0; cap < sizeof expected / sizeof *expected; cap++) {
        char *out = malloc(cap ? cap : 1);  /* exactly: the end is guarded */
        assert_non_null(out);
        CHECK(tn_escape(out, cap, text, sizeof text - 1) == 14);
        if (cap)
            assert_string_equal(out, expected[cap]);
        free(out);
    }
    CHECK(tn_escape(NULL, 0, text, sizeof text - 1) == 14);
}

static void quoting_cuts_long_names(void)
{
    char text[300];
    memset(text, 'x', sizeof text);
    assert_string_equal(tn_quote("a\"b", 3).text, "\"a\\\"b\"");
    assert_string_equal(tn_quote("", 0).text, "\"\"");
    for (size_t n = 0; n < sizeof text; n++) {
        tn_quoted q = tn_quote(text, n);
        size_t len = strlen(q.text);
        CHECK(len < sizeof q.text && q.text[0] == '"' && q.text[len - 1] == '"');
        CHECK(n > 97 ? strcmp(q.text + len - 4, "...\"") == 0 : len == n + 2);
    }
    memset(text, '\n', sizeof text);
    tn_quoted q = tn_quote(text, sizeof text);
    CHECK(strcmp(q.text + strlen(q.text) - 6, "\\n...\"") == 0);
}

static void a_failure_fills_its_error_and_null_is_allowed(void)
{
    tn_error err;
    CHECK(tn_fail_at(&err, TN_ERR_LIMIT, 7, "%s %d", "text", 5) == TN_ERR_LIMIT);
    CHECK(err.status == TN_ERR_LIMIT && err.offset == 7);
    assert_string_equal(err.text, "text 5");
    CHECK(tn_fail_at(NULL, TN_ERR_LIMIT, 7, "text") == TN_ERR_LIMIT);
    CHECK(tn_fail_nomem(NULL) == TN_ERR_NOMEM && tn_fail_nomem(&err) == TN_ERR_NOMEM && err.text[0]);
    CHECK(tn_fail_errno(&err, ENOSPC, "cannot write") == TN_ERR_IO && err.offset == TN_NO_OFFSET);
    assert_string_equal(err.text, "cannot write: No space left on device");
    CHECK(tn_fail_errno(&err, ENOMEM, "cannot map") == TN_ERR_NOMEM);
}

static void the_place_stands_before_the_text(void)
{
    tn_error err;
    tn_status status = tn_fail_at(&err, TN_ERR_CORRUPT, 8, "text");
    assert_string_equal(line_of(&err), "byte 8: text");
    CHECK(tn_in_tensor(status, "a\"", &err) == TN_ERR_CORRUPT);
    assert_string_equal(line_of(&err), "byte 8: tensor \"a\\\"\": text");
    CHECK(tn_in_file(status, "a\nb.zt", &err) == TN_ERR_CORRUPT);
    assert_string_equal(line_of(&err), "a\\nb.zt: byte 8: tensor \"a\\\"\": text");
    assert_string_equal(err.text, "text");
    CHECK(err.offset == 8 && err.status == TN_ERR_CORRUPT);
    status = tn_fail(&err, TN_ERR_IO, "another");
    assert_string_equal(line_of(&err), "another");
    tn_in_file(status, "b", &err);
    assert_string_equal(line_of(&err), "b: another");
}

static void the_innermost_place_stays(void)
{
    tn_error err;
    tn_status status = tn_fail(&err, TN_ERR_IO, "text");
    tn_in_file(status, "", &err);
    tn_in_file(status, NULL, &err);
    CHECK(!err.file[0] && !err.tensor[0] && !err.value[0] && err.reason == TN_REASON_NONE);
    tn_in_tensor(status, "a", &err);
    tn_in_tensor(status, "b", &err);
    tn_in_file(status, "inner", &err);
    tn_in_file(status, "outer", &err);
    tn_with_reason(status, TN_REASON_REPLACE, "one", &err);
    tn_with_reason(status, TN_REASON_MAX_BYTES, "two", &err);
    assert_string_equal(line_of(&err), "inner: tensor \"a\": text (replace one)");
    assert_string_equal(err.value, "one");
    CHECK(err.reason == TN_REASON_REPLACE);
    tn_fail(&err, TN_ERR_IO, "text");
    CHECK(!err.file[0] && !err.tensor[0] && !err.value[0] && err.reason == TN_REASON_NONE);
}

static void a_tensor_is_noted_before_its_file(void)
{
    tn_error err;
    tn_in_file(tn_fail(&err, TN_ERR_IO, "cannot write"), "out", &err);
    tn_in_tensor(err.status, "of the input", &err);
    assert_string_equal(line_of(&err), "out: cannot write");
}

static void cancelling_has_no_place(void)
{
    tn_error err;
    tn_in_tensor(tn_fail(&err, TN_ERR_CANCELLED, "cancelled"), "t", &err);
    tn_in_file(err.status, "in", &err);
    assert_string_equal(line_of(&err), "cancelled");
}

static void success_and_no_error_note_nothing(void)
{
    tn_error err;
    memset(&err, 'x', sizeof err);
    const tn_error before = err;
    CHECK(tn_in_file(TN_OK, "f", &err) == TN_OK && tn_in_tensor(TN_OK, "t", &err) == TN_OK);
    CHECK(tn_with_reason(TN_OK, TN_REASON_REPLACE, "v", &err) == TN_OK);
    CHECK(memcmp(&err, &before, sizeof err) == 0);
    CHECK(tn_in_file(TN_ERR_IO, "f", NULL) == TN_ERR_IO && tn_in_tensor(TN_ERR_IO, "t", NULL) == TN_ERR_IO);
    CHECK(tn_with_reason(TN_ERR_IO, TN_REASON_REPLACE, "v", NULL) == TN_ERR_IO);
}

static void long_texts_paths_and_names_still_fit(void)
{
    tn_error err;
    char path[5000], long_text[1000];
    memset(path, 'p', sizeof path);
    memset(long_text, 't', sizeof long_text);
    path[sizeof path - 1] = long_text[sizeof long_text - 1] = '\0';
    tn_status status = tn_fail_at(&err, TN_ERR_IO, UINT64_MAX - 1, "%s", long_text);
    CHECK(strlen(err.text) == sizeof err.text - 1);
    tn_in_tensor(status, path, &err);
    tn_in_file(status, path, &err);
    tn_with_reason(status, TN_REASON_REPLACE, path, &err);
    CHECK(strlen(err.file) == sizeof err.file - 1 && strlen(err.tensor) == sizeof err.tensor - 1);
    CHECK(strlen(err.value) == sizeof err.value - 1);
    CHECK(strstr(line_of(&err), "ppp...: byte 18446744073709551614: tensor \"ppp"));
    CHECK(strstr(line_of(&err), "ppp...\": ttt"));
}

/* Never half a character, whatever the room. */
static void a_line_that_does_not_fit_is_cut_between_characters(void)
{
    tn_error err;
    tn_in_tensor(tn_fail_at(&err, TN_ERR_IO, 3, "a\xe2\x82\xac"), "\xe2\x82\xac", &err);
    const char *whole = line_of(&err);
    for (size_t cap = 0; cap <= strlen(whole) + 2; cap++) {
        char *out = malloc(cap ? cap : 1);  /* exactly: the end is guarded */
        assert_non_null(out);
        CHECK(tn_error_format(&err, out, cap) == strlen(whole));
        if (cap)
            CHECK(strncmp(out, whole, strlen(out)) == 0 && tn_utf8_valid(out, strlen(out)) == strlen(out));
        CHECK(cap == 0 || strlen(out) + 3 >= (cap <= strlen(whole) ? cap : strlen(whole)));
        free(out);
    }
    CHECK(tn_error_format(&err, NULL, 0) == strlen(whole));
}

static void every_status_has_a_phrase(void)
{
    static const int known[] = { 0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 20, 21 };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK(strcmp(tn_status_text((tn_status)known[i]), "unknown status") != 0);
    assert_string_equal(tn_status_text((tn_status)99), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_terminal_would_obey_is_escaped),
        TEST(every_pair_of_bytes_comes_out_clean),
        TEST(text_that_does_not_fit_is_cut_between_characters),
        TEST(quoting_cuts_long_names),
        TEST(a_failure_fills_its_error_and_null_is_allowed),
        TEST(the_place_stands_before_the_text),
        TEST(the_innermost_place_stays),
        TEST(a_tensor_is_noted_before_its_file),
        TEST(cancelling_has_no_place),
        TEST(success_and_no_error_note_nothing),
        TEST(long_texts_paths_and_names_still_fit),
        TEST(a_line_that_does_not_fit_is_cut_between_characters),
        TEST(every_status_has_a_phrase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
