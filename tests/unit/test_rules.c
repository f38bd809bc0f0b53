/* Rules: [GLOB=]TYPE[,KEY=VALUE...] of casts (those of datatypes: test_rules_datatype.c, of MLI's types:
 * test_rules_fixed.c), [GLOB=]LAYOUT[,from=LAYOUT], [GLOB=]DIM=N[,DIM=N...][,value=V]. */
#include "support.h"

#include <stdio.h>

#include "rules.h"

static void a_type_alone_is_for_all_names(void)
{
    tn_cast_rule rule = good("bf16");
    CHECK(strcmp(rule.glob, "*") == 0 && rule.dtype == TN_BFLOAT16);
    CHECK(rule.options.size == sizeof rule.options && rule.options.round == TN_ROUND_EVEN &&
          rule.options.scale == 0);
    CHECK(good("F8_E4M3").dtype == TN_FLOAT8_E4M3FN && good("torch.float16").dtype == TN_FLOAT16 &&
          good("<f4").dtype == TN_FLOAT32);
}

static void a_glob_ends_at_the_last_equals_before_the_first_comma(void)
{
    tn_cast_rule rule = good("a=b.*=f16,times=2");
    CHECK(strcmp(rule.glob, "a=b.*") == 0 && rule.dtype == TN_FLOAT16 && rule.options.scale == 2);
    rule = good("*norm*=f32");
    CHECK(strcmp(rule.glob, "*norm*") == 0 && rule.dtype == TN_FLOAT32);
    rule = good(" x =f32");                 /* names may have spaces */
    CHECK(strcmp(rule.glob, " x ") == 0);
}

static void every_key_sets_its_option(void)
{
    tn_cast_options o =
        good("i8,round=stochastic,overflow=error,nan=zero,seed=18446744073709551615,times=-0.25,complex=real")
            .options;
    CHECK(o.round == TN_ROUND_STOCHASTIC && o.overflow == TN_OVERFLOW_ERROR && o.nan == TN_NAN_ZERO &&
          o.seed == UINT64_MAX);
    CHECK(o.scale == -0.25f && o.drop_imaginary && o.first == 0 && o.jobs == 0);
    static const char *const rounds[] = { "even", "away", "zero", "half_up", "trunc", "up", "down",
                                          "stochastic" };
    static const char *const overflows[] = { "default", "saturate", "inf", "nan", "error" };
    static const char *const nans[] = { "keep", "zero", "error" };
    char text[64];
    for (unsigned i = 0; i < 8; i++) {
        snprintf(text, sizeof text, "f16,round=%s", rounds[i]);
        CHECK(good(text).options.round == (tn_round)i);
        snprintf(text, sizeof text, "f16,overflow=%s", overflows[i % 5]);
        CHECK(good(text).options.overflow == (tn_overflow)(i % 5));
        snprintf(text, sizeof text, "f16,nan=%s", nans[i % 3]);
        CHECK(good(text).options.nan == (tn_nan)(i % 3));
    }
}

static void what_the_text_does_not_say_comes_from_the_defaults(void)
{
    tn_cast_rule rule;
    tn_cast_rule defaults = { .options = { .size = sizeof defaults.options, .round = TN_ROUND_DOWN,
                                           .overflow = TN_OVERFLOW_NAN,
                                           .seed = 7, .nan = TN_NAN_ERROR, .drop_imaginary = true,
                                           .jobs = 3 },
                              .is_virtual = true };
    CHECK(tn_cast_rule_parse("f16,round=up,nan=keep", &defaults, &rule, NULL) == TN_OK);
    CHECK(rule.options.round == TN_ROUND_UP && rule.options.nan == TN_NAN_KEEP);
    CHECK(rule.options.overflow == TN_OVERFLOW_NAN && rule.options.seed == 7 && rule.options.drop_imaginary);
    CHECK(!rule.is_virtual);                                /* elements of another type are no pretence */
    CHECK(rule.options.size == sizeof rule.options);
}

