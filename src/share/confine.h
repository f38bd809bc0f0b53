/* share/confine.h - limits the files that a process can access. */
#ifndef TN_SHARE_CONFINE_H
#define TN_SHARE_CONFINE_H

#include <stdbool.h>

/* Limits this thread, and threads that it starts later, to files in and below the folder of `out` (may be
 * NULL) and the folders for temporary files.  false: the kernel cannot do that. */
bool tn_landlock(const char *out);

#endif
