/* sparse/sparse_filter.c - which elements are kept, for a type and a threshold. */
#include "tensor/code.h"
#include "tensor/number.h"
#include "sparse/sparse_plan.h"

static uint64_t ones(unsigned bits)
{
    return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
}

static tn_filter_kind kind_of(unsigned bits)
{
    return bits < 64 ? (tn_filter_kind)(TN_FILTER_1 + __builtin_ctz(bits / 8)) : TN_FILTER_8;
}

static double value_of(const tn_dtype_info *type, uint64_t code)
{
    uint64_t element = 0;
    tn_code_put(&element, 0, type->bits, code);
    return tn_value_get(type->dtype, &element, 0).re;
}

/* Codes without their sign are in the order of magnitudes, NaN last.  The limit
 * is the largest code that is not above the threshold. */
static tn_filter float_filter(const tn_dtype_info *type, double threshold)
{
    unsigned ignored = type->bits - 1u - type->exponent_bits - type->mantissa_bits;     /* of tf32 */
    uint64_t low = 0, high = (tn_dtype_limit(type, false) >> ignored) + tn_dtype_has_infinity(type);
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (value_of(type, middle << ignored) <= threshold)
            low = middle;
        else
            high = middle - 1;
    }
    return (tn_filter){ .kind = type->specials == TN_SPECIALS_FNUZ ? TN_FILTER_FNUZ : kind_of(type->bits),
                       .mask = ones(type->bits - 1u), .limit = low << ignored | ones(ignored) };
}

/* Adding the threshold maps the integers -threshold .. threshold to 0 .. 2 * threshold. */
static tn_filter integer_filter(const tn_dtype_info *type, double threshold)
{
    bool sign = type->kind == TN_KIND_INT || type->kind == TN_KIND_FIXED, all;
    tn_filter s = { .kind = kind_of(type->bits), .mask = ones(type->bits), .limit = ones(type->bits) };
    if (type->kind == TN_KIND_BOOL)
        all = threshold >= 1;
    else
        all = threshold >= (double)(UINT64_C(1) << (type->bits - 1)) * (sign ? 1 : 2);
    if (all)
        return s;
    uint64_t whole = (uint64_t)threshold;
    s.add = sign ? whole : 0;
    s.limit = sign ? 2 * whole : whole;
    return s;
}

tn_filter tn_filter_for(const tn_dtype_info *type, bool drop, double threshold)
{
    bool complex = type->kind == TN_KIND_COMPLEX, wide = type->bits == 128;
    tn_filter f = { .kind = kind_of(type->bits), .mask = ones(type->bits) };
    if (drop && (type->kind == TN_KIND_FLOAT || complex))
        f = float_filter(tn_real_type(type), threshold);
    else if (drop)
        f = integer_filter(type, threshold);
    if (wide)
        f.kind = TN_FILTER_PAIR_8;
    else if (drop && complex)
        f.kind = TN_FILTER_PAIR_4;
    return f;
}
