/* tensor/number.h - elements as exact numbers and back: the definition of every cast.
 *
 * One function decodes any code by exponent bits, mantissa bits, bias and special values; one encodes with
 * any rounding.  Kernels are faster but give the same bits. */
#ifndef TN_TENSOR_NUMBER_H
#define TN_TENSOR_NUMBER_H

#include "tensor/code.h"

#include <tenon/cast.h>

typedef enum tn_number_class { TN_NUMBER_FINITE, TN_NUMBER_INFINITE, TN_NUMBER_NAN } tn_number_class;

/* FINITE: (-1)^negative * significand * 2^exponent, exactly; zero has significand 0 and keeps its sign.  NAN:
 * significand is the payload, with the mantissa's top bit at bit 63. */
typedef struct tn_number {
    tn_number_class class;
    bool     negative;
    uint64_t significand;
    int      exponent;
} tn_number;

/* `code` has the element's bits in its low bits.  Not for complex types: an element is two of the half type.
 * tf32: the low 13 bits are ignored.  bool: any non-zero code is 1.  MLI fixed point: the stored integer. */
tn_number tn_number_decode(const tn_dtype_info *type, uint64_t code);

/* The type of one part of a complex type; any other type itself. */
static inline const tn_dtype_info *tn_real_type(const tn_dtype_info *type)
{
    if (type->kind != TN_KIND_COMPLEX)
        return type;
    return tn_dtype_get(type->bits == 64 ? TN_FLOAT32 : TN_FLOAT64);
}

static inline tn_number tn_number_of_float(float x)
{
    return tn_number_decode(tn_dtype_get(TN_FLOAT32), tn_float_bits(x));
}

static inline tn_number tn_number_of_double(double x)
{
    uint64_t code;
    memcpy(&code, &x, sizeof code);
    return tn_number_decode(tn_dtype_get(TN_FLOAT64), code);
}

/* What happened besides rounding. */
enum {
    TN_ENCODED_OVERFLOW = 1,    /* beyond the largest value after rounding, or an infinity the type lacks */
    TN_ENCODED_NAN      = 2     /* it was NaN */
};

/* How to encode: the code of each special case, with its sign.  See tn_encode_rules_for(). */
typedef struct tn_encode_rules {
    tn_round round;
    uint64_t seed;              /* of stochastic rounding */
    /* e8m0: zero and all negatives are its negative overflow */
    uint64_t positive_overflow, negative_overflow;
    uint64_t positive_infinity, negative_infinity;
    uint64_t nan;               /* replaces every NaN when keep_payload is false */
    bool     keep_payload;      /* NaN becomes quiet and keeps its sign and (except fn types) its payload */
} tn_encode_rules;

bool tn_dtype_has_infinity(const tn_dtype_info *type);
bool tn_dtype_has_nan(const tn_dtype_info *type);

/* The code of the largest finite value, or of the lowest (e8m0: the smallest). */
uint64_t tn_dtype_limit(const tn_dtype_info *type, bool lowest);

/* The rules for casts to this type; `options` may be NULL. */
tn_encode_rules tn_encode_rules_for(const tn_dtype_info *type, const tn_cast_options *options);

/* The code of `number`, rounded once; adds TN_ENCODED_* bits to *flags.  Stochastic rounding uses the index
 * of the element: it rounds away from zero if the 64-bit hash of (seed, index) is below the discarded
 * fraction in units of 2^-64 (finer bits set the last one). */
uint64_t tn_number_encode(const tn_dtype_info *type, const tn_encode_rules *rules, tn_number number,
                          uint64_t index, unsigned *flags);

/* Replaces `n` codes of type `from`, the first of which is element `index`, by codes of type `to`; returns
 * the TN_ENCODED_* bits. */
unsigned tn_codes_cast(const tn_dtype_info *to, const tn_encode_rules *rules, const tn_dtype_info *from,
                       uint64_t *codes, size_t n, uint64_t index);

#endif
