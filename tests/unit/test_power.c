/* Scales that are powers of two, and scales of few bits: against trying every power. */
#include "support.h"

#include "affine.h"

#include "random.h"
#include "rounding.h"
#include "tallies.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "tensor/array.h"
#include "quant/scale_trials.h"

__extension__ typedef unsigned __int128 wide;

static const tn_dtype types[] = { TN_INT8, TN_INT16, TN_INT32, TN_INT4, TN_INT2 };
enum { TYPES = sizeof types / sizeof types[0], MOST = 6000, FEW = 1500 };

/* Numbers near one size, some far away, some on a grid, and some that do not count. */
static void make_floats(float *x, size_t n)
{
    double size = ldexp(1, (int)(bits64() % 60) - 30);
    unsigned kind = (unsigned)(bits64() % 8);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((uniform() * 2 - 1) * size);
        if (kind & 1 && bits64() % 50 == 0)
            x[i] *= (float)(1 + bits64() % 300);
        if (kind & 2)
            x[i] = (float)(floor((double)x[i] * 64 / size) * size / 64);
        if (kind & 4 && bits64() % 9 == 0)
            x[i] = bits64() % 3 ? NAN : bits64() % 2 ? INFINITY : -INFINITY;
    }
}

/* ---- the slow computation ---- */

/* Stochastic: away from zero, which is as far as it can go. */
static double rounded(double y, tn_round mode)
{
    return mode == TN_ROUND_STOCHASTIC ? copysign(ceil(fabs(y)), y) : rounded_surely(y, mode);
}

/* What MLI adds up in binary32; what is too large for it stays too large. */
static double mli_rounded(double y)
{
    float p = (float)y, sum = y > 0 ? p + 0.5f : p - 0.5f;
    return trunc((double)sum);
}

static bool all_fit(const float *x, size_t n, int power, const int64_t range[2], const affine_options *o)
{
    for (size_t i = 0; i < n; i++) {
        double y = isfinite(x[i]) ? ldexp((double)x[i], power) : 0;
        double code = o->arithmetic == TN_ARITH_MLI ? mli_rounded(y) : rounded(y, o->round);
        if (code < (double)range[0] || code > (double)range[1])
            return false;
    }
    return true;
}

static int largest_power(const float *x, size_t n, unsigned bits, const int64_t range[2],
                         const affine_options *o)
{
    bool nothing = true;
    for (size_t i = 0; i < n; i++)
        nothing = nothing && (!isfinite(x[i]) || x[i] == 0);
    if (nothing)
        return (int)bits - 1;
    int power = 126;
    while (power > -127 && !all_fit(x, n, power, range, o))
        power--;
    return power;
}

typedef struct sample {
    tn_dtype type;
    uint32_t rank;
    int64_t  shape[3];
    size_t   n, inner, count;
    float   *x;
    int64_t  range[2];
    affine_options o;
} sample;

static void codes_of(const sample *s, const float *scale, int32_t *codes)
{
    const tn_array d = { .dtype = TN_INT32, .rank = s->rank, .shape = s->shape };
    const tn_array v = { .dtype = TN_FLOAT32, .rank = s->rank, .shape = s->shape };
    affine_options o = s->o;
    o.range[0] = s->range[0];
    o.range[1] = s->range[1];
    o.nan = TN_NAN_ZERO;
    CHECK(affine_quantize(&d, codes, &v, s->x, scale, NULL, &o, NULL) == TN_OK);
}

/* Sums of squares of every channel, with the codes that affine_quantize() makes of all. */
static void add_errors(const sample *s, const float *scale, const float *first, wide *sum)
{
    static int32_t codes[MOST];
    codes_of(s, scale, codes);
    memset(sum, 0, s->count * sizeof *sum);
    for (size_t i = 0; i < s->n; i++) {
        size_t c = i / s->inner % s->count;
        double error = (double)codes[i] * (double)scale[c] - (double)s->x[i];
        double square = floor(error * error / ((double)first[c] * (double)first[c]) * 0x1p24);
        if (isfinite(s->x[i]))
            sum[c] += square > 0x1p53 ? (wide)1 << 53 : (wide)square;
    }
}

