/* quant/grammar/datatype_number.c - parse number specs and derive their fields. */
#include "quant/grammar/datatype_read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { MAX_BITS = 32, MAX_EXPONENT_BITS = 8 };

/* fnuz before fn: the first match wins */
static const struct { const char *name; unsigned infnan; } endings[] = {
    { "ieee", TN_INFNAN_IEEE }, { "fnuz", TN_INFNAN_FNUZ }, { "fn", TN_INFNAN_FN },
    { "inuz", TN_INFNAN_INUZ },
};

/* ---- reading ---- */

bool tn_take_word(tn_reading *r, const char *word)
{
    const char *p = r->at;
    for (; *word; word++, p++)
        if (p == r->end || tn_lower(*p) != *word)
            return false;
    r->at = p;
    return true;
}

bool tn_take_digits(tn_reading *r, uint32_t *value)
{
    const char *begin = r->at;
    uint64_t v = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (v < UINT32_MAX)
            v = v * 10 + (unsigned)(*r->at - '0');
    *value = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
    return r->at > begin;
}

/* The position in UTF-8 characters, from 1. */
static size_t character(const char *text, const char *at)
{
    size_t n = 1;
    for (const char *p = text; p < at; p++)
        n += ((unsigned char)*p & 0xc0) != 0x80;
    return n;
}

tn_status tn_reading_fail(const tn_reading *r, tn_status status, const char *at, const char *format, ...)
{
    tn_quoted text = tn_quote_z(r->text);
    char message[sizeof r->err->text - 24];     /* leaves space for the position */
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message - strlen(text.text), format, args);
    va_end(args);
    message[tn_utf8_valid(message, strlen(message))] = '\0';
    return tn_fail(r->err, status, "%s: %s at character %zu", text.text, message, character(r->text, at));
}

tn_status tn_expected(const tn_reading *r, const char *what)
{
    tn_text rest = tn_rest(r);
    if (!rest.len)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, r->at, "expected %s but found the end", what);
    tn_quoted found = tn_quote(rest.ptr, rest.len < 24 ? rest.len : 24);
    return tn_reading_fail(r, TN_ERR_ARGUMENT, r->at, "expected %s but found %s", what, found.text);
}

/* Reads a number of bits from `low` to `high`. */
static tn_status read_bits(tn_reading *r, const char *what, uint32_t low, uint32_t high, uint32_t *bits)
{
    const char *begin = r->at;
    if (!tn_take_digits(r, bits))
        return tn_expected(r, "a number of bits");
    if (*bits < low || *bits > high)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "%s has %u to %u bits but found %.*s", what, low,
                               high, (int)(r->at - begin < 12 ? r->at - begin : 12), begin);
    return TN_OK;
}

static void set_float(tn_number_spec *n, uint32_t exponent_bits, uint32_t mantissa_bits, int bias,
                      unsigned infnan)
{
    n->kind = TN_NUMBER_FLOAT;
    n->exponent_bits = (uint8_t)exponent_bits;
    n->mantissa_bits = (uint8_t)mantissa_bits;
    n->bias = (int16_t)bias;
    n->infnan = infnan;
    n->bits = (uint8_t)(1 + exponent_bits + mantissa_bits);
}

static int usual_bias(unsigned exponent_bits)
{
    return (1 << (exponent_bits - 1)) - 1;
}

/* Derives the kind.  Integers are floats with one exponent bit. */
static tn_status resolve_kind(const tn_reading *r, const char *begin, tn_number_spec *n)
{
    bool ieee = n->infnan == TN_INFNAN_IEEE;
    if (n->mantissa_bits == 0 && ieee) {
        n->kind = TN_NUMBER_EXPONENT;
        n->bits = n->exponent_bits;
    } else if (n->exponent_bits == 1 && n->bias == 1 && n->infnan == TN_INFNAN_FNUZ) {
        n->kind = TN_NUMBER_INT;
    } else if (n->mantissa_bits == 0 && n->infnan != TN_INFNAN_FNUZ) {
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin,
                               "fn and inuz take the only mantissa of the largest exponent: "
                               "expected m1 or more but found m0");
    } else if (n->exponent_bits == 1 && ieee) {
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin,
                               "infinity takes the only exponent: expected e2 or more, or fn, "
                               "fnuz, inuz, but found e1");
    }
    if (n->bits > MAX_BITS)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "a number has at most %d bits but found %u",
                               MAX_BITS, n->bits);
    return TN_OK;
}

