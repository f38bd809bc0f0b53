/* Checksums against published vectors, and their texts. */
#include "support.h"

#include "bytes/checksum.h"

#include <stdbool.h>
#include <zlib.h>

static const char sha_abc[] = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char sha_empty[] = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static uint32_t state = 1;

static uint32_t next_random(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static uint8_t *random_bytes(size_t n)
{
    uint8_t *data = malloc(n ? n : 1);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)next_random();
    return data;
}

/* The definition, a bit at a time. */
static uint32_t slow_crc32c(const uint8_t *data, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void crc32c_gives_the_published_values(void)
{
    uint8_t block[32];
    CHECK(tn_crc32c(0, "", 0) == 0);
    CHECK(tn_crc32c(0, "123456789", 9) == 0xe3069283);
    memset(block, 0, sizeof block);
    CHECK(tn_crc32c(0, block, sizeof block) == 0x8a9136aa);     /* RFC 3720, B.4 */
    memset(block, 0xff, sizeof block);
    CHECK(tn_crc32c(0, block, sizeof block) == 0x62a8ab43);
    for (uint8_t i = 0; i < sizeof block; i++)
        block[i] = i;
    CHECK(tn_crc32c(0, block, sizeof block) == 0x46dd794e);
}

static void crc32_agrees_with_zlib_whole_and_joined(void)
{
    uint8_t *data = random_bytes(600);
    CHECK(tn_crc32(0, "123456789", 9) == 0xcbf43926 && tn_crc32(0, NULL, 0) == 0);
    for (size_t n = 0; n <= 600; n++) {
        uint8_t *copy = exact_copy(data, n);
        uint32_t expected = (uint32_t)crc32(0, copy, (unsigned)n), half = tn_crc32(0, copy, n / 2);
        CHECK(tn_crc32(0, copy, n) == expected && tn_crc32(half, copy + n / 2, n - n / 2) == expected);
        tn_digest a = { .kind = TN_CHECKSUM_CRC32, .crc = half },
        b = { .crc = tn_crc32(0, copy + n / 2, n - n / 2) };
        tn_digest_join(&a, &b, n - n / 2);
        CHECK(a.crc == expected && tn_crc32_join(half, b.crc, n - n / 2) == expected);
        free(copy);
    }
    free(data);
}

static void crc32c_agrees_with_the_definition_at_every_small_length(void)
{
    uint8_t *data = random_bytes(600);
    for (size_t n = 0; n <= 600; n++) {
        uint8_t *copy = exact_copy(data, n);
        CHECK(tn_crc32c(0, copy, n) == slow_crc32c(copy, n));
        free(copy);
    }
    free(data);
}

static void crc32c_of_pieces_is_that_of_the_whole(void)
{
    uint8_t *data = random_bytes(5000);
    uint32_t whole = tn_crc32c(0, data, 5000);
    for (int i = 0; i < 300; i++) {
        size_t cut = next_random() % 5001;
        uint32_t a = tn_crc32c(0, data, cut), b = tn_crc32c(0, data + cut, 5000 - cut);
        CHECK(tn_crc32c(a, data + cut, 5000 - cut) == whole);
        CHECK(tn_crc32c_join(a, b, 5000 - cut) == whole);
    }
    free(data);
}

/* 2^62 zero bytes after A, doubled from one: no file is that large, the arithmetic must be. */
static void joining_works_for_sizes_beyond_32_bits(void)
{
    uint32_t a = tn_crc32c(0, "tenon", 5), zeroes = tn_crc32c(0, "", 1);
    CHECK(tn_crc32c_join(a, tn_crc32c(0, "", 0), 0) == a);
    uint64_t n = 1;
    for (int i = 0; i < 62; i++, n *= 2) {
        uint32_t one_step = tn_crc32c_join(a, tn_crc32c_join(zeroes, zeroes, n), 2 * n);
        uint32_t two_steps = tn_crc32c_join(tn_crc32c_join(a, zeroes, n), zeroes, n);
        CHECK(one_step == two_steps);
        if (n == 1024) {
            uint8_t block[1024 + 5] = "tenon";
            CHECK(tn_crc32c_join(a, zeroes, n) == tn_crc32c(0, block, sizeof block));
        }
        zeroes = tn_crc32c_join(zeroes, zeroes, n);
    }
}

static void check_hash(tn_checksum kind, const void *data, size_t n, const char *expected)
{
    tn_hash h;
    tn_digest d;
    tn_error err;
    char text[TN_CHECKSUM_TEXT_MAX];
    for (size_t cut = 0; cut <= n; cut++) {
        CHECK(tn_hash_begin(&h, kind, &err) == TN_OK);
        tn_hash_update(&h, data, cut);
        tn_hash_update(&h, (const uint8_t *)data + cut, n - cut);
        CHECK(tn_hash_end(&h, &d, &err) == TN_OK);
        tn_digest_format(&d, text);
        assert_string_equal(text, expected);
    }
}

static void running_hashes_give_the_published_values(void)
{
    check_hash(TN_CHECKSUM_SHA256, "abc", 3, sha_abc);
    check_hash(TN_CHECKSUM_SHA256, "", 0, sha_empty);
    check_hash(TN_CHECKSUM_CRC32C, "123456789", 9, "crc32c:0xE3069283");
    check_hash(TN_CHECKSUM_CRC32C, "", 0, "crc32c:0x00000000");
    check_hash(TN_CHECKSUM_NONE, "abc", 3, "");
}

static void a_running_crc_takes_pieces_hashed_elsewhere(void)
{
    uint32_t crc = tn_crc32c(0, "1234", 4);
    crc = tn_crc32c_join(crc, tn_crc32c(0, "567", 3), 3);
    CHECK(tn_crc32c(crc, "89", 2) == 0xe3069283);
}

static void a_hash_can_be_given_up_and_an_unknown_one_not_begun(void)
{
    tn_hash h;
    tn_error err;
    CHECK(tn_hash_begin(&h, TN_CHECKSUM_SHA256, &err) == TN_OK);
    tn_hash_update(&h, "abc", 3);
    tn_hash_free(&h);
    CHECK(tn_hash_begin(&h, TN_CHECKSUM_UNKNOWN, &err) == TN_ERR_UNSUPPORTED);
    CHECK(strlen(err.text) > 0);
}

static void the_kind_is_told_by_the_prefix_alone(void)
{
    CHECK(tn_checksum_kind("crc32c:0xE3069283") == TN_CHECKSUM_CRC32C);
    CHECK(tn_checksum_kind("crc32c:0xoops") == TN_CHECKSUM_CRC32C);
    CHECK(tn_checksum_kind("sha256:") == TN_CHECKSUM_SHA256);
    CHECK(tn_checksum_kind("crc32c:E3069283") == TN_CHECKSUM_UNKNOWN);
    CHECK(tn_checksum_kind("crc32c:0XE3069283") == TN_CHECKSUM_UNKNOWN);
    CHECK(tn_checksum_kind("CRC32C:0xE3069283") == TN_CHECKSUM_UNKNOWN);
    CHECK(tn_checksum_kind("crc32c:0") == TN_CHECKSUM_UNKNOWN);
    CHECK(tn_checksum_kind("xxh3:0011") == TN_CHECKSUM_UNKNOWN);
    CHECK(tn_checksum_kind("") == TN_CHECKSUM_UNKNOWN);
}

static void crc32c_text_has_one_to_eight_digits_of_any_case(void)
{
    static const struct { const char *text; uint32_t crc; } good[] = {
        { "crc32c:0x0", 0 }, { "crc32c:0xE3069283", 0xe3069283 }, { "crc32c:0xe3069283", 0xe3069283 },
        { "crc32c:0xaBc", 0xabc }, { "crc32c:0x0000001", 1 }, { "crc32c:0xFFFFFFFF", UINT32_MAX },
    };
    static const char *const bad[] = {
        "crc32c:0x",   "crc32c:0xE30692830", "crc32c:0x000000001", "crc32c:0xE306928G", "crc32c:0x 1",
        "crc32c:0x1 ", "crc32c:0x-1",        "crc32c:0x\xc3\xa9",  "crc32c:0x0x1",      "crc32c:0x@",
        "crc32c:0x`",  "crc32c:0x/",         "crc32c:0x:",
    };
    tn_digest d;
    tn_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(tn_digest_parse(good[i].text, &d, &err) == TN_OK);
        CHECK(d.kind == TN_CHECKSUM_CRC32C && d.crc == good[i].crc);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(tn_digest_parse(bad[i], &d, &err) == TN_ERR_CORRUPT);
        CHECK(err.status == TN_ERR_CORRUPT && strstr(line_of(&err), "1 to 8") != NULL);
        CHECK(tn_digest_parse(bad[i], &d, NULL) == TN_ERR_CORRUPT);
    }
}