static void codes_with_scales_take_no_default_for_overflow_but_what_they_do(void)
{
    static const tn_overflow all[] = { TN_OVERFLOW_DEFAULT, TN_OVERFLOW_ERROR, TN_OVERFLOW_SATURATE,
                                       TN_OVERFLOW_INF, TN_OVERFLOW_NAN };
    static const char *const words[] = { "default", "error", "saturate", "inf", "nan" };
    static const struct { const char *text, *fact; unsigned taken; } cases[] = {
        { "fx8,frac=7", "codes with scales saturate", 3 },         { "fx16", "codes with scales saturate",
                                                                     3 },
        { "sa8", "codes with scales saturate", 3 }, { "sa32,scale=1", "codes with scales saturate", 3 },
        { "int8,per=tensor,scale=0.5", "codes with scales saturate", 3 },
        { "uint8,per=channel,axis=0", "codes with scales saturate", 3 },
        { "fx8,compat=mli", "compat=mli overflows as MLI does", 2 }, { "mxfp4", "a datatype saturates", 3 },
        { "mxfp4,virtual=yes", "a datatype saturates", 3 },        { "e4m3fn|n2m4", "a datatype saturates",
                                                                     3 },
        { "float16|n2m4", "N:M without scales overflows as casts do by default", 1 },
        { "f16", "", 5 },                                          { "2:4", "", 5 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned k = 0; k < 5; k++) {
            const tn_cast_rule defaults = { .options = { .size = sizeof defaults.options,
                                                         .overflow = all[k] } };
            char why[200];
            snprintf(
                why, sizeof why,
                "%s, and overflow %s is for element types only: say it in their rules, as in f16,overflow=%s",
                cases[i].fact, words[k], words[k]);
            if (k >= cases[i].taken) {
                refused(cases[i].text, &defaults, TN_ERR_ARGUMENT, why);
                continue;
            }
            tn_cast_rule rule = good_with(cases[i].text, &defaults);
            CHECK(rule.options.overflow == all[k]);
            tn_cast_rule_free(&rule);
        }
}

static void messages_point_at_the_place(void)
{
    bad("*.bias=bf17",
        "unknown type \"bf17\" at character 8: did you mean \"bf16\"? (type)");
    bad("\xc3\xa9=bf17", "unknown type \"bf17\" at character 3: did you mean \"bf16\"? (type)");      /* characters, not bytes */
    bad("", "unknown type \"\" at character 1 (type)");
    bad("x=",
        "unknown type \"\" at character 3 (type)");
    bad(",round=up",
        "unknown type \"\" at character 1 (type)");
    bad("=f32", "\"\" at character 1 is no glob");
    bad("f32,", "\"\" at character 5 is no KEY=VALUE");
    bad("f32,up", "\"up\" at character 5 is no KEY=VALUE");
    bad("f32,round=up,,nan=keep", "\"\" at character 14 is no KEY=VALUE");
    bad("f32,rounds=up", "\"rounds\" at character 5 is no key of an element type (round, overflow, underflow, nan, "
                         "seed, times, complex, per, axis, zero, percentile, scale, mode, "
                   "rotate, virtual, compat)");
    bad("f32,=up", "\"\" at character 5 is no key of an element type (round, overflow, underflow, nan, seed, times, "
                   "complex, per, axis, zero, percentile, scale, mode, "
                   "rotate, virtual, compat)");
    bad("f32,round=up,round=up", "\"round\" at character 14 is there a second time");
    bad("f32,round=nearest", "\"nearest\" at character 11 is no rounding (even, away, zero, half_up, trunc, "
                             "up, down, stochastic)");
    bad("f32,round=",
        "\"\" at character 11 is no rounding (even, away, zero, half_up, trunc, up, down, stochastic)");
    bad("f32,overflow=wrap",
        "\"wrap\" at character 14 is no way to overflow (default, saturate, inf, nan, error)");
    bad("f32,nan=1", "\"1\" at character 9 is nothing to do with NaN (keep, zero, error)");
    bad("f32,complex=imag", "\"imag\" at character 13 is not \"real\"");
    bad("f32,seed=-1", "\"-1\" at character 10 is no number from 0 to 18446744073709551615");
    bad("f32,seed=18446744073709551616",
        "\"18446744073709551616\" at character 10 is no number from 0 to 18446744073709551615");
    bad("f32,seed=", "\"\" at character 10 is no number from 0 to 18446744073709551615");
    bad("\x1b[2J=x",
        "unknown type \"x\" at character 6 (type)");
    bad("\x1b=f32,\x1b=1", "\"\\x1b\" at character 7 is no key of an element type (round, overflow, underflow, nan, "
                           "seed, times, complex, per, axis, zero, percentile, scale, mode, "
                   "rotate, virtual, compat)");
}

static void a_factor_is_a_float32_and_not_zero(void)
{
    static const char *const wrong[] = { "0", "-0.0", "1e39", "1e-60", "nan", "inf", "0x1", "1,5", "1.", " 1",
                                         "1 ", "--1", "" };
    char text[64];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_cast_rule rule;
        snprintf(text, sizeof text, "i8,times=%s", wrong[i]);
        CHECK(tn_cast_rule_parse(text, NULL, &rule, NULL) == TN_ERR_ARGUMENT);
    }
    CHECK(good("i8,times=127.5").options.scale == 127.5f && good("i8,times=1e-3").options.scale == 1e-3f);
}

