/* formats/onnx/onnx.h - ONNX models: what reading and writing share.
 *
 * A model is one protobuf message (bytes/proto.h).  model.c walks it and makes a list of its tensors, in the
 * order and with the names that a file lists them; tensor.c reads one TensorProto.  Opening a model makes
 * entries of the list (read.c), writing puts new data into the places of the list (write.c). */
#ifndef TN_FORMATS_ONNX_H
#define TN_FORMATS_ONNX_H

#include "bytes/proto.h"
#include "store/dims.h"
#include "store/file.h"
#include "store/writer.h"

#define TN_ONNX_SUFFIX      ".onnx"
#define TN_ONNX_DATA_SUFFIX ".onnx.data"

/* Numbers of the fields that are used. */
enum {
    TN_ONNX_MODEL_IR_VERSION = 1, TN_ONNX_MODEL_PRODUCER_NAME = 2, TN_ONNX_MODEL_PRODUCER_VERSION = 3,
    TN_ONNX_MODEL_DOMAIN = 4, TN_ONNX_MODEL_VERSION = 5, TN_ONNX_MODEL_DOC_STRING = 6,
    TN_ONNX_MODEL_GRAPH = 7, TN_ONNX_MODEL_OPSET_IMPORT = 8, TN_ONNX_MODEL_METADATA_PROPS = 14,
    TN_ONNX_MODEL_TRAINING_INFO = 20, TN_ONNX_MODEL_FUNCTIONS = 25,
    TN_ONNX_TENSOR_DIMS = 1, TN_ONNX_TENSOR_TYPE = 2, TN_ONNX_TENSOR_SEGMENT = 3, TN_ONNX_TENSOR_FLOATS = 4,
    TN_ONNX_TENSOR_INT32S = 5, TN_ONNX_TENSOR_STRINGS = 6, TN_ONNX_TENSOR_INT64S = 7, TN_ONNX_TENSOR_NAME = 8,
    TN_ONNX_TENSOR_RAW = 9, TN_ONNX_TENSOR_DOUBLES = 10, TN_ONNX_TENSOR_UINT64S = 11,
    TN_ONNX_TENSOR_EXTERNAL = 13, TN_ONNX_TENSOR_LOCATION = 14,
    TN_ONNX_ENTRY_KEY = 1, TN_ONNX_ENTRY_VALUE = 2
};

extern const tn_proto_kind tn_onnx_tensor_kind, tn_onnx_model_kind, tn_onnx_entry_kind;

/* The message that first bytes begin. */
typedef struct tn_onnx_glance {
    uint64_t seen;              /* its fields, as bits 1 << number; 0: some cannot be of this kind */
    uint64_t first, value;      /* number and value, or length, of the first field */
    uint64_t cut;               /* number of the field that these bytes end in, or 0 */
    bool     later;             /* numbers that the kind does not have stand before number 7 */
} tn_onnx_glance;
tn_onnx_glance tn_onnx_look(const tn_proto_kind *kind, const uint8_t *head, size_t n);

/* A type by its number in files. */
typedef struct tn_onnx_type {
    const char *name;           /* "FLOAT8E4M3FN"; NULL: there is no such number */
    tn_dtype    dtype;          /* TN_UNKNOWN: listed, not read */
    uint8_t     field;          /* that has its numbers, if raw_data has not */
    uint8_t     width;          /* bytes that each of these numbers takes */
    int64_t     low, high;      /* the least and the greatest of them; both 0: any */
} tn_onnx_type;

const tn_onnx_type *tn_onnx_type_of(uint64_t number);   /* NULL: of a later version */
const char *tn_onnx_type_name(const tn_dtype_info *type);  /* NULL: ONNX has no such type */

/* Where data is that another file has. */
typedef struct tn_onnx_external {
    const char *location;       /* with "/" between names, without "." */
    const char *checksum;       /* or NULL */
    uint64_t    offset, length;
    bool        has_length;
} tn_onnx_external;

typedef enum tn_onnx_place {
    TN_ONNX_NOWHERE,            /* it has no elements */
    TN_ONNX_INSIDE,             /* a range of the model */
    TN_ONNX_DECODED,            /* numbers of the model, which are decoded: a range of all of these */
    TN_ONNX_EXTERNAL,
    TN_ONNX_UNREAD              /* listed, not read: a range of the model, or none */
} tn_onnx_place;

