/* quant/power.h - scales that are powers of two: the smallest at which
 * nothing is cut, or the one with the least squared error.
 *
 * A search tries 2^-n, 2^-(n + 1) and so on for each scale, all at a time.  One
 * a thread, joined at the end: sums of integers do not depend on the order. */
#ifndef TN_QUANT_POWER_H
#define TN_QUANT_POWER_H

#include "quant/quantize.h"

enum {                          /* of n in 2^-n */
    TN_POWER_LEAST = -127,      /* a float32... */
    TN_POWER_MOST = 126         /* ...and no subnormal one */
};

typedef struct tn_power_search {
    tn_quant_plan plan;         /* to codes of whole bytes, by the scales of one trial */
    unsigned      bits;         /* of a code */
    const tn_quant_kernels *kernels;
    unsigned      trials;       /* of each scale; 1: there is nothing to compare */
    unsigned      tried;        /* those that may be the best */
    float        *scale;        /* [trials][count]; in the end the first row has the best */
    uint64_t     *sum;          /* [trials][count], of squares */
} tn_power_search;

/* Bytes a scale, of a search for codes of this type by this rule. */
size_t tn_power_bytes(const tn_dtype_info *codes, tn_scale_rule rule);

/* `range` is that of the codes.  Statuses of tn_quant_plan_make(). */
tn_status tn_power_search_init(tn_power_search *search, const tn_dtype_info *codes, const int64_t range[2],
                               tn_scale_index index, const tn_quantize_options *options, tn_error *err);
void      tn_power_search_free(tn_power_search *search);

/* The first trial of each scale is the one at which its lowest and its highest
 * value are not cut.  There are so many elements. */
void tn_power_search_begin(tn_power_search *search, const float *low, const float *high, uint64_t elements);
/* begins as `all` has */
void tn_power_search_follow(tn_power_search *search, const tn_power_search *all);
void tn_power_search_add(tn_power_search *search, const uint8_t *floats, uint64_t first, size_t n);
void tn_power_search_join(tn_power_search *all, const tn_power_search *one);
void tn_power_search_choose(tn_power_search *all);

#endif
