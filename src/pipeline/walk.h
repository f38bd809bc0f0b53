/* pipeline/walk.h - going through the data of chosen tensors.
 *
 * A walk serves one call of the library.  It knows which tensors were chosen,
 * counts the bytes that are done, tells the caller about them, stops when the
 * caller asks for that, and has the threads.
 *
 * The data is cut into items.  Any thread works on any item; results are
 * joined one at a time, in the order of the items.  So what comes out does not
 * depend on the number of threads, nor on that of processes. */
#ifndef TN_PIPELINE_WALK_H
#define TN_PIPELINE_WALK_H

#include "base/pool.h"
#include "base/vector.h"
#include "bytes/json.h"
#include "pipeline/pattern.h"
#include "store/file.h"

/* Set the first three, zero the rest; end with tn_walk_end(). */
typedef struct tn_walk {
    unsigned          jobs;         /* threads; 0: one per core */
    tn_progress_fn    progress;     /* may be NULL */
    void             *context;      /* of progress */
    uint64_t          done, total;  /* bytes, as progress gets them; users add to the total */
    const tn_tensor **tensors;      /* chosen ones, in the order of the file */
    size_t            count;
    tn_pool          *pool;         /* NULL before tn_walk_start() */
    struct tn_together *together;   /* not NULL: other processes work on the items, too */
} tn_walk;

void tn_walk_end(tn_walk *walk);

/* ---- choosing ---- */

/* Chooses the tensors whose names match the patterns (pipeline/pattern.h); without patterns all.
 * TN_ERR_ARGUMENT: a pattern matches nothing, or nothing is left. */
tn_status tn_walk_choose(tn_walk *walk, const tn_file *file, const char *const *patterns, size_t n,
                         tn_error *err);

/* ---- progress ---- */

/* Counts bytes as done and tells the caller.  One thread at a time.
 * TN_ERR_CANCELLED: the caller asks to stop. */
tn_status tn_walk_advance(tn_walk *walk, uint64_t bytes, tn_error *err);

/* A chance to cancel where no bytes are done.  Without a walk (NULL) there is none. */
tn_status tn_walk_check(tn_walk *walk, tn_error *err);

/* ---- items ---- */

/* What a thread works on at a time: `count` whole subjects, or a range of one.  Users say what a
 * subject is (a tensor, a part, a pair) and what a range counts (elements, bytes). */
typedef struct tn_item {
    size_t   subject;           /* the first */
    uint32_t count;
    uint32_t part;              /* users' own */
    uint64_t from, n;           /* the range */
    uint64_t bytes;             /* for progress */
    bool     last;              /* the range ends where its subject does */
    bool     marked;            /* users' own */
} tn_item;

/* Zero-initialise to begin; free(list) to end. */
typedef struct tn_items {
    tn_item *list;
    size_t   count, cap;
} tn_items;

/* Cuts `whole`, which begins at 0 and counts in units of `bits`, into ranges of `span`, or into a single one
 * if span is 0.  There is always at least one item, which may be empty. */
tn_status tn_items_cut(tn_items *items, tn_item whole, uint64_t span, unsigned bits, tn_error *err);

/* Adds a whole subject: to the last item, if that ends with the subject before and would not get more than
 * `most` subjects or a range of more than `most_n`. */
tn_status tn_items_pack(tn_items *items, tn_item whole, uint32_t most, uint64_t most_n, tn_error *err);

/* ---- running ---- */

typedef struct tn_walk_task {
    /* Any thread.  The scratch is its worker's alone.  A failure ends the run, after the items before it
     * were joined. */
    tn_status (*work)(void *context, const tn_item *item, void *scratch, void *result, tn_error *err);
    /* In order, one at a time; may be NULL.  Then the item's bytes are done. */
    tn_status (*join)(void *context, tn_item *item, void *result, tn_error *err);
    void       *context;
    size_t      scratch_size, result_size;      /* both begin as zeroes, and are used for many items */
    void      (*free_scratch)(void *scratch);   /* may be NULL */
    void      (*free_result)(void *result);     /* may be NULL */
    /* A result as one JSON value, and back, for other processes; NULL: it cannot be shared.  A failure to
     * save it fails the item. */
    tn_status (*save)(void *context, const tn_item *item, const void *result, tn_buf *text, tn_error *err);
    void      (*load)(void *context, const tn_item *item, tn_json *text, void *result);
} tn_walk_task;

/* Starts the threads, if they do not run yet. */
tn_status tn_walk_start(tn_walk *walk, tn_error *err);

/* Works through all items.  The error is that of the first item that failed. */
tn_status tn_walk_run(tn_walk *walk, const tn_items *items, const tn_walk_task *task, tn_error *err);

#endif
