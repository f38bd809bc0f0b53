/* pipeline/plan_options.c - the options of a plan: checked and copied, for it outlives the call. */
#include "pipeline/plan.h"
#include "base/error.h"
#include "base/options.h"

#include <string.h>

static const char *copy_text(tn_plan *c, const char *text)
{
    return text ? tn_arena_text(&c->arena, text, strlen(text)) : NULL;
}

static const char *const *copy_texts(tn_plan *c, const char *const *texts, size_t n)
{
    const char **copy = tn_arena_zalloc(&c->arena, n, sizeof *copy);
    for (size_t i = 0; i < n && copy; i++)
        if (!(copy[i] = copy_text(c, texts[i])))
            return NULL;
    return copy;
}

static const tn_rule *copy_rules(tn_plan *c, const tn_rule *rules, size_t n)
{
    tn_rule *copy = tn_arena_zalloc(&c->arena, n, sizeof *copy);
    for (size_t i = 0; i < n && copy; i++) {
        copy[i] = (tn_rule){ copy_text(c, rules[i].step), copy_text(c, rules[i].text) };
        if ((rules[i].step && !copy[i].step) || (rules[i].text && !copy[i].text))
            return NULL;
    }
    return copy;
}

static const tn_format_option *copy_format_options(tn_plan *c, const tn_format_option *options, size_t n)
{
    tn_format_option *copy = tn_arena_zalloc(&c->arena, n, sizeof *copy);
    for (size_t i = 0; i < n && copy; i++) {
        copy[i] = (tn_format_option){ copy_text(c, options[i].format), copy_text(c, options[i].key),
                                      copy_text(c, options[i].value) };
        if (!copy[i].format || !copy[i].key || !copy[i].value)
            return NULL;
    }
    return copy;
}

static tn_status check_options(const tn_convert_options *o, tn_error *err)
{
    TN_TRY(tn_check_texts(o->only, o->nonly, "globs", err));
    TN_TRY(tn_check_texts(o->rename, o->nrename, "names", err));
    TN_GIVEN(o->rules || !o->nrules, "rules", err);
    if ((unsigned)o->encoding > TN_CHOOSE || (unsigned)o->checksum > TN_CHOOSE)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected TN_KEEP or TN_CHOOSE but found another number");
    return TN_OK;
}

/* A plan outlives the call: it has its own copy of everything. */
tn_status tn_plan_take_options(tn_plan *c, const tn_convert_options *options, tn_error *err)
{
    tn_convert_options *o = &c->o;
    tn_create_options *create = &c->create;
    TN_TRY(tn_take_options(TN_SIZED(tn_convert_options, quantized), o, options, err));
    TN_TRY(tn_take_options(TN_SIZED(tn_create_options, nformat_options), create, o->create, err));
    TN_TRY(check_options(o, err));
    o->piece_size = o->piece_size ? o->piece_size : tn_piece_bytes;
    TN_TRY(tn_check_format_options(create, err));
    const char *format = create->format, *defaults = o->cast_defaults, *map = o->map,
               *metadata_from = o->metadata_from;
    o->create = create;
    o->map = copy_text(c, map);
    o->metadata_from = copy_text(c, metadata_from);
    o->only = copy_texts(c, o->only, o->nonly);
    o->rename = copy_texts(c, o->rename, o->nrename);
    o->rules = copy_rules(c, o->rules, o->nrules);
    o->cast_defaults = copy_text(c, defaults);
    create->format = copy_text(c, format);
    create->format_options = copy_format_options(c, create->format_options, create->nformat_options);
    bool good = o->only && o->rename && o->rules && create->format_options &&
                !o->cast_defaults == !defaults && !create->format == !format && !o->map == !map &&
                !o->metadata_from == !metadata_from;
    return good ? TN_OK : tn_fail_nomem(err);
}
