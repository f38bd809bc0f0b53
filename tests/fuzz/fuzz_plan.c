/* The text of a plan in a file: refused with a reason, or read into options that can be used. */
#include "require.h"
#include "scarce.h"

#include "pipeline/plan.h"

#include <string.h>

static tn_status read_head(const uint8_t *data, size_t size, bool uses, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_plan_head h = { 0 };
    tn_status status = tn_plan_read_head(data, size, &arena, &h, err);
    size_t n = 0;
    for (size_t i = 0; i < h.ninput && !status && uses; i++)
        n += strlen(h.input[i]);
    for (size_t i = 0; i < h.o.nonly && !status && uses; i++)
        n += strlen(h.o.only[i]);
    for (size_t i = 0; i < h.o.nrename && !status && uses; i++)
        n += strlen(h.o.rename[i]);
    for (size_t i = 0; i < h.o.nrules && !status && uses; i++) {
        n += strlen(h.o.rules[i].step) + strlen(h.o.rules[i].text);
        tn_error why = { .text = "" };
        if (tn_rule_check(&h.o.rules[i], h.o.cast_defaults, &why))
            REQUIRE(why.text[0] != '\0');
    }
    for (size_t i = 0; i < h.create.nformat_options && !status && uses; i++)
        n += strlen(h.create.format_options[i].format) + strlen(h.create.format_options[i].key) +
             strlen(h.create.format_options[i].value);
    REQUIRE(status || n <= 4 * size);
    tn_arena_free(&arena);
    return status;
}

typedef struct text {
    const uint8_t *data;
    size_t         size;
} text;

static tn_status read_scarcely(const void *context, tn_error *err)
{
    const text *t = context;
    return read_head(t->data, t->size, false, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_error err = { .text = "" };
    const text t = { data, size };
    if (read_head(data, size, true, &err))
        REQUIRE(err.text[0] != '\0');
    if (size % 4 == 0)
        scarce_check(read_scarcely, &t, size * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    return 0;
}
