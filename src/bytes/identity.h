/* bytes/identity.h - which file was read, and whether a name still leads to it, unchanged.
 *
 * Who reads a file and then puts another in its place must not undo what
 * somebody else did in between.  Those who keep to this rule lock (flock) the
 * file they replace from the last look at it until it is replaced: of several,
 * one finds it unchanged. */
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
    TN_LOCK_BUSY = 1,           /* somebody else has it */
    TN_LOCK_NONE = 2            /* this file system has no locks */
} tn_lock;

/* Takes the lock of an open file; waits for it at most so long. */
tn_lock tn_identity_lock(int fd, unsigned seconds);

/* TN_ERR_CHANGED unless `name` in `folder` is the file that was read, unchanged. */
tn_status tn_identity_check(int folder, const char *name, const tn_identity *read, tn_error *err);

/* The same, and locks the file: *lock is a descriptor to close once it is
 * replaced, or -1 where there are no locks.  TN_ERR_IO: another program has
 * had the lock all the time. */
tn_status tn_identity_claim(int folder, const char *name, const tn_identity *read, int *lock, tn_error *err);

#endif
