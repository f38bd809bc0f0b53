/* formats/raw/raw.h - descriptors and their data.
 *
 *     NAME.json   a WIA-AI-011 descriptor, or an array of them
 *     NAME.bin    the data: offset_bytes is an offset in it
 *
 * The document itself holds sparse tensors, scales and zero points; the data
 * holds all parts of a tensor of a datatype.
 *
 * probe.c recognises documents.  read.c turns descriptors into entries, numbers.c
 * the numbers in them into parts.  describe.c and sparse.c write the descriptor of
 * a tensor (for src/verbs/describe.c too), write.c both files.  pair.c has their
 * names and the pair that they replace, scaled.c all about datatypes. */
#ifndef TN_CONTAINER_RAW_H
#define TN_CONTAINER_RAW_H

#include "base/vector.h"
#include "bytes/json.h"
#include "store/pair.h"
#include "store/file.h"
#include "store/writer.h"

#include <tenon/descriptor.h>

#define TN_RAW_SUFFIX       ".json"
#define TN_RAW_DATA_SUFFIX  ".bin"
#define TN_RAW_DOCUMENT_MAX 100000000u      /* bytes of JSON */

/* A member of a descriptor for what the specification has no field for, and its
 * items that are read back. */
#define TN_RAW_OWN          "tenon"
#define TN_RAW_VALUE_TYPE   "dtype"         /* of a quantized tensor's values; missing: float32 */
#define TN_RAW_INDEX_TYPE   "index"         /* of a CSR tensor; missing: int32, or int64 if needed */
#define TN_RAW_FILE_META    "file_metadata" /* of the file; in the first descriptor */
#define TN_RAW_DATA         "data"          /* name of the data file if it is not NAME.bin; in the first
                                             * descriptor */

/* --- probe.c --- */

/* Results of the probe. */
enum { TN_RAW_POSSIBLE = 10, TN_RAW_LIKELY = 40, TN_RAW_SURE = 70 };
int tn_raw_probe(const uint8_t *head, size_t n);

/* --- read.c --- */

/* The name of the data file in the first descriptor, in the arena; NULL: it has none.  TN_ERR_CORRUPT: the
 * name is not that of a file in the same folder.  `err` may be NULL. */
tn_status tn_raw_data_name(const tn_descriptor *first, uint64_t at, tn_arena *arena, const char **name,
                           tn_error *err);

/* The path of the data of the descriptors at `path`, in the arena; NULL without memory.  `name` may be
 * NULL: NAME.bin. */
const char *tn_raw_data_path(const char *path, const char *name, tn_arena *arena);

/* `if_wrong` with the first fault of a descriptor, at byte `at`. */
tn_status tn_raw_check(const tn_descriptor *d, uint64_t at, tn_status if_wrong, tn_error *err);

/* --- numbers.c --- */

/* The decoded numbers of a document: a shard of its own. */
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

/* Upper bound for the bytes of a valid descriptor's numbers; 0: it has none. */
size_t tn_raw_numbers_size(const tn_descriptor *d);

/* Reserves `size` bytes.  All files must be open. */
tn_status tn_raw_numbers_open(tn_raw_numbers *numbers, tn_file *file, size_t size, tn_error *err);

/* Add the other parts to an entry: scales to codes, all parts to a sparse tensor.
 * `index` is the type of a CSR tensor's indices in the descriptor, or TN_UNKNOWN. */
tn_status tn_raw_take_scales(tn_raw_numbers *numbers, const tn_descriptor *d, tn_entry *entry, tn_error *err);
tn_status tn_raw_take_sparse(tn_raw_numbers *numbers, const tn_descriptor *d, tn_dtype index, tn_entry *entry,
                             tn_error *err);

/* --- scaled.c --- */

enum { TN_RAW_COMPANIONS = 6 };     /* parts of a scaled tensor besides its codes */

/* The place of a part in the described buffer, or in any container. */
typedef struct tn_raw_place {
    const char *file, *encoding;    /* or NULL: that of the buffer, raw */
    uint64_t    offset, size;
} tn_raw_place;

