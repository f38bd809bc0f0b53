/* quant/grammar/codebook_table.c - parse and write a codebook with a table in its text:
 *
 *     cb<I><M>[V:V:...;V:V:...;...]_COMPUTE
 *
 * It has 2^M mappings of 2^(I-1) - 1 values each, which are numbers of the compute
 * type: zeros, then ascending.  At least one value is positive. */
#include "quant/grammar/datatype_read.h"
#include "tensor/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_NUMBER = 40 };       /* characters: enough for every double */

/* ---- reading ---- */

static size_t digits_at(const char *p)
{
    return strspn(p, "0123456789");
}

/* Reads digits and skips a decimal point; false: too many for 64 bits. */
static bool take_digits(const char *p, const char *end, uint64_t *digits)
{
    for (*digits = 0; p < end; p++) {
        if (*p == '.')
            continue;
        if (*digits > UINT64_MAX / 10 - 1)
            return false;
        *digits = *digits * 10 + (uint64_t)(*p - '0');
    }
    return true;
}

/* DIGITS[.DIGITS][e[+|-]DIGITS].  strtod() gets no decimal point, because that depends
 * on the locale. */
static bool to_number(const char *text, double *value)
{
    char plain[MAX_NUMBER + 16];
    size_t whole = digits_at(text), part = 0;
    const char *rest = text + whole;
    if (*rest == '.') {
        part = digits_at(rest + 1);
        rest += 1 + part;
    }
    const char *end = rest;
    tn_decimal d = { 0 };
    if (tn_lower(*rest) == 'e') {
        bool sign = rest[1] == '-' || rest[1] == '+';
        size_t digits = digits_at(rest + 1 + sign);
        if (digits == 0 || digits > 4)
            return false;
        d.exponent = atoi(rest + 1);
        rest += 1 + sign + digits;
    }
    if (*rest || whole == 0 || (text[whole] == '.' && part == 0))
        return false;
    d.exponent -= (int)part;
    if (take_digits(text, end, &d.digits)) {
        *value = tn_decimal_read(d);
        return true;
    }
    snprintf(plain, sizeof plain, "%.*s%.*se%d", (int)whole, text, (int)part, text + whole + 1, d.exponent);
    *value = strtod(plain, NULL);
    return true;
}

static bool ends_value(char c)
{
    return c == ':' || c == ';' || c == ']';
}

static tn_status read_value(tn_reading *r, const tn_codebook *book, double before, double *value)
{
    char text[MAX_NUMBER + 1];
    const char *begin = r->at;
    uint32_t index;
    while (r->at < r->end && !ends_value(*r->at))
        r->at++;
    size_t n = (size_t)(r->at - begin), shown = n < MAX_NUMBER ? n : MAX_NUMBER;
    memcpy(text, begin, shown);
    text[shown] = '\0';
    if (n > MAX_NUMBER || !to_number(text, value))
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "expected a number but found %s",
                               n ? tn_quote(begin, shown).text : "none");
    bool zero = *value == 0 && before == 0 && tn_digits_are_zero(text, shown);
    if (!(*value > before) && !zero)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "expected a value above %.9g but found %s", before,
                               text);
    if (!tn_number_find(&book->compute, *value, &index))
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "expected a number of %s but found %s",
                               book->compute.text, text);
    return TN_OK;
}

/* Reads one mapping, up to the next ; or ]. */
static tn_status read_mapping(tn_reading *r, const tn_codebook *book, float *mapping)
{
    const char *begin = r->at;
    uint32_t n = 0, values = book->values - 1;
    double value = 0;
    do {
        if (n == values)
            return tn_reading_fail(r, TN_ERR_ARGUMENT, r->at,
                                   "codes of %u bits have %u values but found more", book->index_bits,
                                   values);
        TN_TRY(read_value(r, book, value, &value));
        mapping[++n] = (float)value;
    } while (tn_take_word(r, ":"));
    if (n < values)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "codes of %u bits have %u values but found %u",
                               book->index_bits, values, n);
    return TN_OK;
}

static bool has_positive(const tn_codebook *book, const float *value)
{
    size_t n = (size_t)book->mappings * book->values, i = 0;
    while (i < n && value[i] == 0)
        i++;
    return i < n;
}

tn_status tn_codebook_read_table(tn_reading *r, const tn_codebook *book, float *value)
{
    uint32_t n = 0;
    const char *begin = r->at;
    tn_take_word(r, "[");
    do {
        if (n == book->mappings)
            return tn_reading_fail(r, TN_ERR_ARGUMENT, r->at,
                                   "%u bits choose among %u mappings but found more", book->meta_bits,
                                   book->mappings);
        TN_TRY(read_mapping(r, book, value + (size_t)n++ * book->values));
    } while (tn_take_word(r, ";"));
    if (!tn_take_word(r, "]") || r->at < r->end)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, r->at,
                               "expected : and a value, ; and a mapping, or ] and the compute type but found "
                               "%s",
                               r->at < r->end ? tn_quote(r->at, 1).text : "the end");
    if (n < book->mappings)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, r->at, "%u bits choose among %u mappings but found %u",
                               book->meta_bits, book->mappings, n);
    if (!has_positive(book, value))
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "expected a value above 0 in one of the mappings "
                               "but found none");
    return TN_OK;
}

/* ---- writing ---- */

/* A fast path for numbers with at most 6 decimals.  A file may have many codebooks. */
static bool put_short(tn_buf *out, float value)
{
    double scaled = (double)value;      /* exact: 24 bits, and 20 of the power of ten */
    uint64_t power = 1;
    int decimals = 0;
    while (scaled != floor(scaled) && decimals < 6) {
        power *= 10;
        decimals++;
        scaled = (double)value * (double)power;
    }
    if (scaled != floor(scaled) || scaled >= 1e9 || value < 1e-4f)
        return false;
    uint64_t digits = (uint64_t)scaled;
    tn_buf_printf(out, "%llu", (unsigned long long)(digits / power));
    if (decimals)
        tn_buf_printf(out, ".%0*llu", decimals, (unsigned long long)(digits % power));
    return true;
}

/* Writes the fewest digits that parse to the same double. */
static void put_value(tn_buf *out, float value)
{
    char text[48];
    if (put_short(out, value))
        return;
    int n = tn_value_format(text, sizeof text, TN_FLOAT64,
                            (tn_value){ .kind = TN_KIND_FLOAT, .re = (double)value });
    bool whole = n > 2 && strcmp(text + n - 2, ".0") == 0;
    tn_buf_put(out, text, (size_t)n - (whole ? 2 : 0));
}

void tn_codebook_put_table(const tn_codebook *book, tn_buf *out)
{
    for (uint32_t i = 0; i < book->mappings; i++) {
        for (uint32_t k = 1; k < book->values; k++) {
            const char first = i ? ';' : '[';
            tn_buf_putc(out, k > 1 ? ':' : first);
            put_value(out, book->value[(size_t)i * book->values + k]);
        }
    }
    tn_buf_putc(out, ']');
}
