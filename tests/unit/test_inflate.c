/* Deflate data in pieces of any size, damaged, cut off and followed by more; and how it is made. */
#include "support.h"

#include "base/vector.h"
#include "bytes/codec.h"

#include <zlib.h>

enum { PLAIN = 3000 };

typedef struct sample {
    uint8_t plain[PLAIN], packed[PLAIN + 100];
    size_t  n;
} sample;

static const sample *a_sample(void)
{
    static sample s;
    if (s.n)
        return &s;
    for (size_t i = 0; i < PLAIN; i++)
        s.plain[i] = (uint8_t)(i * i / 97);
    z_stream z = { .next_in = s.plain, .avail_in = PLAIN, .next_out = s.packed,
                   .avail_out = sizeof s.packed };
    CHECK(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK &&
          deflate(&z, Z_FINISH) == Z_STREAM_END);
    CHECK(deflateEnd(&z) == Z_OK);
    s.n = sizeof s.packed - z.avail_out;
    return &s;
}

static bool at_end(const tn_codec_state *z)
{
    return z->codec->decode_at_end(z->state);
}

/* Decodes n bytes, giving `in` and taking `out` of them at a time; *made bytes in all. */
static tn_status decode(const tn_codec_state *z, const uint8_t *packed, size_t n, size_t in, size_t out,
                        uint8_t *plain, size_t *made, tn_error *err)
{
    CHECK(z->codec->decode_begin(z->state, 0, err) == TN_OK);
    *made = 0;
    for (size_t at = 0;;) {
        size_t give = n - at < in ? n - at : in, take = PLAIN - *made < out ? PLAIN - *made : out;
        uint8_t *piece = exact_copy(packed + at, give), *room = malloc(take + 1);
        tn_coding c = { piece, give, room, take };
        tn_status status = z->codec->decode(z->state, &c, err);
        size_t used = give - c.nin, got = take - c.nout;
        CHECK(c.in == piece + used && c.out == room + got);
        CHECK(status || (used <= give && got <= take));
        if (!status)
            memcpy(plain + *made, room, got);
        free(piece);
        free(room);
        at += status ? 0 : used;
        *made += status ? 0 : got;
        if (status || (!used && !got))
            return status;
    }
}

static void pieces_of_any_size_make_the_same(void)
{
    static const size_t sizes[] = { 1, 2, 7, 100, 5000 };
    const sample *s = a_sample();
    tn_codec_state z = { 0 };
    CHECK(tn_codec_use(&z, &tn_codec_deflate, NULL) == TN_OK);
    for (size_t i = 0; i < 25; i++) {
        uint8_t plain[PLAIN];
        size_t made;
        CHECK(decode(&z, s->packed, s->n, sizes[i % 5], sizes[i / 5], plain, &made, NULL) == TN_OK);
        CHECK(made == PLAIN && at_end(&z) && memcmp(plain, s->plain, PLAIN) == 0);
    }
    tn_codec_free(&z);
}

static void what_is_cut_off_is_not_at_its_end(void)
{
    const sample *s = a_sample();
    tn_codec_state z = { 0 };
    CHECK(tn_codec_use(&z, &tn_codec_deflate, NULL) == TN_OK);
    for (size_t n = 0; n < s->n; n++) {
        uint8_t plain[PLAIN];
        size_t made;
        CHECK(decode(&z, s->packed, n, 64, PLAIN, plain, &made, NULL) == TN_OK);
        CHECK(!at_end(&z) && memcmp(plain, s->plain, made) == 0);
    }
    tn_codec_free(&z);
}

static void bytes_behind_the_end_are_refused(void)
{
    const sample *s = a_sample();
    uint8_t more[sizeof s->packed + 1], plain[PLAIN];
    size_t made;
    tn_error err = { .text = "" };
    tn_codec_state z = { 0 };
    memcpy(more, s->packed, s->n);
    more[s->n] = 0;
    CHECK(tn_codec_use(&z, &tn_codec_deflate, NULL) == TN_OK);
    CHECK(decode(&z, more, s->n + 1, 5000, PLAIN, plain, &made, &err) == TN_ERR_CORRUPT &&
          strstr(line_of(&err), "found more"));
    tn_codec_free(&z);
}

