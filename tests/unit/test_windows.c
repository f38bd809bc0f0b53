/* Windows of zstd data: what a frame needs is known beforehand, and one budget serves all threads. */
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <zstd.h>

#include <tenon/tenon.h>

#include "base/pool.h"
#include "base/vector.h"
#include "bytes/windows.h"
#include "bytes/zstd_frame.h"
#include "zt_bytes.h"

#define MIB ((uint64_t)1 << 20)

enum { BLOCK = 128 << 10 };

/* ---- frames ---- */

/* Compresses n bytes of noise, as one call or as a stream that does not know how much will come. */
static void put_compressed(tn_buf *out, size_t n, int window_log, bool known)
{
    uint8_t *data = malloc(n ? n : 1);
    size_t cap = ZSTD_compressBound(n), at = out->size;
    ZSTD_CCtx *c = ZSTD_createCCtx();
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(i * i >> 7);
    tn_buf_fill(out, 0, cap);
    CHECK(!out->bad && !ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log)));
    CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, window_log & 1)));
    ZSTD_outBuffer to = { out->data + at, cap, 0 };
    ZSTD_inBuffer from = { data, n, 0 };
    if (!known)                 /* had it all come with the end, the size would be known */
        CHECK(!ZSTD_isError(ZSTD_compressStream2(c, &to, &from, ZSTD_e_continue)));
    CHECK(ZSTD_compressStream2(c, &to, &from, ZSTD_e_end) == 0);
    out->size = at + to.pos;
    ZSTD_freeCCtx(c);
    free(data);
}

static void a_header_says_the_window_and_the_size(void)
{
    for (int log = 10; log <= 24; log++) {
        tn_buf frame = { 0 };
        tn_zstd_frame f;
        put_compressed(&frame, 300000, log, false);
        CHECK(tn_zstd_frame_read(frame.data, frame.size, &f) == TN_ZSTD_IS_FRAME);
        CHECK(f.window == UINT64_C(1) << log && f.content == TN_ZSTD_CONTENT_UNKNOWN);
        CHECK(!f.skippable && f.checksum == (log & 1));
        tn_buf_free(&frame);
    }
    static const size_t sizes[] = { 0, 1, 255, 256, 257, 65535, 65791, 65792, 300000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn_buf frame = { 0 };
        tn_zstd_frame f;
        put_compressed(&frame, sizes[i], 20, true);
        for (size_t n = 0; n < frame.size; n++) {       /* each truncation of the header is seen */
            uint8_t *cut = exact_copy(frame.data, n);
            tn_zstd_look look = tn_zstd_frame_read(cut, n, &f);
            CHECK(look == TN_ZSTD_NEEDS_MORE ||
                  (look == TN_ZSTD_IS_FRAME && f.content == sizes[i] && f.header <= n));
            CHECK(look == TN_ZSTD_IS_FRAME || n < TN_ZSTD_HEADER_MAX);
            free(cut);
        }
        CHECK(tn_zstd_frame_read(frame.data, frame.size, &f) == TN_ZSTD_IS_FRAME);
        CHECK(f.content == sizes[i] && f.window >= f.content);
        tn_buf_free(&frame);
    }
}

static void what_is_no_frame_is_none(void)
{
    static const uint8_t old[] = { 0x27, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0 };
    static const uint8_t odd[] = { 0x29, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0 },
    later[] = { 0x28, 0xb5, 0x2f, 0xfd, 8, 80, 0, 0 };
    static const uint8_t skipped[] = { 0x5f, 0x2a, 0x4d, 0x18, 7, 1, 0, 0 },
    most[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 255 };
    tn_zstd_frame f;
    /* of version 0.7: libzstd may know it */
    CHECK(tn_zstd_frame_read(old, sizeof old, &f) == TN_ZSTD_NO_FRAME);
    CHECK(tn_zstd_frame_read(odd, sizeof odd, &f) == TN_ZSTD_NO_FRAME);
    /* a bit that has no meaning yet */
    CHECK(tn_zstd_frame_read(later, sizeof later, &f) == TN_ZSTD_NO_FRAME);
    CHECK(tn_zstd_frame_read(skipped, sizeof skipped, &f) == TN_ZSTD_IS_FRAME);
    CHECK(f.skippable && f.content == 263 && f.header == 8);
    CHECK(tn_zstd_frame_read(most, sizeof most, &f) == TN_ZSTD_IS_FRAME && f.window == (UINT64_C(15) << 38));
}

static uint64_t largest_of(const tn_buf *data, uint64_t content)
{
    tn_source *source;
    uint64_t window = 1;
    CHECK(tn_source_open_memory(data->data, data->size, &source, NULL) == TN_OK);
    CHECK(tn_zstd_largest_window(source, 0, data->size, content, &window, NULL) == TN_OK);
    tn_source_close(source);
    return window;
}