static void expect_scales(const sample *s, float *want)
{
    static float some[MOST], trial[MOST], first[MOST];
    static wide sum[MOST], least[MOST];
    unsigned bits = tn_dtype_get(s->type)->bits;
    for (size_t c = 0; c < s->count; c++) {
        size_t got = 0;
        for (size_t i = 0; i < s->n; i++)
            if (i / s->inner % s->count == c)
                some[got++] = s->x[i];
        want[c] = first[c] = ldexpf(1, -largest_power(some, got, bits, s->range, &s->o));
    }
    for (unsigned k = 0; s->o.rule == TN_SCALE_MSE && k <= bits; k++) {
        for (size_t c = 0; c < s->count; c++)
            trial[c] = fmaxf(ldexpf(first[c], -(int)k), FLT_MIN);
        add_errors(s, trial, first, sum);
        for (size_t c = 0; c < s->count; c++)
            if (k == 0 || sum[c] < least[c]) {
                least[c] = sum[c];
                want[c] = trial[c];
            }
    }
}

static void check_sample(const sample *s)
{
    static float scale[MOST], want[MOST];
    static int32_t zero[MOST];
    const tn_array v = { .dtype = TN_FLOAT32, .rank = s->rank, .shape = s->shape };
    tn_error err = { .text = "" };
    if (affine_choose_scales(s->type, &v, s->x, &s->o, scale, zero, &err))
        fail_msg("%s", line_of(&err));
    expect_scales(s, want);
    for (size_t c = 0; c < s->count; c++)
        if (scale[c] != want[c] || zero[c] != 0)
            fail_msg("%s, rule %d, round %d, arithmetic %d: scale %zu of %zu is %a but not %a",
                     tn_dtype_get(s->type)->name, (int)s->o.rule, (int)s->o.round, (int)s->o.arithmetic, c,
                     s->count, (double)scale[c], (double)want[c]);
}

/* Any type, shape, axis, range and mode. */
static sample random_sample(float *x)
{
    sample s = { .type = types[bits64() % TYPES], .rank = 1 + (uint32_t)(bits64() % 3), .n = 1, .inner = 1,
                 .count = 1, .x = x };
    for (uint32_t i = 0; i < s.rank; i++)
        s.n *= (size_t)(s.shape[i] = 1 + (int64_t)(bits64() % (s.rank == 1 ? MOST : s.rank == 2 ? 38 : 11)));
    int32_t axis = (int32_t)(bits64() % (s.rank + 1)) - 1;
    for (uint32_t i = (uint32_t)(axis + 1); i < s.rank; i++)
        s.inner *= (size_t)s.shape[i];
    s.inner = axis < 0 ? s.n : s.inner;
    s.count = axis < 0 ? 1 : (size_t)s.shape[axis];
    s.o = (affine_options){ .axis = axis, .symmetric = true, .seed = 3, .jobs = 1,
                                 .rule = bits64() % 2 ? TN_SCALE_MAX : TN_SCALE_MSE, .power = true,
                                 .round = (tn_round)(bits64() % 8),
                                 .arithmetic = (tn_arithmetic)(bits64() % 3) };
    int64_t highest = (INT64_C(1) << (tn_dtype_get(s.type)->bits - 1)) - 1;
    if (bits64() % 2) {
        s.o.range[0] = -highest - 1;
        s.o.range[1] = bits64() % 2 ? highest : 1 + (int64_t)(bits64() % (uint64_t)highest);
    }
    CHECK(affine_range(s.type, &s.o, s.range) == TN_OK);
    make_floats(x, s.n);
    return s;
}

/* ---- powers ---- */

static void every_power_that_was_tried_is_worse(void)
{
    static float x[MOST];
    for (int round = 0; round < 400; round++) {
        sample s = random_sample(x);
        check_sample(&s);
    }
}

/* At the edge between two powers, and one step of float32 beside it. */
static void values_that_just_fit_are_told_from_those_that_do_not(void)
{
    for (int mode = TN_ROUND_EVEN; mode <= TN_ROUND_STOCHASTIC; mode++)
        for (size_t t = 0; t < TYPES; t++)
            for (int arithmetic = TN_ARITH_BINARY32; arithmetic <= TN_ARITH_MLI; arithmetic++)
                for (int k = 0; k < 24; k++) {
                    float edge = ldexpf(1, (int)tn_dtype_get(types[t])->bits - 1), x[2] = { 0, 0 };
                    edge += k % 3 == 0 ? 0 : k % 3 == 1 ? -0.5f : -1;
                    edge = k / 3 % 3 == 0 ? edge : nextafterf(edge, k / 3 % 3 == 1 ? 0 : INFINITY);
                    x[k % 2] = ldexpf(k >= 12 ? -edge : edge, (int)(bits64() % 200) - 100);
                    sample s = { .type = types[t], .rank = 1, .shape = { 2 }, .n = 2, .inner = 2, .count = 1,
                                 .x = x };
                    s.o = (affine_options){ .axis = TN_PER_TENSOR, .symmetric = true,
                                                 .power = true,
                                                 .round = (tn_round)mode,
                                                 .arithmetic = (tn_arithmetic)arithmetic, .jobs = 1 };
                    int64_t highest = (INT64_C(1) << (tn_dtype_get(types[t])->bits - 1)) - 1;
                    s.o.range[0] = -highest - 1;
                    s.o.range[1] = highest;
                    CHECK(affine_range(s.type, &s.o, s.range) == TN_OK);
                    check_sample(&s);
                }
}

