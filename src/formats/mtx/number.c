/* formats/mtx/number.c - numbers as text, exactly.  A decimal is read as the
 * nearest element (ties to even).  An element is written as the shortest decimal
 * that is read back as it.
 *
 * Both need the product of an integer and a power of ten.  128 bits are nearly
 * always enough for it; the C library does the rest.  No floating-point
 * arithmetic is used, so locale and rounding mode do not matter. */
#include "formats/mtx/mtx.h"
#include "base/checked.h"
#include "base/text.h"
#include "tensor/decimal.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

enum {
    FIVES = 28,                 /* powers of five that fit 64 bits */
    FITS = 19,                  /* digits that fit 64 bits */
    TELLING = 800,              /* digits: no double, and no midpoint of two, has more */
    FARTHEST = 100000           /* exponent: beyond it TELLING digits overflow or underflow */
};

static const uint64_t fives[FIVES] = {
    UINT64_C(1), UINT64_C(5), UINT64_C(25), UINT64_C(125), UINT64_C(625), UINT64_C(3125), UINT64_C(15625),
    UINT64_C(78125), UINT64_C(390625), UINT64_C(1953125), UINT64_C(9765625), UINT64_C(48828125),
    UINT64_C(244140625), UINT64_C(1220703125), UINT64_C(6103515625), UINT64_C(30517578125),
    UINT64_C(152587890625), UINT64_C(762939453125), UINT64_C(3814697265625), UINT64_C(19073486328125),
    UINT64_C(95367431640625), UINT64_C(476837158203125), UINT64_C(2384185791015625),
    UINT64_C(11920928955078125), UINT64_C(59604644775390625), UINT64_C(298023223876953125),
    UINT64_C(1490116119384765625), UINT64_C(7450580596923828125),
};

/* digits * 10^exponent */
typedef struct decimal {
    uint64_t    digits;
    int64_t     exponent;
    unsigned    count;          /* of digits without leading zeros, at most FITS + 1... */
    bool        long_one;       /* ...more than FITS: only the text has them all */
    bool        negative;
    const char *first, *last;   /* the text of the digits, with the point */
} decimal;

static bool fits(const decimal *d)
{
    return !d->long_one && d->exponent > -FIVES && d->exponent < FIVES;
}

/* The first 63 bits or more of w * 10^k; the last bit is set if anything was cut
 * off.  w is not 0, k between -FIVES and FIVES. */
static tn_number times_power(uint64_t w, int k)
{
    uint64_t five = fives[k < 0 ? -k : k];
    int w_shift = __builtin_clzll(w), five_shift = __builtin_clzll(five);
    w <<= w_shift;
    five <<= five_shift;
    if (k >= 0) {
        wide product = (wide)w * five;
        return (tn_number){ .significand = (uint64_t)(product >> 64) | ((uint64_t)product != 0),
                            .exponent = k - w_shift - five_shift + 64 };
    }
    wide numerator = (wide)w << 63;
    /* both have their top bit set, so the quotient fits */
    uint64_t quotient = (uint64_t)(numerator / five);
    return (tn_number){ .significand = quotient | ((wide)quotient * five != numerator),
                        .exponent = k - w_shift + five_shift - 63 };
}

/* The same value with a significand of `bits` bits, rounded to nearest, ties to even; it is not 0. */
static tn_number rounded(tn_number x, int bits)
{
    int shift = __builtin_clzll(x.significand), cut = 64 - bits;
    uint64_t all = x.significand << shift, kept = all >> cut, rest = all << bits, half = UINT64_C(1) << 63;
    x.exponent += cut - shift;
    kept += rest > half || (rest == half && kept % 2);
    if (kept >> bits) {
        kept >>= 1;
        x.exponent++;
    }
    x.significand = kept;
    return x;
}

