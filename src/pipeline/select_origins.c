/* pipeline/select_origins.c - what comes of the tensors of a file before the rules of the result are looked
 * at: slices and other shapes, what is joined and what is cut.
 *
 * The list begins with the chosen tensors.  A rule gives each tensor that it
 * matches another origin; concat makes one of several, at the place of the first,
 * and split makes several of one. */
#include "pipeline/select.h"
#include "base/error.h"
#include "base/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_STARS   = TN_GLOB,      /* whose texts a new name can repeat: it is shorter than that */
    MAX_DEPTH   = 64,
    MAX_SOURCES = 65535,        /* of a tensor, each counted as often as it is read */
    MAX_TENSORS = 1 << 18       /* when one is cut at every index */
};

typedef tn_origin_list origin_list;

static tn_status append(origin_list *list, const tn_origin *o, tn_error *err)
{
    TN_NEED(TN_GROW(list->items, list->count, list->cap), err);
    list->items[list->count++] = o;
    return TN_OK;
}

/* A rule applied to some tensors, in the arena. */
static tn_status new_origin(tn_selection *s, tn_origin o, const tn_origin *const *inputs,
                            const tn_origin **made, tn_error *err)
{
    o.inputs = tn_arena_copy(s->arena, inputs, o.ninputs * sizeof *inputs);
    for (uint32_t i = 0; i < o.ninputs && o.sources <= MAX_SOURCES; i++) {
        o.depth = inputs[i]->depth >= o.depth ? inputs[i]->depth + 1 : o.depth;
        o.sources += inputs[i]->sources;
    }
    if (o.depth > MAX_DEPTH)
        return tn_fail(err, TN_ERR_LIMIT, "expected at most %d rules for a tensor", MAX_DEPTH);
    if (o.sources > MAX_SOURCES)
        return tn_fail(err, TN_ERR_LIMIT, "expected at most %d tensors to join", MAX_SOURCES);
    *made = o.inputs && o.name ? tn_arena_copy(s->arena, &o, sizeof o) : NULL;
    return *made ? TN_OK : tn_fail_nomem(err);
}

static void use_rule(tn_selection *s, const tn_read_rule *rule)
{
    if (!rule->is_of_map)
        s->used[rule - s->rules] = true;
}

/* ---- names ---- */

/* What the first stars of a pattern stand for, each as little as can be: only the last one that was met may
 * have to take more. */
static bool match_name(tn_text pattern, const char *whole, tn_text stars[MAX_STARS])
{
    const tn_text name = { whole, strlen(whole) };
    tn_text beyond, *star = NULL;
    unsigned met = 0;
    for (size_t p = 0, at = 0, after = 0; p < pattern.len || at < name.len;) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = met < MAX_STARS ? &stars[met++] : &beyond;
            *star = (tn_text){ name.ptr + at, 0 };
            after = ++p;
        } else if (p < pattern.len && at < name.len && pattern.ptr[p] == name.ptr[at]) {
            p++;
            at++;
        } else if (star && at < name.len) {
            at = (size_t)(star->ptr - name.ptr) + ++star->len;
            p = after;
        } else {
            return false;
        }
    }
    return true;
}

const char *tn_put_stars(tn_arena *arena, tn_text pattern, const tn_text *stars)
{
    tn_buf b = { 0 };
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.ptr[i] == '*') {
            tn_buf_put(&b, stars->ptr, stars->len);
            stars++;
        } else {
            tn_buf_put(&b, &pattern.ptr[i], 1);
        }
    }
    const char *name = b.bad ? NULL : tn_arena_text(arena, (const char *)b.data, b.size);
    tn_buf_free(&b);
    return name;
}

