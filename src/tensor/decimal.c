/* tensor/decimal.c - decimal digits. */
#include "tensor/decimal.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void spell(char text[48], tn_decimal d)
{
    snprintf(text, 48, "%" PRIu64 "e%d", d.digits, d.exponent);
}

double tn_decimal_read(tn_decimal d)
{
    static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    char text[48];
    /* two exact doubles: one rounding */
    if (d.digits <= UINT64_C(1) << 53 && d.exponent >= -22 && d.exponent <= 22)
        return d.exponent < 0 ? (double)d.digits / tens[-d.exponent] : (double)d.digits * tens[d.exponent];
    spell(text, d);
    return strtod(text, NULL);
}

double tn_decimal_round(const char *text, int direction)
{
    int before = fegetround();
    fesetround(direction);
    double x = strtod(text, NULL);
    fesetround(before);
    return x;
}

tn_number tn_decimal_number(const char *text)
{
    double below = tn_decimal_round(text, FE_DOWNWARD), above = tn_decimal_round(text, FE_UPWARD);
    tn_number x = tn_number_of_double(below);
    x.significand = x.significand << 1 | (below != above);
    x.exponent--;
    return x;
}

/* ---- the fewest digits ---- */

/* Gives `count` digits of x, correctly rounded. */
static tn_decimal to_decimal(double x, int count)
{
    char text[48];
    snprintf(text, sizeof text, "%.*e", count - 1, x);      /* "1.2345e-67", or with the locale's point */
    tn_decimal d = { 0, 0 };
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            d.digits = d.digits * 10 + (uint64_t)(*p - '0');
    if (*p == 'e')
        d.exponent = (int)strtol(p + 1, NULL, 10) - (count - 1);
    return d;
}

/* The first `count` of the `most` digits of x, correctly rounded.  If the rest looks like a half, x itself
 * must be rounded. */
static tn_decimal first_digits(tn_decimal all, int most, int count, double x)
{
    uint64_t unit = 1;
    for (int i = count; i < most; i++)
        unit *= 10;
    uint64_t rest = all.digits % unit;
    if (unit > 1 && rest == unit / 2)
        return to_decimal(x, count);
    return (tn_decimal){ all.digits / unit + (rest > unit / 2), all.exponent + most - count };
}

/* Whether `read` rounds to x in a type narrower than float32: then x, its neighbours and the midpoints are
 * exact doubles.  (For no code of these types does strtod() round a nearby text to a midpoint; float32 has
 * strtof.) */
static bool rounds_to(const tn_dtype_info *type, double read, double x)
{
    int exponent;
    bool power_of_two = frexp(x, &exponent) == 0.5;
    /* Subnormals share the lowest exponent; e8m0 has none. */
    int lowest = type->specials == TN_SPECIALS_E8M0 ? -type->bias - 1 : 1 - type->bias;
    bool normal = exponent - 1 > lowest;
    double above = ldexp(1.0, (normal ? exponent - 1 : lowest) - type->mantissa_bits);
    double below = power_of_two && normal ? above / 2 : above;
    double low = x - below / 2, high = x + above / 2;
    bool even = fmod(x / above, 2) == 0;
    return (low < read && read < high) || (even && (read == low || read == high));
}

static bool reads_back(const tn_dtype_info *type, tn_decimal d, double x)
{
    char text[48];
    switch (type->mantissa_bits) {
    case 52:
        return tn_decimal_read(d) == x;
    case 23:
        spell(text, d);
        return strtof(text, NULL) == (float)x;
    default:
        return rounds_to(type, tn_decimal_read(d), x);
    }
}

/* Above a power of two the spacing of values is twice that below it.  So if the nearest decimal is just too
 * low, the next one may do.  (Also if x is not a value of a narrow type, but near one.) */
static bool try_digits(const tn_dtype_info *type, double x, tn_decimal *d)
{
    int exponent;
    if (reads_back(type, *d, x))
        return true;
    if (type->mantissa_bits == 52 && frexp(x, &exponent) != 0.5)
        return false;
    d->digits++;
    return reads_back(type, *d, x);
}

/* With so many digits or fewer no two decimals round to the same value.  Subnormals have a wider spacing. */
static int surely_different(const tn_dtype_info *type, double x)
{
    int n = type->mantissa_bits * 30103 / 100000;
    return n > 1 && x >= ldexp(1.0, 1 - type->bias) ? n : 1;
}

tn_decimal tn_decimal_shortest(const tn_dtype_info *type, double x)
{
    /* `most` are always enough */
    int most = type->mantissa_bits > 23 ? 17 : 9, count = surely_different(type, x);
    tn_decimal all = to_decimal(x, most), d = all;
    for (bool found = false; !found && count <= most; count++) {
        d = first_digits(all, most, count, x);
        found = count < most ? try_digits(type, x, &d) : true;
    }
    for (; d.digits % 10 == 0; d.exponent++)
        d.digits /= 10;
    return d;
}
