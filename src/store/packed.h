/* store/packed.h - tensors whose numbers are another tool's packed codes, or belong to such codes. */
#ifndef TN_STORE_PACKED_H
#define TN_STORE_PACKED_H

#include "store/file.h"

/* Codes and what belongs to them: entries of the file that mean something together only. */
typedef struct tn_packed {
    const char *convention;     /* "NVFP4 (ModelOpt)", for "codes of ..." */
    const char *codes;          /* the name of the tensor with the codes */
    const char *missing;        /* the name of a part that is not there or has another type, or NULL */
    const char *why;            /* it cannot be decoded, or NULL */
    size_t      count;          /* entries of the file */
    const tn_tensor *tensor;    /* what they make together; the file lists it instead of them.  NULL: they
                                 * are listed as they are */
} tn_packed;

/* An entry of the container, and the tensor of the file that it is or belongs to. */
typedef struct tn_listed {
    tn_tensor entry;
    size_t    tensor;
} tn_listed;

/* Recognises them by names, types, shapes and the config.json beside the file, and sets file->packed.
 * Entries that can be decoded become one tensor.  A config.json that cannot be read is a warning. */
tn_status tn_packed_find(tn_file *file, tn_error *err);

/* What one of the file's tensors was recognised as; NULL: nothing, or the tensor is a copy. */
static inline const tn_packed *tn_packed_known(const tn_file *file, const tn_tensor *tensor)
{
    bool own = tensor >= file->tensors && tensor < file->tensors + file->count;
    return own && file->packed ? file->packed[tensor - file->tensors] : NULL;
}

/* What it is a part of, where it has no values of its own; NULL: its numbers are numbers. */
static inline const tn_packed *tn_packed_of(const tn_file *file, const tn_tensor *tensor)
{
    const tn_packed *packed = tn_packed_known(file, tensor);
    return packed && !packed->tensor ? packed : NULL;
}

/* TN_ERR_UNSUPPORTED, with the tensor's name: it is not made of plain numbers. */
tn_status tn_packed_refuse(const tn_packed *packed, const tn_tensor *tensor, tn_error *err);

#endif