static void a_glob_has_room_for_255_bytes(void)
{
    char text[300];
    memset(text, 'n', sizeof text);
    strcpy(text + 255, "=f32");
    tn_cast_rule rule = good(text);
    CHECK(strlen(rule.glob) == 255 && memcmp(rule.glob, text, 255) == 0);
    text[255] = 'n';
    strcpy(text + 256, "=f32");
    bad(text, "expected a glob of at most 255 bytes but found one of 256");
}

/* Every prefix, and every byte changed, on copies that end where the text does. */
static void damaged_rules_are_refused_or_read(void)
{
    static const char whole[] = "h.*=a.\xc3\xa9=float8_e4m3fn,round=stochastic,seed=12,times=0.5,nan=zero,"
                                "overflow=saturate,complex=real";
    size_t refused = 0;
    for (size_t n = 0; n < sizeof whole; n++) {
        char *copy = (char *)exact_copy(whole, n + 1);
        tn_cast_rule rule;
        tn_error err;
        copy[n] = '\0';
        bool read = tn_cast_rule_parse(copy, NULL, &rule, &err) == TN_OK;
        refused += !read;
        if (read)
            tn_cast_rule_free(&rule);
        free(copy);
    }
    CHECK(refused > sizeof whole / 2);
    for (size_t i = 0; i < sizeof whole - 1; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            char *copy = (char *)exact_copy(whole, sizeof whole);
            tn_cast_rule rule;
            tn_error err = { .text = "" };
            copy[i] = (char)(copy[i] ^ 1 << bit);
            if (tn_cast_rule_parse(copy, NULL, &rule, &err)) {
                CHECK(err.status == TN_ERR_ARGUMENT && err.text[0]);
            } else {
                CHECK((tn_dtype_get(rule.dtype) || rule.datatype) && strlen(rule.glob) < sizeof rule.glob);
                tn_cast_rule_free(&rule);
            }
            free(copy);
        }
    }
}

