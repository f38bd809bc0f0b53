/* pipeline/steps/table.h - the steps that rules ask for by name.
 *
 * A new step is one file and one row of the table in table.c. */
#ifndef TN_PIPELINE_STEPS_TABLE_H
#define TN_PIPELINE_STEPS_TABLE_H

#include "pipeline/pattern.h"
#include "pipeline/rules/rules.h"
#include "pipeline/view.h"

/* The place of a step in the fixed order (docs/pipeline.md), and which names its globs are for. */
typedef enum tn_rule_kind {
    TN_RULE_SHAPE,              /* names in the input; in the order of the table */
    TN_RULE_JOIN, TN_RULE_SPLIT,
    TN_RULE_LAYOUT, TN_RULE_PAD, TN_RULE_FORM, TN_RULE_CAST     /* names of the tensors that come out */
} tn_rule_kind;

struct tn_planning;

typedef struct tn_rule_step {
    const char  *name;
    tn_rule_kind kind;
    size_t       size;          /* of a rule, which begins with its glob */
    /* Reads a text, which lives as long as the rule. */
    tn_status  (*parse)(const char *text, const tn_cast_rule *defaults, void *rule, tn_error *err);
    void       (*free)(void *rule);     /* may be NULL */
    /* Adds steps to the view of the planning; NULL: of several tensors or into several. */
    tn_status  (*add)(struct tn_planning *p, void *rule, tn_error *err);
} tn_rule_step;

/* The rows, in the order of the fixed order; NULL after the last. */
const tn_rule_step *tn_rule_step_at(size_t i);

/* A rule that was read. */
typedef struct tn_read_rule {
    const tn_rule_step *step;
    void               *rule;
    tn_pattern          pattern;        /* its glob; not of concat and split, which have their own */
    const struct tn_cast_plan **plans;  /* of a cast, by source type: made when they are needed */
    bool                is_of_map;      /* nobody asked for this rule, but a map */
} tn_read_rule;

static inline const char *tn_rule_glob_of(const tn_read_rule *rule)
{
    return rule->rule;          /* which it begins with */
}

/* In the arena; free the rule after a success only. */
tn_status tn_rule_read(const tn_rule *text, const tn_cast_rule *defaults, tn_arena *arena, tn_read_rule *rule,
                       tn_error *err);
void      tn_read_rule_free(tn_read_rule *rule);

#endif
