/* Cast rules with a datatype, [GLOB=]DATATYPE[,KEY=VALUE...], and with N:M. */
#include "support.h"

#include <math.h>

#include "make.h"
#include "rules.h"

/* The rule has this datatype for these names. */
static void is_datatype(const char *text, const char *glob, const char *datatype)
{
    tn_cast_rule rule = good(text);
    CHECK(rule.datatype && rule.dtype == TN_UNKNOWN && !rule.quantized && rule.of == 0);
    CHECK(strcmp(rule.glob, glob) == 0);
    if (strcmp(tn_datatype_text(rule.datatype), datatype) != 0)
        fail_msg("%s: expected <%s> but found <%s>", text, datatype, tn_datatype_text(rule.datatype));
    CHECK(rule.quantize.size == sizeof rule.quantize && !rule.is_virtual);
    tn_cast_rule_free(&rule);
    CHECK(!rule.datatype);
}

static void a_type_may_be_a_datatype(void)
{
    is_datatype("mxfp4", "*", "e2m1fnuz|e8m0_t32");
    is_datatype("MXFP4", "*", "e2m1fnuz|e8m0_t32");
    is_datatype("*.weight=nvfp4", "*.weight", "e2m1fnuz|multi_float32_e4m3fn_t16");
    is_datatype("e2m1fnuz|e8m0_t32", "*", "e2m1fnuz|e8m0_t32");
    is_datatype("a=b*=uint4|float16_int8_t32,nan=zero", "a=b*", "uint4|float16_int8_t32");
    is_datatype("cb42f1346_e2m3fnuz|e8m0_t32s8", "*", "cb42f1346_e2m3fnuz|e8m0_t32s8");
    is_datatype("int8|float32_t0d1", "*", "int8|float32_t0d1");
    is_datatype("e3m3fnuz", "*", "e3m3fnuz");       /* a number alone that is no element type */
}

static void an_element_type_stays_one(void)
{
    static const char *const both[] = { "float16", "bfloat16", "float32", "e4m3fn", "e5m2", "float8_e4m3fnuz",
                                        "int8", "|u1" };
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        tn_cast_rule rule = good(both[i]);
        CHECK(tn_dtype_get(rule.dtype) && !rule.datatype);
    }
    is_datatype("float16|float32", "*", "float16|float32");
}

static void every_key_of_a_datatype_sets_its_option(void)
{
    tn_cast_rule rule = good("mxfp4,round=stochastic,seed=9,nan=zero,mode=mse,store=unpacked,dialect=ocp,"
                             "rotate=hadamard32:7,virtual=no");
    const tn_quantize_options *o = &rule.quantize;
    CHECK(o->round == TN_ROUND_STOCHASTIC && o->seed == 9 && o->nan == TN_NAN_ZERO &&
          o->rule == TN_SCALE_MSE && o->unpacked && !o->ggml);
    CHECK(o->rotation.size == 32 && !o->rotation.walsh && o->rotation.random && o->rotation.seed == 7 &&
          !rule.is_virtual);
    CHECK(rule.options.round == TN_ROUND_STOCHASTIC && rule.options.seed == 9 &&
          rule.options.nan == TN_NAN_ZERO);
    tn_cast_rule_free(&rule);
    rule = good("x=mxfp4,virtual=yes,dialect=ggml,rotate=walsh128");
    CHECK(rule.is_virtual && rule.quantize.ggml && rule.quantize.rotation.size == 128 &&
          rule.quantize.rotation.walsh && !rule.quantize.rotation.random);
    tn_cast_rule_free(&rule);
    rule = good("mxfp4,store=packed,rotate=none");
    CHECK(!rule.quantize.unpacked && rule.quantize.rotation.size == 0);
    tn_cast_rule_free(&rule);
    static const struct { const char *rule; bool unpacked; tn_dtype store; } stores[] = {
        { "mxfp4,store=packed", false, TN_UNKNOWN }, { "mxfp4,store=unpacked", true, TN_UNKNOWN },
        { "mxfp6,store=e4m3fn", true, TN_FLOAT8_E4M3FN }, { "mxfp6,store=float8_e4m3fn", true,
                                                            TN_FLOAT8_E4M3FN },
        { "mxbf6,store=e5m2", true, TN_FLOAT8_E5M2 }, { "mxbf6,store=float8_e5m2", true, TN_FLOAT8_E5M2 },
    };
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        rule = good(stores[i].rule);
        CHECK(rule.quantize.unpacked == stores[i].unpacked && rule.quantize.store == stores[i].store);
        tn_cast_rule_free(&rule);
    }
    static const struct { const char *word; tn_scale_rule rule; } modes[] = {
        { "max", TN_SCALE_MAX },   { "floor", TN_SCALE_MAX },         { "auto", TN_SCALE_MIDMAX },
        { "midmax", TN_SCALE_MIDMAX },
        { "ceil", TN_SCALE_CEIL },   { "topbinade", TN_SCALE_TOPBINADE }, { "option3", TN_SCALE_OPTION3 },
        { "mse", TN_SCALE_MSE },
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        char text[40];
        snprintf(text, sizeof text, "mxfp8,mode=%s", modes[i].word);
        rule = good(text);
        CHECK(rule.quantize.rule == modes[i].rule);
        tn_cast_rule_free(&rule);
    }
}

