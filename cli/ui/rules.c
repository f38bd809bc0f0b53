/* cli/ui/rules.c - rules that change tensors: --cast, --sparse, --recipe, --layout, --pad,
 * --form. */
#include "ui/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 64 << 10 };       /* bytes of a recipe's line, far more than a rule needs */

static tn_status add_cast(rule_list *rules, const opts *o, const char *text, tn_error *err)
{
    if (rules->ncasts == rules->cap) {
        rules->cap = 2 * rules->cap + 8;
        rules->casts = must_resize(rules->casts, rules->cap * sizeof *rules->casts);
    }
    tn_status status = tn_cast_rule_parse(text, &o->cast, &rules->casts[rules->ncasts], err);
    rules->ncasts += status == TN_OK;
    return status;
}

/* Cuts the comment and the spaces around a rule.  A '#' inside a word is part of it. */
static char *trim(char *line)
{
    static const char spaces[] = " \t\r\n";
    for (char *hash = strchr(line, '#'); hash; hash = strchr(hash + 1, '#')) {
        if (hash == line || strchr(spaces, hash[-1])) {
            *hash = '\0';
            break;
        }
    }
    line += strspn(line, spaces);
    size_t n = strlen(line);
    while (n > 0 && strchr(spaces, line[n - 1]))
        line[--n] = '\0';
    return line;
}

/* Reads to the end of the line or of the file, or until it is clear that the line is too long; returns the
 * number of bytes. */
static size_t read_line(char line[LONGEST + 2], FILE *f)
{
    size_t n = 0;
    int c = 0;
    while (n <= LONGEST && c != '\n' && (c = getc(f)) != EOF)
        line[n++] = (char)c;
    line[n] = '\0';
    return n;
}

static int take_line(rule_list *rules, const opts *o, const char *path, size_t number, char *line, size_t n)
{
    tn_error err;
    if (n > LONGEST && line[n - 1] != '\n') {
        say("%s: line %zu: expected at most %d bytes but found more", escaped(path), number, LONGEST);
        return EXIT_USAGE;
    }
    if (strlen(line) != n) {
        say("%s: line %zu: a NUL byte, where text was expected", escaped(path), number);
        return EXIT_USAGE;
    }
    const char *text = trim(line);
    if (!*text || add_cast(rules, o, text, &err) == TN_OK)
        return EXIT_DONE;
    say("%s: line %zu: \"%s\": %s", escaped(path), number, escaped(text), error_line(&err));
    return worse(EXIT_USAGE, exit_code(err.status));
}

static int read_lines(rule_list *rules, const opts *o, const char *path, FILE *f)
{
    char line[LONGEST + 2];
    size_t number = 0, n;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && (n = read_line(line, f)) > 0 && !ferror(f))
        code = take_line(rules, o, path, ++number, line, n);
    if (!ferror(f))
        return code;
    say("%s: cannot read: %s", escaped(path), strerror(errno));
    return EXIT_SYSTEM;
}

static int read_recipe(rule_list *rules, const opts *o, const char *path)
{
    size_t before = rules->ncasts;
    FILE *f = fopen(path, "r");
    if (!f) {
        say("%s: cannot open: %s", escaped(path), strerror(errno));
        return EXIT_SYSTEM;
    }
    int code = read_lines(rules, o, path, f);
    fclose(f);
    if (code != EXIT_DONE || rules->ncasts > before)
        return code;
    say("%s: expected at least one rule but found none", escaped(path));
    return EXIT_USAGE;
}

static int refuse(const char *option, const char *text, const tn_error *err)
{
    say("--%s \"%s\": %s", option, escaped(text), error_line(err));
    return worse(EXIT_USAGE, exit_code(err->status));
}

static int read_casts(rule_list *rules, const opts *o)
{
    for (size_t i = 0; i < o->casts.count; i++) {
        tn_error err;
        if (add_cast(rules, o, o->casts.items[i], &err) != TN_OK)
            return refuse("cast", o->casts.items[i], &err);
    }
    int code = EXIT_DONE;
    for (size_t i = 0; i < o->recipes.count && code == EXIT_DONE; i++)
        code = read_recipe(rules, o, o->recipes.items[i]);
    return code;
}

/* The rules of one kind: `size` bytes each, as `parse` fills them. */
typedef tn_status (*parse_fn)(const char *text, void *rule, tn_error *err);

static int read_each(const char *option, const text_list *texts, size_t size, parse_fn parse, void **rules,
                     size_t *count)
{
    char *items = texts->count > 0 ? must_allocate(texts->count, size) : NULL;
    *rules = items;
    for (; *count < texts->count; ++*count) {
        tn_error err;
        if (parse(texts->items[*count], items + *count * size, &err) != TN_OK)
            return refuse(option, texts->items[*count], &err);
    }
    return EXIT_DONE;
}

static tn_status parse_layout(const char *text, void *rule, tn_error *err)
{
    return tn_layout_rule_parse(text, rule, err);
}
static tn_status parse_pad(const char *text, void *rule, tn_error *err)
{
    return tn_pad_rule_parse(text, rule, err);
}
static tn_status parse_form(const char *text, void *rule, tn_error *err)
{
    return tn_form_rule_parse(text, rule, err);
}

int rules_read(rule_list *rules, const opts *o)
{
    *rules = (rule_list){ 0 };
    void *layouts = NULL, *pads = NULL, *forms = NULL;
    int code = read_casts(rules, o);
    if (code == EXIT_DONE)
        code = read_each("layout", &o->layouts, sizeof *rules->layouts, parse_layout, &layouts,
                         &rules->nlayouts);
    if (code == EXIT_DONE)
        code = read_each("pad", &o->pads, sizeof *rules->pads, parse_pad, &pads, &rules->npads);
    if (code == EXIT_DONE)
        code = read_each("form", &o->forms, sizeof *rules->forms, parse_form, &forms, &rules->nforms);
    rules->layouts = layouts;
    rules->pads = pads;
    rules->forms = forms;
    return code;
}

bool rules_have_datatypes(const rule_list *rules)
{
    for (size_t i = 0; i < rules->ncasts; i++) {
        if (rules->casts[i].datatype || rules->casts[i].of || rules->casts[i].quantized)
            return true;
    }
    return false;
}

void rules_free(rule_list *rules)
{
    for (size_t i = 0; i < rules->ncasts; i++)
        tn_cast_rule_free(&rules->casts[i]);
    free(rules->casts);
    free(rules->layouts);
    free(rules->pads);
    free(rules->forms);
}
