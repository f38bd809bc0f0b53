/* The CBOR reader and writer. */
#include "support.h"

#include "hex.h"
#include "walk_cbor.h"

#include <math.h>

/* A reader over an exact copy of some bytes, with all it needs. */
typedef struct fixture {
    tn_cbor  c;
    tn_arena arena;
    uint8_t *copy;
} fixture;

static tn_cbor *begin(fixture *f, const void *data, size_t n)
{
    f->arena = (tn_arena){ 0 };
    f->copy = exact_copy(data, n);
    tn_cbor_init(&f->c, f->copy, n, &f->arena);
    return &f->c;
}

static void end(fixture *f)
{
    tn_arena_free(&f->arena);
    free(f->copy);
}

static tn_cbor *begin_hex(fixture *f, const char *hex)
{
    uint8_t data[256];
    return begin(f, data, from_hex(hex, data));
}

/* The verdict on some bytes; skipping and walking must agree about it. */
static tn_status verdict(const void *data, size_t n)
{
    fixture a, b;
    tn_cbor_skip(begin(&a, data, n));
    tn_cbor_done(&a.c);
    walk_cbor(begin(&b, data, n));
    tn_cbor_done(&b.c);
    CHECK(a.c.status == b.c.status);
    CHECK(a.c.pos == b.c.pos || a.c.status);
    CHECK(a.c.at <= n && b.c.at <= n);
    CHECK((a.c.status == TN_OK) == (a.c.why[0] == '\0'));
    CHECK(a.c.status || (a.c.depth == 0 && b.c.depth == 0));
    tn_error err = { 0 };
    if (a.c.status) {
        CHECK(tn_cbor_fail(&a.c, 1000, &err) == a.c.status);
        CHECK(err.offset == 1000 + a.c.at);
        CHECK(strcmp(said_of(&err), a.c.why) == 0);
    }
    tn_status status = a.c.status;
    end(&a);
    end(&b);
    return status;
}

static tn_status verdict_hex(const char *hex)
{
    uint8_t data[256];
    return verdict(data, from_hex(hex, data));
}

/* An index entry in both kinds of length, tags, chunks, floats, and a key that is no text. */
static const char sample[] = "82"
                             "bf 646e616d65 7f 63626c6b 62c3a9 ff 666f6666736574 1a00010040 6473697a65 181e "
                             "65 7368617065 9f 05 1903e8 ff"
                             "   63733a31 f93c00 63733a32 fa47c35000 63733a33 fb3ff199999999999a ff"
                             "a5 01 20 62c3bc c1 1a514b67b0 43010203 5f 4101 40 ff f5 d818 41f6 8101 f8ff";

static void well_formed_items_are_accepted(void)
{
    static const char *const good[] = { "00", "17", "1818", "1800", "190000", "1a00000000",
                                        "1b0000000000000000", "1bffffffffffffffff", "20", "3863",
                                        "3bffffffffffffffff", "f90000", "f97e00", "fa7f7fffff",
                                        "fb7ff0000000000000", "f4", "f5", "f6", "f7", "f0", "f820", "f8ff",
                                        "c0 60", "d74401020304", "d8184100", "da0000000000",
                                        "db000000000000000000", "40", "60", "4401020304", "6161", "62225c",
                                        "63e6b0b4", "64f0908591", "80", "83010203", "8301820203820405", "a0",
                                        "a201020304", "a26161016162820203", "5f42010243030405ff", "5fff",
                                        "7f657374726561646d696e67ff", "7fff", "9fff", "9f018202039f0405ffff",
                                        "83018202039f0405ff", "bf61610161629f0203ffff", "bfff",
                                        "bf6346756ef563416d7421ff", "a18001", "bf8001a0a0ff", "780161",
                                        sample };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(verdict_hex(good[i]) == TN_OK);
}

