/* pipeline/padding.h - how far a rule pads each dimension of a tensor, and with what. */
#ifndef TN_PIPELINE_PADDING_H
#define TN_PIPELINE_PADDING_H

#include "pipeline/arrange.h"

#include <tenon/convert.h>

/* Sets how->physical, fill, fills and axis from a rule, which may be NULL (codes
 * narrower than a byte are padded without one).  The tensor has its new type,
 * layout and scaling; how->rank, shape and physical are those without padding;
 * `zero` has the zero points of a scaled tensor, or is NULL.  TN_ERR_ARGUMENT, TN_ERR_LOSS,
 * TN_ERR_LIMIT with the tensor's name: a rule that cannot be honoured. */
tn_status tn_choose_padding(const tn_tensor *t, const tn_pad_rule *rule, const int32_t *zero, tn_arrange *how,
                            tn_error *err);

bool tn_arrange_has_padding(const tn_arrange *how);

#endif