tn_mtx_real tn_mtx_real_of(tn_dtype dtype)
{
    const tn_dtype_info *type = tn_dtype_get(dtype),
                        *digits = tn_dtype_get(type->bits <= 8 ? TN_FLOAT32 : dtype);
    return (tn_mtx_real){
        .type = type, .digits = digits, .type_rules = tn_encode_rules_for(type, NULL),
        .digits_rules = tn_encode_rules_for(digits, NULL),
        .fewest = digits->mantissa_bits * 30103u / 100000,
        .most = (digits->mantissa_bits + 1) * 30103u / 100000 + 2,
    };
}

tn_mtx_numbers tn_mtx_numbers_of(tn_dtype dtype)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    tn_mtx_numbers n = { .count = type->kind == TN_KIND_COMPLEX ? 2 : 1, .type = tn_real_type(type) };
    if (n.type->kind == TN_KIND_FLOAT)
        n.real = tn_mtx_real_of(n.type->dtype);
    return n;
}

/* --- text to decimal --- */

static const char *scan_digits(const char *p, const char *end, uint64_t *digits)
{
    uint64_t n = *digits;
    for (; p < end && tn_is_digit(*p); p++)
        n = n * 10 + (uint64_t)(*p - '0');
    *digits = n;
    return p;
}

/* Behind the e: a sign and digits.  NULL: no digits. */
static const char *scan_exponent(const char *p, const char *end, int64_t *exponent)
{
    bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    const char *first = p;
    int64_t n = 0;
    for (; p < end && tn_is_digit(*p); p++)
        if (n < INT64_MAX / 16)         /* leaves room for what the point adds */
            n = n * 10 + (*p - '0');
    *exponent += negative ? -n : n;
    return p > first ? p : NULL;
}

/* Counts the digits without leading zeros. */
static void count_digits(decimal *d, size_t all)
{
    const char *p = d->first;
    for (; p < d->last && (*p == '0' || *p == '.'); p++)
        all -= *p == '0';
    d->count = all <= FITS ? (unsigned)all : FITS + 1;
    d->long_one = all > FITS;
}

/* Scans a decimal number as C, Fortran and Python write it, without its sign. */
static const char *scan(const char *p, const char *end, decimal *d)
{
    size_t all;
    d->digits = 0;
    d->exponent = 0;
    d->first = p;
    p = scan_digits(p, end, &d->digits);
    all = (size_t)(p - d->first);
    if (p < end && *p == '.') {
        const char *point = p++;
        p = scan_digits(p, end, &d->digits);
        d->exponent = point + 1 - p;
        all += (size_t)(p - point - 1);
    }
    d->last = p;
    if (!all)
        return NULL;
    count_digits(d, all);
    char mark = p < end ? (char)(*p | 0x20) : 0;
    return mark == 'e' || mark == 'd' ? scan_exponent(p + 1, end, &d->exponent) : p;
}

/* --- decimal to element --- */

/* The text of a decimal without a point, which the C library reads alike in every locale. */
static void spell(const decimal *d, char text[TELLING + 32])
{
    size_t n = 0;
    int64_t exponent = d->exponent;
    bool more = false;
    const char *p = d->first;
    while (p < d->last && (*p == '0' || *p == '.'))
        p++;
    for (; p < d->last; p++) {
        if (*p == '.')
            continue;
        if (n < TELLING)
            text[n++] = *p;
        else
            exponent++, more |= *p != '0';
    }
    if (more) {
        text[n++] = '1';
        exponent--;
    }
    if (exponent > FARTHEST || exponent < -FARTHEST)
        exponent = exponent > 0 ? FARTHEST : -FARTHEST;
    snprintf(text + n, 16, "e%d", (int)exponent);
}

static bool is_same(tn_number a, tn_number b)
{
    if (!a.significand || !b.significand)
        return a.significand == b.significand;
    int x = __builtin_clzll(a.significand), y = __builtin_clzll(b.significand);
    return a.significand << x == b.significand << y && a.exponent - x == b.exponent - y;
}

/* The number of digits without trailing zeros. */
static unsigned telling_digits(const decimal *d)
{
    unsigned n = d->count;
    for (uint64_t digits = d->digits; digits && digits % 10 == 0; digits /= 10)
        n--;
    return n;
}

