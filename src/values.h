/* values.h - the values of a tensor that is more than its elements. */
#ifndef TN_VALUES_H
#define TN_VALUES_H

#include "container/stream.h"

/* How codes of a scaled tensor become values. */
typedef struct tn_dequantizing {
    const tn_file   *file;
    const tn_tensor *tensor;
    tn_dtype         to;
    uint32_t         rank;
    const int64_t   *shape;     /* the order in which the change will see the codes... */
    int32_t          axis;      /* ...and where the scales go along it */
    const int32_t   *zero;      /* of the tensor, or NULL: see tn_read_zeros() */
} tn_dequantizing;

/* Makes the change, in the arena; reads the scales. */
tn_status tn_dequantize_change(const tn_dequantizing *d, tn_arena *arena, const tn_change **change, tn_error *err);

/* The zero points of a scaled tensor, in the arena; NULL where it has none. */
tn_status tn_read_zeros(const tn_file *file, const tn_tensor *tensor, tn_arena *arena, const int32_t **zero, tn_error *err);

/* What to read of a tensor's first part to have its values. */
typedef struct tn_values {
    tn_dtype         dtype;
    const tn_change *change;    /* or NULL: the elements are the values */
    uint64_t         zeros;     /* elements of a sparse tensor that are not stored */
} tn_values;

/* TN_ERR_UNSUPPORTED with the reason where there is no way to the values. */
tn_status tn_values_of(const tn_file *file, const tn_tensor *tensor, tn_arena *arena, tn_values *values, tn_error *err);

#endif