static float choose(tn_dtype codes, const float *x, int64_t n, tn_scale_rule rule)
{
    const affine_options o = { .axis = TN_PER_TENSOR, .symmetric = true, .rule = rule, .power = true,
                                    .round = TN_ROUND_AWAY,
                                    .arithmetic = TN_ARITH_EXACT };
    const tn_array a = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    float scale = 0;
    CHECK(affine_choose_scales(codes, &a, x, &o, &scale, NULL, NULL) == TN_OK);
    return scale;
}

static void tiny_huge_and_missing_values_have_a_power(void)
{
    const float huge[] = { FLT_MAX, 1 }, tiny[] = { 1e-45f, 0 }, zero[] = { 0, -0.0f },
    none[] = { NAN, INFINITY, -INFINITY };
    const float one[] = { 1, -1 }, under[] = { 0.99609375f, -1 };
    for (int rule = TN_SCALE_MAX; rule <= TN_SCALE_MSE; rule += TN_SCALE_MSE) {
        tn_scale_rule r = (tn_scale_rule)rule;
        /* 2 is beyond 1, but there is no larger scale */
        CHECK(choose(TN_INT2, huge, 2, r) == 0x1p127f);
        CHECK(choose(TN_INT8, huge, 2, r) == 0x1p122f);
        CHECK(choose(TN_INT16, huge, 2, r) == 0x1p114f);
        CHECK(choose(TN_INT8, tiny, 2, r) == FLT_MIN);
        CHECK(choose(TN_INT8, zero, 2, r) == 0x1p-7f && choose(TN_INT16, zero, 2, r) == 0x1p-15f &&
              choose(TN_INT2, zero, 2, r) == 0.5f);
        CHECK(choose(TN_INT16, none, 3, r) == 0x1p-15f && choose(TN_INT16, NULL, 0, r) == 0x1p-15f);
        CHECK(choose(TN_INT8, one, 2, r) == 0x1p-6f && choose(TN_INT16, one, 2, r) == 0x1p-14f);
        CHECK(choose(TN_INT8, under, 2, TN_SCALE_MAX) == 0x1p-6f);    /* -128 is not in use */
    }
}

static double error_by(const float *x, int64_t n, float scale)
{
    const tn_array v = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n },
    c = { .dtype = TN_INT8, .rank = 1, .shape = &n };
    const affine_options o = { .axis = TN_PER_TENSOR, .symmetric = true,
                                    .round = TN_ROUND_AWAY,
                                    .arithmetic = TN_ARITH_EXACT };
    static int8_t codes[MOST];
    double sum = 0;
    CHECK(affine_quantize(&c, codes, &v, x, &scale, NULL, &o, NULL) == TN_OK);
    for (size_t i = 0; i < (size_t)n; i++)
        sum += pow((double)codes[i] * (double)scale - (double)x[i], 2);
    return sum;
}

static void one_far_value_is_cut_when_that_is_the_least_error(void)
{
    static float x[FEW];
    for (size_t i = 0; i < FEW; i++)
        x[i] = (float)(uniform() * 2 - 1);
    x[77] = 5;
    float power = choose(TN_INT8, x, FEW, TN_SCALE_MAX), least = choose(TN_INT8, x, FEW, TN_SCALE_MSE);
    CHECK(power == 0x1p-4f && least == power);          /* for so few, it is not */
    x[77] = 2.1f;
    least = choose(TN_INT8, x, FEW, TN_SCALE_MSE);
    CHECK(choose(TN_INT8, x, FEW, TN_SCALE_MAX) == 0x1p-5f && least == 0x1p-6f);
    CHECK(error_by(x, FEW, least) < error_by(x, FEW, 0x1p-5f) &&
          error_by(x, FEW, least) < error_by(x, FEW, 0x1p-7f));
}

