/* cast/summary.h - statistics of elements in memory, span by span.
 *
 * A span is a run of elements with a fixed beginning and length.  Summaries of
 * spans are joined in order: then the figures are the same for any number of
 * threads and any CPU. */
#ifndef TN_CAST_SUMMARY_H
#define TN_CAST_SUMMARY_H

#include "kernels/cast/table.h"
#include "kernels/stats/table.h"

/* The figures of nothing. */
tn_statistics tn_statistics_empty(void);

/* The figures of n zeros. */
tn_statistics tn_statistics_zeros(uint64_t n);

/* Appends what `next` says. */
void tn_statistics_join(tn_statistics *all, const tn_statistics *next);

/* The elements of one span, piece by piece. */
typedef struct tn_span {
    const tn_dtype_info    *type;
    const tn_stats_kernels *tally_with;
    const tn_cast_kernels       *cast_with;
    tn_tally                tally;
    uint64_t                codes[256];     /* types of at most 8 bits: how many there are of each code */
} tn_span;

/* `type` is known.  The kernels are this machine's. */
void tn_span_begin(tn_span *span, tn_dtype type);

/* Adds n dense elements that begin on a byte; all pieces but the last have a
 * multiple of TN_TALLY_LANES. */
void tn_span_add(tn_span *span, const void *elements, size_t n);

tn_statistics tn_span_end(const tn_span *span);

#endif
