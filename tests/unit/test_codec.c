/* zstd, whole and in pieces: round trips, same bytes every time, hostile frames. */
#include "support.h"

#include "base/vector.h"
#include "bytes/codec.h"

#include <zstd.h>

#define WINDOW ((uint64_t)128 << 20)
#define LARGE ((size_t)20 << 20)

static uint8_t *large;          /* LARGE bytes that compress to about half */
static tn_codec_state z;

static int set_up(void **unused)
{
    (void)unused;
    uint32_t state = 1;
    large = malloc(LARGE);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++) {
        state = state * 1664525u + 1013904223u;
        large[i] = i / 32 % 2 && i >= 997 ? large[i - 997] : (uint8_t)(state >> 24 & 63);
    }
    return tn_codec_use(&z, &tn_codec_zstd, NULL) == TN_OK ? 0 : -1;
}

static int tear_down(void **unused)
{
    (void)unused;
    tn_codec_free(&z);
    tn_codec_free(&z);          /* it is empty by now */
    free(large);
    return 0;
}

static tn_status keep(void *context, const void *data, size_t n, tn_error *err)
{
    (void)err;
    tn_buf_put(context, data, n);
    return TN_OK;
}

static tn_status refuse(void *context, const void *data, size_t n, tn_error *err)
{
    (void)data, (void)n;
    ++*(int *)context;
    return tn_fail(err, TN_ERR_IO, "the disk is full");
}

/* Compresses n bytes of `large`; *size is not written on failure. */
static tn_status encode(int level, size_t n, uint8_t *out, size_t cap, size_t *size, tn_error *err)
{
    tn_coding c = { large, n, out, cap };
    tn_status status = z.codec->encode(z.state, level, &c, err);
    if (!status)
        *size = cap - c.nout;
    return status;
}

static bool at_end(void)
{
    return z.codec->decode_at_end(z.state);
}

static tn_buf whole(size_t n, int level)
{
    tn_error err;
    tn_buf out = { 0 };
    tn_buf_fill(&out, 0, z.codec->bound(n));
    CHECK(!out.bad);
    CHECK(encode(level, n, out.data, out.size, &out.size, &err) == TN_OK);
    return out;
}

static tn_buf stream(size_t n, int level, unsigned jobs, size_t piece)
{
    tn_error err;
    tn_buf out = { 0 };
    CHECK(z.codec->stream_begin(z.state, level, n, jobs, &err) == TN_OK);
    for (size_t at = 0; at < n; at += piece)
        CHECK(z.codec->stream_write(z.state, large + at, n - at < piece ? n - at : piece, keep, &out, &err) ==
              TN_OK);
    CHECK(z.codec->stream_end(z.state, keep, &out, &err) == TN_OK);
    CHECK(!out.bad);
    return out;
}

static void check_same(const tn_buf *a, const tn_buf *b)
{
    CHECK(a->size == b->size);
    CHECK(memcmp(a->data, b->data, a->size) == 0);
}

/* Decodes in pieces of in_piece and out_piece into `out`; stops at the first failure or when nothing
 * moves. */
static tn_status decode(const uint8_t *src, size_t n, size_t in_piece, size_t out_piece, tn_buf *out,
                        tn_error *err)
{
    uint8_t *room = malloc(out_piece);
    assert_non_null(room);
    tn_status status = z.codec->decode_begin(z.state, WINDOW, err);
    for (size_t at = 0, used = 1, made = 0; !status && (at < n || made == out_piece) && used + made;
         at += used) {
        size_t piece = n - at < in_piece ? n - at : in_piece;
        tn_coding c = { src + at, piece, room, out_piece };
        status = z.codec->decode(z.state, &c, err);
        used = piece - c.nin;
        made = out_piece - c.nout;
        if (!status)
            tn_buf_put(out, room, made);
        else
            used = made = 0;
    }
    free(room);
    return status;
}

static void check_decodes(const tn_buf *frame, size_t n, size_t in_piece, size_t out_piece)
{
    tn_error err;
    tn_buf back = { 0 };
    CHECK(decode(frame->data, frame->size, in_piece, out_piece, &back, &err) == TN_OK);
    CHECK(at_end());
    CHECK(back.size == n && !back.bad);
    CHECK(n == 0 || memcmp(back.data, large, n) == 0);
    tn_buf_free(&back);
}

