/* pipeline/select.c - which tensors come out of a conversion, under which names and by which rules. */
#include "pipeline/select.h"
#include "base/error.h"
#include "pipeline/rules/rules.h"
#include "store/packed.h"

#include <stdlib.h>
#include <string.h>

/* ---- rules that were never used ---- */

/* Whether a rule of the same step comes before rule i. */
static bool has_earlier(const tn_selection *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (s->rules[k].step == s->rules[i].step)
            return true;
    return false;
}

tn_status tn_select_check(const tn_selection *s, tn_error *err)
{
    const tn_name_list names = { .file = s->file, .count = tn_file_count(s->file) };
    size_t i = 0;
    TN_TRY(tn_renames_check(&s->renames, &names, err));
    while (i < s->nrules && s->used[i])
        i++;
    if (i == s->nrules)
        return TN_OK;
    const tn_read_rule *rule = &s->rules[i];
    tn_text glob = { tn_rule_glob_of(rule), strlen(tn_rule_glob_of(rule)) };
    if (rule->step->kind == TN_RULE_JOIN)       /* whose glob is the new name */
        glob = ((const tn_join_rule *)rule->rule)->names[0];
    tn_status status = tn_fail_unmatched(&names, glob,
                                         has_earlier(s, i) ? ", or earlier rules take them all" : "", err);
    if (rule->step->kind == TN_RULE_CAST)
        return tn_with_reason(status, TN_REASON_CASTS, NULL, err);
    return tn_with_reason(status, TN_REASON_RULES, rule->step->name, err);
}

/* ---- the rules of each ---- */

static tn_status read_rule(tn_selection *s, const tn_rule *text, tn_read_rule *rule, tn_error *err)
{
    const tn_cast_plan **plans = tn_arena_zalloc(s->arena, TN_DTYPE_COUNT, sizeof *plans);
    TN_NEED(plans, err);
    TN_TRY(tn_rule_read(text, &s->defaults, s->arena, rule, err));
    rule->plans = plans;
    return TN_OK;
}

/* The first rule of a kind that matches, or NULL. */
static const tn_read_rule *first_match(tn_selection *s, tn_rule_kind kind, const char *name)
{
    for (size_t i = 0; i < s->nrules; i++) {
        if (s->rules[i].step->kind == kind && tn_pattern_matches(&s->rules[i].pattern, name)) {
            s->used[i] = true;
            return &s->rules[i];
        }
    }
    return NULL;
}

/* ---- another tool's codes ---- */

static bool is_chosen(const tn_walk *walk, const tn_tensor *t)
{
    size_t low = 0, high = walk->count;     /* in the order of the file */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (walk->tensors[middle] < t)
            low = middle + 1;
        else
            high = middle;
    }
    return low < walk->count && walk->tensors[low] == t;
}

/* Codes are copied with all that belongs to them, or not at all. */
static tn_status check_whole(const tn_selection *s, tn_error *err)
{
    const tn_file *file = s->file;
    if (!file->packed || s->options->raw_codes || s->walk->count == file->count)
        return TN_OK;
    for (size_t i = 0; i < file->count; i++) {
        const tn_tensor *t = &file->tensors[i];
        const tn_packed *packed = file->packed[i];
        const tn_tensor *codes = packed ? tn_file_find(file, packed->codes) : NULL;
        if (codes && is_chosen(s->walk, t) != is_chosen(s->walk, codes))
            return tn_refuse(err, TN_ERR_LOSS, TN_REASON_RAW_CODES, NULL,
                             "%s belongs to codes of %s in %s: choose both or none",
                             tn_quote_z(t->name).text, packed->convention, tn_quote_z(codes->name).text);
    }
    return TN_OK;
}

/* Codes are not changed as if they were numbers. */
static tn_status check_numbers(const tn_selection *s, const tn_origin *origin, const tn_tensor *t,
                               tn_error *err)
{
    for (uint32_t i = 0; origin && i < origin->ninputs; i++)
        TN_TRY(check_numbers(s, origin->inputs[i], origin->inputs[i]->source, err));
    const tn_packed *packed = t ? tn_packed_of(s->file, t) : NULL;
    return packed ? tn_packed_refuse(packed, t, err) : TN_OK;
}

/* Whether some rule may change a tensor of this name. */
static bool is_changed(const tn_selection *s, const char *name)
{
    bool any = s->options->map != NULL;
    for (size_t i = 0; i < s->nrules && !any; i++)
        any = s->rules[i].step->kind == TN_RULE_JOIN || tn_pattern_matches(&s->rules[i].pattern, name);
    return any;
}

/* A copy in the same kind of container has another tool's entries as they are, which that tool can read. */
static bool keeps_entries(const tn_selection *s, const tn_tensor *t)
{
    const tn_packed *packed = tn_packed_known(s->file, t);
    bool same = s->to == s->file->format && !is_changed(s, t->name);
    return packed && packed->tensor && (s->options->raw_codes || same);
}

/* Chosen tensors that are copied as entries are replaced by them, in the order of the container. */
static tn_status list_entries(tn_selection *s, tn_error *err)
{
    const tn_file *file = s->file;
    const tn_tensor **list = file->listed ? calloc(file->nlisted + 1, sizeof *list) : NULL;
    size_t n = 0;
    if (!file->listed)
        return TN_OK;
    TN_NEED(list, err);
    for (size_t i = 0; i < file->nlisted; i++) {
        const tn_listed *l = &file->listed[i];
        const tn_tensor *t = &file->tensors[l->tensor];
        const tn_packed *packed = tn_packed_known(file, t);
        bool is_place = !packed || !packed->tensor || strcmp(packed->codes, l->entry.name) == 0;
        if (is_chosen(s->walk, t) && (is_place || keeps_entries(s, t)))
            list[n++] = keeps_entries(s, t) ? &l->entry : t;
    }
    free(s->walk->tensors);
    s->walk->tensors = list;
    s->walk->count = n;
    return TN_OK;
}

