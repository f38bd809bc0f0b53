/* tensor/decimal.h - conversion between decimal digits and values, with the fewest digits.
 *
 * The C library gets and gives "123e-4", never a decimal point, so nothing depends on the locale. */
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

/* Rounds "123e-4" to a double in a direction of <fenv.h>. */
double tn_decimal_round(const char *text, int direction);

/* The same text for types narrower than float64: its first 53 bits, and a sticky bit below them.  Rounding
 * that to at most 24 bits rounds the decimal itself, once.  Values beyond the doubles become the largest
 * one. */
tn_number tn_decimal_number(const char *text);

/* The fewest digits that round to x (nearest, ties to even) in this type; of several those nearest to x,
 * which is finite and above 0. */
tn_decimal tn_decimal_shortest(const tn_dtype_info *type, double x);

#endif
