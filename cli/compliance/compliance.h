/* cli/compliance/compliance.h - tests the library against the requirements of WIA-AI-011. */
#ifndef TENON_CLI_COMPLIANCE_H
#define TENON_CLI_COMPLIANCE_H

#include <stdbool.h>
#include <tenon/tenon.h>

typedef struct compliance {
    int         level;          /* 1, 2 or 3: of the specification's list */
    const char *requirement;    /* "Support BFLOAT16" */
    bool        met;
    const char *evidence;       /* what was done and seen: "cast, stored and loaded 4096 values" */
} compliance;
typedef void (*compliance_fn)(void *context, const compliance *result);

/* Tries the requirements of levels 1 to `level` one by one, actually doing
 * each: casts, files in a temporary folder, reorders.  Level 3 starts a second
 * process with fork(), and a thread, and waits for both.  *reached is the
 * highest level with nothing missing (0: none).
 * TN_ERR_NOMEM, TN_ERR_IO: could not be tried. */
tn_status compliance_run(int level, compliance_fn report, void *context, int *reached, tn_error *err);

#endif
