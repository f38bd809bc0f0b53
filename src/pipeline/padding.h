/* pipeline/padding.h - how far a rule pads each dimension of a tensor, and with what. */
#ifndef TN_PIPELINE_PADDING_H
#define TN_PIPELINE_PADDING_H

#include "pipeline/rules/rules.h"

/* What padding consists of. */
typedef struct tn_padding {
    uint8_t        fill[16];    /* the element, in the low bits... */
    const int32_t *fills;       /* ...unless this is not NULL: one for all... */
    int32_t        axis;        /* ...or, unless this is -1, one for each index along this dimension */
} tn_padding;

/* Sets the padding and, in `physical`, the shape with it, which begins as the shape without.  The rule may be
 * NULL: codes narrower than a byte are padded without one.  The tensor has its new type, layout and scaling;
 * `zero` has the zero points of a scaled tensor, or is NULL.  TN_ERR_ARGUMENT, TN_ERR_LOSS, TN_ERR_LIMIT:
 * a rule that cannot be honoured. */
tn_status tn_choose_padding(const tn_tensor *t, const tn_pad_rule *rule, const int32_t *zero,
                            int64_t *physical, tn_padding *padding, tn_error *err);

#endif
