/* tenon/dtype.h - what the bits of one element mean.
 *
 * One row of one table per type (src/tensor/dtype.c).  Nothing here allocates;
 * everything is thread-safe and lives as long as the library. */
#ifndef TENON_DTYPE_H
#define TENON_DTYPE_H

#include <stdbool.h>
#include <tenon/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_dtype {
    TN_UNKNOWN         = 0,     /* a type this build has no row for */
    TN_FLOAT64         = 1,
    TN_FLOAT32         = 2,
    TN_TF32            = 3,     /* float32 container whose low 13 bits are ignored */
    TN_FLOAT16         = 4,
    TN_BFLOAT16        = 5,
    TN_FLOAT8_E4M3FN   = 6,
    TN_FLOAT8_E5M2     = 7,
    TN_FLOAT8_E4M3FNUZ = 8,
    TN_FLOAT8_E5M2FNUZ = 9,
    TN_FLOAT8_E4M3     = 10,
    TN_FLOAT8_E3M4     = 11,
    TN_FLOAT8_E8M0     = 12,
    TN_FLOAT6_E2M3     = 13,
    TN_FLOAT6_E3M2     = 14,
    TN_FLOAT4_E2M1     = 15,
    TN_INT64           = 16,
    TN_INT32           = 17,
    TN_INT16           = 18,
    TN_INT8            = 19,
    TN_INT4            = 20,
    TN_INT2            = 21,
    TN_UINT64          = 22,
    TN_UINT32          = 23,
    TN_UINT16          = 24,
    TN_UINT8           = 25,
    TN_UINT4           = 26,
    TN_UINT2           = 27,
    TN_BOOL            = 28,    /* one byte; any non-zero byte is true */
    TN_COMPLEX64       = 29,    /* two float32: real, imaginary */
    TN_COMPLEX128      = 30,    /* two float64: real, imaginary */
    TN_FX8             = 31,    /* MLI fixed point: an int8 whose tensor says where the binary point is */
    TN_FX16            = 32,
    TN_DTYPE_COUNT     = 33
} tn_dtype;                     /* values are ABI: append, never renumber */

typedef enum tn_kind {
    TN_KIND_NONE, TN_KIND_FLOAT, TN_KIND_INT, TN_KIND_UINT, TN_KIND_BOOL, TN_KIND_COMPLEX, TN_KIND_FIXED
} tn_kind;

/* Which codes of a float type are not finite numbers. */
typedef enum tn_specials {
    TN_SPECIALS_NONE,           /* not a float, or every code is a finite number */
    TN_SPECIALS_IEEE,           /* all-ones exponent: infinity (mantissa 0) or NaN */
    TN_SPECIALS_FN,             /* no infinity; NaN is all ones after the sign */
    TN_SPECIALS_FNUZ,           /* no infinity, no -0; NaN is the code of -0 */
    TN_SPECIALS_E8M0            /* unsigned power of two; NaN is 255 */
} tn_specials;

typedef struct tn_dtype_info {
    tn_dtype    dtype;
    const char *name;           /* canonical: "float8_e4m3fn" */
    tn_kind     kind;
    uint8_t     bits;           /* of one element as stored; complex64 has 64, tf32 has 32 */
    uint8_t     swap_bytes;     /* unit that byte order reverses: 1, 2, 4 or 8 */
    uint8_t     exponent_bits;  /* floats; of each half for complex; else 0 */
    uint8_t     mantissa_bits;  /* stored ones; 10 for tf32 */
    int16_t     bias;
    tn_specials specials;
    /* The name in each ecosystem, or NULL where it has none. */
    const char *short_name;     /* "f8e4m3fn", "bf16", "i4" */
    const char *wia;            /* "FP8_E4M3" */
    const char *ztensor;        /* zTensor 0.1: "bfloat16" */
    const char *safetensors;    /* "F8_E4M3" */
    const char *numpy;          /* array-protocol code or ml_dtypes name: "<f4", "bfloat16" */
    const char *torch;          /* "float8_e4m3fn" */
    const char *mli;            /* "MLI_EL_FX_8" */
    int16_t     btf;            /* code, or -1 */
    int16_t     dlpack_code;    /* DLDataTypeCode, or -1 */
} tn_dtype_info;

/* The row of a type; NULL for TN_UNKNOWN and values out of range. */
TN_API const tn_dtype_info *tn_dtype_get(tn_dtype dtype);

/* Finds the type for any ecosystem's spelling ("F8_E4M3", "float8_e4m3fn",
 * "BFLOAT16", "bf16", "<f4", "torch.float32", "i4" is int4, "<i4" is int32);
 * TN_UNKNOWN when there is none.  NumPy's byte order marks are accepted and
 * not part of the answer. */
TN_API tn_dtype tn_dtype_parse(const char *text);

#ifdef __cplusplus
}
#endif
#endif