static void malformed_items_are_refused(void)
{
    static const char *const bad[] = {
        "1c", "1d", "1e", "1f", "3c", "3f", "5c", "5d", "7e", "9c", "9e", "bd", "dc", "df", "fc", "fd", "fe",   /* reserved */
        "f800", "f81f",                                         /* simple values that have a shorter form */
        "ff", "81ff", "8201ff", "a1ff00", "a101ff", "c1ff",             /* break where none is due */
        "bf01ff", "bf010203ff", "9fff00", "0000", "60 00",
        "5f01ff", "5f6161ff", "5f80ff", "5f5fff", "5fc14101ff", "7f4101ff", "7f7fff", "7ff6ff",     /* wrong chunks */
        "61ff", "62c080", "63eda080", "61c3", "7f61c361a9ff"    /* not UTF-8, each chunk by itself */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(verdict_hex(bad[i]) == TN_ERR_CORRUPT);
}

static void counts_and_lengths_are_believed_only_if_they_can_be_true(void)
{
    static const char *const lies[] = { "8101 9a20000000", "9a20000000", "9bffffffffffffffff",
                                        "9b7fffffffffffffff 00", "82 01", "ba00000002 010203",
                                        "bbffffffffffffffff", "bb8000000000000000 0102", "5bffffffffffffffff",
                                        "7bffffffffffffffff", "5a00000002 01", "7b8000000000000000 6161",
                                        "78ff", "a1ff", "9bfffffffffffffffe 00", "5f 5bffffffffffffffff ff",
                                        "7f7bffffffffffffffff ff" };
    for (size_t i = 1; i < sizeof lies / sizeof *lies; i++)
        CHECK(verdict_hex(lies[i]) == TN_ERR_TRUNCATED);
    CHECK(verdict_hex(lies[0]) == TN_ERR_CORRUPT);      /* one whole item, and more bytes */
}

static void every_truncation_is_called_truncated(void)
{
    uint8_t data[256];
    size_t whole = from_hex(sample, data);
    CHECK(verdict(data, whole) == TN_OK);
    for (size_t n = 0; n < whole; n++)
        CHECK(verdict(data, n) == TN_ERR_TRUNCATED);
}

static void a_changed_byte_anywhere_never_confuses_the_readers(void)
{
    uint8_t data[256];
    size_t n = from_hex(sample, data), refused = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t before = data[i];
        for (unsigned value = 0; value < 256; value++) {
            data[i] = (uint8_t)value;
            refused += verdict(data, n) != TN_OK;
        }
        data[i] = before;
    }
    CHECK(refused > 5000);
}

static void nesting_and_tags_are_limited(void)
{
    static uint8_t data[300000];
    memset(data, 0x81, TN_CBOR_MAX_DEPTH);
    data[TN_CBOR_MAX_DEPTH] = 0x00;
    CHECK(verdict(data, TN_CBOR_MAX_DEPTH + 1) == TN_OK);
    data[TN_CBOR_MAX_DEPTH] = 0x80;
    data[TN_CBOR_MAX_DEPTH + 1] = 0x00;
    CHECK(verdict(data, TN_CBOR_MAX_DEPTH + 2) == TN_ERR_LIMIT);
    memset(data, 0x9f, sizeof data);
    CHECK(verdict(data, sizeof data) == TN_ERR_LIMIT);
    memset(data, 0xbf, sizeof data);
    CHECK(verdict(data, sizeof data) == TN_ERR_LIMIT);
    memset(data, 0xc1, sizeof data);
    CHECK(verdict(data, sizeof data) == TN_ERR_LIMIT);
    data[TN_CBOR_MAX_TAGS] = 0x00;
    CHECK(verdict(data, TN_CBOR_MAX_TAGS + 1) == TN_OK);
    CHECK(verdict(data, TN_CBOR_MAX_TAGS) == TN_ERR_TRUNCATED);
}

