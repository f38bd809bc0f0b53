/* tenon/export.h - tensors as C source or as a flat image, for firmware.
 *
 * The tensors of an open file become structures of embARC MLI, see
 * tenon/mli.h, and the arrays they point to:
 *
 *   form scaled, int8 or int16, no zero points, one scale that is a power of
 *     two: fx8 or fx16 with frac_bits
 *   form scaled, int8 or int32, otherwise: sa8 or sa32 (not 1.0), one scale or
 *     one for each index of a dimension, as integers: exactly or not at all
 *   form dense, float32: fp32 (2.0 only)
 *
 * A scalar becomes a vector of one element, which all kernels take.  Padding
 * is left out.  What MLI has no structure for is refused before anything is
 * written; the text says what to do about it. */
#ifndef TENON_EXPORT_H
#define TENON_EXPORT_H

#include <tenon/file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_mli_version {
    TN_FOR_MLI_1_0 = 0,
    TN_FOR_MLI_1_1 = 1,
    TN_FOR_MLI_2_0 = 2
} tn_mli_version;

/* MLI asks for data that is aligned to its elements, which have at most 4
 * bytes; word loads of 32-bit processors ask for the same. */
#define TN_EXPORT_ALIGN     4
#define TN_EXPORT_MAX_ALIGN 4096

#define TN_EXPORT_MAX_NAME    63        /* bytes of the names in tn_export_options */
#define TN_EXPORT_MAX_SECTION 200

/* One tensor as it is, or would be, written. */
typedef struct tn_export_tensor {
    const tn_tensor *source;
    const char      *identifier;    /* of its structure: "model_tensor_conv1_weight"; in an image, of the
                                     * function that makes it */
    const char      *type;          /* "fx8", "fx16", "sa8", "sa32", "fp32" */
    uint32_t         rank;          /* 1 to 4 */
    const int64_t   *shape;
    int32_t          frac_bits;     /* fx only */
    int32_t          axis;          /* sa: the dimension with a scale for each index; else -1 */
    uint64_t         offset;        /* of its data in the image; in source 0 */
    uint64_t         data_bytes;
    uint64_t         parameter_bytes;   /* zero points and scales of an axis */
    uint64_t         structure_bytes;   /* on a 32-bit processor */
} tn_export_tensor;

/* Called once per tensor, in the order of the file, when all of them are known
 * to have a structure and before anything is written. */
typedef void (*tn_export_fn)(void *context, const tn_export_tensor *exported);

typedef struct tn_export_options {
    size_t             size;    /* sizeof(tn_export_options), set by the caller */
    tn_mli_version     mli;
    const char        *name;        /* of the files, and in front of every identifier: letters, digits and
                                     * single underscores between them, beginning with a letter; NULL: the
                                     * file's name, made so */
    const char        *section;     /* linker section of the data: letters, digits, '.', '_', '$', '-'; NULL:
                                     * where constants go */
    uint64_t           align;       /* of each array of data: a power of two from TN_EXPORT_ALIGN, which 0
                                     * means, to TN_EXPORT_MAX_ALIGN */
    bool               binary;      /* NAME.bin and NAME.h, not NAME.c and NAME.h */
    bool               replace;     /* existing files may be replaced */
    const char *const *only;        /* which tensors: see tn_choose(); NULL: all */
    size_t             nonly;
    tn_export_fn     report;      /* may be NULL */
    tn_progress_fn     progress;    /* may be NULL; bytes of data */
    void              *context;     /* for all callbacks */
    tn_note_fn         note;        /* may be NULL */
} tn_export_options;

/* Bytes by where they go, those that alignment takes included; on a 32-bit
 * processor.  An image holds data and parameters; its structures are made in
 * memory, if they are wanted. */
typedef struct tn_export_result {
    size_t           tensors;
    uint64_t         data_bytes;        /* in the section that was named */
    uint64_t         parameter_bytes;   /* zero points and scales of axes */
    uint64_t         structure_bytes;   /* tensors, and (not of an image) the list of them */
    uint64_t         name_bytes;        /* the texts in that list */
    const tn_tensor *largest;           /* by bytes of data, the first of equals */
    uint64_t         largest_bytes;
    char             name[TN_EXPORT_MAX_NAME + 1];    /* of the files, without folder and suffix */
} tn_export_result;

/* Writes NAME.c (or NAME.bin) and NAME.h into `folder`, which is made if it is
 * missing (its parent must exist); NULL: checks and reports only, without
 * looking at data.  Both files appear or none does: if the second cannot, the
 * first is what it was before.  The same input and options give the same
 * bytes.  Identifiers depend on nothing but the names of the file's tensors.
 * `options` and `result` may be NULL.  Memory does not grow with the tensors.
 * Error texts begin with the file concerned.
 *
 * TN_ERR_ARGUMENT: an option that makes no sense, a glob that matches nothing.
 * TN_ERR_UNSUPPORTED: a tensor that this version of MLI has no structure for.
 * TN_ERR_LOSS: a scale or zero point that its structure cannot hold exactly; in
 * source, a float that is infinite or NaN.
 * TN_ERR_LIMIT: more bytes than its structure can count, or a name of more than 1000.
 * TN_ERR_EXISTS: a file is there and `replace` is false.  TN_ERR_IO,
 * TN_ERR_CHECKSUM, TN_ERR_CORRUPT, TN_ERR_CANCELLED: nothing was replaced. */
TN_API tn_status tn_export_c(const tn_file *file, const char *folder, const tn_export_options *options,
                             tn_export_result *result, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
