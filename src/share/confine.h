/* share/confine.h - which files are left to a process that confines itself. */
#ifndef TN_SHARE_CONFINE_H
#define TN_SHARE_CONFINE_H

#include <stdbool.h>

/* From here on this thread, and those it begins, can open, make, replace and
 * remove files in the folder of `out` (may be NULL) and in those for temporary files,
 * and beneath them; none elsewhere.  false: the kernel cannot see to it. */
bool tn_landlock(const char *out);

#endif
