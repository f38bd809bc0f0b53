/* bytes/identity.h - which file was read, and whether a name still leads to it, unchanged.
 *
 * A program that reads a file and then replaces it must not undo a change that another made in between.  It
 * locks the file (flock) before the last check and until it is replaced, so that of several programs only
 * one finds the file unchanged. */
#ifndef TN_BYTES_IDENTITY_H
#define TN_BYTES_IDENTITY_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/stat.h>

typedef struct tn_identity {
    dev_t           device;
    ino_t           inode;
    off_t           size;
    struct timespec modified, changed;
} tn_identity;

tn_identity tn_identity_of(const struct stat *st);

static inline bool tn_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool tn_identity_same_file(const tn_identity *a, const tn_identity *b);     /* it may have changed */
bool tn_identity_unchanged(const tn_identity *a, const tn_identity *b);

typedef enum tn_lock {
    TN_LOCK_HELD = 0,           /* until fd and its duplicates are closed */
    TN_LOCK_BUSY = 1,           /* another process has it */
    TN_LOCK_NONE = 2            /* the file system has no locks */
} tn_lock;

/* Locks an open file, and waits for the lock at most so long. */
tn_lock tn_identity_lock(int fd, unsigned seconds);

/* Whether a process has that lock, without taking it from one that tries to get it: others that look are no
 * hindrance, for the lock that shows it is shared. */
bool tn_identity_is_locked(int fd);

/* TN_ERR_CHANGED unless `name` in `folder` is the file that was read, unchanged. */
tn_status tn_identity_check(int folder, const char *name, const tn_identity *read, tn_error *err);

/* The same, and locks the file: *lock is a descriptor to close after the file is replaced, or -1 if there are
 * no locks.  TN_ERR_IO: another program holds the lock. */
tn_status tn_identity_claim(int folder, const char *name, const tn_identity *read, int *lock, tn_error *err);

#endif
