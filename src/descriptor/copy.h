/* descriptor/copy.h - a descriptor with everything it points to. */
#ifndef TN_DESCRIPTOR_COPY_H
#define TN_DESCRIPTOR_COPY_H

#include "base/arena.h"

#include <tenon/descriptor.h>

/* Copies `src`, and all it points to into the arena.  TN_ERR_NOMEM. */
tn_status tn_descriptor_copy(tn_descriptor *dst, const tn_descriptor *src, tn_arena *arena, tn_error *err);

#endif
