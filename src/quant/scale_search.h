/* quant/scale_search.h - find scales and zero points of affine datatypes, and ranges
 * of large groups.
 *
 * Values may come in any order from several threads.  Each thread has a tally, and
 * all tallies are joined at the end.  Percentiles and least squared errors need
 * several passes: tn_scale_tally_more() returns true if one more is needed. */
#ifndef TN_QUANT_SCALE_SEARCH_H
#define TN_QUANT_SCALE_SEARCH_H

#include "base/pool.h"
#include "quant/affine.h"

/* The lowest exponent of the last bit of a short scale: MLI's structures store at most
 * 127 fractional bits. */
enum { TN_SHORT_SCALE_LEAST = -127 };

typedef struct tn_scale_tally tn_scale_tally;

tn_status tn_scale_tally_new(const tn_affine *affine, const tn_quantize_options *options, tn_dtype from,
                             tn_scale_index index, tn_scale_tally **tally, tn_error *err);
/* Adds n dense elements in host order. */
void      tn_scale_tally_add(tn_scale_tally *tally, const void *elements, uint64_t first, size_t n);
/* Adds n values of one scale; percentiles only. */
void      tn_scale_tally_count(tn_scale_tally *tally, const float *x, size_t n, uint64_t scale);
void      tn_scale_tally_range(const tn_scale_tally *all, uint64_t scale, float *low, float *high);
void      tn_scale_tally_join(tn_scale_tally *all, const tn_scale_tally *one);
bool      tn_scale_tally_more(tn_scale_tally *all);
/* Prepares the tally of another thread for the next pass. */
void      tn_scale_tally_again(tn_scale_tally *one, const tn_scale_tally *all);
void      tn_scale_tally_scales(const tn_scale_tally *all, float *scale, int32_t *zero);
/* Forgets all values. */
void      tn_scale_tally_restart(tn_scale_tally *tally);
uint64_t  tn_scale_tally_bytes(const tn_scale_tally *tally);
void      tn_scale_tally_free(tn_scale_tally *tally);

/* A source of values, divided into items. */
typedef struct tn_scale_source {
    /* Adds the values of an item to a tally. */
    tn_status (*add)(void *context, uint64_t item, unsigned worker, tn_scale_tally *tally, tn_error *err);
    /* Called for each item, in order.  May be NULL. */
    tn_status (*done)(void *context, uint64_t item, unsigned result, tn_error *err);
    void     *context;
    uint64_t  items;
} tn_scale_source;

/* Runs all passes with at most `jobs` threads, fewer if tallies are large.  The result is in `tally`. */
tn_status tn_scale_search(tn_scale_tally *tally, const tn_scale_source *source, unsigned jobs, tn_error *err);

#endif
