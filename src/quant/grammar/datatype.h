/* quant/grammar/datatype.h - the inside of a datatype: number specs, scale specs,
 * codebooks, and how a tensor is cut into tiles.
 *
 * datatype.c        the grammar
 * affine.c          codes with scales along whole dimensions
 * datatype_number.c number specs
 * datatype_names.c  the predefined names
 * datatype_shapes.c part shapes
 * datatype_store.c  codes stored as the numbers they are
 * codebook.c        the mappings that a codebook's name stands for
 * codebook_table.c  those that stand in its text */
#ifndef TN_QUANT_GRAMMAR_DATATYPE_H
#define TN_QUANT_GRAMMAR_DATATYPE_H

#include "base/text.h"

#include <tenon/datatype.h>

typedef enum tn_number_kind {
    TN_NUMBER_FLOAT,            /* signed: sign, exponent, mantissa */
    TN_NUMBER_INT,              /* signed: -maxint .. maxint, code 2^(bits - 2) is 1.0 where the scale is an
                                 * exponent */
    TN_NUMBER_UINT,             /* 0 .. maxint, always with a zero point */
    TN_NUMBER_EXPONENT,         /* unsigned power of two: scales only */
    TN_NUMBER_CODEBOOK          /* values of a table */
} tn_number_kind;

/* One number spec with what follows from it (reference: derived fields). */
typedef struct tn_number_spec {
    tn_number_kind kind;
    char     text[48];          /* canonical */
    uint8_t  bits, exponent_bits, mantissa_bits;
    int16_t  bias;
    enum { TN_INFNAN_IEEE, TN_INFNAN_FN, TN_INFNAN_FNUZ, TN_INFNAN_INUZ } infnan;
    int      emax, emin;        /* float, int */
    float    maxfloat;
    double   midmax;            /* exact; compared with exactly */
    int32_t  maxint;            /* int, uint */
    /* How a code is encoded and decoded, as a row of the type table would say
     * it (floats; tn_number_encode() takes it).  fnuz and inuz of 6 bits and
     * fewer have neither NaN nor a missing -0, whatever they say.  The largest
     * code of inuz is no number here: clamp to maxfloat before encoding. */
    tn_dtype_info type;
    tn_dtype dtype;             /* the type of the table with these very codes, or TN_UNKNOWN */
} tn_number_spec;

/* Mappings of a codebook: positive values, ascending, the first is 0. */
typedef struct tn_codebook {
    unsigned index_bits, meta_bits;
    tn_number_spec compute;
    uint32_t mappings, values;  /* 2^meta_bits and 2^(index_bits - 1) */
    const float *value;         /* [mappings][values] */
    bool     table;             /* no name says what they are: they stand in the text of the datatype */
} tn_codebook;

typedef enum tn_scope { TN_SCOPE_NONE, TN_SCOPE_TENSOR, TN_SCOPE_CHANNEL, TN_SCOPE_TILE } tn_scope;

struct tn_datatype {
    char          *text;
    const struct tn_quantizer *quantizer;       /* what makes codes by it */
    bool           is_affine;           /* then `affine` says it all, and the other fields follow */
    tn_affine      affine;              /* its range is that of the codes */
    tn_number_spec number;
    tn_codebook    codebook;            /* kind CODEBOOK */
    tn_scope       scope;               /* NONE: unscaled */
    bool           has_zero, has_tensor_scale;
    tn_number_spec tensor_scale, scale, zero;
    uint32_t       dims;                /* that are tiled: 1 or 2 */
    int32_t        dim;                 /* the (first) tiled one; negative: from the last */
    uint32_t       tile[2];             /* kept values along each; 0: all of the dimension */
    uint32_t       subtile;             /* values of one, 0: none */
    unsigned       offset_bits;         /* of a subtile's exponent, 0: none */
    unsigned       keep, of;            /* N:M sparsity; of 0: none */
};

/* ---- affine datatypes (affine.c) ---- */

enum { TN_AFFINE_SHORT_BITS = 15 };     /* of a scale: MLI has them as positive int16 with an exponent */

/* fx8, fx16, sa8 and sa32 in any case; false: another name. */
bool tn_affine_named(tn_text name, tn_affine *affine);

/* That name, or the name of the codes' type. */
const char *tn_affine_name(const tn_affine *affine);

/* TN_ERR_ARGUMENT and a text: not a type of codes; a range that is none of it.  *range is the one in use. */
tn_status tn_affine_check_codes(tn_dtype codes, tn_error *err);
tn_status tn_affine_range(const tn_affine *affine, int64_t range[2], tn_error *err);

/* Whether a text is meant to be an affine datatype, and what it is; what it is if it is a number spec and a
 * scale spec. */
bool      tn_affine_is_text(const char *text);
tn_status tn_affine_parse(const char *text, tn_datatype **datatype, tn_error *err);
tn_status tn_tiles_parse(const char *text, tn_datatype **datatype, tn_error *err);

/* The parts of a tensor of such datatypes; *shapes is empty, the tensor's shape was checked. */
tn_status tn_affine_shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape,
                           tn_scaled_shapes *shapes, tn_error *err);
tn_status tn_tile_shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *shapes,
                         tn_error *err);

/* Codes of small floats may be stored, one per byte, as the numbers of
 * float8_e4m3fn or float8_e5m2 that they are: codes[c] is that of code c.
 * TN_ERR_ARGUMENT: another type, another number than a float of at most 8 bits,
 * or one with values that the type does not have. */
tn_status tn_datatype_store_codes(const tn_datatype *d, tn_dtype store, uint8_t codes[256], tn_error *err);

/* The datatype by which what is so stored is read: that of the text with another
 * number.  TN_UNKNOWN as `store`: the text's own. */
tn_status tn_datatype_parse_stored(const char *text, tn_dtype store, tn_datatype **datatype, tn_error *err);

#endif
