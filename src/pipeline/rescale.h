/* pipeline/rescale.h - a tensor of a file into codes with scales, into what they would
 * stand for, or back: its parts as memory, and the new parts in order. */
#ifndef TN_PIPELINE_RESCALE_H
#define TN_PIPELINE_RESCALE_H

#include "base/pool.h"
#include "store/stream.h"

#include <tenon/convert.h>

typedef enum tn_rescale_kind {
    TN_RESCALE_QUANTIZE,
    TN_RESCALE_VIRTUAL,
    TN_RESCALE_DEQUANTIZE,
    TN_RESCALE_REPORT           /* nothing is made but what the output says of it */
} tn_rescale_kind;

typedef struct tn_rescale_task {
    const tn_file     *in;
    const tn_tensor   *tensor;
    tn_rescale_kind    kind;
    const tn_datatype *datatype;
    tn_datatype       *own;     /* to be freed with the task, or NULL */
    tn_quantize_options  options;
    float              scale;   /* TN_SCALE_GIVEN: of all, unless `scales` are there */
    int32_t            zero;
    float             *scales;  /* of an affine datatype, or NULL: as many as it has */
    int32_t           *zeros;   /* or NULL */
    tn_dtype           to;      /* values: their type */
    tn_cast_options    cast;    /* dequantizing: how they are rounded to it */
    const char        *beside;  /* the output's path: what cannot be mapped or written in order is in unnamed
                                 * files there */
    uint64_t           limit;   /* bytes that compressed data may be decoded into; 0: see tn_loading */
    tn_status        (*tick)(void *context, tn_error *err);
    void              *context;
} tn_rescale_task;

typedef struct tn_rescale_output {
    tn_pool          *pool;
    tn_status       (*emit)(void *context, uint32_t part, const uint8_t *bytes, size_t n, tn_error *err);
    void             *context;
    tn_quantize_stats *report;           /* of quantizing, or NULL */
} tn_rescale_output;

/* Whether it can be done, before anything is read; *shapes receives the parts
 * of the scaled tensor, whichever side it is on.  Texts do not name the tensor. */
tn_status tn_rescale_check(const tn_rescale_task *task, tn_scaled_shapes *shapes, tn_error *err);

/* The report for whoever asked: `made` is what the tensor has become. */
void tn_rescale_tell(const tn_rescale_task *task, const tn_tensor *made, const tn_quantize_stats *stats,
                     tn_quantize_report_fn tell, void *context);

/* Makes all parts one after another; emit() is called at least once for each. */
tn_status tn_rescale(const tn_rescale_task *task, tn_rescale_output *output, tn_error *err);

#endif
