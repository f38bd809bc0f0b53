/* quant/grammar/datatype_store.c - small floats stored as float8 numbers, one per byte,
 * instead of as their own codes.
 *
 * Scales are unchanged.  So such data is decoded with the same datatype whose number
 * is replaced by the float8 type. */
#include "base/error.h"
#include "quant/grammar/datatype_read.h"
#include "tensor/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The number spec of the type; NULL: not supported. */
static const char *store_name(tn_dtype store)
{
    if (store == TN_FLOAT8_E4M3FN)
        return "e4m3fn";
    return store == TN_FLOAT8_E5M2 ? "e5m2" : NULL;
}

static double value_of(tn_number n)
{
    double value = ldexp((double)n.significand, n.exponent);
    if (n.class == TN_NUMBER_NAN)
        value = NAN;
    else if (n.class == TN_NUMBER_INFINITE)
        value = HUGE_VAL;
    return n.negative ? -value : value;
}

static bool is_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static tn_status check_kinds(const tn_datatype *d, tn_dtype store, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(store);
    if (!store_name(store))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected float8_e4m3fn or float8_e5m2 to store numbers as but found %s",
                       type ? type->name : "an unknown type");
    if (d->number.kind != TN_NUMBER_FLOAT || d->number.bits > 8)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "floats of at most 8 bits can be stored as numbers of %s but found %s", type->name,
                       d->number.text);
    return TN_OK;
}

tn_status tn_datatype_store_codes(const tn_datatype *d, tn_dtype store, uint8_t codes[256], tn_error *err)
{
    const tn_number_spec *n = &d->number;
    const tn_dtype_info *type = tn_dtype_get(store);
    TN_TRY(check_kinds(d, store, err));
    const tn_encode_rules rules = tn_encode_rules_for(type, NULL);
    for (uint32_t code = 0; code < UINT32_C(1) << n->bits; code++) {
        tn_number number = tn_number_decode(&n->type, code);
        double value = value_of(number);
        unsigned flags = 0;
        codes[code] = (uint8_t)tn_number_encode(type, &rules, number, 0, &flags);
        bool unused = isfinite(value) && fabs(value) > (double)n->maxfloat;     /* inuz */
        if (!unused && !is_same(value, value_of(tn_number_decode(type, codes[code]))))
            return tn_fail(err, TN_ERR_ARGUMENT, "%s has %.9g, which %s lacks",
                           n->text, value, type->name);
    }
    return TN_OK;
}

static tn_status parse_with(const tn_datatype *d, tn_dtype store, tn_datatype **datatype, tn_error *err)
{
    const char *scale = strchr(d->text, '|');
    size_t size = strlen(d->text) + 16;
    char *text = malloc(size);
    TN_NEED(text, err);
    snprintf(text, size, "%s%s", store_name(store), scale ? scale : "");
    tn_status status = tn_datatype_parse(text, datatype, err);
    free(text);
    return status;
}

tn_status tn_datatype_parse_stored(const char *text, tn_dtype store, tn_datatype **datatype, tn_error *err)
{
    tn_datatype *d;
    uint8_t codes[256];
    if (store == TN_UNKNOWN)
        return tn_datatype_parse(text, datatype, err);
    TN_TRY(tn_datatype_parse(text, &d, err));
    tn_status status = tn_datatype_store_codes(d, store, codes, err);
    if (!status)
        status = parse_with(d, store, datatype, err);
    tn_datatype_free(d);
    return status;
}
