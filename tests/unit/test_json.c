/* The JSON reader and writer. */
#include "support.h"

#include "walk_json.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>

/* A reader over an exact copy of a text, with all it needs. */
typedef struct fixture {
    tn_json  j;
    tn_arena arena;
    uint8_t *copy;
} fixture;

static tn_json *begin_n(fixture *f, const void *text, size_t n)
{
    f->arena = (tn_arena){ 0 };
    f->copy = exact_copy(text, n);
    tn_json_init(&f->j, (const char *)f->copy, n, &f->arena);
    return &f->j;
}

static tn_json *begin(fixture *f, const char *text)
{
    return begin_n(f, text, strlen(text));
}

static void end(fixture *f)
{
    tn_arena_free(&f->arena);
    free(f->copy);
}

/* The verdict on a whole text; skipping and walking must agree about it. */
static tn_status verdict(const void *text, size_t n)
{
    fixture a, b;
    tn_json_skip(begin_n(&a, text, n));
    tn_json_done(&a.j);
    walk_json(begin_n(&b, text, n));
    tn_json_done(&b.j);
    CHECK(a.j.status == b.j.status);
    CHECK(a.j.at == b.j.at);
    CHECK(a.j.pos == b.j.pos);
    CHECK(a.j.at <= n);
    CHECK((a.j.status == TN_OK) == (a.j.why[0] == '\0'));
    CHECK(a.j.status || (a.j.depth == 0 && b.j.depth == 0));

    tn_error err = { 0 };
    if (a.j.status) {
        CHECK(tn_json_fail(&a.j, 1000, &err) == a.j.status);
        CHECK(err.offset == 1000 + a.j.at);
        CHECK(strcmp(said_of(&err), a.j.why) == 0);
    }
    tn_status status = a.j.status;
    end(&a);
    end(&b);
    return status;
}

static const char sample[] =
    " {\"model.layers.0.w\":{\"dtype\":\"F32\",\"shape\":[2, 2],\"data_offsets\":[0,16]} ,\n"
    "\"\\u00e9\\ud83d\\ude00\\n\": [ -0.5e+10, true,false ,null, {}, [], \"\", "
    "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\" ]\t}\r\n";

static void rfc_8259_texts_are_accepted(void)
{
    static const char *const good[] = { "0", "-0", "1", "-1", "10", "1.5", "1.0e5", "1E-5", "0e0", "-0.0",
                                        "123456789012345678901234567890", "1e999", "true", "false", "null",
                                        "\"\"",
                                        "\"a\"", " 1 ", "\t\n\r 1\r\n", "[]", "[ ]", "{}", "{ }", "[1]",
                                        "[1,2]", "[ 1 , 2 ]", "{\"a\":1}",
                                        "{ \"a\" : 1 , \"b\" : [ ] }",
                                        "{\"\":0}",
                                        "{\"a\":1,\"a\":2}",
                                        "[[[]]]",
                                        "[{},{}]",
                                        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uD834\\uDD1E\"",
                                        "\"\x7f\"",
                                        "\"\xef\xbf\xbf\"",
                                        sample };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(verdict(good[i], strlen(good[i])) == TN_OK);
}

static void everything_else_is_refused(void)
{
    static const char *const bad[] = { "x", "]", "}", ",", ":", "01", "-01", "00", "+1", ".5", "1.e5", "1.x",
                                       "1e+x", "-x", "--1", "0x10", "1_000", "NaN", "Infinity", "-Infinity",
                                       "True", "nulL", "tru ", "truex", "'a'", "[1,]", "[,1]", "[,]", "[1 2]",
                                       "[1,,2]", "{,}", "{\"a\":1,}",
                                       "{\"a\" 1}",
                                       "{\"a\",1}",
                                       "{1:2}",
                                       "{a:1}",
                                       "{\"a\":}",
                                       "{\"a\":1 \"b\":2}",
                                       "{\"a\":1]", "[1}", "1 2", "[] []", "// c\n1", "/* c */1", "\"\\x\"",
                                       "\"\\u12g4\"",
                                       "\"\\U0041\"",
                                       "\"\\ud800\"",
                                       "\"\\ud800x\"",
                                       "\"\\ud800\\n\"",
                                       "\"\\ud800\\u0041\"",
                                       "\"\\udc00\"",
                                       "\"\\ud800\\ud800\"",
                                       "\"a\nb\"",
                                       "\"\t\"",
                                       "\"\x01\"",
                                       "\"12345678\x1f\"",
                                       "\xef\xbb\xbf"
                                       "1",
                                       "\"\xff\"",
                                       "\"\xc0\x80\"",
                                       "\"\xed\xa0\x80\"",
                                       "\"\xe2\x28\"",
                                       "\xc3",
                                       "\x0b"
                                       "1",
                                       "\x0c"
                                       "1",
                                       "\xc2\xa0"
                                       "1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_status expected = strcmp(bad[i], "\xc3") ? TN_ERR_CORRUPT : TN_ERR_TRUNCATED;
        CHECK(verdict(bad[i], strlen(bad[i])) == expected);
    }
    CHECK(verdict("[1]\0", 4) == TN_ERR_CORRUPT);
    CHECK(verdict("\"a\0b\"", 5) == TN_ERR_CORRUPT);
    CHECK(verdict("\0", 1) == TN_ERR_CORRUPT);
}

