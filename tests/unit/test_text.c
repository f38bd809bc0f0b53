#include "support.h"

#include "base/text.h"

/* One code point in UTF-8, by the book; returns the length. */
static size_t encode(uint32_t c, uint8_t out[4])
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(lead[n] | c);
    return n;
}

static void every_code_point_but_surrogates_is_valid(void)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t s[4];
        size_t n = encode(c, s);
        bool surrogate = c >= 0xd800 && c < 0xe000;
        CHECK(tn_utf8_valid(s, n) == (surrogate ? 0 : n));
    }
    uint8_t beyond[4];
    CHECK(tn_utf8_valid(beyond, encode(0x110000, beyond)) == 0);
    CHECK(tn_utf8_valid(beyond, encode(0x1fffff, beyond)) == 0);
}

/* All two- and three-byte strings against the definition: a string is valid
 * when it is made of encoded code points. */
static void no_other_short_string_is_valid(void)
{
    static uint8_t valid[1 << 24];          /* by the three bytes, for strings of exactly that many */
    for (uint32_t c = 0x800; c < 0x10000; c++) {
        uint8_t s[4];
        encode(c, s);
        if (c < 0xd800 || c > 0xdfff)
            valid[s[0] << 16 | s[1] << 8 | s[2]] = 1;
    }
    for (uint32_t i = 0x800000; i < 1 << 24; i++) {     /* a first byte that is not ASCII */
        const uint8_t s[3] = { (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i };
        size_t n = tn_utf8_valid(s, 3);
        bool two = s[0] >= 0xc2 && s[0] <= 0xdf && (s[1] & 0xc0) == 0x80;
        CHECK(n == (valid[i] ? 3 : !two ? 0 : s[2] < 0x80 ? 3 : 2));
    }
}

static void overlong_forms_and_cut_sequences_are_not_valid(void)
{
    static const char *const wrong[] = { "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
                                         "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf8\x88\x80\x80\x80",
                                         "\xfe", "\xff", "\x80", "\xbf" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(tn_utf8_valid(wrong[i], strlen(wrong[i])) == 0);
    for (size_t n = 1; n < 4; n++) {
        uint8_t *cut = exact_copy("\xf0\x9f\x99\x82", n);
        CHECK(tn_utf8_valid(cut, n) == 0);
        free(cut);
    }
}

/* Long text goes another way: the first bad byte is found wherever it is. */
static void a_bad_byte_is_found_at_every_place(void)
{
    for (size_t n = 0; n < 130; n++) {
        uint8_t *s = malloc(n ? n : 1);     /* exactly: the end is guarded */
        assert_non_null(s);
        memset(s, 'a', n);
        CHECK(tn_utf8_valid(s, n) == n);
        for (size_t at = 0; at < n; at++) {
            s[at] = 0x80;
            CHECK(tn_utf8_valid(s, n) == at);
            s[at] = 0xc3;       /* followed by 'a', or cut off */
            CHECK(tn_utf8_valid(s, n) == at);
            if (at + 1 < n) {
                s[at + 1] = 0xa4;
                CHECK(tn_utf8_valid(s, n) == n);
                s[at + 1] = 'a';
            }
            s[at] = 'a';
        }
        free(s);
    }
}

static void texts_are_compared_whole(void)
{
    CHECK(tn_text_is((tn_text){ "raw", 3 }, "raw") && !tn_text_is((tn_text){ "raw", 2 }, "raw"));
    CHECK(!tn_text_is((tn_text){ "rawx", 4 }, "raw") && !tn_text_is((tn_text){ NULL, 0 }, "raw"));
    CHECK(tn_text_has_nul((tn_text){ "a\0b", 3 }) && !tn_text_has_nul((tn_text){ "ab", 2 }));
    CHECK(!tn_text_has_nul((tn_text){ NULL, 0 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_code_point_but_surrogates_is_valid),
        TEST(no_other_short_string_is_valid),
        TEST(overlong_forms_and_cut_sequences_are_not_valid),
        TEST(a_bad_byte_is_found_at_every_place),
        TEST(texts_are_compared_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
