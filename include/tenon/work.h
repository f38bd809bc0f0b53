/* tenon/work.h - one conversion made by many processes, on one machine or several.
 *
 * The processes share a work folder, by default OUT.tenon beside the output: the plan, a lock and a record
 * for each piece, and the files that nobody sees until they are complete.  A process claims a piece by its
 * lock (flock), makes it, and records it; the lock of a process that dies is free again.  The output is
 * the same for any number of processes, and appears whole or not at all.
 *
 *     tn_work_make()         plans a conversion and its work folder, or joins the work that is there
 *     tn_work_open()         joins the work in a folder
 *     tn_work_run()          makes one piece, unless it is made already
 *     tn_work_run_all()      makes pieces until none is left
 *     tn_work_finish()       publishes the output and removes the folder
 *
 * A tn_together does the same for results that are reported, such as those of tn_stats().
 *
 * Nothing is computed twice but what a process that died had not recorded.  A folder can be stopped and gone
 * on with at any time.  One thread at a time uses a tn_work. */
#ifndef TENON_WORK_H
#define TENON_WORK_H

#include <tenon/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_work tn_work;

/* Zeroed but for `size`, it asks for nothing. */
typedef struct tn_work_options {
    size_t      size;           /* set by the caller: sizeof(tn_work_options) */
    const char *folder;         /* the work folder: new, empty or of the same work; NULL: OUT.tenon.  On the
                                 * file system of the output, unless that is a URL, which needs it.  It is
                                 * removed at the end */
    uint32_t    rank, ranks;    /* this process and how many there are; ranks 0: not known.  They say where to
                                 * begin; only without locks they say who makes what */
    unsigned    jobs;           /* threads; 0: one per core.  Of tn_work_open() only */
    tn_progress_fn progress;    /* of all processes; may be NULL.  Of tn_work_open() only, as are all below */
    tn_note_fn  note;           /* told whom this process waits for, and of locks that do not work; may be
                                 * NULL */
    tn_cast_report_fn lost;     /* as in tn_convert_options; may be NULL */
    void       *context;        /* of these three */
    uint64_t    piece_size;     /* about so many bytes in a piece; 0: 64 MiB.  Of tn_together_new() only */
    bool        replace;        /* the output may be replaced, also if it is not what it was when the work was
                                 * planned.  Of tn_work_open() only */
} tn_work_options;

/* What became of a piece. */
typedef enum tn_work_outcome {
    TN_WORK_MADE = 0,           /* by this call */
    TN_WORK_WAS_MADE = 1,       /* before it */
    TN_WORK_HELD = 2            /* another process is making it */
} tn_work_outcome;

/* Plans a conversion and makes its work folder.  If the folder is there, this process joins: its own plan
 * must be the same, byte by byte.  TN_ERR_CHANGED: it is not; the text has the first difference: another
 * version of Tenon, another input, or other options.  Other errors as of tn_plan_make().  Progress and
 * notes are those of the conversion's options.  The input must have a name.  Input and output may be URLs,
 * the output of S3: then processes send the parts that they make, and the object appears with the last.
 *
 * *work may be published already, by a process that ended before it removed the folder: tn_work_finish() does
 * it then. */
TN_API tn_status tn_work_make(const tn_file *file, const char *path, const tn_convert_options *convert,
                              const tn_work_options *options, tn_work **work, tn_error *err);

/* Joins the work in a folder: opens its input and plans anew.  TN_ERR_CHANGED: the input, or Tenon, is not
 * what it was. */
TN_API tn_status tn_work_open(const char *folder, const tn_work_options *options, tn_work **work,
                              tn_error *err);

/* Its plan, for tn_plan_count() and tn_plan_piece() only; NULL: the output is published. */
TN_API const tn_plan *tn_work_plan(const tn_work *work);

/* The path of its folder, and of its output.  Never NULL. */
TN_API const char *tn_work_folder(const tn_work *work);
TN_API const char *tn_work_output(const tn_work *work);

