/* tensor/dtype.c - the type table: one row per type, the only place that
 * knows a type's width, its bit fields and its names. */
#include <tenon/dtype.h>

#include "base/text.h"

#include <string.h>

static const tn_dtype_info rows[TN_DTYPE_COUNT] = {
    /* type, name, kind, bits, swap unit, exponent, mantissa, bias, specials,
     *     short, WIA, zTensor 0.1, safetensors, NumPy, torch, MLI, BTF, DLPack */
    [TN_FLOAT64] = { TN_FLOAT64, "float64", TN_KIND_FLOAT, 64, 8, 11, 52, 1023, TN_SPECIALS_IEEE,
        "f64", "FLOAT64", "float64", "F64", "<f8", "float64", NULL, 5, 2 },
    [TN_FLOAT32] = { TN_FLOAT32, "float32", TN_KIND_FLOAT, 32, 4, 8, 23, 127, TN_SPECIALS_IEEE,
        "f32", "FLOAT32", "float32", "F32", "<f4", "float32", NULL, 4, 2 },
    [TN_TF32] = { TN_TF32, "tf32", TN_KIND_FLOAT, 32, 4, 8, 10, 127, TN_SPECIALS_IEEE,
        "tf32", "TF32", NULL, NULL, NULL, NULL, NULL, -1, -1 },
    [TN_FLOAT16] = { TN_FLOAT16, "float16", TN_KIND_FLOAT, 16, 2, 5, 10, 15, TN_SPECIALS_IEEE,
        "f16", "FLOAT16", "float16", "F16", "<f2", "float16", NULL, -1, 2 },
    [TN_BFLOAT16] = { TN_BFLOAT16, "bfloat16", TN_KIND_FLOAT, 16, 2, 8, 7, 127, TN_SPECIALS_IEEE,
        "bf16", "BFLOAT16", "bfloat16", "BF16", "bfloat16", "bfloat16", NULL, -1, 4 },
    [TN_FLOAT8_E4M3FN] = { TN_FLOAT8_E4M3FN, "float8_e4m3fn", TN_KIND_FLOAT, 8, 1, 4, 3, 7, TN_SPECIALS_FN,
        "f8e4m3fn", "FP8_E4M3", NULL, "F8_E4M3", "float8_e4m3fn", "float8_e4m3fn", NULL, -1, 10 },
    [TN_FLOAT8_E5M2] = { TN_FLOAT8_E5M2, "float8_e5m2", TN_KIND_FLOAT, 8, 1, 5, 2, 15, TN_SPECIALS_IEEE,
        "f8e5m2", "FP8_E5M2", NULL, "F8_E5M2", "float8_e5m2", "float8_e5m2", NULL, -1, 12 },
    [TN_FLOAT8_E4M3FNUZ] = { TN_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", TN_KIND_FLOAT, 8, 1, 4, 3, 8,
                             TN_SPECIALS_FNUZ,
        "f8e4m3fnuz", NULL, NULL, "F8_E4M3FNUZ", "float8_e4m3fnuz", "float8_e4m3fnuz", NULL, -1, 11 },
    [TN_FLOAT8_E5M2FNUZ] = { TN_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", TN_KIND_FLOAT, 8, 1, 5, 2, 16,
                             TN_SPECIALS_FNUZ,
        "f8e5m2fnuz", NULL, NULL, "F8_E5M2FNUZ", "float8_e5m2fnuz", "float8_e5m2fnuz", NULL, -1, 13 },
    [TN_FLOAT8_E4M3] = { TN_FLOAT8_E4M3, "float8_e4m3", TN_KIND_FLOAT, 8, 1, 4, 3, 7, TN_SPECIALS_IEEE,
        "f8e4m3", NULL, NULL, NULL, "float8_e4m3", NULL, NULL, -1, 8 },
    [TN_FLOAT8_E3M4] = { TN_FLOAT8_E3M4, "float8_e3m4", TN_KIND_FLOAT, 8, 1, 3, 4, 3, TN_SPECIALS_IEEE,
        "f8e3m4", NULL, NULL, NULL, "float8_e3m4", NULL, NULL, -1, 7 },
    [TN_FLOAT8_E8M0] = { TN_FLOAT8_E8M0, "float8_e8m0", TN_KIND_FLOAT, 8, 1, 8, 0, 127, TN_SPECIALS_E8M0,
        "e8m0", NULL, NULL, "F8_E8M0", "float8_e8m0fnu", "float8_e8m0fnu", NULL, -1, 14 },
    [TN_FLOAT6_E2M3] = { TN_FLOAT6_E2M3, "float6_e2m3", TN_KIND_FLOAT, 6, 1, 2, 3, 1, TN_SPECIALS_NONE,
        "f6e2m3", NULL, NULL, "F6_E2M3", "float6_e2m3fn", NULL, NULL, -1, 15 },
    [TN_FLOAT6_E3M2] = { TN_FLOAT6_E3M2, "float6_e3m2", TN_KIND_FLOAT, 6, 1, 3, 2, 3, TN_SPECIALS_NONE,
        "f6e3m2", NULL, NULL, "F6_E3M2", "float6_e3m2fn", NULL, NULL, -1, 16 },
    /* torch counts pairs: one float4_e2m1fn_x2 is two elements of this type. */
    [TN_FLOAT4_E2M1] = { TN_FLOAT4_E2M1, "float4_e2m1", TN_KIND_FLOAT, 4, 1, 2, 1, 1, TN_SPECIALS_NONE,
        "f4e2m1", NULL, NULL, "F4", "float4_e2m1fn", "float4_e2m1fn_x2", NULL, -1, 17 },

    [TN_INT64] = { TN_INT64, "int64", TN_KIND_INT, 64, 8, 0, 0, 0, TN_SPECIALS_NONE,
        "i64", "INT64", "int64", "I64", "<i8", "int64", NULL, 3, 0 },
    [TN_INT32] = { TN_INT32, "int32", TN_KIND_INT, 32, 4, 0, 0, 0, TN_SPECIALS_NONE,
        "i32", "INT32", "int32", "I32", "<i4", "int32", NULL, 2, 0 },
    [TN_INT16] = { TN_INT16, "int16", TN_KIND_INT, 16, 2, 0, 0, 0, TN_SPECIALS_NONE,
        "i16", "INT16", "int16", "I16", "<i2", "int16", NULL, 1, 0 },
    [TN_INT8] = { TN_INT8, "int8", TN_KIND_INT, 8, 1, 0, 0, 0, TN_SPECIALS_NONE,
        "i8", "INT8", "int8", "I8", "|i1", "int8", NULL, 0, 0 },
    [TN_INT4] = { TN_INT4, "int4", TN_KIND_INT, 4, 1, 0, 0, 0, TN_SPECIALS_NONE,
        "i4", "INT4", NULL, NULL, "int4", "int4", NULL, -1, 0 },
    [TN_INT2] = { TN_INT2, "int2", TN_KIND_INT, 2, 1, 0, 0, 0, TN_SPECIALS_NONE,
        "i2", NULL, NULL, NULL, "int2", "int2", NULL, -1, 0 },
    [TN_UINT64] = { TN_UINT64, "uint64", TN_KIND_UINT, 64, 8, 0, 0, 0, TN_SPECIALS_NONE,
        "u64", "UINT64", "uint64", "U64", "<u8", "uint64", NULL, 9, 1 },
    [TN_UINT32] = { TN_UINT32, "uint32", TN_KIND_UINT, 32, 4, 0, 0, 0, TN_SPECIALS_NONE,
        "u32", "UINT32", "uint32", "U32", "<u4", "uint32", NULL, 8, 1 },
    [TN_UINT16] = { TN_UINT16, "uint16", TN_KIND_UINT, 16, 2, 0, 0, 0, TN_SPECIALS_NONE,
        "u16", "UINT16", "uint16", "U16", "<u2", "uint16", NULL, 7, 1 },
    [TN_UINT8] = { TN_UINT8, "uint8", TN_KIND_UINT, 8, 1, 0, 0, 0, TN_SPECIALS_NONE,
        "u8", "UINT8", "uint8", "U8", "|u1", "uint8", NULL, 6, 1 },
    [TN_UINT4] = { TN_UINT4, "uint4", TN_KIND_UINT, 4, 1, 0, 0, 0, TN_SPECIALS_NONE,
        "u4", "UINT4", NULL, NULL, "uint4", "uint4", NULL, -1, 1 },
    [TN_UINT2] = { TN_UINT2, "uint2", TN_KIND_UINT, 2, 1, 0, 0, 0, TN_SPECIALS_NONE,
        "u2", NULL, NULL, NULL, "uint2", "uint2", NULL, -1, 1 },

    [TN_BOOL] = { TN_BOOL, "bool", TN_KIND_BOOL, 8, 1, 0, 0, 0, TN_SPECIALS_NONE,
        "bool", NULL, "bool", "BOOL", "|b1", "bool", NULL, -1, 6 },
    [TN_COMPLEX64] = { TN_COMPLEX64, "complex64", TN_KIND_COMPLEX, 64, 4, 8, 23, 127, TN_SPECIALS_IEEE,
        "c64", NULL, NULL, "C64", "<c8", "complex64", NULL, -1, 5 },
    [TN_COMPLEX128] = { TN_COMPLEX128, "complex128", TN_KIND_COMPLEX, 128, 8, 11, 52, 1023, TN_SPECIALS_IEEE,
        "c128", NULL, NULL, NULL, "<c16", "complex128", NULL, -1, 5 },
    [TN_FX8] = { TN_FX8, "fx8", TN_KIND_FIXED, 8, 1, 0, 0, 0, TN_SPECIALS_NONE,
        "fx8", NULL, NULL, NULL, NULL, NULL, "MLI_EL_FX_8", -1, -1 },
    [TN_FX16] = { TN_FX16, "fx16", TN_KIND_FIXED, 16, 2, 0, 0, 0, TN_SPECIALS_NONE,
        "fx16", NULL, NULL, NULL, NULL, NULL, "MLI_EL_FX_16", -1, -1 },
};

