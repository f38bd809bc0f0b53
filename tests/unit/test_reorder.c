/* test_reorder.c - tn_reorder() by index arithmetic, and every bad argument. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>

#include <tenon/layout.h>

#include "side.h"
#include "tensor/array.h"

enum { CASES = 1500 };

/* --- one side of a random case -------------------------------------------- */

static int64_t element_of(const side *s, const int64_t *index)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < s->rank; i++)
        at += index[i] * s->stride[i];
    return at;
}

/* --- the definition --------------------------------------------------------- */

static bool advance(const side *s, int64_t *index)
{
    for (uint32_t i = s->rank; i-- > 0; index[i] = 0)
        if (++index[i] < s->shape[i])
            return true;
    return false;
}

static void expect(const side *dst, uint8_t *out, const side *src, const uint32_t *order, const uint8_t *fill)
{
    int64_t index[MAX_DIMS] = { 0 };
    for (uint32_t i = 0; i < dst->rank; i++)
        if (dst->shape[i] == 0)
            return;
    do {
        int64_t from[MAX_DIMS] = { 0 };
        bool inside = true;
        for (uint32_t i = 0; i < dst->rank; i++) {
            from[order[i]] = index[i];
            inside &= index[i] < src->shape[order[i]];
        }
        int64_t to = dst->first * 8 + element_of(dst, index) * dst->bits;
        if (inside)
            copy_bits(out, to, src->buffer, src->first * 8 + element_of(src, from) * src->bits, dst->bits);
        else
            copy_bits(out, to, fill, 0, dst->bits);
    } while (advance(dst, index));
}

/* --- random cases ------------------------------------------------------------ */

static const unsigned ranks[] = { 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6 };

/* Extents that reach whole tiles of the kernels where there are few dimensions. */
static int64_t extent_for(uint32_t rank)
{
    static const uint64_t most[] = { 1, 3000, 150, 40, 14, 7, 5 };
    if (rank == 4 && below(4) == 0)
        return below(40) == 0 ? 40 : (int64_t)below(3) + 1;
    return below(60) == 0 ? 0 : 1 + (int64_t)below(below(3) ? most[rank] : 5);
}

