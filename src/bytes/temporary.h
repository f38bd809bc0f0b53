/* bytes/temporary.h - unnamed temporary files of mode 0600, which disappear when they are closed.
 *
 * If the file system has no unnamed files, a file has a random name for a moment.  Existing files are never
 * opened. */
#ifndef TN_BYTES_TEMPORARY_H
#define TN_BYTES_TEMPORARY_H

#include "base/error.h"

#include <stdbool.h>

#define TN_TEMPORARY_NAME sizeof ".tenon-rrrrrr.tmp"

/* A name ".tenon-rrrrrr.tmp" with random letters and digits; false: the system gives no random bytes.  The
 * next sink in the folder removes files of this kind that are not locked. */
bool tn_temporary_name(char name[TN_TEMPORARY_NAME]);
bool tn_is_temporary_name(const char *name);

/* In $TMPDIR, else in /var/tmp or /tmp.  The caller closes *fd. */
tn_status tn_temporary_open(int *fd, tn_error *err);

/* In the folder of the file that `path` leads to or would lead to. */
tn_status tn_temporary_open_beside(const char *path, int *fd, tn_error *err);

#endif
