/* How far two runs of elements are apart: what is a difference, what is special, and how large. */
#include "support.h"

#include <float.h>
#include <math.h>

#include "verbs/metrics.h"

static tn_distance between(tn_dtype type_a, const void *a, tn_dtype type_b, const void *b, size_t n)
{
    tn_distance d = { 0 };
    tn_distance_add(&d, (tn_elements){ type_a, a }, (tn_elements){ type_b, b }, 0, n);
    return d;
}

static tn_distance between_doubles(double a, double b)
{
    return between(TN_FLOAT64, &a, TN_FLOAT64, &b, 1);
}

static tn_distance between_complex(double a, double a_im, double b, double b_im)
{
    const double x[] = { a, a_im }, y[] = { b, b_im };
    return between(TN_COMPLEX128, x, TN_COMPLEX128, y, 1);
}

static void near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-15 * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", value, expected);
}

static void only_nan_and_infinity_are_special(void)
{
    CHECK(between_doubles(1, NAN).specials == 1 && between_doubles(NAN, 1).specials == 1);
    CHECK(between_doubles(INFINITY, 1).specials == 1 && between_doubles(INFINITY, -INFINITY).specials == 1);
    CHECK(between_doubles(1, 2).specials == 0);
    CHECK(between_complex(1, INFINITY, 1, 2).specials == 1 && between_complex(1, 2, NAN, 2).specials == 1);
    CHECK(between_complex(1, 2, 1, 3).specials == 0);
    const double nan = NAN;
    const int64_t one = 1;
    CHECK(between(TN_FLOAT64, &nan, TN_INT64, &one, 1).specials == 1);
    CHECK(between(TN_INT64, &one, TN_FLOAT64, &nan, 1).specials == 1);
}

static void special_values_are_in_no_figure(void)
{
    tn_distance d = between_doubles(INFINITY, 1);
    CHECK(d.differing == 1 && d.max_abs == 0 && d.max_rel == 0 && d.max_ulp == 0 && d.signal == 0 &&
          d.noise == 0);
    d = between_complex(3, INFINITY, 1, 2);
    CHECK(d.differing == 1 && d.max_abs == 0 && d.max_rel == 0 && d.max_ulp == 0 && d.signal == 0 &&
          d.noise == 0);
}

/* The difference is infinite as a double, what is told in relation to a is not. */
static void finite_numbers_further_apart_than_a_double_can_say_are_not_special(void)
{
    tn_distance d = between_doubles(DBL_MAX, -DBL_MAX);
    CHECK(d.differing == 1 && d.specials == 0 && isinf(d.max_abs));
    CHECK(d.max_rel == 2 && d.max_ulp == 2 * (0x1p53 - 1));
    d = between_doubles(-0x1p1000, DBL_MAX);
    CHECK(d.specials == 0 && !isinf(d.max_rel) && !isinf(d.max_ulp));
    CHECK(isnan(tn_distance_sqnr(&d)));
    const int64_t one = 1;
    const double most = DBL_MAX;
    d = between(TN_FLOAT64, &most, TN_INT64, &one, 1);
    CHECK(d.specials == 0 && d.max_abs == DBL_MAX && d.max_rel == 1);
}

static void huge_complex_numbers_are_not_special(void)
{
    tn_distance d = between_complex(DBL_MAX, DBL_MAX, -DBL_MAX, -DBL_MAX);
    CHECK(d.differing == 1 && d.specials == 0 && isinf(d.max_abs) && d.max_ulp == 2 * (0x1p53 - 1));
    near(d.max_rel, 2);
    d = between_complex(DBL_MAX, DBL_MAX, DBL_MAX, 0);      /* only |a| is beyond a double */
    CHECK(d.specials == 0 && d.max_abs == DBL_MAX);
    near(d.max_rel, sqrt(0.5));
    d = between_complex(0, 0, DBL_MAX, DBL_MAX);
    CHECK(d.specials == 0 && isinf(d.max_abs) && d.max_rel == 0);
}

