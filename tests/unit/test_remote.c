/* Replies, URLs, signatures and blocks: all of URLs that needs no server. */
#include "support.h"

#include "bytes/remote/blocks.h"
#include "bytes/remote/credentials.h"
#include "bytes/remote/exchange.h"
#include "bytes/remote/hub.h"
#include "bytes/remote/retry.h"
#include "bytes/remote/sigv4.h"
#include "bytes/remote/url.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define KIB ((uint64_t)1 << 10)

/* ---- replies ---- */

static tn_reply reply_of(const char *text)
{
    tn_reply r = { 0 };
    for (const char *end; *text; text = end + 1) {
        end = strchr(text, '\n');
        char *line = malloc((size_t)(end - text) + 1);      /* exactly the line, for the sanitizer */
        memcpy(line, text, (size_t)(end - text) + 1);
        tn_reply_line(&r, line, (size_t)(end - text) + 1);
        free(line);
    }
    return r;
}

static void headers_are_read_in_any_case(void)
{
    tn_reply r = reply_of("HTTP/1.1 206 Partial Content\r\ncontent-RANGE: bytes 5-9/100\r\nETag:  \"a\" \r\n"
                          "Last-Modified: Mon\r\nContent-Length: 5\r\nRetry-After: 7\r\n"
                          "x-amz-bucket-region: eu-1\r\n\r\n");
    CHECK(r.status == 206 && r.has_range && r.has_total && r.first == 5 && r.last == 9 && r.total == 100);
    CHECK(r.has_length && r.length == 5 && r.has_wait && r.wait == 7);
    CHECK(strcmp(r.etag, "\"a\"") == 0 && strcmp(r.modified, "Mon") == 0 && strcmp(r.region, "eu-1") == 0);
    CHECK(tn_reply_is_strong(&r));
}

static void the_last_status_line_begins_anew(void)
{
    CHECK(reply_of("HTTP/1.1 206 X\nHTTP/nonsense\n").status == 0);
    tn_reply r = reply_of("HTTP/1.1 100 Continue\r\nETag: \"old\"\r\n\r\nHTTP/2 200 \r\n");
    CHECK(r.status == 200 && !r.etag[0] && !tn_reply_is_strong(&r));
}

static void ranges_that_contradict_themselves_are_none(void)
{
    static const char *const bad[] = {
        "bytes 9-5/100", "bytes 0-100/100", "bytes 0-9", "bytes -9/100", "items 0-9/100", "bytes 0-9/x",
        "bytes 0-9/99999999999999999999", "bytes 0-18446744073709551615/18446744073709551615", "bytes 0-9/100x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];
        snprintf(text, sizeof text, "HTTP/1.1 206 OK\nContent-Range: %s\n", bad[i]);
        tn_reply r = reply_of(text);
        CHECK(!r.has_range && !r.has_total);
    }
    tn_reply r = reply_of("HTTP/1.1 416 no\nContent-Range: bytes */0\n");
    CHECK(!r.has_range && r.has_total && r.total == 0);
    r = reply_of("HTTP/1.1 206 OK\nContent-Range: bytes 0-9/*\n");
    CHECK(r.has_range && !r.has_total);
}

static void texts_that_do_not_fit_or_print_are_dropped(void)
{
    char text[600];
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\nETag: \"%0400d\"\n", 1);
    CHECK(!reply_of(text).etag[0]);
    CHECK(!reply_of("HTTP/1.1 200 OK\nETag: \"\x1b[31m\"\n").etag[0]);
    CHECK(!reply_of("HTTP/1.1 99999 OK\n").status && !reply_of("HTTP/1.1\n").status);
    CHECK(reply_of("HTTP/1.1 200 OK\nContent-Encoding: gzip\n").is_encoded);
    CHECK(!reply_of("HTTP/1.1 200 OK\nContent-Encoding: identity\n").is_encoded);
}

static bool xml_is(const char *xml, const char *tag, const char *text)
{
    char found[20];
    size_t n = strlen(xml);
    char *copy = malloc(n + 1);
    memcpy(copy, xml, n);
    bool there = tn_xml_text((tn_text){ copy, n }, tag, found, sizeof found);
    free(copy);
    return text ? there && strcmp(found, text) == 0 : !there;
}

