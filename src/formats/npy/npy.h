/* formats/npy/npy.h - what the files of this folder share, and what npz, an
 * archive of such files, takes from them.
 *
 *     \x93NUMPY, version, length   10 or 12 bytes
 *     header a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *     elements                     to the end
 *
 * What NumPy has no word for (a type of Tenon's own, metadata, compound
 * tensors) stands in a comment behind the literal, which NumPy skips:
 *
 *     # tenon {"name":"w","record":{...},"meta":{...},"file":{...}}
 *
 * header.c parses, read.c makes entries, write.c makes headers. */
#ifndef TN_CONTAINER_NPY_H
#define TN_CONTAINER_NPY_H

#include "store/file.h"
#include "store/writer.h"

#define TN_NPY_SUFFIX      ".npy"
#define TN_NPY_MAGIC       "\x93NUMPY"
#define TN_NPY_COMMENT     "# tenon "
#define TN_NPY_NAME        "name"       /* of the tensor, where the file has no other place for it */
#define TN_NPY_RECORD      "record"     /* of the array, see store/record.h */
#define TN_NPY_META        "meta"       /* of the tensor */
#define TN_NPY_FILE_META   "file"       /* of the file; with its first array */
#define TN_NPY_ALIGN       64           /* of the elements, as NumPy writes them */
#define TN_NPY_TYPE_MAX    250          /* characters of a type that are kept */
#define TN_NPY_HEADER_MAX  65536u       /* bytes of text that are read... */
#define TN_NPY_NUMPY_MAX   10000u       /* ...and that NumPy reads unless told */

enum { TN_NPY_MAGIC_BYTES = 6, TN_NPY_SHORTEST = 10, TN_NPY_PREFIX_MAX = 12 };

typedef struct tn_npy_header {
    size_t         size;        /* bytes before the elements */
    const char    *type;        /* as spelled, but for what is too long to be shown */
    tn_dtype       dtype;       /* TN_UNKNOWN: listed, not read */
    const char    *never;       /* why no build reads elements of this type, or NULL... */
    uint64_t       type_at;     /* ...and where it stands, or TN_NO_OFFSET */
    tn_byte_order  order;
    bool           fortran;     /* the first index runs fastest */
    uint32_t       rank;
    const int64_t *shape;
    size_t         comment;     /* bytes of Tenon's comment, from which comes what follows */
    const char    *name;        /* or NULL */
    tn_text        record;
    const tn_meta *meta, *file_meta;
    size_t         nmeta, nfile_meta;
} tn_npy_header;

/* --- header.c --- */

/* The bytes before the elements, from the first n (TN_NPY_PREFIX_MAX, or all
 * that there are).  `at` is where they stand in the file, or TN_NO_OFFSET. */
tn_status tn_npy_header_size(const uint8_t *head, size_t n, uint64_t at, size_t *size, tn_error *err);

/* Parses that many bytes; what the header points to is in the arena, and none of it in them. */
tn_status tn_npy_parse(const uint8_t *bytes, size_t size, uint64_t at, tn_arena *arena, tn_npy_header *h,
                       tn_error *err);

/* --- read.c --- */

/* How NumPy spells a type, or NULL. */
const char *tn_npy_type_name(const tn_dtype_info *type);

/* What the header says of an array called `e->name` whose elements have
 * `available` bytes or fewer: stored.size says how many.  Their place is the
 * caller's to say. */
tn_status tn_npy_describe(tn_file *file, const tn_npy_header *h, uint64_t available, tn_entry *e,
                          tn_error *err);

tn_status tn_npy_open(tn_file *file, tn_error *err);

/* --- write.c --- */

/* An array that is to have a header. */
typedef struct tn_npy_array {
    const char         *type;   /* as NumPy spells it */
    uint32_t            rank;
    const int64_t      *shape;
    const tn_out_entry *entry;  /* whose record and metadata go along, or NULL */
    const char         *name;   /* that goes along too, or NULL */
} tn_npy_array;

tn_npy_array tn_npy_array_of(const tn_out_entry *entry);

/* Its header, in the arena, so long that what follows is aligned when `before`
 * bytes of the file precede it. */
tn_status tn_npy_make_header(tn_writer *w, const tn_npy_array *array, uint64_t before, tn_text *header,
                             tn_error *err);

tn_status tn_npy_plan(tn_writer *w, tn_error *err);
tn_status tn_npy_finish(tn_writer *w, tn_error *err);

#endif
