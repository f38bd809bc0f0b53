/* A step for the test that adds one of each: along the last dimension every element in the place of its
 * mirror image. */
#include "base/error.h"
#include "pipeline/box.h"
#include "pipeline/plan_tensor.h"

#include <string.h>

/* One row after another, from the last element to the first; of types of whole bytes. */
static tn_status make(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out, tn_error *err)
{
    uint64_t row = (uint64_t)v->tensor.shape[v->tensor.rank - 1], width = v->bits / 8;
    for (size_t i = 0; i < n; i++) {
        uint64_t at = (first + i) / row * row + (row - 1 - (first + i) % row), from = at / 8 * 8;
        const uint8_t *bytes;
        TN_TRY(tn_view_range(v->input, from, (size_t)(at - from + 1), w, &bytes, err));
        memcpy(out + i * width, bytes + (at - from) * width, (size_t)width);
    }
    return TN_OK;
}

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    (void)options;
    v->is_moved = true;
    return v->tensor.rank && v->bits >= 8 ? tn_view_check_places(v, err)
                                          : tn_fail(err, TN_ERR_UNSUPPORTED, "nothing to mirror");
}

static const tn_step mirror = { .name = "mirror", .describe = describe, .make = make };

static tn_status parse(const char *text, const tn_cast_rule *defaults, void *rule, tn_error *err)
{
    const tn_rule_reading r = { .text = text, .err = err };
    (void)defaults;
    return strcmp(text, "last") == 0 ? tn_rule_glob(&r, NULL, rule)
                                     : tn_fail(err, TN_ERR_ARGUMENT, "only the last dimension is mirrored");
}

static tn_status add(tn_planning *p, void *rule, tn_error *err)
{
    return tn_view_add_step(&p->view, &mirror, rule, err);
}

const tn_rule_step tn_rule_mirror = { "mirror", TN_RULE_SHAPE, TN_GLOB, parse, NULL, add };
