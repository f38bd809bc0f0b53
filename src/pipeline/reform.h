/* pipeline/reform.h - a tensor of a file in another form: its parts as memory, and the
 * new parts block by block. */
#ifndef TN_PIPELINE_REFORM_H
#define TN_PIPELINE_REFORM_H

#include "store/stream.h"
#include "sparse/sparse.h"

/* Where a tensor comes from and what its new form is to be. */
typedef struct tn_form_task {
    const tn_file    *in;
    const tn_tensor  *tensor;
    tn_form           form;
    tn_sparse_options options;
    const char       *beside;   /* the output's path: what cannot be mapped is decoded into an unnamed file
                                 * there */
    /* now and then while it is decoded: a chance to cancel */
    tn_status       (*tick)(void *context, tn_error *err);
    void             *context;
} tn_form_task;

/* A task under way: the tensor's parts in memory, its indices checked and
 * sorted, its entries counted. */
typedef struct tn_form_conversion tn_form_conversion;

/* Checks checksums and indices, counts.  TN_ERR_LIMIT: as tn_convert_form(), and what
 * would have to be decoded is beyond the limit. */
tn_status tn_form_conversion_new(const tn_form_task *task, tn_pool *pool, tn_form_conversion **reformed,
                                 tn_error *err);
void      tn_form_conversion_free(tn_form_conversion *reformed);

/* What comes out, without data; lives as long as it. */
const tn_tensor *tn_form_conversion_result(const tn_form_conversion *reformed);

/* It holds a copy of the tensor: better made again later than kept while others are planned. */
bool tn_form_conversion_is_large(const tn_form_conversion *reformed);

/* Makes one part of the result, in order; emit() is called at least once. */
typedef struct tn_form_output {
    uint32_t         part;
    const tn_change *change;    /* of its elements (the first part only), or NULL */
    tn_pool         *pool;
    tn_status      (*emit)(void *context, const uint8_t *bytes, size_t n, tn_error *err);
    void            *context;
} tn_form_output;
tn_status tn_form_conversion_write(const tn_form_conversion *reformed, tn_form_output *output, tn_error *err);

#endif
