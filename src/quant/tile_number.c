/* quant/tile_number.c - encode and decode numbers of a spec. */
#include "quant/tile.h"

#include <float.h>
#include <math.h>

/* binary8pP is not in the type table.  Like fnuz it has one NaN, at the code of -0.
 * The largest code of each sign is infinity. */
static bool is_inuz(const tn_number_spec *spec)
{
    return spec->kind == TN_NUMBER_FLOAT && spec->infnan == TN_INFNAN_INUZ &&
           spec->type.specials != TN_SPECIALS_NONE;
}

static uint32_t sign_of(const tn_number_spec *spec)
{
    return UINT32_C(1) << (spec->bits - 1);
}

bool tn_spec_has_nan(const tn_number_spec *spec)
{
    return spec->kind == TN_NUMBER_FLOAT && tn_dtype_has_nan(&spec->type);
}

tn_coder tn_coder_for(const tn_number_spec *spec, tn_round round, uint64_t seed, tn_tile_draw draw)
{
    const tn_cast_options options = {
        .size = sizeof options, .round = round, .overflow = TN_OVERFLOW_SATURATE,
        .seed = seed + UINT64_C(0xd1342543de82ef95) * (uint64_t)draw,
    };
    const tn_dtype_info *type = spec->kind == TN_NUMBER_FLOAT ? &spec->type : tn_dtype_get(TN_INT32);
    return (tn_coder){ spec, tn_encode_rules_for(type, &options), false };
}

tn_coder tn_coder_exact(const tn_number_spec *spec, tn_round round, uint64_t seed)
{
    const tn_cast_options options = { .size = sizeof options, .round = round, .seed = seed };
    return (tn_coder){ spec, tn_encode_rules_for(&spec->type, &options), true };
}

uint32_t tn_coder_float(const tn_coder *coder, float x, uint64_t index)
{
    const tn_number_spec *spec = coder->spec;
    unsigned flags = 0;
    if (coder->exact)
        return spec->dtype == TN_FLOAT32 ? tn_float_bits(x)
                                         : (uint32_t)tn_number_encode(&spec->type, &coder->rules,
                                                                      tn_number_of_float(x), index, &flags);
    if (isnan(x))
        return is_inuz(spec) ? sign_of(spec) : (uint32_t)coder->rules.nan;
    if (fabsf(x) > spec->maxfloat)      /* the type of a narrow ieee spec may have larger numbers */
        x = copysignf(spec->maxfloat, x);
    uint32_t code =
        (uint32_t)tn_number_encode(&spec->type, &coder->rules, tn_number_of_float(x), index, &flags);
    return is_inuz(spec) && code == sign_of(spec) ? 0 : code;
}

int32_t tn_coder_integer(const tn_coder *coder, float x, int32_t low, int32_t high, uint64_t index)
{
    unsigned flags = 0;
    if (x <= (float)low)
        return low;
    if (x >= (float)high)
        return high;
    uint64_t code =
        tn_number_encode(tn_dtype_get(TN_INT32), &coder->rules, tn_number_of_float(x), index, &flags);
    return (int32_t)(uint32_t)code;
}

static float float_value(const tn_number_spec *spec, uint32_t code)
{
    tn_number x = tn_number_decode(&spec->type, code);
    if (is_inuz(spec) && code == sign_of(spec))
        return NAN;
    if (is_inuz(spec) && (code | sign_of(spec)) == sign_of(spec) * 2 - 1)
        return code & sign_of(spec) ? -INFINITY : INFINITY;
    if (x.class == TN_NUMBER_NAN)
        return NAN;
    float magnitude =
        x.class == TN_NUMBER_INFINITE ? INFINITY : (float)ldexp((double)x.significand, x.exponent);
    return x.negative ? -magnitude : magnitude;
}

float tn_spec_value(const tn_number_spec *spec, uint32_t code)
{
    uint32_t ones = (UINT32_C(2) << (spec->bits - 1)) - 1;
    code &= ones;
    if (spec->kind == TN_NUMBER_EXPONENT)
        return code == ones ? NAN : ldexpf(1, (int)code - spec->bias);
    return float_value(spec, code);
}

float tn_spec_exact(const tn_number_spec *spec, uint32_t code)
{
    const tn_dtype_info *type = tn_dtype_get(TN_FLOAT32);
    const tn_encode_rules rules = tn_encode_rules_for(type, NULL);
    unsigned flags = 0;
    float value;
    if (spec->dtype != TN_FLOAT32)
        code = (uint32_t)tn_number_encode(type, &rules, tn_number_decode(&spec->type, code), 0, &flags);
    memcpy(&value, &code, sizeof value);
    return value;
}

int32_t tn_spec_integer(const tn_number_spec *spec, uint32_t code)
{
    uint32_t sign = sign_of(spec);
    code &= sign * 2 - 1;
    return (int32_t)((int64_t)(code ^ sign) - (int64_t)sign);
}
