/* pipeline/steps/add.c - a number added to each element, in float32. */
#include "pipeline/steps/steps.h"
#include "base/error.h"

#include <string.h>

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    (void)err;
    v->state = (void *)(uintptr_t)tn_arena_copy(v->arena, options, sizeof(float));
    return v->state ? TN_OK : tn_fail_nomem(err);
}

static tn_status apply(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                       tn_error *err)
{
    const float number = *(const float *)v->state;
    (void)first, (void)err;
    for (size_t i = 0; i < n; i++) {    /* which need not be aligned */
        float x;
        memcpy(&x, in + i * sizeof x, sizeof x);
        x += number;
        memcpy(out + i * sizeof x, &x, sizeof x);
    }
    return TN_OK;
}

static bool renew(tn_view *v)
{
    (void)v;
    return true;
}

const tn_step tn_step_add = { .name = "add", .describe = describe, .apply = apply, .renew = renew };
