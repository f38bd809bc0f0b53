/* Rules of casts, layouts and padding: refused with a reason, or read into something that reads back the
 * same. */
#include "require.h"
#include "scarce.h"

#include <string.h>

#include "pipeline/pattern.h"
#include "pipeline/rules/rules.h"

/* A rule with a datatype or with N:M as text again. */
static void check_scaled(const tn_cast_rule *rule)
{
    static const char *const modes[] = { "max", "midmax", "topbinade", "option3", "ceil", "mse" };
    const tn_quantize_options *o = &rule->quantize;
    tn_cast_rule again;
    char text[2000], rotation[64] = "";
    if (rule->datatype && !strchr(tn_datatype_text(rule->datatype), '|'))
        return;                                     /* "e5m2ieee" is spelled e5m2, which is an element type */
    if (rule->datatype) {
        tn_rotation_format(rotation, sizeof rotation, &o->rotation);
        snprintf(text, sizeof text, "%s=%s,mode=%s,dialect=%s,rotate=%s,virtual=%s,seed=%llu", rule->glob,
                 tn_datatype_text(rule->datatype), modes[o->rule], o->ggml ? "ggml" : "ocp", rotation,
                 rule->is_virtual ? "yes" : "no", (unsigned long long)o->seed);
    } else {
        snprintf(text, sizeof text, "%s=%u:%u,virtual=%s", rule->glob, rule->keep, rule->of,
                 rule->is_virtual ? "yes" : "no");
    }
    REQUIRE(tn_cast_rule_parse(text, NULL, &again, NULL) == TN_OK);
    REQUIRE(strcmp(again.glob, rule->glob) == 0 && again.keep == rule->keep && again.of == rule->of &&
            again.is_virtual == rule->is_virtual);
    REQUIRE(again.quantize.rule == o->rule && again.quantize.ggml == o->ggml && again.quantize.seed == o->seed);
    REQUIRE(!rule->datatype == !again.datatype);
    if (rule->datatype)
        REQUIRE(strcmp(tn_datatype_text(rule->datatype), tn_datatype_text(again.datatype)) == 0);
    tn_cast_rule_free(&again);
}

/* The rule as text again: all that it says but the scale, which has many spellings. */
static void check_spelled_out(const tn_cast_rule *rule)
{
    static const char *const rounds[] = { "even", "away", "zero", "half_up", "trunc", "up", "down",
                                          "stochastic" };
    static const char *const overflows[] = { "default", "saturate", "inf", "nan", "error" };
    static const char *const nans[] = { "keep", "zero", "error" };
    const tn_cast_options *o = &rule->options;
    tn_cast_rule again;
    char text[600];
    snprintf(text, sizeof text, "%s=%s,round=%s,overflow=%s,nan=%s,seed=%llu%s", rule->glob,
             tn_dtype_get(rule->dtype)->name, rounds[o->round], overflows[o->overflow], nans[o->nan],
             (unsigned long long)o->seed, o->drop_imaginary ? ",complex=real" : "");
    REQUIRE(tn_cast_rule_parse(text, NULL, &again, NULL) == TN_OK);
    REQUIRE(strcmp(again.glob, rule->glob) == 0 && again.dtype == rule->dtype &&
            again.options.round == o->round);
    REQUIRE(again.options.overflow == o->overflow && again.options.nan == o->nan &&
            again.options.seed == o->seed);
    REQUIRE(again.options.drop_imaginary == o->drop_imaginary);
}

static void check_layout(const char *text)
{
    tn_layout_rule rule;
    tn_error err = { .text = "" };
    tn_status status = tn_layout_rule_parse(text, &rule, &err);
    REQUIRE(status ? err.text[0] != '\0'
                   : tn_layout_check(rule.to, (uint32_t)strlen(rule.to), NULL) == TN_OK);
}

static void check_padding(const char *text)
{
    tn_pad_rule rule;
    tn_error err = { .text = "" };
    if (tn_pad_rule_parse(text, &rule, &err)) {
        REQUIRE(err.text[0]);
        return;
    }
    REQUIRE(rule.count > 0 && rule.count <= TN_MAX_RANK);
    for (uint32_t i = 0; i < rule.count; i++)
        REQUIRE(rule.dims[i].multiple > 0);
}

static void check_form(const char *text)
{
    tn_form_rule rule;
    tn_error err = { .text = "" };
    tn_status status = tn_form_rule_parse(text, &rule, &err);
    REQUIRE(status ? err.text[0] != '\0' : rule.glob[0] && rule.form != TN_FORM_UNKNOWN);
}

/* What the text does not say comes from elsewhere. */
static void check_defaults(const char *text)
{
    const tn_cast_rule defaults = { .is_virtual = true,
                                    .options = { .size = sizeof defaults.options, .overflow = TN_OVERFLOW_INF,
                                    .round = TN_ROUND_UP }, .quantize = { .size = sizeof defaults.quantize } };
    tn_cast_rule rule;
    tn_error err = { .text = "" };
    tn_status status = tn_cast_rule_parse(text, &defaults, &rule, &err);
    REQUIRE(status == TN_OK || err.text[0]);
    if (status == TN_OK)
        tn_cast_rule_free(&rule);
}

/* As somebody says it who has the public functions only.  They also look at the pattern, which may be no regular
 * expression. */
static void check_public(const char *text, tn_status cast)
{
    static const char *const steps[] = { "cast", "layout", "pad", "form" };
    tn_error err = { .text = "" };
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        const tn_rule rule = { steps[i], text };
        tn_status status = tn_rule_check(&rule, NULL, &err);
        REQUIRE(status ? err.text[0] != '\0' : i == 0 || tn_rule_makes(&rule, NULL) == 0);
        REQUIRE(i || status == cast || (status == TN_ERR_ARGUMENT && tn_begins_with(text, "re:")));
        tn_rule_check(&rule, text, NULL);
    }
}

/* Reading a rule does not compile its pattern: in a wrong one a bracket may be open, and takes what follows. */
static bool has_pattern(const tn_cast_rule *rule)
{
    tn_pattern pattern;
    bool good = tn_pattern_read((tn_text){ rule->glob, strlen(rule->glob) }, &pattern, NULL) == TN_OK;
    if (good)
        tn_pattern_free(&pattern);
    return good;
}

static tn_status parse_scarcely(const void *text, tn_error *err)
{
    tn_cast_rule rule;
    tn_status status = tn_cast_rule_parse(text, NULL, &rule, err);
    if (status == TN_OK)
        tn_cast_rule_free(&rule);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    tn_cast_rule rule;
    tn_error err = { .text = "" };
    REQUIRE(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    tn_status status = tn_cast_rule_parse(text, NULL, &rule, &err);
    REQUIRE(status == TN_OK || status == TN_ERR_ARGUMENT || status == TN_ERR_UNSUPPORTED ||
            status == TN_ERR_IO);
    if (status)
        REQUIRE(err.status == status && err.text[0] && strlen(err.text) < sizeof err.text);
    else if ((rule.datatype || rule.of) && has_pattern(&rule))
        check_scaled(&rule);
    else if (!rule.quantized && !rule.datatype && !rule.of && has_pattern(&rule))
        check_spelled_out(&rule);
    if (status == TN_OK)
        tn_cast_rule_free(&rule);
    check_defaults(text);
    check_public(text, status);
    check_form(text);
    check_layout(text);
    check_padding(text);
    scarce_check(parse_scarcely, text, scarce_choice(data, size));
    free(text);
    return 0;
}