static void whole_pieces_come_back(void)
{
    static const size_t sizes[] = { 0, 1, 2, 1000, 131072, TN_ENCODE_WHOLE_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn_buf frame = whole(sizes[i], 3);
        CHECK(ZSTD_getFrameContentSize(frame.data, frame.size) == sizes[i]);
        check_decodes(&frame, sizes[i], frame.size, (size_t)1 << 20);
        check_decodes(&frame, sizes[i], 70001, 4099);
        tn_buf_free(&frame);
    }
}

static void streams_come_back(void)
{
    static const size_t sizes[] = { 0, 1, TN_ENCODE_WHOLE_MAX, TN_ENCODE_WHOLE_MAX + 1, LARGE };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn_buf frame = stream(sizes[i], 3, 2, (size_t)1 << 20);
        CHECK(ZSTD_getFrameContentSize(frame.data, frame.size) == sizes[i]);
        CHECK(ZSTD_findFrameCompressedSize(frame.data, frame.size) == frame.size);
        CHECK(sizes[i] < 2 || frame.size < sizes[i] * 3 / 4);
        check_decodes(&frame, sizes[i], (size_t)1 << 20, (size_t)1 << 20);
        tn_buf_free(&frame);
    }
}

static void small_frames_decode_byte_by_byte(void)
{
    tn_buf frame = whole(3000, 3);
    for (size_t in = 1; in <= 3; in++)
        for (size_t out = 1; out <= 3; out++)
            check_decodes(&frame, 3000, in, out);
    tn_buf_free(&frame);
}

static void a_stream_gives_the_same_bytes_with_any_number_of_jobs(void)
{
    static const unsigned jobs[] = { 0, 2, 5, 1000000 };
    for (int level = 1; level <= 3; level += 2) {
        tn_buf one = stream(LARGE, level, 1, (size_t)1 << 20);
        for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
            if (jobs[i] > 5 && level > 1)
                continue;       /* a crowd of threads once is enough */
            tn_buf many = stream(LARGE, level, jobs[i], (size_t)1 << 20);
            check_same(&one, &many);
            tn_buf_free(&many);
        }
        tn_buf_free(&one);
    }
}

static void a_stream_gives_the_same_bytes_however_it_is_cut(void)
{
    static const size_t pieces[] = { LARGE, 100003, (size_t)4 << 20, ((size_t)4 << 20) + 1 };
    static const size_t sizes[] = { (size_t)12 << 20, TN_ENCODE_WHOLE_MAX + 1 };   /* whole jobs, and not */
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        tn_buf first = stream(sizes[s], 1, 2, (size_t)1 << 20);
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            tn_buf other = stream(sizes[s], 1, 1, pieces[i]);
            check_same(&first, &other);
            tn_buf_free(&other);
        }
        tn_buf_free(&first);
    }
}

static void what_a_state_did_before_leaves_no_trace(void)
{
    tn_buf first = whole(300000, 3), streamed = stream(TN_ENCODE_WHOLE_MAX + 1, 3, 2, (size_t)1 << 20);
    tn_codec_state used = z;
    z = (tn_codec_state){ 0 };
    CHECK(tn_codec_use(&z, &tn_codec_zstd, NULL) == TN_OK);
    for (int level = -5; level <= 9; level += 7) {
        tn_buf other = whole(100000, level), other_stream = stream((size_t)1 << 20, level, 3, 5000);
        tn_buf_free(&other);
        tn_buf_free(&other_stream);
        CHECK(z.codec->stream_begin(z.state, 1, 1000, 1, NULL) == TN_OK);      /* left unfinished */
        tn_buf again = whole(300000, 3);
        check_same(&first, &again);
        tn_buf_free(&again);
    }
    tn_buf again = stream(TN_ENCODE_WHOLE_MAX + 1, 3, 1, (size_t)1 << 20);
    check_same(&streamed, &again);
    tn_buf_free(&again);
    tn_codec_free(&z);
    z = used;
    tn_buf_free(&first);
    tn_buf_free(&streamed);
}

static void the_level_matters_and_has_bounds(void)
{
    tn_buf fast = whole(1000000, -50), good = whole(1000000, 12);
    CHECK(good.size < fast.size);
    check_decodes(&fast, 1000000, 100000, 100000);
    check_decodes(&good, 1000000, 100000, 100000);
    tn_buf_free(&fast);
    tn_buf_free(&good);
    CHECK(z.codec->level_min() < 0 && z.codec->level_max() == 22);
}

static void too_little_room_is_an_argument_error(void)
{
    uint8_t room[10];
    size_t size = 77;
    tn_error err;
    CHECK(encode(3, 1000, room, sizeof room, &size, &err) == TN_ERR_ARGUMENT);
    CHECK(size == 77 && strlen(err.text) > 0);
}

