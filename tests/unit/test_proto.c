/* The cursor over protobuf messages, and the writer. */
#include "support.h"

#include "bytes/proto.h"

static const tn_proto_rule rules[] = {
    [1] = { "one", TN_PROTO_VARINT, true },
    [2] = { "text", TN_PROTO_LENGTH, false },
    [3] = { "numbers", TN_PROTO_VARINTS, false },
    [4] = { "floats", TN_PROTO_FIXED32S, false },
    [5] = { "doubles", TN_PROTO_FIXED64S, false },
};
static const tn_proto_kind kind = TN_PROTO_KIND("Sample", rules);

/* A message in memory. */
typedef struct sample {
    tn_source      *source;
    tn_error        err;
    tn_proto_input *in;
    tn_proto        p;
} sample;

static sample begin(const void *bytes, size_t n)
{
    sample s = { .in = calloc(1, sizeof *s.in) };
    assert_non_null(s.in);
    CHECK(tn_source_open_memory(bytes, n, &s.source, NULL) == TN_OK);
    s.in->source = s.source;
    s.p = tn_proto_open(s.in, &kind);
    return s;
}

static void end(sample *s)
{
    tn_source_close(s->source);
    free(s->in);
}

/* The status after all fields of a message. */
static tn_status walk(const void *bytes, size_t n, const char *text)
{
    tn_proto_field f;
    tn_error err = { .text = "" };
    sample s = begin(bytes, n);
    s.in->err = &err;
    while (tn_proto_next(&s.p, &f))
        CHECK(f.at < n && s.p.pos <= n);
    tn_status status = s.in->status;
    CHECK(!tn_proto_next(&s.p, &f));            /* it stays failed, or at its end */
    if (status && !strstr(err.text, text))
        fail_msg("expected %s but found %s", text, err.text);
    end(&s);
    return status;
}

static void fields_of_all_wire_types_are_taken(void)
{
    static const uint8_t bytes[] = { 0x08, 0x96, 0x01, 0x12, 3, 'a', 'b', 'c', 0x25, 1, 2, 3, 4, 0x29, 1, 2, 3, 4, 5,
                                     6, 7, 8, 0xa2, 0x06, 1, 'x' };
    static const tn_proto_field expected[] = {
        { .number = 1, .wire = TN_WIRE_VARINT, .at = 0, .value_at = 1, .value = 150 },
        { .number = 2, .wire = TN_WIRE_LENGTH, .at = 3, .value_at = 4, .value = 3, .begin = 5 },
        { .number = 4, .wire = TN_WIRE_FIXED32, .at = 8, .value_at = 9, .value = 0x04030201 },
        { .number = 5, .wire = TN_WIRE_FIXED64, .at = 13, .value_at = 14, .value = 0x0807060504030201 },
        { .number = 100, .wire = TN_WIRE_LENGTH, .at = 22, .value_at = 24, .value = 1, .begin = 25 },
    };
    tn_error err;
    tn_proto_field f;
    tn_arena arena = { 0 };
    sample s = begin(bytes, sizeof bytes);
    s.in->err = &err;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        CHECK(tn_proto_next(&s.p, &f));
        CHECK(f.number == expected[i].number && f.wire == expected[i].wire && f.at == expected[i].at);
        CHECK(f.value_at == expected[i].value_at && f.value == expected[i].value && f.begin == expected[i].begin);
        if (f.number == 2) {
            CHECK(tn_proto_is(&s.p, &f, "abc") && !tn_proto_is(&s.p, &f, "abd") && !tn_proto_is(&s.p, &f, "ab"));
            assert_string_equal(tn_proto_text(&s.p, &f, "text", &arena), "abc");
        }
    }
    CHECK(!tn_proto_next(&s.p, &f) && !s.in->status);
    tn_arena_free(&arena);
    end(&s);
}

#define REFUSED(status, text, ...)                              \
    do {                                                        \
        static const uint8_t bytes[] = { __VA_ARGS__ };         \
        uint8_t *copy = exact_copy(bytes, sizeof bytes);        \
        CHECK(walk(copy, sizeof bytes, text) == (status));      \
        free(copy);                                             \
    } while (0)