/* Makes a piece, unless it is made or another process is making it.  `outcome` may be NULL.  After a failure
 * the piece is free, and may be tried again by anybody. */
TN_API tn_status tn_work_run(tn_work *work, size_t piece, tn_work_outcome *outcome, tn_error *err);

/* Makes pieces until none is free.  With `wait` it returns only when all pieces are made: it takes over
 * those of processes that die, and tells whom it waits for.  A piece that fails in another process fails
 * here too.  The error is that of the first that failed; pieces that failed before this process joined are
 * tried again. */
TN_API tn_status tn_work_run_all(tn_work *work, bool wait, tn_error *err);

/* Publishes the output and removes the folder.  TN_ERR_ARGUMENT: pieces are missing.  If another process has
 * published it, *result is filled alike and the call succeeds.  After a failure nothing was replaced and the
 * folder is as it was; `work` can only be closed.  `result` may be NULL.  TN_ERR_EXISTS: the output has
 * appeared, or was replaced, after the work was planned (not of tn_work_make(), which plans). */
TN_API tn_status tn_work_finish(tn_work *work, tn_convert_result *result, tn_error *err);

/* Leaves the work to others; NULL is allowed. */
TN_API void      tn_work_close(tn_work *work);

/* ---- results that many processes make ---- */

/* tn_verify(), tn_stats(), tn_compare() and tn_compare_datatypes() take one in their options.  Then processes
 * that make the same call share the work, and each reports all of it when all is done: the same as alone.
 *
 *     tn_together_new()      in each process, with the same folder
 *     tn_stats() ...         once
 *     tn_together_tells()    whether this process is the one to tell the result
 *     tn_together_end()      the last one removes the folder
 *
 * One that is interrupted is gone on with by the same calls.  One thread at a time uses a tn_together. */
typedef struct tn_together tn_together;

/* Nothing is touched yet.  `folder` (a path) is made when it is needed; of the options rank, notes and piece
 * size count. */
TN_API tn_status tn_together_new(const char *folder, const tn_work_options *options, tn_together **together,
                                 tn_error *err);

/* True for one of the processes: the others wait for its tn_together_end(), and take over if it dies.  Also
 * true after a failure, which each process tells for itself. */
TN_API bool      tn_together_tells(tn_together *together);

/* Leaves, and frees it; `told`: this process has told the result.  After a failure the folder stays, for the
 * same call to go on.  NULL is allowed. */
TN_API void      tn_together_end(tn_together *together, bool told);

/* ---- looking at a folder ---- */

/* How far a folder is. */
typedef struct tn_work_state {
    size_t   size;              /* set by the caller: sizeof(tn_work_state) */
    size_t   pieces, made, held;        /* held: by a process that has its lock */
    uint64_t bytes, bytes_made;         /* to be written, before compression */
    size_t   processes;         /* that have joined and live, as far as locks tell */
    bool     published;
} tn_work_state;

/* A piece that a process is making. */
typedef struct tn_work_holder {
    size_t   size;              /* set by the library */
    size_t   piece;
    char     host[65];          /* "": not known */
    uint64_t pid;               /* 0: not known */
    bool     stopped;           /* it is a process of this host, and it was stopped by a signal */
} tn_work_holder;
typedef void (*tn_work_holder_fn)(void *context, const tn_work_holder *holder);

/* Reads how far a folder is, without the input, and tells `holder` (may be NULL) who is making what.
 * TN_ERR_CORRUPT: it is no work folder. */
TN_API tn_status tn_work_look(const char *folder, tn_work_state *state, tn_work_holder_fn holder,
                              void *context, tn_error *err);

/* Removes a work folder and what was made in it; the output stays as it was.  TN_ERR_IO: a process is
 * using it, or the store cannot be told to forget what was sent.  Anything that is no work folder is
 * TN_ERR_CORRUPT and left as it is; files that others have put there stay (TN_ERR_IO). */
TN_API tn_status tn_work_abandon(const char *folder, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
