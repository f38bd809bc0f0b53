/* pipeline/select.h - which tensors come out of a conversion, under which names and by which rules. */
#ifndef TN_PIPELINE_SELECT_H
#define TN_PIPELINE_SELECT_H

#include "pipeline/plan_tensor.h"

/* Begin with tn_select(); all it has is in the arena. */
typedef struct tn_selection {
    const tn_convert_options *options;
    tn_walk                  *walk;     /* with the source of each tensor that comes out */
    tn_arena                 *arena;
    const char              **names;    /* new ones; NULL: nothing is renamed */
    const tn_cast_plan     *(*casts)[TN_DTYPE_COUNT];   /* by rule and source type, made as they are needed */
    bool                     *used;     /* which rules matched something: all of them, in the order of
                                         * rule_at() */
} tn_selection;

/* Checks the rules and chooses the tensors of the walk.  All that is given lives as long as the selection. */
tn_status tn_select(tn_selection *s, const tn_file *file, const tn_convert_options *options, tn_walk *walk,
                    tn_arena *arena, tn_error *err);

/* Name and rules of tensor i; the threads of the walk are started if a rule needs them. */
tn_status tn_select_rules(tn_selection *s, size_t i, tn_tensor_rules *rules, tn_error *err);

/* The name of tensor i, once its rules were asked for. */
const char *tn_selected_name(const tn_selection *s, size_t i);

/* TN_ERR_ARGUMENT: a rule that was never used. */
tn_status tn_select_check(const tn_selection *s, tn_error *err);

#endif
