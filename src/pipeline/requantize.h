/* pipeline/requantize.h - codes with scales that become codes of other scales on the way
 * from file to file, without ever being values. */
#ifndef TN_PIPELINE_REQUANTIZE_H
#define TN_PIPELINE_REQUANTIZE_H

#include "store/stream.h"

#include <tenon/quantize.h>

typedef struct tn_requantizing {
    const tn_file   *file;
    const tn_tensor *tensor;    /* scaled, without a datatype */
    const int32_t   *zero;      /* its zero points, or NULL: see tn_read_zeros() */
    tn_dtype         to;
    tn_scales        scales;    /* of the new codes: the pointers live as long as the change */
    uint32_t         rank;
    const int64_t   *shape;     /* the order in which the change will see the codes... */
    int32_t          axis;      /* ...and where the scales of the tensor go along it */
    tn_requantize_options options;
    /* now and then while codes are read; a failure ends it */
    tn_status (*tick)(void *context, tn_error *err);
    void            *context;
} tn_requantizing;

/* Makes the change, in the arena; reads the tensor's scales. */
tn_status tn_requantize_change(const tn_requantizing *r, tn_arena *arena, const tn_change **change,
                               tn_error *err);

/* The smallest power of two at which no code of the tensor is cut: the rule
 * TN_SCALE_POWER.  Reads all codes; of `scales`, shape and axis nothing counts. */
tn_status tn_requantize_power(const tn_requantizing *r, tn_arena *arena, float *scale, tn_error *err);

#endif
