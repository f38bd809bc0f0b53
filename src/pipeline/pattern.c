/* pipeline/pattern.c - choosing tensors by their names, and giving them others. */
#include "pipeline/pattern.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/options.h"
#include "base/vector.h"

#include <fnmatch.h>
#include <stdlib.h>

#define PREFIX "re:"
enum { GROUPS = 10 };           /* \0 to \9 */

/* ---- patterns ---- */

/* What glibc takes exponential time or memory for: back-references, and repetitions inside repetitions. */
static tn_status check_cost(const char *regex, tn_error *err)
{
    unsigned long product = 1;
    for (const char *p = regex; *p; p++) {
        if (*p == '\\' && p[1] >= '1' && p[1] <= '9')
            return tn_fail(err, TN_ERR_ARGUMENT, "a regular expression has no back-references but found \\%c",
                           p[1]);
        if (*p == '\\' && p[1])
            p++;
        for (const char *count = p; *p == '{' && *count && *count != '}';) {
            char *end;
            unsigned long n = strtoul(count + 1, &end, 10);
            product *= n > 1 ? n : 1;
            if (product > TN_MAX_REPEATED)
                return tn_fail(err, TN_ERR_ARGUMENT,
                               "expected counts in braces that multiply to at most %d but found more",
                               TN_MAX_REPEATED);
            count = end + strcspn(end, ",}");
        }
    }
    return TN_OK;
}

static tn_status read_regex(tn_pattern *p, tn_error *err)
{
    const char *text = p->text + strlen(PREFIX);
    char why[120];
    if (strlen(text) > TN_MAX_RE)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a regular expression of at most %d bytes but found one of %zu", TN_MAX_RE,
                       strlen(text));
    TN_TRY(check_cost(text, err));
    int wrong = regcomp(&p->regex, text, REG_EXTENDED);
    if (wrong == REG_ESPACE)
        return tn_fail_nomem(err);
    if (wrong) {
        regerror(wrong, &p->regex, why, sizeof why);
        return tn_fail(err, TN_ERR_ARGUMENT, "%s is no regular expression: %s", tn_quote_z(text).text, why);
    }
    p->is_regex = true;
    return TN_OK;
}

tn_status tn_pattern_read(tn_text text, tn_pattern *pattern, tn_error *err)
{
    *pattern = (tn_pattern){ .text = malloc(text.len + 1) };
    TN_NEED(pattern->text, err);
    memcpy(pattern->text, text.ptr, text.len);
    pattern->text[text.len] = '\0';
    tn_status status = tn_begins_with(pattern->text, PREFIX) ? read_regex(pattern, err) : TN_OK;
    if (status)
        tn_pattern_free(pattern);
    return status;
}

void tn_pattern_free(tn_pattern *p)
{
    if (p->is_regex)
        regfree(&p->regex);
    free(p->text);
    *p = (tn_pattern){ .text = NULL };
}

bool tn_pattern_matches(const tn_pattern *p, const char *name)
{
    if (p->is_regex)
        return regexec(&p->regex, name, 0, NULL, 0) == 0;
    return fnmatch(p->text, name, 0) == 0;
}

tn_status tn_pattern_check_name(const tn_pattern *p, const char *name, tn_error *err)
{
    if (!p->is_regex || strnlen(name, TN_MAX_RE_NAME + 1) <= TN_MAX_RE_NAME)
        return TN_OK;
    return tn_fail(err, TN_ERR_LIMIT, "a regular expression is for names of at most %d bytes but found %zu",
                   TN_MAX_RE_NAME, strlen(name));
}

/* ---- choosing ---- */

static bool is_plain(tn_text pattern)
{
    return strcspn(pattern.ptr, "*?[") >= pattern.len && !tn_begins_with(pattern.ptr, PREFIX);
}

tn_status tn_fail_unmatched(const tn_name_list *names, tn_text pattern, const char *also, tn_error *err)
{
    char word[256] = "";
    tn_nearest nearest = { .word = word };
    tn_status status = tn_fail(err, TN_ERR_ARGUMENT, "no tensor matches %s%s",
                               tn_quote(pattern.ptr, pattern.len).text, also);
    if (pattern.len < sizeof word && is_plain(pattern))
        memcpy(word, pattern.ptr, pattern.len);
    for (size_t i = 0; i < names->count; i++)
        tn_nearest_offer(&nearest, names->file ? tn_file_tensor(names->file, i)->name : names->names[i]);
    return tn_and_nearest(status, &nearest, err);
}

