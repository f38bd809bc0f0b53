/* tenon/dlpack.h - tensors handed to and taken from other libraries of this
 * process: DLPack 1.x (versioned).
 *
 * The structures are DLPack's own; include its header before or after this one
 * to look into them, or hand them on as a Python capsule called
 * "dltensor_versioned". */
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H

#include <tenon/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensorVersioned;

/* A dense or strided array whose element 0 is at byte `offset` of a buffer, as
 * DLPack's.  Types narrower than a byte are dense; they stay packed, one lane an
 * element.  Strides are always written, and element 0 is at `data` itself:
 * byte_offset is 0, so data is aligned as the element is.
 *
 * The result holds a reference to the buffer until its deleter is called, once,
 * from any thread.  It is read-only if the buffer is: freeze a buffer before,
 * not after.
 *
 * TN_ERR_UNSUPPORTED: DLPack has no name for the type; memory of a device.
 * TN_ERR_ARGUMENT: an array that is not inside the buffer. */
TN_API tn_status tn_dlpack_export(const tn_array *array, tn_buffer *buffer, uint64_t offset,
                                  struct DLManagedTensorVersioned **managed, tn_error *err);

/* An array of another library's.  `array` points into it: hand on its address,
 * do not copy it. */
typedef struct tn_dlpack_array {
    tn_array   array;           /* its stride is NULL where it is row-major and dense */
    void      *data;            /* element 0; NULL: there are no elements */
    tn_buffer *buffer;          /* owned: tn_buffer_unref() it when done; calls the other library's deleter */
    int64_t    shape[TN_MAX_RANK], stride[TN_MAX_RANK];     /* stride is filled in any case */
} tn_dlpack_array;

/* Makes a buffer of a DLPack tensor and takes it over, on success only: else its
 * deleter is the caller's to call, and
 * can be, whatever was wrong.  The buffer has exactly the bytes that elements
 * are in (with negative strides it begins before `data`), and is read-only if
 * the array is.
 *
 * An element of several lanes becomes that many elements, in a last dimension
 * of its own.  Nothing is believed but what cannot be checked: where memory is.
 *
 * TN_ERR_UNSUPPORTED: a type, a device or a major version that this build does
 * not have; of types narrower than a byte: padded or strided ones, lanes that do
 * not fill bytes.  TN_ERR_LIMIT: more than TN_MAX_RANK dimensions, more bytes than
 * memory can have.  TN_ERR_CORRUPT: what makes no sense, a negative extent for one. */
TN_API tn_status tn_dlpack_import(struct DLManagedTensorVersioned *managed, tn_dlpack_array *result,
                                  tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
