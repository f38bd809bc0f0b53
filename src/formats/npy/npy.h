/* formats/npy/npy.h - the layout of a .npy file, and the functions that npz, an
 * archive of such files, uses.
 *
 *     \x93NUMPY, version, length   10 or 12 bytes
 *     header                       {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *     elements                     to the end
 *
 * What NumPy cannot express (a type of Tenon's own, metadata, compound tensors) is in a note:
 *
 *     {"name":"w","record":{...},"meta":{...},"file":{...}}
 *
 * npz has it in the archive's directory.  Earlier versions wrote it as a comment behind the literal,
 * "# tenon " and the note, which NumPy skips and others refuse: it is still read.
 *
 * header.c parses headers, read.c turns them into entries, write.c writes them. */
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
    const char    *type;        /* as spelled; a long one is cut */
    tn_dtype       dtype;       /* TN_UNKNOWN: listed, not read */
    const char    *never;       /* why no build reads elements of this type, or NULL... */
    uint64_t       type_at;     /* ...and its byte, or TN_NO_OFFSET */
    tn_byte_order  order;
    bool           fortran;     /* the first index varies fastest */
    uint32_t       rank;
    const int64_t *shape;
    size_t         comment;     /* bytes of a comment with a note */
    /* Of the note: */
    const char    *name;        /* or NULL */
    tn_text        record;
    const tn_meta *meta, *file_meta;
    size_t         nmeta, nfile_meta;
} tn_npy_header;

/* --- header.c --- */

/* The number of bytes before the elements, from the first n bytes
 * (TN_NPY_PREFIX_MAX, or all of a shorter file).  `at` is their offset in the
 * file, or TN_NO_OFFSET. */
tn_status tn_npy_header_size(const uint8_t *head, size_t n, uint64_t at, size_t *size, tn_error *err);

/* Parses that many bytes.  The header points into the arena only. */
tn_status tn_npy_parse(const uint8_t *bytes, size_t size, uint64_t at, tn_arena *arena, tn_npy_header *h,
                       tn_error *err);

/* Takes what a note says into the header. */
tn_status tn_npy_take_note(tn_text json, tn_arena *arena, tn_npy_header *h, tn_error *err);

/* --- read.c --- */

/* How NumPy spells a type, or NULL. */
const char *tn_npy_type_name(const tn_dtype_info *type);

/* Fills an entry from its header and sets the file's metadata.  The elements take
 * stored.size of the `available` bytes; the caller sets their offset. */
tn_status tn_npy_describe(tn_file *file, const tn_npy_header *h, uint64_t available, tn_entry *e,
                          tn_error *err);

/* --- write.c --- */

/* The contents of a header. */
typedef struct tn_npy_array {
    const char         *type;   /* as NumPy spells it */
    uint32_t            rank;
    const int64_t      *shape;
} tn_npy_array;

tn_npy_array tn_npy_array_of(const tn_out_entry *entry);

/* Its header, in the arena.  Spaces make it so long that the elements are aligned
 * if the header begins at byte `before`. */
tn_status tn_npy_build_header(tn_writer *w, const tn_npy_array *array, uint64_t before, tn_text *header,
                              tn_error *err);

tn_status tn_npy_plan(tn_writer *w, tn_error *err);
tn_status tn_npy_finish(tn_writer *w, tn_error *err);

#endif