/* e<X>m<Y>[b<Z>][ieee|fn|fnuz|inuz], after the e.  `extra` is added to the default bias. */
static tn_status read_fields(tn_reading *r, int extra, tn_number_spec *n)
{
    const char *begin = r->at - 1;
    uint32_t e, m, bias;
    unsigned infnan = TN_INFNAN_IEEE;
    TN_TRY(read_bits(r, "the exponent", 1, MAX_EXPONENT_BITS, &e));
    if (!tn_take_word(r, "m"))
        return tn_expected(r, "m and the bits of the mantissa");
    TN_TRY(read_bits(r, "the mantissa", 0, MAX_BITS - 2, &m));
    bias = (uint32_t)(usual_bias(e) + extra);
    const char *place = r->at;
    if (tn_take_word(r, "b")) {
        if (!tn_take_digits(r, &bias))
            return tn_expected(r, "a bias");
        if (bias > 999)
            return tn_reading_fail(r, TN_ERR_ARGUMENT, place + 1, "the bias is 0 to 999 but found %.*s",
                                   (int)(r->at - place - 1 < 12 ? r->at - place - 1 : 12), place + 1);
    }
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (tn_take_word(r, endings[i].name)) {
            infnan = endings[i].infnan;
            break;
        }
    }
    set_float(n, e, m, (int)bias, infnan);
    return resolve_kind(r, begin, n);
}

static tn_status read_int(tn_reading *r, tn_number_spec *n)
{
    uint32_t bits;
    TN_TRY(read_bits(r, "int", 2, MAX_BITS, &bits));
    set_float(n, 1, bits - 2, 1, TN_INFNAN_FNUZ);
    n->kind = TN_NUMBER_INT;
    return TN_OK;
}

static tn_status read_uint(tn_reading *r, tn_number_spec *n)
{
    uint32_t bits;
    TN_TRY(read_bits(r, "uint", 1, MAX_BITS, &bits));
    *n = (tn_number_spec){ .kind = TN_NUMBER_UINT, .bits = (uint8_t)bits, .mantissa_bits = (uint8_t)bits };
    return TN_OK;
}

static tn_status read_float(tn_reading *r, bool brain, tn_number_spec *n)
{
    uint32_t bits;
    TN_TRY(read_bits(r, brain ? "bfloat" : "float", brain ? 10 : 9, MAX_BITS, &bits));
    unsigned e = brain || bits > 16 ? 8 : 5;
    set_float(n, e, bits - 1 - e, usual_bias(e), TN_INFNAN_IEEE);
    return TN_OK;
}

/* binary8p<P> of IEEE P3109.  P counts the implicit bit of the mantissa too. */
static tn_status read_binary8(tn_reading *r, tn_number_spec *n)
{
    uint32_t p;
    const char *begin = r->at;
    if (!tn_take_digits(r, &p) || p < 2 || p > 6) {
        r->at = begin;
        return tn_expected(r, "2 to 6 after binary8p");
    }
    set_float(n, 8 - p, p - 1, 1 << (7 - p), TN_INFNAN_INUZ);
    return TN_OK;
}

/* float8_e<X>m<Y>..., after the float8: a type of torch, where the bias of fnuz is one larger. */
static tn_status read_float8(tn_reading *r, tn_number_spec *n)
{
    const char *begin = r->at;
    bool fnuz = r->end - r->at > 4 && tn_take_word(&(tn_reading){ .at = r->end - 4, .end = r->end }, "fnuz");
    tn_take_word(r, "_");
    if (!tn_take_word(r, "e"))
        return tn_expected(r, "e<X>m<Y> after float8_");
    TN_TRY(read_fields(r, fnuz, n));
    if (n->bits != 8)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "expected 8 bits after float8 but found %u",
                               n->bits);
    return TN_OK;
}

