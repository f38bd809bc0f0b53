/* verbs/metrics.h - the difference of two ranges of elements of any types, and saturation. */
#ifndef TN_VERBS_METRICS_H
#define TN_VERBS_METRICS_H

#include "pipeline/steps/decode.h"

#include <tenon/tensor.h>

/* The limits of each element, which follow from its scale. */
typedef struct tn_limits {
    /* of n elements from `first` on */
    void (*get)(void *context, uint64_t first, size_t n, double *low, double *high);
    void  *context;
} tn_limits;

/* As in tn_difference.  Zero-initialise to begin. */
typedef struct tn_distance {
    uint64_t differing, first, bits, specials, flushed, saturated;
    double   max_abs, max_rel, max_ulp;
    double   signal, noise;         /* sums of |a|^2 and |a - b|^2 over pairs of finite values */
    const tn_limits *limits;        /* of b; set before elements are added; NULL: saturation is not counted */
    double   tolerance, relative;   /* set before, too: finite values so near to each other do not differ */
} tn_distance;

/* Dense elements that begin on a byte. */
typedef struct tn_elements {
    tn_dtype       dtype;
    const uint8_t *bytes;
} tn_elements;

/* Adds n elements of each side; the first has index `from`. */
void tn_distance_add(tn_distance *d, tn_elements a, tn_elements b, uint64_t from, size_t n);

/* Adds `next`, of later elements. */
void tn_distance_join(tn_distance *d, const tn_distance *next);

/* In dB; infinite without noise, NaN if the sums overflow a double. */
double tn_distance_sqnr(const tn_distance *d);

/* ---- saturation ---- */

/* The lowest and highest numbers that the scales of a tensor allow: values beyond them are saturated. The
 * scratch of one worker; zero-initialise to begin. */
typedef struct tn_limiter {
    tn_limits         limits;       /* for tn_distance */
    const tn_decoder *decoder;
    uint32_t          codes[2];     /* of the lowest and the highest number */
    struct tn_limit  *known;        /* a cache */
    tn_tile           tile;
    float            *values;
    void             *block;        /* memory of tile and values */
} tn_limiter;

/* Begins with the decoder of a tensor that is not empty; it must outlive the limiter's use. */
tn_status tn_limiter_begin(tn_limiter *l, const tn_decoder *decoder, tn_error *err);
void      tn_limiter_free(tn_limiter *l);

#endif
