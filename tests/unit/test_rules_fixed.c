/* Rules of casts to the types of embARC MLI: fx8, fx16, sa8, sa32. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "rules.h"

static void fixed_point_is_codes_of_all_bits_with_a_power_of_two(void)
{
    tn_cast_rule rule = good("*.weight=fx16");
    const tn_quantize_options *q = &rule.quantize;
    const tn_affine *a = &rule.affine;
    CHECK(strcmp(rule.glob, "*.weight") == 0 && rule.dtype == TN_INT16 && rule.quantized && !a->has_zeros &&
          !*rule.axis);
    CHECK(q->rule == TN_SCALE_MAX && a->power && a->symmetric && a->range[0] == -32768 && a->range[1] == 32767 &&
          a->arithmetic == TN_ARITH_EXACT);
    CHECK(q->round == TN_ROUND_AWAY && !rule.round_given && rule.zero == 0);
    rule = good("fx8");
    CHECK(rule.dtype == TN_INT8 && a->range[0] == -128 && a->range[1] == 127);
    CHECK(good("FX8").quantized && good("MLI_EL_FX_8").quantized &&
          good("MLI_EL_FX_16,frac=3").dtype == TN_INT16);
    CHECK(good("fx8,frac=auto").quantize.rule == TN_SCALE_MAX &&
          good("fx8,frac=least").quantize.rule == TN_SCALE_MSE);
}

static void frac_is_a_number_that_a_scale_can_have(void)
{
    for (int n = -127; n <= 126; n++) {
        char text[32];
        snprintf(text, sizeof text, "fx8,frac=%d", n);
        tn_cast_rule rule = good(text);
        CHECK(rule.quantize.rule == TN_SCALE_GIVEN && rule.scale == ldexpf(1, -n));
    }
    static const char *const wrong[] = { "127", "-128", "", "x", "1.5", "AUTO", "2147483648", "+1", " 1" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[32], why[120];
        snprintf(text, sizeof text, "fx16,frac=%s", wrong[i]);
        snprintf(why, sizeof why,
                 "\"%s\" at character 11 is neither auto, least nor a number from -127 to 126", wrong[i]);
        bad(text, why);
    }
}

static void affine_is_codes_with_zeros_and_scales_of_15_bits(void)
{
    tn_cast_rule rule = good("sa8");
    const tn_quantize_options *q = &rule.quantize;
    const tn_affine *a = &rule.affine;
    CHECK(rule.dtype == TN_INT8 && rule.quantized && a->has_zeros && !*rule.axis &&
          q->rule == TN_SCALE_MAX && a->symmetric);
    CHECK(a->range[0] == -128 && a->range[1] == 127 && a->scale_bits == 15 &&
          a->arithmetic == TN_ARITH_EXACT && q->round == TN_ROUND_AWAY);
    rule = good("sa32,per=channel,axis=0,round=even,nan=zero,seed=4");
    CHECK(rule.dtype == TN_INT32 && strcmp(rule.axis, "0") == 0 && a->range[0] == INT32_MIN &&
          a->range[1] == INT32_MAX);
    CHECK(q->round == TN_ROUND_EVEN && rule.round_given && q->nan == TN_NAN_ZERO && q->seed == 4);
    rule = good("sa8,zero=asymmetric,percentile=99.9");
    CHECK(!a->symmetric && q->rule == TN_SCALE_MAX && q->percentile == 99.9 && a->has_zeros);
    rule = good("SA8,per=tensor,scale=0.75,zero=-5");
    CHECK(q->rule == TN_SCALE_GIVEN && rule.scale == 0.75f && rule.zero == -5 && !a->symmetric);
    CHECK(good("sa32,scale=2,zero=-32768").zero == -32768);
    CHECK(!good("int8,per=tensor").affine.has_zeros &&
          good("int8,per=tensor").affine.arithmetic == TN_ARITH_BINARY32);
}

static void a_given_scale_that_mli_cannot_hold_names_its_neighbours(void)
{
    CHECK(good("sa8,scale=32767").scale == 32767 && good("sa8,scale=65534").scale == 65534 &&
          good("sa8,scale=32768").scale == 32768);
    bad("sa8,scale=32769", "expected a scale of at most 15 significant bits, none below 2^-127, but found "
                           "32769.0: the nearest are 32768.0 and 32770.0");
    bad("sa8,scale=65535", "expected a scale of at most 15 significant bits, none below 2^-127, but found "
                           "65535.0: the nearest are 65534.0 and 65536.0");
    bad("sa8,scale=1.3e-38",
        "expected a scale of at most 15 significant bits, none below 2^-127, but found 1.3e-38: "
        "the nearest are 1.1754944e-38 and 1.7632415e-38");
    bad("sa8,scale=0.1", "expected a scale of at most 15 significant bits, none below 2^-127, but found 0.1: "
                         "the nearest are 0.099998474 and 0.10000229");
    CHECK(good("sa8,scale=0.099998474").scale == 26214 * 0x1p-18f &&
          good("sa8,scale=0.10000229").scale == 26215 * 0x1p-18f);
    CHECK(good("int8,per=tensor,scale=0.1").scale == 0.1f);             /* no MLI */
}

