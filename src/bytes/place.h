/* bytes/place.h - where a new file will be: its folder, open, and its name there. */
#ifndef TN_BYTES_PLACE_H
#define TN_BYTES_PLACE_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct tn_place {
    int         folder;         /* open for reading; the caller closes it */
    char        name[PATH_MAX]; /* in the folder; not a symbolic link */
    bool        exists;
    struct stat old;            /* what has the name, if it exists */
} tn_place;

/* "cannot write: REASON (nothing was replaced)" */
tn_status tn_fail_write(tn_error *err, int error_number);

/* The path of the folder that the last name of `path` is in; false: it is too long. */
bool tn_folder_of(const char *path, char folder[PATH_MAX]);

/* Finds the folder and name that `path` leads to.  Symbolic links are followed, also to files that do not
 * exist yet, but not links of other users in a sticky folder that everybody may write to (the rule of
 * fs.protected_symlinks, applied even if the system does not have it).  A link that is exchanged meanwhile is
 * not followed.  TN_ERR_IO: the text says why. */
tn_status tn_place_find(const char *path, tn_place *place, tn_error *err);

#endif
