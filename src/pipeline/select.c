/* pipeline/select.c - which tensors come out of a conversion, under which names and by which rules. */
#include "pipeline/select.h"
#include "base/error.h"
#include "pipeline/rules/rules.h"
#include "store/packed.h"

#include <string.h>

/* ---- which tensors, under which names ---- */

/* A pattern with at most one '*': where its text begins and ends. */
static bool match_star(const char *pattern, size_t n, const char *name, tn_text *star)
{
    const char *at = memchr(pattern, '*', n);
    size_t len = strlen(name), head = at ? (size_t)(at - pattern) : n, tail = at ? n - head - 1 : 0;
    *star = (tn_text){ name, 0 };
    if (!at)
        return len == n && memcmp(name, pattern, n) == 0;
    if (len < head + tail || memcmp(name, pattern, head) != 0 || memcmp(name + len - tail, at + 1, tail) != 0)
        return false;
    *star = (tn_text){ name + head, len - head - tail };
    return true;
}

static const char *put_star(tn_selection *s, const char *pattern, tn_text star)
{
    const char *at = strchr(pattern, '*');
    size_t head = at ? (size_t)(at - pattern) : strlen(pattern);
    tn_buf b = { 0 };
    tn_buf_put(&b, pattern, head);
    if (at) {
        tn_buf_put(&b, star.ptr, star.len);
        tn_buf_puts(&b, at + 1);
    }
    const char *name = b.bad ? NULL : tn_arena_text(s->arena, (const char *)b.data, b.size);
    tn_buf_free(&b);
    return name;
}

/* The new name; NULL when memory is out. */
static const char *new_name(tn_selection *s, const char *name)
{
    for (size_t i = 0; i < s->options->nrename; i++) {
        const char *equals = strchr(s->options->rename[i], '=');
        tn_text star;
        if (!match_star(s->options->rename[i], (size_t)(equals - s->options->rename[i]), name, &star))
            continue;
        s->used[i] = true;
        return put_star(s, equals + 1, star);
    }
    return name;
}

static tn_status check_names(const tn_selection *s, tn_error *err)
{
    for (size_t i = 0; i < s->options->nrename; i++) {
        const char *equals = strchr(s->options->rename[i], '=');
        if (!equals)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected OLD=NEW to rename but found %s",
                           tn_quote_z(s->options->rename[i]).text);
        size_t old = 0, new = 0;
        for (const char *p = s->options->rename[i]; *p; p++)
            *(p < equals ? &old : &new) += *p == '*';
        if (old > 1 || new > old)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected at most one '*' on each side of %s, and on the left if on the right",
                           tn_quote_z(s->options->rename[i]).text);
    }
    return TN_OK;
}

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
    size_t i = 0, named = s->options->nrename;
    while (i < named + s->nrules && s->used[i])
        i++;
    if (i == named + s->nrules)
        return TN_OK;
    const tn_read_rule *rule = i < named ? NULL : &s->rules[i - named];
    const char *text = rule ? tn_rule_glob_of(rule) : s->options->rename[i];
    size_t n = rule ? strlen(text) : strcspn(text, "=");
    if (rule && rule->step->kind == TN_RULE_JOIN) {     /* whose glob is the new name */
        const tn_join_rule *join = rule->rule;
        text = join->names[0].ptr;
        n = join->names[0].len;
    }
    tn_status status = tn_fail_unmatched(text, n, err);
    if (rule ? has_earlier(s, i - named) : i > 0)
        tn_and_say(status, ", or earlier rules take them all", err);
    if (!rule)
        return tn_with_reason(status, TN_REASON_RENAME, NULL, err);
    if (rule->step->kind == TN_RULE_CAST)
        return tn_with_reason(status, TN_REASON_CASTS, NULL, err);
    return tn_with_reason(status, TN_REASON_RULES, rule->step->name, err);
}

/* ---- the rules of each ---- */

/* The first rule of a kind that matches, or NULL. */
static const tn_read_rule *first_match(tn_selection *s, tn_rule_kind kind, const char *name)
{
    for (size_t i = 0; i < s->nrules; i++) {
        if (s->rules[i].step->kind == kind && tn_pattern_matches(tn_rule_glob_of(&s->rules[i]), name)) {
            s->used[s->options->nrename + i] = true;
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
    if (s->names && !(s->names[i] = new_name(s, name)))
        return tn_fail_nomem(err);
    if (!s->options->in_order)
        TN_TRY(find_rules(s, name, rules, err));
    rules->origin = origin && !origin->source ? origin : NULL;
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
    const tn_convert_options *o = s->options;
    tn_cast_rule defaults;
    TN_TRY(tn_cast_defaults_parse(o->cast_defaults, &defaults, err));
    for (; s->nrules < o->nrules; s->nrules++) {
        tn_read_rule *rule = &s->rules[s->nrules];
        const tn_cast_plan **plans = tn_arena_zalloc(s->arena, TN_DTYPE_COUNT, sizeof *plans);
        if (!plans)
            return tn_fail_nomem(err);
        TN_TRY(tn_rule_read(&o->rules[s->nrules], &defaults, s->arena, rule, err));
        rule->plans = plans;
    }
    return TN_OK;
}

void tn_selection_end(tn_selection *s)
{
    for (size_t i = 0; i < s->nrules; i++)
        tn_read_rule_free(&s->rules[i]);
    s->nrules = 0;
}

tn_status tn_select(tn_selection *s, const tn_file *file, const tn_convert_options *options, tn_walk *walk,
                    tn_arena *arena, tn_error *err)
{
    *s = (tn_selection){ .file = file, .options = options, .walk = walk, .arena = arena };
    s->rules = tn_arena_zalloc(arena, options->nrules, sizeof *s->rules);
    s->used = tn_arena_zalloc(arena, options->nrename + options->nrules, sizeof *s->used);
    if (!s->rules || !s->used)
        return tn_fail_nomem(err);
    TN_TRY(check_names(s, err));
    TN_TRY(read_rules(s, err));
    TN_TRY(tn_walk_choose(walk, file, options->only, options->nonly, err));
    TN_TRY(check_whole(s, err));
    TN_TRY(tn_select_origins(s, err));
    s->names = options->nrename ? tn_arena_zalloc(arena, walk->count, sizeof *s->names) : NULL;
    return options->nrename && !s->names ? tn_fail_nomem(err) : TN_OK;
}