/* One TensorProto that is listed. */
typedef struct tn_onnx_tensor {
    const char    *name;
    const int64_t *shape;
    uint32_t       rank;
    tn_dtype       dtype;
    const char    *type;        /* as ONNX calls it */
    tn_onnx_place  place;
    uint32_t       file;        /* EXTERNAL: its number of the files */
    uint64_t       at;          /* of its tag */
    uint64_t       begin, end;  /* of its fields */
    uint64_t       offset, size;    /* of its data */
    const tn_onnx_type     *numbers;    /* DECODED: how they are stored */
    const tn_onnx_external *external;
    const tn_dims *sparse;      /* these are the values of a COO tensor of this shape, and the next one has
                                 * the indices; or NULL */
    bool           is_indices;  /* of the one before */
    bool           is_segment;  /* of a larger tensor */
} tn_onnx_tensor;

/* A message around listed tensors, or the fields of one: what changes its length if data does. */
typedef struct tn_onnx_message {
    uint64_t length_at;         /* of its length */
    uint64_t begin, end;        /* of its fields */
    size_t   tensor;            /* its number in the list; SIZE_MAX: it is a message around tensors */
} tn_onnx_message;

/* A model that is walked.  Zero-initialise, but for the first members. */
typedef struct tn_onnx_model {
    tn_file        *file;       /* that is opened; NULL: a graph for new tensors */
    tn_arena       *arena;
    const tn_source *source;
    tn_proto_input *in;
    tn_onnx_tensor *tensors;
    size_t          count, cap;
    tn_onnx_message *messages;  /* kept if there is no file */
    size_t          nmessages, messages_cap;
    uint64_t        decoded;    /* bytes of all tensors with that place */
    tn_meta        *meta;
    size_t          nmeta, meta_cap;
    uint64_t        name_bytes;     /* of all names and their prefixes */
    uint64_t        others_external;    /* byte of a tensor that is not read, with data in another file; 0:
                                         * none */
} tn_onnx_model;

tn_status tn_onnx_walk(tn_onnx_model *model, tn_error *err);
void      tn_onnx_free(tn_onnx_model *model);

/* A TensorProto: checks it, and fills in all but the place in the list.  `name` is NULL: its own. */
tn_status tn_onnx_read_tensor(tn_onnx_model *model, const tn_proto *outer, const tn_proto_field *field,
                              const char *prefix, const char *name, tn_onnx_tensor *t);

/* Decodes the numbers of a tensor into t->size bytes. */
tn_status tn_onnx_decode(tn_onnx_model *model, const tn_onnx_tensor *t, uint8_t *out);

/* A name with its prefix; NULL: it has failed. */
const char *tn_onnx_name(tn_onnx_model *model, const char *prefix, const char *name, uint64_t at);

/* The entries of external_data, gone through one by one. */
typedef struct tn_onnx_entries {
    const char *values[5];      /* of the known keys; NULL: not there */
} tn_onnx_entries;
tn_status tn_onnx_add_entry(tn_onnx_model *model, const tn_proto *tensor, const tn_proto_field *field,
                            tn_onnx_entries *entries);
tn_status tn_onnx_read_external(tn_onnx_model *model, const tn_onnx_entries *entries, uint64_t at,
                                tn_onnx_tensor *t);

/* Opens the files that have data of tensors, each once, and finds the ranges. */
tn_status tn_onnx_open_external(tn_onnx_model *model, tn_error *err);

/* Reads the metadata of the model: all fields but graph and functions. */
tn_status tn_onnx_read_meta(tn_onnx_model *model, tn_error *err);

/* Writing. */
tn_status tn_onnx_plan(tn_writer *w, tn_error *err);
tn_status tn_onnx_finish(tn_writer *w, tn_error *err);

/* The names of the two files (pair.c). */
const char *tn_onnx_member_name(tn_writer *w, size_t i, const char *id);
tn_status   tn_onnx_plan_old(tn_writer *w, bool external, bool *replaces, tn_error *err);
struct tn_beside;
void        tn_onnx_look_beside(const struct tn_beside *beside);

#endif
