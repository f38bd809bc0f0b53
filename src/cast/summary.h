/* cast/summary.h - statistics of elements in memory, span by span.
 *
 * A span is a run of elements with a fixed start and length.  Statistics of spans
 * are joined in order, so they are the same for any number of threads and any
 * CPU. */
#ifndef TN_CAST_SUMMARY_H
#define TN_CAST_SUMMARY_H

#include "kernels/cast/table.h"
#include "kernels/stats/table.h"

/* The statistics of no elements. */
tn_statistics tn_statistics_empty(void);

/* The statistics of n zeros. */
tn_statistics tn_statistics_zeros(uint64_t n);

/* Adds the statistics of the span that follows. */
void tn_statistics_join(tn_statistics *all, const tn_statistics *next);

/* Accumulates the elements of one span. */
typedef struct tn_span {
    const tn_dtype_info    *type;
    const tn_stats_kernels *tally_with;
    const tn_cast_kernels       *cast_with;
    tn_tally                tally;
    uint64_t                codes[256];     /* types of at most 8 bits: how many there are of each code */
} tn_span;

/* `type` is known.  The kernels are this machine's. */
void tn_span_begin(tn_span *span, tn_dtype type);

/* Adds n dense elements that begin on a byte; n is a multiple of TN_TALLY_LANES,
 * except in the last call. */
void tn_span_add(tn_span *span, const void *elements, size_t n);

tn_statistics tn_span_end(const tn_span *span);

#endif
