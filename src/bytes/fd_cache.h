/* bytes/fd_cache.h - an LRU cache of file descriptors.
 *
 * A process may open a few hundred files but read or write ten thousand.  The cache keeps a limited number
 * of files open and closes the least recently used one when another is needed.  A file that is held is not
 * closed, so the limit may be exceeded by as many files as there are threads.  Thread-safe. */
#ifndef TN_BYTES_FD_CACHE_H
#define TN_BYTES_FD_CACHE_H

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>

/* One file.  Begins with fd -1, or with a descriptor that was passed to tn_fd_cache_add(). */
typedef struct tn_cached_fd {
    int                  fd;    /* -1: closed */
    unsigned             users;
    struct tn_cached_fd *older, *newer;     /* among the open files that are not held */
} tn_cached_fd;

/* The open files. */
typedef struct tn_fd_list {
    pthread_mutex_t lock;
    tn_cached_fd   *oldest, *newest;
    size_t          count;
    size_t          limit;      /* 0: a quarter of the process's limit, from 8 to 256 */
} tn_fd_list;

/* How to open and close the files of a list.  Not part of the list, so that it can be constant. */
typedef struct tn_fd_cache {
    tn_fd_list *list;
    tn_status (*reopen)(tn_cached_fd *cached, tn_error *err);   /* sets fd */
    bool      (*close)(tn_cached_fd *cached);                   /* false: it cannot be closed now */
} tn_fd_cache;

/* Adds a file that is open and not held. */
void tn_fd_cache_add(tn_fd_cache cache, tn_cached_fd *cached);

/* Opens a file if it is closed, and keeps it open until it is released as often as it was held. */
tn_status tn_fd_cache_hold(tn_fd_cache cache, tn_cached_fd *cached, int *fd, tn_error *err);
void      tn_fd_cache_release(tn_fd_cache cache, tn_cached_fd *cached);

/* Holds a file if it is open; false: it is closed. */
bool tn_fd_cache_hold_open(tn_fd_cache cache, tn_cached_fd *cached, int *fd);

/* Whether one more file can be opened without closing another. */
bool tn_fd_cache_has_room(tn_fd_cache cache);

/* Closes a file that is not held, for good. */
void tn_fd_cache_remove(tn_fd_cache cache, tn_cached_fd *cached);

#endif