static void the_largest_window_of_all_frames_is_found(void)
{
    static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c' };
    tn_buf data = { 0 };
    put_compressed(&data, 300000, 20, false);
    CHECK(largest_of(&data, 300000) == MIB);
    tn_buf_put(&data, skippable, sizeof skippable);
    put_compressed(&data, 500000, 23, false);
    put_compressed(&data, 100000, 18, true);
    CHECK(largest_of(&data, 900000) == 8 * MIB);
    for (size_t n = 0; n < data.size; n += n < 40 ? 1 : 1009) {         /* damage is the decoder's to judge */
        tn_buf cut = { .data = exact_copy(data.data, n), .size = n };
        CHECK(largest_of(&cut, 900000) <= 8 * MIB);
        free(cut.data);
    }
    tn_buf_free(&data);
}

/* ---- the budget ---- */

enum { ITEMS = 400 };

typedef struct trial {
    uint64_t      budget;
    atomic_ullong taken;
    atomic_bool   exceeded;
    uint64_t      fail_work, cancel;        /* the item that does, or ITEMS */
} trial;

static tn_status use_window(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    trial *t = context;
    uint64_t bytes = 1 + item * 2654435761u % t->budget;
    (void)use;
    tn_status status = tn_windows_take(bytes, err);
    if (status)
        return status;
    if (atomic_fetch_add(&t->taken, bytes) + bytes > t->budget)
        atomic_store(&t->exceeded, true);
    for (uint64_t i = 0; i < item % 5; i++)
        sched_yield();
    atomic_fetch_sub(&t->taken, bytes);
    tn_windows_give(bytes);
    return item == t->fail_work ? tn_fail_at(err, TN_ERR_CORRUPT, item, "this one is bad") : TN_OK;
}

static tn_status stop_at(void *context, uint64_t item, unsigned result, tn_error *err)
{
    const trial *t = context;
    (void)result;
    return item == t->cancel ? tn_fail(err, TN_ERR_CANCELLED, "cancelled") : TN_OK;
}

static void threads_wait_for_windows_and_all_get_them(void)
{
    static const unsigned jobs[] = { 1, 2, 8, 16 };
    for (size_t i = 0; i < 12; i++) {
        trial t = { .budget = 1000, .fail_work = i % 3 == 1 ? 57 : ITEMS, .cancel = i % 3 == 2 ? 91 : ITEMS };
        tn_status expected = i % 3 == 1 ? TN_ERR_CORRUPT : i % 3 == 2 ? TN_ERR_CANCELLED : TN_OK;
        tn_set_window_memory(t.budget);
        CHECK(tn_pool_once(jobs[i / 3], ITEMS, &(tn_ordered){ use_window, stop_at, &t }, NULL) == expected);
        CHECK(!atomic_load(&t.exceeded) && tn_windows_taken() == 0);
    }
    tn_set_window_memory(0);
}

typedef struct waiter {
    pthread_t thread;
    uint64_t  bytes;
    tn_status status;
} waiter;

static void *wait_for_window(void *argument)
{
    waiter *w = argument;
    w->status = tn_windows_take(w->bytes, NULL);
    return NULL;
}

static void a_budget_that_changes_reaches_those_who_wait(void)
{
    tn_error err;
    waiter two[] = { { .bytes = 60 }, { .bytes = 30 } };
    CHECK(tn_window_memory() == 256 * MIB);
    tn_set_window_memory(100);
    CHECK(tn_windows_take(101, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err),
                        "zstd data needs a window of 101 bytes, more than the 100 allowed (windows)");
    CHECK(tn_windows_take(80, &err) == TN_OK);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&two[i].thread, NULL, wait_for_window, &two[i]) == 0);
    tn_set_window_memory(50);   /* less than is taken, and than one of them will ever get */
    tn_windows_give(80);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(two[i].thread, NULL) == 0);
    CHECK(two[0].status == TN_ERR_LIMIT && two[1].status == TN_OK && tn_windows_taken() == 30);
    tn_windows_give(30);
    tn_set_window_memory(0);
    CHECK(tn_window_memory() == 256 * MIB);
}

/* ---- files ---- */

enum { TENSORS = 12 };

/* `size` zeros, a multiple of BLOCK, in a frame with a window of 2^window_log that does not say how many. */
static void put_frame(tn_buf *out, size_t size, unsigned window_log)
{
    const uint8_t header[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, (uint8_t)((window_log - 10) << 3) };
    tn_buf_put(out, header, sizeof header);
    for (size_t n = size / BLOCK; n-- > 0;) {
        const uint32_t block = BLOCK << 3 | 1 << 1 | !n;        /* one byte, so many times */
        const uint8_t bytes[] = { (uint8_t)block, (uint8_t)(block >> 8), (uint8_t)(block >> 16), 0 };
        tn_buf_put(out, bytes, sizeof bytes);
    }
}

/* Tensors of `size` zeros, all of the same window; `cut` ends early, `second` has a frame more with another
 * window. */
