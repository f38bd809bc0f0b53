/* pipeline/steps/table.c - the steps that rules ask for by name. */
#include "pipeline/steps/table.h"
#include "base/error.h"

#include <string.h>

/* ---- rows ---- */

static tn_status parse_cast(const char *text, const tn_cast_rule *defaults, void *rule, tn_error *err)
{
    return tn_cast_rule_parse(text, defaults, rule, err);
}

static tn_status parse_layout(const char *text, const tn_cast_rule *defaults, void *rule, tn_error *err)
{
    (void)defaults;
    return tn_layout_rule_parse(text, rule, err);
}

static tn_status parse_pad(const char *text, const tn_cast_rule *defaults, void *rule, tn_error *err)
{
    (void)defaults;
    return tn_pad_rule_parse(text, rule, err);
}

static tn_status parse_form(const char *text, const tn_cast_rule *defaults, void *rule, tn_error *err)
{
    (void)defaults;
    return tn_form_rule_parse(text, rule, err);
}

static void free_cast(void *rule)
{
    tn_cast_rule_free(rule);
}

static const tn_rule_step steps[] = {
    { "layout", TN_RULE_LAYOUT, sizeof(tn_layout_rule), parse_layout, NULL },
    { "pad", TN_RULE_PAD, sizeof(tn_pad_rule), parse_pad, NULL },
    { "form", TN_RULE_FORM, sizeof(tn_form_rule), parse_form, NULL },
    { "cast", TN_RULE_CAST, sizeof(tn_cast_rule), parse_cast, free_cast },
};

/* ---- reading ---- */

const tn_rule_step *tn_rule_step_named(const char *name)
{
    for (size_t i = 0; name && i < sizeof steps / sizeof *steps; i++)
        if (strcmp(steps[i].name, name) == 0)
            return &steps[i];
    return NULL;
}

tn_status tn_rule_read(const tn_rule *text, const tn_cast_rule *defaults, tn_arena *arena, tn_read_rule *rule,
                       tn_error *err)
{
    const tn_rule_step *step = tn_rule_step_named(text->step);
    if (!step || !text->text)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a step (cast, layout, pad, form) but found %s",
                       tn_quote_z(text->step ? text->step : "").text);
    void *read = tn_arena_zalloc(arena, 1, step->size);
    if (!read)
        return tn_fail_nomem(err);
    TN_TRY(step->parse(text->text, defaults, read, err));
    *rule = (tn_read_rule){ .step = step, .rule = read };
    return TN_OK;
}

void tn_read_rule_free(tn_read_rule *rule)
{
    if (rule->step && rule->step->free)
        rule->step->free(rule->rule);
    rule->step = NULL;
}

/* ---- the public functions ---- */

static tn_status read_alone(const tn_rule *text, const char *cast_defaults, tn_arena *arena,
                            tn_cast_rule *defaults, tn_read_rule *rule, tn_error *err)
{
    if (!text)
        return tn_fail(err, TN_ERR_ARGUMENT, "a rule is NULL");
    TN_TRY(tn_cast_defaults_parse(cast_defaults, defaults, err));
    return tn_rule_read(text, defaults, arena, rule, err);
}

tn_status tn_rule_check(const tn_rule *text, const char *cast_defaults, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_cast_rule defaults;
    tn_read_rule rule = { 0 };
    tn_status status = read_alone(text, cast_defaults, &arena, &defaults, &rule, err);
    tn_read_rule_free(&rule);
    tn_arena_free(&arena);
    return status;
}

unsigned tn_rule_makes(const tn_rule *text, const char *cast_defaults)
{
    tn_arena arena = { 0 };
    tn_cast_rule defaults;
    tn_read_rule rule = { 0 };
    unsigned makes = 0;
    tn_status status = read_alone(text, cast_defaults, &arena, &defaults, &rule, NULL);
    if (!status && rule.step->kind == TN_RULE_CAST) {
        const tn_cast_rule *cast = rule.rule;
        tn_scale_rule mode = defaults.quantize.rule;
        bool any_mode = mode == TN_SCALE_MAX || mode == TN_SCALE_MSE;
        makes |= cast->datatype || cast->of || cast->quantized ? TN_RULE_QUANTIZES : 0;
        makes |= any_mode || cast->quantize.rule == mode ? TN_RULE_TAKES_MODE : 0;
        makes |= cast->quantize.ggml || !defaults.quantize.ggml ? TN_RULE_TAKES_DIALECT : 0;
        makes |= cast->of ? TN_RULE_KEEPS_N_OF_M : 0;
    }
    tn_read_rule_free(&rule);
    tn_arena_free(&arena);
    return makes;
}
