/* tests/support/require.h - CHECK() for fuzz targets and for threads, where no
 * test framework can catch a failure. */
#ifndef TN_TESTS_REQUIRE_H
#define TN_TESTS_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

/* Printed with a failure: the seed, the step. */
static char require_note[200];

#define REQUIRE(promise)                                                                                     \
    do {                                                                                                     \
        if (!(promise)) {                                                                                    \
            fprintf(stderr, "%s:%d: broken promise: %s %s\n", __FILE__, __LINE__, #promise, require_note);   \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
