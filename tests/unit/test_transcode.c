/* JSON to CBOR and back. */
#include "support.h"

#include "hex.h"

#include "bytes/transcode.h"

static tn_status encode(const void *json, size_t n, tn_buf *out)
{
    tn_arena arena = { 0 };
    tn_json j;
    uint8_t *copy = exact_copy(json, n);
    tn_json_init(&j, (const char *)copy, n, &arena);
    size_t before = out->size;
    tn_json_to_cbor(&j, out);
    CHECK(!j.status || out->size == before);
    tn_json_done(&j);
    tn_arena_free(&arena);
    free(copy);
    return j.status;
}

static bool decode(const void *item, size_t n, tn_buf *out)
{
    uint8_t *copy = exact_copy(item, n);
    size_t before = out->size;
    bool exact = tn_cbor_to_json(copy, n, out);
    CHECK(exact || out->size == before);
    CHECK(!out->bad);
    free(copy);
    return exact;
}

static void json_becomes_the_shortest_cbor_and_comes_back(void)
{
    static const struct { const char *json, *hex, *back; } cases[] = {      /* back NULL: the same text */
        { "null", "f6", NULL }, { "true", "f5", NULL }, { "false", "f4", NULL }, { "\"\"", "60", NULL },
        { "0", "00", NULL }, { "-1", "20", NULL }, { "1000", "1903e8", NULL },
        { "18446744073709551615", "1bffffffffffffffff", NULL },
        { "-9223372036854775808", "3b7fffffffffffffff", NULL },
        { "18446744073709551616", "fa5f800000", "1.8446744073709552e+19" },
        { "-9223372036854775809", "fadf000000", "-9.223372036854776e+18" },
        { "1.0", "f93c00", NULL }, { "1e0", "f93c00", "1.0" }, { "-0", "f98000", "-0.0" },
        { "-0.0", "f98000", NULL },
        { "0.1", "fb3fb999999999999a", NULL }, { "1E5", "fa47c35000", "100000.0" },
        { "1e-999", "f90000", "0.0" },
        { "[]", "80", NULL }, { "{}", "a0", NULL }, { " [ 1 , [ 2.5 ] ] ", "82 01 81 f94100", "[1,[2.5]]" },
        { "{\"b\":1,\"a\":{\"b\":[]}}", "a2 6162 01 6161 a1 6162 80", NULL },
        { "\"\\u00e9\\n\\u0000\"", "64 c3a9 0a 00", "\"\xc3\xa9\\n\\u0000\"" }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t hex[64];
        size_t n = from_hex(cases[i].hex, hex);
        tn_buf cbor = { 0 }, json = { 0 };
        CHECK(encode(cases[i].json, strlen(cases[i].json), &cbor) == TN_OK);
        CHECK(cbor.size == n && memcmp(cbor.data, hex, n) == 0);
        CHECK(decode(cbor.data, cbor.size, &json));
        tn_buf_putc(&json, '\0');
        assert_string_equal((char *)json.data, cases[i].back ? cases[i].back : cases[i].json);
        tn_buf_free(&cbor);
        tn_buf_free(&json);
    }
}

static void long_containers_get_long_heads(void)
{
    static const size_t counts[] = { 23, 24, 255, 256, 65535, 65536 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int object = 0; object < 2; object++) {
            tn_buf json = { 0 }, cbor = { 0 }, back = { 0 }, head = { 0 };
            tn_buf_putc(&json, object ? '{' : '[');
            for (size_t k = 0; k < counts[i]; k++)
                tn_buf_printf(&json, object ? "%s\"%zu\":0" : "%s%zu", k ? "," : "", k);
            tn_buf_putc(&json, object ? '}' : ']');
            (object ? tn_cbor_put_map : tn_cbor_put_array)(&head, counts[i]);
            CHECK(encode(json.data, json.size, &cbor) == TN_OK);
            CHECK(memcmp(cbor.data, head.data, head.size) == 0);
            CHECK(decode(cbor.data, cbor.size, &back));
            CHECK(back.size == json.size && memcmp(back.data, json.data, json.size) == 0);
            tn_buf_free(&json);
            tn_buf_free(&cbor);
            tn_buf_free(&back);
            tn_buf_free(&head);
        }
    }
}

static void a_key_that_comes_twice_is_refused(void)
{
    static const struct { const char *json; bool twice; } cases[] = {
        { "{\"a\":1,\"a\":2}", true }, { "{\"a\":1,\"b\":{\"c\":0},\"a\":2}", true },
        { "[{\"x\":{\"a\":1,\"\\u0061\":1}}]", true },
        { "{\"\":1,\"\":1}", true },
        { "{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}", false }, { "{\"a\":1,\"ab\":2,\"b\":3}", false },
        { "{\"a\\u0000\":1,\"a\":2}", false }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_buf out = { 0 };
        tn_buf_puts(&out, "before");
        CHECK(encode(cases[i].json, strlen(cases[i].json), &out) ==
              (cases[i].twice ? TN_ERR_CORRUPT : TN_OK));
        CHECK(memcmp(out.data, "before", 6) == 0);
        tn_buf_free(&out);
    }
    tn_arena arena = { 0 };
    tn_json j;
    tn_buf out = { 0 };
    tn_json_init(&j, "{\"k\":1,\"b\":2,\"k\":3 }", 21, &arena);
    tn_json_to_cbor(&j, &out);
    assert_string_equal(j.why, "expected every key once but found \"k\" again");
    CHECK(j.at == 17);          /* right after the second "k": */
    tn_buf_free(&out);
    tn_arena_free(&arena);
}

