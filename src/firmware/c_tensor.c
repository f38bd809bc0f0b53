/* firmware/c_tensor.c - a tensor in MLI's terms. */
#include "firmware/c_tensor.h"
#include "tensor/code.h"

#include <math.h>

static const tn_c_type types[] = {
    { "fx8", TN_C_FX, TN_INT8, { "TN_MLI1_FX8", "TN_MLI1_FX8", "TN_MLI2_FX8" },
      { "MLI_EL_FX_8", "MLI_EL_FX_8", "MLI_EL_FX_8" } },
    { "fx16", TN_C_FX, TN_INT16, { "TN_MLI1_FX16", "TN_MLI1_FX16", "TN_MLI2_FX16" },
      { "MLI_EL_FX_16", "MLI_EL_FX_16", "MLI_EL_FX_16" } },
    { "sa8", TN_C_SA, TN_INT8, { NULL, "TN_MLI1_SA8", "TN_MLI2_SA8" },
      { NULL, "MLI_EL_ASYM_I8", "MLI_EL_SA_8" } },
    { "sa32", TN_C_SA, TN_INT32, { NULL, "TN_MLI1_SA32", "TN_MLI2_SA32" },
      { NULL, "MLI_EL_ASYM_I32", "MLI_EL_SA_32" } },
    { "fp32", TN_C_FP, TN_FLOAT32, { NULL, NULL, "TN_MLI2_FP32" }, { NULL, NULL, "MLI_EL_FP_32" } },
};

/* Strides are int32_t from 1.1 on. */
const tn_c_version tn_c_versions[TN_C_VERSIONS] = {
    { "1.0", "tn_mli10_tensor", 36, UINT32_MAX },
    { "1.1", "tn_mli11_tensor", 64, INT32_MAX },
    { "2.0", "tn_mli20_tensor", 80, INT32_MAX },
};

const tn_c_type *tn_c_type_find(tn_c_kind kind, tn_dtype dtype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].kind == kind && types[i].dtype == dtype)
            return &types[i];
    return NULL;
}

/* ---- arrays ---- */

uint64_t tn_c_array_count(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array)
{
    if (array == TN_C_DATA)
        return t->count;
    if (t->type->kind != TN_C_SA || t->axis < 0 || (array == TN_C_FRAC && mli != TN_FOR_MLI_2_0))
        return 0;
    return (uint64_t)t->shape[t->axis];
}

tn_dtype tn_c_array_type(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array)
{
    switch (array) {
    case TN_C_DATA:
        return t->type->dtype;
    case TN_C_SCALE:
        return mli == TN_FOR_MLI_2_0 ? TN_INT16 : TN_INT32;
    case TN_C_FRAC:
        return TN_INT8;
    default:
        return TN_INT16;
    }
}

uint64_t tn_c_array_bytes(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array)
{
    return tn_c_array_count(t, mli, array) * (tn_dtype_get(tn_c_array_type(t, mli, array))->bits / 8);
}

/* ---- scales ---- */

bool tn_c_frac_bits(float scale, int32_t *frac_bits)
{
    int exponent;
    if (frexpf(scale, &exponent) != 0.5f)       /* also false if it is negative, 0 or not finite */
        return false;
    *frac_bits = 1 - exponent;
    return true;
}

/* Bits of a scale's integer, which is above zero. */
static int scale_bits(tn_mli_version mli) { return mli == TN_FOR_MLI_2_0 ? 15 : 31; }

int32_t tn_c_scale_frac(tn_mli_version mli, float scale)
{
    int exponent;
    frexpf(scale, &exponent);
    return scale_bits(mli) - exponent < INT8_MAX ? scale_bits(mli) - exponent : INT8_MAX;
}

bool tn_c_scale_integer(tn_mli_version mli, float scale, int32_t frac_bits, int32_t *integer)
{
    /* exact: a float has fewer than half of a double's bits */
    double whole = ldexp((double)scale, frac_bits);
    if (whole < 1 || whole >= ldexp(1, scale_bits(mli)) || whole != floor(whole))
        return false;
    *integer = (int32_t)whole;
    return true;
}

/* ---- elements ---- */

static float float_at(const uint8_t *in, size_t i)
{
    float value;
    memcpy(&value, in + i * sizeof value, sizeof value);
    return value;
}

/* An integer of a scale, or its fractional bits. */
static int32_t of_scale(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array, float scale)
{
    int32_t frac_bits = mli == TN_FOR_MLI_2_0 ? tn_c_scale_frac(mli, scale) : t->frac_bits, integer = 0;
    if (array == TN_C_FRAC)
        return frac_bits;
    tn_c_scale_integer(mli, scale, frac_bits, &integer);
    return integer;
}

void tn_c_array_make(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array, const uint8_t *in, size_t n,
                     uint8_t *out)
{
    unsigned bits = tn_dtype_get(tn_c_array_type(t, mli, array))->bits;
    for (size_t i = 0; i < n; i++) {
        uint32_t code = array == TN_C_ZERO ? (uint32_t)tn_code_get(in, i, 32)
                                           : (uint32_t)of_scale(t, mli, array, float_at(in, i));
        tn_code_put(out, i, bits, code);
    }
}
