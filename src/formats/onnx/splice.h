/* formats/onnx/splice.h - a model with other data: where its bytes go.
 *
 * All bytes of the model stay in order.  Only the fields of listed tensors that have data are written anew,
 * and so are the lengths of the messages around them. */
#ifndef TN_FORMATS_ONNX_SPLICE_H
#define TN_FORMATS_ONNX_SPLICE_H

#include "formats/onnx/onnx.h"

/* The new data of one listed tensor. */
typedef struct tn_onnx_data {
    bool        stays;          /* it is not read, so its bytes stay */
    bool        external;
    uint64_t    nbytes;
    uint64_t    offset;         /* in the file that has it; inside the model it is found by splicing */
    /* for splicing: */
    const uint8_t *fields;      /* those of the tensor that have no data */
    size_t      fields_size;
} tn_onnx_data;

/* Bytes of the new model between data. */
typedef struct tn_onnx_run {
    size_t   at, size;          /* in `bytes` */
    uint64_t offset;            /* in the new model */
} tn_onnx_run;

typedef struct tn_onnx_splice {
    const tn_onnx_model *model;
    tn_onnx_data *data;         /* one per tensor of the model */
    const char   *location;     /* the name of the file that has external data */
    tn_error     *err;
    tn_buf        bytes;        /* of the new model, without data */
    tn_onnx_run  *runs;
    size_t        nruns, runs_cap;
    size_t       *names;        /* where `location` is in `bytes` */
    size_t        nnames, names_cap;
    uint64_t      size;         /* of the new model */
} tn_onnx_splice;

/* Makes the new model.  TN_ERR_LIMIT: it takes 2 GiB or more, which protobuf does not read. */
tn_status tn_onnx_splice_model(tn_onnx_splice *s);
void      tn_onnx_splice_free(tn_onnx_splice *s);

#endif
