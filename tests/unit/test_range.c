/* Scales from data: against plain loops and sorted copies. */
#include "support.h"

#include "affine.h"

#include "random.h"
#include "tallies.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "tensor/array.h"
#include "quant/scale_search.h"

/* Numbers of many magnitudes, or of one, with some that repeat. */
static void make_floats(float *x, size_t n, bool wild)
{
    for (size_t i = 0; i < n; i++) {
        double sign = bits64() % 2 ? 1 : -1;
        x[i] = (float)(sign * (wild ? exp(uniform() * 160 - 80) : uniform()));
        if (bits64() % 8 == 0)
            x[i] = (float)(sign * (double)(bits64() % 3));
    }
}

/* ---- the slow computation ---- */

typedef struct pair { float scale; int32_t zero; } pair;

static pair pair_for(float low, float high, const int64_t codes[2], bool symmetric)
{
    low = low < 0 ? low : 0;
    high = high > 0 ? high : 0;
    if (low == 0 && high == 0)
        return (pair){ 1, (int32_t)(codes[0] > 0 ? codes[0] : codes[1] < 0 ? codes[1] : 0) };
    double wide = (double)(float)((double)high - (double)low), steps = (double)(float)(codes[1] - codes[0]);
    if (isinf(wide))
        wide = (double)high - (double)low;      /* no float32, but its quotient is */
    double scale = symmetric ? fmax((double)high, -(double)low) / (double)(float)codes[1] : wide / steps;
    pair p = { .scale = (float)fmin(fmax((double)(float)scale, (double)FLT_MIN), (double)FLT_MAX) };
    float below = low / p.scale, at = (float)codes[0] - below;
    double zero = nearbyint((double)at);
    p.zero = symmetric ? 0 : (int32_t)fmin(fmax(zero, (double)codes[0]), (double)codes[1]);
    return p;
}

