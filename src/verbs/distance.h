/* verbs/distance.h - how far two runs of elements, of any types, are apart. */
#ifndef TN_VERBS_DISTANCE_H
#define TN_VERBS_DISTANCE_H

#include <tenon/tensor.h>

/* Between which values an element can lie, as its scale says it. */
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
    const tn_limits *limits;        /* of b, or NULL: saturated is not counted.  Set before elements are
                                     * added */
} tn_distance;

/* Adds n dense elements of each side; the first has index `from`.  Both begin on a byte. */
void tn_distance_add(tn_distance *d, tn_dtype type_a, const uint8_t *a, tn_dtype type_b, const uint8_t *b,
                     uint64_t from, size_t n);

/* Appends what `next`, of later elements, says. */
void tn_distance_join(tn_distance *d, const tn_distance *next);

/* In dB; infinite without noise, NaN where the sums are beyond a double. */
double tn_distance_sqnr(const tn_distance *d);

#endif
