/* bytes/attributes.h - owner, group, mode, access list and extended attributes of a file. */
#ifndef TN_BYTES_ATTRIBUTES_H
#define TN_BYTES_ATTRIBUTES_H

#include "base/error.h"

#include <stddef.h>
#include <sys/stat.h>

/* A file that another replaces: it has `name` in `folder`, or had it. */
typedef struct tn_replaced {
    int                folder;
    const char        *name;
    const struct stat *seen;    /* last known state */
} tn_replaced;

/* The attributes that could not be kept. */
typedef struct tn_lost {
    char   text[400];           /* one line for a user; "": nothing */
    size_t length;
} tn_lost;

/* Gives the new file `to` the attributes of the old one.
 *
 * Only the user who writes the new file may get more access than before.  If owner, group or access list
 * cannot be kept, the mode is narrowed.  Set-user-ID, set-group-ID and capabilities are dropped, as if the
 * old file had been written to, and so are checksums of its content (security.ima, security.evm). */
tn_status tn_attributes_keep(tn_replaced what, int to, tn_lost *lost, tn_error *err);

#endif
