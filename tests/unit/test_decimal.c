#include "support.h"

#include <math.h>
#include <stdio.h>

#include "random.h"
#include "tensor/decimal.h"

static double by_the_c_library(tn_decimal d)
{
    char text[48];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)d.digits, d.exponent);
    return strtod(text, NULL);
}

static void check_read(uint64_t digits, int exponent)
{
    const tn_decimal d = { digits, exponent };
    CHECK(tn_decimal_read(d) == by_the_c_library(d));
}

static void decimals_are_read_as_the_nearest_double(void)
{
    const uint64_t edge = UINT64_C(1) << 53;
    for (int e = -30; e <= 30; e++) {
        for (uint64_t step = 0; step < 5; step++)
            check_read(edge - 2 + step, e);
        for (int i = 0; i < 2000; i++)
            check_read(bits64() >> below(64), e);
        check_read(0, e);
        check_read(UINT64_MAX, e);
    }
    check_read(1, 308);
    check_read(1, 9999);
    check_read(5, -324);
    check_read(1, -9999);
}

static void check_shortest(tn_dtype dtype, double x, uint64_t digits, int exponent)
{
    tn_decimal d = tn_decimal_shortest(tn_dtype_get(dtype), x);
    CHECK(d.digits == digits && d.exponent == exponent);
}

static void the_fewest_digits_have_no_zeros_at_their_end(void)
{
    check_shortest(TN_FLOAT64, 0.1, 1, -1);
    check_shortest(TN_FLOAT64, 1200, 12, 2);
    check_shortest(TN_FLOAT64, 1e22, 1, 22);
    check_shortest(TN_FLOAT64, (double)0.1f, UINT64_C(10000000149011612), -17);
    check_shortest(TN_FLOAT32, (double)0.1f, 1, -1);
    check_shortest(TN_FLOAT32, 16777216, 16777216, 0);
    check_shortest(TN_FLOAT16, 65504, 655, 2);
    check_shortest(TN_FLOAT16, 0x1p-24, 6, -8);
}

static void the_next_decimal_above_a_power_of_two_may_do(void)
{
    /* 17 digits: 5.6843418860808015e-14 */
    check_shortest(TN_FLOAT64, 0x1p-44, UINT64_C(5684341886080802), -29);
    check_shortest(TN_FLOAT32, 0x1p-96, 12621775, -36);                         /* 1.26217745e-29 */
}

static void subnormal_numbers_need_few_digits(void)
{
    check_shortest(TN_FLOAT64, 0x1p-1074, 5, -324);
    check_shortest(TN_FLOAT64, 0x1p-1073, 1, -323);
    check_shortest(TN_FLOAT64, 0x1p-1022, UINT64_C(22250738585072014), -324);
    check_shortest(TN_FLOAT32, 0x1p-149, 1, -45);
    check_shortest(TN_FLOAT64, 0x1p-149, UINT64_C(1401298464324817), -60);
}

/* The first 17 digits of these end in a 5 that stands for a little less, or more. */
static void a_half_is_rounded_by_the_number_itself(void)
{
    check_shortest(TN_FLOAT64, 0.9078119751144988, UINT64_C(9078119751144988), -16);
    check_shortest(TN_FLOAT64, 591.7933977592108, UINT64_C(5917933977592108), -13);
    check_shortest(TN_FLOAT64, 94.77080919973785, UINT64_C(9477080919973785), -14);
    check_shortest(TN_FLOAT64, 72683.15288564783, UINT64_C(7268315288564783), -11);
    check_shortest(TN_FLOAT64, 9.229762021759536, UINT64_C(9229762021759536), -15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(decimals_are_read_as_the_nearest_double),
        TEST(the_fewest_digits_have_no_zeros_at_their_end),
        TEST(the_next_decimal_above_a_power_of_two_may_do),
        TEST(subnormal_numbers_need_few_digits),
        TEST(a_half_is_rounded_by_the_number_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
