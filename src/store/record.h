/* store/record.h - what a flat container cannot say, kept beside it.
 *
 * A flat container lists plain arrays.  A tensor with several parts, a type the
 * container has no name for, a note that two tensors were one: each is said in
 * a record, a small CBOR map stored with the entry (zTensor: the custom field
 * `tenon`; safetensors: as JSON under the metadata key `tenon:NAME`).
 *
 *     dtype, shape    the array this entry's bytes really are
 *     tensor          { form, dtype, shape, parts }: the tensor whose first part
 *                     this entry is; part k > 0 is the entry NAME.ROLE, unless
 *                     `entries` has the names of all of these.  A scaled
 *                     tensor: also { axis, range } of its codes, without axis if
 *                     there is one scale for all; or its datatype, and of
 *                     { unpacked, rotation, store } what it has
 *     extents         the array's shape without the padding that `shape` (or the entry's own) has
 *     fill            the value that the padding consists of, if not 0
 *     layout          the letters of the tensor's dimensions
 *     tied            the earlier tensor that had the very same bytes
 *     file            the file's metadata (zTensor, first entry only)
 *     meta            the tensor's metadata (safetensors only)
 */
#ifndef TN_STORE_RECORD_H
#define TN_STORE_RECORD_H

#include "base/arena.h"
#include "base/text.h"
#include "base/vector.h"
#include "bytes/cbor.h"
#include "bytes/json.h"
#include "store/format.h"

#include <tenon/datatype.h>

typedef struct tn_record {
    bool           has_array;
    const char    *type;        /* as read; dtype is TN_UNKNOWN for one of a later version */
    tn_dtype       dtype;
    uint32_t       rank;
    const int64_t *shape;

    const char    *form;        /* NULL: the entry is a tensor of its own */
    const char    *tensor_type;
    tn_dtype       tensor_dtype;
    uint32_t       tensor_rank;
    const int64_t *tensor_shape;
    const char   **roles;
    uint32_t       nroles;
    const char   **entries;     /* names of the parts but the first, nroles - 1; NULL: NAME.ROLE */
    const tn_scaling *scaling;  /* or NULL */

    const int64_t *extents;     /* or NULL: no padding */
    uint32_t       extents_rank;
    double         fill;
    const char    *layout;
    const char    *tied;
    const tn_meta *file_meta, *meta;
    size_t         nfile_meta, nmeta;
} tn_record;

/* True when there is nothing to say. */
bool tn_record_empty(const tn_record *record);

/* Appends the record as one CBOR map. */
void tn_record_put(const tn_record *record, tn_buf *out);

/* Appends a copy of a record (which may be empty) that says this of the file's
 * metadata and nothing of the tensor's, if there is anything to say; after its key. */
tn_status tn_record_put_edited(tn_text cbor, const char *key, const tn_meta *file_meta, size_t n,
                               tn_arena *arena, tn_buf *out, tn_error *err);

/* Reads a record; what it points to is in the arena.  Unknown keys are
 * ignored; a wrong type is TN_ERR_CORRUPT at byte `at`. */
tn_status tn_record_parse(tn_text cbor, uint64_t at, tn_arena *arena, tn_record *record, tn_error *err);

/* The datatype of the scaling that was kept last: others often have the same, and one with a table takes long
 * to read. Zero-initialise to begin. */
typedef struct tn_kept_datatype {
    tn_datatype *datatype;      /* NULL: none, or it cannot be read; to be freed */
    const char  *text;          /* in the arena */
    tn_dtype     store;         /* of the scaling: it is read by */
} tn_kept_datatype;

/* A copy in the arena, its datatype as tn_datatype_text() spells it (one that cannot be read: as it is); NULL
 * without memory. */
const tn_scaling *tn_scaling_keep(tn_arena *arena, const tn_scaling *scaling, tn_kept_datatype *last);

/* What the datatype of a scaling was read as when it was kept; NULL: it has none, or was not the last. */
const tn_datatype *tn_scaling_datatype(const tn_scaling *scaling, const tn_kept_datatype *last);

/* The plain array in which a container keeps one of `dtype` and `shape`: the
 * same where it has a name for the type, else a type of the same bytes. */
typedef struct tn_carrier {
    tn_dtype dtype;
    uint32_t rank;
    int64_t  shape[TN_MAX_RANK];
    bool     same;              /* no record is needed */
} tn_carrier;
tn_status tn_carrier_for(const tn_format *format, tn_dtype dtype, uint32_t rank, const int64_t *shape,
                         tn_carrier *carrier, tn_error *err);

/* Metadata as a CBOR map and back: keys in order, no duplicates. */
void tn_meta_put_map(const tn_meta *meta, size_t n, tn_buf *out);
tn_status tn_meta_parse_map(tn_text cbor, uint64_t at, tn_arena *arena, const tn_meta **meta, size_t *n,
                            tn_error *err);

/* The same as a JSON object, exactly (meta_json.c); offsets of errors mean nothing. */
void tn_meta_put_json(tn_buf *out, const tn_meta *meta, size_t n);
tn_status tn_meta_read_json(tn_text json, tn_arena *arena, const tn_meta **meta, size_t *n, tn_error *err);

/* Takes the next CBOR value as that of `meta`, whose key is set; failures are c's. */
void tn_meta_take(tn_cbor *c, tn_meta *meta);

/* TN_ERR_CORRUPT at byte `at` when two items have one key. */
tn_status tn_meta_check_unique(const tn_meta *meta, size_t n, uint64_t at, tn_error *err);

/* Parses a CBOR array of dimensions: into the reader's arena, unless they are those of
 * `known`, of *rank dimensions, which is given back then. */
const int64_t *tn_cbor_shape(tn_cbor *c, const int64_t *known, uint32_t *rank);

/* The same from a JSON array; failures are j's. */
const int64_t *tn_json_shape(tn_json *j, const int64_t *known, uint32_t *rank);

/* Takes a JSON string, the name of a type that this build knows; failures are j's. */
tn_dtype tn_json_dtype(tn_json *j);

#endif
