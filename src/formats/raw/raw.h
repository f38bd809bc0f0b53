/* formats/raw/raw.h - what the files of this folder share.
 *
 *     NAME.json   a WIA-AI-011 descriptor, or an array of them
 *     NAME.bin    the bytes they speak of: offset_bytes counts from its first
 *
 * The numbers of a sparse tensor, scales and zero points stand in the document;
 * those of a tensor of a datatype are in the data.
 *
 * probe.c recognises documents; read.c turns descriptors into entries, and
 * numbers.c what stands in them into parts; describe.c and sparse.c make the
 * descriptor of a tensor (for src/verbs/describe.c too), write.c plans and writes
 * both files, pair.c knows their names and what they replace; scaled.c has all
 * of datatypes. */
#ifndef TN_CONTAINER_RAW_H
#define TN_CONTAINER_RAW_H

#include "base/vector.h"
#include "bytes/json.h"
#include "store/file.h"
#include "store/writer.h"

#include <tenon/descriptor.h>

#define TN_RAW_SUFFIX       ".json"
#define TN_RAW_DATA_SUFFIX  ".bin"
#define TN_RAW_DOCUMENT_MAX 100000000u      /* bytes of JSON */

/* The member of a descriptor for what the specification has no field for, and
 * its items that are read back. */
#define TN_RAW_OWN          "tenon"
#define TN_RAW_VALUE_TYPE   "dtype"         /* of a quantized tensor's values; missing: float32 */
#define TN_RAW_INDEX_TYPE   "index"         /* of a CSR tensor; missing: int32, or int64 if needed */
#define TN_RAW_FILE_META    "file_metadata" /* of the file; in the first descriptor */
#define TN_RAW_DATA         "data"          /* name of the file beside the descriptors that has the data,
                                             * where it is not NAME.bin; in the first descriptor */

/* --- probe.c --- */

/* How sure the first bytes make. */
enum { TN_RAW_POSSIBLE = 10, TN_RAW_LIKELY = 40, TN_RAW_SURE = 70 };
int tn_raw_probe(const uint8_t *head, size_t n);

/* --- read.c --- */

/* The name that the first descriptor gives the data, in the arena; NULL: none.  TN_ERR_CORRUPT: one that
 * leads out of the folder. */
tn_status tn_raw_data_name(const tn_descriptor *first, uint64_t at, tn_arena *arena, const char **name,
                           tn_error *err);

/* The path of the data beside the descriptors at `path`, in the arena; NULL without memory.  `name` may be
 * NULL: what the path says. */
const char *tn_raw_data_path(const char *path, const char *name, tn_arena *arena);

/* `if_wrong` with the first thing that is wrong in a descriptor, at byte `at`. */
tn_status tn_raw_check(const tn_descriptor *d, uint64_t at, tn_status if_wrong, tn_error *err);

/* --- numbers.c --- */

/* What the documents hold in place of data: decoded, in a shard of its own. */
typedef struct tn_raw_numbers {
    tn_file *file;
    uint8_t *bytes;
    size_t   used;
    uint32_t shard;
} tn_raw_numbers;

/* Codes with scales; the form "scaled". */
bool tn_raw_is_quantized(const tn_descriptor *d);

/* A sparse tensor that can be read; the form "coo" or "csr". */
bool tn_raw_is_sparse(const tn_descriptor *d);

/* Bytes that the numbers of a descriptor that is right take at most; 0: it has none. */
size_t tn_raw_numbers_size(const tn_descriptor *d);

/* Makes room for `size` bytes, after all files are open. */
tn_status tn_raw_numbers_open(tn_raw_numbers *numbers, tn_file *file, size_t size, tn_error *err);

/* Adds the other parts to an entry that is complete but for them: to codes their
 * scales; to the shape of a sparse tensor all that it has.  `index` is what the
 * descriptor says of a CSR tensor, or TN_UNKNOWN. */
tn_status tn_raw_take_scales(tn_raw_numbers *numbers, const tn_descriptor *d, tn_entry *entry, tn_error *err);
tn_status tn_raw_take_sparse(tn_raw_numbers *numbers, const tn_descriptor *d, tn_dtype index, tn_entry *entry,
                             tn_error *err);

/* --- scaled.c --- */

enum { TN_RAW_COMPANIONS = 6 };     /* parts of a scaled tensor beside its codes */

/* Where a part lies in the buffer that is described; of one in any container also how. */
typedef struct tn_raw_place {
    const char *file, *encoding;    /* or NULL: the buffer's own, as it is */
    uint64_t    offset, size;
} tn_raw_place;

