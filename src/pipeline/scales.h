/* pipeline/scales.h - the scales that fit the values of a tensor in a file. */
#ifndef TN_PIPELINE_SCALES_H
#define TN_PIPELINE_SCALES_H

#include "store/stream.h"

#include <tenon/quantize.h>

typedef struct tn_scale_search {
    const tn_file   *file;
    const tn_tensor *tensor;        /* dense, of a float type */
    tn_dtype         codes;
    const tn_quantize_options *options;
    unsigned         jobs;          /* threads; 0: one a core; fewer where each would need much memory */
    tn_progress_fn   progress;      /* may be NULL */
    void            *context;
    uint64_t         progress_base, progress_total;
} tn_scale_search;

/* Goes through the tensor on all cores, once or (percentiles) a few times;
 * scale and zero (which may be NULL) have tn_scale_count() items. */
tn_status tn_find_scales(const tn_scale_search *search, float *scale, int32_t *zero, tn_error *err);

#endif