static void what_does_not_fit_is_refused(void)
{
    REFUSED(TN_ERR_UNSUPPORTED, "group", 0x0b);
    REFUSED(TN_ERR_UNSUPPORTED, "group", 0x0c);
    REFUSED(TN_ERR_CORRUPT, "wire type 0, 1, 2 or 5 in Sample but found 6", 0x0e);
    REFUSED(TN_ERR_CORRUPT, "found 7", 0x0f);
    REFUSED(TN_ERR_CORRUPT, "field number", 0x00, 0x00);
    REFUSED(TN_ERR_CORRUPT, "field number", 0xf8, 0xff, 0xff, 0xff, 0xff, 0x01);
    REFUSED(TN_ERR_CORRUPT, "one of Sample has wire type 2", 0x0a, 0);
    REFUSED(TN_ERR_CORRUPT, "text of Sample has wire type 0", 0x10, 0);
    REFUSED(TN_ERR_CORRUPT, "one of Sample is there twice", 0x08, 1, 0x08, 1);
    REFUSED(TN_ERR_TRUNCATED, "takes 3 more bytes but 2", 0x12, 3, 'a', 'b');
    REFUSED(TN_ERR_TRUNCATED, "takes 18446744073709551615 more bytes but 0", 0x12, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xff, 0xff, 0xff, 0xff, 0x01);
    REFUSED(TN_ERR_TRUNCATED, "takes 8 more bytes but 7", 0x29, 1, 2, 3, 4, 5, 6, 7);
    REFUSED(TN_ERR_TRUNCATED, "takes 4 more bytes but 3", 0x25, 1, 2, 3);
    REFUSED(TN_ERR_TRUNCATED, "takes 1 more bytes but 0", 0x08, 0x80);
    REFUSED(TN_ERR_CORRUPT, "more than 64 bits", 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02);
    REFUSED(TN_ERR_CORRUPT, "more than 64 bits", 0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
            0x01);
    REFUSED(TN_OK, "", 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
    REFUSED(TN_OK, "", 0x88, 0x80, 0x80, 0x00, 0x81, 0x80, 0x00);     /* overlong, with bytes of 0 bits */
}

/* Inside another message a field that is too long contradicts that one. */
static void a_message_inside_ends_where_its_length_says(void)
{
    static const uint8_t bytes[] = { 0x12, 2, 0x12, 5, 0x08, 1 };
    tn_error err = { .text = "" };
    tn_proto_field f;
    sample s = begin(bytes, sizeof bytes);
    s.in->err = &err;
    CHECK(tn_proto_next(&s.p, &f));
    tn_proto inner = tn_proto_enter(&s.p, &f, &kind);
    CHECK(!tn_proto_next(&inner, &f) && s.in->status == TN_ERR_CORRUPT && err.offset == 2);
    CHECK(!tn_proto_next(&s.p, &f));            /* all cursors of a file fail together */
    end(&s);
}

static void packed_numbers_are_taken_one_by_one(void)
{
    static const uint8_t bytes[] = { 0x1a, 4, 1, 0xac, 0x02, 0, 0x22, 8, 0, 0, 128, 63, 0, 0, 0, 64, 0x22, 3, 1, 2, 3 };
    tn_error err;
    tn_proto_field f;
    uint64_t value;
    sample s = begin(bytes, sizeof bytes);
    s.in->err = &err;
    CHECK(tn_proto_next(&s.p, &f));
    tn_proto all = tn_proto_enter(&s.p, &f, &kind);
    CHECK(tn_proto_packed(&all, TN_WIRE_VARINT, &value) && value == 1);
    CHECK(tn_proto_packed(&all, TN_WIRE_VARINT, &value) && value == 300);
    CHECK(tn_proto_packed(&all, TN_WIRE_VARINT, &value) && value == 0);
    CHECK(!tn_proto_packed(&all, TN_WIRE_VARINT, &value) && !s.in->status);
    CHECK(tn_proto_next(&s.p, &f));
    all = tn_proto_enter(&s.p, &f, &kind);
    CHECK(tn_proto_packed(&all, TN_WIRE_FIXED32, &value) && value == 0x3f800000);
    CHECK(tn_proto_packed(&all, TN_WIRE_FIXED32, &value) && value == 0x40000000);
    CHECK(!tn_proto_packed(&all, TN_WIRE_FIXED32, &value) && !s.in->status);
    CHECK(tn_proto_next(&s.p, &f));
    all = tn_proto_enter(&s.p, &f, &kind);
    CHECK(!tn_proto_packed(&all, TN_WIRE_FIXED32, &value) && s.in->status == TN_ERR_CORRUPT);
    end(&s);
}

/* A large value is passed over; what follows it is found all the same. */
static void values_larger_than_the_window_are_passed_over(void)
{
    tn_buf b = { 0 };
    static char text[TN_PROTO_WINDOW * 3 + 1];
    tn_error err;
    tn_proto_field f;
    memset(text, 'x', sizeof text - 1);
    for (size_t n = 1; n < sizeof text; n = n * 3 + 1) {
        tn_proto_put_text(&b, 2, text + sizeof text - 1 - n);
        tn_proto_put_tag(&b, 100, TN_WIRE_VARINT);
        tn_proto_put_varint(&b, n);
    }
    CHECK(!b.bad);
    sample s = begin(b.data, b.size);
    s.in->err = &err;
    for (size_t n = 1; n < sizeof text; n = n * 3 + 1) {
        CHECK(tn_proto_next(&s.p, &f) && f.number == 2 && f.value == n);
        CHECK(tn_proto_next(&s.p, &f) && f.number == 100 && f.value == n);
    }
    CHECK(!tn_proto_next(&s.p, &f) && !s.in->status);
    end(&s);
    tn_buf_free(&b);
}

static void texts_are_utf8_without_nul(void)
{
    static const uint8_t nul[] = { 0x12, 3, 'a', 0, 'b' }, bad[] = { 0x12, 1, 0xff };
    const struct { const uint8_t *bytes; size_t n; const char *why; } texts[] = {
        { nul, sizeof nul, "thing \"a\\x00b\" holds a NUL character" },
        { bad, sizeof bad, "thing \"\\xff\" is not UTF-8" },
    };
    for (size_t i = 0; i < 2; i++) {
        tn_arena arena = { 0 };
        tn_error err;
        tn_proto_field f;
        sample s = begin(texts[i].bytes, texts[i].n);
        s.in->err = &err;
        CHECK(tn_proto_next(&s.p, &f) && !tn_proto_text(&s.p, &f, "thing", &arena));
        CHECK(s.in->status == TN_ERR_CORRUPT);
        assert_string_equal(err.text, texts[i].why);
        tn_arena_free(&arena);
        end(&s);
    }
}

static void what_is_written_is_read_back(void)
{
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t value = bits == 64 ? UINT64_MAX : UINT64_C(1) << bits;
        for (int less = 0; less < 2; less++, value--) {
            tn_buf b = { 0 };
            tn_proto_field f;
            tn_error err;
            tn_proto_put_tag(&b, 1, TN_WIRE_VARINT);
            tn_proto_put_varint(&b, value);
            CHECK(!b.bad && b.size == 1 + tn_proto_varint_size(value));
            uint8_t *copy = exact_copy(b.data, b.size);
            sample s = begin(copy, b.size);
            s.in->err = &err;
            CHECK(tn_proto_next(&s.p, &f) && f.value == value && !tn_proto_next(&s.p, &f) && !s.in->status);
            end(&s);
            free(copy);
            tn_buf_free(&b);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fields_of_all_wire_types_are_taken),
        TEST(what_does_not_fit_is_refused),
        TEST(a_message_inside_ends_where_its_length_says),
        TEST(packed_numbers_are_taken_one_by_one),
        TEST(values_larger_than_the_window_are_passed_over),
        TEST(texts_are_utf8_without_nul),
        TEST(what_is_written_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
