/* bytes/sink_calls.h - the system calls of a file sink, in a table so that tests can make each of them fail
 * and act between any two of them. */
#ifndef TN_BYTES_SINK_CALLS_H
#define TN_BYTES_SINK_CALLS_H

#include "base/sealed.h"

#include <linux/fs.h>
#include <sys/types.h>

struct tn_sink_calls {
    int     (*open_tmpfile)(int folder, mode_t mode);
    int     (*flock)(int fd, int operation);
    ssize_t (*pwrite)(int fd, const void *data, size_t n, off_t offset);
    int     (*clone_range)(int fd, const struct file_clone_range *range);
    ssize_t (*copy_file_range)(int from, off_t *from_at, int to, off_t *to_at, size_t n, unsigned flags);
    int     (*fallocate)(int fd, int mode, off_t offset, off_t n);
    int     (*ftruncate)(int fd, off_t size);
    int     (*fsync)(int fd);
    int     (*linkat)(int from_folder, const char *from, int folder, const char *name, int flags);
    int     (*renameat2)(int from_folder, const char *from, int folder, const char *name, unsigned flags);
};

/* Changed by tests only, and only while no sink is open. */
extern TN_RELRO struct tn_sink_calls tn_sink_calls;

#endif
