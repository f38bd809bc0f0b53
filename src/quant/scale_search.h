/* quant/scale_search.h - scales and zero points from data, span by span: along
 * whole dimensions, or of groups too large to be held.
 *
 * For windows in any order from any number of threads: one tally a thread,
 * joined at the end.  Percentiles and least errors need several rounds over the
 * data: after each, tn_scale_tally_more() says whether to go through all of it
 * again. */
#ifndef TN_QUANT_SCALE_SEARCH_H
#define TN_QUANT_SCALE_SEARCH_H

#include "base/pool.h"
#include "quant/affine.h"

/* The exponent of the last bit that a scale of few bits may have: more fractional
 * bits than 127 have no place in MLI's structures. */
enum { TN_SHORT_SCALE_LEAST = -127 };

typedef struct tn_scale_tally tn_scale_tally;

tn_status tn_scale_tally_new(const tn_affine *affine, const tn_quantize_options *options, tn_dtype from,
                             tn_scale_index index, tn_scale_tally **tally, tn_error *err);
/* of memory: many scales may want fewer threads */
size_t    tn_scale_tally_bytes(const tn_scale_tally *tally);
/* dense, host order */
void      tn_scale_tally_add(tn_scale_tally *tally, const void *elements, uint64_t first, size_t n);
/* values of one group, of which tiles have many: percentiles only */
void      tn_scale_tally_count(tn_scale_tally *tally, const float *x, size_t n, uint64_t scale);
void      tn_scale_tally_range(const tn_scale_tally *all, uint64_t scale, float *low, float *high);
void      tn_scale_tally_join(tn_scale_tally *all, const tn_scale_tally *one);
bool      tn_scale_tally_more(tn_scale_tally *all);
/* begins the next round of another thread's */
void      tn_scale_tally_again(tn_scale_tally *one, const tn_scale_tally *all);
void      tn_scale_tally_scales(const tn_scale_tally *all, float *scale, int32_t *zero);
void      tn_scale_tally_free(tn_scale_tally *tally);

/* Where values come from: adds those of an item, which are its share of all, to a tally. */
typedef struct tn_scale_source {
    tn_status (*add)(void *context, uint64_t item, unsigned worker, tn_scale_tally *tally, tn_error *err);
    /* in order; or NULL */
    tn_status (*done)(void *context, uint64_t item, unsigned result, tn_error *err);
    void     *context;
    uint64_t  items;
} tn_scale_source;

/* All rounds, with at most so many threads: fewer where tallies are large.  `tally` is of one thread, and
 * becomes the sum. */
tn_status tn_scale_search(tn_scale_tally *tally, const tn_scale_source *source, unsigned jobs, tn_error *err);

#endif
