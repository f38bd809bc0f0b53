/* pipeline/scales.h - the scales that fit the values of a tensor in a file. */
#ifndef TN_PIPELINE_SCALES_H
#define TN_PIPELINE_SCALES_H

#include "pipeline/walk.h"
#include "store/stream.h"

#include <tenon/quantize.h>

typedef struct tn_scale_search {
    const tn_file   *file;
    const tn_tensor *tensor;        /* dense, of a float type */
    tn_dtype         codes;
    const tn_quantize_options *options;
    tn_walk         *walk;          /* of its threads some only, where each would need much memory */
} tn_scale_search;

/* Goes through the tensor on all cores, once or (percentiles) a few times;
 * scale and zero (which may be NULL) have tn_scale_count() items. */
tn_status tn_find_scales(const tn_scale_search *search, float *scale, int32_t *zero, tn_error *err);

#endif
