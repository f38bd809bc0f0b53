/* tenon/cast.h - elements of one type into another.
 *
 * Every value is converted once: the exact value of the source element is
 * rounded to the destination type, never through a third type.  Results do not
 * depend on the CPU, the number of threads or the caller's floating-point
 * environment (rounding, flushing of subnormal numbers, traps), which stays as
 * it is.  Thread-safe. */
#ifndef TENON_CAST_H
#define TENON_CAST_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_round {
    TN_ROUND_EVEN       = 0,    /* nearest, ties to the even code (e8m0: up) */
    TN_ROUND_AWAY       = 1,    /* nearest, ties away from zero */
    TN_ROUND_ZERO       = 2,    /* nearest, ties toward zero */
    TN_ROUND_HALF_UP    = 3,    /* nearest, ties toward +infinity */
    TN_ROUND_TRUNC      = 4,    /* toward zero */
    TN_ROUND_UP         = 5,    /* toward +infinity */
    TN_ROUND_DOWN       = 6,    /* toward -infinity */
    TN_ROUND_STOCHASTIC = 7     /* up with the probability of the distance; by seed and element index */
} tn_round;

typedef enum tn_overflow {      /* a rounded value beyond the largest of the type */
    TN_OVERFLOW_DEFAULT  = 0,   /* infinity where the type has one, else the largest */
    TN_OVERFLOW_SATURATE = 1,   /* the largest finite value; infinities too */
    TN_OVERFLOW_INF      = 2,   /* infinity; an error for a type that has none */
    TN_OVERFLOW_NAN      = 3,   /* NaN where the type has no infinity (as ml_dtypes does), else infinity */
    TN_OVERFLOW_ERROR    = 4
} tn_overflow;

typedef enum tn_underflow {     /* a value other than 0 that becomes 0 */
    TN_UNDERFLOW_ALLOW = 0,
    TN_UNDERFLOW_ERROR = 1
} tn_underflow;

typedef enum tn_nan {
    TN_NAN_KEEP  = 0,           /* NaN stays NaN; an error for a type that has none */
    TN_NAN_ZERO  = 1,           /* NaN becomes zero */
    TN_NAN_ERROR = 2
} tn_nan;

typedef struct tn_cast_options {
    size_t      size;           /* sizeof(tn_cast_options), set by the caller */
    tn_round    round;
    tn_overflow overflow;
    tn_nan      nan;
    bool        drop_imaginary; /* complex to real takes the real part; else it is an error */
    uint64_t    seed;           /* of stochastic rounding */
    uint64_t    first;          /* index of the first element, for stochastic rounding in pieces */
    float       scale;          /* each value is multiplied by this first, in float32; 0: not */
    unsigned    jobs;           /* threads; 0: one per core */
    tn_underflow underflow;
} tn_cast_options;

/* Converts every element of `src` into `dst`: same shape, any strides (in
 * elements; those of types narrower than a byte must be dense).  `order` is
 * the byte order of the source; the destination is in host order.  The two must
 * not overlap, except that dst == src is allowed for dense arrays when the
 * destination's elements are not wider.
 *
 * TN_ERR_ARGUMENT: shapes differ, unknown type or option.  TN_ERR_LOSS: a value
 * that the options do not let pass; the text has its index and value, and what
 * was written to `dst` is unspecified. */
TN_API tn_status tn_cast(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                         tn_byte_order order, const tn_cast_options *options, tn_error *err);

/* Whether a cast exists: TN_OK when the pair has a meaning under these options; TN_ERR_LOSS or
 * TN_ERR_ARGUMENT with the reason otherwise.  Values may still be refused. */
TN_API tn_status tn_cast_check(tn_dtype to, tn_dtype from, const tn_cast_options *options, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
