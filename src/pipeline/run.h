/* pipeline/run.h - the data of planned tensors from an open file into a writer. */
#ifndef TN_PIPELINE_RUN_H
#define TN_PIPELINE_RUN_H

#include "pipeline/plan_tensor.h"
#include "store/writer.h"

typedef struct tn_run {
    const tn_file          *in;
    tn_writer              *out;            /* planned; its tensor i is made of... */
    const tn_tensor *const *source;         /* ...source[i] */
    tn_tensor_plan *const  *plans;          /* ...as plans[i] says; NULL: as it is */
    const tn_plan_place    *place;
    const tn_plan_place    *quiet;          /* the same without a walk, for threads of the pool */
    const char             *in_path;        /* for messages */
    tn_walk                *walk;           /* with tn_run_bytes() in its total */
    tn_quantize_report_fn   quantized;      /* told of tensors that get codes of a datatype; may be NULL */
    void                   *context;        /* of quantized */
} tn_run;

/* Decoded bytes that tn_run_all() will read (of tensors that are made anew: write). */
uint64_t tn_run_bytes(const tn_run *run);

/* Moves every part that is not tied to another, checks the input's checksums,
 * on all cores and in bounded memory.  The bytes written do not depend on the
 * number of threads.  Errors name the file concerned. */
tn_status tn_run_all(const tn_run *run, tn_error *err);

/* ---- parts that are made by blocks (run_made.c) ---- */

/* Some entries of the writer in order, all of which are made. */
tn_status tn_run_made(const tn_run *run, const tn_preparing *p, const size_t *entries, size_t n,
                      tn_error *err);

/* An error of the input: of the file that the tensor is in. */
tn_status tn_run_in_input(const tn_run *run, const tn_tensor *tensor, tn_status status, tn_error *err);

#endif
