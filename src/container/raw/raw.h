/* container/raw/raw.h - what the files of this folder share.
 *
 *     NAME.json   a WIA-AI-011 descriptor, or an array of them
 *     NAME.bin    the bytes they speak of: offset_bytes counts from its first
 *
 * read.c turns descriptors into entries, describe.c makes the descriptor of a tensor (for src/describe.c too),
 * write.c plans and writes both files. */
#ifndef TN_CONTAINER_RAW_H
#define TN_CONTAINER_RAW_H

#include "base/vector.h"
#include "container/file.h"
#include "container/writer.h"

#include <tenon/descriptor.h>

#define TN_RAW_SUFFIX       ".json"
#define TN_RAW_DATA_SUFFIX  ".bin"
#define TN_RAW_DOCUMENT_MAX 100000000u      /* bytes of JSON */

/* The member of a descriptor for what the specification has no field for, and
 * its items that are read back. */
#define TN_RAW_OWN          "tenon"
#define TN_RAW_VALUE_TYPE   "dtype"         /* of the values of a quantized tensor; float32 where it is missing */
#define TN_RAW_FILE_META    "file_metadata" /* of the file; in the first descriptor */

/* --- read.c --- */

/* The path of the data beside the descriptors at `path`, in the arena; NULL without memory. */
const char *tn_raw_data_path(const char *path, tn_arena *arena);

/* `if_wrong` with the first thing that is wrong in a descriptor, at byte `at`. */
tn_status tn_raw_check(const tn_descriptor *d, uint64_t at, tn_status if_wrong, tn_error *err);

tn_status tn_raw_open(tn_file *file, tn_error *err);

/* --- describe.c --- */

/* A tensor and where the array of its first part lies in a buffer. */
typedef struct tn_raw_subject {
    const tn_tensor *tensor;        /* dense or scaled */
    const tn_meta   *meta;
    uint32_t         nmeta;
    uint64_t         offset, end;   /* of its bytes in the buffer */
    uint64_t         align;         /* of the buffer */
    const int64_t   *stride;        /* in elements; NULL: dense, with the padding of... */
    const int64_t   *physical;      /* ...these extents, or NULL: no padding */
    bool             in_place;      /* the bytes can be used as they lie there */
    const float     *scale;         /* of a scaled tensor, one or one an index */
    const int32_t   *zero;          /* or NULL: symmetric */
    const char      *content;       /* the checksum of its data, or NULL: not known */
    const tn_buf    *own;           /* items of TN_RAW_OWN, "key":value with commas between them, or NULL */
} tn_raw_subject;

/* Fills `d` with all of it, tensor_id last; what it points to is in the arena. */
tn_status tn_raw_describe(const tn_raw_subject *subject, tn_arena *arena, tn_descriptor *d, tn_error *err);

/* The number in a document that stands for a float32: the one with the fewest digits. */
double tn_raw_number(float value);

/* --- write.c --- */

tn_status tn_raw_plan(tn_writer *w, tn_error *err);
tn_status tn_raw_finish(tn_writer *w, tn_error *err);

#endif