static void sha256_text_has_exactly_64_digits(void)
{
    char text[TN_CHECKSUM_TEXT_MAX];
    tn_digest d;
    tn_error err;
    for (size_t n = 0; n < sizeof sha_abc - 1; n++) {
        char *cut = (char *)exact_copy(sha_abc, n + 1);
        cut[n] = '\0';
        CHECK(tn_digest_parse(cut, &d, &err) == TN_ERR_CORRUPT);
        free(cut);
    }
    strcpy(text, sha_abc);
    strcat(text, "0");
    CHECK(tn_digest_parse(text, &d, &err) == TN_ERR_CORRUPT);
    for (size_t i = strlen("sha256:"); i < sizeof sha_abc - 1; i++) {
        strcpy(text, sha_abc);
        text[i] = 'g';
        CHECK(tn_digest_parse(text, &d, &err) == TN_ERR_CORRUPT);
        CHECK(strstr(line_of(&err), "64 hexadecimal digits") != NULL);
    }
}

static void what_is_formatted_parses_to_the_same(void)
{
    char text[TN_CHECKSUM_TEXT_MAX], upper[TN_CHECKSUM_TEXT_MAX];
    for (int i = 0; i < 200; i++) {
        tn_digest a = { .kind = TN_CHECKSUM_SHA256 }, b;
        for (size_t k = 0; k < sizeof a.sha256; k++)
            a.sha256[k] = (uint8_t)next_random();
        if (i % 2)
            a = (tn_digest){ .kind = TN_CHECKSUM_CRC32C, .crc = next_random() << 8 | 7 };
        tn_digest_format(&a, text);
        CHECK(tn_digest_parse(text, &b, NULL) == TN_OK);
        CHECK(tn_digest_equal(&a, &b));
        strcpy(upper, text);
        for (char *p = strchr(upper, ':'); *p; p++)
            *p = *p >= 'a' && *p <= 'f' ? (char)(*p - 'a' + 'A') : *p;
        CHECK(tn_digest_parse(upper, &b, NULL) == TN_OK);
        CHECK(tn_digest_equal(&a, &b));
    }
}

