/* tests/support/scratch.h - a folder for a fuzz target's files: in memory where
 * there is such a place, removed at exit. */
#ifndef TN_TESTS_SCRATCH_H
#define TN_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "require.h"

static char scratch_folder[64];

static inline void scratch_remove(void)
{
    char remove_it[100];
    snprintf(remove_it, sizeof remove_it, "rm -rf '%s'", scratch_folder);
    if (system(remove_it) != 0)
        fprintf(stderr, "cannot remove %s\n", scratch_folder);
}

/* Good until the next call. */
static inline const char *scratch_file(const char *name)
{
    static char full[sizeof scratch_folder + 64];
    if (!scratch_folder[0]) {
        strcpy(scratch_folder,
               access("/dev/shm", W_OK) == 0 ? "/dev/shm/tenon-fuzz-XXXXXX" : "/tmp/tenon-fuzz-XXXXXX");
        REQUIRE(mkdtemp(scratch_folder));
        atexit(scratch_remove);
    }
    snprintf(full, sizeof full, "%s/%s", scratch_folder, name);
    return full;
}

#endif