tn_status tn_chooser_begin(tn_chooser *c, const char *const *patterns, size_t n, tn_error *err)
{
    *c = (tn_chooser){ .by_default = true };
    c->patterns = calloc(n + 1, sizeof *c->patterns);
    c->excludes = calloc(n + 1, sizeof *c->excludes);
    c->used = calloc(n + 1, sizeof *c->used);
    TN_NEED(c->patterns && c->excludes && c->used, err);
    TN_TRY(tn_check_texts(patterns, n, "patterns", err));
    for (; c->count < n; c->count++) {
        const char *text = patterns[c->count];
        bool excludes = *text == '!';
        c->excludes[c->count] = excludes;
        c->by_default &= excludes;
        TN_TRY(tn_pattern_read((tn_text){ text + excludes, strlen(text + excludes) }, &c->patterns[c->count],
                               err));
    }
    return TN_OK;
}

void tn_chooser_end(tn_chooser *c)
{
    for (size_t i = 0; i < c->count; i++)
        tn_pattern_free(&c->patterns[i]);
    free(c->patterns);
    free(c->excludes);
    free(c->used);
    *c = (tn_chooser){ 0 };
}

/* All patterns are tried: each must match something. */
tn_status tn_chooser_ask(tn_chooser *c, const char *name, bool *chosen, tn_error *err)
{
    bool included = c->by_default, excluded = false;
    for (size_t i = 0; i < c->count; i++) {
        TN_TRY(tn_pattern_check_name(&c->patterns[i], name, err));
        if (!tn_pattern_matches(&c->patterns[i], name))
            continue;
        c->used[i] = true;
        *(c->excludes[i] ? &excluded : &included) = true;
    }
    *chosen = included && !excluded;
    return TN_OK;
}

tn_status tn_chooser_check(const tn_chooser *c, const tn_name_list *names, tn_error *err)
{
    size_t i = 0;
    while (i < c->count && c->used[i])
        i++;
    if (i == c->count)
        return TN_OK;
    const char *text = c->patterns[i].text;
    return tn_fail_unmatched(names, (tn_text){ text, strlen(text) }, "", err);
}

tn_status tn_choose(const char *const *names, size_t count, const char *const *patterns, size_t npatterns,
                    bool *chosen, tn_error *err)
{
    TN_TRY(tn_check_texts(names, count, "names", err));
    TN_GIVEN(chosen || !count, "a place for the answers", err);
    tn_chooser c;
    tn_status status = tn_chooser_begin(&c, patterns, npatterns, err);
    for (size_t i = 0; i < count && !status; i++)
        status = tn_chooser_ask(&c, names[i], &chosen[i], err);
    if (!status)
        status = tn_chooser_check(&c, &(tn_name_list){ .names = names, .count = count }, err);
    tn_chooser_end(&c);
    return status;
}

/* ---- renaming ---- */

static unsigned stars_in(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += *text == '*';
    return n;
}

/* \N with more groups than the expression has. */
static tn_status check_groups(const tn_rename *r, tn_error *err)
{
    for (const char *p = r->new; *p; p++) {
        if (*p != '\\')
            continue;
        if (p[1] < '0' || p[1] > '9' || (size_t)(p[1] - '0') > r->old.regex.re_nsub)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected \\0 to \\%zu, the groups of the expression, but found %s",
                           r->old.regex.re_nsub < 9 ? r->old.regex.re_nsub : 9, tn_quote_z(p).text);
        p++;
    }
    return TN_OK;
}

static tn_status read_rename(const char *text, tn_rename *r, tn_error *err)
{
    TN_GIVEN(text, "a new name", err);
    const char *equals = strchr(text, '=');
    if (!equals)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected OLD=NEW to rename but found %s",
                       tn_quote_z(text).text);
    TN_TRY(tn_pattern_read((tn_text){ text, (size_t)(equals - text) }, &r->old, err));
    r->new = equals + 1;
    if (r->old.is_regex)
        return check_groups(r, err);
    if (stars_in(r->old.text) > 1 || stars_in(r->new) > stars_in(r->old.text))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected at most one '*' on each side of %s, and on the left if on the right",
                       tn_quote_z(text).text);
    return TN_OK;
}

