/* formats/pytorch/values.h - what a pickle makes: values, never Python objects.
 *
 * A value is 16 bytes.  Texts and bytes point into the pickle; everything larger is a node in the arena of
 * the machine.  Nodes are shared, as in Python: a list that was put into the memo grows everywhere. */
#ifndef TN_PYTORCH_VALUES_H
#define TN_PYTORCH_VALUES_H

#include "base/text.h"

#include <tenon/dtype.h>

typedef enum tn_pt_kind {
    TN_PT_NONE, TN_PT_BOOL, TN_PT_INT, TN_PT_UINT, TN_PT_BIG, TN_PT_FLOAT, TN_PT_TEXT, TN_PT_BYTES,
    TN_PT_LIST, TN_PT_TUPLE, TN_PT_DICT, TN_PT_SET,
    TN_PT_GLOBAL,               /* the name of a class or function */
    TN_PT_STORAGE, TN_PT_TENSOR,
    TN_PT_NUMPY_TYPE,
    TN_PT_WORD,                 /* a dtype, device, layout or qscheme of torch */
    TN_PT_OBJECT                /* anything else: its class and its state */
} tn_pt_kind;

typedef struct tn_pt_value {
    uint8_t  kind;
    bool     is_raw;            /* a text of Python 2: also bytes */
    uint32_t size;              /* of text and bytes */
    union {
        int64_t            i;   /* BOOL, INT */
        uint64_t           u;   /* UINT: beyond INT */
        double             f;
        const char        *text;
        struct tn_pt_items   *items;
        struct tn_pt_global  *global;
        struct tn_pt_storage *storage;
        struct tn_pt_tensor  *tensor;
        struct tn_pt_numpy   *numpy;
        struct tn_pt_object  *object;
    };
} tn_pt_value;

/* What the walk knows of a node. */
typedef enum tn_pt_seen { TN_PT_NEW, TN_PT_PLAIN, TN_PT_NOT_PLAIN } tn_pt_seen;

/* LIST, TUPLE, SET; DICT: keys and values in turn. */
typedef struct tn_pt_items {
    uint32_t     count, cap;
    uint8_t      seen;          /* tn_pt_seen */
    bool         inside;        /* the walk is inside of it */
    bool         is_unique;     /* a DICT without a key that comes twice */
    const char  *of;            /* the class of a DICT that is more than a dict, or NULL */
    tn_pt_value *at;
} tn_pt_items;

/* How a global is used, see calls.c. */
typedef struct tn_pt_known tn_pt_known;

typedef struct tn_pt_global {
    tn_text            module, name;
    const tn_pt_known *known;   /* or NULL */
    bool               named;   /* in the list of calls */
} tn_pt_global;

/* The type of a storage: its elements and their bytes. */
typedef struct tn_pt_type {
    const char *name;           /* of torch: "float32" */
    tn_dtype    dtype;          /* TN_UNKNOWN: listed, not read */
    uint8_t     width;          /* bytes of one element as torch counts them */
} tn_pt_type;

typedef struct tn_pt_storage {
    const tn_pt_type *type;     /* NULL: bytes, of any type */
    tn_text   key;
    uint64_t  count;            /* elements of the storage in the file */
    uint64_t  first, used;      /* the elements of it that this one is a view of */
} tn_pt_storage;

/* How codes are scaled: numbers, or lists or tensors of numbers. */
typedef struct tn_pt_scaling {
    tn_pt_value scale, zero;
    int64_t     axis;           /* -1: one scale */
} tn_pt_scaling;

typedef enum tn_pt_layout {
    TN_PT_STRIDED, TN_PT_COO, TN_PT_CSR, TN_PT_CSC, TN_PT_BSR, TN_PT_BSC
} tn_pt_layout;

typedef struct tn_pt_tensor {
    const tn_pt_type    *type;
    const tn_pt_storage *storage;       /* or NULL... */
    tn_text              bytes;         /* ...and NumPy's elements */
    bool                 is_numpy, is_big_endian, is_fortran, is_meta, is_empty_object;
    const char          *never;         /* why it is listed and not read, or NULL */
    int64_t              offset;
    tn_pt_value          size, stride;  /* tuples or lists of integers; stride NONE: dense */
    const tn_pt_scaling *scaling;       /* or NULL */
    tn_pt_layout         layout;
    const struct tn_pt_tensor *parts[3];    /* of a sparse tensor: indices and values */
    uint64_t             at;            /* byte of the pickle */
} tn_pt_tensor;

typedef struct tn_pt_numpy {
    const tn_pt_type *type;     /* NULL: not known */
    tn_text           name;     /* "f4" */
    bool              is_big_endian;
} tn_pt_numpy;

typedef struct tn_pt_object {
    const tn_pt_global *class;
    tn_pt_value         state;  /* NONE: there is none */
    bool                inside; /* the walk is inside of it */
} tn_pt_object;

static inline bool tn_pt_is_items(const tn_pt_value *v)
{
    return v->kind >= TN_PT_LIST && v->kind <= TN_PT_SET;
}

/* A list or a tuple. */
static inline bool tn_pt_is_list(const tn_pt_value *v)
{
    return v->kind == TN_PT_LIST || v->kind == TN_PT_TUPLE;
}

static inline tn_text tn_pt_text(const tn_pt_value *v)
{
    return (tn_text){ v->text, v->size };
}

static inline bool tn_pt_text_is(const tn_pt_value *v, const char *text)
{
    return v->kind == TN_PT_TEXT && tn_text_is(tn_pt_text(v), text);
}

/* The value of a text key of a dict, or NULL; the last one counts. */
static inline const tn_pt_value *tn_pt_find(const tn_pt_value *dict, const char *key)
{
    for (uint32_t i = dict->kind == TN_PT_DICT ? dict->items->count : 0; i >= 2; i -= 2)
        if (tn_pt_text_is(&dict->items->at[i - 2], key))
            return &dict->items->at[i - 1];
    return NULL;
}

#endif