static void an_index_is_read_by_asking_for_what_it_has(void)
{
    fixture f;
    tn_cbor *c = begin_hex(&f, sample);
    tn_text key;
    CHECK(tn_cbor_peek(c) == TN_CBOR_ARRAY && tn_cbor_array(c) && tn_cbor_item(c) && tn_cbor_map(c));
    CHECK(tn_cbor_key(c, &key) && tn_text_is(key, "name") && tn_text_is(tn_cbor_text(c), "blk\xc3\xa9"));
    CHECK(tn_cbor_key(c, &key) && tn_text_is(key, "offset") && tn_cbor_u64(c) == 0x10040);
    CHECK(tn_cbor_key(c, &key) && tn_text_is(key, "size") && tn_cbor_i64(c) == 30);
    CHECK(tn_cbor_key(c, &key) && tn_text_is(key, "shape") && tn_cbor_array(c));
    CHECK(tn_cbor_item(c) && tn_cbor_u64(c) == 5 && tn_cbor_item(c) && tn_cbor_u64(c) == 1000 &&
          !tn_cbor_item(c));
    CHECK(tn_cbor_key(c, &key) && tn_cbor_f64(c) == 1.0);
    CHECK(tn_cbor_key(c, &key) && tn_cbor_f64(c) == 100000.0);
    CHECK(tn_cbor_key(c, &key) && tn_cbor_f64(c) == 1.1);
    CHECK(!tn_cbor_key(c, &key));
    CHECK(tn_cbor_item(c) && tn_cbor_map(c));
    CHECK(tn_cbor_item(c) && tn_cbor_u64(c) == 1 && tn_cbor_i64(c) == -1);
    CHECK(tn_cbor_key(c, &key) && tn_text_is(key, "\xc3\xbc"));
    CHECK(tn_cbor_peek(c) == TN_CBOR_UINT);
    tn_text raw = tn_cbor_raw(c);
    CHECK(raw.len == 6 && memcmp(raw.ptr, "\xc1\x1a\x51\x4b\x67\xb0", 6) == 0);     /* with its tag */
    CHECK(tn_cbor_item(c) && tn_text_is(tn_cbor_bytes(c), "\x01\x02\x03") &&
          tn_text_is(tn_cbor_bytes(c), "\x01"));
    CHECK(tn_cbor_item(c) && tn_cbor_bool(c) && tn_text_is(tn_cbor_bytes(c), "\xf6"));     /* steps over tag 24 */
    CHECK(tn_cbor_item(c));
    tn_cbor_skip(c);
    CHECK(tn_cbor_peek(c) == TN_CBOR_OTHER);
    tn_cbor_skip(c);
    CHECK(!tn_cbor_item(c) && !tn_cbor_item(c));    /* of the map, then of the array */
    CHECK(tn_cbor_peek(c) == TN_CBOR_END && tn_cbor_done(c) && c->status == TN_OK);
    end(&f);
}

