/* tenon/scaled.h - tensors as small codes with scales: quantize, dequantize,
 * and both at once ("virtual": what the values would be).
 *
 * Arithmetic is binary32, one rounding an operation.  Results do not depend on
 * the CPU or the number of threads.  Thread-safe. */
#ifndef TENON_SCALED_H
#define TENON_SCALED_H

#include <tenon/datatype.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_scale_mode {    /* of exponent scales, from the largest magnitude a of a tile: 2^e with e
                                 * ... */
    TN_SCALE_FLOOR     = 0,     /* floor(log2 a) - emax (OCP; "max") */
    TN_SCALE_MIDMAX    = 1,     /* one more where a would round beyond the largest number ("auto") */
    TN_SCALE_TOPBINADE = 2,     /* one more where a would lie beyond the largest number */
    TN_SCALE_OPTION3   = 3,     /* of a rounded to the mantissa bits first */
    TN_SCALE_CEIL      = 4,     /* the smallest at which nothing saturates */
    TN_SCALE_MSE       = 5      /* whichever scale (and zero point) near these has the least squared error;
                                 * float scales too */
} tn_scale_mode;

typedef struct tn_scaled_options {
    size_t        size;
    tn_round      round;        /* of codes, float scales and zero points: EVEN, AWAY, ZERO (nearest, ties to
                                 * it) or STOCHASTIC */
    tn_scale_mode mode;
    tn_nan        nan;          /* KEEP: an error where the number has no NaN; ZERO; ERROR */
    uint64_t      seed;         /* of stochastic rounding: counter-based, by element index */
    bool          unpacked;     /* one code a byte */
    bool          ggml;         /* MXFP4 as ggml has it: its scale rule, its ties, never -0 */
    unsigned      jobs;         /* threads; 0: one a core */
    tn_rotation   rotation;     /* before quantizing; dequantizing and virtual casts undo it.  The tiled
                                 * dimension is a multiple of its size */
    tn_dtype      store;        /* TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2: with `unpacked`, data has the numbers
                                 * themselves, of this type, instead of codes.  For floats of at most 8 bits
                                 * if the type has all of their values */
} tn_scaled_options;

/* What quantizing did, for reports. */
typedef struct tn_quantize_stats {
    uint64_t values;
    uint64_t saturated;         /* finite values beyond the largest number of their scale */
    uint64_t flushed;           /* values other than 0 that became 0 */
    double   signal, noise;     /* sums of squares of values and of errors */
    double   max_error;
} tn_quantize_stats;

/* Values in, the values that codes would stand for out, of the same float type;
 * dense, host order.  dst may be src, or NULL where only the report is wanted;
 * `report` may be NULL.
 * TN_ERR_ARGUMENT: a type, rank or option that makes no sense.  TN_ERR_LOSS: a
 * NaN that has no code, with its index. */
TN_API tn_status tn_fake_quantize(const tn_datatype *datatype, const tn_array *array, const void *src,
                                     void *dst, const tn_scaled_options *options, tn_quantize_stats *report,
                                     tn_error *err);

/* Codes and scales of a dense float array: parts[k] receives part k of
 * tn_scaled_shapes_for(), compressed (with `unpacked`: data as plain, of the type
 * `store` if there is one).  The
 * values they stand for are those of tn_fake_quantize(), bit for bit. */
TN_API tn_status tn_scaled_quantize(const tn_datatype *datatype, const tn_array *array, const void *src,
                                    void *const *parts, const tn_scaled_options *options,
                                    tn_quantize_stats *report, tn_error *err);

/* The values, as any float type (rounded to it from float32). */
TN_API tn_status tn_scaled_dequantize(const tn_datatype *datatype, const tn_array *array,
                                      const void *const *parts, void *dst, const tn_scaled_options *options,
                                      tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
