/* bytes/fd_cache.c - an LRU cache of file descriptors. */
#include "bytes/fd_cache.h"

#include <sys/resource.h>

enum { LEAST = 8, MOST = 256, PART = 4 };

static size_t usual_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / PART > MOST)
        return MOST;
    return limit.rlim_cur / PART < LEAST ? LEAST : (size_t)(limit.rlim_cur / PART);
}

static size_t limit_of(tn_fd_cache cache)
{
    if (!cache.list->limit)
        cache.list->limit = usual_limit();
    return cache.list->limit;
}

/* ---- the list of open files that are not held; the lock is held ---- */

static void put_newest(tn_fd_list *list, tn_cached_fd *cached)
{
    cached->older = list->newest;
    cached->newer = NULL;
    *(list->newest ? &list->newest->newer : &list->oldest) = cached;
    list->newest = cached;
}

static void take_out(tn_fd_list *list, tn_cached_fd *cached)
{
    *(cached->older ? &cached->older->newer : &list->oldest) = cached->newer;
    *(cached->newer ? &cached->newer->older : &list->newest) = cached->older;
    cached->older = cached->newer = NULL;
}

static bool close_one(tn_fd_cache cache, tn_cached_fd *cached)
{
    if (!cache.close(cached))
        return false;
    take_out(cache.list, cached);
    cached->fd = -1;
    cache.list->count--;
    return true;
}

/* Closes files until at most `most` are open, or all that are open are held. */
static void make_room(tn_fd_cache cache, size_t most)
{
    while (cache.list->count > most && cache.list->oldest)
        if (!close_one(cache, cache.list->oldest))
            return;
}

void tn_fd_cache_add(tn_fd_cache cache, tn_cached_fd *cached)
{
    pthread_mutex_lock(&cache.list->lock);
    cache.list->count++;
    put_newest(cache.list, cached);
    make_room(cache, limit_of(cache));
    pthread_mutex_unlock(&cache.list->lock);
}

tn_status tn_fd_cache_hold(tn_fd_cache cache, tn_cached_fd *cached, int *fd, tn_error *err)
{
    tn_status status = TN_OK;
    pthread_mutex_lock(&cache.list->lock);
    if (cached->fd < 0) {
        make_room(cache, limit_of(cache) - 1);
        status = cache.reopen(cached, err);
        cache.list->count += !status;
    } else if (!cached->users) {
        take_out(cache.list, cached);
    }
    cached->users += !status;
    *fd = cached->fd;
    pthread_mutex_unlock(&cache.list->lock);
    return status;
}

bool tn_fd_cache_hold_open(tn_fd_cache cache, tn_cached_fd *cached, int *fd)
{
    pthread_mutex_lock(&cache.list->lock);
    bool open = cached->fd >= 0;
    if (open && !cached->users++)
        take_out(cache.list, cached);
    *fd = cached->fd;
    pthread_mutex_unlock(&cache.list->lock);
    return open;
}

void tn_fd_cache_release(tn_fd_cache cache, tn_cached_fd *cached)
{
    pthread_mutex_lock(&cache.list->lock);
    if (--cached->users == 0)
        put_newest(cache.list, cached);
    make_room(cache, limit_of(cache));
    pthread_mutex_unlock(&cache.list->lock);
}

bool tn_fd_cache_has_room(tn_fd_cache cache)
{
    pthread_mutex_lock(&cache.list->lock);
    bool room = cache.list->count < limit_of(cache);
    pthread_mutex_unlock(&cache.list->lock);
    return room;
}

void tn_fd_cache_remove(tn_fd_cache cache, tn_cached_fd *cached)
{
    pthread_mutex_lock(&cache.list->lock);
    if (cached->fd >= 0)
        close_one(cache, cached);
    pthread_mutex_unlock(&cache.list->lock);
}
