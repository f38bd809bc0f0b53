/* quant/grammar/datatype.h - the struct of a datatype: number, scale, tiles, codebook.
 *
 * datatype.c        the grammar NUMBER|SCALE
 * affine.c          affine datatypes
 * datatype_number.c number specs
 * datatype_names.c  the predefined names
 * datatype_shapes.c shapes of parts
 * datatype_store.c  data stored as float8 numbers
 * codebook.c        codebooks named by a pattern
 * codebook_table.c  codebooks with a table in the text
 * codebook_json.c   codebooks from JSON */
#ifndef TN_QUANT_GRAMMAR_DATATYPE_H
#define TN_QUANT_GRAMMAR_DATATYPE_H

#include "base/text.h"

#include <tenon/datatype.h>

typedef enum tn_number_kind {
    TN_NUMBER_FLOAT,            /* signed: sign, exponent, mantissa */
    TN_NUMBER_INT,              /* signed: -maxint to maxint; with an exponent scale code 2^(bits - 2) is 1 */
    TN_NUMBER_UINT,             /* 0 to maxint, always with a zero point */
    TN_NUMBER_EXPONENT,         /* a power of two; scales only */
    TN_NUMBER_CODEBOOK          /* values from a table */
} tn_number_kind;

/* One number spec and the fields derived from it. */
typedef struct tn_number_spec {
    tn_number_kind kind;
    char     text[48];          /* canonical */
    uint8_t  bits, exponent_bits, mantissa_bits;
    int16_t  bias;
    enum { TN_INFNAN_IEEE, TN_INFNAN_FN, TN_INFNAN_FNUZ, TN_INFNAN_INUZ } infnan;
    int      emax, emin;        /* float, int */
    float    maxfloat;
    double   midmax;            /* TN_SCALE_MIDMAX increases the exponent above this; exact */
    int32_t  maxint;            /* int, uint */
    /* Floats: a row like those of the type table, for tn_number_encode().  fnuz
     * and inuz of 6 bits and fewer have no NaN and do have -0.  The largest code
     * of inuz is not a number: clamp to maxfloat before encoding. */
    tn_dtype_info type;
    tn_dtype dtype;             /* the element type with the same codes, or TN_UNKNOWN */
} tn_number_spec;

/* Mappings of a codebook.  The values of a mapping begin with 0 and ascend. */
typedef struct tn_codebook {
    unsigned index_bits, meta_bits;
    tn_number_spec compute;
    uint32_t mappings, values;  /* 2^meta_bits and 2^(index_bits - 1) */
    const float *value;         /* [mappings][values] */
    bool     table;             /* the text of the datatype contains the table */
} tn_codebook;

typedef enum tn_scope { TN_SCOPE_NONE, TN_SCOPE_TENSOR, TN_SCOPE_CHANNEL, TN_SCOPE_TILE } tn_scope;

struct tn_datatype {
    char          *text;
    const struct tn_quantizer *quantizer;
    bool           is_affine;           /* the other fields follow from `affine` */
    tn_affine      affine;              /* with the actual range of codes */
    tn_number_spec number;
    tn_codebook    codebook;            /* kind CODEBOOK */
    tn_scope       scope;               /* NONE: unscaled */
    bool           has_zero, has_tensor_scale;
    tn_number_spec tensor_scale, scale, zero;
    uint32_t       dims;                /* tiled dimensions, 1 or 2; 0: one scale per tensor */
    int32_t        dim;                 /* the (first) tiled dimension; negative: from the end */
    uint32_t       tile[2];             /* kept values along each; 0: the whole dimension */
    uint32_t       subtile;             /* kept values per subtile; 0: none */
    unsigned       offset_bits;         /* exponent offset of a subtile; 0: none */
    unsigned       keep, of;            /* N:M sparsity; of == 0: none */
    const struct tn_block_info *block;  /* a block type, whose scales are among the codes; or NULL */
};

/* ---- affine datatypes (affine.c) ---- */

enum { TN_AFFINE_SHORT_BITS = 15 };     /* of an MLI scale: a positive int16 with an exponent */

/* Sets *affine for fx8, fx16, sa8 or sa32, in any case.  False: another name. */
bool tn_affine_named(tn_text name, tn_affine *affine);

/* That name, or the name of the type of codes. */
const char *tn_affine_name(const tn_affine *affine);

/* Check the type and the range of codes.  TN_ERR_ARGUMENT: not valid.  *range: the actual range. */
tn_status tn_affine_check_codes(tn_dtype codes, tn_error *err);
tn_status tn_affine_range(const tn_affine *affine, int64_t range[2], tn_error *err);

/* Whether a text looks like an affine datatype; parse one; parse NUMBER|SCALE. */
bool      tn_affine_is_text(const char *text);
tn_status tn_affine_parse(const char *text, tn_datatype **datatype, tn_error *err);
tn_status tn_tiles_parse(const char *text, tn_datatype **datatype, tn_error *err);

/* Add the parts of a tensor to *shapes, which is empty.  The shape of the tensor is valid. */
tn_status tn_affine_shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape,
                           tn_scaled_shapes *shapes, tn_error *err);
tn_status tn_tile_shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *shapes,
                         tn_error *err);

/* Sets codes[c] to the float8 code with the same value as code c.  `store` is
 * float8_e4m3fn or float8_e5m2.
 * TN_ERR_ARGUMENT: another type, not a float of at most 8 bits, or the type lacks one
 * of its values. */
tn_status tn_datatype_store_codes(const tn_datatype *d, tn_dtype store, uint8_t codes[256], tn_error *err);

/* Parses a datatype and replaces its number by `store`: data stored as float8 numbers
 * is decoded with it.  TN_UNKNOWN: keeps the number. */
tn_status tn_datatype_parse_stored(const char *text, tn_dtype store, tn_datatype **datatype, tn_error *err);

#endif