/* Rounds to a type narrower than float64.  A decimal with more digits than the type
 * needs, or one that becomes 0, must be exact. */
static bool narrow(const tn_mtx_real *real, const decimal *d, uint64_t *code)
{
    unsigned flags = 0;
    tn_number x = { 0 };
    if (fits(d) && d->digits) {
        x = times_power(d->digits, (int)d->exponent);
    } else if (d->digits || d->long_one) {
        char text[TELLING + 32];
        spell(d, text);
        x = tn_decimal_number(text);
    }
    x.negative = d->negative;
    *code = tn_number_encode(real->digits, &real->digits_rules, x, 0, &flags);
    tn_number near = tn_number_decode(real->digits, *code);
    bool more = d->count > real->most && (d->long_one || telling_digits(d) > real->most);
    if (flags || ((more || !near.significand) && !is_same(near, x)))
        return false;
    if (real->type == real->digits)
        return true;
    *code = tn_number_encode(real->type, &real->type_rules, near, 0, &flags);
    return !flags && is_same(tn_number_decode(real->type, *code), near);
}

static bool to_double(const decimal *d, uint64_t *code)
{
    *code = (uint64_t)d->negative << 63;
    if (!d->digits && !d->long_one)
        return true;
    if (fits(d) && d->digits) {
        tn_number x = rounded(times_power(d->digits, (int)d->exponent), 53);
        /* the significand's top bit adds 1 to the exponent */
        *code |= ((uint64_t)(x.exponent + 52 + 1022) << 52) + x.significand;
        return true;
    }
    char text[TELLING + 32];
    uint64_t magnitude;
    spell(d, text);
    double x = tn_decimal_round(text, FE_TONEAREST);
    memcpy(&magnitude, &x, sizeof magnitude);
    *code |= magnitude;
    return !isinf(x);
}

/* --- inf and nan --- */

/* The end of a word in letters of any case, or NULL. */
static const char *accept(const char *p, const char *end, const char *word)
{
    for (; *word; word++, p++)
        if (p == end || (*p | 0x20) != *word)
            return NULL;
    return p;
}

/* The payload of a NaN as C prints it, in hexadecimal: "(0x4001)". */
static const char *read_payload(const char *p, const char *end, uint64_t *payload)
{
    uint64_t n = 0;
    const char *first = end - p > 3 && p[0] == '(' && p[1] == '0' && (p[2] | 0x20) == 'x' ? p + 3 : end;
    for (p = first; p < end && n < UINT64_C(1) << 52; p++) {
        int digit = tn_hex_digit(*p);
        if (digit < 0)
            break;
        n = n * 16 + (unsigned)digit;
    }
    *payload = n;
    return p > first && p < end && *p == ')' ? p + 1 : NULL;
}

static const char *read_nan(const tn_mtx_real *real, const char *p, const char *end, bool negative,
                            uint64_t *code, bool *held)
{
    const tn_dtype_info *type = real->type;
    const tn_number nan = { .class = TN_NUMBER_NAN, .negative = negative };
    unsigned flags = 0, m = type->mantissa_bits, unused = type->bits - 1u - type->exponent_bits - m;
    uint64_t payload;
    *held = tn_dtype_has_nan(type);
    *code = tn_number_encode(type, &real->type_rules, nan, 0, &flags);
    if (p == end || *p != '(')
        return p;
    p = read_payload(p, end, &payload);
    *held = type->specials == TN_SPECIALS_IEEE && p && payload && payload >> m == 0;
    if (*held)
        *code = (((UINT64_C(1) << type->exponent_bits) - 1) << m | payload) << unused |
                (uint64_t)negative << (type->bits - 1);
    return p;
}

static const char *read_word(const tn_mtx_real *real, const char *p, const char *end, bool negative,
                             uint64_t *code, bool *held)
{
    const char *next = accept(p, end, "inf");
    unsigned flags = 0;
    if (next) {
        const char *longer = accept(next, end, "inity");
        tn_number x = { .class = TN_NUMBER_INFINITE, .negative = negative };
        *code = tn_number_encode(real->type, &real->type_rules, x, 0, &flags);
        *held = !flags;
        return longer ? longer : next;
    }
    next = accept(p, end, "nan");
    return next ? read_nan(real, next, end, negative, code, held) : NULL;
}

