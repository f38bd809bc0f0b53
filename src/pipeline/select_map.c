/* pipeline/select_map.c - what comes of the tensors of a file by a map: other names, rows in another order,
 * experts in one tensor or apart. */
#include "pipeline/select.h"
#include "base/error.h"
#include "base/vector.h"
#include "pipeline/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A map that is being applied, and the rules that it needed: each text once. */
typedef struct tn_mapping {
    tn_map        map;
    bool          is_backward;          /* from GGUF to Hugging Face */
    tn_read_rule **rules;
    char        **texts;
    size_t        count, cap, texts_cap;
} tn_mapping;

void tn_mapping_free(tn_mapping *m)
{
    for (size_t i = 0; m && i < m->count; i++) {
        tn_read_rule_free(m->rules[i]);
        free(m->texts[i]);
    }
    if (m) {
        free(m->rules);
        free(m->texts);
    }
    free(m);
}

/* The rule of a step by its text, which is new or was needed before. */
static tn_status find_rule(tn_selection *s, const char *step, const char *text, const tn_read_rule **rule,
                           tn_error *err)
{
    tn_mapping *m = s->mapping;
    const tn_cast_rule plain = { .options.size = sizeof plain.options };
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->rules[i]->step->name, step) == 0 && strcmp(m->texts[i], text) == 0) {
            *rule = m->rules[i];
            return TN_OK;
        }
    TN_NEED(TN_GROW(m->rules, m->count, m->cap), err);
    TN_NEED(TN_GROW(m->texts, m->count, m->texts_cap), err);
    tn_read_rule *made = tn_arena_zalloc(s->arena, 1, sizeof *made);
    char *own = strdup(text);
    tn_status status = made && own ? TN_OK : tn_fail_nomem(err);
    if (!status)
        status = tn_rule_read(&(tn_rule){ step, own }, &plain, s->arena, made, err);
    if (!status && !(made->plans = tn_arena_zalloc(s->arena, TN_DTYPE_COUNT, sizeof *made->plans))) {
        tn_read_rule_free(made);
        status = tn_fail_nomem(err);
    }
    if (status) {
        free(own);
        return status;
    }
    made->is_of_map = true;
    m->texts[m->count] = own;
    m->rules[m->count++] = made;
    *rule = made;
    return TN_OK;
}

static tn_status apply(tn_selection *s, const char *step, const char *text, const tn_origin **o,
                       tn_error *err)
{
    const tn_read_rule *rule;
    TN_TRY(find_rule(s, step, text, &rule, err));
    return tn_origin_apply(s, rule, o, err);
}

/* ---- one tensor ---- */

/* Rows of a head: the two halves that Hugging Face has one after the other lie interleaved in GGUF. */
static tn_status move_rows(tn_selection *s, const tn_map_row *row, const tn_origin **o, tn_error *err)
{
    const tn_tensor *t = (*o)->source;
    int64_t heads = 0, rows = t->rank ? t->shape[0] : 0, columns = t->rank == 2 ? t->shape[1] : 1;
    char apart[100], back[60];
    TN_TRY(tn_map_heads(s->file, s->other, row->heads, &heads, err));
    if ((t->rank != 1 && t->rank != 2) || rows % (2 * heads))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a multiple of %lld rows, two for each head, but found "
                       "%lld", (long long)(2 * heads), (long long)rows);
    long long half = rows / heads / 2, first = s->mapping->is_backward ? half : 2,
              second = s->mapping->is_backward ? 2 : half;
    snprintf(apart, sizeof apart, "%lld,%lld,%lld,%lld", (long long)heads, first, second, (long long)columns);
    snprintf(back, sizeof back, t->rank == 2 ? "%lld,%lld" : "%lld", (long long)rows, (long long)columns);
    TN_TRY(apply(s, "reshape", apart, o, err));
    TN_TRY(apply(s, "transpose", "0,2,1,3", o, err));
    return apply(s, "reshape", back, o, err);
}

static tn_status change(tn_selection *s, const tn_map_row *row, const tn_origin **o, tn_error *err)
{
    bool backward = s->mapping->is_backward;
    if (row->is_transposed)
        TN_TRY(apply(s, "transpose", "1,0", o, err));
    if (row->heads.len)
        TN_TRY(move_rows(s, row, o, err));
    if (row->add != 0) {
        char number[40];
        snprintf(number, sizeof number, "%.9g", backward ? -row->add : row->add);
        TN_TRY(apply(s, "add", number, o, err));
    }
    if (row->is_float32 && !backward && (*o)->source && (*o)->source->dtype == TN_FLOAT32)
        return TN_OK;
    return row->is_float32 && !backward ? apply(s, "cast", "float32", o, err) : TN_OK;
}

/* The tensor under another name, changed as its row says; NULL: it is left out. */
static tn_status map_one(tn_selection *s, const tn_origin **o, tn_error *err)
{
    const tn_mapping *m = s->mapping;
    tn_text stars[TN_MAP_STARS];
    for (size_t i = 0; i < m->map.count; i++) {
        const tn_map_row *row = &m->map.rows[i];
        const tn_text from = m->is_backward ? row->to : row->from, to = m->is_backward ? row->from : row->to;
        if (row->is_stacked || !tn_map_matches(from, (*o)->name, stars))
            continue;
        if (tn_text_is(to, "-")) {
            *o = NULL;
            return TN_OK;
        }
        TN_TRY(change(s, row, o, err));
        tn_origin named = **o;
        named.name = tn_put_stars(s->arena, to, stars);
        *o = named.name ? tn_arena_copy(s->arena, &named, sizeof named) : NULL;
        return *o ? TN_OK : tn_fail_nomem(err);
    }
    return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_ONLY, NULL, "map %s does not have this name",
                     tn_quote_z(m->map.name).text);
}

/* ---- all ---- */

/* Experts become one tensor, or tensors of their own. */
static tn_status map_experts(tn_selection *s, tn_origin_list *list, tn_error *err)
{
    const tn_mapping *m = s->mapping;
    for (size_t i = 0; i < m->map.count; i++) {
        const tn_map_row *row = &m->map.rows[i];
        const tn_read_rule *rule;
        char text[2100];
        if (!row->is_stacked)
            continue;
        if (m->is_backward)
            snprintf(text, sizeof text, "%.*s=%.*s,unstack=0", (int)row->to.len, row->to.ptr,
                     (int)row->from.len, row->from.ptr);
        else
            snprintf(text, sizeof text, "%.*s=%.*s,stack=0", (int)row->to.len, row->to.ptr,
                     (int)row->from.len, row->from.ptr);
        TN_TRY(find_rule(s, m->is_backward ? "split" : "concat", text, &rule, err));
        TN_TRY(tn_origins_apply(s, rule, list, err));
    }
    return TN_OK;
}

tn_status tn_select_map(tn_selection *s, tn_origin_list *list, tn_error *err)
{
    size_t kept = 0;
    s->mapping = calloc(1, sizeof *s->mapping);
    TN_NEED(s->mapping, err);
    TN_TRY(tn_map_read(s->options->map, s->arena, &s->mapping->map, err));
    TN_TRY(tn_map_check_model(&s->mapping->map, s->file, s->other, err));
    TN_TRY(tn_map_is_backward(&s->mapping->map, s->file, &s->mapping->is_backward, err));
    TN_TRY(map_experts(s, list, err));
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->items[i]->name;
        if (list->items[i]->source)     /* others are experts, which have their names */
            TN_TRY(tn_in_tensor(map_one(s, &list->items[i], err), name, err));
        if (list->items[i])
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
    return TN_OK;
}