static void a_stream_has_exactly_the_size_announced(void)
{
    tn_buf out = { 0 };
    tn_error err;
    CHECK(z.codec->stream_begin(z.state, 3, 100, 1, &err) == TN_OK);
    CHECK(z.codec->stream_write(z.state, large, 60, keep, &out, &err) == TN_OK);
    CHECK(z.codec->stream_write(z.state, large, 41, keep, &out, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "expected 40 more bytes, found 41") != NULL);
    CHECK(z.codec->stream_end(z.state, keep, &out, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "expected 40 more bytes, found the end") != NULL);
    tn_buf_free(&out);
}

static void a_failing_emit_stops_the_stream(void)
{
    int calls = 0;
    tn_error err;
    CHECK(z.codec->stream_begin(z.state, 3, LARGE, 2, &err) == TN_OK);
    tn_status status = z.codec->stream_write(z.state, large, LARGE, refuse, &calls, &err);
    if (status == TN_OK)
        status = z.codec->stream_end(z.state, refuse, &calls, &err);
    CHECK(status == TN_ERR_IO && calls == 1);
    assert_string_equal(said_of(&err), "the disk is full");
    tn_buf frame = whole(1000, 3);      /* the state is still good */
    check_decodes(&frame, 1000, 1000, 1000);
    tn_buf_free(&frame);
}

static void every_truncation_is_seen(void)
{
    tn_buf frame = whole(2000, 3);
    for (size_t n = 0; n < frame.size; n++) {
        uint8_t *cut = exact_copy(frame.data, n);
        tn_buf back = { 0 };
        tn_error err;
        CHECK(decode(cut, n, 64, 100, &back, &err) == TN_OK);
        CHECK(!at_end());
        CHECK(back.size <= 2000);
        tn_buf_free(&back);
        free(cut);
    }
    tn_buf_free(&frame);
}

/* A frame has no checksum of its own: a flipped byte may give other data, but never harm. */
static void flipped_bytes_do_no_harm(void)
{
    tn_buf frame = whole(2000, 3);
    size_t refused = 0;
    for (size_t i = 0; i < frame.size; i++)
        for (int bit = 0; bit < 8; bit++) {
            uint8_t *bad = exact_copy(frame.data, frame.size);
            tn_buf back = { 0 };
            tn_error err = { .status = TN_OK };
            bad[i] ^= (uint8_t)(1 << bit);
            tn_status status = decode(bad, frame.size, frame.size, 4096, &back, &err);
            CHECK(status == TN_OK || status == TN_ERR_CORRUPT || status == TN_ERR_LIMIT);
            CHECK(status == err.status && (status == TN_OK || strlen(err.text) > 0));
            CHECK(i >= 4 || status != TN_OK || !at_end());     /* the magic number */
            refused += status != TN_OK;
            tn_buf_free(&back);
            free(bad);
        }
    CHECK(refused > 100);
    tn_buf_free(&frame);
}

static void frames_without_a_content_size_decode(void)
{
    tn_buf frame = { 0 };
    tn_buf_fill(&frame, 0, ZSTD_compressBound(300000));
    ZSTD_CCtx *c = ZSTD_createCCtx();
    CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0)));
    CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1)));
    frame.size = ZSTD_compress2(c, frame.data, frame.size, large, 300000);
    ZSTD_freeCCtx(c);
    CHECK(!ZSTD_isError(frame.size));
    CHECK(ZSTD_getFrameContentSize(frame.data, frame.size) == ZSTD_CONTENTSIZE_UNKNOWN);
    check_decodes(&frame, 300000, 1000, 7777);
    check_decodes(&frame, 300000, frame.size, 300000);

    tn_buf back = { 0 };        /* zstd's own checksum is checked where there is one */
    tn_error err;
    frame.data[frame.size - 1] ^= 1;
    CHECK(decode(frame.data, frame.size, 1000, 7777, &back, &err) == TN_ERR_CORRUPT);
    tn_buf_free(&back);
    tn_buf_free(&frame);
}