static tn_status read_any(tn_reading *r, tn_number_spec *n)
{
    tn_take_word(r, "torch.");
    tn_reading float8 = *r;
    if (tn_take_word(&float8, "float8") && (tn_next(&float8) == '_' || tn_next(&float8) == 'e')) {
        r->at = float8.at;
        return read_float8(r, n);
    }
    if (tn_take_word(r, "bfloat"))
        return read_float(r, true, n);
    if (tn_take_word(r, "float"))
        return read_float(r, false, n);
    if (tn_take_word(r, "uint"))
        return read_uint(r, n);
    if (tn_take_word(r, "int"))
        return read_int(r, n);
    if (tn_take_word(r, "binary8p"))
        return read_binary8(r, n);
    if (tn_take_word(r, "e"))
        return read_fields(r, 0, n);
    return tn_expected(r, "a number (e<X>m<Y>, int<K>, uint<K>, float<N>, bfloat<N>, binary8p<P>)");
}

/* ---- derived fields ---- */

static unsigned lost_codes(const tn_number_spec *n)
{
    return n->infnan == TN_INFNAN_FN || n->infnan == TN_INFNAN_INUZ ? 2 : 1;
}

/* All values must be float32 values, because all arithmetic is float32. */
static tn_status derive_range(const tn_reading *r, const char *begin, tn_number_spec *n)
{
    int highest, lowest;        /* exponents of the largest and the smallest number */
    if (n->kind == TN_NUMBER_EXPONENT) {
        highest = (1 << n->exponent_bits) - 2 - n->bias;
        lowest = -n->bias;
    } else {
        n->emax = (1 << n->exponent_bits) - 1 - n->bias - (n->infnan == TN_INFNAN_IEEE);
        n->emin = 1 - n->bias;
        highest = n->emax;
        lowest = n->emin - n->mantissa_bits;
    }
    if (highest > 127 || lowest < -149)
        return tn_reading_fail(r, TN_ERR_UNSUPPORTED, begin,
                               "numbers from 2^%d to 2^%d are beyond float32 (2^-149 to 2^127)", lowest,
                               highest);
    if (n->kind == TN_NUMBER_FLOAT && n->mantissa_bits > 23)
        return tn_reading_fail(r, TN_ERR_UNSUPPORTED, begin, "a mantissa of %u bits is beyond float32 (23)",
                               n->mantissa_bits);
    if (n->kind == TN_NUMBER_EXPONENT)
        return TN_OK;
    double largest = ldexp(2 - ldexp(lost_codes(n), -n->mantissa_bits), n->emax);
    n->maxfloat = (float)largest;
    n->midmax = (ldexp(1, n->emax + 1) + largest) / 2;
    if (lost_codes(n) == 2)
        n->midmax = (n->midmax + largest) / 2;
    return TN_OK;
}

static tn_specials specials_of(const tn_number_spec *n)
{
    if (n->kind == TN_NUMBER_EXPONENT)
        return TN_SPECIALS_E8M0;
    if (n->infnan == TN_INFNAN_IEEE)
        return TN_SPECIALS_IEEE;
    if (n->infnan == TN_INFNAN_FN)
        return TN_SPECIALS_FN;
    return n->bits <= 6 ? TN_SPECIALS_NONE : TN_SPECIALS_FNUZ;
}

static bool has_codes_of(const tn_number_spec *n, const tn_dtype_info *row)
{
    return n->type.kind == row->kind && n->type.bits == row->bits &&
           n->type.exponent_bits == row->exponent_bits && n->type.mantissa_bits == row->mantissa_bits &&
           n->type.bias == row->bias && n->type.specials == row->specials;
}

