/* store/properties.h - the `properties` of a descriptor, which no other container can store. */
#ifndef TN_STORE_PROPERTIES_H
#define TN_STORE_PROPERTIES_H

#include <tenon/descriptor.h>

/* Without is_contiguous, which follows from the strides. */
typedef struct tn_properties {
    bool            given;          /* else the rest is not set */
    bool            requires_grad, is_pinned, zero_copy_compatible;
    const tn_wia_extra *extra;          /* other members of the object */
    size_t          nextra;
} tn_properties;

#endif
