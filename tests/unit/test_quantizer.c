/* One quantizer: spellings that mean the same give the same, and every option works with every spelling
 * where it has a meaning. */
#include "support.h"

#include "random.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include <tenon/tenon.h>

enum { ROWS = 24, COLUMNS = 128, N = ROWS * COLUMNS, MOST_BYTES = 4 * N };

static const int64_t shape[] = { ROWS, COLUMNS };
static const tn_array array = { TN_FLOAT32, 2, shape, NULL };

/* Of many magnitudes, not around zero. */
static void make_values(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((uniform() + uniform() + uniform() - 1.3) * (1 + (double)(i / COLUMNS % 7)));
    x[n / 3] *= 9;
}

static tn_datatype *parsed(const char *text)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    if (tn_datatype_parse(text, &d, &err))
        fail_msg("%s: %s", text, line_of(&err));
    return d;
}

/* The parts of a tensor of a datatype. */
typedef struct parts {
    uint8_t bytes[3][MOST_BYTES];
    void   *at[7];
} parts;

static void clear(parts *p)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < 3; i++)
        p->at[i] = p->bytes[i];
    for (int i = 3; i < 7; i++)
        p->at[i] = calloc(1, MOST_BYTES);
}

static void forget(parts *p)
{
    for (int i = 3; i < 7; i++)
        free(p->at[i]);
}

/* Codes, and the values that they stand for. */
static tn_status both_ways(const char *text, const tn_array *a, const float *x, const tn_quantize_options *o,
                           float *y, tn_quantize_stats *stats, tn_error *err)
{
    static parts p;
    tn_datatype *d = parsed(text);
    clear(&p);
    tn_status status = tn_quantize(d, a, x, p.at, o, stats, err);
    if (status == TN_OK)
        status = tn_dequantize(d, a, (const void *const *)p.at, y, o, err);
    forget(&p);
    tn_datatype_free(d);
    return status;
}

/* ---- equal spellings ---- */

static void check_equal(const char *affine, const char *scaled, const tn_array *a, const float *x,
                        const tn_quantize_options *o)
{
    static float one[N], two[N];
    tn_quantize_stats stats[2];
    tn_error err = { .text = "" };
    if (both_ways(affine, a, x, o, one, &stats[0], &err) || both_ways(scaled, a, x, o, two, &stats[1], &err))
        fail_msg("%s, %s: %s", affine, scaled, line_of(&err));
    uint64_t n;
    CHECK(tn_array_nbytes(a, &n) == TN_OK);
    if (memcmp(one, two, (size_t)n) != 0)
        fail_msg("%s and %s differ", affine, scaled);
    CHECK(stats[0].values == stats[1].values && stats[0].saturated == stats[1].saturated &&
          stats[0].flushed == stats[1].flushed && stats[0].max_error == stats[1].max_error);
    CHECK(fabs(stats[0].noise - stats[1].noise) <= 1e-9 * stats[0].noise);
}

static void spellings_of_one_recipe_give_the_same_values(void)
{
    static float x[N];
    for (int round = 0; round < 40; round++) {
        const int64_t some[] = { 1 + (int64_t)below(ROWS), 1 + (int64_t)below(COLUMNS) };
        const tn_array a = { TN_FLOAT32, 2, some, NULL };
        const tn_quantize_options options[] = {
            { .size = sizeof *options },
            { .size = sizeof *options, .round = TN_ROUND_AWAY, .jobs = 2 },
            { .size = sizeof *options, .percentile = 50 + (double)below(50) },
        };
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            make_values(x, N);
            check_equal("int8,per=tensor", "int8|float32", &a, x, &options[k]);
            check_equal("int8,per=channel,axis=0", "int8|float32_t0", &a, x, &options[k]);
            check_equal("int4,per=channel,axis=0", "int4|float32_t0", &a, x, &options[k]);
            if (k != 1)         /* zero points of one are always to even */
                check_equal("uint8,per=tensor", "uint8|float32_int32", &a, x, &options[k]);
        }
    }
}

static void least_errors_of_one_recipe_are_the_same(void)
{
    static float x[N];
    const tn_quantize_options o = { .size = sizeof o, .rule = TN_SCALE_MSE };
    for (int round = 0; round < 20; round++) {
        make_values(x, N);
        check_equal("int8,per=tensor", "int8|float32", &array, x, &o);
        check_equal("int4,per=tensor", "int4|float32", &array, x, &o);
        check_equal("int8,per=channel,axis=0", "int8|float32_t0", &array, x, &o);
        check_equal("uint8,per=tensor", "uint8|float32_int32", &array, x, &o);
    }
}