static void values_of_other_float_types_are_looked_at_as_float32(void)
{
    static float x[MOST], narrow[MOST];
    static uint8_t values[MOST * 8];
    const int64_t n = MOST;
    for (int type = TN_FLOAT64; type <= TN_FLOAT4_E2M1; type++)
        for (int rule = TN_SCALE_MAX; rule <= TN_SCALE_MSE; rule += TN_SCALE_MSE) {
            const tn_array wide_array = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
            const tn_array own = { .dtype = (tn_dtype)type, .rank = 1, .shape = &n };
            const affine_options o = { .axis = TN_PER_TENSOR, .symmetric = true,
                                            .rule = (tn_scale_rule)rule, .power = true,
                                            .round = TN_ROUND_AWAY, .arithmetic = TN_ARITH_EXACT };
            float scale = 0;
            for (size_t i = 0; i < MOST; i++)
                x[i] = (float)(uniform() * uniform() * 6 - 1);
            CHECK(tn_cast(&own, values, &wide_array, x, TN_HOST_ORDER, NULL, NULL) == TN_OK);
            CHECK(tn_cast(&wide_array, narrow, &own, values, TN_HOST_ORDER, NULL, NULL) == TN_OK);
            CHECK(affine_choose_scales(TN_INT8, &own, values, &o, &scale, NULL, NULL) == TN_OK);
            CHECK(scale == choose(TN_INT8, narrow, n, (tn_scale_rule)rule));
        }
}

/* ---- threads ---- */

static void threads_do_not_change_powers(void)
{
    enum { N = 64 * 5000 };
    const int64_t shape[] = { 64, 100, 50 };
    float *x = malloc(N * sizeof *x), scale[2][100];
    const tn_array a = { .dtype = TN_FLOAT32, .rank = 3, .shape = shape };
    assert_non_null(x);
    for (size_t i = 0; i < N; i++)
        x[i] = (float)(pow(uniform(), 9) * 40 * (bits64() % 2 ? 1 : -1));
    for (int32_t axis = TN_PER_TENSOR; axis < 3; axis++)
        for (int rule = TN_SCALE_MAX; rule <= TN_SCALE_MSE; rule += TN_SCALE_MSE) {
            for (unsigned k = 0; k < 2; k++) {
                const affine_options o = { .axis = axis, .rule = (tn_scale_rule)rule, .power = true,
                                                .symmetric = true,
                                                .round = TN_ROUND_STOCHASTIC, .jobs = k ? 4 : 1 };
                memset(scale[k], 0, sizeof scale[k]);
                CHECK(affine_choose_scales(TN_INT8, &a, x, &o, scale[k], NULL, NULL) == TN_OK);
            }
            CHECK(memcmp(scale[0], scale[1], sizeof scale[0]) == 0);
        }
    free(x);
}

static void windows_in_any_order_by_any_thread_find_the_same_powers(void)
{
    static float x[TALLIED];
    make_floats(x, TALLIED);
    for (int32_t axis = TN_PER_TENSOR; axis < 3; axis++)
        for (int rule = TN_SCALE_MAX; rule <= TN_SCALE_MSE; rule += TN_SCALE_MSE) {
            const affine_options o = { .axis = axis, .rule = (tn_scale_rule)rule, .power = true,
                                            .symmetric = true, .jobs = 1 };
            check_tallies(x, TN_INT8, &o, rule == TN_SCALE_MSE ? 2 : 1, false);
        }
}

/* As many elements as that are not for a test. */
static void sums_that_are_full_stay_full(void)
{
    const int64_t range[] = { -127, 127 };
    const tn_scale_index one = { .inner = UINT64_MAX, .count = 1 };
    const affine_options o = { .axis = TN_PER_TENSOR, .symmetric = true,
                                    .rule = TN_SCALE_MSE, .power = true };
    const tn_affine affine = affine_of(TN_INT8, &o);
    const tn_quantize_options rules = affine_rules(&o);
    tn_scale_trials all = { 0 }, other = { 0 };
    CHECK(tn_scale_trials_init(&all, &affine, &rules, range, one, NULL) == TN_OK);
    CHECK(tn_scale_trials_init(&other, &affine, &rules, range, one, NULL) == TN_OK);
    tn_scale_trials_powers(&all, 0, -1, 1, UINT64_C(1) << 40);
    tn_scale_trials_follow(&other, &all);
    CHECK(all.tried == 9 && all.scale[0] == 0x1p-6f);
    all.sum[0] = UINT64_MAX - 3;
    other.sum[0] = 5;
    for (unsigned k = 1; k < 9; k++)
        all.sum[k] = other.sum[k] = 1000 - 10 * k;
    tn_scale_trials_join(&all, &other);
    CHECK(all.sum[0] == UINT64_MAX && all.sum[8] == 1840);
    tn_scale_trials_choose(&all);
    CHECK(all.scale[0] == 0x1p-14f);
    tn_scale_trials_free(&all);
    tn_scale_trials_free(&other);
}