/* Numbers in names by their value: w.9 before w.10. */
static int by_number(const char *a, const char *b)
{
    while (*a && *b) {
        size_t m = strspn(a, "0123456789"), n = strspn(b, "0123456789");
        if (m && n) {
            for (; m > 1 && *a == '0'; m--)
                a++;
            for (; n > 1 && *b == '0'; n--)
                b++;
            int order = m != n ? (m < n ? -1 : 1) : memcmp(a, b, n);
            if (order)
                return order;
            a += m;
            b += n;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return *a ? 1 : -(*b != '\0');
}

/* In the fixed order a tensor is joined or cut once. */
static bool is_taken(const tn_selection *s, const tn_origin *o)
{
    return !s->options->in_order && o->rule &&
           (o->rule->step->kind == TN_RULE_JOIN || o->rule->step->kind == TN_RULE_SPLIT);
}

/* ---- joining ---- */

/* A tensor that is to be joined. */
typedef struct member {
    const char      *whole;     /* the name of what it becomes part of */
    uint32_t         glob;      /* which one it matches */
    size_t           place;     /* in the list */
    const tn_origin *origin;
} member;

static int by_place(const void *x, const void *y)
{
    const member *a = x, *b = y;
    int order = strcmp(a->whole, b->whole);
    if (!order && a->glob != b->glob)
        return a->glob < b->glob ? -1 : 1;
    if (!order)
        order = by_number(a->origin->name, b->origin->name);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

/* The tensors that a rule joins, those of one result together and in their order. */
static tn_status find_members(tn_selection *s, const tn_join_rule *rule, const origin_list *list,
                              member *members, size_t *n, tn_error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        for (uint32_t k = 0; k < rule->count; k++) {
            tn_text stars[MAX_STARS];
            if (is_taken(s, list->items[i]) || !match_name(rule->names[k], list->items[i]->name, stars))
                continue;
            member m = { tn_put_stars(s->arena, rule->whole, stars), k, i, list->items[i] };
            if (!m.whole)
                return tn_fail_nomem(err);
            members[(*n)++] = m;
            break;
        }
    }
    qsort(members, *n, sizeof *members, by_place);
    return TN_OK;
}

/* Each glob must have found something: what is missing is not left out silently. */
static tn_status check_globs(const tn_selection *s, const tn_join_rule *rule, const member *m, size_t n,
                             tn_error *err)
{
    const tn_name_list names = { .file = s->file, .count = tn_file_count(s->file) };
    size_t at = 0;
    for (uint32_t k = 0; k < rule->count; k++) {
        if (at == n || m[at].glob != k)
            return tn_fail_unmatched(&names, rule->names[k], ", or earlier globs take them all", err);
        while (at < n && m[at].glob == k)
            at++;
    }
    return TN_OK;
}

static tn_status join_members(tn_selection *s, const tn_read_rule *rule, const member *m, size_t n,
                              origin_list *list, tn_error *err)
{
    const tn_origin **inputs = calloc(n, sizeof *inputs);
    if (!inputs)
        return tn_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        inputs[i] = m[i].origin;
        list->items[m[i].place] = NULL;
    }
    tn_status status = new_origin(s, (tn_origin){ .rule = rule, .ninputs = (uint32_t)n, .name = m->whole },
                                  inputs, &list->items[m->place], err);
    free(inputs);
    return status;
}

static tn_status join_all(tn_selection *s, const tn_read_rule *rule, origin_list *list, tn_error *err)
{
    size_t n = 0, kept = 0;
    member *members = calloc(list->count + 1, sizeof *members);
    tn_status status = members ? find_members(s, rule->rule, list, members, &n, err) : tn_fail_nomem(err);
    for (size_t i = 0, some; i < n && !status; i += some) {
        for (some = 1; i + some < n && strcmp(members[i].whole, members[i + some].whole) == 0;)
            some++;
        status = check_globs(s, rule->rule, &members[i], some, err);
        tn_in_tensor(status, members[i].whole, err);
        if (!status)
            status = join_members(s, rule, &members[i], some, list, err);
        use_rule(s, rule);
    }
    free(members);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i])
            list->items[kept++] = list->items[i];
    list->count = kept;
    return status;
}

/* ---- cutting ---- */