const char *tn_mtx_read_real(const tn_mtx_real *real, const char *p, const char *end, uint64_t *code,
                             bool *held)
{
    decimal d = { .negative = p < end && *p == '-' };
    p += p < end && (*p == '-' || *p == '+');
    *held = true;
    if (p < end && !tn_is_digit(*p) && *p != '.')
        return read_word(real, p, end, d.negative, code, held);
    p = scan(p, end, &d);
    if (p)
        *held = real->type->mantissa_bits == 52 ? to_double(&d, code) : narrow(real, &d, code);
    return p;
}

const char *tn_mtx_read_integer(const tn_dtype_info *type, const char *p, const char *end, uint64_t *code,
                                bool *held)
{
    bool negative = p < end && *p == '-', overflow = false;
    p += p < end && (*p == '-' || *p == '+');
    const char *first = p;
    uint64_t n = 0;
    for (; p < end && tn_is_digit(*p); p++)
        overflow |= !tn_add_digit(&n, *p);
    /* the limit of int8, -128, has the code 0x80: its own magnitude */
    *held = !overflow && n <= tn_dtype_limit(type, negative);
    *code = negative ? (0 - n) & (UINT64_MAX >> (64 - type->bits)) : n;
    return p > first ? p : NULL;
}

/* --- element to decimal --- */

/* x rounded to an integer, ties to even: one of 1 to 62 bits. */
static uint64_t to_integer(tn_number x)
{
    int cut = -x.exponent;
    uint64_t kept = x.significand >> cut, rest = x.significand << (64 - cut), half = UINT64_C(1) << 63;
    return kept + (rest > half || (rest == half && kept % 2));
}

/* The `n` digits nearest to x, which is at least 10^magnitude and less than 20
 * times that; *scaled is x in units of the last one.  False where it takes more
 * than 128 bits. */
static bool round_to_digits(tn_number x, unsigned n, int magnitude, decimal *d, tn_number *scaled)
{
    for (int k = (int)n - 1 - magnitude; k > -FIVES && k < FIVES; k--) {
        *scaled = times_power(x.significand, k);
        scaled->exponent += x.exponent;
        d->digits = to_integer(*scaled);
        d->exponent = -k;
        if (d->digits < fives[n] << n)          /* 10^n */
            return true;
    }
    return false;
}

/* Whether the digits are read as x: they are if their error is less than half the
 * step to its neighbours.  Reading takes a division, so it is done only if the
 * last bit decides, or the two steps differ. */
static bool reads_back(const decimal *d, tn_number scaled, tn_number x, int bits)
{
    wide read = (wide)d->digits << -scaled.exponent, exact = scaled.significand,
         steps = (wide)x.significand * 2;
    wide error = read > exact ? read - exact : exact - read;
    if ((error + 1) * steps < exact - 1 && !tn_is_power_of_two(x.significand))
        return true;
    if (error > 1 && (error - 1) * steps > exact + 1)
        return false;
    tn_number again = rounded(times_power(d->digits, (int)d->exponent), bits);
    return again.significand == x.significand && again.exponent == x.exponent;
}

/* The fewest digits that are read as x, a normal number of real->digits.  If fewer
 * than `fewest` are enough, they are found first, with trailing zeros. */
static bool shortest(const tn_mtx_real *real, tn_number x, decimal *d)
{
    int bits = real->digits->mantissa_bits + 1, top = 63 - __builtin_clzll(x.significand) + x.exponent;
    int magnitude = top * 30103 / 100000 - (top < 0);       /* of 2^top: log10(2) rounded down */
    tn_number scaled;
    if (top < 1 - real->digits->bias)
        return false;
    x.exponent = top - (bits - 1);
    x.significand <<= __builtin_clzll(x.significand) - (64 - bits);
    for (unsigned n = real->fewest; n <= real->most; n++) {
        if (!round_to_digits(x, n, magnitude, d, &scaled))
            return false;
        bool found = reads_back(d, scaled, x, bits);
        if (!found && tn_is_power_of_two(x.significand)) {     /* the step above it is twice that below */
            d->digits++;
            found = reads_back(d, scaled, x, bits);
        }
        if (found)
            return true;
    }
    return false;
}