static void damage_is_survived_and_mostly_seen(void)
{
    const sample *s = a_sample();
    uint8_t bad[sizeof s->packed], plain[PLAIN];
    size_t made, seen = 0;
    tn_codec_state z = { 0 };
    CHECK(tn_codec_use(&z, &tn_codec_deflate, NULL) == TN_OK);
    for (size_t i = 0; i < s->n * 8; i++) {
        tn_error err = { .text = "" };
        memcpy(bad, s->packed, s->n);
        bad[i / 8] ^= (uint8_t)(1u << i % 8);
        tn_status status = decode(&z, bad, s->n, 100, 1000, plain, &made, &err);
        CHECK(status == TN_OK || (status == TN_ERR_CORRUPT && err.text[0]));
        seen += status != TN_OK || made != PLAIN || memcmp(plain, s->plain, PLAIN) != 0;
    }
    CHECK(seen > s->n);
    tn_codec_free(&z);
}

/* ---- encoding ---- */

static tn_status keep(void *context, const void *data, size_t n, tn_error *err)
{
    (void)err;
    tn_buf_put(context, data, n);
    return TN_OK;
}

static tn_status refuse(void *context, const void *data, size_t n, tn_error *err)
{
    (void)context, (void)data, (void)n;
    return tn_fail(err, TN_ERR_IO, "the disk is full");
}

static tn_buf stream(const tn_codec_state *z, const uint8_t *data, size_t n, int level, size_t piece)
{
    tn_buf out = { 0 };
    CHECK(z->codec->stream_begin(z->state, level, n, 7, NULL) == TN_OK);
    for (size_t at = 0; at < n; at += piece)
        CHECK(z->codec->stream_write(z->state, data + at, n - at < piece ? n - at : piece, keep, &out,
                                     NULL) == TN_OK);
    CHECK(z->codec->stream_end(z->state, keep, &out, NULL) == TN_OK && !out.bad);
    return out;
}

static void data_that_is_encoded_in_any_pieces_is_the_same_and_comes_back(void)
{
    enum { LARGE = 1 << 20 };
    static uint8_t data[LARGE], back[LARGE + 1];
    tn_codec_state z = { 0 };
    CHECK(tn_codec_use(&z, &tn_codec_deflate, NULL) == TN_OK);
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 20 & (i >> 12));
    for (int level = z.codec->level_min(); level <= z.codec->level_max(); level++)
        for (size_t n = 0; n <= LARGE; n = n * 31 + 1) {
            size_t cap = z.codec->bound(n);
            uint8_t *out = malloc(cap);
            tn_coding c = { data, n, out, cap };
            CHECK(out && z.codec->encode(z.state, level, &c, NULL) == TN_OK && c.nin == 0);
            for (size_t piece = 777; piece <= LARGE; piece *= 10) {
                tn_buf same = stream(&z, data, n, level, piece);
                CHECK(same.size == cap - c.nout && memcmp(same.data, out, same.size) == 0);
                tn_buf_free(&same);
            }
            tn_coding d = { out, cap - c.nout, back, sizeof back };
            CHECK(z.codec->decode_begin(z.state, 0, NULL) == TN_OK && z.codec->decode(z.state, &d, NULL) == TN_OK);
            CHECK(at_end(&z) && !d.nin && sizeof back - d.nout == n && memcmp(back, data, n) == 0);
            free(out);
        }
    tn_codec_free(&z);
}

static void encoding_says_what_is_missing(void)
{
    const sample *s = a_sample();
    tn_codec_state z = { 0 };
    tn_error err = { .text = "" };
    uint8_t little[10];
    tn_coding c = { s->plain, PLAIN, little, sizeof little };
    tn_buf out = { 0 };
    CHECK(tn_codec_use(&z, &tn_codec_deflate, NULL) == TN_OK);
    CHECK(z.codec->encode(z.state, 6, &c, &err) == TN_ERR_ARGUMENT && strstr(err.text, "more room"));
    CHECK(z.codec->stream_begin(z.state, 6, 10, 1, NULL) == TN_OK);
    CHECK(z.codec->stream_write(z.state, s->plain, 11, keep, &out, &err) == TN_ERR_ARGUMENT);
    CHECK(z.codec->stream_write(z.state, s->plain, 9, keep, &out, &err) == TN_OK);
    CHECK(z.codec->stream_end(z.state, keep, &out, &err) == TN_ERR_ARGUMENT && strstr(err.text, "1 more bytes"));
    CHECK(z.codec->stream_write(z.state, s->plain, 1, keep, &out, &err) == TN_OK);
    CHECK(z.codec->stream_end(z.state, refuse, NULL, &err) == TN_ERR_IO);
    tn_buf_free(&out);
    tn_codec_free(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pieces_of_any_size_make_the_same),
        TEST(what_is_cut_off_is_not_at_its_end),
        TEST(bytes_behind_the_end_are_refused),
        TEST(damage_is_survived_and_mostly_seen),
        TEST(data_that_is_encoded_in_any_pieces_is_the_same_and_comes_back),
        TEST(encoding_says_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
