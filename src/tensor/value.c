/* tensor/value.c - one element: from bits to a value, from a value to text. */
#include "tensor/code.h"
#include "tensor/decimal.h"

#include <tenon/tensor.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- bits to value ------------------------------------------------------- */

static uint64_t low_bits(uint64_t code, unsigned bits)
{
    return code & ((UINT64_C(1) << bits) - 1);
}

/* For -1022 <= e <= 1023.  ldexp() is slower by half. */
static double two_to_the(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double decode_magnitude(const tn_dtype_info *type, uint64_t exponent, uint64_t mantissa)
{
    unsigned m = type->mantissa_bits;
    bool top = exponent == low_bits(UINT64_MAX, type->exponent_bits);
    if (top && type->specials == TN_SPECIALS_IEEE)
        return mantissa ? NAN : INFINITY;
    if (top && type->specials == TN_SPECIALS_FN && mantissa == low_bits(UINT64_MAX, m))
        return NAN;
    if (exponent == 0)
        return (double)mantissa * two_to_the(1 - type->bias - (int)m);
    return (double)(mantissa | UINT64_C(1) << m) * two_to_the((int)exponent - type->bias - (int)m);
}

/* `bits` are those of this number: half the element's for a complex type. */
static double decode_float(const tn_dtype_info *type, uint64_t code, unsigned bits)
{
    unsigned e = type->exponent_bits, m = type->mantissa_bits;
    if (type->specials == TN_SPECIALS_E8M0)
        return code == 255 ? (double)NAN : two_to_the((int)code - type->bias);
    if (m == 52) {                      /* a double already */
        double x;
        memcpy(&x, &code, sizeof x);
        return x;
    }

    bool negative = code >> (bits - 1) != 0;
    uint64_t fields = low_bits(code, bits - 1) >> (bits - 1 - e - m);   /* drops what tf32 ignores */
    if (type->specials == TN_SPECIALS_FNUZ && negative && fields == 0)
        return NAN;
    double magnitude = decode_magnitude(type, fields >> m, low_bits(fields, m));
    static const double signs[] = { 1.0, -1.0 };
    return magnitude * signs[negative];         /* no branch: half of all weights are negative */
}

static int64_t sign_extend(uint64_t code, unsigned bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return (int64_t)((code ^ sign) - sign);
}

tn_value tn_value_get(tn_dtype dtype, const void *data, uint64_t index)
{
    tn_value value = { .kind = TN_KIND_NONE };
    const tn_dtype_info *type = tn_dtype_get(dtype);
    if (!type)
        return value;
    value.kind = type->kind;
    if (type->kind == TN_KIND_COMPLEX) {
        unsigned half = type->bits / 2u;
        value.re = decode_float(type, tn_code_get(data, 2 * index, half), half);
        value.im = decode_float(type, tn_code_get(data, 2 * index + 1, half), half);
        return value;
    }
    uint64_t code = tn_code_get(data, index, type->bits);
    switch (type->kind) {
    case TN_KIND_FLOAT: value.re = decode_float(type, code, type->bits); break;
    case TN_KIND_INT:
    case TN_KIND_FIXED: value.i = sign_extend(code, type->bits); break;
    case TN_KIND_BOOL:  value.u = code != 0; break;
    default:            value.u = code; break;
    }
    return value;
}

/* --- value to text -------------------------------------------------------
 *
 * A number is written with the fewest decimal digits that read back as it. */

/* Formats digits as Python does: "0.0001", "1200.0", "1.5e-05", "1e+16".  No zeros are invented: if the
 * digits end before the units and are only near the number (448 in float8_e4m3fn is 45e1), the text has an
 * exponent: "4.5e+02". */
static void lay_out(char *text, size_t cap, tn_decimal d, double x)
{
    static const char zeros[] = "0000000000000000";
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, d.digits);
    int point = n + d.exponent;         /* digits before the decimal point; may be <= 0 or > n */
    bool positional = point > -4 && point <= 16;
    if (positional && d.exponent > 0) {
        uint64_t whole = d.digits;
        for (int i = 0; i < d.exponent; i++)
            whole *= 10;
        positional = (double)whole == x;
    }
    if (!positional)
        snprintf(text, cap, "%c%s%se%+03d", digits[0], n > 1 ? "." : "", digits + 1, point - 1);
    else if (point <= 0)
        snprintf(text, cap, "0.%.*s%s", -point, zeros, digits);
    else if (point >= n)
        snprintf(text, cap, "%s%.*s.0", digits, d.exponent, zeros);
    else
        snprintf(text, cap, "%.*s.%s", point, digits, digits + point);
}

static void format_float(char *text, size_t cap, const tn_dtype_info *type, double x)
{
    if (isnan(x)) {
        snprintf(text, cap, "nan");
        return;
    }
    if (signbit(x)) {
        *text++ = '-';
        cap--;
        x = -x;
    }
    if (isinf(x))
        snprintf(text, cap, "inf");
    else if (x == 0)
        snprintf(text, cap, "0.0");
    else
        lay_out(text, cap, tn_decimal_shortest(type, x), x);
}

int tn_value_format(char *dst, size_t cap, tn_dtype dtype, tn_value value)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    if (!type || type->exponent_bits == 0)      /* a float value of another type: all digits */
        type = tn_dtype_get(TN_FLOAT64);
    else if (type->bits <= 8)                   /* few values, all short: 448.0 says more than 4.5e+02 */
        type = tn_dtype_get(TN_FLOAT32);
    char re[48], im[48];
    switch (value.kind) {
    case TN_KIND_FLOAT:
        format_float(re, sizeof re, type, value.re);
        return snprintf(dst, cap, "%s", re);
    case TN_KIND_COMPLEX:
        format_float(re, sizeof re, type, value.re);
        format_float(im, sizeof im, type, value.im);
        return snprintf(dst, cap, "%s%s%sj", re, im[0] == '-' ? "" : "+", im);
    case TN_KIND_INT:
    case TN_KIND_FIXED:
        return snprintf(dst, cap, "%" PRId64, value.i);
    case TN_KIND_UINT:
        return snprintf(dst, cap, "%" PRIu64, value.u);
    case TN_KIND_BOOL:
        return snprintf(dst, cap, "%s", value.u ? "true" : "false");
    default:
        return snprintf(dst, cap, "?");
    }
}