/* What TN_RAW_OWN says of a tensor of a datatype.  Zero-initialise to begin. */
typedef struct tn_raw_scaled {
    tn_scaling     scaling;         /* datatype NULL: nothing is said */
    const int64_t *shape;           /* of the tensor; NULL: not said */
    uint32_t       rank;
    uint32_t       nparts;
    tn_part        parts[TN_RAW_COMPANIONS];    /* role, array */
    uint64_t       offsets[TN_RAW_COMPANIONS];  /* of these */
} tn_raw_scaled;

/* The tensor has a datatype; the descriptor says that its tensor has one. */
bool tn_raw_of_datatype(const tn_tensor *tensor);
bool tn_raw_has_datatype(const tn_descriptor *d);

/* The member of a descriptor that says so. */
tn_wia_extra tn_raw_scheme(void);

/* Appends the items of TN_RAW_OWN, with commas between them; of `places` the first is not looked at. */
void tn_raw_put_scaled(tn_buf *own, const tn_tensor *tensor, const tn_raw_place *places);

/* Takes the value of such an item; false: it is another. */
bool tn_raw_take_scaled_item(tn_json *j, tn_text key, tn_raw_scaled *scaled);

/* Adds it to an entry that is complete but for this: that of the codes. */
tn_status tn_raw_take_datatype(tn_file *file, tn_raw_scaled *scaled, tn_entry *entry, tn_error *err);

/* --- describe.c --- */

/* A tensor and where the array of its first part lies in a buffer. */
typedef struct tn_raw_subject {
    const tn_tensor *tensor;        /* dense, scaled, coo or csr */
    const tn_meta   *meta;
    uint32_t         nmeta;
    uint64_t         offset, end;   /* of its bytes in the buffer */
    uint64_t         align;         /* of the buffer */
    const int64_t   *stride;        /* in elements; NULL: dense, with the padding of... */
    const int64_t   *physical;      /* ...these extents, or NULL: no padding */
    bool             in_place;      /* the bytes can be used as they lie there */
    const tn_properties *properties;    /* or NULL: nothing is known of its use */
    const float     *scale;         /* of a scaled tensor, one or one an index */
    const int32_t   *zero;          /* or NULL: symmetric */
    const tn_raw_place *places;     /* of a tensor of a datatype: where each part lies */
    const void      *data[3];       /* of a sparse tensor: that of each part, for int64_t to be read from; the
                                     * descriptor keeps pointing to it, and nothing above but metadata
                                     * counts */
    const char      *content;       /* the checksum of its data, or NULL: not known */
    const tn_buf    *own;           /* items of TN_RAW_OWN, "key":value with commas between them, or NULL */
} tn_raw_subject;

/* Fills `d` with all of it, tensor_id last; what it points to is in the arena. */
tn_status tn_raw_describe(const tn_raw_subject *subject, tn_arena *arena, tn_descriptor *d, tn_error *err);

/* The number in a document that stands for a float32: the one with the fewest digits. */
double tn_raw_number(float value);

/* --- sparse.c --- */

/* TN_ERR_UNSUPPORTED: a rank that the specification has no words for. */
tn_status tn_raw_check_sparse(const tn_tensor *tensor, tn_error *err);

/* Adds the bytes that the numbers take at least to those of the tensors before it in the document.
 * TN_ERR_LIMIT: together they are more than can be read back.  Known from the shape alone. */
tn_status tn_raw_check_length(const tn_tensor *tensor, uint64_t *least, tn_error *err);

/* The sparse block.  TN_ERR_LOSS: a value that would come back as another. */
tn_status tn_raw_describe_sparse(const tn_raw_subject *subject, tn_arena *arena, tn_wia_sparse *sparse,
                                 tn_error *err);

/* --- write.c --- */

tn_status tn_raw_plan(tn_writer *w, tn_error *err);
tn_status tn_raw_finish(tn_writer *w, tn_error *err);

/* --- pair.c --- */

/* Bytes of a path or name before TN_RAW_SUFFIX. */
size_t tn_raw_stem_length(const char *path);

/* The name of the data: with an id, or NULL: NAME.bin; NULL without memory. */
const char *tn_raw_member_name(tn_writer *w, size_t i, const char *id);

/* Finds out whether the new files replace others, and which are to be removed. */
tn_status tn_raw_plan_old(tn_writer *w, bool *replaces, tn_error *err);

void tn_raw_look_beside(const struct tn_beside *beside);

#endif
