/* pipeline/scales.h - the scales that fit the values of a tensor in a file. */
#ifndef TN_PIPELINE_SCALES_H
#define TN_PIPELINE_SCALES_H

#include "pipeline/walk.h"
#include "store/stream.h"

#include <tenon/quantize.h>

typedef struct tn_find_scales_task {
    const tn_file   *file;
    const tn_tensor *tensor;        /* dense, of a float type */
    const tn_affine *affine;        /* what to, with its axis */
    const tn_quantize_options *options;
    tn_walk         *walk;          /* of its threads some only, where each would need much memory */
} tn_find_scales_task;

/* Goes through the tensor on all cores, once or (percentiles) a few times;
 * scale and zero (which may be NULL) have one item, or one for each index of the axis. */
tn_status tn_find_scales(const tn_find_scales_task *task, float *scale, int32_t *zero, tn_error *err);

#endif
