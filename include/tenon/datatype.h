/* tenon/datatype.h - recipes of scaled tensors: how values become small codes
 * with scales, and back.
 *
 *     DATATYPE   NUMBER | NUMBER|SCALE | AFFINE | a predefined name, see tn_datatype_at()
 *     NUMBER     e<X>m<Y>[b<Z>][ieee|fn|fnuz|inuz]   int<K>   uint<K>   float<N>
 *                bfloat<N>   binary8p<P>   cb<I><M>...   icb<I><M>...
 *     SCALE      [multi_]NUMBER[_NUMBER][_NUMBER][_TILE[_TILE]]   n<N>m<M>[d<D>]
 *     TILE       t<T>[s<S>][o<O>][d<D>][n<N>m<M>]
 *     AFFINE     TYPE,per=tensor   TYPE,per=channel,axis=<A>   fx8   fx16   sa8   sa32,
 *                with further keys, see tn_affine
 *
 * Upper and lower case are the same.  docs/datatypes.md has the meaning of
 * every part and the table of names. */
#ifndef TENON_DATATYPE_H
#define TENON_DATATYPE_H

#include <tenon/cast.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable once made; any number of threads may share one. */
typedef struct tn_datatype tn_datatype;

/* Reads a datatype.  TN_ERR_ARGUMENT: the text says what is wrong and at which
 * character.  TN_ERR_UNSUPPORTED: matrix sparsity, and what else the text rules out. */
TN_API tn_status tn_datatype_parse(const char *text, tn_datatype **datatype, tn_error *err);

/* The same with a codebook of the caller's own: `json` is
 * {"compute":"e2m3fnuz","mappings":[[0.5,1,1.5,2,3,4,6],...]}, the
 * values of each mapping: 2^n - 1 of them, zeros first if there are any, then
 * positive ones in ascending order; one 0 more may stand before them.  `scale`
 * is a SCALE. */
TN_API tn_status tn_datatype_codebook(const char *json, size_t n, const char *scale, tn_datatype **datatype,
                                      tn_error *err);

/* As tn_datatype_parse(), but where a codebook stands there may be the path of
 * a file with its JSON, which ends in .json: "table.json|e8m0_t32s8". */
TN_API tn_status tn_datatype_load(const char *text, tn_datatype **datatype, tn_error *err);

/* Integer codes with float32 scales, one for the tensor or one for each index of
 * a dimension: value = (code - zero) * scale.  The keys of its text are in brackets. */
#define TN_PER_TENSOR (-1)

typedef enum tn_arithmetic {    /* of x / scale + zero */
    TN_ARITH_BINARY32 = 0,      /* the quotient is rounded to binary32, then to an integer */
    TN_ARITH_EXACT    = 1,      /* it is rounded once, to an integer */
    TN_ARITH_MLI      = 2       /* as embARC MLI computes it on x86: half is added to x * (1 / scale) in
                                 * binary32, which is cut off to 32 bits; round is not looked at, NaN and what
                                 * is beyond 32 bits become the lowest integer.  Values from codes: (code -
                                 * zero), cut to 32 bits and rounded to binary32, * scale */
} tn_arithmetic;

typedef struct tn_affine {
    size_t   size;              /* sizeof(tn_affine), set by the caller */
    tn_dtype codes;             /* int8, uint8, int16, uint16, int32, int4, uint4, int2 or uint2 */
    int32_t  axis;              /* dimension with a scale for each index [per=channel,axis=A], or
                                 * TN_PER_TENSOR [per=tensor] */
    bool     symmetric;         /* zero is code 0 [zero=symmetric|asymmetric]; of a signed type only */
    bool     has_zeros;         /* there is a part "zero" even where all of it is 0 [zeros=yes] */
    bool     power;             /* scales are powers of two, 2^-127 to 2^126 [power=yes]; symmetric only */
    unsigned scale_bits;        /* the mantissa of a scale has at most so many, none of them below 2^-127, for
                                 * which it is rounded up; 0: all that float32 has [scale_bits=N] */
    int64_t  range[2];          /* lowest and highest code; both 0: all of the type (symmetric: without the
                                 * lowest, -128) [range=LOW:HIGH] */
    tn_arithmetic arithmetic;   /* [arithmetic=exact|binary32|mli] */
} tn_affine;

/* Makes the datatype of an affine recipe; what its text does not say is the default of its type.
 * TN_ERR_ARGUMENT: fields that make no sense. */
TN_API tn_status tn_datatype_affine(const tn_affine *affine, tn_datatype **datatype, tn_error *err);

TN_API void tn_datatype_free(tn_datatype *datatype);    /* Frees a datatype; NULL is allowed. */

/* The text of a datatype: "NUMBER|SCALE" (or "NUMBER"), the same for all spellings of one recipe; lives
 * as long as it.  All that the recipe is: tn_datatype_parse() makes the same of
 * it, a codebook of the caller's own included. */
TN_API const char *tn_datatype_text(const tn_datatype *datatype);

/* Bits a value takes on the average in a large tensor, with all its parts. */
TN_API double tn_datatype_bits(const tn_datatype *datatype);

/* Predefined names, in the order of documentation; NULL after the last. */
typedef struct tn_datatype_name {
    const char *name;
    const char *text;           /* NUMBER|SCALE */
    const char *family;         /* "OCP MX", "integer", "codebook" ... */
} tn_datatype_name;

/* Predefined datatype i; NULL when i is out of range. */
TN_API const tn_datatype_name *tn_datatype_at(size_t i);

/* One part of a tensor of this datatype. */
typedef struct tn_scaled_part {
    const char *role;           /* "data", "scale", "tscale", "zero", "offset", "meta", "mask", "index" */
    tn_dtype    plain_dtype;    /* uncompressed: one element a value */
    int64_t     plain_shape[64];
    tn_dtype    dtype;          /* compressed: packed */
    int64_t     shape[64];
    uint32_t    rank;           /* of both */
} tn_scaled_part;

typedef struct tn_scaled_shapes {
    uint32_t       count;
    tn_scaled_part parts[7];    /* data first */
} tn_scaled_shapes;

/* The parts of a tensor of this shape, exactly as the specification says.
 * TN_ERR_ARGUMENT: a rank that the tiles do not fit. */
TN_API tn_status tn_scaled_shapes_for(const tn_datatype *datatype, uint32_t rank, const int64_t *shape,
                                      tn_scaled_shapes *shapes, tn_error *err);

/* Reads "hadamardN" or "walshN", N from 4 to 128, with random signs
 * "hadamardN:SEED"; "none".  TN_ERR_ARGUMENT: the text says what is wrong. */
TN_API tn_status tn_rotation_parse(const char *text, tn_rotation *rotation, tn_error *err);

/* Writes a rotation as text; returns the length as snprintf. */
TN_API int tn_rotation_format(char *dst, size_t cap, const tn_rotation *rotation);

#ifdef __cplusplus
}
#endif
#endif
