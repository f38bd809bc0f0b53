/* Cast rules: refused with a reason, or read into something that reads back the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/convert.h>

#define REQUIRE(property) do { if (!(property)) __builtin_trap(); } while (0)

/* The rule as text again: all that it says but the scale, which has many spellings. */
static void check_spelled_out(const tn_cast_rule *rule)
{
    static const char *const rounds[] = { "even", "away", "zero", "half_up", "trunc", "up", "down", "stochastic" };
    static const char *const overflows[] = { "default", "saturate", "inf", "nan", "error" };
    static const char *const nans[] = { "keep", "zero", "error" };
    const tn_cast_options *o = &rule->options;
    tn_cast_rule again;
    char text[600];
    snprintf(text, sizeof text, "%s=%s,round=%s,overflow=%s,nan=%s,seed=%llu%s", rule->glob, tn_dtype_get(rule->dtype)->name,
             rounds[o->round], overflows[o->overflow], nans[o->nan], (unsigned long long)o->seed,
             o->drop_imaginary ? ",complex=real" : "");
    REQUIRE(tn_cast_rule_parse(text, NULL, &again, NULL) == TN_OK);
    REQUIRE(strcmp(again.glob, rule->glob) == 0 && again.dtype == rule->dtype && again.options.round == o->round);
    REQUIRE(again.options.overflow == o->overflow && again.options.nan == o->nan && again.options.seed == o->seed);
    REQUIRE(again.options.drop_imaginary == o->drop_imaginary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    tn_cast_rule rule;
    tn_error err = { .text = "" };
    REQUIRE(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    tn_status status = tn_cast_rule_parse(text, NULL, &rule, &err);
    REQUIRE(status == TN_OK || status == TN_ERR_ARGUMENT);
    if (status == TN_OK)
        check_spelled_out(&rule);
    else
        REQUIRE(err.status == status && err.text[0] && strlen(err.text) < sizeof err.text);
    free(text);
    return 0;
}