static void integers_fit_or_fail(void)
{
    static const struct { const char *hex; tn_status status; int64_t value; } cases[] = {
        { "00", TN_OK, 0 }, { "17", TN_OK, 23 }, { "18ff", TN_OK, 255 }, { "19ffff", TN_OK, 65535 },
        { "1affffffff", TN_OK, 4294967295 }, { "1b7fffffffffffffff", TN_OK, INT64_MAX },
        { "1b8000000000000000", TN_ERR_LIMIT, 0 }, { "20", TN_OK, -1 }, { "3903e7", TN_OK, -1000 },
        { "3b7fffffffffffffff", TN_OK, INT64_MIN }, { "3b8000000000000000", TN_ERR_LIMIT, 0 },
        { "f93c00", TN_ERR_CORRUPT, 0 }, { "f5", TN_ERR_CORRUPT, 0 }, { "19ff", TN_ERR_TRUNCATED, 0 },
        { "", TN_ERR_TRUNCATED, 0 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        CHECK(tn_cbor_i64(begin_hex(&f, cases[i].hex)) == cases[i].value);
        CHECK(f.c.status == cases[i].status);
        end(&f);
    }
    fixture f;
    CHECK(tn_cbor_u64(begin_hex(&f, "1bffffffffffffffff")) == UINT64_MAX && !f.c.status);
    end(&f);
}

static void messages_tell_expected_and_found(void)
{
    static const struct { const char *hex, *why; size_t at; } cases[] = {
        { "8101", "expected text but found an integer", 1 },
        { "8120", "expected text but found a negative integer", 1 },
        { "8180", "expected text but found an array", 1 },
        { "81a0", "expected text but found a map", 1 },
        { "8140", "expected text but found bytes", 1 },
        { "81f4", "expected text but found false", 1 },
        { "81f6", "expected text but found null", 1 },
        { "81f93c00", "expected text but found a float", 1 },
        { "81f7", "expected text but found a simple value", 1 },
        { "81ff", "expected text but found a break", 1 },
        { "9f", "expected an item or a break but the data ends", 1 },
        { "c1a0", "expected an array but found a map", 1 },
        { "82", "expected 2 items but only 0 bytes follow", 0 },
        { "816461", "expected text of 4 bytes but only 1 follow", 1 },
        { "8161ff", "expected UTF-8 but found byte 0xFF", 2 },
        { "81 62 41c3", "expected UTF-8 but found byte 0xC3", 3 },
        { "8178", "expected a number of 1 bytes but only 0 follow", 1 },
        { "817c", "expected an item but found the reserved byte 0x7C", 1 },
        { "817f6161f6ff", "expected a chunk of text or a break but found null", 4 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        tn_cbor *c = begin_hex(&f, cases[i].hex);
        tn_cbor_array(c);
        while (tn_cbor_item(c))
            tn_cbor_text(c);
        assert_string_equal(c->why, cases[i].why);
        CHECK(c->at == cases[i].at);
        end(&f);
    }
}

static void a_failed_reader_stays_failed_and_yields_nothing(void)
{
    fixture f;
    tn_cbor *c = begin_hex(&f, "83 01 6161 9f 0102 ff");
    tn_text key = { NULL, 7 };
    CHECK(tn_cbor_array(c) && tn_cbor_item(c));
    tn_cbor_reject(c, TN_ERR_CORRUPT, "tensor %s is there twice", "a");
    tn_cbor_reject(c, TN_ERR_LIMIT, "too late");
    CHECK(tn_cbor_peek(c) == TN_CBOR_END);
    CHECK(!tn_cbor_item(c) && !tn_cbor_key(c, &key) && !tn_cbor_array(c) &&
          !tn_cbor_map(c));
    CHECK(tn_cbor_u64(c) == 0 && tn_cbor_i64(c) == 0 && tn_cbor_f64(c) == 0 && !tn_cbor_bool(c));
    CHECK(tn_cbor_text(c).len == 0 && tn_cbor_bytes(c).len == 0 && tn_cbor_raw(c).len == 0);
    tn_cbor_null(c);
    tn_cbor_skip(c);
    CHECK(!tn_cbor_done(c));
    CHECK(c->status == TN_ERR_CORRUPT && c->at == 1);
    assert_string_equal(c->why, "tensor a is there twice");
    tn_error err;
    CHECK(tn_cbor_fail(c, TN_NO_OFFSET, &err) == TN_ERR_CORRUPT && err.offset == TN_NO_OFFSET);
    CHECK(tn_cbor_fail(c, 0, NULL) == TN_ERR_CORRUPT);
    end(&f);
}

static void text_of_every_length_is_checked_at_every_byte(void)
{
    uint8_t data[40];
    for (size_t n = 0; n < 32; n++) {
        size_t head = n < 24 ? 1 : 2;
        memset(data, 'a', sizeof data);
        data[0] = (uint8_t)(n < 24 ? 0x60 + n : 0x78);
        if (n >= 24)
            data[1] = (uint8_t)n;
        CHECK(verdict(data, head + n) == TN_OK);
        for (size_t i = head; i < head + n; i++) {
            data[i] = 0x80;
            CHECK(verdict(data, head + n) == TN_ERR_CORRUPT);
            data[i] = 'a';
        }
    }
}

static void check_written(const tn_buf *b, const char *hex)
{
    uint8_t expected[64];
    size_t n = from_hex(hex, expected);
    CHECK(!b->bad && b->size == n && memcmp(b->data, expected, n) == 0);
}

static void heads_are_written_in_their_shortest_form(void)
{
    static const struct { int64_t value; const char *hex; } cases[] = {
        { 0, "00" }, { 23, "17" }, { 24, "1818" }, { 255, "18ff" }, { 256, "190100" }, { 65535, "19ffff" },
        { 65536, "1a00010000" }, { 4294967295, "1affffffff" }, { 4294967296, "1b0000000100000000" },
        { -1, "20" }, { -24, "37" }, { -25, "3818" }, { -1000, "3903e7" }, { INT64_MIN, "3b7fffffffffffffff" }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_buf b = { 0 };
        tn_cbor_put_i64(&b, cases[i].value);
        check_written(&b, cases[i].hex);
        tn_buf_free(&b);
    }
    tn_buf b = { 0 };
    tn_cbor_put_u64(&b, UINT64_MAX);
    tn_cbor_put_array(&b, 3);
    tn_cbor_put_text(&b, "ab", 2);
    tn_cbor_put_bytes(&b, "\x01", 1);
    tn_cbor_put_bool(&b, true);
    tn_cbor_put_map(&b, 0);
    tn_cbor_open_map(&b);
    tn_cbor_put_text(&b, "", 0);
    tn_cbor_put_bool(&b, false);
    tn_cbor_put_null(&b);
    tn_cbor_close(&b);
    check_written(&b, "1bffffffffffffffff 83 626162 4101 f5 a0 bf 60 f4 f6 ff");
    tn_buf_free(&b);
}

static void floats_are_written_in_the_shortest_form_that_keeps_them(void)
{
    static const struct { double value; const char *hex; } cases[] = {
        { 0.0, "f90000" }, { -0.0, "f98000" }, { 1.0, "f93c00" }, { 1.5, "f93e00" }, { 65504.0, "f97bff" },
        { 65505.0, "fa477fe100" }, { 65536.0, "fa47800000" }, { 100000.0, "fa47c35000" },
        { 1.1, "fb3ff199999999999a" },
        { 0x1p-24, "f90001" }, { 0x3p-24, "f90003" }, { 0x1p-25, "fa33000000" }, { 0x1.8p-24, "fa33c00000" },
        { 0x1p-14, "f90400" }, { 0x1.ff8p-15, "f903ff" }, { 0x1.ffcp-15, "fa387fe000" }, { -4.0, "f9c400" },
        { 0x1.fffffep127, "fa7f7fffff" }, { 0x1p128, "fb47f0000000000000" }, { 0x1p-149, "fa00000001" },
        { 0x1p-1074, "fb0000000000000001" }, { INFINITY, "f97c00" }, { -INFINITY, "f9fc00" },
        { NAN, "f97e00" }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_buf b = { 0 };
        tn_cbor_put_f64(&b, cases[i].value);
        check_written(&b, cases[i].hex);
        fixture f;
        double back = tn_cbor_f64(begin(&f, b.data, b.size));
        CHECK(tn_cbor_done(&f.c));
        CHECK(back == cases[i].value || (isnan(back) && isnan(cases[i].value)));
        CHECK(!signbit(back) == !signbit(cases[i].value) || isnan(back));
        end(&f);
        tn_buf_free(&b);
    }
}

static void every_half_comes_back_as_it_was(void)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        uint8_t data[3] = { 0xf9, (uint8_t)(bits >> 8), (uint8_t)bits };
        tn_arena none = { 0 };
        tn_cbor c;
        tn_cbor_init(&c, data, sizeof data, &none);
        double value = tn_cbor_f64(&c);
        tn_buf b = { 0 };
        tn_cbor_put_f64(&b, value);
        CHECK(isnan(value) || (b.size == 3 && memcmp(b.data, data, 3) == 0));
        tn_buf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(well_formed_items_are_accepted),
        TEST(malformed_items_are_refused),
        TEST(counts_and_lengths_are_believed_only_if_they_can_be_true),
        TEST(every_truncation_is_called_truncated),
        TEST(a_changed_byte_anywhere_never_confuses_the_readers),
        TEST(nesting_and_tags_are_limited),
        TEST(an_index_is_read_by_asking_for_what_it_has),
        TEST(integers_fit_or_fail),
        TEST(messages_tell_expected_and_found),
        TEST(a_failed_reader_stays_failed_and_yields_nothing),
        TEST(text_of_every_length_is_checked_at_every_byte),
        TEST(heads_are_written_in_their_shortest_form),
        TEST(floats_are_written_in_the_shortest_form_that_keeps_them),
        TEST(every_half_comes_back_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