static void derive_type(tn_number_spec *n)
{
    bool has_fields = n->kind == TN_NUMBER_FLOAT || n->kind == TN_NUMBER_EXPONENT;
    n->type = (tn_dtype_info){ .bits = n->bits, .swap_bytes = n->bits <= 16 ? 2 : 4,
                               .kind = n->kind == TN_NUMBER_INT ? TN_KIND_INT : TN_KIND_UINT };
    if (n->bits <= 8)
        n->type.swap_bytes = 1;
    if (has_fields) {
        n->type.kind = TN_KIND_FLOAT;
        n->type.exponent_bits = n->exponent_bits;
        n->type.mantissa_bits = n->mantissa_bits;
        n->type.bias = n->bias;
        n->type.specials = specials_of(n);
    }
    n->dtype = TN_UNKNOWN;
    for (int i = 1; i < TN_DTYPE_COUNT && n->infnan != TN_INFNAN_INUZ; i++) {
        const tn_dtype_info *row = tn_dtype_get((tn_dtype)i);
        if (row && has_codes_of(n, row)) {
            n->dtype = row->dtype;
            n->type = *row;
            break;
        }
    }
}

static void derive_text(tn_number_spec *n)
{
    static const char *const ending[] = { [TN_INFNAN_IEEE] = "", [TN_INFNAN_FN] = "fn",
                                          [TN_INFNAN_FNUZ] = "fnuz",
                                          [TN_INFNAN_INUZ] = "inuz" };
    char bias[8] = "";
    if (n->kind == TN_NUMBER_INT || n->kind == TN_NUMBER_UINT) {
        snprintf(n->text, sizeof n->text, "%s%u", n->kind == TN_NUMBER_INT ? "int" : "uint", n->bits);
        return;
    }
    if (n->dtype == TN_FLOAT32 || n->dtype == TN_FLOAT16 || n->dtype == TN_BFLOAT16) {
        snprintf(n->text, sizeof n->text, "%s", n->type.name);
        return;
    }
    if (n->bias != usual_bias(n->exponent_bits))
        snprintf(bias, sizeof bias, "b%d", n->bias);
    snprintf(n->text, sizeof n->text, "e%um%u%s%s", n->exponent_bits, n->mantissa_bits, bias,
             ending[n->infnan]);
}

tn_status tn_number_read(tn_reading *r, tn_number_spec *number)
{
    tn_number_spec n = { .kind = TN_NUMBER_FLOAT };
    const char *begin = r->at;
    TN_TRY(read_any(r, &n));
    if (r->at < r->end)
        return tn_expected(r, "the end of the number");
    if (n.kind != TN_NUMBER_UINT)
        TN_TRY(derive_range(r, begin, &n));
    if (n.kind == TN_NUMBER_INT || n.kind == TN_NUMBER_UINT) {
        uint64_t largest = (UINT64_C(1) << (n.bits - (n.kind == TN_NUMBER_INT))) - 1;
        n.maxint = largest < INT32_MAX ? (int32_t)largest : INT32_MAX;
    }
    derive_type(&n);
    derive_text(&n);
    *number = n;
    return TN_OK;
}

/* ---- the number line ---- */

uint32_t tn_number_top(const tn_number_spec *n)
{
    return (uint32_t)((uint64_t)(n->emax + n->bias + 1) << n->mantissa_bits) - lost_codes(n);
}

double tn_number_at(const tn_number_spec *n, uint32_t index)
{
    uint32_t mantissa = index & ((1u << n->mantissa_bits) - 1);
    int exponent = (int)(index >> n->mantissa_bits);
    if (exponent == 0)
        return ldexp(mantissa, n->emin - n->mantissa_bits);
    return ldexp((double)mantissa + ldexp(1, n->mantissa_bits), exponent - 1 + n->emin - n->mantissa_bits);
}

bool tn_number_find(const tn_number_spec *n, double value, uint32_t *index)
{
    if (!(value >= 0 && value <= (double)n->maxfloat))
        return false;
    int e = value > 0 ? ilogb(value) : n->emin;
    if (e < n->emin)
        e = n->emin;
    double steps = ldexp(value, n->mantissa_bits - e);
    if (steps != floor(steps))
        return false;
    *index = ((uint32_t)(e - n->emin) << n->mantissa_bits) + (uint32_t)steps;
    return true;
}
