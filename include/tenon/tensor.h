/* tenon/tensor.h - one tensor as data: what it is called, what its elements
 * are, and the parts that make it.
 *
 * Nothing here allocates or touches a file.  These structs borrow everything
 * they point to: what an open file lends lives until that file is closed, what
 * a caller hands to a writer is copied by the call that takes it (except
 * `data`, see tenon/writer.h). */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <tenon/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_MAX_RANK 64

typedef enum tn_byte_order { TN_LITTLE_ENDIAN = 0, TN_BIG_ENDIAN = 1 } tn_byte_order;

typedef enum tn_encoding {
    TN_ENCODING_RAW     = 0,
    TN_ENCODING_ZSTD    = 1,
    TN_ENCODING_DEFLATE = 2,    /* read only */
    TN_ENCODING_UNKNOWN = 255   /* listed, cannot be read */
} tn_encoding;

/* The name of an encoding as in files, "raw", "zstd" ...; NULL: unknown. */
TN_API const char *tn_encoding_name(tn_encoding encoding);

/* The encoding of this name that data can be written with, or TN_ENCODING_UNKNOWN. */
TN_API tn_encoding tn_encoding_parse(const char *name);

typedef enum tn_checksum {
    TN_CHECKSUM_NONE    = 0,
    TN_CHECKSUM_CRC32C  = 1,
    TN_CHECKSUM_SHA256  = 2,
    TN_CHECKSUM_CRC32   = 3,    /* of zip; where data is deflated, of the decoded bytes */
    TN_CHECKSUM_UNKNOWN = 255   /* an algorithm this build cannot check */
} tn_checksum;

typedef struct tn_array {
    tn_dtype       dtype;
    uint32_t       rank;        /* 0 is a scalar; at most TN_MAX_RANK */
    const int64_t *shape;
    const int64_t *stride;      /* in elements, never bytes; NULL: row-major, dense */
} tn_array;

/* An array that is stored with padding: its elements are the first ones along each dimension. */
typedef struct tn_padded {
    const int64_t *shape;       /* extents with padding */
    double         fill;        /* the value that padding consists of, where that is known */
} tn_padded;

typedef struct tn_part {
    const char *role;           /* "data", "values", "indices", "scale" ... */
    tn_array    array;
    uint64_t    nbytes;         /* decoded, dense, without padding; 0 where the type is unknown */
    const void *data;           /* the elements in host byte order, where they can be had without a copy
                                 * or a read; else NULL.  Not always aligned to the element. */
    const tn_padded *padded;    /* or NULL: no padding */
    const struct tn_stored *stored;     /* how it lies in its file, see tn_part_stored(); NULL: it is in
                                         * memory only */
} tn_part;

/* One piece of free metadata: a text, or any CBOR value. */
typedef struct tn_meta {
    const char    *key;
    const char    *text;        /* the value if it is text, else NULL */
    const uint8_t *cbor;        /* else the value as one CBOR data item */
    size_t         cbor_size;
} tn_meta;

/* Writes a metadata value as JSON text, the form in which metadata is shown.  Writes at most
 * `cap` bytes with the closing NUL and returns the length of the whole.  CBOR
 * that JSON has no exact word for is shown as {"$cbor":"HEX"}. */
TN_API size_t tn_meta_json(const tn_meta *meta, char *dst, size_t cap);

/* An orthogonal matrix along the tiled dimension, in blocks of `size` values:
 * it spreads outliers over their block before codes are made, see
 * tn_rotation_parse(). */
typedef struct tn_rotation {
    uint32_t size;              /* 4 to 128, a power of two; 0: none */
    bool     walsh;             /* rows by number of sign changes; else Hadamard's order */
    bool     random;            /* rows with signs by seed */
    uint64_t seed;
} tn_rotation;

/* How parts make a tensor: tenon/sparse.h has the parts of coo and csr, tn_scaling is of scaled. */
typedef enum tn_form {
    TN_FORM_DENSE   = 0,
    TN_FORM_COO     = 1,
    TN_FORM_CSR     = 2,
    TN_FORM_SCALED  = 3,
    TN_FORM_BLOCKS  = 4,
    TN_FORM_UNKNOWN = 255       /* of a later version: listed, cannot be read */
} tn_form;

/* The name of a form: "dense", "coo", "csr", "scaled"; "unknown" for any other number. */
TN_API const char *tn_form_name(tn_form form);

/* How the parts of a scaled tensor make its values. */
typedef struct tn_scaling {
    /* Integer codes, (data - zero) * scale, see tenon/quantize.h: */
    int32_t axis;               /* dimension with a scale for each index, or -1: one for all */
    int64_t range[2];           /* lowest and highest code in use */
    /* By a datatype, see tenon/datatype.h; then axis and range mean nothing: */
    const char *datatype;       /* tn_datatype_text(), or NULL */
    bool        unpacked;       /* one code a byte */
    tn_rotation rotation;       /* to be undone on the values */
    tn_dtype    store;          /* data has numbers of this float8 type, not codes; TN_UNKNOWN: codes */
} tn_scaling;

typedef struct tn_tensor {
    const char    *name;        /* UTF-8 without NUL; untrusted: print through tn_escape */
    const char    *form_text;   /* the file's own name of a form this build does not know, or NULL */
    tn_form        form;        /* how the parts make the tensor */
    tn_dtype       dtype;       /* of the logical tensor */
    uint32_t       rank;
    uint32_t       nparts;
    uint32_t       nmeta;
    const int64_t *shape;       /* of the logical tensor */
    const char    *tied;        /* an earlier tensor that shares (or shared) these very bytes, or NULL */
    const tn_part *parts;       /* parts[0] is stored under the tensor's own name */
    const tn_meta *meta;
    const char    *layout;      /* letters of the dimensions, see tenon/layout.h; NULL: not known */
    const tn_scaling *scaling;  /* of a scaled tensor, else NULL */
} tn_tensor;

/* The name of a tensor's form: form_text, or else tn_form_name(). */
TN_API const char *tn_tensor_form_name(const tn_tensor *tensor);

/* Number of elements; TN_ERR_ARGUMENT for a negative extent or a rank above
 * TN_MAX_RANK, TN_ERR_LIMIT when the product does not fit int64_t. */
TN_API tn_status tn_shape_count(uint32_t rank, const int64_t *shape, uint64_t *count);

/* Bytes taken by a packed array of this description.
 *
 * Sub-byte types pack across elements: ten 4-bit values take 5 bytes.
 * TN_ERR_ARGUMENT: negative extent, unknown dtype.  TN_ERR_LIMIT: the product
 * does not fit int64_t.  *nbytes is written on success only. */
TN_API tn_status tn_array_nbytes(const tn_array *array, uint64_t *nbytes);

/* One element's value, exactly. */
typedef struct tn_value {
    tn_kind kind;               /* FLOAT: re.  COMPLEX: re, im.  INT, FIXED: i.  UINT, BOOL: u */
    double  re, im;
    int64_t i;
    uint64_t u;
} tn_value;

/* Decodes element `index` of a dense array of `dtype` in host byte order.
 * Every type's values are exact in a tn_value.  The caller keeps `index` in
 * range and the dtype known.  MLI fixed point gives the stored integer. */
TN_API tn_value tn_value_get(tn_dtype dtype, const void *data, uint64_t index);

/* Writes a value as short text: the fewest digits that read back as the same
 * value of this type (types of 8 bits or less: of float32), "nan", "inf",
 * "true".  Returns the length as snprintf. */
TN_API int tn_value_format(char *dst, size_t cap, tn_dtype dtype, tn_value value);

#ifdef __cplusplus
}
#endif
#endif
