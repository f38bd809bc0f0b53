/* store/record.h - what a flat container cannot express.
 *
 * A flat container lists plain arrays.  A record describes the rest: a tensor with several parts, a type the
 * container has no name for, a tie between two tensors.  It is a small CBOR map stored with the entry
 * (zTensor: the custom field `tenon`; safetensors: as JSON under the metadata key `tenon:NAME`).
 *
 *     dtype, shape    the array that the entry's bytes are
 *     tensor          { form, dtype, shape, parts }: the tensor whose first part this entry is; part k > 0 is
 *                     the entry NAME.ROLE, unless `entries` has the names of these parts.  A scaled tensor:
 *                     also { axis, range } of its codes, without axis for a single scale; or its datatype,
 *                     and { unpacked, rotation, store } if it has them
 *     extents         the array's shape without the padding in `shape` (or in the entry's shape)
 *     fill            the value of the padding, if not 0
 *     layout          the letters of the tensor's dimensions
 *     tied            the earlier tensor with the same bytes
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

    const char    *form;        /* NULL: the entry is a whole tensor */
    const char    *tensor_type;
    tn_dtype       tensor_dtype;
    uint32_t       tensor_rank;
    const int64_t *tensor_shape;
    const char   **roles;
    uint32_t       nroles;
    const char   **entries;     /* names of the parts after the first, nroles - 1; NULL: NAME.ROLE */
    const tn_scaling *scaling;  /* or NULL */

    const int64_t *extents;     /* or NULL: no padding */
    uint32_t       extents_rank;
    double         fill;
    const char    *layout;
    const char    *tied;
    const tn_meta *file_meta, *meta;
    size_t         nfile_meta, nmeta;
} tn_record;

bool tn_record_empty(const tn_record *record);

/* Appends the record as one CBOR map. */
void tn_record_put(const tn_record *record, tn_buf *out);

/* Appends `key` and a copy of a record (which may be empty) with this metadata of the file and none of the
 * tensor; nothing if the copy would be empty. */
tn_status tn_record_put_edited(tn_text cbor, const char *key, const tn_meta *file_meta, size_t n,
                               tn_arena *arena, tn_buf *out, tn_error *err);

/* Reads a record into the arena.  Unknown keys are ignored; a wrong type is TN_ERR_CORRUPT at byte `at`. */
tn_status tn_record_parse(tn_text cbor, uint64_t at, tn_arena *arena, tn_record *record, tn_error *err);

/* The datatype of the scaling that was kept last: neighbours often have the same, and one with a table takes
 * long to parse.  Zero-initialise to begin. */
typedef struct tn_kept_datatype {
    tn_datatype *datatype;      /* NULL: none, or it cannot be parsed; to be freed */
    const char  *text;          /* in the arena */
    tn_dtype     store;         /* of the scaling */
} tn_kept_datatype;

/* A copy in the arena, its datatype as tn_datatype_text() spells it if it can be parsed; NULL without
 * memory. */
const tn_scaling *tn_scaling_keep(tn_arena *arena, const tn_scaling *scaling, tn_kept_datatype *last);

/* The parsed datatype of the scaling that was kept last; NULL for any other. */
const tn_datatype *tn_scaling_datatype(const tn_scaling *scaling, const tn_kept_datatype *last);

/* The plain array in which a container stores an array of `dtype` and `shape`: the same if it has a name for
 * the type, else one of a type with the same bytes. */
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

/* Reads the next CBOR item as the value of `meta`, whose key is set; failures are c's. */
void tn_meta_take(tn_cbor *c, tn_meta *meta);

/* TN_ERR_CORRUPT at byte `at`: two items have the same key. */
tn_status tn_meta_check_unique(const tn_meta *meta, size_t n, uint64_t at, tn_error *err);

/* Reads a CBOR array of dimensions into the arena; returns `known`, of *rank dimensions, if it is the
 * same. */
const int64_t *tn_cbor_shape(tn_cbor *c, const int64_t *known, uint32_t *rank);

/* The same from a JSON array; failures are j's. */
const int64_t *tn_json_shape(tn_json *j, const int64_t *known, uint32_t *rank);

/* Reads the name of a type that this build knows; failures are j's. */
tn_dtype tn_json_dtype(tn_json *j);

#endif