static void what_a_datatype_rule_does_not_say_comes_from_the_defaults(void)
{
    tn_cast_rule rule, defaults = {
        .options = { .size = sizeof defaults.options, .round = TN_ROUND_AWAY, .nan = TN_NAN_ZERO, .seed = 3 },
        .quantize = { .size = sizeof defaults.quantize, .rule = TN_SCALE_CEIL, .rotation = { .size = 16 },
                    .round = TN_ROUND_ZERO },
        .is_virtual = true,
    };
    CHECK(tn_cast_rule_parse("mxfp4", &defaults, &rule, NULL) == TN_OK);
    CHECK(rule.is_virtual && rule.quantize.rule == TN_SCALE_CEIL && rule.quantize.rotation.size == 16);
    CHECK(rule.quantize.round == TN_ROUND_AWAY && rule.quantize.nan == TN_NAN_ZERO && rule.quantize.seed == 3);
    tn_cast_rule_free(&rule);
    CHECK(tn_cast_rule_parse("mxfp4,virtual=no,mode=max,rotate=none,round=even,nan=keep", &defaults, &rule,
                             NULL) == TN_OK);
    CHECK(!rule.is_virtual && rule.quantize.rule == TN_SCALE_MAX && rule.quantize.rotation.size == 0);
    CHECK(rule.quantize.round == TN_ROUND_EVEN && rule.quantize.nan == TN_NAN_KEEP);
    tn_cast_rule_free(&rule);
    CHECK(tn_cast_rule_parse("2:4", &defaults, &rule, NULL) == TN_OK && rule.is_virtual);
    defaults.options.round = TN_ROUND_UP;
    refused("mxfp4", &defaults, TN_ERR_ARGUMENT,
            "a datatype rounds even, away, zero or stochastic but found up");
    CHECK(tn_cast_rule_parse("mxfp4,round=even", &defaults, &rule, NULL) == TN_OK);
    CHECK(rule.quantize.rule == TN_SCALE_CEIL && rule.quantize.rotation.size == 16 &&
          rule.quantize.size == sizeof rule.quantize);
    tn_cast_rule_free(&rule);
}

static void a_bad_datatype_is_pointed_at(void)
{
    bad("*.weight=e9m3|e8m0_t32",
        "\"e9m3|e8m0_t32\": the exponent has 1 to 8 bits but found 9 at character 2");
    bad("e2m1fnuz|e8m0_t33", "\"e2m1fnuz|e8m0_t33\": a tile is 0 (all of the dimension) or a power of two of "
                             "2 to 1024 but found 33 at "
                             "character 16");
    bad("int5",
        "\"int5\": int5 needs a scale: expected | and one, as in |float32, but found the end at character 5");
    bad("float33", "\"float33\": float has 9 to 32 bits but found 33 at character 6");
    bad("w=INT8_F", "\"INT8_F\" could be int8_F or int8_f: expected one of them, in its own case");
    bad("mxfp4|float32",
        "\"mxfp4|float32\": expected a number but found mxfp4, which has a scale already at character 1");
    bad("*.bias=mxfp3",
        "unknown type \"mxfp3\" at character 8: did you mean \"mxfp8\"? (type)");
    refused("e4m3fn|float32_t4n2m4_t4", NULL, TN_ERR_UNSUPPORTED,
            "\"e4m3fn|float32_t4n2m4_t4\": matrix sparsity is not supported: a 2D mask "
            "has to keep as many values along both axes, and data cannot be compressed along two at "
            "character 16");
}

