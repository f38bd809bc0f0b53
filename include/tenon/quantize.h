/* tenon/quantize.h - values as integer codes with a scale: (code - zero) * scale.
 *
 * One scale for the whole tensor, or one for each index along one dimension.
 * All arithmetic is binary32, one rounding an operation: code = round(x / scale)
 * + zero, cut to the range; value = (code - zero) * scale.  Infinities become
 * the lowest and the highest code.  Results do not depend on the CPU or the
 * number of threads.  Thread-safe.
 *
 * Codes are int8, uint8, int16, uint16, int32, int4, uint4, int2 or uint2;
 * values any float type.  They enter as float32: float64 values are rounded to
 * it first, others are exact in it. */
#ifndef TENON_QUANTIZE_H
#define TENON_QUANTIZE_H

#include <tenon/cast.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_PER_TENSOR (-1)

typedef enum tn_scale_rule {    /* where scales come from */
    TN_SCALE_RANGE      = 0,    /* all values fit: the largest magnitude (symmetric), or the lowest and highest */
    TN_SCALE_PERCENTILE = 1,    /* the same, but that percentage of the values nearest to zero (or the middle) fits */
    TN_SCALE_GIVEN      = 2     /* by the caller */
} tn_scale_rule;

typedef struct tn_quantize_options {
    size_t        size;
    int32_t       axis;         /* dimension with a scale for each index, or TN_PER_TENSOR */
    bool          symmetric;    /* zero is code 0 (of an unsigned type: asymmetric only) */
    tn_scale_rule rule;
    double        percentile;   /* (0, 100]; PERCENTILE only */
    int64_t       range[2];     /* lowest and highest code; both 0: all of the type (symmetric: without the lowest, -128) */
    tn_round      round;
    tn_nan        nan;          /* KEEP is an error: there is no code for it; ZERO is the code of 0.0 */
    uint64_t      seed;
    unsigned      jobs;         /* threads; 0: one a core */
} tn_quantize_options;          /* where they may be NULL: TN_PER_TENSOR and zeros */

/* How many scales (and zeros) an array of this shape needs: 1 or the extent of
 * the axis.  TN_ERR_ARGUMENT: no such dimension. */
TN_API tn_status tn_scale_count(uint32_t rank, const int64_t *shape, int32_t axis, uint64_t *count, tn_error *err);

/* Chooses scales and zeros for float data (any float type; dense, host order)
 * by the options' rule.  scale[] and zero[] have tn_scale_count() items; zero
 * may be NULL when symmetric.  `codes` is the integer type to come.  Infinities
 * and NaN are not looked at.
 *
 * Symmetric: scale = largest magnitude / highest code, zero = 0.  Asymmetric,
 * with 0 in the range of the values: scale = (highest - lowest value) /
 * (highest - lowest code), zero = lowest code - lowest value / scale, rounded
 * and cut to the range.  A scale is at least 2^-126, the smallest that is not
 * subnormal; a range that holds zero alone, or nothing, gives scale 1.
 *
 * PERCENTILE counts the finite values of a scale exactly: of n of them, k = n *
 * percentile / 100 (in double, rounded up, at least 1) fit.  Symmetric: the k
 * smallest magnitudes.  Asymmetric: all but half of the others (rounded down)
 * at each end.
 *
 * TN_ERR_ARGUMENT: options or types that make no sense.  TN_ERR_LIMIT: more
 * scales than can be counted for in 256 MiB (percentiles: some 129000, half as
 * many when asymmetric). */
TN_API tn_status tn_choose_scales(tn_dtype codes, const tn_array *src, const void *src_data,
                                  const tn_quantize_options *options, float *scale, int32_t *zero, tn_error *err);

/* Codes for every element, both dense, host order, not overlapping.  zero may
 * be NULL: all 0.  The options' rule is not looked at.
 *
 * TN_ERR_ARGUMENT: types, shapes or options that make no sense; a scale that is
 * not a finite number above 0; a zero other than 0 when symmetric.
 * TN_ERR_LOSS: a NaN that nan does not let pass; the text has its index, and
 * what was written to dst is unspecified. */
TN_API tn_status tn_quantize(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                             const float *scale, const int32_t *zero, const tn_quantize_options *options, tn_error *err);

/* The values of codes, both dense, host order, not overlapping.  The product is
 * rounded to float32 and then cast to the type of dst, as tn_cast() does without
 * options.  zero may be NULL: all 0.  `options` gives axis and jobs.
 * TN_ERR_ARGUMENT: types, shapes or axis that make no sense; a scale that is not
 * finite. */
TN_API tn_status tn_dequantize(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                               const float *scale, const int32_t *zero, const tn_quantize_options *options, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
