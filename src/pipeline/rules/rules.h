/* pipeline/rules/rules.h - what rules of all kinds are read with. */
#ifndef TN_PIPELINE_RULES_RULES_H
#define TN_PIPELINE_RULES_RULES_H

#include "base/text.h"

#include <tenon/convert.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_rule_reading {
    const char *text;
    unsigned    seen;           /* bit i: key i was given */
    unsigned    makes;          /* of a cast: what the type is, for which keys are */
    tn_error   *err;
} tn_rule_reading;

typedef struct tn_rule_word {
    const char *name;           /* NULL after the last */
    int         value;
} tn_rule_word;

/* "WHAT" at character N is NO THING */
tn_status tn_rule_fail(const tn_rule_reading *r, tn_text what, const char *no_thing);

/* ---- values: false where the text is none ---- */

bool tn_rule_word_take(const tn_rule_word *words, tn_text value, int *found);
const char *tn_rule_word_for(const tn_rule_word *words, int value);
bool tn_rule_number(tn_text value, uint64_t *number);       /* decimal digits */
bool tn_rule_double(tn_text value, double *number);         /* as JSON spells it, which no locale changes */
bool tn_rule_int32(tn_text value, int32_t *number);
bool tn_rule_text(tn_text value, char *to, size_t cap);     /* not empty, with its NUL in `cap` bytes */

/* What a cast rule makes, as its text has it: int8, or fx8 whose codes are int8 too. */
const char *tn_cast_rule_type(const tn_cast_rule *rule);

/* Whether the options of a rule, which may not come from a text, have a meaning for what it makes. */
tn_status tn_cast_rule_check(const tn_cast_rule *rule, tn_error *err);

/* ---- the parts of a rule ---- */

/* What comes before the first comma, and where a '=' makes a glob of its beginning. */
tn_text tn_rule_head(const tn_rule_reading *r, tn_text *what, const char **equals);

/* Everything before the '=' at `equals`; all names where that is NULL. */
tn_status tn_rule_glob(const tn_rule_reading *r, const char *equals, char glob[256]);

/* Cuts KEY=VALUE in two. */
tn_status tn_rule_pair(const tn_rule_reading *r, tn_text pair, tn_text *key, tn_text *value);

#endif
