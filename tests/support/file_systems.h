/* File systems that lack something, for bytes/sink_calls.h. */
#ifndef TEST_FILE_SYSTEMS_H
#define TEST_FILE_SYSTEMS_H

#include <errno.h>
#include <stdio.h>
#include <sys/types.h>

/* No unnamed files. */
static inline int no_tmpfile(int where, mode_t mode)
{
    (void)where, (void)mode;
    errno = EOPNOTSUPP;
    return -1;
}

/* No rename that leaves an existing file alone. */
static inline int no_such_rename(int from_folder, const char *from, int to_folder, const char *to,
                                 unsigned flags)
{
    if (flags == 0)
        return renameat2(from_folder, from, to_folder, to, flags);
    errno = EINVAL;
    return -1;
}

#endif