/* ---- scales of few bits ---- */

static unsigned bits_of(float scale)
{
    int power;
    uint32_t mantissa = (uint32_t)ldexpf(frexpf(scale, &power), 24);
    return 24 - (unsigned)__builtin_ctz(mantissa);
}

static void scales_of_few_bits_are_the_next_above(void)
{
    float x[200];
    const int64_t n = 200;
    const tn_array a = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    for (int round = 0; round < 2000; round++) {
        float full = 0, scale = 0;
        int32_t zero[2] = { 0, 0 };
        double size = ldexp(1, (int)(bits64() % 200) - 100);
        for (size_t i = 0; i < 200; i++)
            x[i] = (float)((uniform() * 2 - 1) * size);
        affine_options o = { .axis = TN_PER_TENSOR, .symmetric = bits64() % 2,
                             .percentile = bits64() % 2 ? 0 : 90 };
        CHECK(affine_choose_scales(TN_INT8, &a, x, &o, &full, &zero[0], NULL) == TN_OK);
        o.scale_bits = 1 + (unsigned)(bits64() % 24);
        CHECK(affine_choose_scales(TN_INT8, &a, x, &o, &scale, &zero[1], NULL) == TN_OK);
        CHECK(bits_of(scale) <= o.scale_bits && (double)scale > (double)full * (1 - 0x1p-23));
        int power;
        frexpf(full, &power);
        CHECK((double)scale - (double)full <
              fmax(ldexp(1, power - (int)o.scale_bits), 0x1p-127) + (double)full * 0x1p-23);
        if (!o.symmetric && o.percentile == 0) {
            float low = x[0];
            for (size_t i = 1; i < 200; i++)
                low = x[i] < low ? x[i] : low;
            CHECK(zero[1] ==
                  (int32_t)fmin(fmax(nearbyint((double)(float)(-128 - (double)(low / scale))), -128), 127));
        }
    }
}

/* 32 bits: binary32 has no 2147483647, and its quotient by a scale may be 2^31, which is none of MLI's
 * integers. */
static void ends_are_not_cut_by_a_scale_of_few_bits(void)
{
    static const tn_dtype codes[] = { TN_INT8, TN_INT16, TN_INT32 };
    const int64_t n = 2;
    const tn_array v = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    for (int round = 0; round < 20000; round++) {
        affine_options o = { .axis = TN_PER_TENSOR, .symmetric = true,
                                  .scale_bits = 1 + (unsigned)(bits64() % 24),
                                  .round = (tn_round)(bits64() % 8),
                                  .arithmetic = (tn_arithmetic)(bits64() % 3), .jobs = 1 };
        tn_array c = { .dtype = codes[bits64() % 3], .rank = 1, .shape = &n };
        float most = (float)ldexp(0.5 + uniform() / 2, (int)(bits64() % 100) - 50), x[2] = { most, -most },
        scale = 0;
        x[0] = round % 7 ? most : 0.5f;
        x[1] = round % 7 ? -most : -0.5f;
        int32_t out[2] = { 0, 0 };
        CHECK(affine_choose_scales(c.dtype, &v, x, &o, &scale, NULL, NULL) == TN_OK);
        /* of int32, where nothing narrower is cut */
        o.range[0] = c.dtype == TN_INT32 ? INT32_MIN : -40000;
        o.range[1] = c.dtype == TN_INT32 ? INT32_MAX : 40000;
        int64_t highest = c.dtype == TN_INT8 ? 127 : c.dtype == TN_INT16 ? 32767 : INT32_MAX;
        c.dtype = TN_INT32;
        o.arithmetic = o.arithmetic == TN_ARITH_MLI ? TN_ARITH_MLI : TN_ARITH_EXACT;
        CHECK(affine_quantize(&c, out, &v, x, &scale, NULL, &o, NULL) == TN_OK);
        CHECK(out[0] > 0 && out[0] <= highest && out[1] < 0 && out[1] >= -highest);
        CHECK(bits_of(scale) <= o.scale_bits);
    }
    const float half[] = { 0.5f, -0.5f };
    const affine_options o = { .axis = TN_PER_TENSOR, .symmetric = true,
                                    .scale_bits = 15, .round = TN_ROUND_AWAY };
    float scale = 0;
    CHECK(affine_choose_scales(TN_INT32, &v, half, &o, &scale, NULL, NULL) == TN_OK && scale == 16385 * 0x1p-46f);
}

