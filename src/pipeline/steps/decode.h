/* pipeline/steps/decode.h - what the step `decode` has once it is prepared. */
#ifndef TN_PIPELINE_STEPS_DECODE_H
#define TN_PIPELINE_STEPS_DECODE_H

#include "pipeline/view.h"
#include "quant/quantizer.h"
#include "store/load.h"

typedef struct tn_decoder {
    const tn_tensor *tensor;        /* of the file */
    unsigned        bits;           /* of what values become */
    tn_datatype    *datatype;
    tn_scaled_plan  plan;
    tn_part_values  parts;
    tn_cast_plan    narrow;         /* from float32 to that type */
    tn_loaded       loaded;         /* where parts cannot be had in place */
    const tn_part  *lines;          /* codes that are made where they are wanted, some lines at a time; or
                                     * NULL: the plan has all of them */
    bool            to_bf16;        /* that type is bfloat16, and no option changes how values are rounded */
} tn_decoder;

/* Of a view that is the step `decode`, before it is prepared: the plan will have all codes in memory. */
void tn_view_keep_codes(const tn_view *v);

/* NULL: another step, or not prepared. */
const tn_decoder *tn_view_decoder(const tn_view *v);

#endif
