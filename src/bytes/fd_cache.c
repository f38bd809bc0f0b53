/* bytes/fd_cache.c - an LRU cache of file descriptors. */
#include "bytes/fd_cache.h"

#include <sys/resource.h>

enum { LEAST = 8, MOST = 256, SHARE = 4 };

static size_t usual_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / SHARE > MOST)
        return MOST;
    return limit.rlim_cur / SHARE < LEAST ? LEAST : (size_t)(limit.rlim_cur / SHARE);
}

static size_t limit_of(tn_fd_cache t)
{
    if (!t.list->limit)
        t.list->limit = usual_limit();
    return t.list->limit;
}

/* ---- the list of open files that are not held; the lock is held ---- */

static void put_newest(tn_fd_list *a, tn_cached_fd *cached)
{
    cached->older = a->newest;
    cached->newer = NULL;
    *(a->newest ? &a->newest->newer : &a->oldest) = cached;
    a->newest = cached;
}

static void take_out(tn_fd_list *a, tn_cached_fd *cached)
{
    *(cached->older ? &cached->older->newer : &a->oldest) = cached->newer;
    *(cached->newer ? &cached->newer->older : &a->newest) = cached->older;
    cached->older = cached->newer = NULL;
}

static bool close_one(tn_fd_cache t, tn_cached_fd *cached)
{
    if (!t.close(cached))
        return false;
    take_out(t.list, cached);
    cached->fd = -1;
    t.list->count--;
    return true;
}

/* Closes files until at most `most` are open, or all that are open are held. */
static void make_room(tn_fd_cache t, size_t most)
{
    while (t.list->count > most && t.list->oldest)
        if (!close_one(t, t.list->oldest))
            return;
}

void tn_fd_cache_add(tn_fd_cache t, tn_cached_fd *cached)
{
    pthread_mutex_lock(&t.list->lock);
    t.list->count++;
    put_newest(t.list, cached);
    make_room(t, limit_of(t));
    pthread_mutex_unlock(&t.list->lock);
}

tn_status tn_fd_cache_hold(tn_fd_cache t, tn_cached_fd *cached, int *fd, tn_error *err)
{
    tn_status status = TN_OK;
    pthread_mutex_lock(&t.list->lock);
    if (cached->fd < 0) {
        make_room(t, limit_of(t) - 1);
        status = t.reopen(cached, err);
        t.list->count += !status;
    } else if (!cached->users) {
        take_out(t.list, cached);
    }
    cached->users += !status;
    *fd = cached->fd;
    pthread_mutex_unlock(&t.list->lock);
    return status;
}

bool tn_fd_cache_hold_open(tn_fd_cache t, tn_cached_fd *cached, int *fd)
{
    pthread_mutex_lock(&t.list->lock);
    bool open = cached->fd >= 0;
    if (open && !cached->users++)
        take_out(t.list, cached);
    *fd = cached->fd;
    pthread_mutex_unlock(&t.list->lock);
    return open;
}

void tn_fd_cache_release(tn_fd_cache t, tn_cached_fd *cached)
{
    pthread_mutex_lock(&t.list->lock);
    if (--cached->users == 0)
        put_newest(t.list, cached);
    make_room(t, limit_of(t));
    pthread_mutex_unlock(&t.list->lock);
}

bool tn_fd_cache_has_room(tn_fd_cache t)
{
    pthread_mutex_lock(&t.list->lock);
    bool room = t.list->count < limit_of(t);
    pthread_mutex_unlock(&t.list->lock);
    return room;
}

void tn_fd_cache_remove(tn_fd_cache t, tn_cached_fd *cached)
{
    pthread_mutex_lock(&t.list->lock);
    if (cached->fd >= 0)
        close_one(t, cached);
    pthread_mutex_unlock(&t.list->lock);
}
