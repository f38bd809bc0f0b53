/* tests/support/rules.h - cast rules that can be read, and those that cannot. */
#ifndef TN_TESTS_RULES_H
#define TN_TESTS_RULES_H

#include "pipeline/rules/rules.h"

static inline tn_cast_rule good_with(const char *text, const tn_cast_rule *defaults)
{
    tn_cast_rule rule;
    tn_error err = { .text = "" };
    if (tn_cast_rule_parse(text, defaults, &rule, &err))
        fail_msg("%s: %s", text, line_of(&err));
    return rule;
}

static inline tn_cast_rule good(const char *text) { return good_with(text, NULL); }

static inline void refused(const char *text, const tn_cast_rule *defaults, tn_status status, const char *why)
{
    tn_cast_rule rule = { .dtype = TN_UINT2 };
    tn_error err = { .text = "" };
    CHECK(tn_cast_rule_parse(text, defaults, &rule, &err) == status);
    CHECK(tn_cast_rule_parse(text, defaults, &rule, NULL) == status);
    CHECK(rule.dtype == TN_UINT2 && err.status == status && err.offset == TN_NO_OFFSET);
    if (strcmp(said_of(&err), why) != 0)
        fail_msg("%s: expected <%s> but found <%s>", text, why, line_of(&err));
}

static inline void bad(const char *text, const char *why) { refused(text, NULL, TN_ERR_ARGUMENT, why); }

#endif