/* Common spellings that are not a name of any ecosystem. */
static const struct { const char *text; tn_dtype dtype; } aliases[] = {
    { "double", TN_FLOAT64 },               { "fp64", TN_FLOAT64 },
    { "float", TN_FLOAT32 },                { "single", TN_FLOAT32 },
    { "fp32", TN_FLOAT32 },                 { "tensorfloat32", TN_TF32 },
    { "half", TN_FLOAT16 },                 { "fp16", TN_FLOAT16 },
    { "bfloat", TN_BFLOAT16 },
    { "e4m3fn", TN_FLOAT8_E4M3FN },         { "f8_e4m3fn", TN_FLOAT8_E4M3FN },
    { "fp8_e4m3fn", TN_FLOAT8_E4M3FN },     { "float8e4m3fn", TN_FLOAT8_E4M3FN },
    { "e5m2", TN_FLOAT8_E5M2 },             { "float8e5m2", TN_FLOAT8_E5M2 },
    { "e4m3fnuz", TN_FLOAT8_E4M3FNUZ },     { "fp8_e4m3fnuz", TN_FLOAT8_E4M3FNUZ },
    { "float8e4m3fnuz", TN_FLOAT8_E4M3FNUZ },
    { "e5m2fnuz", TN_FLOAT8_E5M2FNUZ },     { "fp8_e5m2fnuz", TN_FLOAT8_E5M2FNUZ },
    { "float8e5m2fnuz", TN_FLOAT8_E5M2FNUZ },
    { "e3m4", TN_FLOAT8_E3M4 },             { "e8m0fnu", TN_FLOAT8_E8M0 },
    { "f8e8m0", TN_FLOAT8_E8M0 },           { "float8e8m0", TN_FLOAT8_E8M0 },
    { "e2m3", TN_FLOAT6_E2M3 },             { "fp6_e2m3", TN_FLOAT6_E2M3 },
    { "e3m2", TN_FLOAT6_E3M2 },             { "fp6_e3m2", TN_FLOAT6_E3M2 },
    { "e2m1", TN_FLOAT4_E2M1 },             { "fp4", TN_FLOAT4_E2M1 },
    { "f4_e2m1", TN_FLOAT4_E2M1 },          { "fp4_e2m1", TN_FLOAT4_E2M1 },
    { "float4e2m1", TN_FLOAT4_E2M1 },
    { "long", TN_INT64 },                   { "int", TN_INT32 },
    { "short", TN_INT16 },                  { "boolean", TN_BOOL },
    { "cfloat", TN_COMPLEX64 },             { "cdouble", TN_COMPLEX128 },
};

