/* tenon/quantize.h - values as integer codes with a scale: (code - zero) * scale.
 *
 * One scale for the whole tensor, or one for each index along one dimension.
 * code = round(x / scale) + zero, cut to the range, see tn_arithmetic;
 * value = (code - zero) * scale, rounded once.  Infinities become the lowest and
 * the highest code.  Results do not depend on the CPU or the number of threads.
 * Thread-safe.
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
    TN_SCALE_RANGE      = 0,    /* all values fit: the largest magnitude (symmetric), or the lowest and
                                 * highest */
    TN_SCALE_PERCENTILE = 1,    /* the same, but that percentage of the values nearest to zero (or the middle)
                                 * fits */
    TN_SCALE_GIVEN      = 2,    /* by the caller */
    TN_SCALE_POWER      = 3,    /* the smallest power of two at which no finite value is cut; symmetric
                                 * only */
    TN_SCALE_LEAST      = 4     /* the power of two with the least squared error; symmetric only */
} tn_scale_rule;

typedef enum tn_arithmetic {      /* of x / scale + zero */
    TN_ARITH_BINARY32 = 0,      /* the quotient is rounded to binary32, then to an integer */
    TN_ARITH_EXACT    = 1,      /* it is rounded once, to an integer */
    TN_ARITH_MLI      = 2       /* as embARC MLI computes it on x86: half is added to x * (1 / scale) in
                                 * binary32, which is cut off to 32 bits; round is not looked at, NaN and what
                                 * is beyond 32 bits become the lowest integer.  Values from codes: (code -
                                 * zero), cut to 32 bits and rounded to binary32, * scale */
} tn_arithmetic;

typedef struct tn_quantize_options {
    size_t        size;
    int32_t       axis;         /* dimension with a scale for each index, or TN_PER_TENSOR */
    bool          symmetric;    /* zero is code 0 (of an unsigned type: asymmetric only) */
    tn_scale_rule rule;
    double        percentile;   /* (0, 100]; PERCENTILE only */
    int64_t       range[2];     /* lowest and highest code; both 0: all of the type (symmetric: without the
                                 * lowest, -128) */
    tn_round      round;
    tn_nan        nan;          /* KEEP is an error: there is no code for it; ZERO is the code of 0.0 */
    uint64_t      seed;
    unsigned      jobs;         /* threads; 0: one a core */
    tn_arithmetic arithmetic;
    unsigned      scale_bits;   /* RANGE, PERCENTILE: the mantissa of a scale has at most so many, none of
                                 * them below 2^-127, for which it is rounded up; 0: all that float32 has */
} tn_quantize_options;          /* where they may be NULL: TN_PER_TENSOR and zeros */

/* How many scales (and zeros) an array of this shape needs: 1 or the extent of
 * the axis.  TN_ERR_ARGUMENT: no such dimension. */
TN_API tn_status tn_scale_count(uint32_t rank, const int64_t *shape, int32_t axis, uint64_t *count,
                                tn_error *err);

/* Chooses scales and zeros for float data (any float type; dense, host order)
 * by the options' rule.  scale[] and zero[] have tn_scale_count() items; zero
 * may be NULL when symmetric.  `codes` is the integer type to come.  Infinities
 * and NaN are not looked at.
 *
 * Symmetric: scale = largest magnitude / highest code, zero = 0.  Asymmetric,
 * with 0 in the range of the values: scale = (highest - lowest value) /
 * (highest - lowest code), zero = lowest code - lowest value / scale, rounded to
 * the nearest (ties to even, whatever `round` says) and cut to the range.  All of
 * this is computed in binary32, each difference and each quotient rounded for
 * itself, so that a scale can be a unit in the last place beside the rounded
 * quotient of the exact difference; where highest - lowest value would be infinite,
 * of the halves of both.  A scale is at least 2^-126, the smallest that is not
 * subnormal; a range that holds zero alone, or nothing, gives scale 1 and, where it
 * is a code, zero 0.
 *
 * scale_bits rounds the quotient of a scale up from binary64 (symmetric: on to
 * the next until the codes of both ends, as the options round them, are not cut;
 * where nothing above is finite, down); then its zero is found.
 *
 * POWER: 2^-n with the largest n, -127 to 126, at which the lowest and the
 * highest value, rounded as the options say (stochastic: away from zero), are
 * codes of the range; where there is none, -127.  LEAST: of that n and those up
 * to as many above it as a code has bits, at most 126, the one with the least
 * sum of squares of (value of the code - x), the first of equals.  A difference
 * and its square are those of binary64; the square counts in units of 2^-24 of
 * the square of the first n's step, rounded down, at most 2^53, so that sums,
 * which stop at 2^64 - 1, are exact in any order.  Values that are all zero, or
 * none, get n = bits of a code - 1.
 *
 * PERCENTILE counts the finite values of a scale exactly: of n of them, k = n *
 * percentile / 100 (in double, rounded up, at least 1) fit.  Symmetric: the k
 * smallest magnitudes.  Asymmetric: all but half of the others (rounded down)
 * at each end.
 *
 * TN_ERR_ARGUMENT: options or types that make no sense.  TN_ERR_LIMIT: more
 * scales than can be counted for in 256 MiB (percentiles: some 129000, half as
 * many when asymmetric; LEAST: some million). */
TN_API tn_status tn_choose_scales(tn_dtype codes, const tn_array *src, const void *src_data,
                                  const tn_quantize_options *options, float *scale, int32_t *zero,
                                  tn_error *err);

/* Codes for every element, both dense, host order, not overlapping.  zero may
 * be NULL: all 0.  The options' rule is not looked at.
 *
 * TN_ERR_ARGUMENT: types, shapes or options that make no sense; a scale that is
 * not a finite number above 0; a zero other than 0 when symmetric.
 * TN_ERR_LOSS: a NaN that nan does not let pass; the text has its index, and
 * what was written to dst is unspecified. */
TN_API tn_status tn_quantize(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                             const float *scale, const int32_t *zero, const tn_quantize_options *options,
                             tn_error *err);

/* What codes stand for. */
typedef struct tn_scales {
    int32_t        axis;        /* dimension with a scale for each index, or TN_PER_TENSOR */
    const float   *scale;       /* finite, above 0 */
    const int32_t *zero;        /* NULL: all 0 */
} tn_scales;

/* The same values as codes of other scales: round((code - zero) * scale / new
 * scale) + new zero, cut to the options' range.  Both dense, host order, not
 * overlapping, of one shape.  The quotient is exact before it is rounded; with
 * arithmetic MLI it is that of MLI's integer rescale, whose ratio of scales has
 * 15 bits: round is HALF_UP or EVEN ("convergent") then, codes are int8, int16
 * or int32, scales have mantissas of at most 15 bits and zeros 16.  Axis, rule, nan and
 * symmetric of the options are not looked at.
 * TN_ERR_ARGUMENT: types, shapes, scales or options that make no sense. */
TN_API tn_status tn_requantize(const tn_array *dst, void *dst_data, const tn_scales *to, const tn_array *src,
                               const void *src_data, const tn_scales *from,
                               const tn_quantize_options *options, tn_error *err);

/* The values of codes, both dense, host order, not overlapping.  The product is
 * rounded to float32 and then cast to the type of dst, as tn_cast() does without
 * options.  zero may be NULL: all 0.  `options` gives axis, arithmetic and jobs.
 * TN_ERR_ARGUMENT: types, shapes or axis that make no sense; a scale that is not
 * finite. */
TN_API tn_status tn_dequantize(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                               const float *scale, const int32_t *zero, const tn_quantize_options *options,
                               tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