static int by_value(const void *a, const void *b)
{
    float x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* The ends of the finite numbers among n, by the rule, from a sorted copy. */
static void ends(const float *x, size_t n, const affine_options *o, float *low, float *high)
{
    float *sorted = malloc(n * sizeof *sorted + 1);
    size_t finite = 0;
    assert_non_null(sorted);
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            sorted[finite++] = o->symmetric ? fabsf(x[i]) : x[i];
    qsort(sorted, finite, sizeof *sorted, by_value);
    *low = *high = 0;
    if (finite) {
        double percent = o->percentile > 0 ? o->percentile : 100;
        size_t fit = (size_t)ceil((double)finite * percent / 100), out;
        fit = fit < 1 ? 1 : fit;
        out = (finite - fit) / 2;
        *low = o->symmetric ? -sorted[fit - 1] : sorted[out];
        *high = o->symmetric ? sorted[fit - 1] : sorted[finite - 1 - out];
    }
    free(sorted);
}

/* Every channel of an array, gathered. */
static void check_scales(tn_dtype codes, uint32_t rank, const int64_t *shape, const float *x,
                         const affine_options *o)
{
    uint64_t count = 0, n = 0;
    int64_t range[2];
    size_t inner = 1, got;
    tn_error err = { .text = "" };
    tn_array a = { .dtype = TN_FLOAT32, .rank = rank, .shape = shape };
    CHECK(affine_count(rank, shape, o->axis, &count, NULL) == TN_OK &&
          tn_shape_count(rank, shape, &n) == TN_OK);
    for (uint32_t i = (uint32_t)(o->axis + 1); o->axis >= 0 && i < rank; i++)
        inner *= (size_t)shape[i];
    float *scale = malloc(count * sizeof *scale), *some = malloc(n * sizeof *some + 1);
    int32_t *zero = malloc(count * sizeof *zero);
    assert_true(scale && some && zero);
    CHECK(affine_range(codes, o, range) == TN_OK);
    if (affine_choose_scales(codes, &a, x, o, scale, zero, &err))
        fail_msg("%s", line_of(&err));
    for (size_t c = 0; c < count; c++) {
        float low, high;
        got = 0;
        for (size_t i = 0; i < n; i++)
            if (o->axis < 0 || i / inner % count == c)
                some[got++] = x[i];
        ends(some, got, o, &low, &high);
        pair want = pair_for(low, high, range, o->symmetric);
        if (scale[c] != want.scale || zero[c] != want.zero)
            fail_msg("scale %zu of %zu is %a, %d but not %a, %d", c, (size_t)count, (double)scale[c],
                     (int)zero[c], (double)want.scale, (int)want.zero);
    }
    free(scale);
    free(some);
    free(zero);
}

/* ---- whole arrays ---- */

static void scales_hold_all_values_or_that_percentage(void)
{
    static const tn_dtype types[] = { TN_INT8, TN_UINT8, TN_INT16, TN_UINT16, TN_INT32, TN_INT4, TN_UINT4,
                                      TN_INT2, TN_UINT2 };
    static const double percents[] = { 100, 99.9, 99, 50, 33.3, 1e-9 };
    static float x[40000];
    for (int round = 0; round < 250; round++) {
        uint32_t rank = 1 + (uint32_t)(bits64() % 3);
        int64_t shape[3];
        size_t n = 1;
        for (uint32_t i = 0; i < rank; i++)
            n *= (size_t)(shape[i] = 1 + (int64_t)(bits64() % (bits64() % 2 ? 12 : rank == 3 ? 40 : 150)));
        if (n > 40000)
            continue;
        make_floats(x, n, bits64() % 2);
        for (size_t i = 0; i < n && round % 3 == 0; i += 1 + bits64() % 9)
            x[i] = bits64() % 3 ? NAN : bits64() % 2 ? INFINITY : -INFINITY;
        for (int32_t axis = TN_PER_TENSOR; axis < (int32_t)rank; axis++) {
            affine_options o = { .axis = axis, .jobs = 1 };
            tn_dtype type = types[bits64() % 9];
            o.symmetric = bits64() % 2 && tn_dtype_get(type)->kind == TN_KIND_INT;
            o.percentile = bits64() % 2 ? percents[bits64() % 6] : 0;
            if (bits64() % 3 == 0)
                o.range[o.symmetric ? 0 : 1] = o.symmetric ? -1 : 1, o.range[1] = 1;
            check_scales(type, rank, shape, x, &o);
        }
    }
}

static void ranges_without_numbers_have_scale_one(void)
{
    const int64_t shape[] = { 4, 3 };
    const float x[] = { 0, -0.0f, 0, NAN, INFINITY, -INFINITY, 0, 0, NAN, 2, 0, 0 };
    float scale[4];
    int32_t zero[4];
    tn_array a = { .dtype = TN_FLOAT32, .rank = 2, .shape = shape };
    for (int rule = 0; rule < 2; rule++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            affine_options o = { .symmetric = symmetric, .percentile = rule ? 99 : 0 };
            CHECK(affine_choose_scales(TN_INT8, &a, x, &o, scale, zero, NULL) == TN_OK);
            for (int i = 0; i < 3; i++)
                CHECK(scale[i] == 1 && zero[i] == 0);
            CHECK(scale[3] == 2 / (symmetric ? 127.f : 255.f) && zero[3] == (symmetric ? 0 : -128));
            o.symmetric = false;
            o.range[0] = 5;
            o.range[1] = 100;
            CHECK(affine_choose_scales(TN_INT8, &a, x, &o, scale, zero, NULL) == TN_OK && scale[0] == 1 &&
                  zero[0] == 5);
        }
    const int64_t none[] = { 0 };
    a = (tn_array){ .dtype = TN_FLOAT32, .rank = 1, .shape = none };
    const affine_options o = { .axis = TN_PER_TENSOR };
    CHECK(affine_choose_scales(TN_UINT8, &a, NULL, &o, scale, zero, NULL) == TN_OK && scale[0] == 1 &&
          zero[0] == 0);
    const affine_options along = { .axis = 0,
                                        .percentile = 50 };
    CHECK(affine_choose_scales(TN_UINT8, &a, NULL, &along, NULL, zero, NULL) == TN_OK);
}

static pair choose(tn_dtype codes, const float *x, int64_t n, bool symmetric)
{
    pair p;
    const affine_options o = { .axis = TN_PER_TENSOR, .symmetric = symmetric };
    tn_array a = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    CHECK(affine_choose_scales(codes, &a, x, &o, &p.scale, &p.zero, NULL) == TN_OK);
    return p;
}

static void tiny_and_huge_ranges_have_usable_scales(void)
{
    const float huge[] = { -FLT_MAX, FLT_MAX }, tiny[] = { -1e-45f, 1e-45f }, small[] = { 0, FLT_MIN };
    pair p = choose(TN_INT8, huge, 2, true);
    CHECK(p.scale == FLT_MAX / 127);
    p = choose(TN_INT8, huge, 2, false);
    CHECK(isfinite(p.scale) && fabs((double)p.scale * 255 / (2 * (double)FLT_MAX) - 1) < 1e-6 && p.zero == 0);
    p = choose(TN_UINT8, huge, 2, false);
    CHECK(p.zero == 128);
    p = choose(TN_UINT2, huge, 2, false);
    CHECK(isfinite(p.scale));
    p = choose(TN_INT8, tiny, 2, true);
    CHECK(p.scale == FLT_MIN && p.zero == 0);
    p = choose(TN_INT8, tiny, 2, false);
    CHECK(p.scale == FLT_MIN && p.zero == -128);
    p = choose(TN_INT32, small, 2, false);
    CHECK(p.scale == FLT_MIN && p.zero == INT32_MIN);
    /* A range of two codes that is as wide as can be: the step is as large as there is. */
    const affine_options o = { .axis = TN_PER_TENSOR, .range = { 0, 1 } };
    const int64_t two = 2;
    tn_array a = { .dtype = TN_FLOAT32, .rank = 1, .shape = &two };
    CHECK(affine_choose_scales(TN_UINT8, &a, huge, &o, &p.scale, &p.zero, NULL) == TN_OK && p.scale == FLT_MAX &&
          p.zero == 1);
}

/* Each difference and each quotient is rounded to float32: rounding the exact quotient gives others. */
static void asymmetric_scales_are_computed_in_binary32(void)
{
    const int64_t shape[] = { 2 };
    const tn_array array = { TN_FLOAT32, 1, shape, NULL };
    const affine_options o = { .axis = TN_PER_TENSOR };
    size_t others = 0;
    for (int i = 0; i < 4000; i++) {
        float x[] = { (float)-uniform(), (float)(uniform() * 9) }, scale;
        int32_t zero;
        CHECK(affine_choose_scales(TN_UINT8, &array, x, &o, &scale, &zero, NULL) == TN_OK);
        float width = x[1] - x[0], expected = width / 255.0f, below = x[0] / expected, at = 0 - below;
        CHECK(scale == expected && (float)zero == rintf(at));
        others += scale != (float)(((double)x[1] - (double)x[0]) / 255);
    }
    CHECK(others > 200);
}

static void zero_points_round_to_even_and_stay_in_the_range(void)
{
    const float positive[] = { 1, 255 }, negative[] = { -255, -1 }, tie[] = { -0.5f, 254.5f },
    odd_tie[] = { -1.5f, 253.5f };
    CHECK(choose(TN_UINT8, positive, 2, false).zero == 0 && choose(TN_INT8, positive, 2, false).zero == -128);
    CHECK(choose(TN_UINT8, negative, 2, false).zero == 255 &&
          choose(TN_INT8, negative, 2, false).zero == 127);
    CHECK(choose(TN_UINT8, tie, 2, false).zero == 0 && choose(TN_UINT8, odd_tie, 2, false).zero == 2);
    CHECK(choose(TN_UINT8, positive, 2, false).scale == 1);
}

static void values_of_other_float_types_are_looked_at_as_float32(void)
{
    enum { N = 2500 };
    static float x[N], narrow[N];
    static uint8_t values[N * 8];
    const int64_t n = N;
    for (int type = TN_FLOAT64; type <= TN_FLOAT4_E2M1; type++)
        for (int rule = 0; rule < 2; rule++) {
            const affine_options o = { .axis = TN_PER_TENSOR,
                                            .percentile = rule ? 90 : 0 };
            tn_array wide = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n },
            own = { .dtype = (tn_dtype)type, .rank = 1, .shape = &n };
            pair a, b;
            make_floats(x, N, false);
            CHECK(tn_cast(&own, values, &wide, x, TN_HOST_ORDER, NULL, NULL) == TN_OK);
            CHECK(tn_cast(&wide, narrow, &own, values, TN_HOST_ORDER, NULL, NULL) == TN_OK);
            CHECK(affine_choose_scales(TN_INT8, &own, values, &o, &a.scale, &a.zero, NULL) == TN_OK);
            CHECK(affine_choose_scales(TN_INT8, &wide, narrow, &o, &b.scale, &b.zero, NULL) == TN_OK);
            CHECK(a.scale == b.scale && a.zero == b.zero && a.scale != 1);
        }
}