/* The contents of TN_RAW_OWN for a tensor of a datatype.  Zero-initialise to begin. */
typedef struct tn_raw_scaled {
    tn_scaling     scaling;         /* datatype NULL: missing */
    const int64_t *shape;           /* of the tensor; NULL: missing */
    uint32_t       rank;
    uint32_t       nparts;
    tn_part        parts[TN_RAW_COMPANIONS];    /* role, array */
    uint64_t       offsets[TN_RAW_COMPANIONS];  /* of these */
} tn_raw_scaled;

/* Whether the tensor of a descriptor has a datatype. */
bool tn_raw_has_datatype(const tn_descriptor *d);

/* The member of a descriptor that tells so. */
tn_wia_extra tn_raw_scheme(void);

/* Appends the items of TN_RAW_OWN.  The first of `places` is not used. */
void tn_raw_put_scaled(tn_buf *own, const tn_tensor *tensor, const tn_raw_place *places);

/* Reads the value of such an item; false: it is another. */
bool tn_raw_take_scaled_item(tn_json *j, tn_text key, tn_raw_scaled *scaled);

/* Adds the datatype and the other parts to the entry of the codes. */
tn_status tn_raw_take_datatype(tn_file *file, tn_raw_scaled *scaled, tn_entry *entry, tn_error *err);

/* --- describe.c --- */

/* A tensor and the place of its first part in a buffer. */
typedef struct tn_raw_subject {
    const tn_tensor *tensor;        /* dense, scaled, coo or csr */
    const tn_meta   *meta;
    uint32_t         nmeta;
    uint64_t         offset, end;   /* of its bytes in the buffer */
    uint64_t         align;         /* of the buffer */
    const int64_t   *stride;        /* in elements; NULL: dense, with the padding of... */
    const int64_t   *physical;      /* ...these extents, or NULL: no padding */
    bool             in_place;      /* the bytes can be used without a copy */
    const tn_properties *properties;    /* or NULL */
    const float     *scale;         /* of a scaled tensor: one, or one per index */
    const int32_t   *zero;          /* or NULL: symmetric */
    const tn_raw_place *places;     /* of each part of a tensor of a datatype */
    const void      *data[3];       /* of a sparse tensor: that of each part, aligned for int64_t; the
                                     * descriptor points to it, and of the members above only the metadata
                                     * is used */
    const char      *content;       /* the checksum of its data, or NULL: not known */
    const tn_buf    *own;           /* further items of TN_RAW_OWN, "key":value with commas, or NULL */
} tn_raw_subject;

/* Fills `d`, tensor_id last.  What it points to is in the arena. */
tn_status tn_raw_describe(const tn_raw_subject *subject, tn_arena *arena, tn_descriptor *d, tn_error *err);

/* The number with the fewest digits that is read back as this float32. */
double tn_raw_number(float value);

/* --- sparse.c --- */

/* TN_ERR_UNSUPPORTED: a rank that the specification does not have. */
tn_status tn_raw_check_sparse(const tn_tensor *tensor, tn_error *err);

/* Adds a lower bound for the text of the tensor, from its shape, to *least, that of the tensors before it.
 * TN_ERR_LIMIT: the document would be too long to be read back. */
tn_status tn_raw_check_length(const tn_tensor *tensor, uint64_t *least, tn_error *err);

/* The sparse block.  TN_ERR_LOSS: a value that would be read back as another. */
tn_status tn_raw_describe_sparse(const tn_raw_subject *subject, tn_arena *arena, tn_wia_sparse *sparse,
                                 tn_error *err);

/* --- write.c --- */

tn_status tn_raw_plan(tn_writer *w, tn_error *err);
tn_status tn_raw_finish(tn_writer *w, tn_error *err);

/* --- pair.c --- */

extern const tn_pair tn_raw_pair;

/* The name of the data file; `id` NULL: NAME.bin.  NULL without memory. */
const char *tn_raw_member_name(tn_writer *w, size_t i, const char *id);

/* Finds the pair that the new files replace, and marks its data as obsolete. */
tn_status tn_raw_plan_old(tn_writer *w, bool *replaces, tn_error *err);

void tn_raw_look_beside(const struct tn_beside *beside);

#endif