static void frames_in_a_row_are_one_content(void)
{
    tn_buf frame = whole(100000, 3), row = { 0 }, back = { 0 };
    static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c' };
    tn_error err;
    tn_buf_put(&row, frame.data, frame.size);
    tn_buf_put(&row, skippable, sizeof skippable);
    tn_buf_put(&row, frame.data, frame.size);
    for (size_t in = 1000; in <= 1000000; in *= 10) {
        back.size = 0;
        CHECK(decode(row.data, row.size, in, 3000, &back, &err) == TN_OK);
        CHECK(at_end());
        CHECK(back.size == 200000);
        CHECK(memcmp(back.data, large, 100000) == 0 && memcmp(back.data + 100000, large, 100000) == 0);
    }
    for (size_t n = frame.size; n < row.size; n += n < frame.size + 20 ? 1 : 997) {
        back.size = 0;
        CHECK(decode(row.data, n, 1000, 3000, &back, &err) == TN_OK);
        CHECK(at_end() == (n == frame.size || n == frame.size + sizeof skippable));
    }
    tn_buf_put(&row, "rubbish", 7);
    back.size = 0;
    CHECK(decode(row.data, row.size, 1000, 3000, &back, &err) == TN_ERR_CORRUPT);
    tn_buf_free(&back);
    tn_buf_free(&row);
    tn_buf_free(&frame);
}

/* As a reader does it that knows how much must come: room for that and no more. */
static void a_frame_ends_although_there_is_no_room_left(void)
{
    tn_buf frame = whole(50000, 3);
    uint8_t *room = malloc(50000);
    tn_error err;
    assert_non_null(room);
    CHECK(z.codec->decode_begin(z.state, WINDOW, &err) == TN_OK);
    tn_coding c = { frame.data, frame.size, room, 50000 };
    CHECK(z.codec->decode(z.state, &c, &err) == TN_OK);
    CHECK(c.nin == 0 && c.nout == 0 && at_end());
    /* asking again changes nothing */
    c = (tn_coding){ NULL, 0, NULL, 0 };
    CHECK(z.codec->decode(z.state, &c, &err) == TN_OK);
    CHECK(c.nin == 0 && c.nout == 0 && at_end());

    /* one byte too few: not at the end, and no failure yet */
    CHECK(z.codec->decode_begin(z.state, WINDOW, &err) == TN_OK);
    CHECK(!at_end());
    c = (tn_coding){ frame.data, frame.size, room, 49999 };
    CHECK(z.codec->decode(z.state, &c, &err) == TN_OK);
    CHECK(c.nout == 0 && !at_end());
    free(room);
    tn_buf_free(&frame);
}

static void a_huge_window_is_refused(void)
{
    /* Magic number, no content size, window descriptor: 2^(10 + 18) = 256 MiB, then 128 MiB. */
    static const uint8_t huge[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, 1, 0, 0 };
    static const uint8_t most[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 1, 0, 0 };
    tn_buf back = { 0 };
    tn_error err;
    CHECK(decode(huge, sizeof huge, 100, 100, &back, &err) == TN_ERR_LIMIT);
    CHECK(strstr(line_of(&err), "a window of 268435456 bytes, more than the 134217728") != NULL);
    CHECK(decode(most, sizeof most, 100, 100, &back, &err) == TN_OK);
    CHECK(at_end() && back.size == 0);
    tn_buf_free(&back);
}

static void encodings_have_names_and_those_that_can_be_written_are_found(void)
{
    assert_string_equal(tn_encoding_name(TN_ENCODING_RAW), "raw");
    assert_string_equal(tn_encoding_name(TN_ENCODING_ZSTD), "zstd");
    assert_string_equal(tn_encoding_name(TN_ENCODING_DEFLATE), "deflate");
    CHECK(!tn_encoding_name(TN_ENCODING_UNKNOWN));
    CHECK(tn_encoding_parse("raw") == TN_ENCODING_RAW && tn_encoding_parse("zstd") == TN_ENCODING_ZSTD);
    CHECK(tn_encoding_parse("deflate") == TN_ENCODING_DEFLATE);
    CHECK(tn_encoding_parse("") == TN_ENCODING_UNKNOWN && tn_encoding_parse("zst") == TN_ENCODING_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(encodings_have_names_and_those_that_can_be_written_are_found),
        TEST(whole_pieces_come_back),
        TEST(streams_come_back),
        TEST(small_frames_decode_byte_by_byte),
        TEST(a_stream_gives_the_same_bytes_with_any_number_of_jobs),
        TEST(a_stream_gives_the_same_bytes_however_it_is_cut),
        TEST(what_a_state_did_before_leaves_no_trace),
        TEST(the_level_matters_and_has_bounds),
        TEST(too_little_room_is_an_argument_error),
        TEST(a_stream_has_exactly_the_size_announced),
        TEST(a_failing_emit_stops_the_stream),
        TEST(every_truncation_is_seen),
        TEST(flipped_bytes_do_no_harm),
        TEST(frames_without_a_content_size_decode),
        TEST(frames_in_a_row_are_one_content),
        TEST(a_frame_ends_although_there_is_no_room_left),
        TEST(a_huge_window_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