const tn_dtype_info *tn_dtype_get(tn_dtype dtype)
{
    unsigned row = (unsigned)dtype;
    return row < TN_DTYPE_COUNT && rows[row].name ? &rows[row] : NULL;
}

/* Compares without case; `name` may be NULL. */
static bool is_name(const char *text, const char *name)
{
    if (!name)
        return false;
    while (*text && tn_lower(*text) == tn_lower(*name)) {
        text++;
        name++;
    }
    return *text == *name;
}

static bool is_byte_order_mark(char c)
{
    return c == '<' || c == '>' || c == '|' || c == '=';
}

/* The code after a byte order mark.  Case matters: NumPy's "F8" is not "f8". */
static tn_dtype parse_numpy_code(const char *code)
{
    for (unsigned i = 1; i < TN_DTYPE_COUNT; i++) {
        const char *numpy = rows[i].numpy;
        if (numpy && is_byte_order_mark(numpy[0]) && strcmp(numpy + 1, code) == 0)
            return rows[i].dtype;
    }
    return TN_UNKNOWN;
}

static bool row_has_name(const tn_dtype_info *row, const char *text)
{
    /* "torch.<f4" is not a name. */
    const char *numpy = row->numpy && !is_byte_order_mark(row->numpy[0]) ? row->numpy : NULL;
    return is_name(text, row->name) || is_name(text, row->short_name) || is_name(text, row->wia) ||
           is_name(text, row->ztensor) || is_name(text, row->safetensors) || is_name(text, numpy) ||
           is_name(text, row->torch) || is_name(text, row->mli);
}

tn_dtype tn_dtype_parse(const char *text)
{
    if (!text)
        return TN_UNKNOWN;
    if (is_byte_order_mark(text[0]))
        return parse_numpy_code(text + 1);
    if (strncmp(text, "torch.", 6) == 0)
        text += 6;
    /* F4 is float4 in safetensors, but f4 is float32 in NumPy: do not guess. */
    if (strcmp(text, "f4") == 0)
        return TN_UNKNOWN;
    for (unsigned i = 1; i < TN_DTYPE_COUNT; i++)
        if (row_has_name(&rows[i], text))
            return rows[i].dtype;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (is_name(text, aliases[i].text))
            return aliases[i].dtype;
    return TN_UNKNOWN;
}
