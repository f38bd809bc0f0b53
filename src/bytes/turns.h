/* bytes/turns.h - descriptors that many files take turns with.
 *
 * A process may have a few hundred files open but read or write ten thousand.
 * Of the files that share a tn_turns only so many are awake, that is, have a
 * descriptor; the one that was not used for the longest time is put to sleep
 * when another needs one.  Whoever uses a descriptor holds it: as long as all
 * that are awake are held there may be more of them, as many as there are
 * threads.  Thread-safe. */
#ifndef TN_BYTES_TURNS_H
#define TN_BYTES_TURNS_H

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>

/* One of the files.  Begins with fd -1, or with a descriptor that tn_turns_join() has counted. */
typedef struct tn_turn {
    int             fd;         /* -1: asleep */
    unsigned        users;
    struct tn_turn *older, *newer;      /* of those awake that nobody holds */
} tn_turn;

/* Who has one. */
typedef struct tn_awake {
    pthread_mutex_t lock;
    tn_turn        *oldest, *newest;
    size_t          count;
    size_t          limit;      /* 0: a quarter of what the process may have open, from 8 to 256 */
} tn_awake;

/* Files that are opened and closed in one way.  Apart from tn_awake, so that it can be constant. */
typedef struct tn_turns {
    tn_awake   *awake;
    tn_status (*wake)(tn_turn *turn, tn_error *err);    /* sets fd */
    bool      (*sleep)(tn_turn *turn);          /* closes it; false: it cannot be, and stays */
} tn_turns;

/* Takes in a file whose descriptor is open already: it is awake, and nobody holds it. */
void tn_turns_join(const tn_turns *turns, tn_turn *turn);

/* The descriptor of a file, awake until it is released as often as it was held. */
tn_status tn_turns_hold(const tn_turns *turns, tn_turn *turn, int *fd, tn_error *err);
void      tn_turns_release(const tn_turns *turns, tn_turn *turn);

/* The same if the file is awake; false: it is not. */
bool tn_turns_hold_awake(const tn_turns *turns, tn_turn *turn, int *fd);

/* Whether one more can be awake without another going to sleep. */
bool tn_turns_have_room(const tn_turns *turns);

/* The end of a file that nobody holds: puts it to sleep if it is awake. */
void tn_turns_leave(const tn_turns *turns, tn_turn *turn);

#endif
