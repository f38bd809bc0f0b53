/* Other file systems than that of the test, by replacing calls of bytes/sink_calls.h.  Include it after
 * support.h. */
#ifndef TEST_FILE_SYSTEMS_H
#define TEST_FILE_SYSTEMS_H

#include "bytes/sink_calls.h"
#include "folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* The calls as they were. */
static struct tn_sink_calls real_calls;

/* What a test begins and ends with: a folder of its own, and its calls put back. */
static inline int keep_calls(void **state)
{
    real_calls = tn_sink_calls;
    return make_folder(state);
}

static inline int restore_calls(void **state)
{
    tn_sink_calls = real_calls;
    return remove_folder(state);
}

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

/* Shared blocks, whole ones only; `cloned` counts bytes. */
enum { BLOCK = 4096 };
static uint64_t cloned;

static inline int fake_clone(int fd, const struct file_clone_range *range)
{
    uint8_t *bytes = malloc(range->src_length);
    CHECK(range->src_offset % BLOCK == 0 && range->dest_offset % BLOCK == 0);
    CHECK(range->src_length > 0 && range->src_length % BLOCK == 0);
    CHECK(pread((int)range->src_fd, bytes, range->src_length, (off_t)range->src_offset) ==
          (ssize_t)range->src_length);
    CHECK(pwrite(fd, bytes, range->src_length, (off_t)range->dest_offset) == (ssize_t)range->src_length);
    cloned += range->src_length;
    free(bytes);
    return 0;
}

#endif