/* The codes of a scaled tensor become dense by a cast to the type of its values. */
static tn_status cast_to_values(tn_selection *s, const tn_tensor *t, tn_tensor_rules *rules, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    if (!rules->form || rules->form->form != TN_FORM_DENSE || !tn_form_is_scaled(t->form) || !type ||
        rules->cast)
        return TN_OK;
    rules->form = NULL;
    if (!s->values)
        TN_NEED(s->values = tn_arena_zalloc(s->arena, TN_DTYPE_COUNT, sizeof *s->values), err);
    tn_read_rule *cast = &s->values[t->dtype];
    if (!cast->step)
        TN_TRY(read_rule(s, &(tn_rule){ "cast", type->name }, cast, err));
    rules->cast = cast->rule;
    rules->plans = cast->plans;
    return TN_OK;
}

static tn_status find_rules(tn_selection *s, const char *name, tn_tensor_rules *rules, tn_error *err)
{
    const tn_read_rule *cast = first_match(s, TN_RULE_CAST, name),
                       *layout = first_match(s, TN_RULE_LAYOUT, name),
                       *pad = first_match(s, TN_RULE_PAD, name), *form = first_match(s, TN_RULE_FORM, name);
    *rules = (tn_tensor_rules){
        .cast = cast ? cast->rule : NULL, .layout = layout ? layout->rule : NULL,
        .pad = pad ? pad->rule : NULL, .form = form ? form->rule : NULL, .plans = cast ? cast->plans : NULL,
    };
    return form ? tn_walk_start(s->walk, err) : TN_OK;
}

tn_status tn_select_rules(tn_selection *s, size_t i, tn_tensor_rules *rules, tn_error *err)
{
    const tn_origin *origin = s->origins ? s->origins[i] : NULL;
    const char *name = origin ? origin->name : s->walk->tensors[i]->name;
    *rules = (tn_tensor_rules){ 0 };
    if (s->names)
        TN_TRY(tn_renames_apply(&s->renames, name, s->arena, &s->names[i], err));
    if (!s->options->in_order)
        TN_TRY(find_rules(s, name, rules, err));
    if (!origin || origin->source)
        TN_TRY(cast_to_values(s, s->walk->tensors[i], rules, err));
    rules->origin = origin && !origin->source ? origin : NULL;
    rules->name = s->by_names ? tn_selected_name(s, i) : NULL;
    bool changes = rules->origin || rules->cast || rules->layout || rules->pad || rules->form;
    if (!changes || !s->file->packed || s->options->raw_codes)
        return TN_OK;
    return check_numbers(s, rules->origin, s->walk->tensors[i], err);
}

const char *tn_selected_name(const tn_selection *s, size_t i)
{
    if (s->names)
        return s->names[i];
    return s->origins ? s->origins[i]->name : s->walk->tensors[i]->name;
}

static tn_status read_rules(tn_selection *s, tn_error *err)
{
    for (; s->nrules < s->options->nrules; s->nrules++) {
        tn_read_rule *rule = &s->rules[s->nrules];
        TN_TRY(read_rule(s, &s->options->rules[s->nrules], rule, err));
        s->by_names |= rule->step->kind == TN_RULE_CAST && ((const tn_cast_rule *)rule->rule)->weights;
    }
    return TN_OK;
}

void tn_selection_end(tn_selection *s)
{
    for (size_t i = 0; i < s->nrules; i++)
        tn_read_rule_free(&s->rules[i]);
    for (size_t i = 0; s->values && i < TN_DTYPE_COUNT; i++)
        tn_read_rule_free(&s->values[i]);
    tn_mapping_free(s->mapping);
    s->mapping = NULL;
    s->values = NULL;
    s->nrules = 0;
    tn_renames_end(&s->renames);
}

/* Of the names that rules are held against. */
static tn_status check_lengths(const tn_selection *s, tn_error *err)
{
    for (size_t i = 0; i < s->nrules; i++)
        for (size_t k = 0; s->rules[i].pattern.is_regex && k < s->walk->count; k++)
            TN_TRY(tn_pattern_check_name(&s->rules[i].pattern, s->walk->tensors[k]->name, err));
    return TN_OK;
}

tn_status tn_select(tn_selection *s, const tn_file *file, const tn_convert_options *options, tn_walk *walk,
                    tn_arena *arena, tn_error *err)
{
    *s = (tn_selection){ .file = file, .options = options, .walk = walk, .arena = arena, .to = s->to,
                         .other = s->other };
    s->rules = tn_arena_zalloc(arena, options->nrules, sizeof *s->rules);
    s->used = tn_arena_zalloc(arena, options->nrules, sizeof *s->used);
    if (!s->rules || !s->used)
        return tn_fail_nomem(err);
    TN_TRY(tn_renames_begin(&s->renames, options->rename, options->nrename, err));
    TN_TRY(tn_cast_defaults_parse(options->cast_defaults, &s->defaults, err));
    TN_TRY(read_rules(s, err));
    TN_TRY(tn_walk_choose(walk, file, options->only, options->nonly, err));
    TN_TRY(check_whole(s, err));
    TN_TRY(list_entries(s, err));
    TN_TRY(check_lengths(s, err));
    TN_TRY(tn_select_origins(s, err));
    s->names = options->nrename ? tn_arena_zalloc(arena, walk->count, sizeof *s->names) : NULL;
    return options->nrename && !s->names ? tn_fail_nomem(err) : TN_OK;
}
