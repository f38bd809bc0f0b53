/* tenon/descriptor.h - a tensor without bytes: the WIA-AI-011 descriptor.
 *
 * A descriptor is plain data.  What a parsed document or tn_describe() gives
 * lives until its tn_descriptors is freed; to edit, change a copy of the struct
 * (it may point to memory of the caller) and write that.  Nothing here is
 * changed by reading: any number of threads may share a document. */
#ifndef TENON_DESCRIPTOR_H
#define TENON_DESCRIPTOR_H

#include <tenon/file.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_WIA_VERSION "WIA-AI-011-v1.0"

/* ---- shapes that may have symbols ---- */

typedef struct tn_wia_extent {
    int64_t     value;          /* when symbol is NULL */
    const char *symbol;         /* [A-Za-z_][A-Za-z0-9_]* */
} tn_wia_extent;

/* A stride: factor times the symbols. */
typedef struct tn_wia_product {
    int64_t            factor;
    const char *const *symbols; /* the same one may stand twice */
    uint32_t           nsymbols;
} tn_wia_product;

typedef struct tn_wia_constraint {
    const char *symbol;
    int64_t     min;            /* 0 where the document says nothing */
    int64_t     max;            /* INT64_MAX: none */
    int64_t     multiple_of;    /* 1: any */
} tn_wia_constraint;

typedef struct tn_wia_binding {
    const char *symbol;
    int64_t     value;
} tn_wia_binding;

/* ---- the descriptor ---- */

typedef enum tn_quant_scheme {
    TN_QUANT_NONE                   = 0,
    TN_QUANT_PER_TENSOR_SYMMETRIC   = 1,
    TN_QUANT_PER_TENSOR_ASYMMETRIC  = 2,
    TN_QUANT_PER_CHANNEL_SYMMETRIC  = 3,
    TN_QUANT_PER_CHANNEL_ASYMMETRIC = 4
} tn_quant_scheme;

typedef struct tn_wia_quantization {
    tn_quant_scheme scheme;
    const double   *scales;     /* per tensor: one */
    size_t          nscales;
    const int64_t  *zero_points;    /* NULL: none given, all 0 */
    size_t          nzero_points;
    bool            has_range, has_axis;
    int64_t         range[2];
    int64_t         channel_axis;
} tn_wia_quantization;

typedef enum tn_device_type {
    TN_DEVICE_CPU = 0,
    TN_DEVICE_GPU = 1,
    TN_DEVICE_NPU = 2,
    TN_DEVICE_TPU = 3
} tn_device_type;
typedef enum tn_memory_space { TN_SPACE_HOST = 0, TN_SPACE_DEVICE = 1, TN_SPACE_UNIFIED = 2 } tn_memory_space;

typedef struct tn_device {
    tn_device_type  type;
    int64_t         id;
    tn_memory_space space;
} tn_device;

typedef struct tn_wia_padding {
    const bool    *dims;        /* each of rank items; NULL where absent */
    const int64_t *values;      /* elements added to each dimension */
    const char    *mode;        /* "zero_fill", "value_fill" or NULL */
    double         fill;        /* value_fill; zero_fill has 0 */
} tn_wia_padding;

typedef enum tn_handle_type {
    TN_HANDLE_NONE = 0,
    TN_HANDLE_DMA_BUF = 1,
    TN_HANDLE_CUDA_IPC = 2,
    TN_HANDLE_METAL = 3,
    TN_HANDLE_MEMFD = 4
} tn_handle_type;

typedef struct tn_buffer_handle {
    tn_handle_type type;        /* NONE: no block */
    int64_t        handle;
    int64_t        size_bytes;
    bool           read_only;
} tn_buffer_handle;

typedef struct tn_wia_mapping {
    bool     present;
    uint64_t device_address;
    bool     cpu_mapped;        /* else cpu_address is null */
    uint64_t cpu_address;
    bool     cpu_device;        /* access_mode; else device_only */
} tn_wia_mapping;

