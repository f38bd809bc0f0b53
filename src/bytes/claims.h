/* bytes/claims.h - numbered pieces of work that processes divide among themselves, in a folder they share.
 *
 * A claim is a lock (flock) on NNNNN.lock.  Who has it makes the piece and leaves NNNNN.done, a record that
 * appears whole by rename(); then the piece is made for everybody.  The lock of a process that dies is free.
 * While the data of a piece is on its way to disk its record is called NNNNN.made-BOOT: processes of the same
 * boot of the same machine can still sync that data, others cannot rely on it.
 * NNNNN.failed says why a piece could not be made; NNNNN.part has bytes that wait for their place.
 *
 * Locks save work, and nothing else: two processes that make the same piece write the same bytes.  So where
 * locks do not work pieces are dealt by number, and what is left over may be made twice. */
#ifndef TN_BYTES_CLAIMS_H
#define TN_BYTES_CLAIMS_H

#include "base/arena.h"
#include "base/text.h"
#include "bytes/process.h"

#include <limits.h>
#include <tenon/error.h>

typedef enum tn_claim {
    TN_CLAIM_MINE,
    TN_CLAIM_DONE,              /* it is made */
    TN_CLAIM_HELD               /* by another process */
} tn_claim;

#define TN_CLAIM_MOST ((uint64_t)64 << 20)

/* Why locks do not work, or NULL. */
#define TN_LOCKS_NONE  "this file system has no locks"
#define TN_LOCKS_LOCAL "locks of this file system are not seen by other processes"

typedef struct tn_claims {
    int         work, pieces, processes;    /* folders, open; -1: not yet */
    tn_process  self;
    int         alive;          /* the file of this process, which it has locked, or -1 */
    char        name[48];       /* of that file */
    char        unsynced[16];   /* the suffix ".made-BOOT" of this boot */
    const char *path;           /* of the folder, for messages; NULL: not known */
    uint64_t    most;           /* bytes of a file of a piece that are read at most; 0: TN_CLAIM_MOST */
    const char *problem;        /* TN_LOCKS_..., or NULL: locks work */
    struct tn_asked *asked;     /* processes elsewhere that were asked whether they live */
    tn_process  holder;         /* see tn_claim_is_held() */
    size_t      living;         /* see tn_claims_living()... */
    bool        here;           /* ...with its argument */
} tn_claims;

/* Looks into the folder `work`, which has the folders "pieces" and "processes"; it is borrowed. */
tn_status tn_claims_open(tn_claims *c, int work, tn_error *err);

/* Joins those that work there; before the first claim. */
tn_status tn_claims_join(tn_claims *c, tn_error *err);

/* Whether another process has removed the folder. */
bool tn_claims_are_gone(const tn_claims *c);

/* Finds out whether locks work, as far as it can be told by now; between two pieces.  A process shows that it
 * lives by holding the lock of its own file; if others can have that lock too, they look whether it lives
 * nevertheless: in /proc, or elsewhere by a question that it answers here. */
void      tn_claims_check(tn_claims *c);

/* Tries to get a piece; *lock is to be given to tn_claim_release(). */
tn_status tn_claim_piece(tn_claims *c, size_t piece, tn_claim *claim, int *lock, tn_error *err);
void      tn_claim_release(int lock);

/* Who has the lock of a piece, or had it when it died; false: nobody is known. */
bool      tn_claim_holder(const tn_claims *c, size_t piece, tn_process *holder);

/* Whether a process that lives makes it now; without locks nobody does.  The lock of the piece is not
 * touched: who tries to get it meanwhile gets it. */
bool      tn_claim_is_held(tn_claims *c, size_t piece);

/* Gets the lock of a piece, to mend what is left of it; false: another process has it. */
bool      tn_claim_lock(tn_claims *c, size_t piece, int *lock);

/* Processes that live, this one included; with `here` those of this machine only. */
size_t    tn_claims_living(tn_claims *c, bool here);

/* Whether no other process has a file here; that of one that was killed stays where locks do not work. */
bool      tn_claims_are_alone(tn_claims *c);

/* NNNNN and a suffix: ".done", ".failed", ".part", ".lock". */
#define TN_CLAIM_NAME 32
void      tn_claim_name(size_t piece, const char *suffix, char name[TN_CLAIM_NAME]);
void      tn_claim_path(const tn_claims *c, size_t piece, const char *suffix, char path[PATH_MAX]);
bool      tn_claim_has(const tn_claims *c, size_t piece, const char *suffix);

/* A file of a piece that appears whole; *there: it exists.  TN_ERR_LIMIT: it has more than c->most bytes. */
tn_status tn_claim_put(const tn_claims *c, size_t piece, const char *suffix, tn_text text, tn_error *err);
tn_status tn_claim_get(const tn_claims *c, size_t piece, const char *suffix, tn_arena *arena, tn_text *text,
                       bool *there, tn_error *err);
void      tn_claim_remove(const tn_claims *c, size_t piece, const char *suffix);

/* Its record, put with the suffix `unsynced`, becomes ".done": the data is on disk. */
tn_status tn_claim_settle(const tn_claims *c, size_t piece, tn_error *err);

/* A new file for the bytes of a piece, which gets its name by tn_claim_name_part(). */
#define TN_CLAIM_PART 64
tn_status tn_claim_open_part(const tn_claims *c, size_t piece, char name[TN_CLAIM_PART], int *fd,
                             tn_error *err);
tn_status tn_claim_name_part(const tn_claims *c, size_t piece, const char *name, tn_error *err);

/* Leaves.  What is in the folder stays. */
void      tn_claims_close(tn_claims *c);

/* The error that there is no access to a thing in the folder. */
tn_status tn_claims_fail(tn_error *err, int error_number, const char *what);

#endif
