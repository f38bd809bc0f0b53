/* cli/ui/rules.h - rules that change tensors: --cast, --sparse, --recipe, --layout ... */
#ifndef TENON_CLI_UI_RULES_H
#define TENON_CLI_UI_RULES_H

#include "ui/opts.h"

typedef struct rule_list {
    tn_rule *items;
    size_t   count, cap;
    char   **lines;             /* texts of recipes */
    size_t   nlines;
    char    *cast_defaults;     /* or NULL */
} rule_list;

/* Reads the rules of the command line, then those of the recipes.  Returns
 * EXIT_DONE, or another code after saying what is wrong and where; either way
 * the list is to be freed. */
int  rules_read(rule_list *rules, const opts *o);
void rules_free(rule_list *rules);

/* Whether there is a rule of this step. */
bool rules_have(const rule_list *rules, const char *step);

/* What the rules make together: see tn_rule_makes(). */
unsigned rules_make(const rule_list *rules);

#endif
