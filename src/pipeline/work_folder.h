/* pipeline/work_folder.h - the folder in which processes make a conversion together.
 *
 *     plan.json           the plan, absolute paths; there last, so a folder that has it is complete
 *     plan.lock           held by who makes the folder; finish.lock by who publishes
 *     files/head          the only file of the output, or the one that names the others
 *     files/0, 1 ...      the others
 *     pieces/NNNNN.*      see bytes/claims.h
 *     processes/          one file for each process that has joined
 *     replaces            which file the output was when the work was planned
 *     uploads/            see pipeline/work_uploads.h
 *     ranks/R             ranks that have come
 *     published           what was published, if it is an object or some ranks have not come yet
 */
#ifndef TN_PIPELINE_WORK_FOLDER_H
#define TN_PIPELINE_WORK_FOLDER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens it; *folder is -1 if there is none.  TN_ERR_IO: it is no folder, or not the user's own: what is in it
 * could be exchanged by others. */
tn_status tn_work_folder_open(const char *path, int *folder, tn_error *err);

/* A file in it, waiting for its lock; -1 with no lock where locks do not work. */
tn_status tn_work_folder_lock(int folder, const char *name, int *lock, tn_error *err);

/* The text of plan.json, in the arena; *there: it exists. */
tn_status tn_work_folder_plan(int folder, tn_arena *arena, tn_text *text, bool *there, tn_error *err);

/* The text of a small file in it, cut to fit, with a NUL; -1: it is not there. */
ssize_t tn_work_folder_text(int folder, const char *name, char *text, size_t room);

/* A process that joins. */
typedef struct tn_work_joining {
    tn_text   plan;
    tn_status (*first)(void *context, tn_error *err);   /* the first makes what belongs to the plan, before
                                                         * it is there; may be NULL */
    void     *context;
} tn_work_joining;

/* Makes the folder, or joins the one that is there (*folder, if it is open already), which must have the same
 * plan, byte by byte: TN_ERR_CHANGED says what differs.  TN_ERR_CORRUPT: it has files and is no work folder;
 * what is in a work folder is removed at the end. */
tn_status tn_work_folder_join(const char *path, int *folder, const tn_work_joining *joining, tn_error *err);

/* Whether another process has taken the folder from its path. */
bool      tn_work_folder_is_gone(int folder, const char *path);

/* Whether a process gave names to files of the work without publishing all: it was killed, or is doing so. */
bool      tn_work_folder_has_names(int folder);

/* Takes these names, in the folder of `output`, away again, unless all was published and renamed since. */
void      tn_work_folder_take_back(int folder, const char *output);

/* Notes that rank R has ended well, or has come to share results; tells whether it has; and counts those that
 * have. */
void      tn_work_folder_add_rank(int folder, uint32_t rank);
bool      tn_work_folder_has_rank(int folder, uint32_t rank);
size_t    tn_work_folder_ranks(int folder);

/* What tells a file or an object (a path, or a URL) from others that may take its place; false: it is not
 * there, or cannot be reached. */
#define TN_OUTPUT_VERSION 200   /* bytes with the NUL */
bool      tn_output_look(const char *output, char version[TN_OUTPUT_VERSION], uint64_t *size);

/* Notes what the output is when the work is planned, and tells later whether it is still that, or nothing. */
tn_status tn_work_folder_note_output(int folder, const char *output, tn_error *err);
bool      tn_work_folder_is_noted(int folder, const char *output);
void      tn_work_folder_noted(int folder, char version[TN_OUTPUT_VERSION]);

/* Notes that this output is published.  false: it is not there, or not to be noted. */
bool      tn_work_folder_mark(int folder, const char *output);

/* The same, and empties the folder, for ranks that have not come yet: what is left is the plan, the ranks,
 * and which file the output is. */
bool      tn_work_folder_leave(int folder, const char *output);

/* Whether it was noted; then *same (may be NULL) tells whether the output still is that file. */
bool      tn_work_folder_was_left(int folder, const char *output, bool *same);

/* Takes the folder from its path, so that it is gone at once, and removes it.  `path` may have another
 * folder by now, which stays; so do files in it that a work folder does not have (TN_ERR_IO). */
tn_status tn_work_folder_remove(int folder, const char *path, tn_error *err);

/* What a process that was killed while it removed such a folder has left in the folder of `path`. */
void      tn_work_folder_clean(const char *path);

#endif