static void every_truncation_is_called_truncated(void)
{
    size_t whole = sizeof sample - 1;
    CHECK(verdict(sample, whole) == TN_OK);
    for (size_t n = 0; n < whole - 2; n++)         /* the last two are white space */
        CHECK(verdict(sample, n) == TN_ERR_TRUNCATED);
    static const char *const cut[] = { "-",        "1.",        "1e",          "1e+",
                                       "t",        "nul",       "\"\\",        "\"\\u",
                                       "\"\\u00e", "\"\\ud83d", "\"\\ud83d\\", "\"\\ud83d\\ude0",
                                       "[",        "[1",        "[1,",         "{",
                                       "{\"a\"",   "{\"a\":" };
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
        CHECK(verdict(cut[i], strlen(cut[i])) == TN_ERR_TRUNCATED);
}

static void a_changed_byte_anywhere_never_confuses_the_readers(void)
{
    size_t refused = 0;
    char changed[sizeof sample];
    for (size_t i = 0; i < sizeof sample - 1; i++) {
        for (unsigned value = 0; value < 256; value++) {
            memcpy(changed, sample, sizeof sample);
            changed[i] = (char)value;
            refused += verdict(changed, sizeof sample - 1) != TN_OK;
        }
    }
    CHECK(refused > 20000);
}

static void nesting_is_limited_and_costs_no_stack(void)
{
    char text[200002];
    memset(text, '[', TN_JSON_MAX_DEPTH);
    memset(text + TN_JSON_MAX_DEPTH, ']', TN_JSON_MAX_DEPTH);
    CHECK(verdict(text, 2 * TN_JSON_MAX_DEPTH) == TN_OK);
    memset(text, '[', TN_JSON_MAX_DEPTH + 1);
    CHECK(verdict(text, TN_JSON_MAX_DEPTH + 1) == TN_ERR_LIMIT);
    memset(text, '[', sizeof text);
    CHECK(verdict(text, sizeof text) == TN_ERR_LIMIT);
    for (size_t i = 0; i + 5 <= sizeof text; i += 5)
        memcpy(text + i, "{\"a\":", 5);
    CHECK(verdict(text, sizeof text) == TN_ERR_LIMIT);
}