static zt_bytes make_file(size_t size, unsigned window_log, size_t cut, size_t second)
{
    zt_bytes z = zt_begin(0);
    uint64_t offsets[TENSORS + 1], ends[TENSORS];
    for (size_t i = 0; i < TENSORS; i++) {
        tn_buf_fill(&z.file, 0, (size_t)(-z.file.size % 64));
        offsets[i] = z.file.size;
        put_frame(&z.file, i == second ? size / 2 : size, window_log);
        if (i == second)
            put_frame(&z.file, size / 2, window_log + 2);
        ends[i] = z.file.size - (i == cut ? 9 : 0);
    }
    z.index_at = z.file.size;
    tn_cbor_put_array(&z.file, TENSORS);
    for (size_t i = 0; i < TENSORS; i++) {
        const char name[] = { (char)('a' + i), '\0' };
        tn_cbor_put_map(&z.file, ZT_FIELDS);
        zt_field_put(&z, 0, name, 0, 0);
        zt_field_put(&z, 1, name, offsets[i], 0);
        zt_uint_field(&z, "size", ends[i] - offsets[i]);
        zt_field_put(&z, 3, name, 0, 0);
        zt_field_put(&z, 4, name, 0, size);
        zt_text_field(&z, "encoding", "zstd");
    }
    zt_end(&z);
    return z;
}

static tn_file *open_bytes(const zt_bytes *z)
{
    tn_file *f;
    tn_error err;
    if (tn_open_memory(z->file.data, z->file.size, NULL, &f, &err))
        fail_msg("%s", line_of(&err));
    return f;
}

static void count_bad(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                      const tn_error *why)
{
    (void)tensor;
    (void)part;
    (void)why;
    *(int *)context += verdict == TN_VERDICT_BAD;
}

static int count_bad_parts(const tn_file *f, unsigned jobs)
{
    int bad = 0;
    tn_error err;
    const tn_verify_options options = { .size = sizeof options, .jobs = jobs, .context = &bad };
    if (tn_verify(f, &options, count_bad, &err))
        fail_msg("%s", line_of(&err));
    CHECK(tn_windows_taken() == 0);
    return bad;
}

static void ignore_difference(void *context, const tn_difference *difference)
{
    (void)context;
    (void)difference;
}

static int stop_soon(void *context, uint64_t done, uint64_t total)
{
    (void)total;
    return context && done > 3 * MIB;
}

static tn_status compare(const tn_file *f, unsigned jobs, bool stop, tn_error *err)
{
    const tn_compare_options options = { .size = sizeof options, .jobs = jobs, .progress = stop_soon,
                                         .context = stop ? &stop : NULL };
    size_t different = 0;
    tn_status status = tn_compare(f, f, &options, ignore_difference, &different, err);
    CHECK(tn_windows_taken() == 0);
    return status;
}

/* Room for two and a half windows: pairs wait for pairs. */
static void files_are_read_within_the_budget(void)
{
    zt_bytes good = make_file(2 * MIB, 20, TENSORS, TENSORS), bad = make_file(2 * MIB, 20, 5, TENSORS);
    tn_file *f = open_bytes(&good), *g = open_bytes(&bad);
    tn_error err;
    tn_set_window_memory(5 * MIB / 2);
    for (unsigned jobs = 1; jobs <= 8; jobs += 7) {
        CHECK(count_bad_parts(f, jobs) == 0);
        CHECK(count_bad_parts(g, jobs) == 1);
        CHECK(compare(f, jobs, false, &err) == TN_OK);
        CHECK(compare(f, jobs, true, &err) == TN_ERR_CANCELLED);
        CHECK(compare(g, jobs, false, &err) == TN_ERR_CORRUPT);
    }
    tn_set_window_memory(3 * MIB / 2);
    CHECK(count_bad_parts(f, 8) == 0);
    CHECK(compare(f, 8, false, &err) == TN_ERR_LIMIT);
    CHECK(strstr(line_of(&err), "a window of 2097152 bytes, more than the 1572864"));
    tn_set_window_memory(MIB / 2);
    CHECK(count_bad_parts(f, 8) == TENSORS);
    tn_set_window_memory(0);
    tn_close(f);
    tn_close(g);
    tn_buf_free(&good.file);
    tn_buf_free(&bad.file);
}

/* The window of a later frame counts, although the first one's is what is met first. */
static void a_later_frame_with_a_larger_window_is_counted(void)
{
    zt_bytes z = make_file(8 * MIB, 20, TENSORS, 4);
    tn_file *f = open_bytes(&z);
    tn_set_window_memory(4 * MIB);
    CHECK(count_bad_parts(f, 2) == 0);
    tn_set_window_memory(4 * MIB - 1);
    CHECK(count_bad_parts(f, 2) == 1);
    tn_set_window_memory(0);
    tn_close(f);
    tn_buf_free(&z.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_header_says_the_window_and_the_size),
        TEST(what_is_no_frame_is_none),
        TEST(the_largest_window_of_all_frames_is_found),
        TEST(threads_wait_for_windows_and_all_get_them),
        TEST(a_budget_that_changes_reaches_those_who_wait),
        TEST(files_are_read_within_the_budget),
        TEST(a_later_frame_with_a_larger_window_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
