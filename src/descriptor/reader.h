/* descriptor/reader.h - what the files that read a descriptor share.  Handlers read one member each into
 * r->d.  They return no status: the JSON reader keeps the first failure and yields nothing afterwards. */
#ifndef TN_DESCRIPTOR_READER_H
#define TN_DESCRIPTOR_READER_H

#include "bytes/json.h"
#include "descriptor/descriptor.h"

/* Lists with one item per dimension; the rank may come later in the text. */
typedef enum tn_wia_list {
    TN_WIA_DIMENSIONS, TN_WIA_STRIDES, TN_WIA_PHYSICAL, TN_WIA_PAD_DIMS, TN_WIA_PAD_VALUES,
    TN_WIA_LISTS
} tn_wia_list;

/* Members of the sparse block, each a field of the descriptor itself. */
typedef enum tn_wia_sparse_member {
    TN_WIA_FORMAT, TN_WIA_NNZ, TN_WIA_INDICES, TN_WIA_VALUES, TN_WIA_POINTERS, TN_WIA_COLUMNS, TN_WIA_SPARSE
} tn_wia_sparse_member;

typedef struct tn_wia_reader {
    tn_json         j;
    tn_descriptors *set;
    tn_descriptor  *d;          /* the one being read */

    tn_json_keys    keys;       /* unknown ones */
    tn_wia_extra   *extra;      /* of this descriptor */
    size_t          nextra, extra_cap;
    tn_wia_constraint *constraints;
    size_t          nconstraints, constraints_cap;
    uint64_t       *words;      /* numbers of an array being read: int64_t, double or codes of elements */
    size_t          nwords, words_cap;

    /* What is known of this descriptor besides its fields. */
    struct tn_wia_notes {
        size_t   at, shape_at;                  /* where it and its shape begin */
        bool     symbolic;                      /* shape.symbolic was given */
        struct { bool there; size_t at; uint32_t count; } lists[TN_WIA_LISTS];
        struct { bool there; size_t at; } sparse[TN_WIA_SPARSE];
        uint32_t row;                           /* numbers in each row of COO indices */
        tn_dtype value_type;                    /* values.dtype, or TN_UNKNOWN */
        bool     has_data;
        tn_json  data;                          /* at the values: the type may come after them */
    } notes;
} tn_wia_reader;

/* What a member without a handler holds. */
typedef enum tn_wia_kind {
    TN_WIA_BOOL,
    TN_WIA_I64,
    TN_WIA_U64,
    TN_WIA_SIZE,                /* an int64_t that is not negative */
    TN_WIA_TEXT,                /* a const char * */
    TN_WIA_ENUM,                /* the number of a word */
    TN_WIA_FLAG                 /* a bool: the second of two words */
} tn_wia_kind;

/* One member of an object. */
typedef struct tn_wia_field {
    tn_text         name;
    void          (*read)(tn_wia_reader *r);    /* the handler, or NULL: */
    tn_wia_kind     kind;
    size_t          offset;                     /* of the member in the struct of its object */
    const tn_words *words;                      /* ENUM and FLAG only */
} tn_wia_field;
#define TN_WIA_FIELD(name, read) { { name, sizeof name - 1 }, read, TN_WIA_BOOL, 0, NULL }
#define TN_WIA_VALUE(name, kind, type, member) \
    { { name, sizeof name - 1 }, NULL, kind, offsetof(type, member), NULL }
#define TN_WIA_WORD(name, kind, member, words) \
    { { name, sizeof name - 1 }, NULL, kind, offsetof(tn_descriptor, member), words }
#define TN_WIA_COUNT(fields) (sizeof fields / sizeof fields[0])

/* Takes an object: known members through their handlers or into `object`, the others into d->extra under
 * `path`.  Refuses duplicates.  Returns which were there, bit i for fields[i]; at most 32 of them. */
unsigned tn_wia_object(tn_wia_reader *r, const char *path, const tn_wia_field *fields, size_t n,
                       void *object);

bool tn_wia_has_field(const tn_wia_field *fields, size_t n, tn_text name);

/* Keeps an unknown member and its value. */
void tn_wia_keep(tn_wia_reader *r, const char *path, tn_text key);

/* Fails at byte `at`, or because memory is out. */
__attribute__((format(printf, 3, 4)))
void tn_wia_reject(tn_wia_reader *r, size_t at, const char *format, ...);
bool tn_wia_nomem(tn_wia_reader *r);                            /* false */

/* Where the next value begins. */
size_t tn_wia_at(tn_wia_reader *r);

/* A copy of `size` bytes in the arena; NULL after a failure. */
const void *tn_wia_copy(tn_wia_reader *r, const void *items, size_t size);

tn_text     tn_wia_string(tn_wia_reader *r, size_t *at);        /* without NUL, and where it begins */
const char *tn_wia_kept(tn_wia_reader *r, tn_text text);        /* in the arena */
const char *tn_wia_text(tn_wia_reader *r);                      /* a string without NUL, in the arena */
const char *tn_wia_raw(tn_wia_reader *r);                       /* the text of any value, in the arena */
/* the name of a symbol, checked, in the arena */
const char *tn_wia_symbol(tn_wia_reader *r, tn_text name, size_t at);
/* which of them, else fails; 0 then */
int         tn_wia_word(tn_wia_reader *r, const tn_words *words);
int64_t     tn_wia_size(tn_wia_reader *r);                      /* 0 .. INT64_MAX */
/* a number, or "NaN", "Infinity", "-Infinity" */
double      tn_wia_f64(tn_wia_reader *r);

/* Whether a list with one item per dimension may have more than n; else fails. */
bool tn_wia_room(tn_wia_reader *r, uint32_t n);

/* Appends to r->words. */
bool tn_wia_push(tn_wia_reader *r, uint64_t word);

/* An array of integers, in the arena; NULL after a failure. */
const int64_t *tn_wia_integers(tn_wia_reader *r, size_t *n);

/* Passes the reader's failure on with the JSON path of its byte. */
tn_status tn_wia_fail(const tn_wia_reader *r, const char *text, size_t n, tn_error *err);

/* Members of a descriptor that have a file of their own. */
void tn_wia_read_shape(tn_wia_reader *r);
void tn_wia_read_memory(tn_wia_reader *r);
void tn_wia_read_physical_shape(tn_wia_reader *r);
void tn_wia_read_padding(tn_wia_reader *r);
void tn_wia_read_dtype(tn_wia_reader *r);

bool tn_wia_is_quantization_member(tn_text name);

/* Reads the object at byte `at` again, as a quantization. One of an unknown scheme stays an extra member. */
void tn_wia_read_quantization_alone(tn_wia_reader *r, size_t at);

/* The members of the sparse block, and what is left to do after all were read. */
void tn_wia_read_format(tn_wia_reader *r);
void tn_wia_read_nnz(tn_wia_reader *r);
void tn_wia_read_indices(tn_wia_reader *r);
void tn_wia_read_values(tn_wia_reader *r);
void tn_wia_read_pointers(tn_wia_reader *r);
void tn_wia_read_columns(tn_wia_reader *r);
void tn_wia_finish_sparse(tn_wia_reader *r);

#endif
