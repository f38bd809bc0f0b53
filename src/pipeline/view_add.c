/* pipeline/view_add.c - steps by name for views that a caller of the library has opened. */
#include "pipeline/plan_tensor.h"
#include "pipeline/read.h"
#include "base/error.h"

#include <tenon/view.h>

#include <stdio.h>
#include <string.h>

tn_status tn_view_add(tn_view **view, const char *step, const char *text, tn_error *err)
{
    const tn_rule rule = { step, text };
    const tn_tensor_rules none = { 0 };
    tn_read_rule read = { 0 };
    if (!view || !*view)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a view but found NULL");
    tn_arena *arena = &tn_opened_of(*view)->arena;
    const tn_plan_place place = { .view = *(*view)->place, .arena = arena, .index_type = TN_UNKNOWN };
    tn_planning p = { .place = &place, .rules = &none, .view = *view, .gives = true };
    const tn_tensor tensor = (*view)->tensor;
    const tn_part part = (*view)->parts[0];
    TN_TRY(tn_rule_read(&rule, NULL, arena, &read, err));
    tn_status status = TN_OK;
    if (!read.step->add)
        status = tn_fail(err, TN_ERR_ARGUMENT, "step %s is of several tensors", read.step->name);
    else if (strcmp(tn_rule_glob_of(&read), "*") != 0)
        status = tn_fail(err, TN_ERR_ARGUMENT, "expected no glob for a single tensor but found %s",
                         tn_quote_z(tn_rule_glob_of(&read)).text);
    if (!status && read.step->kind == TN_RULE_CAST)
        status = tn_view_check_numbers(*view, err);
    if (!status)
        status = tn_plan_apply(&p, &read, err);
    tn_read_rule_free(&read);           /* what the view needs of it is the view's by now */
    if (status) {
        tn_view_drop_steps(&p.view, *view);
        (*view)->tensor = tensor;       /* padding was not taken after all */
        (*view)->parts[0] = part;
        return tn_in_tensor(status, tensor.name, err);
    }
    *view = p.view;
    return TN_OK;
}

static tn_status check_inputs(tn_view *const *inputs, size_t n, tn_error *err)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i || !inputs[i]; k++)
            if (!inputs[i] || inputs[k] == inputs[i])
                return tn_fail(err, TN_ERR_ARGUMENT,
                               "expected %zu different views but found one twice or NULL", n);
    return TN_OK;
}

tn_status tn_view_join(tn_view *const *inputs, size_t n, const char *name, const char *text, tn_view **view,
                       tn_error *err)
{
    char whole[80];
    tn_join_rule rule;
    int length = snprintf(whole, sizeof whole, "x=x%s%s", text && *text ? "," : "", text ? text : "");
    if (!inputs || !n || n > UINT16_MAX || !name || !view || length >= (int)sizeof whole)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected views to join, a name and a place for the result");
    TN_TRY(check_inputs(inputs, n, err));
    TN_TRY(tn_concat_rule_parse(whole, &rule, err));
    const tn_joining how = { rule.axis, rule.is_new };
    tn_opened *first = tn_opened_of(inputs[0]), *last = first;
    tn_view *made;
    const char *own = tn_arena_text(&first->arena, name, strlen(name));
    if (!own)
        return tn_fail_nomem(err);
    TN_TRY(tn_view_join_step(inputs, (uint32_t)n, &tn_step_concat, &how, &made, err));
    made->tensor.name = own;
    for (size_t i = 1; i < n; i++) {    /* the places of all are closed with the first */
        while (last->next)
            last = last->next;
        last->next = tn_opened_of(inputs[i]);
    }
    *view = made;
    return TN_OK;
}
