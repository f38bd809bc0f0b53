/* bytes/temporary.h - temporary files: open, of mode 0600, without a name, gone
 * when they are closed.
 *
 * Where the file system has no unnamed files, one has a name for a moment: a
 * random one that nobody has, never one that somebody put there. */
#ifndef TN_BYTES_TEMPORARY_H
#define TN_BYTES_TEMPORARY_H

#include "base/error.h"

#include <stdbool.h>

#define TN_TEMPORARY_NAME sizeof ".tenon-rrrrrr.tmp"

/* A random name of the kind ".tenon-rrrrrr.tmp", r being one of 32 letters and
 * digits; false when the system gives no random bytes.  Files of such a name
 * that nobody has locked are removed by the next sink in their folder. */
bool tn_temporary_name(char name[TN_TEMPORARY_NAME]);
bool tn_is_temporary_name(const char *name);

/* In $TMPDIR, else in /var/tmp or /tmp.  The caller closes *fd. */
tn_status tn_temporary_open(int *fd, tn_error *err);

/* In the folder of the file that `path` leads to or would lead to. */
tn_status tn_temporary_open_beside(const char *path, int *fd, tn_error *err);

#endif