static void bad_json_fails_its_reader(void)
{
    tn_buf out = { 0 };
    CHECK(encode("", 0, &out) == TN_ERR_TRUNCATED);
    CHECK(encode("[1,", 3, &out) == TN_ERR_TRUNCATED);
    CHECK(encode("{\"a\":x}", 7, &out) == TN_ERR_CORRUPT);
    CHECK(encode("1e400", 5, &out) == TN_ERR_LIMIT);
    CHECK(encode("[[1],2]3", 8, &out) == TN_ERR_CORRUPT);
    char deep[2 * TN_JSON_MAX_DEPTH + 2];
    memset(deep, '[', TN_JSON_MAX_DEPTH + 1);
    memset(deep + TN_JSON_MAX_DEPTH + 1, ']', TN_JSON_MAX_DEPTH + 1);
    CHECK(encode(deep, sizeof deep, &out) == TN_ERR_LIMIT);
    CHECK(encode(deep + 1, sizeof deep - 2, &out) == TN_OK);
    tn_buf_free(&out);
}

static void cbor_that_json_cannot_say_exactly_is_refused(void)
{
    static const char *const refused[] = { "40", "4101", "c100", "d9d9f700", "f7", "f0", "f97e00", "f97c00",
                                           "f9fc00", "fa7fc00000", "1800", "190001", "7801 61",
                                           "fb3ff0000000000000", "fa3f800000", "3b8000000000000000",
                                           "3bffffffffffffffff", "9fff", "bfff", "7f6161ff", "7fff", "9800",
                                           "b800", "a10100", "a1 4161 00", "a1 c1 6161 00", "81c100",
                                           "a2 6161 00 6161 01", "0000", "", "81", "ff", "61ff" };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        uint8_t data[64];
        tn_buf out = { 0 };
        tn_buf_puts(&out, "before");
        CHECK(!decode(data, from_hex(refused[i], data), &out));
        CHECK(out.size == 6);
        tn_buf_free(&out);
    }
}

/* What is accepted comes back; what is not leaves no trace. */
static void check_both_ways(const uint8_t *data, size_t n)
{
    tn_buf json = { 0 }, cbor = { 0 };
    if (decode(data, n, &json)) {
        CHECK(encode(json.data, json.size, &cbor) == TN_OK);
        CHECK(cbor.size == n && memcmp(cbor.data, data, n) == 0);
    }
    tn_buf_free(&json);
    tn_buf_free(&cbor);
}

static const char sample[] =
    "{\"name\":\"h.0\",\"shape\":[2,-3,1.5],\"more\":{\"\\u00e9\":null,\"k\":[true,false,{}]},"
    "\"big\":1e300,\"n\":18446744073709551615}";

static void every_truncation_of_both_forms_is_refused(void)
{
    tn_buf cbor = { 0 }, ignored = { 0 };
    CHECK(encode(sample, sizeof sample - 1, &cbor) == TN_OK);
    for (size_t n = 0; n < sizeof sample - 1; n++)
        CHECK(encode(sample, n, &ignored) == TN_ERR_TRUNCATED);
    for (size_t n = 0; n < cbor.size; n++)
        CHECK(!decode(cbor.data, n, &ignored));
    tn_buf_free(&cbor);
    tn_buf_free(&ignored);
}

static void a_changed_byte_comes_back_as_it_is_or_is_refused(void)
{
    tn_buf cbor = { 0 };
    CHECK(encode(sample, sizeof sample - 1, &cbor) == TN_OK);
    check_both_ways(cbor.data, cbor.size);
    for (size_t i = 0; i < cbor.size; i++) {
        uint8_t before = cbor.data[i];
        for (unsigned value = 0; value < 256; value++) {
            cbor.data[i] = (uint8_t)value;
            check_both_ways(cbor.data, cbor.size);
        }
        cbor.data[i] = before;
    }
    tn_buf_free(&cbor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(json_becomes_the_shortest_cbor_and_comes_back),
        TEST(long_containers_get_long_heads),
        TEST(a_key_that_comes_twice_is_refused),
        TEST(bad_json_fails_its_reader),
        TEST(cbor_that_json_cannot_say_exactly_is_refused),
        TEST(every_truncation_of_both_forms_is_refused),
        TEST(a_changed_byte_comes_back_as_it_is_or_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