/* A sparse tensor with its data in the document. */
typedef struct tn_wia_sparse {
    const char    *format;      /* "COO", "CSR"; NULL: no block */
    uint32_t       rank;
    const int64_t *shape;
    bool           has_nnz;
    int64_t        nnz;
    tn_dtype       index_type;  /* of the document; the indices below are always int64_t */
    const int64_t *indices;     /* COO: nnz rows of rank; CSR: column indices */
    size_t         nindices;    /* numbers, not rows */
    const int64_t *pointers;    /* CSR */
    size_t         npointers;
    tn_dtype       value_type;
    const void    *values;      /* dense, host order, of value_type */
    size_t         nvalues;
} tn_wia_sparse;

/* A member Tenon has no field for, kept as it was read: name and JSON text. */
typedef struct tn_wia_extra {
    const char *path;           /* of the object it stands in: "", "shape", "memory.device" ... */
    const char *key;
    const char *json;
} tn_wia_extra;

typedef struct tn_descriptor {
    const char      *version;   /* "WIA-AI-011-v1.0", or NULL */
    const char      *tensor_id; /* or NULL */
    const char      *name;      /* or NULL */

    uint32_t         rank;
    const tn_wia_extent *dimensions;
    const char      *layout;    /* or NULL */
    bool             symbolic;
    const tn_wia_constraint *constraints;
    size_t           nconstraints;

    tn_dtype         dtype;     /* TN_UNKNOWN: base_type is a name this build does not have */
    const char      *base_type; /* as spelled, or NULL */
    tn_byte_order    byte_order;
    tn_wia_quantization quantization;

    bool             has_memory;
    const tn_wia_product *strides;  /* rank of them, or NULL: dense */
    uint64_t         offset_bytes;
    bool             has_total; /* total_bytes was given */
    uint64_t         total_bytes;
    uint64_t         alignment; /* 0: not given */
    tn_device        device;

    bool             has_properties;
    bool             requires_grad, is_pinned, is_contiguous, zero_copy_compatible;
    const char      *metadata;  /* JSON text of an object, or NULL */

    const int64_t   *physical_shape;    /* rank items, or NULL */
    bool             has_padding;
    tn_wia_padding   padding;
    tn_buffer_handle buffer_handle;
    tn_wia_mapping   mapping;
    tn_wia_sparse    sparse;

    const tn_wia_extra *extra;
    size_t           nextra;
} tn_descriptor;

/* ---- documents ---- */

/* One descriptor, or a JSON array of them.  Each takes about 500 bytes, and
 * what it points to, however short its text is. */
typedef struct tn_descriptors tn_descriptors;

/* Parses a document; *set is written on success only.  What the JSON grammar
 * and the types of fields say is checked here (with the JSON path and the
 * byte), what fields say about each other in tn_descriptor_check().  A shape is
 * all that must be there (and of a fragment, see tn_descriptor_is_fragment(), not
 * even that); of a buffer_handle all four members, of a mapping all but
 * cpu_address.  Duplicate keys are an error.  TN_ERR_CORRUPT,
 * TN_ERR_TRUNCATED, TN_ERR_LIMIT (nesting, numbers beyond their field). */
TN_API tn_status tn_descriptors_parse(const char *json, size_t n, tn_descriptors **set, tn_error *err);
TN_API void tn_descriptors_free(tn_descriptors *set);       /* Frees a document; NULL is allowed. */
TN_API size_t tn_descriptors_count(const tn_descriptors *set);      /* The number of descriptors in it. */

/* Descriptor i; NULL when out of range.  From the first on they are an array. */
TN_API const tn_descriptor *tn_descriptors_at(const tn_descriptors *set, size_t i);

/* Writes one descriptor as JSON, or n of them as an array (`list`), indented
 * by two spaces, keys in the specification's order.  *json is malloc()ed,
 * NUL-terminated, *size without the NUL: free() it.  The same descriptor gives
 * the same bytes every time; 64-bit integers and floats survive.
 * TN_ERR_ARGUMENT: what tn_descriptors_parse() would refuse (text that is not
 * UTF-8, a negative extent, an extra member with the name of another, metadata
 * that is no object), an enum value without a word, an extra member of an
 * object that is not written. */
TN_API tn_status tn_descriptors_write(const tn_descriptor *descriptors, size_t n, bool list, char **json,
                                      size_t *size, tn_error *err);

typedef struct tn_save_options {
    size_t     size;            /* sizeof(tn_save_options), set by the caller */
    bool       list;            /* as a list, also where there is one only */
    bool       replace;
    tn_note_fn note;            /* may be NULL */
    void      *context;
} tn_save_options;

