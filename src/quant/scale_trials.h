/* quant/scale_trials.h - affine scales with the least squared error, and affine scales
 * that are powers of two.
 *
 * One pass over the values tries all candidates of all scales.  Each thread has its
 * own sums, joined at the end.  Sums are integers, so that they do not depend on the
 * order. */
#ifndef TN_QUANT_SCALE_TRIALS_H
#define TN_QUANT_SCALE_TRIALS_H

#include "quant/affine.h"

enum {                          /* n of a scale 2^-n that is a normal float32 */
    TN_POWER_LEAST = -127,
    TN_POWER_MOST = 126
};

typedef struct tn_scale_trials {
    tn_affine_plan plan;        /* encodes to whole bytes with the scales of one trial */
    unsigned      bits;         /* per code */
    const tn_quant_kernels *kernels;
    unsigned      trials;       /* per scale; 1: nothing to compare */
    unsigned      tried;        /* the first ones, which can be the best */
    size_t        items;        /* of the arrays: trials, of each scale */
    float        *scale;        /* [trials][count]; the first row is the result */
    int32_t      *zero;         /* [trials][count]; NULL: symmetric codes */
    uint64_t     *sum;          /* [trials][count]: squared errors */
    uint64_t      most;         /* a larger sum is not the least of its scale; UINT64_MAX: unknown */
} tn_scale_trials;

/* Trials per scale; 0: the scale follows from the range. */
unsigned tn_scale_trials_of(const tn_affine *affine, tn_scale_rule rule);

/* Bytes per scale. */
size_t tn_scale_trials_bytes(const tn_affine *affine, tn_scale_rule rule);

/* `range`: of the codes.  Statuses as tn_affine_plan_make(). */
tn_status tn_scale_trials_init(tn_scale_trials *trials, const tn_affine *affine,
                               const tn_quantize_options *options, const int64_t range[2],
                               tn_scale_index index, tn_error *err);
void      tn_scale_trials_restart(tn_scale_trials *trials);         /* as it was after init */
void      tn_scale_trials_free(tn_scale_trials *trials);

/* Sets the trials of scale i to powers of two.  The first one is the smallest that
 * does not clip `low` and `high`.  `elements`: at most this many values, all within low
 * and high; UINT64_MAX: unknown. */
void tn_scale_trials_powers(tn_scale_trials *trials, uint64_t i, float low, float high, uint64_t elements);

/* Tells that the first trial clips none of the `elements` values of a scale: trials that are worse than it
 * can be are given up early.  `exact`: quotients are exact, since scales are powers of two. */
void tn_scale_trials_limit(tn_scale_trials *trials, uint64_t elements, bool exact);

/* Starts the trials of another thread with the scales of `all`. */
void tn_scale_trials_follow(tn_scale_trials *trials, const tn_scale_trials *all);
void tn_scale_trials_add(tn_scale_trials *trials, const uint8_t *floats, uint64_t first, size_t n);
void tn_scale_trials_join(tn_scale_trials *all, const tn_scale_trials *one);
void tn_scale_trials_choose(tn_scale_trials *all);

#endif
