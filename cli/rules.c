/* cli/rules.c - the cast rules of --cast and --recipe. */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tn_status add_rule(rule_list *rules, const opts *o, const char *text, tn_error *err)
{
    if (rules->count == rules->cap) {
        rules->cap = 2 * rules->cap + 8;
        rules->items = must_resize(rules->items, rules->cap * sizeof *rules->items);
    }
    tn_status status = tn_cast_rule_parse(text, &o->cast, &rules->items[rules->count], err);
    rules->count += status == TN_OK;
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

static int read_lines(rule_list *rules, const opts *o, const char *path, FILE *f)
{
    char *line = NULL;
    size_t cap = 0, number = 0;
    ssize_t n;
    tn_error err = { .status = TN_OK };
    errno = 0;
    while (err.status == TN_OK && (n = getline(&line, &cap, f)) >= 0) {
        number++;
        if (strlen(line) != (size_t)n) {
            say("%s: line %zu: a NUL byte, where text was expected", escaped(path), number);
            free(line);
            return EXIT_USAGE;
        }
        const char *text = trim(line);
        if (*text && add_rule(rules, o, text, &err) != TN_OK)
            say("%s: line %zu: \"%s\": %s", escaped(path), number, escaped(text), err.text);
    }
    free(line);
    if (err.status != TN_OK)
        return EXIT_USAGE;
    if (!ferror(f))
        return EXIT_DONE;
    say("%s: cannot read: %s", escaped(path), strerror(errno));
    return EXIT_SYSTEM;
}

static int read_recipe(rule_list *rules, const opts *o, const char *path)
{
    size_t before = rules->count;
    FILE *f = fopen(path, "r");
    if (!f) {
        say("%s: cannot open: %s", escaped(path), strerror(errno));
        return EXIT_SYSTEM;
    }
    int code = read_lines(rules, o, path, f);
    fclose(f);
    if (code != EXIT_DONE || rules->count > before)
        return code;
    say("%s: expected at least one rule but found none", escaped(path));
    return EXIT_USAGE;
}

int rules_read(rule_list *rules, const opts *o)
{
    *rules = (rule_list){ 0 };
    for (size_t i = 0; i < o->casts.count; i++) {
        tn_error err;
        if (add_rule(rules, o, o->casts.items[i], &err) != TN_OK) {
            say("--cast \"%s\": %s", escaped(o->casts.items[i]), err.text);
            return EXIT_USAGE;
        }
    }
    int code = EXIT_DONE;
    for (size_t i = 0; i < o->recipes.count && code == EXIT_DONE; i++)
        code = read_recipe(rules, o, o->recipes.items[i]);
    return code;
}

void rules_free(rule_list *rules)
{
    free(rules->items);
}