static void per_makes_codes_with_scales(void)
{
    tn_cast_rule rule = good("*.weight=int8,per=tensor");
    CHECK(rule.quantized && rule.affine.symmetric && rule.quantize.rule == TN_SCALE_MAX && !*rule.axis);
    CHECK(!good("int8").quantized);
    rule = good("uint8,per=channel,axis=C,round=stochastic,seed=3,nan=zero");
    CHECK(rule.quantized && !rule.affine.symmetric && strcmp(rule.axis, "C") == 0);
    CHECK(rule.quantize.round == TN_ROUND_STOCHASTIC && rule.quantize.seed == 3 &&
          rule.quantize.nan == TN_NAN_ZERO);
    rule = good("int8,per=channel,axis=-1,zero=asymmetric,percentile=99.9");
    CHECK(!rule.affine.symmetric && rule.quantize.rule == TN_SCALE_MAX &&
          rule.quantize.percentile == 99.9);
    rule = good("uint8,per=tensor,scale=0.5,zero=128");
    CHECK(rule.quantize.rule == TN_SCALE_GIVEN && rule.scale == 0.5f && rule.zero == 128 &&
          !rule.affine.symmetric);
    rule = good("int8,per=tensor,scale=0.5,zero=-128");
    CHECK(rule.zero == -128);
    CHECK(good("int8,per=tensor,zero=symmetric").affine.symmetric);
}

static void keys_of_scales_must_go_together(void)
{
    static const char needs[] =
        "axis, zero, percentile and scale need per=tensor or per=channel (times=N multiplies each value)";
    bad("int8,scale=2", needs);
    bad("int8,axis=0", needs);
    bad("int8,zero=symmetric", needs);
    bad("int8,percentile=99", needs);
    bad("int8,per=channel", "per=channel and axis=DIMENSION go together");
    bad("int8,per=tensor,axis=0", "per=channel and axis=DIMENSION go together");
    bad("int8,per=tensor,times=2",
        "times and complex are not for codes with scales");
    bad("int8,per=tensor,scale=1,percentile=99", "a scale is given or found by a percentile, not both");
    bad("int8,per=tensor,zero=3", "a zero point by number needs a scale too");
    bad("int8,per=tensor,zero=0", "a zero point by number needs a scale too");
    bad("uint8,per=tensor,scale=1,zero=-1", "expected a zero point from 0 to 255 but found -1");
    bad("int8,per=tensor,scale=1,zero=300", "expected a zero point from -128 to 127 but found 300");
    bad("int8,per=row", "\"row\" at character 10 is neither tensor nor channel");
    bad("int8,per=tensor,percentile=0", "\"0\" at character 28 is no percentage above 0 and up to 100");
    bad("int8,per=tensor,percentile=101", "\"101\" at character 28 is no percentage above 0 and up to 100");
    bad("int8,per=tensor,scale=-1", "\"-1\" at character 23 is no positive number that float32 holds");
    bad("int8,per=tensor,scale=1,zero=2147483648",
        "\"2147483648\" at character 30 is neither symmetric, asymmetric nor a number of 32 bits");
    tn_cast_rule rule;
    CHECK(tn_cast_rule_parse("float32,per=tensor", NULL, &rule, NULL) == TN_ERR_ARGUMENT);       /* no codes */
    CHECK(tn_cast_rule_parse("uint8,per=tensor,zero=symmetric", NULL, &rule, NULL) == TN_ERR_ARGUMENT);
}

static void a_layout_rule_has_letters_and_where_they_come_from(void)
{
    tn_layout_rule rule;
    CHECK(tn_layout_rule_parse("NHWC", &rule, NULL) == TN_OK);
    CHECK(strcmp(rule.glob, "*") == 0 && strcmp(rule.to, "NHWC") == 0 && !*rule.from);
    CHECK(tn_layout_rule_parse("conv*=NHWC,from=NCHW", &rule, NULL) == TN_OK);
    CHECK(strcmp(rule.glob, "conv*") == 0 && strcmp(rule.to, "NHWC") == 0 && strcmp(rule.from, "NCHW") == 0);
    static const char *const wrong[] = { "", "NHWN", "N-C", "=NHWC", "NHWC,from=", "NHWC,from=NCHN",
                                         "NHWC,to=NCHW", "NHWC,", "x=" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        CHECK(tn_layout_rule_parse(wrong[i], &rule, &err) == TN_ERR_ARGUMENT && err.text[0]);
    }
}

