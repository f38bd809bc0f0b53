/* tenon/plan.h - a conversion as data: what will be written where, and in which pieces.
 *
 *     tn_plan_make()         reads the index of the input and decides everything; data is read only where
 *                            the size of a sparse result must be known
 *     tn_plan_run()          makes one piece: in any order, also twice
 *     tn_plan_finish()       all pieces are made: the output appears, whole
 *     tn_plan_free()         an unfinished plan leaves nothing behind
 *
 * tn_convert() does the same in one call.  A plan does not depend on the number of threads.  A piece is a run
 * of tensors of about 64 MiB together, or some blocks of a larger one; a large tensor that is compressed, has
 * a SHA-256 checksum, can only be read in order, or needs a look at all its data first, is one piece.  One
 * thread at a time uses a plan; its own threads make a piece. */
#ifndef TENON_PLAN_H
#define TENON_PLAN_H

#include <tenon/convert.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_plan tn_plan;

typedef struct tn_plan_piece_info {
    size_t   size;              /* set by the caller: sizeof(tn_plan_piece_info) */
    size_t   file;              /* number of the output file that it begins in */
    size_t   first_tensor, tensors;     /* of the output */
    uint64_t first_block, blocks;       /* of the only tensor; blocks 0: all of all */
    uint64_t offset;            /* where it begins in its file, or the tensor that it has some blocks of, if
                                 * that has several parts; UINT64_MAX: depends on the pieces before it */
    uint64_t bytes_written;     /* before compression */
    uint64_t bytes_read;        /* as they are stored in the input */
} tn_plan_piece_info;

/* Plans what tn_convert() would do; errors as there.  The options and all they point to are copied, but for
 * callbacks and their context; the file stays open until the plan is freed.  The output is not touched before
 * tn_plan_finish(), which may replace the input. */
TN_API tn_status tn_plan_make(const tn_file *file, const char *path, const tn_convert_options *options,
                              tn_plan **plan, tn_error *err);

/* The number of pieces. */
TN_API size_t    tn_plan_count(const tn_plan *plan);

/* Tells what a piece makes and costs.  TN_ERR_ARGUMENT: there is no such piece, or info->size is 0. */
TN_API tn_status tn_plan_piece(const tn_plan *plan, size_t piece, tn_plan_piece_info *info, tn_error *err);

/* About how many bytes of memory making the pieces takes at most with so many threads (0: one per core): the
 * index, and what each thread has for itself.  Mapped files are not counted, nor windows for decoding
 * (tn_set_window_memory()). */
TN_API uint64_t  tn_plan_memory(const tn_plan *plan, unsigned jobs);

/* Makes a piece; one that is made already is left as it is.  After a failure it may be tried again. */
TN_API tn_status tn_plan_run(tn_plan *plan, size_t piece, tn_error *err);

/* Makes the output appear.  TN_ERR_ARGUMENT: a piece is missing.  `result` may be NULL.  After any other
 * failure nothing was replaced and the plan can only be freed. */
TN_API tn_status tn_plan_finish(tn_plan *plan, tn_convert_result *result, tn_error *err);

/* Writes the plan as JSON: versions, input, output, options, rules, what the index of the input says, every
 * part with its place where that is known, and every piece.  The file appears whole or not at all.
 * TN_ERR_ARGUMENT: the input has no name, or the plan is finished. */
TN_API tn_status tn_plan_save(const tn_plan *plan, const char *path, tn_error *err);

/* Opens the input of a saved plan and makes the plan anew.  TN_ERR_CHANGED: it is not the same one, because
 * the input, or Tenon, is not: the text has the first difference. */
TN_API tn_status tn_plan_open(const char *path, tn_plan **plan, tn_error *err);

TN_API void      tn_plan_free(tn_plan *plan);   /* Frees a plan; NULL is allowed. */

#ifdef __cplusplus
}
#endif
#endif
