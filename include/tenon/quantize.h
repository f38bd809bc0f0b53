/* tenon/quantize.h - tensors as small codes with scales: quantize, dequantize,
 * and both at once ("fake": what the values would be).
 *
 * Arithmetic is binary32, one rounding an operation, unless the datatype says
 * otherwise.  Results do not depend on the CPU or the number of threads.
 * Thread-safe.  Values enter as float32: float64 values are rounded to it first,
 * others are exact in it. */
#ifndef TENON_QUANTIZE_H
#define TENON_QUANTIZE_H

#include <tenon/datatype.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_scale_rule {    /* where scales come from: the largest magnitude a of the values that share
                                 * one (with zero points: the lowest and the highest) */
    TN_SCALE_MAX       = 0,     /* a becomes the largest number.  Exponents: 2^e with e = floor(log2 a) - emax
                                 * (OCP); powers of two of an affine datatype: the smallest at which no
                                 * finite value is cut */
    TN_SCALE_MIDMAX    = 1,     /* exponents: one more where a would round beyond the largest number */
    TN_SCALE_TOPBINADE = 2,     /* one more where a would lie beyond the largest number */
    TN_SCALE_OPTION3   = 3,     /* of a rounded to the mantissa bits first */
    TN_SCALE_CEIL      = 4,     /* the smallest at which nothing saturates */
    TN_SCALE_MSE       = 5,     /* whichever scale (and zero point) near these has the least squared error */
    TN_SCALE_GIVEN     = 6      /* by the caller, in the parts; of affine datatypes */
} tn_scale_rule;

typedef struct tn_quantize_options {
    size_t        size;         /* sizeof(tn_quantize_options), set by the caller */
    tn_round      round;        /* of codes, float scales and zero points: EVEN, AWAY, ZERO (nearest, ties to
                                 * it) or STOCHASTIC.  Affine: of codes alone, any of them */
    tn_scale_rule rule;
    tn_nan        nan;          /* KEEP: an error where the number has no NaN; ZERO; ERROR */
    uint64_t      seed;         /* of stochastic rounding: counter-based, by element index */
    bool          unpacked;     /* one code a byte */
    bool          ggml;         /* MXFP4 as ggml has it: its scale rule, its ties, never -0 */
    unsigned      jobs;         /* threads; 0: one per core */
    tn_rotation   rotation;     /* before quantizing; dequantizing and fake quantizing undo it.  The tiled
                                 * dimension (affine: the last) is a multiple of its size */
    tn_dtype      store;        /* TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2: with `unpacked`, data has the numbers
                                 * themselves, of this type, instead of codes.  For floats of at most 8 bits
                                 * if the type has all of their values */
    double        percentile;   /* scales fit that percentage of the values nearest to zero (with zero points:
                                 * to the middle); 0 or 100: all of them */
    const float  *importance;   /* of block types ("ggml:q4_K"): how much each value of a row counts, finite
                                 * and not negative; or NULL */
    uint64_t      nimportance;  /* the length of a row, or so many for each matrix of the tensor */
    bool          no_importance;        /* allows iq2_s, iq3_xxs and iq1_m, which need it to be good, without.
                                         * iq2_xxs, iq2_xs and iq1_s are always refused without */
} tn_quantize_options;

/* What quantizing did, for reports. */
typedef struct tn_quantize_stats {
    uint64_t values;
    uint64_t saturated;         /* finite values beyond the largest number of their scale */
    uint64_t flushed;           /* values other than 0 that became 0 */
    double   signal, noise;     /* sums of squares of values and of errors */
    double   max_error;
} tn_quantize_stats;

/* Replaces values by those that codes would stand for, of the same float type;
 * dense, host order.  dst may be src, or NULL where only the report is wanted;
 * `report` may be NULL.
 * TN_ERR_ARGUMENT: a type, rank or option that makes no sense.  TN_ERR_LOSS: a
 * NaN that has no code, with its index. */
TN_API tn_status tn_fake_quantize(const tn_datatype *datatype, const tn_array *array, const void *src,
                                  void *dst, const tn_quantize_options *options, tn_quantize_stats *report,
                                  tn_error *err);

/* Makes codes and scales of a dense float array: parts[k] receives part k of
 * tn_scaled_shapes_for(), compressed (with `unpacked`: data as plain, of the type
 * `store` if there is one).  The values they stand for are those of
 * tn_fake_quantize(), bit for bit.
 *
 * Affine datatypes: infinities become the lowest and the highest code, and
 * scales are found so, from the finite values:
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
 * Powers of two: 2^-n with the largest n, -127 to 126, at which the lowest and the
 * highest value, rounded as the options say (stochastic: away from zero), are
 * codes of the range; where there is none, -127.  Values that are all zero, or
 * none, get n = bits of a code - 1.
 *
 * TN_SCALE_MSE: of some scales the one with the least sum of squares of (value of
 * the code - x), the first of equals.  Powers of two: that n and those up to as
 * many above it as a code has bits, at most 126.  Others: the scale of the range,
 * then 5 to 25 sixteenths of it; with zero points, those of the range with each
 * end times 16, 15, 14, 12 and 9 sixteenths, each with each.  A difference
 * and its square are those of binary64; the square counts in units of 2^-24 of
 * the square of the first scale, rounded down, at most 2^53, so that sums,
 * which stop at 2^64 - 1, are exact in any order.
 *
 * Percentiles count the finite values of a scale exactly: of n of them, k = n *
 * percentile / 100 (in double, rounded up, at least 1) fit.  Symmetric: the k
 * smallest magnitudes.  Asymmetric: all but half of the others (rounded down)
 * at each end.
 *
 * TN_ERR_LIMIT: more scales than can be counted for in 256 MiB (percentiles: some
 * 129000, half as many when asymmetric; MSE: some million). */
TN_API tn_status tn_quantize(const tn_datatype *datatype, const tn_array *array, const void *src,
                             void *const *parts, const tn_quantize_options *options,
                             tn_quantize_stats *report, tn_error *err);

/* Makes values of codes and scales, as any float type (rounded to it from float32). */
TN_API tn_status tn_dequantize(const tn_datatype *datatype, const tn_array *array, const void *const *parts,
                               void *dst, const tn_quantize_options *options, tn_error *err);

/* What codes of an affine datatype stand for. */
typedef struct tn_scales {
    int32_t        axis;        /* dimension with a scale for each index, or TN_PER_TENSOR */
    const float   *scale;       /* finite, above 0 */
    const int32_t *zero;        /* NULL: all 0 */
} tn_scales;

typedef struct tn_requantize_options {
    size_t        size;         /* sizeof(tn_requantize_options), set by the caller */
    tn_round      round;
    uint64_t      seed;
    tn_arithmetic arithmetic;
    int64_t       range[2];     /* lowest and highest new code; both 0: all of the type */
    unsigned      jobs;         /* threads; 0: one per core */
} tn_requantize_options;

/* The same values as codes of other scales: round((code - zero) * scale / new
 * scale) + new zero, cut to the options' range.  Both dense, host order, not
 * overlapping, of one shape.  The quotient is exact before it is rounded; with
 * arithmetic MLI it is that of MLI's integer rescale, whose ratio of scales has
 * 15 bits: round is HALF_UP or EVEN ("convergent") then, codes are int8, int16
 * or int32, scales have mantissas of at most 15 bits and zeros 16.
 * TN_ERR_ARGUMENT: types, shapes, scales or options that make no sense. */
TN_API tn_status tn_requantize(const tn_array *dst, void *dst_data, const tn_scales *to, const tn_array *src,
                               const void *src_data, const tn_scales *from,
                               const tn_requantize_options *options, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
