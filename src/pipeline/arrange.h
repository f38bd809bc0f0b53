/* pipeline/arrange.h - the data of a tensor in another order of its dimensions, with
 * padding, as other elements: file to file, slab by slab.
 *
 * A slab is a run of the output that any thread can make from the mapped input
 * and that goes out in order.  Memory does not grow with the tensor.  An input
 * that cannot be mapped as it is (compressed, or read without mapping) is
 * decoded into an unnamed file beside the output first. */
#ifndef TN_PIPELINE_ARRANGE_H
#define TN_PIPELINE_ARRANGE_H

#include "base/pool.h"
#include "store/stream.h"

typedef struct tn_arrange {
    uint32_t         rank;
    uint32_t         order[TN_MAX_RANK];    /* dimension i of the output is dimension order[i] of the input */
    int64_t          shape[TN_MAX_RANK];    /* of the output, without padding */
    int64_t          physical[TN_MAX_RANK]; /* with it */
    const tn_change *change;    /* of elements by their number in the output without padding; or NULL */
    unsigned         to_bits;   /* of an element of the output */
    uint8_t          fill[16];  /* the element that padding consists of, in the low bits... */
    const int32_t   *fills;     /* ...unless this is not NULL: one for all... */
    int32_t          axis;      /* ...or, where this is not -1, for each index along this dimension of the
                                 * output */
} tn_arrange;

typedef struct tn_arranging {
    const tn_file    *in;
    const tn_tensor  *tensor;
    const tn_part    *part;
    const tn_arrange *how;
    const char       *beside;   /* the output's path */
    tn_pool          *pool;
    uint64_t          slab;     /* bytes of one, at least one element; 0: as many as are worth it */
    /* The next bytes of the output, or none: `done` of all the input's bytes are used up. */
    tn_status (*emit)(void *context, const uint8_t *bytes, size_t n, uint64_t done, tn_error *err);
    void             *context;
} tn_arranging;

/* Makes the whole output; checks the input's checksum first. */
tn_status tn_arrange_run(tn_arranging *a, tn_error *err);

#endif