static void scales_of_few_bits_stay_finite(void)
{
    const float x[] = { -FLT_MAX, FLT_MAX };
    const int64_t n = 2;
    const tn_array a = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    for (unsigned bits = 1; bits <= 24; bits++) {
        const affine_options o = { .axis = TN_PER_TENSOR, .symmetric = true,
                                        .range = { -1, 1 }, .scale_bits = bits };
        float scale = 0;
        CHECK(affine_choose_scales(TN_INT8, &a, x, &o, &scale, NULL, NULL) == TN_OK);
        CHECK(scale == ldexpf(2 - ldexpf(1, 1 - (int)bits), 127));      /* the largest of so many bits */
    }
}

/* ---- refusals ---- */

static void check_refusal(affine_options o, tn_status status, const char *text)
{
    const int64_t n = 1;
    const float x = 1;
    float scale;
    int32_t zero;
    const tn_array a = { .dtype = TN_FLOAT32, .rank = 1, .shape = &n };
    tn_error err = { .text = "" };
    o.axis = TN_PER_TENSOR;
    CHECK(affine_choose_scales(TN_INT8, &a, &x, &o, &scale, &zero, &err) == status);
    assert_string_equal(said_of(&err), text);
}

static void what_makes_no_sense_is_refused_with_a_reason(void)
{
    const char *symmetric = "scales that are powers of two need symmetric codes";
    check_refusal((affine_options){ .power = true }, TN_ERR_ARGUMENT, symmetric);
    check_refusal((affine_options){ .rule = TN_SCALE_MSE, .power = true }, TN_ERR_ARGUMENT, symmetric);
    check_refusal((affine_options){ .scale_bits = 25 }, TN_ERR_ARGUMENT,
                  "expected a scale of at most 24 bits but found 25");
    check_refusal((affine_options){ .power = true, .symmetric = true, .round = (tn_round)8 },
                  TN_ERR_ARGUMENT,
                  "expected a rounding mode of 0 to 7 but found 8");
    check_refusal((affine_options){ .rule = TN_SCALE_MSE, .power = true, .symmetric = true,
                                         .arithmetic = (tn_arithmetic)3 },
                  TN_ERR_ARGUMENT, "expected an arithmetic of 0 to 2 but found 3");
    check_refusal((affine_options){ .rule = (tn_scale_rule)4 }, TN_ERR_ARGUMENT,
                  "int8,per=tensor,zero=asymmetric has no exponents as scales: expected the scale rule 0, 5 or 6 "
                  "but found 4");
    const tn_scale_index many = { .inner = 1, .count = 10000000 };
    const affine_options o = { .axis = 0, .rule = TN_SCALE_MSE, .power = true, .symmetric = true };
    const tn_affine affine = affine_of(TN_INT8, &o);
    const tn_quantize_options rules = affine_rules(&o);
    tn_scale_tally *tally;
    tn_error err;
    CHECK(tn_scale_tally_new(&affine, &rules, TN_FLOAT32, many, &tally, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "expected at most 2314098 scales by least error but found 10000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_power_that_was_tried_is_worse),
        TEST(values_that_just_fit_are_told_from_those_that_do_not),
        TEST(tiny_huge_and_missing_values_have_a_power),
        TEST(one_far_value_is_cut_when_that_is_the_least_error),
        TEST(values_of_other_float_types_are_looked_at_as_float32),
        TEST(threads_do_not_change_powers),
        TEST(windows_in_any_order_by_any_thread_find_the_same_powers),
        TEST(sums_that_are_full_stay_full),
        TEST(scales_of_few_bits_are_the_next_above),
        TEST(ends_are_not_cut_by_a_scale_of_few_bits),
        TEST(scales_of_few_bits_stay_finite),
        TEST(what_makes_no_sense_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