static void keys_belong_to_their_type(void)
{
    static const char fixed[] =
        "no key of fx8 and fx16 (frac, mode, percentile, round, overflow, underflow, nan, seed, rotate, virtual, compat)";
    static const char affine[] =
        "no key of sa8 and sa32 (per, axis, zero, percentile, scale, mode, round, overflow, underflow, nan, seed, rotate, virtual, compat)";
    static const char *const not_fixed[] = { "per=tensor", "axis=0", "zero=0", "store=packed", "scale=1",
                                             "times=2", "complex=real", "dialect=ocp" };
    static const char *const not_affine[] = { "frac=auto", "times=2", "store=packed", "complex=real",
                                              "store=packed", "dialect=ocp" };
    char text[64], why[240];
    for (size_t i = 0; i < sizeof not_fixed / sizeof *not_fixed; i++) {
        snprintf(text, sizeof text, "fx8,%s", not_fixed[i]);
        snprintf(why, sizeof why, "\"%.*s\" at character 5 is %s", (int)strcspn(not_fixed[i], "="),
                 not_fixed[i], fixed);
        bad(text, why);
    }
    for (size_t i = 0; i < sizeof not_affine / sizeof *not_affine; i++) {
        snprintf(text, sizeof text, "sa8,%s", not_affine[i]);
        snprintf(why, sizeof why, "\"%.*s\" at character 5 is %s", (int)strcspn(not_affine[i], "="),
                 not_affine[i], affine);
        bad(text, why);
    }
    bad("int8,frac=3", "\"frac\" at character 6 is no key of an element type (round, overflow, underflow, nan, seed, "
                       "times, complex, per, axis, zero, "
                       "percentile, scale, mode, rotate, virtual, compat)");
    bad("mxfp4,frac=3", "\"frac\" at character 7 is no key of a datatype (round, overflow, underflow, nan, seed, mode, "
                        "percentile, store, dialect, rotate, virtual, importance)");
    bad("sa16", "unknown type \"sa16\" at character 1 (type)");
    bad("fx32", "unknown type \"fx32\" at character 1: did you mean \"f32\"? (type)");
    bad("fx8,frac=1,frac=1", "\"frac\" at character 12 is there a second time");
}

static void keys_of_affine_codes_must_go_together(void)
{
    bad("sa8,per=channel", "per=channel and axis=DIMENSION go together");
    bad("sa8,axis=0", "per=channel and axis=DIMENSION go together");
    bad("sa8,scale=1,percentile=9", "a scale is given or found by a percentile, not both");
    bad("sa8,zero=3", "a zero point by number needs a scale too");
    bad("sa8,scale=1,zero=32768", "expected a zero point from -32768 to 32767 but found 32768");
    bad("sa8,scale=1,zero=asymmetric",
        "zero=asymmetric finds zero points for scales that are found: beside a scale say zero=NUMBER");
    bad("sa32,scale=1,zero=32768", "expected a zero point from -32768 to 32767 but found 32768");
    bad("sa32,zero=asymmetric", "sa32 is symmetric or has a zero point by number: one that is found would "
                                "not fit the 16 bits it has");
    CHECK(good("sa32,zero=symmetric").affine.symmetric);
}

