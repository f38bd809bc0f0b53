/* pipeline/run.h - the engine: blocks of views into the entries of a writer.
 *
 * A piece is a run of tensors of the output, or a run of blocks of one of them.  Pieces are run in any order,
 * each by all threads; neighbours are run as one list of items.  The bytes written depend on neither. */
#ifndef TN_PIPELINE_RUN_H
#define TN_PIPELINE_RUN_H

#include "pipeline/select.h"
#include "store/writer.h"

/* Of blocks of a tensor. */
typedef struct tn_blocks_made {
    tn_digest         in, out[TN_MAX_PARTS];    /* of the input's stored bytes, and of each part... */
    uint64_t          nin, nout[TN_MAX_PARTS];  /* ...and how many bytes these are of */
    tn_quantize_stats stats;
} tn_blocks_made;

typedef struct tn_piece {
    uint32_t first, count;      /* tensors of the output */
    uint64_t block, nblocks;    /* of all parts of the only tensor; nblocks 0: all of them */
    uint64_t written, read;     /* bytes: decoded ones into the output, stored ones of the input */
    bool     is_made;           /* everything was written, or is in `waiting` */
    bool     is_placed;         /* everything is in the output */
    tn_spill waiting;           /* stored bytes of entries whose place was not known */
    tn_buf   sent;              /* ETags, each with its NUL, of parts of an object that were sent */
    tn_blocks_made *blocks;     /* some blocks that are made: what all of them need to know */
} tn_piece;

typedef struct tn_run {
    const tn_file          *in;
    tn_writer              *out;            /* planned; its tensor i is made of... */
    const tn_tensor *const *source;         /* ...source[i] */
    tn_tensor_plan *const  *plans;          /* ...as plans[i] says; NULL: as it is */
    const tn_selection     *selection;      /* has their names */
    const tn_plan_place    *place;
    const tn_plan_place    *quiet;          /* the same without a walk, for threads of the pool */
    const char             *in_path;        /* for messages */
    tn_walk                *walk;           /* with tn_run_bytes() in its total */
    tn_piece               *pieces;         /* all of them */
    size_t                  npieces;
    int                     part;           /* of a piece that is made for others to place: an empty file for
                                             * what has no place; else -1 */
    tn_quantize_report_fn   quantized;      /* told of tensors that get codes of a datatype; may be NULL */
    tn_cast_report_fn       lost;           /* told of casts that lose much; may be NULL */
    bool                    strict;         /* these are errors */
    void                   *context;        /* of quantized and lost */
} tn_run;

/* Whether bytes of an entry are moved by the engine; else it is tied to another, or in memory. */
static inline bool tn_run_moves(const tn_out_entry *entry)
{
    return entry->tied == TN_NOT_TIED && !entry->data;
}

/* As progress counts them: all bytes that will be written, or read in search of scales. */
uint64_t tn_run_bytes(const tn_run *run);

/* Gives places to all entries whose place is known before anything is written. */
tn_status tn_run_place(tn_writer *out, tn_error *err);

/* Cuts a tensor, which is `whole`, into pieces of about `most` bytes, if any of its blocks can be made alone:
 * *list, to be freed, has *n of them.  0: it is one piece. */
tn_status tn_run_cut(const tn_run *run, const tn_piece *whole, uint64_t most, tn_piece **list, size_t *n,
                     tn_error *err);

/* Makes the entries of pieces [first, first + n) that are not made yet, checks the input's checksums, on all
 * cores and in bounded memory.  Errors name the file concerned. */
tn_status tn_run_pieces(const tn_run *run, size_t first, size_t n, tn_error *err);

/* Makes piece i with run->part >= 0, so that another process can place it: what is known of it stays in the
 * piece, and nothing is joined. */
tn_status tn_run_apart(const tn_run *run, size_t i, tn_error *err);

/* Whether piece i has bytes whose place is not known. */
bool      tn_run_waits(const tn_run *run, size_t i);

/* Forgets a piece that was made so, but for what is in files. */
void      tn_run_forget(const tn_run *run, size_t i);

/* The next piece in order, which was made by any process: its `waiting`, `blocks` and entries are filled in.
 * Places it and joins it with those before. */
tn_status tn_run_take(const tn_run *run, size_t i, tn_error *err);

#endif
