/* cli/ui/rules.h - rules that change tensors: --cast, --sparse, --recipe, --layout, --pad,
 * --form. */
#ifndef TENON_CLI_UI_RULES_H
#define TENON_CLI_UI_RULES_H

#include "ui/opts.h"

typedef struct rule_list {
    tn_cast_rule   *casts;      /* each NULL if there is none */
    size_t          ncasts, cap;
    tn_layout_rule *layouts;
    size_t          nlayouts;
    tn_pad_rule    *pads;
    size_t          npads;
    tn_form_rule   *forms;
    size_t          nforms;
} rule_list;

/* Reads the rules of the command line, then those of the recipes.  Returns
 * EXIT_DONE, or another code after saying what is wrong and where; either way
 * the list is to be freed. */
int  rules_read(rule_list *rules, const opts *o);
void rules_free(rule_list *rules);

/* Whether a rule has a datatype or N:M. */
bool rules_have_datatypes(const rule_list *rules);

#endif
