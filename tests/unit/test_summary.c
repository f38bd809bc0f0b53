/* Statistics of elements in memory: every type against a plain two-pass computation. */
#include "support.h"

#include <float.h>
#include <math.h>

#include "random.h"
#include "cast/summary.h"

static double as_double(tn_value v, bool imaginary)
{
    switch (v.kind) {
    case TN_KIND_INT: case TN_KIND_FIXED: return (double)v.i;
    case TN_KIND_UINT: case TN_KIND_BOOL: return (double)v.u;
    default: return imaginary ? v.im : v.re;
    }
}

/* The figures, as the header describes them. */
static tn_statistics expected(tn_dtype dtype, const void *data, size_t n)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    tn_statistics s = { .min = (double)INFINITY, .max = -(double)INFINITY };
    double normal = type->exponent_bits && type->specials != TN_SPECIALS_E8M0 ? ldexp(1, 1 - type->bias) : 0;
    size_t halves = type->kind == TN_KIND_COMPLEX ? 2 : 1;
    long double sum = 0, spread = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < halves * n; i++) {
            double x = as_double(tn_value_get(dtype, data, i / halves), i % halves);
            if (pass) {
                spread += isfinite(x) ? ((long double)x - sum) * ((long double)x - sum) : 0;
                continue;
            }
            s.count++;
            s.nans += isnan(x) != 0;
            s.infinities += isinf(x) != 0;
            s.zeros += x == 0;
            if (!isfinite(x))
                continue;
            s.finite++;
            sum += x;
            s.min = fmin(s.min, x);
            s.max = fmax(s.max, x);
            s.subnormals += x != 0 && fabs(x) < normal;
            if (x != 0) {
                int k = ilogb(x) - TN_STATS_LOW;
                s.histogram[k < 0 ? 0 : k >= TN_STATS_BINS ? TN_STATS_BINS - 1 : k]++;
            }
        }
        if (!pass)
            sum /= (long double)s.finite;
    }
    s.mean = (double)sum;
    s.deviation = (double)sqrtl(spread / (long double)s.finite);
    s.absmax = fmax(fabs(s.min), fabs(s.max));
    return s;
}

static bool near(double a, double b, double size)
{
    return fabs(a - b) <= 1e-11 * size;
}

static void check_figures(tn_dtype dtype, const tn_statistics *a, const tn_statistics *b)
{
    bool same = a->count == b->count && a->zeros == b->zeros && a->subnormals == b->subnormals &&
                a->nans == b->nans && a->infinities == b->infinities && a->finite == b->finite &&
                a->min == b->min && a->max == b->max && a->absmax == b->absmax &&
                memcmp(a->histogram, b->histogram, sizeof a->histogram) == 0;
    if (!same || !near(a->mean, b->mean, b->absmax) || !near(a->deviation, b->deviation, b->absmax))
        fail_msg("%s: mean %g, expected %g; deviation %g, expected %g; %s counts", tn_dtype_get(dtype)->name,
                 a->mean, b->mean, a->deviation, b->deviation, same ? "same" : "other");
}

static tn_statistics figures_of(tn_dtype dtype, const void *data, size_t n)
{
    tn_span span;
    tn_span_begin(&span, dtype);
    tn_span_add(&span, data, n);
    return tn_span_end(&span);
}

static void every_type_has_its_figures(void)
{
    enum { N = 5003 };
    uint64_t data[2 * N + 2];
    for (unsigned t = 1; t < TN_DTYPE_COUNT; t++) {
        tn_dtype dtype = (tn_dtype)t;
        for (size_t i = 0; i < sizeof data / sizeof *data; i++)
            data[i] = bits64();
        for (size_t n = 1; n <= N; n += n < 20 ? 1 : 1661) {
            uint8_t *copy = exact_copy(data, (n * tn_dtype_get(dtype)->bits + 7) / 8);
            tn_statistics a = figures_of(dtype, copy, n), b = expected(dtype, copy, n);
            if (b.finite)
                check_figures(dtype, &a, &b);
            free(copy);
        }
    }
}

static void nothing_finite_has_no_range(void)
{
    static const float none[] = { NAN, INFINITY, -INFINITY };
    for (size_t n = 0; n <= 3; n++) {
        tn_statistics s = figures_of(TN_FLOAT32, none, n);
        CHECK(s.count == n && s.finite == 0 && isnan(s.min) && isnan(s.max) && isnan(s.mean) &&
              isnan(s.deviation) && isnan(s.absmax));
    }
}