static void a_bad_key_of_a_datatype_is_pointed_at(void)
{
    static const char keys[] =
        " is no key of a datatype (round, overflow, underflow, nan, seed, mode, percentile, store, dialect, "
        "rotate, virtual, importance)";
    static const char *const others[] = { "keep", "times", "complex", "per", "axis", "zero", "frac",
                                          "scale", "modes", "" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char text[60], why[200];
        snprintf(text, sizeof text, "mxfp4,%s=1", others[i]);
        snprintf(why, sizeof why, "\"%s\" at character 7%s", others[i], keys);
        bad(text, why);
    }
    bad("f32,mode=max", "mode, rotate and virtual need per=tensor or per=channel: an element type has no scales");
    bad("mxfp4,mode=min",
        "\"min\" at character 12 is no scale mode (max, floor, auto, midmax, topbinade, option3, ceil, mse)");
    bad("mxfp4,store=dense", "\"dense\" at character 13 is no way to store codes (packed, unpacked, e4m3fn, "
        "e5m2)");
    bad("mxfp4,dialect=", "\"\" at character 15 is no dialect (ocp, ggml)");
    bad("mxfp4,virtual=true", "\"true\" at character 15 is neither yes nor no");
    bad("mxfp4,rotate=hadamard3", "\"hadamard3\" at character 14 is no rotation (none, hadamardN, walshN, "
                                  "hadamardN:SEED, walshN:SEED; N is 4, 8 "
                                  "... 128)");
    bad("mxfp4,mode=max,mode=max", "\"mode\" at character 16 is there a second time");
    bad("mxfp4,round=half_up", "a datatype rounds even, away, zero or stochastic but found half_up");
    bad("mxfp6,store=e5m2", "e2m3fnuz has 1.125, which float8_e5m2 lacks");
    bad("mxfp4,virtual=yes,store=unpacked", "store says how codes are stored, but a virtual cast has none");
    bad("mxfp4,dialect=ggml,mode=mse",
        "dialect=ggml has ties and a scale rule of its own, but found round=even and mode=mse");
    bad("mxfp4,dialect=ggml,round=away",
        "dialect=ggml has ties and a scale rule of its own, but found round=away and mode=max");
    bad("mxfp8,dialect=ggml", "the ggml dialect needs e2m1fnuz|e8m0_t32 but found e4m3fn|e8m0_t32");
    bad("mxfp4,", "\"\" at character 7 is no KEY=VALUE");
}

static void n_of_m_values_may_be_kept(void)
{
    static const unsigned groups[] = { 2, 4, 8, 16 };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        for (unsigned keep = 1; keep < groups[i]; keep++) {
            char text[40];
            snprintf(text, sizeof text, "h.*=%u:%u", keep, groups[i]);
            tn_cast_rule rule = good(text);
            CHECK(strcmp(rule.glob, "h.*") == 0 && rule.keep == keep && rule.of == groups[i]);
            CHECK(!rule.datatype && rule.dtype == TN_UNKNOWN && !rule.is_virtual);
        }
    }
    CHECK(good("2:4,virtual=yes").is_virtual);
    static const char *const wrong[] = { "0:4", "4:4", "5:4", "2:3", "1:1", "8:32", ":4", "2:", ":", "2:4:8",
                                         "18446744073709551618:4" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char why[100];
        snprintf(why, sizeof why,
                 "\"%s\" at character 1 is no N:M with M of 2, 4, 8 or 16 and N from 1 to M - 1", wrong[i]);
        bad(wrong[i], why);
    }
    bad("2:4,mode=max", "\"mode\" at character 5 is no key of N:M (virtual)");
    bad("2:x",
        "unknown type \"2:x\" at character 1 (type)");
}

/* docs/datatypes.md on --overflow: floats without scales saturate, but for N:M of those that casts have. */
static void floats_without_scales_saturate_or_refuse_to(void)
{
    static const struct { const char *datatype; bool saturates; float largest; } cases[] = {
        { "e3m2fnuz", true, 28 }, { "e5m6", true, 65024 }, { "e5m3|n2m4", true, 61440 }, { "e4m3fn|n2m4",
                                                                                           true, 448 },
        { "e5m2|n2m4", true, 57344 }, { "e3m2fnuz|n2m4", true, 28 }, { "float24", true, 3.40277175e38f },
            { "float16|n2m4", false, INFINITY },
        { "bfloat16|n2m4", false, INFINITY }, { "float32|n2m4", false, INFINITY },
    };
    static const float x[] = { 3.4028234e38f, -3.4028234e38f, 0, 0, INFINITY, -INFINITY, 0, 0 };
    const int64_t shape[] = { 8 };
    const tn_array array = { .dtype = TN_FLOAT32, .rank = 1, .shape = shape };
    const tn_cast_rule defaults = { .options = { .size = sizeof defaults.options,
                                                 .overflow = TN_OVERFLOW_SATURATE } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_cast_rule rule, strict;
        tn_error err = { .text = "" };
        float y[8], most = cases[i].largest, first = strncmp(cases[i].datatype, "float32",
                                                             7) == 0 ? x[0] : most;
        CHECK(tn_cast_rule_parse(cases[i].datatype, NULL, &rule, &err) == TN_OK);
        CHECK(tn_fake_quantize(rule.datatype, &array, x, y, &rule.quantize, NULL, &err) == TN_OK);
        CHECK(y[0] == first && y[1] == -first && y[4] == most && y[5] == -most);
        tn_status status = tn_cast_rule_parse(cases[i].datatype, &defaults, &strict, &err);
        if (status != (cases[i].saturates ? TN_OK : TN_ERR_ARGUMENT))
            fail_msg("%s: %d %s", cases[i].datatype, status, line_of(&err));
        if (cases[i].saturates)
            tn_cast_rule_free(&strict);
        else
            CHECK(strstr(line_of(&err), "N:M without scales overflows as casts do by default, and overflow "
                         "saturate is for element types only"));
        tn_cast_rule_free(&rule);
    }
}

