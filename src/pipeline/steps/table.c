/* pipeline/steps/table.c - the steps that rules ask for by name. */
#include "pipeline/steps/table.h"
#include "base/error.h"
#include "pipeline/plan_tensor.h"

#include <string.h>

/* ---- rows ---- */

static tn_status parse_cast(const char *text, const tn_cast_rule *defaults, void *rule, tn_error *err)
{
    return tn_cast_rule_parse(text, defaults, rule, err);
}

static void free_cast(void *rule)
{
    tn_cast_rule_free(rule);
}

#define PARSE(name, type)                                                                                \
    static tn_status parse_##name(const char *text, const tn_cast_rule *defaults, void *rule, tn_error *err) \
    {                                                                                                    \
        (void)defaults;                                                                                  \
        return tn_##name##_rule_parse(text, (type *)rule, err);                                          \
    }
PARSE(layout, tn_layout_rule)
PARSE(pad, tn_pad_rule)
PARSE(form, tn_form_rule)
PARSE(slice, tn_slice_rule)
PARSE(transpose, tn_dims_rule)
PARSE(reshape, tn_dims_rule)
PARSE(add, tn_add_rule)
PARSE(concat, tn_join_rule)
PARSE(split, tn_join_rule)

static const tn_rule_step slice_step = {
    "slice", TN_RULE_SHAPE, sizeof(tn_slice_rule), parse_slice, NULL, tn_plan_add_slice
};
static const tn_rule_step transpose_step = {
    "transpose", TN_RULE_SHAPE, sizeof(tn_dims_rule), parse_transpose, NULL, tn_plan_add_transpose
};
static const tn_rule_step reshape_step = {
    "reshape", TN_RULE_SHAPE, sizeof(tn_dims_rule), parse_reshape, NULL, tn_plan_add_reshape
};
static const tn_rule_step add_step = {
    "add", TN_RULE_SHAPE, sizeof(tn_add_rule), parse_add, NULL, tn_plan_add_number
};
static const tn_rule_step concat_step = {
    "concat", TN_RULE_JOIN, sizeof(tn_join_rule), parse_concat, NULL, NULL
};
static const tn_rule_step split_step = {
    "split", TN_RULE_SPLIT, sizeof(tn_join_rule), parse_split, NULL, NULL
};
static const tn_rule_step layout_step = {
    "layout", TN_RULE_LAYOUT, sizeof(tn_layout_rule), parse_layout, NULL, tn_plan_add_layout
};
static const tn_rule_step pad_step = {
    "pad", TN_RULE_PAD, sizeof(tn_pad_rule), parse_pad, NULL, tn_plan_add_pad
};
static const tn_rule_step form_step = {
    "form", TN_RULE_FORM, sizeof(tn_form_rule), parse_form, NULL, tn_plan_add_form
};
static const tn_rule_step cast_step = {
    "cast", TN_RULE_CAST, sizeof(tn_cast_rule), parse_cast, free_cast, tn_plan_add_cast
};

static const tn_rule_step *const steps[] = {
    &slice_step,
    &transpose_step,
    &reshape_step,
    &add_step,
    &concat_step,
    &split_step,
    &layout_step,
    &pad_step,
    &form_step,
    &cast_step,
    NULL
};

const tn_rule_step *tn_rule_step_at(size_t i)
{
    return i < sizeof steps / sizeof *steps ? steps[i] : NULL;
}

/* ---- reading ---- */

/* The row of a step, or NULL. */
static const tn_rule_step *find_step(const char *name)
{
    size_t i = 0;
    while (name && steps[i] && strcmp(steps[i]->name, name) != 0)
        i++;
    return name ? steps[i] : NULL;
}

tn_status tn_rule_read(const tn_rule *text, const tn_cast_rule *defaults, tn_arena *arena, tn_read_rule *rule,
                       tn_error *err)
{
    const tn_rule_step *step = find_step(text->step);
    if (!step || !text->text)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a step (slice, transpose, reshape, add, concat, split, layout, pad, form, "
                       "cast) "
                       "but found %s", tn_quote_z(text->step ? text->step : "").text);
    void *read = tn_arena_zalloc(arena, 1, step->size);
    if (!read)
        return tn_fail_nomem(err);
    TN_TRY(step->parse(text->text, defaults, read, err));
    *rule = (tn_read_rule){ .step = step, .rule = read };
    if (step->kind == TN_RULE_JOIN || step->kind == TN_RULE_SPLIT)
        return TN_OK;
    const char *glob = tn_rule_glob_of(rule);
    tn_status status = tn_pattern_read((tn_text){ glob, strlen(glob) }, &rule->pattern, err);
    if (status)
        tn_read_rule_free(rule);
    return status;
}

void tn_read_rule_free(tn_read_rule *rule)
{
    if (rule->step && rule->step->free)
        rule->step->free(rule->rule);
    tn_pattern_free(&rule->pattern);
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
        makes |= cast->datatype && cast->datatype->block ? TN_RULE_TAKES_IMPORTANCE : 0;
    }
    tn_read_rule_free(&rule);
    tn_arena_free(&arena);
    return makes;
}
