/* pipeline/padding.c - how far a rule pads each dimension of a tensor, and with what. */
#include "pipeline/padding.h"
#include "base/error.h"
#include "tensor/array.h"

#include <tenon/cast.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- how far ---- */

static tn_status find_dimension(const tn_tensor *t, const tn_pad_rule *rule, size_t i, uint32_t *dimension,
                                tn_error *err)
{
    char letter = rule->dims[i].letter;
    if (letter) {
        const char *at = t->layout ? strchr(t->layout, letter) : NULL;
        if (!at)
            return tn_with_reason(tn_fail(err, TN_ERR_ARGUMENT,
                                          "expected a dimension %c to pad but its layout is %s: %spad by "
                                          "number, as in -1=N, or name fewer tensors", letter,
                                          t->layout ? t->layout : "not known", t->layout ? "" : "say it, "),
                                  t->layout ? TN_REASON_NONE : TN_REASON_LAYOUT, NULL, err);
        *dimension = (uint32_t)(at - t->layout);
        return TN_OK;
    }
    int64_t number = rule->dims[i].dimension + (rule->dims[i].dimension < 0 ? (int64_t)t->rank : 0);
    if (number < 0 || number >= t->rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected one of its %u dimensions to pad but found %d", t->rank,
                       rule->dims[i].dimension);
    *dimension = (uint32_t)number;
    return TN_OK;
}

typedef struct dimension_name { char text[16]; } dimension_name;

/* As the rule has it. */
static dimension_name name_of(const tn_pad_rule *rule, size_t i)
{
    dimension_name name;
    int letter = rule->dims[i].letter;
    snprintf(name.text, sizeof name.text, letter ? "%c" : "%d", letter ? letter : rule->dims[i].dimension);
    return name;
}

static tn_status pad_to(int64_t *extent, int64_t multiple, tn_error *err)
{
    int64_t rest = *extent % multiple;
    if (rest && __builtin_add_overflow(*extent, multiple - rest, extent))
        return tn_fail(err, TN_ERR_LIMIT, "too large with its padding");
    return TN_OK;
}

/* A multiple of both. */
static bool multiply(int64_t multiple, int64_t by, int64_t *both)
{
    int64_t common = by;        /* a power of two */
    while (multiple % common)
        common /= 2;
    return !__builtin_mul_overflow(multiple, by / common, both);
}

/* Only the tensor tells that two names are of one dimension, which can be a multiple of one number only. */
static tn_status pad_each(const tn_tensor *t, const tn_pad_rule *rule, int64_t row, int64_t *physical,
                          tn_error *err)
{
    uint32_t dimensions[TN_MAX_RANK];
    for (uint32_t i = 0; i < rule->count; i++) {
        TN_TRY(find_dimension(t, rule, i, &dimensions[i], err));
        for (uint32_t k = 0; k < i; k++)
            if (dimensions[k] == dimensions[i])
                return tn_fail(err, TN_ERR_ARGUMENT, "%s and %s are the same dimension to pad: name it once",
                               name_of(rule, k).text, name_of(rule, i).text);
        int64_t multiple = rule->dims[i].multiple;
        if (multiple < 1)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected a multiple of 1 or more to pad to");
        if (dimensions[i] == t->rank - 1 && !multiply(multiple, row, &multiple))
            return tn_fail(err, TN_ERR_LIMIT, "too large with its padding");
        TN_TRY(pad_to(&physical[dimensions[i]], multiple, err));
    }
    return TN_OK;
}

/* ---- with what ---- */

/* Zero points of a file may lie beyond the codes: then no code means zero. */
static tn_status check_fills(const tn_tensor *t, const tn_padding *how, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(t->parts[0].array.dtype);
    bool sign = type->kind == TN_KIND_INT;
    int64_t high = (INT64_C(1) << (type->bits - sign)) - 1, low = sign ? -high - 1 : 0;
    uint64_t count = t->parts[2].nbytes / sizeof *how->fills;
    for (uint64_t i = 0; i < count; i++)
        if (how->fills[i] < low || how->fills[i] > high)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected a zero point from %lld to %lld to pad with but found %d (compat=mli "
                           "pads with code 0)", (long long)low, (long long)high, how->fills[i]);
    return TN_OK;
}

static bool is_padded(const tn_tensor *t, const int64_t *physical)
{
    return t->rank && memcmp(t->shape, physical, t->rank * sizeof *physical) != 0;
}

/* The value in the elements' type; of a scaled tensor the code of zero. */
static tn_status choose_fill(const tn_tensor *t, const tn_pad_rule *rule, const int32_t *zero, bool padded,
                             tn_padding *how, tn_error *err)
{
    double value = rule ? rule->value : 0;
    const tn_array one = { .dtype = TN_FLOAT64 }, to = { .dtype = t->parts[0].array.dtype };
    const tn_cast_options o = { .size = sizeof o, .overflow = TN_OVERFLOW_ERROR, .jobs = 1 };
    how->axis = -1;
    if (t->scaling) {
        how->fills = rule && rule->raw_zero ? NULL : zero;
        how->axis = how->fills ? t->scaling->axis : -1;
        if (value != 0)
            return tn_fail(err, TN_ERR_ARGUMENT, "padding of a scaled tensor has the value 0");
        return how->fills && rule && padded ? check_fills(t, how, err) : TN_OK;
    }
    if (value == 0 && !signbit(value))
        return TN_OK;
    return tn_cast(&to, how->fill, &one, &value, TN_HOST_ORDER, &o, err);
}

/* Each row of codes begins on a byte: a row is padded to a multiple of this. */
static int64_t codes_per_byte(unsigned bits)
{
    if (bits >= 8)
        return 1;
    return bits == 2 || bits == 4 ? 8 / bits : 8;
}

tn_status tn_choose_padding(const tn_tensor *t, const tn_pad_rule *rule, const int32_t *zero,
                            int64_t *physical, tn_padding *padding, tn_error *err)
{
    int64_t row = t->scaling ? codes_per_byte(tn_dtype_get(t->parts[0].array.dtype)->bits) : 1;
    tn_status status = rule ? pad_each(t, rule, row, physical, err) : TN_OK;
    if (!status && t->rank)
        status = pad_to(&physical[t->rank - 1], row, err);
    return status ? status : choose_fill(t, rule, zero, is_padded(t, physical), padding, err);
}