/* Every prefix, and every bit changed, on copies that end where the text does. */
static void damaged_datatype_rules_are_refused_or_read(void)
{
    static const char *const wholes[] = {
        "h.*=e2m1fnuz|multi_float32_e4m3fn_t16,round=stochastic,seed=12,mode=mse,nan=zero,rotate=walsh16:3,"
        "virtual=yes",
        "cb41fi_e2m2fnuz|e8m0_t32s4,store=unpacked,dialect=ggml",
        "mxfp4,store=float8_e4m3fn",
        "w=2:4,virtual=no",
    };
    for (size_t w = 0; w < sizeof wholes / sizeof *wholes; w++) {
        size_t length = strlen(wholes[w]);
        for (size_t i = 0; i < 9 * (length + 1); i++) {
            size_t at = i / 9;
            char *copy = (char *)exact_copy(wholes[w], i % 9 < 8 ? length + 1 : at + 1);
            tn_cast_rule rule;
            tn_error err = { .text = "" };
            if (i % 9 == 8)
                copy[at] = '\0';
            else if (at < length)
                copy[at] = (char)(copy[at] ^ 1 << i % 9);
            if (tn_cast_rule_parse(copy, NULL, &rule, &err)) {
                CHECK((err.status == TN_ERR_ARGUMENT || err.status == TN_ERR_UNSUPPORTED) && err.text[0]);
            } else {
                CHECK(tn_dtype_get(rule.dtype) || rule.datatype || rule.of);
                tn_cast_rule_free(&rule);
            }
            free(copy);
        }
    }
}

static void a_codebook_may_come_from_a_file(void)
{
    static const char json[] =
        "{\"compute\":\"e2m3fnuz\",\"mappings\":[[0.5,1,1.5,2,3,4,6],[1,2,3,4,5,6,7]]}";
    char text[600], again[2000];
    put_file("table.json", json);
    snprintf(text, sizeof text, "*.w=%.500s|e8m0_t32s8,mode=mse", in_folder("table.json").text);
    tn_cast_rule rule = good(text);
    CHECK(rule.datatype && strcmp(rule.glob, "*.w") == 0 && rule.quantize.rule == TN_SCALE_MSE);
    snprintf(again, sizeof again, "*.w=%s", tn_datatype_text(rule.datatype));       /* its text is a rule too */
    is_datatype(again, "*.w", tn_datatype_text(rule.datatype));
    tn_cast_rule_free(&rule);
    CHECK(tn_cast_rule_parse("missing.json|e8m0_t32s8", NULL, &rule, NULL) == TN_ERR_IO);
}

static void freeing_nothing_is_allowed(void)
{
    tn_cast_rule_free(NULL);
    tn_cast_rule_free(&(tn_cast_rule){ .dtype = TN_FLOAT32 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_type_may_be_a_datatype),
        TEST(an_element_type_stays_one),
        TEST(every_key_of_a_datatype_sets_its_option),
        TEST(what_a_datatype_rule_does_not_say_comes_from_the_defaults),
        TEST(a_bad_datatype_is_pointed_at),
        TEST(a_bad_key_of_a_datatype_is_pointed_at),
        TEST(n_of_m_values_may_be_kept),
        TEST(floats_without_scales_saturate_or_refuse_to),
        TEST(damaged_datatype_rules_are_refused_or_read),
        IN_FOLDER(a_codebook_may_come_from_a_file),
        TEST(freeing_nothing_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