static void compat_is_mlis_arithmetic(void)
{
    CHECK(good("fx8,compat=mli").affine.arithmetic == TN_ARITH_MLI &&
          good("sa32,compat=mli,round=even").affine.arithmetic == TN_ARITH_MLI);
    CHECK(good("f32,compat=mli").affine.arithmetic == TN_ARITH_MLI && !good("f32,compat=mli").quantized);
    CHECK(good("f32").affine.arithmetic == TN_ARITH_BINARY32);
    CHECK(good("fx8,compat=mli,round=half_up").quantize.round == TN_ROUND_HALF_UP);
    bad("fx8,compat=tflite", "\"tflite\" at character 12 is not \"mli\"");
    bad("fx8,compat=mli,round=trunc",
        "compat=mli rounds values away, codes half_up or even, but found round=trunc");
    bad("sa8,compat=mli,round=stochastic",
        "compat=mli rounds values away, codes half_up or even, but found round=stochastic");
    static const char why[] =
        "compat=mli is for fx8, fx16, sa8 and sa32, and for the float types that they become";
    bad("int8,compat=mli", why);
    bad("int8,per=tensor,compat=mli", why);
    bad("complex64,compat=mli", why);
}

static void a_rounding_is_the_types_own_unless_somebody_said_it(void)
{
    tn_cast_rule defaults = { .options = { .size = sizeof defaults.options }, .is_virtual = true };
    tn_cast_rule rule = good_with("fx8", &defaults);
    CHECK(rule.options.round == TN_ROUND_AWAY && !rule.round_given && rule.is_virtual);
    CHECK(!good_with("f16", &defaults).is_virtual);
    defaults.round_given = true;                                        /* --round even */
    rule = good_with("fx8", &defaults);
    CHECK(rule.quantize.round == TN_ROUND_EVEN && rule.round_given);
    defaults = (tn_cast_rule){ .options = { .size = sizeof defaults.options, .round = TN_ROUND_DOWN,
                                            .nan = TN_NAN_ZERO, .seed = 9 } };
    rule = good_with("sa8", &defaults);
    CHECK(rule.quantize.round == TN_ROUND_DOWN && rule.round_given && rule.quantize.nan == TN_NAN_ZERO &&
          rule.quantize.seed == 9);
    CHECK(good_with("fx8,round=up", &defaults).quantize.round == TN_ROUND_UP);
    CHECK(good("f16,round=even").round_given && !good("f16").round_given);
}

/* Every prefix, and every bit changed, on copies that end where the text does. */
static void damage(const char *whole)
{
    size_t size = strlen(whole) + 1;
    for (size_t n = 0; n < size + 8 * size; n++) {
        char *copy = (char *)exact_copy(whole, n < size ? n + 1 : size);
        tn_cast_rule rule;
        tn_error err = { .text = "" };
        if (n < size)
            copy[n] = '\0';
        else if ((n - size) / 8 < size - 1)
            copy[(n - size) / 8] = (char)(copy[(n - size) / 8] ^ 1 << (n - size) % 8);
        tn_status status = tn_cast_rule_parse(copy, NULL, &rule, &err);
        CHECK(status == TN_OK || (status == TN_ERR_ARGUMENT && err.status == status && err.text[0]));
        if (!status)
            tn_cast_rule_free(&rule);
        free(copy);
    }
}

static void damaged_rules_are_refused_or_read(void)
{
    damage("h.*=fx16,frac=-12,round=stochastic,seed=12,nan=zero");
    damage("w=sa8,per=channel,axis=-1,zero=asymmetric,percentile=99.5,compat=mli");
    damage("sa32,scale=0.0078125,zero=-7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fixed_point_is_codes_of_all_bits_with_a_power_of_two),
        TEST(frac_is_a_number_that_a_scale_can_have),
        TEST(affine_is_codes_with_zeros_and_scales_of_15_bits),
        TEST(a_given_scale_that_mli_cannot_hold_names_its_neighbours),
        TEST(keys_belong_to_their_type),
        TEST(keys_of_affine_codes_must_go_together),
        TEST(compat_is_mlis_arithmetic),
        TEST(a_rounding_is_the_types_own_unless_somebody_said_it),
        TEST(damaged_rules_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
