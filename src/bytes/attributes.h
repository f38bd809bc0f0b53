/* bytes/attributes.h - what a file is besides its bytes: owner, group, mode,
 * access list, extended attributes. */
#ifndef TN_BYTES_ATTRIBUTES_H
#define TN_BYTES_ATTRIBUTES_H

#include "base/error.h"

#include <stddef.h>
#include <sys/stat.h>

/* A file whose place another takes: it has `name` in `folder`, or had it. */
typedef struct tn_replaced {
    int                folder;
    const char        *name;
    const struct stat *seen;    /* how it was when it was seen last */
} tn_replaced;

/* What could not be kept of it. */
typedef struct tn_lost {
    char   text[400];           /* one line for a user; "": nothing */
    size_t length;
} tn_lost;

/* Makes the new file `to` like the old one.
 *
 * Nobody gets more access than before, but the user who writes the new file:
 * where the owner, the group or the access list cannot be kept, group and others
 * lose what would then be given to the wrong people.  Set-user-ID,
 * set-group-ID and capabilities are not kept, as if the old file had been
 * written to, nor are checksums of its content (security.ima, security.evm). */
tn_status tn_attributes_keep(tn_replaced what, int to, tn_lost *lost, tn_error *err);

#endif
