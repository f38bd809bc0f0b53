/* bytes/turns.c - descriptors that many files take turns with. */
#include "bytes/turns.h"

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

static size_t limit_of(const tn_turns *t)
{
    if (!t->awake->limit)
        t->awake->limit = usual_limit();
    return t->awake->limit;
}

/* ---- the list of those that nobody holds; the lock is held ---- */

static void put_newest(tn_awake *a, tn_turn *turn)
{
    turn->older = a->newest;
    turn->newer = NULL;
    *(a->newest ? &a->newest->newer : &a->oldest) = turn;
    a->newest = turn;
}

static void take_out(tn_awake *a, tn_turn *turn)
{
    *(turn->older ? &turn->older->newer : &a->oldest) = turn->newer;
    *(turn->newer ? &turn->newer->older : &a->newest) = turn->older;
    turn->older = turn->newer = NULL;
}

static bool put_to_sleep(const tn_turns *t, tn_turn *turn)
{
    if (!t->sleep(turn))
        return false;
    take_out(t->awake, turn);
    turn->fd = -1;
    t->awake->count--;
    return true;
}

/* So that at most `most` are awake, or all of them are held. */
static void make_room(const tn_turns *t, size_t most)
{
    while (t->awake->count > most && t->awake->oldest)
        if (!put_to_sleep(t, t->awake->oldest))
            return;
}

/* ---- for everybody ---- */

void tn_turns_join(const tn_turns *t, tn_turn *turn)
{
    pthread_mutex_lock(&t->awake->lock);
    t->awake->count++;
    put_newest(t->awake, turn);
    make_room(t, limit_of(t));
    pthread_mutex_unlock(&t->awake->lock);
}

tn_status tn_turns_hold(const tn_turns *t, tn_turn *turn, int *fd, tn_error *err)
{
    tn_status status = TN_OK;
    pthread_mutex_lock(&t->awake->lock);
    if (turn->fd < 0) {
        make_room(t, limit_of(t) - 1);
        status = t->wake(turn, err);
        t->awake->count += !status;
    } else if (!turn->users) {
        take_out(t->awake, turn);
    }
    turn->users += !status;
    *fd = turn->fd;
    pthread_mutex_unlock(&t->awake->lock);
    return status;
}

bool tn_turns_hold_awake(const tn_turns *t, tn_turn *turn, int *fd)
{
    pthread_mutex_lock(&t->awake->lock);
    bool awake = turn->fd >= 0;
    if (awake && !turn->users++)
        take_out(t->awake, turn);
    *fd = turn->fd;
    pthread_mutex_unlock(&t->awake->lock);
    return awake;
}

void tn_turns_release(const tn_turns *t, tn_turn *turn)
{
    pthread_mutex_lock(&t->awake->lock);
    if (--turn->users == 0)
        put_newest(t->awake, turn);
    make_room(t, limit_of(t));
    pthread_mutex_unlock(&t->awake->lock);
}

bool tn_turns_have_room(const tn_turns *t)
{
    pthread_mutex_lock(&t->awake->lock);
    bool room = t->awake->count < limit_of(t);
    pthread_mutex_unlock(&t->awake->lock);
    return room;
}

void tn_turns_leave(const tn_turns *t, tn_turn *turn)
{
    pthread_mutex_lock(&t->awake->lock);
    if (turn->fd >= 0)
        put_to_sleep(t, turn);
    pthread_mutex_unlock(&t->awake->lock);
}
