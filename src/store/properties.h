/* store/properties.h - what descriptors say of the use of a tensor.
 *
 * No other container has a place for it, so it goes from descriptor to
 * descriptor beside the tensor. */
#ifndef TN_STORE_PROPERTIES_H
#define TN_STORE_PROPERTIES_H

#include <tenon/descriptor.h>

/* is_contiguous is not here: it follows from how the tensor lies. */
typedef struct tn_properties {
    bool            given;          /* else nothing below counts */
    bool            requires_grad, is_pinned, zero_copy_compatible;
    const tn_wia_extra *extra;          /* other members of the object */
    size_t          nextra;
} tn_properties;

#endif
