/* pipeline/together.h - one result that many processes make: verify, stats, compare, compare types.
 *
 * What is asked for is cut into pieces, which are claimed and recorded as those of a conversion are
 * (pipeline/pieces.h).  The record of a piece has its results.  When all are made, every process takes them
 * in order, as if it had made them alone; so what comes out does not depend on how many there are. */
#ifndef TN_PIPELINE_TOGETHER_H
#define TN_PIPELINE_TOGETHER_H

#include "pipeline/pieces.h"
#include "pipeline/work_text.h"

/* What is asked for: processes must agree on all of it. */
typedef struct tn_asked {
    const char    *verb;
    const tn_file *files[2];
    size_t         nfiles;
    struct { const char *key; const char *const *texts; size_t n; } lists[3];
    size_t         nlists;
    const uint64_t *numbers;
    size_t         nnumbers;
} tn_asked;

/* Begins; without a `together` (NULL) it does nothing, as the call is for this process alone. */
tn_status tn_together_ask(tn_together *together, const tn_asked *asked, tn_error *err);

typedef struct tn_together_task {
    size_t      count;          /* of pieces */
    uint64_t  (*cost)(const void *context, size_t piece);       /* in bytes */
    /* Puts the results of a piece: one JSON value. */
    tn_status (*make)(void *context, size_t piece, tn_buf *results, tn_error *err);
    /* Takes them again, piece after piece, when all are made.  What is wrong with the text is told by the
     * parser's status. */
    tn_status (*take)(void *context, size_t piece, tn_json *results, tn_error *err);
    void       *context;
} tn_together_task;

/* Makes pieces with the others until all are made, and takes them.  It may be called again for more. */
tn_status tn_together_run(tn_together *together, const tn_together_task *task, tn_walk *walk, tn_error *err);

/* Bytes of a usual piece. */
uint64_t  tn_together_piece(const tn_together *together);

#endif
