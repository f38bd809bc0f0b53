/* pipeline/steps/extremes.h - the power of two at which no code with scales is cut. */
#ifndef TN_PIPELINE_STEPS_EXTREMES_H
#define TN_PIPELINE_STEPS_EXTREMES_H

#include "pipeline/view.h"

#include <tenon/quantize.h>

/* The smallest scale 2^-n at which no code of the view, a scaled tensor without a datatype, is cut if it
 * becomes one of type `to`: the rule TN_SCALE_MAX of powers of two.  Reads all codes. */
tn_status tn_find_power(const tn_view *codes, tn_dtype to, const tn_requantize_options *options, tn_worker *w,
                        float *scale, tn_error *err);

#endif