static void minus_zero_is_zero(void)
{
    static const float zeros[] = { -0.0f, 0.0f, -0.0f };
    tn_statistics s = figures_of(TN_FLOAT32, zeros, 3);
    CHECK(s.zeros == 3 && !signbit(s.min) && !signbit(s.max) && s.min == 0 && s.deviation == 0);
}

/* Far from zero and close together: sums of plain squares would say nothing. */
static void a_large_mean_does_not_drown_the_deviation(void)
{
    static double x[10000];
    static float y[10000];
    for (size_t i = 0; i < 10000; i++) {
        x[i] = 1e9 + (double)(i % 3) - 1;
        y[i] = 1e6f + (float)(i % 2);
    }
    tn_statistics s = figures_of(TN_FLOAT64, x, 9999);
    CHECK(s.mean == 1e9 && fabs(s.deviation - sqrt(2.0 / 3)) < 1e-12);
    s = figures_of(TN_FLOAT32, y, 10000);
    CHECK(s.mean == 1e6 + 0.5 && s.deviation == 0.5);
}

static void joined_summaries_are_those_of_the_whole(void)
{
    static float x[6000];
    for (size_t i = 0; i < 6000; i++)
        x[i] = (float)(int32_t)bits64() * 0x1p-31f + (i < 3000 ? 0 : 5);
    x[17] = NAN;
    tn_statistics all = tn_statistics_empty(), copy = all;
    for (size_t at = 0; at < 6000; at += 1000) {
        tn_statistics next = figures_of(TN_FLOAT32, x + at, 1000), none = tn_statistics_empty();
        tn_statistics_join(&all, &next);
        tn_statistics_join(&all, &none);        /* changes nothing */
    }
    tn_statistics whole = expected(TN_FLOAT32, x, 6000);
    check_figures(TN_FLOAT32, &all, &whole);
    tn_statistics_join(&copy, &all);
    CHECK(memcmp(&copy, &all, sizeof all) == 0);
}

/* Also where their squares are beyond a double, and where they come late. */
static void huge_numbers_have_a_deviation(void)
{
    static const double x[] = { 1e300, -1e300, 1.5e300, 0 }, far[] = { 1.7e308, 1.6e308 };
    static double late[9000];
    tn_statistics s = figures_of(TN_FLOAT64, x, 4), whole = expected(TN_FLOAT64, x, 4);
    check_figures(TN_FLOAT64, &s, &whole);
    s = figures_of(TN_FLOAT64, far, 2);
    CHECK(fabs(s.mean - 1.65e308) < 1e294 && fabs(s.deviation - 5e306) < 1e294);
    for (size_t i = 0; i < 9000; i++)
        late[i] = i < 8999 ? 1e150 : -1e200;
    tn_span span;
    tn_span_begin(&span, TN_FLOAT64);
    tn_span_add(&span, late, 4096);
    tn_span_add(&span, late + 4096, 9000 - 4096);
    s = tn_span_end(&span);
    whole = expected(TN_FLOAT64, late, 9000);
    check_figures(TN_FLOAT64, &s, &whole);
    tn_statistics other = figures_of(TN_FLOAT64, x, 4);
    tn_statistics_join(&s, &other);
    CHECK(isfinite(s.mean) && isfinite(s.deviation) && s.deviation > 1e298);
}

/* Also when their difference is beyond a double, within a span and between spans. */
static void the_farthest_numbers_have_a_mean(void)
{
    enum { FEW = 300, MANY = 100000 };
    static double x[FEW + MANY];
    for (size_t i = 0; i < FEW + MANY; i++)
        x[i] = i < FEW ? DBL_MAX : -DBL_MAX;
    tn_statistics s = figures_of(TN_FLOAT64, x, FEW + MANY), whole = expected(TN_FLOAT64, x, FEW + MANY);
    CHECK(isfinite(whole.mean) && whole.mean < -1.7e308 && isfinite(whole.deviation));
    check_figures(TN_FLOAT64, &s, &whole);
    for (size_t cut = FEW; cut <= FEW + MANY / 2; cut += MANY / 2) {
        tn_statistics a = figures_of(TN_FLOAT64, x, cut),
                      b = figures_of(TN_FLOAT64, x + cut, FEW + MANY - cut), c = b;
        tn_statistics_join(&b, &a);
        tn_statistics_join(&a, &c);
        check_figures(TN_FLOAT64, &a, &whole);
        check_figures(TN_FLOAT64, &b, &whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_has_its_figures),
        TEST(nothing_finite_has_no_range),
        TEST(minus_zero_is_zero),
        TEST(a_large_mean_does_not_drown_the_deviation),
        TEST(joined_summaries_are_those_of_the_whole),
        TEST(huge_numbers_have_a_deviation),
        TEST(the_farthest_numbers_have_a_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
