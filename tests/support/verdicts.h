/* tests/support/verdicts.h - what tn_verify() says of a tensor's parts.
 * Include it after support.h. */
#ifndef TN_TESTS_VERDICTS_H
#define TN_TESTS_VERDICTS_H

#include <tenon/tenon.h>

#include "require.h"

/* Of the last tensor's parts. */
typedef struct seen {
    tn_verdict verdict[3];
    tn_error   why[3];
    size_t     parts;           /* of all tensors */
} seen;

static inline void see_verdict(void *context, const tn_tensor *t, const tn_part *p, tn_verdict verdict,
                               const tn_error *why)
{
    seen *s = context;
    size_t k = (size_t)(p - t->parts);
    REQUIRE(k < 3);             /* in any thread */
    s->verdict[k] = verdict;
    s->why[k] = *why;
    s->parts++;
}

static inline seen verify_file(const tn_file *file)
{
    seen s = { .parts = 0 };
    const tn_verify_options options = { .size = sizeof options, .context = &s };
    CHECK(tn_verify(file, &options, see_verdict, NULL) == TN_OK);
    return s;
}

#endif