/* The same into a file, which appears whole or not at all.  `options` may be
 * NULL.  TN_ERR_EXISTS: there is one and `replace` is false.  TN_ERR_IO:
 * nothing was replaced.  *size (may be NULL) is that of the file. */
TN_API tn_status tn_descriptors_save(const tn_descriptor *descriptors, size_t n, const char *path,
                                     const tn_save_options *options, size_t *size, tn_error *err);

/* ---- checking ---- */

typedef struct tn_wia_finding {
    bool        remark;         /* else it is wrong */
    const char *path;           /* "memory.strides[1]" */
    const char *text;           /* "expected 50176 for a dense NCHW tensor of 224x224 but found 0" */
} tn_wia_finding;
typedef void (*tn_finding_fn)(void *context, const tn_wia_finding *finding);

typedef struct tn_check_options {
    size_t        size;         /* sizeof(tn_check_options), set by the caller */
    bool          strict;       /* wrong: what the specification does not name: types beyond its 17,
        layouts but NCHW, NHWC
                                 * and CHWN, schemes beyond the four of tn_quant_scheme, memfd, value_fill */
    tn_finding_fn report;       /* may be NULL; the finding lives for the call */
    void         *context;
} tn_check_options;

/* Checks everything the fields say about each other.  *wrong counts findings
 * that are not remarks.  TN_ERR_NOMEM only. */
TN_API tn_status tn_descriptor_check(const tn_descriptor *descriptor, const tn_check_options *options,
                                     size_t *wrong, tn_error *err);

/* Whether it is a part of a descriptor only: without version, tensor_id, name
 * and dtype, and not sparse, as most examples of the specification are.  A
 * fragment has a shape (rank and dimensions, with what belongs to it), or a
 * handle or mapping, or a quantization alone; without a shape `dimensions` is
 * NULL.  It is checked as far as it goes, and speaks of no tensor. */
TN_API bool tn_descriptor_is_fragment(const tn_descriptor *descriptor);

/* The lowest compliance level (1, 2, 3) of an implementation that can use the
 * descriptor; 0: there is none.  `why` (may be NULL) gets the requirement that decides it. */
TN_API int tn_descriptor_level(const tn_descriptor *descriptor, const char **why);

/* ---- symbols ---- */

/* Replaces symbols by numbers in shape and strides, and computes total_bytes.
 * Every symbol must be bound, to a value its constraints allow.
 * TN_ERR_ARGUMENT: the text names symbol, constraint and value.  TN_ERR_LIMIT:
 * a stride or the number of bytes does not fit 64 bits. */
TN_API tn_status tn_descriptor_bind(const tn_descriptor *descriptor, const tn_wia_binding *bindings, size_t n,
                                    tn_descriptors **bound, tn_error *err);

/* One set of constraints that all descriptors obey together (every symbol they
 * use, sorted by name), at most `cap` written; *count is how many there are.
 * TN_ERR_ARGUMENT: no value satisfies them all; the text says why.
 * TN_ERR_LIMIT: the least common multiple does not fit 63 bits.  The symbols
 * are borrowed from the descriptors. */
TN_API tn_status tn_symbols_unify(const tn_descriptor *const *descriptors, size_t n,
                                  tn_wia_constraint *constraints, size_t cap, size_t *count, tn_error *err);

/* The most bytes the buffer can need under the constraints, offset included.
 * TN_ERR_LIMIT: unbounded, or beyond 64 bits; the text names the symbol. */
TN_API tn_status tn_descriptor_max_bytes(const tn_descriptor *descriptor, uint64_t *bytes, tn_error *err);

/* ---- from files ---- */

/* Describes tensors of an open file: `tensor`, or all when NULL.  A tensor that lies raw, in host order and
 * aligned to 64 bytes in its file is described in place (offset_bytes counts from the beginning of the file);
 * any other as a dense buffer of its own; a sparse one has its entries in the descriptor.  tensor_id is a
 * version 5 UUID of the description, so it is the same every time. */
TN_API tn_status tn_describe(const tn_file *file, const tn_tensor *tensor, tn_descriptors **set,
                             tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