/* How many pieces a tensor is cut into: of one that is unstacked its shape says it. */
static tn_status count_pieces(tn_selection *s, const tn_join_rule *rule, const tn_origin *o, uint64_t *n,
                              tn_error *err)
{
    tn_arena arena = { 0 };
    const tn_plan_place place = {
        .view = { .file = s->file, .walk = s->walk, .max_bytes = s->options->max_bytes },
        .arena = s->arena,      /* of cast plans, which are kept */
    };
    const tn_tensor_rules none = { .origin = o };
    tn_planning p = { .place = &place, .rules = &none, .shapes_only = !s->options->in_order };
    *n = rule->count;
    if (!rule->is_new)
        return TN_OK;
    tn_status status = tn_plan_origin(&p, o, &arena, err);
    if (!status)
        status = tn_in_tensor(tn_plan_pieces(p.view, rule, n, err), o->name, err);
    if (!status && !*n)
        status = tn_in_tensor(tn_fail(err, TN_ERR_ARGUMENT, "expected at least one index to cut it at but "
                                      "dimension %d has none: nothing would be left of it", rule->axis),
                              o->name, err);
    tn_view_free(p.view);
    tn_arena_free(&arena);
    return status;
}

static tn_status split_one(tn_selection *s, const tn_read_rule *rule, const tn_origin *o, tn_text *stars,
                           origin_list *list, tn_error *err)
{
    const tn_join_rule *r = rule->rule;
    uint64_t n = 0;
    unsigned last = 0;
    TN_TRY(count_pieces(s, r, o, &n, err));
    if (r->is_new && n + list->count > MAX_TENSORS)
        return tn_in_tensor(tn_fail(err, TN_ERR_LIMIT,
                                    "expected at most %d tensors but each of its %llu indices would be one",
                                    MAX_TENSORS, (unsigned long long)n), o->name, err);
    for (size_t i = 0; i < r->whole.len; i++)
        last += r->whole.ptr[i] == '*';
    for (uint32_t i = 0; i < n; i++) {
        char number[16];
        const tn_origin *made;
        if (r->is_new)
            stars[last] = (tn_text){ number, (size_t)snprintf(number, sizeof number, "%u", i) };
        const char *name = tn_put_stars(s->arena, r->names[r->is_new ? 0 : i], stars);
        const tn_origin piece = { .rule = rule, .ninputs = 1, .piece = i, .name = name };
        TN_TRY(new_origin(s, piece, &o, &made, err));
        TN_TRY(append(list, made, err));
    }
    return TN_OK;
}

static tn_status split_all(tn_selection *s, const tn_read_rule *rule, origin_list *list, tn_error *err)
{
    const tn_join_rule *r = rule->rule;
    origin_list new = { 0 };
    tn_status status = TN_OK;
    for (size_t i = 0; i < list->count && !status; i++) {
        tn_text stars[MAX_STARS + 1];
        if (is_taken(s, list->items[i]) || !match_name(r->whole, list->items[i]->name, stars)) {
            status = append(&new, list->items[i], err);
            continue;
        }
        use_rule(s, rule);
        status = split_one(s, rule, list->items[i], stars, &new, err);
    }
    free(list->items);
    *list = new;
    return status;
}

/* ---- one tensor for one ---- */

tn_status tn_origin_apply(tn_selection *s, const tn_read_rule *rule, const tn_origin **o, tn_error *err)
{
    use_rule(s, rule);
    if (rule->step->kind == TN_RULE_FORM)
        TN_TRY(tn_walk_start(s->walk, err));
    return new_origin(s, (tn_origin){ .rule = rule, .ninputs = 1, .name = (*o)->name }, o, o, err);
}

tn_status tn_origins_apply(tn_selection *s, const tn_read_rule *rule, tn_origin_list *list, tn_error *err)
{
    if (rule->step->kind == TN_RULE_JOIN)
        return join_all(s, rule, list, err);
    if (rule->step->kind == TN_RULE_SPLIT)
        return split_all(s, rule, list, err);
    for (size_t i = 0; i < list->count; i++)
        if (tn_pattern_matches(&rule->pattern, list->items[i]->name))
            TN_TRY(tn_origin_apply(s, rule, &list->items[i], err));
    return TN_OK;
}