/* Found is first what comes first, added up is all. */
static void joining_appends_what_later_elements_say(void)
{
    const double a[] = { 1, 2, 4 }, b[] = { 1, 2.5, 3 };
    tn_distance whole = between(TN_FLOAT64, a, TN_FLOAT64, b, 3), parts = { 0 }, next = { 0 };
    tn_distance_add(&parts, (tn_elements){ TN_FLOAT64, (const uint8_t *)a },
                    (tn_elements){ TN_FLOAT64, (const uint8_t *)b }, 0, 1);
    CHECK(parts.differing == 0);
    tn_distance_add(&next, (tn_elements){ TN_FLOAT64, (const uint8_t *)(a + 1) },
                    (tn_elements){ TN_FLOAT64, (const uint8_t *)(b + 1) }, 1, 2);
    tn_distance_join(&parts, &next);
    CHECK(memcmp(&parts, &whole, sizeof whole) == 0);
    CHECK(whole.differing == 2 && whole.first == 1 && whole.max_abs == 1 && whole.max_rel == 0.25);
    CHECK(whole.signal == 21 && whole.noise == 1.25);
}

static void values_that_became_zero_are_counted(void)
{
    const float a[] = { 1, 0, -2, NAN, INFINITY, 3, -0.0f }, b[] = { 0, 0, -0.0f, 0, 0, 3, 1 };
    const int64_t whole[] = { 1, 0, -2, 4, 5, 3, 0 };
    CHECK(between(TN_FLOAT32, a, TN_FLOAT32, b, 7).flushed == 2);
    CHECK(between(TN_INT64, whole, TN_FLOAT32, b, 7).flushed == 4);
    CHECK(between_complex(0, 1, 0, 0).flushed == 1 && between_complex(0, 1, 0, 1e-300).flushed == 0);
    tn_distance sum = between(TN_FLOAT32, a, TN_FLOAT32, b, 3),
                rest = between(TN_FLOAT32, a, TN_FLOAT32, b, 1);
    tn_distance_join(&sum, &rest);
    CHECK(sum.flushed == 3);
}

/* -2 to 6 for the first ten elements, then a scale of 0. */
static void get_limits(void *context, uint64_t first, size_t n, double *low, double *high)
{
    (void)context;
    for (size_t i = 0; i < n; i++) {
        low[i] = first + i < 10 ? -2 : 0;
        high[i] = first + i < 10 ? 6 : 0;
    }
}

static uint64_t saturated(tn_dtype type_a, const void *a, const float *b, uint64_t from, size_t n)
{
    const tn_limits limits = { get_limits, NULL };
    tn_distance d = { .limits = &limits };
    tn_distance_add(&d, (tn_elements){ type_a, a }, (tn_elements){ TN_FLOAT32, (const uint8_t *)b }, from, n);
    return d.saturated;
}

static void only_finite_values_beyond_the_last_number_are_saturated(void)
{
    const float a[] = { 7, 6, 5.5f, -2.5f, -2, INFINITY, NAN, 7, 6.0001f },
    b[] = { 6, 6, 6, -2, -2, 6, 6, 4, 6 };
    const int64_t whole[] = { 7, 6, 5, -3, -2, 100, 0, 7, 6 };
    const double wide[] = { 6.0000000001, 1, 1, 1, 1, 1, 1, 1, 1 };
    const float zeros[4] = { 0 };
    CHECK(saturated(TN_FLOAT32, a, b, 0, 9) == 3);
    CHECK(saturated(TN_INT64, whole, b, 0, 9) == 3);
    CHECK(saturated(TN_FLOAT64, wide, b, 0, 9) == 1);
    CHECK(saturated(TN_FLOAT32, a, zeros, 10, 4) == 0);
    tn_distance sum = { .saturated = 2 }, next = { .saturated = 3 };
    tn_distance_join(&sum, &next);
    CHECK(sum.saturated == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_nan_and_infinity_are_special),
        TEST(special_values_are_in_no_figure),
        TEST(finite_numbers_further_apart_than_a_double_can_say_are_not_special),
        TEST(huge_complex_numbers_are_not_special),
        TEST(joining_appends_what_later_elements_say),
        TEST(values_that_became_zero_are_counted),
        TEST(only_finite_values_beyond_the_last_number_are_saturated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
