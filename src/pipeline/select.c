/* pipeline/select.c - which tensors come out of a conversion, under which names and by which rules. */
#include "pipeline/select.h"
#include "base/error.h"
#include "pipeline/rules/rules.h"

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

static tn_status check_rules(const tn_selection *s, tn_error *err)
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
    for (size_t i = 0; i < s->options->ncasts; i++)
        TN_TRY(tn_cast_rule_check(&s->options->casts[i], err));
    return TN_OK;
}

static size_t rule_count(const tn_convert_options *o)
{
    return o->nrename + o->ncasts + o->nlayouts + o->npads + o->nforms;
}

typedef struct any_rule {
    tn_reason   reason;         /* names the rules it is of */
    const char *text;
    size_t      earlier;        /* rules of its kind that may take its tensors first */
} any_rule;

/* Rule i of all. */
static any_rule rule_at(const tn_convert_options *o, size_t i)
{
    if (i < o->nrename)
        return (any_rule){ TN_REASON_RENAME, o->rename[i], i };
    if ((i -= o->nrename) < o->ncasts)
        return (any_rule){ TN_REASON_CASTS, o->casts[i].glob, i };
    if ((i -= o->ncasts) < o->nlayouts)
        return (any_rule){ TN_REASON_LAYOUTS, o->layouts[i].glob, i };
    if ((i -= o->nlayouts) < o->npads)
        return (any_rule){ TN_REASON_PADS, o->pads[i].glob, i };
    i -= o->npads;
    return (any_rule){ TN_REASON_FORMS, o->forms[i].glob, i };
}

tn_status tn_select_check(const tn_selection *s, tn_error *err)
{
    size_t i = 0;
    while (i < rule_count(s->options) && s->used[i])
        i++;
    if (i == rule_count(s->options))
        return TN_OK;
    const any_rule rule = rule_at(s->options, i);
    size_t n = i < s->options->nrename ? strcspn(rule.text, "=") : strlen(rule.text);
    tn_status status = tn_fail_unmatched(rule.text, n, err);
    if (rule.earlier)
        tn_and_say(status, ", or earlier rules take them all", err);
    return tn_with_reason(status, rule.reason, NULL, err);
}

/* ---- the rules of each ---- */

/* The first of rules [from, from + n) of all whose glob matches, or n. */
static size_t first_match(tn_selection *s, size_t from, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (tn_pattern_matches(rule_at(s->options, from + i).text, name)) {
            s->used[from + i] = true;
            return i;
        }
    }
    return n;
}

static tn_status find_rules(tn_selection *s, const tn_tensor *t, tn_tensor_rules *rules, tn_error *err)
{
    const tn_convert_options *o = s->options;
    size_t from = o->nrename, cast, layout, pad, form;
    cast = first_match(s, from, o->ncasts, t->name);
    layout = first_match(s, from += o->ncasts, o->nlayouts, t->name);
    pad = first_match(s, from += o->nlayouts, o->npads, t->name);
    form = first_match(s, from += o->npads, o->nforms, t->name);
    *rules = (tn_tensor_rules){
        .cast = cast < o->ncasts ? &o->casts[cast] : NULL,
        .layout = layout < o->nlayouts ? &o->layouts[layout] : NULL,
        .pad = pad < o->npads ? &o->pads[pad] : NULL,
        .form = form < o->nforms ? &o->forms[form] : NULL,
        .plans = cast < o->ncasts ? s->casts[cast] : NULL,
    };
    return rules->form ? tn_walk_start(s->walk, err) : TN_OK;
}

tn_status tn_select_rules(tn_selection *s, size_t i, tn_tensor_rules *rules, tn_error *err)
{
    const tn_tensor *t = s->walk->tensors[i];
    if (s->names && !(s->names[i] = new_name(s, t->name)))
        return tn_fail_nomem(err);
    return find_rules(s, t, rules, err);
}

const char *tn_selected_name(const tn_selection *s, size_t i)
{
    return s->names ? s->names[i] : s->walk->tensors[i]->name;
}

tn_status tn_select(tn_selection *s, const tn_file *file, const tn_convert_options *options, tn_walk *walk,
                    tn_arena *arena, tn_error *err)
{
    size_t n = tn_file_count(file);
    *s = (tn_selection){ .options = options, .walk = walk, .arena = arena };
    s->names = options->nrename ? tn_arena_zalloc(arena, n, sizeof *s->names) : NULL;
    s->casts = tn_arena_zalloc(arena, options->ncasts, sizeof *s->casts);
    s->used = tn_arena_zalloc(arena, rule_count(options), sizeof *s->used);
    if ((options->nrename && !s->names) || !s->casts || !s->used)
        return tn_fail_nomem(err);
    TN_TRY(check_rules(s, err));
    return tn_walk_choose(walk, file, options->only, options->nonly, err);
}