static void make_case(side *dst, side *src, uint32_t *order)
{
    src->dtype = dst->dtype = (tn_dtype)(1 + below(TN_DTYPE_COUNT - 1));
    src->bits = dst->bits = tn_dtype_get(dst->dtype)->bits;
    src->rank = dst->rank = ranks[below(sizeof ranks / sizeof *ranks)];
    bool pads = below(2);
    for (uint32_t i = 0; i < dst->rank; i++) {
        uint32_t k = (uint32_t)below(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < dst->rank; i++) {
        int64_t extent = extent_for(dst->rank), change = pads && below(2) ? (int64_t)below(8) - 4 : 0;
        src->shape[order[i]] = extent;
        dst->shape[i] = extent + change < 0 ? 0 : extent + change;
    }
    make_strides(dst, false);
    make_strides(src, true);
    make_buffer(dst);
    make_buffer(src);
}

static void run_case(unsigned jobs)
{
    side dst = { 0 }, src = { 0 };
    uint32_t order[MAX_DIMS];
    uint8_t fill[16];
    make_case(&dst, &src, order);
    for (size_t i = 0; i < sizeof fill; i++)
        fill[i] = (uint8_t)below(256);
    static const uint8_t zero[16];
    tn_reorder_options options = { .size = sizeof options, .order = order, .fill = below(2) ? fill : NULL,
                                   .jobs = jobs };
    uint8_t *want = exact_copy(dst.buffer, dst.size);
    expect(&dst, want, &src, order, options.fill ? options.fill : zero);
    tn_array d = array_of(&dst), s = array_of(&src);
    tn_error err;
    CHECK(tn_reorder(&d, dst.buffer + dst.first, &s, src.buffer + src.first, &options, &err) == TN_OK);
    if (memcmp(want, dst.buffer, dst.size) != 0)
        fail_msg("rank %u, %s, jobs %u", dst.rank, tn_dtype_get(dst.dtype)->name, jobs);
    free(want);
    free(dst.buffer);
    free(src.buffer);
}

static void elements_go_where_index_arithmetic_says(void)
{
    for (unsigned i = 0; i < CASES; i++)
        run_case(1);
}

/* --- threads ------------------------------------------------------------------ */

/* Large enough for several pieces. */
static void check_jobs(tn_dtype dtype, const int64_t *dst_shape, const int64_t *src_shape,
                       const uint32_t *order)
{
    uint64_t to_bytes = 0, from_bytes = 0;
    tn_array d = { .dtype = dtype, .rank = 3, .shape = dst_shape },
    s = { .dtype = dtype, .rank = 3, .shape = src_shape };
    CHECK(tn_array_nbytes(&d, &to_bytes) == TN_OK && tn_array_nbytes(&s, &from_bytes) == TN_OK);
    uint8_t *src = malloc(from_bytes), *one = malloc(to_bytes), *more = malloc(to_bytes);
    assert_true(src && one && more);
    for (size_t i = 0; i < from_bytes; i++)
        src[i] = (uint8_t)below(256);
    memset(one, 0, to_bytes);           /* bits beyond the last element stay as they are */
    memset(more, 0, to_bytes);
    tn_reorder_options options = { .size = sizeof options, .order = order, .fill = "0123456789abcdef",
                                   .jobs = 1 };
    CHECK(tn_reorder(&d, one, &s, src, &options, NULL) == TN_OK);
    options.jobs = 5;
    CHECK(tn_reorder(&d, more, &s, src, &options, NULL) == TN_OK);
    CHECK(memcmp(one, more, to_bytes) == 0);
    free(src);
    free(one);
    free(more);
}

static void the_number_of_threads_changes_nothing(void)
{
    static const uint32_t orders[][3] = { { 0, 2, 1 }, { 2, 1, 0 }, { 0, 1, 2 }, { 1, 0, 2 } };
    static const tn_dtype types[] = { TN_FLOAT32, TN_INT8, TN_UINT4, TN_FLOAT6_E2M3, TN_COMPLEX128,
                                      TN_BFLOAT16 };
    static const int64_t src[3] = { 7, 500, 1531 };
    for (unsigned o = 0; o < 4; o++)
        for (unsigned t = 0; t < 6; t++) {
            int64_t dst[3];
            for (unsigned i = 0; i < 3; i++)
                dst[i] = src[orders[o][i]] + (i == 2 ? 5 : i == 1 ? -2 : 0);
            check_jobs(types[t], dst, src, orders[o]);
        }
}

/* --- padding ------------------------------------------------------------------ */

static void padding_is_added_with_the_value_given(void)
{
    static const int16_t src[] = { 1, 2, 3, 4, 5, 6 };
    static const int16_t want[] = { 1, 3, 5, -9, 2, 4, 6, -9 };
    int16_t dst[8], fill = -9;
    tn_array d = { .dtype = TN_INT16, .rank = 2, .shape = (int64_t[]){ 2, 4 } };
    tn_array s = { .dtype = TN_INT16, .rank = 2, .shape = (int64_t[]){ 3, 2 } };
    tn_reorder_options options = { .size = sizeof options, .order = (uint32_t[]){ 1, 0 }, .fill = &fill,
                                   .jobs = 1 };
    CHECK(tn_reorder(&d, dst, &s, src, &options, NULL) == TN_OK);
    assert_memory_equal(dst, want, sizeof want);
}

static void a_source_of_nothing_leaves_only_fill(void)
{
    int32_t dst[6], fill = 77;
    tn_array d = { .dtype = TN_INT32, .rank = 3, .shape = (int64_t[]){ 1, 2, 3 } };
    tn_array s = { .dtype = TN_INT32, .rank = 3, .shape = (int64_t[]){ 0, INT64_C(1) << 40,
                                                                       INT64_C(1) << 40 } };
    tn_reorder_options options = { .size = sizeof options, .fill = &fill };
    tn_status status = tn_reorder(&d, dst, &s, NULL, &options, NULL);
    CHECK(status == TN_OK);
    for (unsigned i = 0; i < 6; i++)
        CHECK(dst[i] == 77);
}

/* --- bad arguments -------------------------------------------------------------- */

typedef struct bad {
    tn_array        dst, src;
    const uint32_t *order;
    const char     *text;
    bool            no_dst, no_src;
} bad;

static void check_bad(const bad *b, tn_status want)
{
    uint8_t to[64] = { 0 }, from[64] = { 0 };
    static const uint8_t untouched[64];
    tn_reorder_options options = { .size = sizeof options, .order = b->order };
    tn_error err = { 0 };
    tn_status status =
        tn_reorder(&b->dst, b->no_dst ? NULL : to, &b->src, b->no_src ? NULL : from, &options, &err);
    if (status != want || err.status != want || !strstr(line_of(&err), b->text))
        fail_msg("expected %d with \"%s\" but found %d: %s", (int)want, b->text, (int)status, line_of(&err));
    CHECK(tn_reorder(&b->dst, b->no_dst ? NULL : to, &b->src, b->no_src ? NULL : from, &options, NULL) ==
          want);
    assert_memory_equal(to, untouched, sizeof to);
}

#define SHAPE(...)  ((const int64_t[]){ __VA_ARGS__ })
#define ORDER(...)  ((const uint32_t[]){ __VA_ARGS__ })
#define TWO(t)      { .dtype = (t), .rank = 2, .shape = SHAPE(2, 3) }
#define TWO_AT(t, a, b) { .dtype = (t), .rank = 2, .shape = SHAPE(2, 3), .stride = SHAPE(a, b) }

static void every_bad_argument_is_refused(void)
{
    const bad cases[] = {
        { TWO(TN_INT8), TWO(TN_UINT8), NULL, "of int8 but the source of uint8", 0, 0 },
        { TWO(TN_INT8), { .dtype = TN_INT8, .rank = 1, .shape = SHAPE(6) }, NULL,
          "rank 2 but the source has 1", 0, 0 },
        { TWO(TN_UNKNOWN), TWO(TN_INT8), NULL, "the destination has an unknown type", 0, 0 },
        { TWO(TN_INT8), TWO((tn_dtype)99), NULL, "the source has an unknown type", 0, 0 },
        { TWO(TN_INT8), { .dtype = TN_INT8, .rank = 2, .shape = SHAPE(2, -3) }, NULL, "negative extent", 0,
          0 },
        { { .dtype = TN_INT8, .rank = 65, .shape = SHAPE(1) }, TWO(TN_INT8), NULL, "rank above 64", 0, 0 },
        { TWO(TN_INT8), TWO(TN_INT8), ORDER(0, 2), "order[1]: expected a dimension below 2 but found 2", 0,
          0 },
        { TWO(TN_INT8), TWO(TN_INT8), ORDER(1, 1), "order[1]: dimension 1 for the second time", 0, 0 },
        { TWO_AT(TN_INT8, 3, 0), TWO(TN_INT8), NULL, "a stride of 0: 3 elements", 0, 0 },
        { TWO_AT(TN_INT4, -3, 1), TWO(TN_INT4), NULL, "from 0 on, but found -3", 0, 0 },
        { TWO(TN_INT4), TWO_AT(TN_INT4, 3, -1), NULL, "from 0 on, but found -1", 0, 0 },
        { TWO_AT(TN_INT64, INT64_MAX / 8, 1), TWO(TN_INT64), NULL, "what 63 bits can count", 0, 0 },
        { TWO(TN_INT8), TWO_AT(TN_INT8, INT64_MIN, 1), NULL, "what 63 bits can count", 0, 0 },
        { TWO(TN_INT8), TWO(TN_INT8), NULL, "the destination has no data", true, false },
        { TWO(TN_INT8), TWO(TN_INT8), NULL, "the source has no data", false, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_bad(&cases[i], TN_ERR_ARGUMENT);
    const bad large = { { .dtype = TN_INT64, .rank = 2, .shape = SHAPE(INT64_C(1) << 40, INT64_C(1) << 40) },
                        TWO(TN_INT64),
                        NULL, "the destination has more bytes than fit 63 bits", 0, 0 };
    check_bad(&large, TN_ERR_LIMIT);
}

static void nothing_needs_no_data(void)
{
    tn_array d = { .dtype = TN_INT8, .rank = 2, .shape = SHAPE(0, 3) }, s = TWO(TN_INT8);
    CHECK(tn_reorder(&d, NULL, &s, NULL, NULL, NULL) == TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(elements_go_where_index_arithmetic_says), TEST(the_number_of_threads_changes_nothing),
        TEST(padding_is_added_with_the_value_given),   TEST(a_source_of_nothing_leaves_only_fill),
        TEST(every_bad_argument_is_refused),           TEST(nothing_needs_no_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