static void digests_differ_by_kind_and_by_any_byte(void)
{
    tn_digest a = { .kind = TN_CHECKSUM_SHA256 }, b = a;
    CHECK(tn_digest_equal(&a, &b));
    b.kind = TN_CHECKSUM_CRC32C;
    CHECK(!tn_digest_equal(&a, &b));
    for (size_t i = 0; i < sizeof a.sha256; i++) {
        b = a;
        b.sha256[i] = 1;
        CHECK(!tn_digest_equal(&a, &b));
    }
    a = (tn_digest){ .kind = TN_CHECKSUM_CRC32C, .crc = 1 };
    b = (tn_digest){ .kind = TN_CHECKSUM_CRC32C, .crc = 2 };
    CHECK(!tn_digest_equal(&a, &b));
}

static void a_text_of_no_known_kind_does_not_parse(void)
{
    tn_digest d;
    tn_error err;
    CHECK(tn_digest_parse("md5:\x1b[31m", &d, &err) == TN_ERR_CORRUPT);
    CHECK(strstr(line_of(&err), "\"md5:\\x1b[31m\"") != NULL);     /* escaped */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(crc32c_gives_the_published_values),
        TEST(crc32_agrees_with_zlib_whole_and_joined),
        TEST(crc32c_agrees_with_the_definition_at_every_small_length),
        TEST(crc32c_of_pieces_is_that_of_the_whole),
        TEST(joining_works_for_sizes_beyond_32_bits),
        TEST(running_hashes_give_the_published_values),
        TEST(a_running_crc_takes_pieces_hashed_elsewhere),
        TEST(a_hash_can_be_given_up_and_an_unknown_one_not_begun),
        TEST(the_kind_is_told_by_the_prefix_alone),
        TEST(crc32c_text_has_one_to_eight_digits_of_any_case),
        TEST(sha256_text_has_exactly_64_digits),
        TEST(what_is_formatted_parses_to_the_same),
        TEST(digests_differ_by_kind_and_by_any_byte),
        TEST(a_text_of_no_known_kind_does_not_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
