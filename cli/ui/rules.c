/* cli/ui/rules.c - rules that change tensors: --cast, --sparse, --recipe, --layout ... */
#include "ui/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 64 << 10 };       /* bytes of a recipe's line, far more than a rule needs */

static tn_status add_rule(rule_list *rules, tn_rule rule, tn_error *err)
{
    if (rules->count == rules->cap) {
        rules->cap = 2 * rules->cap + 8;
        rules->items = must_resize(rules->items, rules->cap * sizeof *rules->items);
    }
    rules->items[rules->count] = rule;
    tn_status status = tn_rule_check(&rule, rules->cast_defaults, err);
    rules->count += status == TN_OK;
    return status;
}

/* A line of a recipe. */
static tn_status add_line(rule_list *rules, const char *text, tn_error *err)
{
    size_t size = strlen(text) + 1;
    char *line = must_allocate(size, 1);
    memcpy(line, text, size);
    rules->lines = must_resize(rules->lines, (rules->nlines + 1) * sizeof *rules->lines);
    rules->lines[rules->nlines++] = line;
    return add_rule(rules, (tn_rule){ "cast", line }, err);
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

static int take_line(rule_list *rules, const char *path, size_t number, char *line, size_t n)
{
    tn_error err;
    if (n > LONGEST && line[n - 1] != '\n')
        return give_up(EXIT_USAGE, "%s: line %zu: expected at most %d bytes but found more", escaped(path),
                       number, LONGEST);
    if (strlen(line) != n)
        return give_up(EXIT_USAGE, "%s: line %zu: a NUL byte, where text was expected", escaped(path),
                       number);
    const char *text = trim(line);
    if (!*text || add_line(rules, text, &err) == TN_OK)
        return EXIT_DONE;
    return give_up_by(worse(EXIT_USAGE, exit_code(err.status)), &err, "%s: line %zu: \"%s\": %s",
                      escaped(path), number, escaped(text), error_line(&err));
}

static int read_lines(rule_list *rules, const char *path, FILE *f)
{
    char line[LONGEST + 2];
    size_t number = 0, n;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && (n = read_line(line, f)) > 0 && !ferror(f))
        code = take_line(rules, path, ++number, line, n);
    if (!ferror(f))
        return code;
    return give_up(EXIT_SYSTEM, "%s: cannot read: %s", escaped(path), strerror(errno));
}

static int read_recipe(rule_list *rules, const char *path)
{
    size_t before = rules->count;
    FILE *f = fopen(path, "r");
    if (!f)
        return give_up(EXIT_SYSTEM, "%s: cannot open: %s", escaped(path), strerror(errno));
    int code = read_lines(rules, path, f);
    fclose(f);
    if (code != EXIT_DONE || rules->count > before)
        return code;
    return give_up(EXIT_USAGE, "%s: expected at least one rule but found none", escaped(path));
}

int rules_read(rule_list *rules, const opts *o)
{
    *rules = (rule_list){ .cast_defaults = cast_defaults(o) };
    for (size_t i = 0; i < o->nrules; i++) {
        tn_error err;
        if (add_rule(rules, o->rules[i], &err) == TN_OK)
            continue;
        return give_up_by(worse(EXIT_USAGE, exit_code(err.status)), &err, "--%s \"%s\": %s", o->rules[i].step,
                          escaped(o->rules[i].text), error_line(&err));
    }
    int code = EXIT_DONE;
    for (size_t i = 0; i < o->recipes.count && code == EXIT_DONE; i++)
        code = read_recipe(rules, o->recipes.items[i]);
    return code;
}

bool rules_have(const rule_list *rules, const char *step)
{
    for (size_t i = 0; i < rules->count; i++)
        if (strcmp(rules->items[i].step, step) == 0)
            return true;
    return false;
}

unsigned rules_make(const rule_list *rules)
{
    unsigned makes = 0;
    for (size_t i = 0; i < rules->count; i++)
        makes |= tn_rule_makes(&rules->items[i], rules->cast_defaults);
    return makes;
}

void rules_free(rule_list *rules)
{
    for (size_t i = 0; i < rules->nlines; i++)
        free(rules->lines[i]);
    free(rules->lines);
    free(rules->items);
    free(rules->cast_defaults);
}
