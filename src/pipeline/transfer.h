/* pipeline/transfer.h - moving the data of tensors from an open file into a writer. */
#ifndef TN_PIPELINE_TRANSFER_H
#define TN_PIPELINE_TRANSFER_H

#include "store/file.h"
#include "store/stream.h"
#include "store/writer.h"
#include "pipeline/remake.h"
#include "pipeline/walk.h"

typedef struct tn_transfer {
    const tn_file          *in;
    tn_writer              *out;            /* planned; its tensor i is made of... */
    const tn_tensor *const *source;         /* ...source[i] */
    tn_remade *const       *made;           /* ...as made[i] says */
    const char             *in_path;        /* for messages */
    tn_walk                *walk;           /* with tn_transfer_bytes() in its total */
    tn_quantize_report_fn   quantized;      /* told of tensors that get codes of a datatype; may be NULL */
    void                   *context;        /* of quantized */
} tn_transfer;

/* Decoded bytes that tn_transfer_run() will read (of tensors that get another form or datatype: write). */
uint64_t tn_transfer_bytes(const tn_transfer *transfer);

/* Moves every part that is not tied to another, checks the input's checksums,
 * on all cores and in bounded memory.  The bytes written do not depend on the
 * number of threads.  Error texts begin with the file concerned. */
tn_status tn_transfer_run(const tn_transfer *transfer, tn_error *err);

#endif