static void threads_do_not_change_scales(void)
{
    enum { N = 64 * 5000 };
    const int64_t shape[] = { 64, 100, 50 };
    float *x = malloc(N * sizeof *x), scale[2][100];
    int32_t zero[2][100];
    tn_array a = { .dtype = TN_FLOAT32, .rank = 3, .shape = shape };
    assert_non_null(x);
    make_floats(x, N, true);
    for (int32_t axis = TN_PER_TENSOR; axis < 3; axis++)
        for (int rule = 0; rule < 2; rule++) {
            for (unsigned k = 0; k < 2; k++) {
                const affine_options o = { .axis = axis, .percentile = rule ? 99.5 : 0,
                                                .jobs = k ? 4 : 1 };
                memset(scale[k], 0, sizeof scale[k]);
                memset(zero[k], 0, sizeof zero[k]);
                CHECK(affine_choose_scales(TN_INT16, &a, x, &o, scale[k], zero[k], NULL) == TN_OK);
            }
            CHECK(memcmp(scale[0], scale[1], sizeof scale[0]) == 0 &&
                  memcmp(zero[0], zero[1], sizeof zero[0]) == 0);
        }
    free(x);
}

/* More scales than 11 bits a round are found for. */
static void many_scales_are_counted_in_more_rounds(void)
{
    enum { SCALES = 3000, EACH = 5 };
    const int64_t shape[] = { EACH, SCALES };
    float *x = malloc(sizeof *x * SCALES * EACH), *scale = malloc(sizeof *scale * SCALES), low, high;
    int32_t *zero = malloc(sizeof *zero * SCALES);
    assert_true(x && scale && zero);
    make_floats(x, (size_t)SCALES * EACH, true);
    for (size_t i = 0; i < (size_t)SCALES * EACH; i += 3)       /* the first 8 bits do not tell these apart */
        x[i] = (i / SCALES % 2 ? INFINITY : FLT_MAX * 0.75f) * (i % 5 ? -1.f : 1.f);
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        const affine_options o = { .axis = 1,
                                        .percentile = 60,
                                        .symmetric = symmetric, .jobs = 2 };
        const int64_t range[] = { symmetric ? -127 : -128, 127 };
        tn_array a = { .dtype = TN_FLOAT32, .rank = 2, .shape = shape };
        CHECK(affine_choose_scales(TN_INT8, &a, x, &o, scale, zero, NULL) == TN_OK);
        for (size_t c = 0; c < SCALES; c++) {
            float some[EACH];
            for (size_t i = 0; i < EACH; i++)
                some[i] = x[i * SCALES + c];
            ends(some, EACH, &o, &low, &high);
            pair want = pair_for(low, high, range, symmetric);
            CHECK(scale[c] == want.scale && zero[c] == want.zero);
        }
    }
    free(x);
    free(scale);
    free(zero);
}