tn_status tn_renames_begin(tn_renames *r, const char *const *texts, size_t n, tn_error *err)
{
    *r = (tn_renames){ .items = calloc(n + 1, sizeof *r->items), .used = calloc(n + 1, sizeof *r->used) };
    TN_NEED(r->items && r->used, err);
    TN_TRY(tn_check_texts(texts, n, "names", err));
    for (; r->count < n; r->count++) {
        tn_status status = read_rename(texts[r->count], &r->items[r->count], err);
        if (status) {
            tn_pattern_free(&r->items[r->count].old);
            return status;
        }
    }
    return TN_OK;
}

void tn_renames_end(tn_renames *r)
{
    for (size_t i = 0; i < r->count; i++)
        tn_pattern_free(&r->items[i].old);
    free(r->items);
    free(r->used);
    *r = (tn_renames){ 0 };
}

tn_status tn_renames_check(const tn_renames *r, const tn_name_list *names, tn_error *err)
{
    size_t i = 0;
    while (i < r->count && r->used[i])
        i++;
    if (i == r->count)
        return TN_OK;
    const tn_text old = { r->items[i].old.text, strlen(r->items[i].old.text) };
    return tn_with_reason(tn_fail_unmatched(names, old, i ? ", or earlier rules take them all" : "", err),
                          TN_REASON_RENAME, NULL, err);
}

/* Only '*' is special; *star is what it stands for. */
static bool match_star(const char *pattern, const char *name, tn_text *star)
{
    const char *at = strchr(pattern, '*');
    size_t n = strlen(pattern), len = strlen(name);
    size_t head = at ? (size_t)(at - pattern) : n, tail = at ? n - head - 1 : 0;
    *star = (tn_text){ name, 0 };
    if (!at)
        return strcmp(pattern, name) == 0;
    if (len < head + tail || memcmp(name, pattern, head) != 0 || memcmp(name + len - tail, at + 1, tail) != 0)
        return false;
    *star = (tn_text){ name + head, len - head - tail };
    return true;
}

static void put_star(tn_buf *b, const char *new, tn_text star)
{
    size_t head = strcspn(new, "*");
    tn_buf_put(b, new, head);
    if (new[head]) {
        tn_buf_put(b, star.ptr, star.len);
        tn_buf_puts(b, new + head + 1);
    }
}

static void put_groups(tn_buf *b, const char *new, const char *old, const regmatch_t *groups)
{
    tn_buf_put(b, old, (size_t)groups[0].rm_so);
    for (; *new; new++) {
        const regmatch_t *g = *new == '\\' ? &groups[*++new - '0'] : NULL;
        if (!g)
            tn_buf_put(b, new, 1);
        else if (g->rm_so >= 0)
            tn_buf_put(b, old + g->rm_so, (size_t)(g->rm_eo - g->rm_so));
    }
    tn_buf_puts(b, old + groups[0].rm_eo);
}

/* Whether it is for this name; the new one is then in the buffer. */
static bool apply(const tn_rename *r, const char *old, tn_buf *b)
{
    regmatch_t groups[GROUPS];
    tn_text star = { NULL, 0 };
    bool matches = r->old.is_regex ? regexec(&r->old.regex, old, GROUPS, groups, 0) == 0
                                   : match_star(r->old.text, old, &star);
    if (matches && r->old.is_regex)
        put_groups(b, r->new, old, groups);
    else if (matches)
        put_star(b, r->new, star);
    return matches;
}

tn_status tn_renames_apply(tn_renames *r, const char *old, tn_arena *arena, const char **new, tn_error *err)
{
    *new = old;
    for (size_t i = 0; i < r->count; i++) {
        tn_buf b = { 0 };
        TN_TRY(tn_pattern_check_name(&r->items[i].old, old, err));
        if (!apply(&r->items[i], old, &b))
            continue;
        r->used[i] = true;
        *new = b.bad ? NULL : tn_arena_text(arena, b.size ? (const char *)b.data : "", b.size);
        tn_buf_free(&b);
        return *new ? TN_OK : tn_fail_nomem(err);
    }
    return TN_OK;
}
