/* quant/scale_trials.h - scales along whole dimensions of which the one with the
 * least squared error is wanted, and scales that are powers of two.
 *
 * All trials of all scales are made at a time.  One set a thread, joined at the
 * end: sums of integers do not depend on the order. */
#ifndef TN_QUANT_SCALE_TRIALS_H
#define TN_QUANT_SCALE_TRIALS_H

#include "quant/affine.h"

enum {                          /* of n in 2^-n */
    TN_POWER_LEAST = -127,      /* a float32... */
    TN_POWER_MOST = 126         /* ...and no subnormal one */
};

typedef struct tn_scale_trials {
    tn_affine_plan plan;        /* to codes of whole bytes, by the scales of one trial */
    unsigned      bits;         /* of a code */
    const tn_quant_kernels *kernels;
    unsigned      trials;       /* of each scale; 1: there is nothing to compare */
    unsigned      tried;        /* those that may be the best */
    float        *scale;        /* [trials][count]; in the end the first row has the best */
    int32_t      *zero;         /* the same, or NULL: symmetric codes */
    uint64_t     *sum;          /* [trials][count], of squares */
} tn_scale_trials;

/* How many trials a scale of these gets; 0: it follows from the range. */
unsigned tn_scale_trials_of(const tn_affine *affine, tn_scale_rule rule);

/* Bytes a scale. */
size_t tn_scale_trials_bytes(const tn_affine *affine, tn_scale_rule rule);

/* `range` is that of the codes.  Statuses of tn_affine_plan_make(). */
tn_status tn_scale_trials_init(tn_scale_trials *trials, const tn_affine *affine,
                               const tn_quantize_options *options, const int64_t range[2],
                               tn_scale_index index, tn_error *err);
void      tn_scale_trials_free(tn_scale_trials *trials);

/* Sets the trials of scale i to powers of two.  The first is the one at which the
 * lowest and the highest value are not cut.  `elements`: how many there are at
 * most, none of them beyond those two; UINT64_MAX: not known. */
void tn_scale_trials_powers(tn_scale_trials *trials, uint64_t i, float low, float high, uint64_t elements);

/* begins as `all` has */
void tn_scale_trials_follow(tn_scale_trials *trials, const tn_scale_trials *all);
void tn_scale_trials_add(tn_scale_trials *trials, const uint8_t *floats, uint64_t first, size_t n);
void tn_scale_trials_join(tn_scale_trials *all, const tn_scale_trials *one);
void tn_scale_trials_choose(tn_scale_trials *all);

#endif