/* ---- the text of a datatype ---- */

static void the_text_of_an_affine_datatype_is_all_that_it_is(void)
{
    static const char *const texts[][2] = {
        { "int8,per=tensor", "int8,per=tensor" },
        { "i8,per=tensor", "int8,per=tensor" },
        { "uint8,per=channel,axis=1", "uint8,per=channel,axis=1" },
        { "int8,per=tensor,zero=asymmetric", "int8,per=tensor,zero=asymmetric" },
        { "int8,per=tensor,zero=symmetric", "int8,per=tensor" },
        { "int8,per=tensor,range=-127:127", "int8,per=tensor" },
        { "int8,per=tensor,range=-100:100", "int8,per=tensor,range=-100:100" },
        { "int4,per=channel,axis=3", "int4,per=channel,axis=3" },
        { "fx8", "fx8" }, { "FX16", "fx16" }, { "sa8", "sa8" }, { "sa32", "sa32" },
        { "sa8,per=channel,axis=2,zero=asymmetric", "sa8,per=channel,axis=2,zero=asymmetric" },
        { "fx8,arithmetic=mli", "fx8,arithmetic=mli" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tn_datatype *d = parsed(texts[i][0]), *again;
        assert_string_equal(tn_datatype_text(d), texts[i][1]);
        again = parsed(tn_datatype_text(d));
        assert_string_equal(tn_datatype_text(again), texts[i][1]);
        tn_datatype_free(d);
        tn_datatype_free(again);
    }
}

static void a_text_that_is_no_affine_datatype_is_refused_with_a_reason(void)
{
    static const struct { const char *text, *why; } bad[] = {
        { "int8,per=row", "expected another value but found \"per=row\"" },
        { "int8,per=channel", "expected per=tensor or per=channel,axis=A" },
        { "int8,per=tensor,axis=0", "expected per=tensor or per=channel,axis=A" },
        { "int8,zero=symmetric", "expected per=tensor or per=channel,axis=A" },
        { "uint8,per=tensor,zero=symmetric", "symmetric codes have a sign but uint8 has none" },
        { "int8,per=channel,axis=64", "expected an axis below 64" },
        { "int8,per=channel,axis=-1", "expected another value" },
        { "int8,per=tensor,range=5", "expected another value" },
        { "int8,per=tensor,range=0:300", "expected a range of codes within" },
        { "int8,per=tensor,what=1", "expected per, axis, zero, zeros" },
        { "int8,per=tensor,", "expected per, axis, zero, zeros" },
        { "fx8,zero=asymmetric", "powers of two need symmetric codes" },
        { "sa8,scale_bits=25", "expected a scale of at most 24 bits" },
        { "float32,per=tensor", "" }, { "int64,per=tensor", "" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_datatype *d = NULL;
        tn_error err = { .text = "" };
        CHECK(tn_datatype_parse(bad[i].text, &d, &err) == TN_ERR_ARGUMENT && !d);
        if (!strstr(line_of(&err), bad[i].why))
            fail_msg("%s: expected <%s> but found <%s>", bad[i].text, bad[i].why, line_of(&err));
    }
}

/* ---- every option with every spelling ---- */

static const char *const spellings[] = {
    "int8,per=tensor", "int8,per=channel,axis=0", "int8,per=channel,axis=1", "uint8,per=tensor",
    "int8,per=channel,axis=0,zero=asymmetric", "int4,per=channel,axis=0", "uint4,per=tensor", "int2,per=tensor",
    "int16,per=tensor", "uint16,per=tensor", "int32,per=tensor", "fx8", "fx16", "fx8,arithmetic=mli", "sa8",
    "sa8,per=channel,axis=1,zero=asymmetric", "sa32", "int8|float32", "int8|float32_t0", "uint8|float32_int32",
    "uint4|float32_int8_t0", "e4m3fn|float32", "mxfp4", "mxfp8", "nvfp4", "int4_b32", "e2m1|e8m0_t32d0",
};
enum { SPELLINGS = sizeof spellings / sizeof *spellings };

static bool is_exact(const char *text)          /* codes of so many bits lose next to nothing */
{
    return strncmp(text, "int32", 5) == 0 || strncmp(text, "sa32", 4) == 0;
}

/* Codes and their values are what fake quantizing says; so is the report. */
static void check_options(const char *text, const float *x, const tn_quantize_options *o,
                          tn_quantize_stats *stats)
{
    static float y[N], fake[N];
    tn_quantize_stats own;
    tn_error err = { .text = "" };
    tn_datatype *d = parsed(text);
    if (both_ways(text, &array, x, o, y, stats, &err) || tn_fake_quantize(d, &array, x, fake, o, &own, &err))
        fail_msg("%s: %s", text, line_of(&err));
    if (memcmp(y, fake, sizeof y) != 0)
        fail_msg("%s: codes stand for other values than fake quantizing gives", text);
    CHECK(memcmp(stats, &own, sizeof own) == 0 && own.values == N);
    CHECK(tn_fake_quantize(d, &array, x, NULL, o, &own, &err) == TN_OK && memcmp(stats, &own, sizeof own) == 0);
    double noise = 0, signal = 0;
    for (size_t i = 0; i < N; i++) {
        noise += pow((double)x[i] - (double)y[i], 2);
        signal += pow((double)x[i], 2);
    }
    CHECK(fabs(noise - stats->noise) <= 1e-3 * noise + 1e-6 && fabs(signal - stats->signal) <= 1e-3 * signal);
    CHECK(stats->noise > 0);
    tn_datatype_free(d);
}

static void every_option_works_with_every_spelling(void)
{
    static float x[N];
    make_values(x, N);
    for (size_t i = 0; i < SPELLINGS; i++) {
        const tn_quantize_options plain = { .size = sizeof plain }, mse = { .size = sizeof mse,
                                                                            .rule = TN_SCALE_MSE };
        const tn_quantize_options percentile = { .size = sizeof percentile, .percentile = 90 };
        const tn_quantize_options turned = { .size = sizeof turned, .rotation = { .size = 8 } };
        const tn_quantize_options chance = { .size = sizeof chance, .round = TN_ROUND_STOCHASTIC, .seed = 5 };
        tn_quantize_stats p, m, c, t, s;
        check_options(spellings[i], x, &plain, &p);
        check_options(spellings[i], x, &mse, &m);
        CHECK(m.noise <= p.noise * 1.0001);
        check_options(spellings[i], x, &percentile, &c);
        CHECK(c.saturated > p.saturated || is_exact(spellings[i]) || strstr(spellings[i], "e8m0") ||
              strstr(spellings[i], "fx") || strstr(spellings[i], "mx"));
        if (!strstr(spellings[i], "d0"))        /* along the rows: 24 of them */
            check_options(spellings[i], x, &turned, &t);
        if (!strstr(spellings[i], "mli"))       /* rounds in its own way */
            check_options(spellings[i], x, &chance, &s);
    }
}

static void options_together_do_not_depend_on_threads(void)
{
    static float x[N], y[2][N];
    make_values(x, N);
    for (size_t i = 0; i < SPELLINGS; i++) {
        tn_datatype *d = parsed(spellings[i]);
        tn_quantize_stats stats[2];
        for (unsigned k = 0; k < 2; k++) {
            const tn_quantize_options o = { .size = sizeof o, .rule = TN_SCALE_MSE, .percentile = 99,
                                            .rotation = { .size = 8, .random = true, .seed = 3 },
                                            .round = TN_ROUND_STOCHASTIC, .jobs = k ? 4 : 1 };
            CHECK(tn_fake_quantize(d, &array, x, y[k], &o, &stats[k], NULL) == TN_OK);
        }
        CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0 && memcmp(&stats[0], &stats[1], sizeof stats[0]) == 0);
        tn_datatype_free(d);
    }
}

static void options_without_a_meaning_are_refused_with_a_reason(void)
{
    static float x[N], y[N];
    static const struct { tn_quantize_options o; const char *why; } bad[] = {
        { { .rule = TN_SCALE_CEIL }, "has no exponents as scales: expected the scale rule 0, 5 or 6 but found 4" },
        { { .rule = (tn_scale_rule)7 }, "expected the scale rule 0, 5 or 6 but found 7" },
        { { .unpacked = true }, "one way to store codes" },
        { { .ggml = true }, "one way to store codes" },
        { { .percentile = 101 }, "expected a percentile above 0 and at most 100 but found 101" },
        { { .percentile = -1 }, "expected a percentile above 0 and at most 100 but found -1" },
        { { .rotation = { .size = 3 } }, "expected a rotation of 4, 8, 16" },
    };
    tn_datatype *d = parsed("int8,per=tensor"), *scaled = parsed("int8|float32");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_quantize_options o = bad[i].o;
        tn_error err = { .text = "" };
        o.size = sizeof o;
        CHECK(tn_fake_quantize(d, &array, x, y, &o, NULL, &err) == TN_ERR_ARGUMENT);
        if (!strstr(line_of(&err), bad[i].why))
            fail_msg("expected <%s> but found <%s>", bad[i].why, line_of(&err));
    }
    tn_error err = { .text = "" };
    const tn_quantize_options given = { .size = sizeof given, .rule = TN_SCALE_GIVEN };
    CHECK(tn_fake_quantize(scaled, &array, x, y, &given, NULL, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "expected a scale mode of 0 to 5 but found 6"));
    tn_datatype_free(d);
    tn_datatype_free(scaled);
}

