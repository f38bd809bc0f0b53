/* pipeline/work.h - the inside of tn_work. */
#ifndef TN_PIPELINE_WORK_H
#define TN_PIPELINE_WORK_H

#include "bytes/claims.h"
#include "pipeline/plan.h"

#include <sys/stat.h>
#include <tenon/work.h>

struct tn_work {
    tn_arena        arena;
    tn_work_options o;
    const char     *path, *output;  /* of the folder, and as the plan has it */
    int             folder;
    tn_plan        *plan;           /* NULL: the output is published */
    uint32_t        id;             /* checksum of the plan's text */
    tn_claims       claims;
    const char     *head_path;      /* the output is published when this path... */
    struct stat     head;           /* ...has the file files/head; NULL, st_ino 0: not known */
    tn_convert_result result;       /* what finishing will tell */
    size_t          count, nmade;   /* pieces */
    bool           *made;           /* as far as this process knows */
    bool           *failed_before;  /* when this process joined */
    size_t         *order;          /* all pieces, in which they are tried */
    uint64_t        bytes_made;
    bool            was_left;       /* the folder only tells that the output is published */
    bool            shares_cores;   /* the number of threads was not given */
    const char     *told;           /* of locks: the problem that was told */
};

/* Makes pieces: work_run.c. */

/* Marks a piece as made. */
void      tn_work_mark(tn_work *w, size_t piece);

/* Whether the output is published, as far as is known. */
bool      tn_work_is_published(const tn_work *w);

/* After an error: TN_OK if another process has published the output meanwhile; then there is no plan. */
tn_status tn_work_settle(tn_work *w, tn_status status, tn_error *err);

#endif
