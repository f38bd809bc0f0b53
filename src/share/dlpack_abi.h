/* share/dlpack_abi.h - the structures and numbers of DLPack 1.x that Tenon needs, so that dlpack.h need not
 * be installed. */
#ifndef TN_SHARE_DLPACK_ABI_H
#define TN_SHARE_DLPACK_ABI_H

#include <tenon/dlpack.h>

#define TN_DLPACK_MAJOR     1u
#define TN_DLPACK_MINOR     2u      /* whose rules are kept: strides are never left out */

#define TN_DLPACK_READ_ONLY ((uint64_t)1 << 0)
#define TN_DLPACK_COPIED    ((uint64_t)1 << 1)      /* the consumer is the only one who has it */
#define TN_DLPACK_PADDED    ((uint64_t)1 << 2)      /* types narrower than a byte: one byte an element */

enum {                                  /* device types whose memory the CPU sees as its own */
    TN_DLPACK_CPU       = 1,
    TN_DLPACK_CUDA_HOST = 3,            /* page-locked by CUDA */
    TN_DLPACK_ROCM_HOST = 11            /* page-locked by ROCm */
};

typedef struct tn_dlpack_type {
    uint8_t  code;                      /* tn_dtype_info.dlpack_code */
    uint8_t  bits;                      /* of one lane */
    uint16_t lanes;                     /* side by side in one element */
} tn_dlpack_type;

typedef struct tn_dlpack_tensor {
    void          *data;
    int32_t        device_type;
    int32_t        device_id;
    int32_t        ndim;
    tn_dlpack_type type;
    int64_t       *shape;
    int64_t       *strides;             /* in elements; NULL: row-major, dense (before 1.2) */
    uint64_t       byte_offset;         /* of element 0, from data */
} tn_dlpack_tensor;

/* Up to `flags` the same in every version to come, so that the deleter of any can be called. */
struct DLManagedTensorVersioned {
    uint32_t         major;
    uint32_t         minor;
    void            *context;           /* the producer's own */
    void           (*deleter)(struct DLManagedTensorVersioned *self);       /* or NULL */
    uint64_t         flags;
    tn_dlpack_tensor tensor;
};

#endif