/* ---- parts that lie anywhere ---- */

static void parts_need_no_alignment_to_be_read(void)
{
    static float x[N], y[N], z[N];
    static parts p;
    static uint8_t moved[3][MOST_BYTES + 3];
    const char *const texts[] = { "int8,per=channel,axis=1", "uint8,per=tensor", "uint4,per=channel,axis=0" };
    make_values(x, N);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tn_datatype *d = parsed(texts[i]);
        clear(&p);
        CHECK(tn_quantize(d, &array, x, p.at, NULL, NULL, NULL) == TN_OK);
        CHECK(tn_dequantize(d, &array, (const void *const *)p.at, y, NULL, NULL) == TN_OK);
        for (int k = 0; k < 3; k++)
            memcpy(moved[k] + 1 + k, p.at[k], MOST_BYTES - 3);
        const void *at[] = { moved[0] + 1, moved[1] + 2, moved[2] + 3 };
        CHECK(tn_dequantize(d, &array, at, z, NULL, NULL) == TN_OK && memcmp(y, z, sizeof y) == 0);
        forget(&p);
        tn_datatype_free(d);
    }
}

/* ---- long rows and large tensors ---- */

static void percentiles_of_groups_that_are_not_held_are_those_of_sorted_values(void)
{
    enum { LONG = 70000 };
    const int64_t rows[] = { 2, LONG };
    const tn_array a = { TN_FLOAT32, 2, rows, NULL };
    float *x = malloc(2 * LONG * sizeof *x), *y = malloc(2 * LONG * sizeof *y), *z = malloc(2 * LONG * sizeof *z);
    assert_true(x && y && z);
    make_values(x, 2 * LONG);
    static const char *const pairs[][2] = { { "int8,per=tensor", "int8|float32" },
                                            { "int8,per=channel,axis=0", "int8|float32_t0" },
                                            { "uint8,per=tensor", "uint8|float32_int32" } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const tn_quantize_options o = { .size = sizeof o, .percentile = 97.5, .jobs = 2 };
        tn_datatype *one = parsed(pairs[i][0]), *two = parsed(pairs[i][1]);
        CHECK(tn_fake_quantize(one, &a, x, y, &o, NULL, NULL) == TN_OK);
        CHECK(tn_fake_quantize(two, &a, x, z, &o, NULL, NULL) == TN_OK);
        CHECK(memcmp(y, z, 2 * LONG * sizeof *y) == 0 && memcmp(x, y, 2 * LONG * sizeof *y) != 0);
        tn_datatype_free(one);
        tn_datatype_free(two);
    }
    free(x);
    free(y);
    free(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(spellings_of_one_recipe_give_the_same_values),
        TEST(least_errors_of_one_recipe_are_the_same),
        TEST(the_text_of_an_affine_datatype_is_all_that_it_is),
        TEST(a_text_that_is_no_affine_datatype_is_refused_with_a_reason),
        TEST(every_option_works_with_every_spelling),
        TEST(options_together_do_not_depend_on_threads),
        TEST(options_without_a_meaning_are_refused_with_a_reason),
        TEST(parts_need_no_alignment_to_be_read),
        TEST(percentiles_of_groups_that_are_not_held_are_those_of_sorted_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
