/* firmware/c_tensor.h - a tensor in MLI's terms: its element type, and its parameters as integers. */
#ifndef TN_FIRMWARE_C_TENSOR_H
#define TN_FIRMWARE_C_TENSOR_H

#include <tenon/export.h>
#include <tenon/mli.h>

typedef enum tn_c_kind { TN_C_FX, TN_C_SA, TN_C_FP } tn_c_kind;

#define TN_C_VERSIONS (TN_FOR_MLI_2_0 + 1)

/* One row per element type. */
typedef struct tn_c_type {
    const char *name;           /* "fx16" */
    tn_c_kind   kind;
    tn_dtype    dtype;          /* of an element */
    const char *ours[TN_C_VERSIONS];        /* el_type in tenon/mli.h; NULL: not in this version */
    const char *embarc[TN_C_VERSIONS];      /* el_type in embARC's header */
} tn_c_type;

/* The row of this kind and element type, or NULL. */
const tn_c_type *tn_c_type_find(tn_c_kind kind, tn_dtype dtype);

/* One row per version. */
typedef struct tn_c_version {
    const char *name;           /* "1.0" */
    const char *tensor;         /* in tenon/mli.h */
    uint32_t    bytes;          /* of a structure on a 32-bit processor */
    uint64_t    most;           /* bytes and elements of a dimension */
} tn_c_version;

extern const tn_c_version tn_c_versions[TN_C_VERSIONS];

/* The arrays that a structure points to. */
typedef enum tn_c_array { TN_C_DATA, TN_C_ZERO, TN_C_SCALE, TN_C_FRAC, TN_C_ARRAYS } tn_c_array;

typedef struct tn_c_tensor {
    const tn_tensor *source;
    const char      *id;            /* the end of its identifiers: model_data_ID */
    const tn_c_type *type;
    uint32_t         rank;
    int64_t          shape[TN_MLI_MAX_RANK];    /* 0 beyond the rank */
    uint64_t         count;
    int32_t          frac_bits;     /* fx: of the elements; sa: of the scale or, in 1.1, of all scales */
    int32_t          axis;          /* sa: dimension with a scale for each index, or -1 */
    int32_t          zero, scale;   /* sa: with axis -1 */
    uint64_t         at[TN_C_ARRAYS];   /* offsets in an image */
} tn_c_tensor;

/* Number (0: no array), type and bytes of the elements of an array. */
uint64_t tn_c_array_count(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array);
tn_dtype tn_c_array_type(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array);
uint64_t tn_c_array_bytes(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array);

/* Whether a scale is 2^-frac_bits. */
bool tn_c_frac_bits(float scale, int32_t *frac_bits);

/* The fractional bits that use all bits of a scale's integer, at most 127. */
int32_t tn_c_scale_frac(tn_mli_version mli, float scale);

/* The integer of a scale with so many fractional bits; false: it is not exact or does not fit. */
bool tn_c_scale_integer(tn_mli_version mli, float scale, int32_t frac_bits, int32_t *integer);

/* Computes n elements of an array of parameters from int32 zero points or float32 scales, which are known to
 * fit.  `out` has as many bytes as `in`. */
void tn_c_array_make(const tn_c_tensor *t, tn_mli_version mli, tn_c_array array, const uint8_t *in, size_t n,
                     uint8_t *out);

#endif