static tn_status apply_first(tn_selection *s, const tn_rule_step *step, const tn_origin **o, tn_error *err)
{
    for (size_t i = 0; i < s->nrules; i++)
        if (s->rules[i].step == step && tn_pattern_matches(&s->rules[i].pattern, (*o)->name))
            return tn_origin_apply(s, &s->rules[i], o, err);
    return TN_OK;
}

/* Of each step the first rule that matches, in the order of the table. */
static tn_status apply_shapes(tn_selection *s, origin_list *list, tn_error *err)
{
    const tn_rule_step *step;
    for (size_t k = 0; (step = tn_rule_step_at(k)); k++)
        for (size_t i = 0; i < list->count && step->kind == TN_RULE_SHAPE; i++)
            TN_TRY(apply_first(s, step, &list->items[i], err));
    for (size_t r = 0; r < s->nrules; r++)
        if (s->rules[r].step->kind == TN_RULE_JOIN || s->rules[r].step->kind == TN_RULE_SPLIT)
            TN_TRY(tn_origins_apply(s, &s->rules[r], list, err));
    return TN_OK;
}

/* ---- all ---- */

static bool has_shapes(const tn_selection *s)
{
    bool any = s->options->map || (s->options->in_order && s->nrules);
    for (size_t i = 0; i < s->nrules; i++)
        any |= s->rules[i].step->kind <= TN_RULE_SPLIT;
    return any;
}

static const tn_tensor *first_source(const tn_origin *o)
{
    while (!o->source)
        o = o->inputs[0];
    return o->source;
}

static size_t list_sources(const tn_origin *o, const tn_tensor **list)
{
    size_t n = 0;
    for (uint32_t i = 0; i < o->ninputs; i++)
        n += list_sources(o->inputs[i], &list[n]);
    if (o->source)
        list[n++] = o->source;
    return n;
}

const tn_tensor **tn_selected_sources(const tn_selection *s, size_t i, size_t *n)
{
    const tn_origin leaf = { .source = s->walk->tensors[i], .sources = 1 };
    const tn_origin *o = s->origins ? s->origins[i] : &leaf;
    const tn_tensor **list = calloc(o->sources, sizeof *list);
    *n = list ? list_sources(o, list) : 0;
    return list;
}

/* The list as that of the walk, whose tensors are the first sources. */
static tn_status take_list(tn_selection *s, const origin_list *list, tn_error *err)
{
    const tn_tensor **sources = calloc(list->count + 1, sizeof *sources);
    s->origins = tn_arena_copy(s->arena, list->items, list->count * sizeof *list->items);
    if (!sources || !s->origins) {
        free(sources);
        return tn_fail_nomem(err);
    }
    for (size_t i = 0; i < list->count; i++)
        sources[i] = first_source(list->items[i]);
    free(s->walk->tensors);
    s->walk->tensors = sources;
    s->walk->count = list->count;
    return TN_OK;
}

tn_status tn_select_origins(tn_selection *s, tn_error *err)
{
    origin_list list = { 0 };
    tn_status status = TN_OK;
    if (!has_shapes(s))
        return TN_OK;
    for (size_t i = 0; i < s->walk->count && !status; i++) {
        const tn_origin leaf = { .source = s->walk->tensors[i], .name = s->walk->tensors[i]->name,
                                 .sources = 1 };
        const tn_origin *o = tn_arena_copy(s->arena, &leaf, sizeof leaf);
        status = o ? append(&list, o, err) : tn_fail_nomem(err);
    }
    if (!status && s->options->map)
        status = tn_select_map(s, &list, err);
    if (!status && !s->options->in_order)
        status = apply_shapes(s, &list, err);
    for (size_t i = 0; i < s->nrules && s->options->in_order && !status; i++)
        status = tn_origins_apply(s, &s->rules[i], &list, err);
    if (!status)
        status = take_list(s, &list, err);
    free(list.items);
    return status;
}
