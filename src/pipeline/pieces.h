/* pipeline/pieces.h - making numbered pieces beside other processes, and waiting for them.
 *
 * Users say what making a piece is: it leaves the record, NNNNN.done, in the work folder.  Who makes what is
 * decided by bytes/claims.h. */
#ifndef TN_PIPELINE_PIECES_H
#define TN_PIPELINE_PIECES_H

#include "bytes/claims.h"
#include "pipeline/walk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/work.h>

/* Pieces that are made, and whose data is to be on disk before their records count.  A sync costs some
 * milliseconds, whatever its size. */
enum { TN_SYNC_MOST = 4 };
typedef struct tn_unsynced {
    size_t n, pieces[TN_SYNC_MOST];
    int    locks[TN_SYNC_MOST];
} tn_unsynced;

/* A thread writes some to disk, while the next are made. */
typedef struct tn_syncing {
    tn_unsynced now, next;
    bool        threaded;
    atomic_bool ended;
    pthread_t   thread;
    tn_status   status;
    tn_error    why;
} tn_syncing;

typedef struct tn_pieces {
    /* Set before tn_pieces_begin(). */
    const char  *path;          /* of the work folder, for notes */
    uint32_t     rank, ranks;
    tn_note_fn   note;          /* may be NULL */
    void        *note_context;
    tn_walk     *walk;          /* progress and threads */
    bool         shares_cores;  /* the number of threads was not given */
    uint64_t     bytes_before;  /* that the walk has done */
    uint64_t     usual;         /* bytes of a usual piece: much larger ones are made first */
    uint64_t   (*cost)(const void *maker, size_t piece);        /* in bytes */
    tn_status  (*make)(void *maker, size_t piece, tn_error *err);       /* its data, and then its record */
    /* Writes the data of some to disk; another thread may call it while the next is made.  NULL: the record
     * is all there is. */
    tn_status  (*sync)(void *maker, const tn_unsynced *some, tn_error *err);
    /* Whether the data that a whole record tells of is there; NULL: it has none of its own. */
    bool       (*has_data)(const void *maker, size_t piece, tn_text record);
    /* Bytes that a record has at most; NULL: TN_CLAIM_MOST. */
    uint64_t   (*most)(const void *maker, size_t piece);
    void        *maker;         /* of all four */
    /* The rest is set there. */
    tn_claims    claims;
    size_t       count, nmade;
    size_t       base;          /* number of the first in the work folder */
    bool        *made;          /* as far as this process knows */
    bool        *failed_before; /* when this process joined */
    size_t       lost;          /* records that were worth nothing then: a crash of their machine */
    size_t      *order;         /* all pieces, in which they are tried */
    uint64_t     bytes_made;
    tn_syncing   syncing;
    const char  *told;          /* of locks: the problem that was told */
} tn_pieces;

/* Before the first use, and after the last; between them it may be joined or not. */
void      tn_pieces_init(tn_pieces *p);
void      tn_pieces_end(tn_pieces *p);

/* Joins those that work in a folder, which is borrowed. */
tn_status tn_pieces_join(tn_pieces *p, int folder, tn_error *err);

/* Begins `count` pieces, whose numbers in the folder follow `base`; lists are in the arena.  Looks which are
 * made. */
tn_status tn_pieces_begin(tn_pieces *p, size_t base, size_t count, tn_arena *arena, tn_error *err);

/* Makes one, unless it is made or another process is making it; makes pieces until none is free, or with
 * `wait` until all are made: see <tenon/work.h>. */
tn_status tn_pieces_run(tn_pieces *p, size_t piece, tn_work_outcome *outcome, tn_error *err);
tn_status tn_pieces_run_all(tn_pieces *p, bool wait, tn_error *err);

/* Looks again which are made.  TN_ERR_ARGUMENT: some are not; TN_ERR_CHANGED: the folder is gone. */
tn_status tn_pieces_check_all(tn_pieces *p, tn_error *err);

/* Leaves and reads the record of a piece.  TN_ERR_CHANGED: it is gone. */
tn_status tn_pieces_put_record(const tn_pieces *p, size_t piece, tn_text text, tn_error *err);
tn_status tn_pieces_get_record(tn_pieces *p, size_t piece, tn_arena *arena, tn_text *text, tn_error *err);

/* A file in the work folder, waiting for its lock for as long as another has it; the folder must not be gone
 * then.  To be closed. */
tn_status tn_pieces_lock(tn_pieces *p, const char *name, int *lock, tn_error *err);

#endif