static void elements_are_found_in_xml_and_not_beyond_it(void)
{
    CHECK(xml_is("<Error><Code>NoSuchKey</Code></Error>", "Code", "NoSuchKey"));
    CHECK(xml_is("<a><Codes>x</Codes><Code>a&amp;&lt;b&quot;</Code></a>", "Code", "a&<b\""));
    CHECK(xml_is("<Code>a&unknown;</Code>", "Code", "a&unknown;"));
    static const char whole[] = "<Code>A</Code>";
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        char cut[sizeof whole];
        memcpy(cut, whole, n);
        cut[n] = '\0';
        CHECK(xml_is(cut, "Code", NULL));
    }
    CHECK(xml_is("<Code>a text that is longer than its room</Code>", "Code", NULL));
    CHECK(xml_is("", "Code", NULL) && xml_is("<", "Code", NULL) && xml_is("<<<<", "Code", NULL));
    tn_text xml = { "<k>1</k><k>2</k>", 16 }, value;
    CHECK(tn_xml_next(&xml, "k", &value) && tn_text_is(value, "1"));
    CHECK(tn_xml_next(&xml, "k", &value) && tn_text_is(value, "2"));
    CHECK(!tn_xml_next(&xml, "k", &value));
}

/* ---- tries ---- */

static void only_what_may_pass_is_tried_again(void)
{
    static const int yes[] = { 408, 429, 500, 502, 503, 504 }, no[] = { 200, 206, 301, 400, 403, 404, 412, 501 };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        CHECK(tn_retry_helps_status(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        CHECK(!tn_retry_helps_status(no[i]));
    CHECK(tn_retry_helps_transfer(18) && tn_retry_helps_transfer(56) && tn_retry_helps_transfer(28));
    CHECK(!tn_retry_helps_transfer(60) && !tn_retry_helps_transfer(3));     /* certificate, malformed URL */
}

static void waits_grow_and_obey_the_server(void)
{
    tn_reply none = { 0 }, asks = { .has_wait = true, .wait = 3 }, forever = { .has_wait = true, .wait = 9999 };
    CHECK(tn_retry_delay(1, UINT32_MAX, &none) < 200 && tn_retry_delay(1, 0, &none) == 0);
    CHECK(tn_retry_delay(3, UINT32_MAX, &none) >= 790 && tn_retry_delay(3, UINT32_MAX, &none) < 800);
    CHECK(tn_retry_delay(60, UINT32_MAX, &none) < 20000);
    CHECK(tn_retry_delay(1, 0, &asks) == 3000);
    CHECK(tn_retry_delay(1, 0, &forever) == 9999000);       /* longer than anybody waits: the request fails */
}

/* ---- URLs ---- */

static void urls_have_parts(void)
{
    tn_url u;
    CHECK(tn_url_parse("https://h:8/a/b?c=d#e", &u, NULL) == TN_OK);
    CHECK(tn_text_is(u.scheme, "https") && tn_text_is(u.host, "h:8") && tn_text_is(u.path, "/a/b"));
    CHECK(tn_text_is(u.query, "c=d"));
    static const char *const bad[] = { "x", "http://", "http:///a", "http://u:p@h/", "http://h/a b", "http://h/\x80",
                                       "http://h/\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(tn_url_parse(bad[i], &u, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_url_same_origin("http://a/x", "http://a/y?z") && !tn_url_same_origin("http://a/", "http://a:8/"));
    CHECK(!tn_url_same_origin("http://a/", "https://a/") && !tn_url_same_origin("http://a/", "http://a.b/"));
}

static void queries_are_not_shown(void)
{
    CHECK(tn_url_shown("https://h/a?secret") == strlen("https://h/a"));
    CHECK(tn_url_shown("https://me:word@h/a") == strlen("https://") && tn_url_shown("http://h/a@b") == 12);
    CHECK(tn_url_shown("http://h/a#x") == strlen("http://h/a") && tn_url_shown("a?b") == 3);
    CHECK(tn_url_is_folder("http://h/a/") && !tn_url_is_folder("http://h/a") && !tn_url_is_folder("http://"));
    CHECK(tn_url_is_folder("hf://a/b") && tn_url_is_folder("hf://a/b@c") && !tn_url_is_folder("hf://a/b/c"));
    CHECK(!tn_url_is_folder("hf://a") && tn_url_is_folder("hf://a/b/"));
}

static bool hub_is(const char *name, const char *url)
{
    tn_buf b = { 0 };
    tn_status status = tn_hub_url(name, "https://hub/", &b, NULL);
    bool same = url ? !status && strcmp((char *)b.data, url) == 0 : status == TN_ERR_ARGUMENT;
    tn_buf_free(&b);
    return same;
}

static void names_of_the_hub_become_urls(void)
{
    CHECK(hub_is("hf://o/r/a/b c", "https://hub/o/r/resolve/main/a/b%20c"));
    CHECK(hub_is("hf://o/r@v1.0/a", "https://hub/o/r/resolve/v1.0/a"));
    CHECK(hub_is("hf://o/r@refs%2Fpr%2F1/a", "https://hub/o/r/resolve/refs%2Fpr%2F1/a"));
    CHECK(hub_is("hf://o/r", NULL) && hub_is("hf://o", NULL) && hub_is("hf:///r/a", NULL) && hub_is("hf://o/r@/a", NULL));
}

/* ---- signatures ---- */

/* The example in the documentation of S3: GET of an object, with a range. */
static void signatures_are_those_of_the_documentation(void)
{
    static const char nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const tn_signed_header headers[] = {
        { "host", "examplebucket.s3.amazonaws.com" }, { "range", "bytes=0-9" },
        { "x-amz-content-sha256", nothing }, { "x-amz-date", "20130524T000000Z" },
    };
    const tn_to_sign s = { .method = "GET", .path = "/test.txt", .query = "", .headers = headers, .nheaders = 4,
                           .payload = nothing, .when = "20130524T000000Z", .region = "us-east-1", .service = "s3",
                           .id = "AKIAIOSFODNN7EXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" };
    tn_buf b = { 0 };
    char hex[TN_HEX_SHA256], when[17];
    CHECK(tn_sha256_hex("", 0, hex, NULL) == TN_OK && strcmp(hex, nothing) == 0);
    CHECK(tn_sigv4_put(&s, &b, NULL) == TN_OK);
    tn_buf_putc(&b, '\0');
    CHECK(strstr((char *)b.data, "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
    CHECK(strstr((char *)b.data, "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date"));
    tn_buf_free(&b);
    tn_sigv4_when(1369353600, when);
    CHECK(strcmp(when, "20130524T000000Z") == 0);
}

/* ---- credentials ---- */

static void sections_of_profiles_are_found(void)
{
    static const char text[] = "a = 0\n[one]\na=1\n # a = 9\n[ profile two ]\r\n a = 2 \r\n;a=3\nb==\n";
    const tn_text file = { text, sizeof text - 1 };
    char v[4];
    CHECK(tn_ini_find(file, "one", "a", v, sizeof v) && strcmp(v, "1") == 0);
    CHECK(tn_ini_find(file, "profile two", "a", v, sizeof v) && strcmp(v, "2") == 0);
    CHECK(tn_ini_find(file, "profile two", "b", v, sizeof v) && strcmp(v, "=") == 0);
    CHECK(!tn_ini_find(file, "two", "a", v, sizeof v) && !tn_ini_find(file, "one", "b", v, sizeof v));
    CHECK(!tn_ini_find((tn_text){ "[x]\na=long value", 17 }, "x", "a", v, sizeof v));
    for (size_t n = 0; n < sizeof text; n++)
        (void)tn_ini_find((tn_text){ text, n }, "profile two", "a", v, sizeof v);
}

static void sections_are_found_without_a_key(void)
{
    static const char file[] = "[a]\nkey = 1\n[profile b]\n";
    const tn_text text = { file, sizeof file - 1 };
    CHECK(tn_ini_find(text, "a", NULL, NULL, 0) && tn_ini_find(text, "profile b", NULL, NULL, 0));
    CHECK(!tn_ini_find(text, "b", NULL, NULL, 0) && !tn_ini_find((tn_text){ "", 0 }, "a", NULL, NULL, 0));
}

static void credentials_are_complete_or_refused(void)
{
    static const char good[] = "{\"Version\":1,\"AccessKeyId\":\"I\",\"SecretAccessKey\":\"S\",\"Token\":\"T\","
                               "\"Expiration\":\"2024-01-02T03:04:05Z\"}";
    tn_credentials c;
    CHECK(tn_credentials_read((tn_text){ good, sizeof good - 1 }, &c, NULL) == TN_OK);
    CHECK(strcmp(c.id, "I") == 0 && strcmp(c.secret, "S") == 0 && strcmp(c.token, "T") == 0);
    CHECK(c.expires == 1704164645);
    for (size_t n = 0; n < sizeof good - 1; n++)
        CHECK(tn_credentials_read((tn_text){ good, n }, &c, NULL) == TN_ERR_CORRUPT);
    CHECK(tn_credentials_read((tn_text){ "{\"AccessKeyId\":\"I\"}", 19 }, &c, NULL) == TN_ERR_CORRUPT);
    CHECK(tn_credentials_read((tn_text){ "{\"AccessKeyId\":\"a\\nb\",\"SecretAccessKey\":\"S\"}", 44 }, &c, NULL) ==
          TN_ERR_CORRUPT);
}

/* ---- blocks ---- */

static struct { uint64_t begin, end; } asked[64];
static size_t nasked;

static bool note_start(tn_remote_block *b)
{
    asked[nasked].begin = b->begin;
    asked[nasked++].end = b->end;
    b->bytes = malloc(b->end - b->begin);      /* never touched: no memory */
    return true;
}

static void forget_nothing(tn_remote_block *b) { (void)b; }

static tn_remote_blocks new_blocks(uint64_t size)
{
    nasked = 0;
    return (tn_remote_blocks){ .size = size, .start = note_start, .forget = forget_nothing };
}

static bool was_asked(size_t i, uint64_t begin, uint64_t end)
{
    return i < nasked && asked[i].begin == begin && asked[i].end == end;
}

/* Reads as a source does, but everything comes at once. */
static void read_range(tn_remote_blocks *s, uint64_t offset, uint64_t n)
{
    while (n) {
        tn_remote_block *b = tn_blocks_want(s, offset, n);
        assert_non_null(b);
        if (b->state == TN_BLOCK_LOADING)
            tn_block_loaded(b, true);
        CHECK(b->state == TN_BLOCK_READY && b->begin <= offset && offset < b->end);
        uint64_t piece = b->end - offset < n ? b->end - offset : n;
        tn_block_used(b, piece);
        offset += piece;
        n -= piece;
    }
}

static void load_all(tn_remote_blocks *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i]->state == TN_BLOCK_LOADING)
            tn_block_loaded(s->list[i], true);
}

static void unexpected_reads_begin_small_and_grow(void)
{
    tn_remote_blocks s = new_blocks(100 * MIB);
    for (uint64_t at = 0; at < 448 * KIB; at += 32 * KIB)
        read_range(&s, at, 32 * KIB);
    CHECK(nasked == 3 && was_asked(0, 0, 64 * KIB) && was_asked(1, 64 * KIB, 192 * KIB));
    CHECK(was_asked(2, 192 * KIB, 448 * KIB));
    read_range(&s, 1000, 10);                                   /* it is still there */
    read_range(&s, 100 * MIB - 8, 8);                           /* the end: with what is before it */
    CHECK(nasked == 4 && was_asked(3, 100 * MIB - 64 * KIB, 100 * MIB));
    read_range(&s, 50 * MIB, 1 * MIB);
    CHECK(nasked == 5 && was_asked(4, 50 * MIB, 51 * MIB));
    tn_blocks_free(&s);
}

static void announced_ranges_are_merged_and_cut(void)
{
    tn_remote_blocks s = new_blocks(100 * MIB);
    const tn_range ranges[] = { { 0, 100 }, { 200 * KIB, 100 }, { 1 * MIB, 20 * MIB }, { 90 * MIB, 10 } };
    CHECK(tn_blocks_expect(&s, ranges, 4));
    CHECK(nasked == 5 && was_asked(0, 0, 200 * KIB + 100) && was_asked(1, 1 * MIB, 9 * MIB));
    CHECK(was_asked(2, 9 * MIB, 17 * MIB) && was_asked(3, 17 * MIB, 21 * MIB));
    CHECK(was_asked(4, 90 * MIB, 90 * MIB + 10));
    load_all(&s);
    read_range(&s, 1 * MIB, 20 * MIB);
    CHECK(nasked == 5 && s.count == 2);                         /* what was read is given back */
    read_range(&s, 0, 100);
    read_range(&s, 200 * KIB, 100);
    read_range(&s, 90 * MIB, 10);
    CHECK(nasked == 5 && s.count == 0);
    tn_blocks_free(&s);
    tn_blocks_drop_room();
}

static void fetching_ahead_is_bounded(void)
{
    tn_remote_blocks s = new_blocks(1000 * MIB);
    const tn_range all = { 0, 1000 * MIB };
    CHECK(tn_blocks_expect(&s, &all, 1));
    CHECK(nasked == 8);                                         /* so many at once */
    load_all(&s);
    CHECK(nasked == 12);                                        /* so many in memory */
    load_all(&s);
    CHECK(nasked == 12);
    read_range(&s, 0, 8 * MIB);
    CHECK(nasked == 13 && was_asked(12, 96 * MIB, 104 * MIB));
    load_all(&s);
    tn_blocks_free(&s);
    tn_blocks_drop_room();
}

static void small_ranges_are_fetched_many_at_a_time(void)
{
    tn_remote_blocks s = new_blocks(1000 * MIB);
    tn_range heads[40];
    for (size_t i = 0; i < 40; i++)
        heads[i] = (tn_range){ i * MIB, 500 };
    CHECK(tn_blocks_expect(&s, heads, 40));
    CHECK(nasked == 32);
    load_all(&s);
    CHECK(nasked == 40);
    load_all(&s);
    tn_blocks_free(&s);
}

static void what_was_announced_twice_is_not_given_back_early(void)
{
    tn_remote_blocks s = new_blocks(10 * MIB);
    const tn_range heads[] = { { 0, 100 }, { 100 * KIB, 100 } }, data = { 0, 200 * KIB };
    CHECK(tn_blocks_expect(&s, heads, 2));
    load_all(&s);
    CHECK(tn_blocks_expect(&s, &data, 1));
    load_all(&s);
    read_range(&s, 0, 100);
    read_range(&s, 100 * KIB, 100);
    read_range(&s, 0, 200 * KIB);
    CHECK(nasked == 2);
    tn_blocks_free(&s);
}

static void room_of_large_blocks_is_used_again(void)
{
    tn_remote_blocks s = new_blocks(100 * MIB);
    const tn_range range = { 0, 8 * MIB };
    CHECK(tn_blocks_expect(&s, &range, 1));
    load_all(&s);
    uint8_t *bytes = s.list[0]->bytes;
    read_range(&s, 0, 8 * MIB);
    uint8_t *room = tn_block_room(8 * MIB);
    CHECK(s.count == 0 && room == bytes);
    free(room);
    tn_blocks_free(&s);
    tn_blocks_drop_room();
}

static void blocks_that_failed_are_asked_for_again(void)
{
    tn_remote_blocks s = new_blocks(10 * MIB);
    tn_remote_block *b = tn_blocks_want(&s, 0, 10);
    tn_block_loaded(b, false);
    CHECK(b->state == TN_BLOCK_FAILED);
    tn_block_used(b, 0);
    CHECK(s.count == 0);
    read_range(&s, 0, 10);
    CHECK(nasked == 2);
    tn_blocks_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(headers_are_read_in_any_case),
        TEST(the_last_status_line_begins_anew),
        TEST(ranges_that_contradict_themselves_are_none),
        TEST(texts_that_do_not_fit_or_print_are_dropped),
        TEST(elements_are_found_in_xml_and_not_beyond_it),
        TEST(only_what_may_pass_is_tried_again),
        TEST(waits_grow_and_obey_the_server),
        TEST(urls_have_parts),
        TEST(queries_are_not_shown),
        TEST(names_of_the_hub_become_urls),
        TEST(signatures_are_those_of_the_documentation),
        TEST(sections_of_profiles_are_found),
        TEST(sections_are_found_without_a_key),
        TEST(credentials_are_complete_or_refused),
        TEST(unexpected_reads_begin_small_and_grow),
        TEST(announced_ranges_are_merged_and_cut),
        TEST(fetching_ahead_is_bounded),
        TEST(small_ranges_are_fetched_many_at_a_time),
        TEST(what_was_announced_twice_is_not_given_back_early),
        TEST(room_of_large_blocks_is_used_again),
        TEST(blocks_that_failed_are_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
