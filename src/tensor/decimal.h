/* tensor/decimal.h - decimal digits: the double that they stand for, and the
 * fewest that stand for a value.
 *
 * Digits travel as integers and "123e-4", never with a decimal point, between
 * here and the C library: so nothing depends on the locale. */
#ifndef TN_TENSOR_DECIMAL_H
#define TN_TENSOR_DECIMAL_H

#include "tensor/number.h"

#include <stdint.h>

typedef struct tn_decimal {
    uint64_t digits;            /* value = digits * 10^exponent */
    int      exponent;
} tn_decimal;

/* The double nearest to it, ties to even. */
double tn_decimal_read(tn_decimal decimal);

/* The double that "123e-4" is rounded to in a direction of <fenv.h>, whatever the caller's is. */
double tn_decimal_round(const char *text, int direction);

/* The same text for types narrower than float64: its first 53 bits, and one
 * below them that says whether anything follows.  Rounding that to at most 24
 * bits rounds the decimal itself, once.  Beyond every double: as the largest. */
tn_number tn_decimal_number(const char *text);

/* The fewest digits that, rounded to nearest with ties to even, give the same
 * value of the type; of two of that length those nearer to the value, which is
 * finite and above 0. */
tn_decimal tn_decimal_shortest(const tn_dtype_info *type, double x);

#endif
