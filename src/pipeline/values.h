/* pipeline/values.h - the values of a tensor that is more than its elements. */
#ifndef TN_PIPELINE_VALUES_H
#define TN_PIPELINE_VALUES_H

#include "store/kept.h"
#include "store/stream.h"
#include "pipeline/decoder.h"

#include <tenon/quantize.h>

/* Counts the scales and zero points that tn_plan_values() will read of the tensor, for whoever
 * has those of many tensors in memory at once.  TN_ERR_LIMIT: too much. */
tn_status tn_keep_scales(tn_kept *kept, const tn_tensor *tensor, tn_error *err);

/* How to have the values of a tensor: by streams of its first part, or made of all of them. */
typedef struct tn_value_plan {
    tn_dtype         dtype;
    const tn_change *change;    /* of the first part's elements, or NULL: they are the values */
    bool             made;      /* by a datatype, of all parts at once */
    bool             splits;    /* a stream may begin anywhere */
    uint64_t         count;     /* values that can be had */
    uint64_t         zeros;     /* elements of a sparse tensor that are not stored, beside them */
    unsigned         bits;      /* of what is read of the first part for each; of the value, where they are
                                 * made */
} tn_value_plan;

/* TN_ERR_UNSUPPORTED with the reason where there is no way to the values. */
tn_status tn_plan_values(const tn_file *file, const tn_tensor *tensor, tn_arena *arena, tn_value_plan *plan,
                         tn_error *err);

/* Values of one worker, window by window.  Zero-initialise to begin. */
typedef struct tn_value_stream {
    tn_stream stream;
    tn_decoder  *made;             /* of the tensor that is open, or NULL */
} tn_value_stream;

/* Begins values [first, first + n): all of them unless the plan splits. */
tn_status tn_value_stream_open(tn_value_stream *s, const tn_file *file, const tn_tensor *tensor,
                               const tn_value_plan *plan, uint64_t first, uint64_t n, tn_error *err);
void      tn_value_stream_free(tn_value_stream *s);

#endif