/* ---- tallies ---- */

static void windows_in_any_order_by_any_thread_find_the_same(void)
{
    static float x[TALLIED];
    make_floats(x, TALLIED, true);
    for (int32_t axis = TN_PER_TENSOR; axis < 3; axis++)
        for (int rule = 0; rule < 2; rule++) {
            const affine_options o = { .axis = axis, .percentile = rule ? 95 : 0, .jobs = 1 };
            check_tallies(x, TN_UINT8, &o, rule ? 3 : 1, true);
        }
}

static void check_refusal(tn_dtype codes, tn_dtype from, uint64_t count, affine_options o,
                          tn_status status, const char *text)
{
    const tn_scale_index index = { .inner = 1, .count = count };
    tn_scale_tally *t = NULL;
    tn_error err = { .text = "" };
    const tn_affine affine = affine_of(codes, &o);
    const tn_quantize_options rules = affine_rules(&o);
    CHECK(tn_scale_tally_new(&affine, &rules, from, index, &t, &err) == status && t == NULL);
    assert_string_equal(said_of(&err), text);
    CHECK(tn_scale_tally_new(&affine, &rules, from, index, &t, NULL) == status);
}

static void what_makes_no_sense_is_refused_with_a_reason(void)
{
    affine_options o = { .rule = TN_SCALE_GIVEN };
    check_refusal(TN_INT8, TN_FLOAT32, 1, o, TN_ERR_ARGUMENT,
                  "scales along whole dimensions need the rule 0 or 5 but found 6");
    o = (affine_options){ .percentile = -0.5 };
    check_refusal(TN_INT8, TN_FLOAT32, 1, o, TN_ERR_ARGUMENT,
                  "expected a percentile above 0 and at most 100 but found -0.5");
    o.percentile = 100.5;
    check_refusal(TN_INT8, TN_FLOAT32, 1, o, TN_ERR_ARGUMENT,
                  "expected a percentile above 0 and at most 100 but found 100.5");
    o.percentile = (double)NAN;
    check_refusal(TN_INT8, TN_FLOAT32, 1, o, TN_ERR_ARGUMENT,
                  "expected a percentile above 0 and at most 100 but found nan");
    o.percentile = 99;
    check_refusal(TN_INT8, TN_FLOAT32, 70000, o, TN_ERR_LIMIT,
                  "expected at most 64902 scales by percentile but found 70000");
    o.symmetric = true;
    check_refusal(TN_INT8, TN_FLOAT32, UINT64_C(1) << 62, o, TN_ERR_LIMIT,
                  "expected at most 129553 scales by percentile but found 4611686018427387904");
    o = (affine_options){ .symmetric = true, .range = { -3, 4 } };
    check_refusal(TN_INT8, TN_FLOAT32, 1, o, TN_ERR_ARGUMENT,
                  "expected a lowest symmetric code of at most -4 but found -3");
    o = (affine_options){ .rule = TN_SCALE_MAX };
    check_refusal(TN_INT8, TN_INT8, 1, o, TN_ERR_ARGUMENT, "expected values of a float type but found int8");
    check_refusal(TN_INT8, TN_UNKNOWN, 1, o, TN_ERR_ARGUMENT,
                  "expected values of a float type but found an unknown type");
    check_refusal(TN_FLOAT32, TN_FLOAT32, 1, o, TN_ERR_ARGUMENT,
                  "expected codes of an integer type of at most 16 bits or int32 but found float32");
    check_refusal(TN_INT8, TN_FLOAT32, UINT64_C(1) << 40, o, TN_ERR_LIMIT,
                  "expected at most 33554432 scales but found 1099511627776");

    const int64_t n = 1;
    const float x = 1;
    float scale;
    tn_error err;
    tn_array a = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    CHECK(affine_choose_scales(TN_INT8, &a, &x, NULL, &scale, NULL, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "expected 4 bytes for the part zero but found none");
    CHECK(affine_choose_scales(TN_INT8, &a, NULL, NULL, &scale, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "has no data"));
    const affine_options axis = { .axis = 1 };
    CHECK(affine_choose_scales(TN_INT8, &a, &x, &axis, &scale, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "an axis below 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(scales_hold_all_values_or_that_percentage),
        TEST(ranges_without_numbers_have_scale_one),
        TEST(tiny_and_huge_ranges_have_usable_scales),
        TEST(asymmetric_scales_are_computed_in_binary32),
        TEST(zero_points_round_to_even_and_stay_in_the_range),
        TEST(values_of_other_float_types_are_looked_at_as_float32),
        TEST(threads_do_not_change_scales),
        TEST(many_scales_are_counted_in_more_rounds),
        TEST(windows_in_any_order_by_any_thread_find_the_same),
        TEST(what_makes_no_sense_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