static void a_header_is_read_by_asking_for_what_it_has(void)
{
    fixture f;
    tn_json *j = begin(&f, sample);
    tn_text key;
    CHECK(tn_json_object(j));
    CHECK(tn_json_key(j, &key) && tn_text_is(key, "model.layers.0.w"));
    CHECK(tn_json_object(j));
    CHECK(tn_json_key(j, &key) && tn_text_is(key, "dtype"));
    CHECK(tn_text_is(tn_json_string(j), "F32"));
    CHECK(tn_json_key(j, &key) && tn_text_is(key, "shape"));
    CHECK(tn_json_array(j));
    CHECK(tn_json_item(j) && tn_json_u64(j) == 2);
    CHECK(tn_json_item(j) && tn_json_u64(j) == 2);
    CHECK(!tn_json_item(j));
    CHECK(tn_json_key(j, &key) && tn_text_is(key, "data_offsets"));
    CHECK(tn_text_is(tn_json_raw(j), "[0,16]"));
    CHECK(!tn_json_key(j, &key));
    CHECK(tn_json_key(j, &key) && tn_text_is(key, "\xc3\xa9\xf0\x9f\x98\x80\n"));
    CHECK(tn_json_array(j));
    CHECK(tn_json_item(j) && tn_json_f64(j) == -0.5e10);
    CHECK(tn_json_item(j) && tn_json_bool(j));
    CHECK(tn_json_item(j) && !tn_json_bool(j));
    CHECK(tn_json_item(j));
    tn_json_null(j);
    CHECK(tn_json_item(j) && tn_text_is(tn_json_raw(j), "{}"));
    CHECK(tn_json_item(j) && tn_json_array(j) && !tn_json_item(j));
    CHECK(tn_json_item(j) && tn_json_string(j).len == 0);
    CHECK(tn_json_item(j) && tn_text_is(tn_json_string(j), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"));
    CHECK(!tn_json_item(j));
    CHECK(!tn_json_key(j, &key));
    CHECK(tn_json_peek(j) == TN_JSON_END);
    CHECK(tn_json_done(j) && j->status == TN_OK);
    end(&f);
}

static void escapes_are_decoded(void)
{
    static const struct { const char *json, *text; size_t n; } cases[] = {
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8 },
        { "\"a\\u0000b\"", "a\0b", 3 },
        { "\"\\u007f\\u0080\\u07ff\\u0800\\uFFFF\"", "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", 11 },
        { "\"\\ud800\\udc00\\uDBFF\\uDFFF\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8 },
        { "\"0123456789abcdef\\n0123456789abcdef\"", "0123456789abcdef\n0123456789abcdef", 33 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        tn_text text = tn_json_string(begin(&f, cases[i].json));
        CHECK(tn_json_done(&f.j));
        CHECK(text.len == cases[i].n && memcmp(text.ptr, cases[i].text, text.len) == 0);
        end(&f);
    }
}

static void strings_end_at_the_first_special_byte_wherever_it_is(void)
{
    char text[40];
    for (size_t n = 0; n < 34; n++) {
        for (unsigned value = 0; value < 256; value++) {
            memset(text, '\x7f', sizeof text);
            text[n] = (char)value;
            bool special = value == '"' || value == '\\' || value < 0x20;
            uint8_t *copy = exact_copy(text, 34);
            CHECK(tn_json_plain_end((const char *)copy, 0, 34) == (special ? n : 34));
            free(copy);
        }
    }
}

static void integers_fit_or_fail(void)
{
    static const struct { const char *json; tn_status u64, i64; uint64_t value; } cases[] = {
        { "0", TN_OK, TN_OK, 0 },
        { "9223372036854775807", TN_OK, TN_OK, INT64_MAX },
        { "9223372036854775808", TN_OK, TN_ERR_LIMIT, UINT64_C(1) << 63 },
        { "9999999999999999999", TN_OK, TN_ERR_LIMIT, UINT64_C(9999999999999999999) },
        { "10000000000000000000", TN_OK, TN_ERR_LIMIT, UINT64_C(10000000000000000000) },
        { "18446744073709551615", TN_OK, TN_ERR_LIMIT, UINT64_MAX },
        { "18446744073709551616", TN_ERR_LIMIT, TN_ERR_LIMIT, 0 },
        { "99999999999999999999", TN_ERR_LIMIT, TN_ERR_LIMIT, 0 },
        { "184467440737095516150", TN_ERR_LIMIT, TN_ERR_LIMIT, 0 },
        { "-1", TN_ERR_CORRUPT, TN_OK, (uint64_t)-1 },
        { "-9223372036854775808", TN_ERR_CORRUPT, TN_OK, UINT64_C(1) << 63 },
        { "-9223372036854775809", TN_ERR_CORRUPT, TN_ERR_LIMIT, 0 },
        { "-0", TN_ERR_CORRUPT, TN_ERR_CORRUPT, 0 },
        { "01", TN_ERR_CORRUPT, TN_ERR_CORRUPT, 0 },
        { "1.0", TN_ERR_CORRUPT, TN_ERR_CORRUPT, 0 },
        { "1e2", TN_ERR_CORRUPT, TN_ERR_CORRUPT, 0 },
        { "1E2", TN_ERR_CORRUPT, TN_ERR_CORRUPT, 0 },
        { "\"1\"", TN_ERR_CORRUPT, TN_ERR_CORRUPT, 0 },
        { "-", TN_ERR_TRUNCATED, TN_ERR_TRUNCATED, 0 },
        { "", TN_ERR_TRUNCATED, TN_ERR_TRUNCATED, 0 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* at the end of the text, and in front of ']' */
        for (int in_array = 0; in_array < 2; in_array++) {
            char json[64];
            snprintf(json, sizeof json, "%s%s%s", in_array ? "[" : "", cases[i].json, in_array ? "]" : "");
            /* then ']' stands where a digit is due */
            bool cut = in_array && cases[i].u64 == TN_ERR_TRUNCATED;
            fixture f, g;
            begin(&f, json);
            begin(&g, json);
            if (in_array) {
                tn_json_array(&f.j);
                tn_json_array(&g.j);
                bool more = tn_json_item(&f.j);
                CHECK(tn_json_item(&g.j) == more);
                if (!more) {
                    end(&f);
                    end(&g);
                    continue;
                }
            }
            CHECK(tn_json_u64(&f.j) == (cases[i].u64 ? 0 : cases[i].value));
            CHECK(f.j.status == (cut ? TN_ERR_CORRUPT : cases[i].u64));
            CHECK((uint64_t)tn_json_i64(&g.j) == (cases[i].i64 ? 0 : cases[i].value));
            CHECK(g.j.status == (cut ? TN_ERR_CORRUPT : cases[i].i64));
            end(&f);
            end(&g);
        }
    }
}

static double read_f64(const char *json, tn_status *status)
{
    fixture f;
    double value = tn_json_f64(begin(&f, json));
    *status = f.j.status;
    end(&f);
    return value;
}

static void floats_are_the_nearest_doubles(void)
{
    tn_status status;
    CHECK(read_f64("0.1", &status) == 0.1 && !status);
    CHECK(read_f64("-1e-3", &status) == -0.001 && !status);
    CHECK(read_f64("9007199254740993", &status) == 9007199254740992.0 && !status);
    CHECK(read_f64("9007199254740993.0000000000000000000000000000000000000000000000000000000000000000001",
                   &status) == 9007199254740994.0 &&
          !status);
    CHECK(read_f64("5e-324", &status) == 0x1p-1074 && !status);
    CHECK(read_f64("1e-999", &status) == 0 && !status);
    CHECK(read_f64("1.7976931348623157e308", &status) == 0x1.fffffffffffffp1023 && !status);
    CHECK(signbit(read_f64("-0", &status)) && !status);
    CHECK(read_f64("1e309", &status) == 0 && status == TN_ERR_LIMIT);
    CHECK(read_f64("true", &status) == 0 && status == TN_ERR_CORRUPT);
}

static void floats_are_the_nearest_whatever_the_rounding_mode(void)
{
    static const int modes[] = { FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO };
    for (int i = 0; i < 3; i++) {
        tn_status status;
        fesetround(modes[i]);
        double tenth = read_f64("0.1", &status), third = read_f64("-0.3", &status),
               large = read_f64("1.7976931348623158e308", &status);
        int after = fegetround();
        fesetround(FE_TONEAREST);
        CHECK(tenth == 0.1 && third == -0.3 && large == 0x1.fffffffffffffp1023 && !status);
        CHECK(after == modes[i]);
    }
}

static void messages_tell_expected_and_found(void)
{
    static const struct { const char *json, *why; size_t at; } cases[] = {
        { "[12]", "expected a string but found a number", 1 },
        { "[{}]", "expected a string but found an object", 1 },
        { "[true]", "expected a string but found true", 1 },
        { "[ ?]", "expected a string but found '?'", 2 },
        { "[\x02]", "expected a string but found byte 0x02", 1 },
        { "[", "expected ',' or ']' but the text ends", 1 },
        { "[\"a\"x]", "expected ',' or ']' but found 'x'", 4 },
        { "[\"a\\q\"]", "expected one of \"\\/bfnrtu after a backslash but found 'q'", 4 },
        { "[\"\\u12x\"]", "expected four hexadecimal digits after \\u but found 'x'", 6 },
        { "[\"\\udc01\"]", "expected a character but found the lone surrogate \\uDC01", 2 },
        { "[\"a", "the text ends inside a string", 3 },
        { "[\"a\n\"]", "expected control characters in strings to be escaped but found 0x0A", 3 },
        { "{}", "expected an array but found an object", 0 },
        { "\xff", "expected UTF-8 but found byte 0xFF", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        begin(&f, cases[i].json);
        tn_json_array(&f.j);
        while (tn_json_item(&f.j))
            tn_json_string(&f.j);
        assert_string_equal(f.j.why, cases[i].why);
        CHECK(f.j.at == cases[i].at);
        end(&f);
    }
    fixture f;
    tn_json_u64(begin(&f, "-5"));
    assert_string_equal(f.j.why, "expected an integer that is not negative but found -5");
    end(&f);
    tn_json_u64(begin(&f, "1.50"));
    assert_string_equal(f.j.why, "expected an integer that is not negative but found 1.50");
    end(&f);
}

static void a_failed_reader_stays_failed_and_yields_nothing(void)
{
    fixture f;
    tn_json *j = begin(&f, "{\"a\":[1,2,3],\"b\":\"x\"}");
    tn_text key = { NULL, 7 };
    CHECK(tn_json_object(j) && tn_json_key(j, &key));
    tn_json_reject(j, TN_ERR_CORRUPT, "tensor %s is there twice", "a");
    tn_json_reject(j, TN_ERR_LIMIT, "too late");
    CHECK(j->status == TN_ERR_CORRUPT && j->at == 5);
    assert_string_equal(j->why, "tensor a is there twice");
    CHECK(tn_json_peek(j) == TN_JSON_END);
    CHECK(!tn_json_array(j) && !tn_json_item(j) && !tn_json_object(j) && !tn_json_key(j, &key));
    CHECK(tn_json_string(j).len == 0 && tn_json_number(j).len == 0 && tn_json_raw(j).len == 0);
    CHECK(tn_json_u64(j) == 0 && tn_json_i64(j) == 0 && tn_json_f64(j) == 0 && !tn_json_bool(j));
    tn_json_null(j);
    tn_json_skip(j);
    CHECK(!tn_json_done(j));
    CHECK(j->status == TN_ERR_CORRUPT && j->at == 5);
    tn_error err;
    CHECK(tn_json_fail(j, TN_NO_OFFSET, &err) == TN_ERR_CORRUPT && err.offset == TN_NO_OFFSET);
    CHECK(tn_json_fail(j, 0, NULL) == TN_ERR_CORRUPT);
    end(&f);
}

static void strings_are_written_as_they_are_read(void)
{
    char text[256 + 8];
    size_t n = 0;
    for (int c = 0; c < 128; c++)
        text[n++] = (char)c;
    n += (size_t)snprintf(text + n, 32, "\xc3\xa9\xf0\x9f\x98\x80");
    tn_buf b = { 0 };
    tn_json_put_string(&b, text, n);
    CHECK(!b.bad);
    fixture f;
    tn_text back = tn_json_string(begin_n(&f, b.data, b.size));
    CHECK(tn_json_done(&f.j));
    CHECK(back.len == n && memcmp(back.ptr, text, n) == 0);
    end(&f);
    b.size = 0;
    tn_json_put_string(&b, "a\"\\/\b\f\n\r\t\v\x01\x7f", 12);
    tn_json_put_string(&b, "", 0);
    tn_buf_putc(&b, '\0');
    assert_string_equal((char *)b.data, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u000b\\u0001\x7f\"\"\"");
    tn_buf_free(&b);
}

static void floats_are_written_short_and_exact(void)
{
    static const struct { double value; const char *text; } cases[] = {
        { 0, "0.0" }, { -0.0, "-0.0" }, { 1, "1.0" }, { -3, "-3.0" }, { 0.1, "0.1" },
        { 1.0 / 3, "0.3333333333333333" },
        { 0.1 + 0.2, "0.30000000000000004" }, { 1e22, "1e+22" }, { 1e-7, "1e-07" }, { 0x1p-1074, "5e-324" },
        { 123456789012345680.0, "1.2345678901234568e+17" },
        { 0x1.fffffffffffffp1023, "1.7976931348623157e+308" }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_buf b = { 0 };
        tn_json_put_f64(&b, cases[i].value);
        tn_buf_putc(&b, '\0');
        assert_string_equal((char *)b.data, cases[i].text);
        tn_buf_free(&b);
    }
    uint64_t bits = 88172645463325252;         /* xorshift: any doubles at all */
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        tn_buf b = { 0 };
        tn_json_put_f64(&b, value);
        tn_buf_putc(&b, '\0');
        tn_status status;
        back = read_f64((char *)b.data, &status);
        CHECK(!status && memcmp(&value, &back, sizeof value) == 0);
        tn_buf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rfc_8259_texts_are_accepted),
        TEST(everything_else_is_refused),
        TEST(every_truncation_is_called_truncated),
        TEST(a_changed_byte_anywhere_never_confuses_the_readers),
        TEST(nesting_is_limited_and_costs_no_stack),
        TEST(a_header_is_read_by_asking_for_what_it_has),
        TEST(escapes_are_decoded),
        TEST(strings_end_at_the_first_special_byte_wherever_it_is),
        TEST(integers_fit_or_fail),
        TEST(floats_are_the_nearest_doubles),
        TEST(floats_are_the_nearest_whatever_the_rounding_mode),
        TEST(messages_tell_expected_and_found),
        TEST(a_failed_reader_stays_failed_and_yields_nothing),
        TEST(strings_are_written_as_they_are_read),
        TEST(floats_are_written_short_and_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
