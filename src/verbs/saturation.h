/* verbs/saturation.h - the last numbers on both sides that the scales of a tensor of a
 * datatype can say: what lies beyond them is saturated. */
#ifndef TN_VERBS_SATURATION_H
#define TN_VERBS_SATURATION_H

#include "verbs/distance.h"
#include "pipeline/decoder.h"

/* Of one worker.  Zero-initialise to begin. */
typedef struct tn_limiter {
    tn_limits      limits;      /* for tn_distance */
    const tn_decoder *made;
    uint32_t       codes[2];    /* of the lowest and the highest number */
    struct tn_limit *known;     /* of some tiles */
    tn_tile        tile;
    float         *values;
    void          *block;       /* what the two consist of */
} tn_limiter;

/* Begins those of a tensor that is not empty; `made` must live on. */
tn_status tn_limiter_begin(tn_limiter *l, const tn_decoder *made, tn_error *err);
void      tn_limiter_free(tn_limiter *l);

#endif
