/* pipeline/work.h - the inside of tn_work. */
#ifndef TN_PIPELINE_WORK_H
#define TN_PIPELINE_WORK_H

#include "pipeline/pieces.h"
#include "pipeline/plan.h"
#include "pipeline/work_folder.h"

#include <sys/stat.h>
#include <tenon/work.h>

struct tn_work {
    tn_arena        arena;
    tn_work_options o;
    const char     *path, *output;  /* of the folder, and as the plan has it */
    int             folder;
    tn_plan        *plan;           /* NULL: the output is published */
    uint32_t        id;             /* checksum of the plan's text */
    tn_pieces       pieces;
    const char     *head_path;      /* the output is published when this path... */
    struct stat     head;           /* ...has the file files/head; NULL, st_ino 0: not known */
    char            before[TN_OUTPUT_VERSION];  /* of an object, when the work was planned; "": none */
    tn_convert_result result;       /* what finishing will tell */
    bool            has_joined;     /* those that make pieces in the folder */
    bool            was_opened;     /* by its folder: what it replaces was asked for before */
    bool            was_left;       /* the folder only tells that the output is published */
};

/* Makes a piece and leaves its record, and writes the data of some to disk: work_run.c. */
tn_status tn_work_make_piece(void *work, size_t piece, tn_error *err);
tn_status tn_work_sync_pieces(void *work, const tn_unsynced *some, tn_error *err);

/* Whether the output is published, as far as is known. */
bool      tn_work_is_published(const tn_work *w);

/* After an error: TN_OK if another process has published the output meanwhile; then there is no plan. */
tn_status tn_work_settle(tn_work *w, tn_status status, tn_error *err);

#endif
