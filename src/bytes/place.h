/* bytes/place.h - where a new file will be: its folder, open, and its name there. */
#ifndef TN_BYTES_PLACE_H
#define TN_BYTES_PLACE_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct tn_place {
    int         folder;         /* open for reading; the caller closes it */
    char        name[PATH_MAX]; /* in it: no symbolic link when it was looked at */
    bool        exists;
    struct stat old;            /* what has the name, if it exists */
} tn_place;

/* "cannot write: REASON (nothing was replaced)" */
tn_status tn_fail_write(tn_error *err, int error_number);

/* The path of the folder that the last name of `path` is in; false: it is too long. */
bool tn_folder_of(const char *path, char folder[PATH_MAX]);

/* Finds the folder and name that `path` leads to, as the kernel leads there.
 * Symbolic links are followed, those to files that do not exist yet too, but
 * for links of other users in a folder with the sticky bit that everybody may
 * write to: that is the rule of fs.protected_symlinks, here also where the
 * system does not have it.  Nobody can make a link count after it was looked
 * at.  TN_ERR_IO: the text says why. */
tn_status tn_place_find(const char *path, tn_place *place, tn_error *err);

#endif