/* With the C library, whose text our own scanner reads. */
static void shortest_of_few(const tn_mtx_real *real, uint64_t code, decimal *d)
{
    uint8_t element[8] = { 0 };
    char text[48];
    int before = fegetround();
    tn_code_put(element, 0, real->type->bits, code);
    fesetround(FE_TONEAREST);
    tn_value value = tn_value_get(real->type->dtype, element, 0);
    int n = tn_value_format(text, sizeof text, real->type->dtype, value);
    fesetround(before);
    scan(text + (text[0] == '-'), text + n, d);
}

/* --- decimal to text --- */

char *tn_mtx_put_u64(uint64_t value, char *p)
{
    char digits[20];
    unsigned n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n)
        *p++ = digits[--n];
    return p;
}

char *tn_mtx_put_integer(const tn_dtype_info *type, uint64_t code, char *p)
{
    bool sign = type->kind == TN_KIND_INT || type->kind == TN_KIND_FIXED;
    if (type->kind == TN_KIND_BOOL)
        code = code != 0;
    if (sign && code >> (type->bits - 1)) {
        *p++ = '-';
        code = (~code & (UINT64_MAX >> (64 - type->bits))) + 1;
    }
    return tn_mtx_put_u64(code, p);
}

static char *put_zeros(unsigned n, char *p)
{
    memset(p, '0', n);
    return p + n;
}

/* 0.00012, 1.5, 1200, 1.2e-5, 1e16 */
static char *lay_out(const decimal *d, char *p)
{
    char digits[20];
    int n = (int)(tn_mtx_put_u64(d->digits, digits) - digits), point = n + (int)d->exponent;
    if (point > -4 && point <= 0) {
        *p++ = '0';
        *p++ = '.';
        p = put_zeros((unsigned)-point, p);
        memcpy(p, digits, (size_t)n);
        return p + n;
    }
    bool positional = point > 0 && point <= 16;
    int before = 1;             /* digits before the point */
    if (positional)
        before = point < n ? point : n;
    memcpy(p, digits, (size_t)before);
    p += before;
    if (before < n) {
        *p++ = '.';
        memcpy(p, digits + before, (size_t)(n - before));
        p += n - before;
    }
    if (positional)
        return put_zeros(point > n ? (unsigned)(point - n) : 0, p);
    *p++ = 'e';
    if (point < 1)
        *p++ = '-';
    return tn_mtx_put_u64((uint64_t)(point < 1 ? 1 - point : point - 1), p);
}

static char *put_nan(const tn_dtype_info *type, tn_number x, char *p)
{
    memcpy(p, "nan", 3);
    p += 3;
    unsigned m = type->mantissa_bits;
    if (type->specials == TN_SPECIALS_IEEE && x.significand != UINT64_C(1) << 63)
        p += snprintf(p, 24, "(0x%llx)", (unsigned long long)(x.significand >> (64 - m)));
    return p;
}

char *tn_mtx_put_real(const tn_mtx_real *real, uint64_t code, char *p)
{
    tn_number x = tn_number_decode(real->type, code);
    decimal d = { 0 };
    if (x.negative && (x.class != TN_NUMBER_NAN || real->type->specials != TN_SPECIALS_FNUZ))
        *p++ = '-';
    if (x.class == TN_NUMBER_NAN)
        return put_nan(real->type, x, p);
    if (x.class == TN_NUMBER_INFINITE)
        return memcpy(p, "inf", 3), p + 3;
    if (!x.significand)
        return *p = '0', p + 1;
    if (!shortest(real, x, &d))
        shortest_of_few(real, code, &d);
    for (; d.digits % 10 == 0; d.exponent++)
        d.digits /= 10;
    return lay_out(&d, p);
}