static void a_padding_rule_has_dimensions_and_a_value(void)
{
    tn_pad_rule rule;
    CHECK(tn_pad_rule_parse("C=16", &rule, NULL) == TN_OK);
    CHECK(strcmp(rule.glob, "*") == 0 && rule.count == 1 && rule.dims[0].letter == 'C' &&
          rule.dims[0].multiple == 16 && rule.value == 0);
    CHECK(tn_pad_rule_parse("a=b*=C=16,-1=8,0=4,value=-1.5", &rule, NULL) == TN_OK);
    CHECK(strcmp(rule.glob, "a=b*") == 0 && rule.count == 3 && rule.value == -1.5 && !rule.raw_zero);
    CHECK(rule.dims[0].letter == 'C' && !rule.dims[1].letter && rule.dims[1].dimension == -1 &&
          rule.dims[1].multiple == 8);
    CHECK(rule.dims[2].dimension == 0 && rule.dims[2].multiple == 4);
    CHECK(tn_pad_rule_parse("C=16,compat=mli", &rule, NULL) == TN_OK && rule.raw_zero && rule.count == 1 &&
          rule.value == 0);
    static const char *const wrong[] = { "", "C", "C=", "C=0", "C=-1", "C=1099511627777", "CC=3", "C=1,",
                                         "C=1,value=", "value=1", "=C=1", "9999999999=1", "C=2,C=3",
                                         "0=2,0=2", "C=2,value=1,value=1", "C=2,compat=", "C=2,compat=raw",
                                         "C=2,compat=mli,compat=mli", "compat=mli",
                                         "C=2,compat=mli,value=0" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        CHECK(tn_pad_rule_parse(wrong[i], &rule, &err) == TN_ERR_ARGUMENT && err.text[0]);
    }
    char many[600] = "0=1";
    for (int i = 1; i <= 64; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d=1", i);
    CHECK(tn_pad_rule_parse(many, &rule, NULL) == TN_ERR_ARGUMENT);
}

static void a_form_rule_has_a_form_and_its_keys(void)
{
    tn_form_rule rule;
    CHECK(tn_form_rule_parse("csr", &rule, NULL) == TN_OK);
    CHECK(strcmp(rule.glob, "*") == 0 && rule.form == TN_FORM_CSR && !rule.options.drop &&
          rule.options.index == TN_UNKNOWN);
    CHECK(tn_form_rule_parse("w=*=coo,threshold=1e-3,duplicates=sum,index=u32", &rule, NULL) == TN_OK);
    CHECK(strcmp(rule.glob, "w=*") == 0 && rule.form == TN_FORM_COO && rule.options.drop &&
          rule.options.threshold == 1e-3);
    CHECK(rule.options.duplicates == TN_DUPLICATES_SUM && rule.options.index == TN_UINT32);
    static const char *const wrong[] = { "", "csc", "CSR", "=csr", "csr,", "csr,threshold=-1",
                                         "csr,threshold=nan", "csr,threshold=", "csr,index=int8",
                                         "csr,index=", "csr,duplicates=keep", "csr,index=int32,index=int32",
                                         "csr,limit=3", "w=", "dense,index=int32" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        CHECK(tn_form_rule_parse(wrong[i], &rule, &err) == TN_ERR_ARGUMENT && err.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_type_alone_is_for_all_names),
        TEST(a_glob_ends_at_the_last_equals_before_the_first_comma),
        TEST(every_key_sets_its_option),
        TEST(what_the_text_does_not_say_comes_from_the_defaults),
        TEST(codes_with_scales_take_no_default_for_overflow_but_what_they_do),
        TEST(messages_point_at_the_place),
        TEST(a_factor_is_a_float32_and_not_zero),
        TEST(a_glob_has_room_for_255_bytes),
        TEST(damaged_rules_are_refused_or_read),
        TEST(per_makes_codes_with_scales),
        TEST(keys_of_scales_must_go_together),
        TEST(a_layout_rule_has_letters_and_where_they_come_from),
        TEST(a_padding_rule_has_dimensions_and_a_value),
        TEST(a_form_rule_has_a_form_and_its_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
