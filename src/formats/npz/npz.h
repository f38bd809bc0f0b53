/* formats/npz/npz.h - a zip archive of .npy files.
 *
 *     members      a local header, then NAME.npy, stored or deflated
 *     directory    an entry per member, and the offset of the directory; what NumPy cannot express is in
 *                  an extra field of the entry, which other readers skip
 *
 * bytes/zip.h reads and writes the archive, read.c and write.c the arrays in it.
 * The arrays of scipy.sparse.save_npz() are one matrix (scipy_read.c,
 * scipy_write.c):
 *
 *     format    'csr', 'coo', 'csc', 'bsr' or 'dia', as bytes
 *     shape     int64
 *     data      the values
 *     csr       indices and indptr
 *     coo       row and col; for other ranks than two: coords, a row per dimension
 *     csc, bsr  indices and indptr, read as coo (scipy_derive.c)
 *     dia       offsets, read as coo */
#ifndef TN_FORMATS_NPZ_H
#define TN_FORMATS_NPZ_H

#include "bytes/zip.h"
#include "formats/npy/npy.h"

#define TN_NPZ_SUFFIX ".npz"

/* --- read.c, write.c --- */

tn_status tn_npz_plan(tn_writer *w, tn_error *err);
tn_status tn_npz_finish(tn_writer *w, tn_error *err);
unsigned  tn_npz_method(const tn_out_entry *entry);
uint64_t  tn_npz_room_before(const tn_writer *w, size_t entry);

/* Lists the members as plain arrays.  *name is the tensor name in the header of one of them, or NULL. */
tn_status tn_npz_list(tn_file *file, const char **name, tn_error *err);

/* A member being written. */
typedef struct tn_npz_member {
    tn_zip_member zip;          /* all but its crc */
    tn_text       header;       /* of the array in it */
    uint64_t      data, nbytes; /* offset and decoded size of the elements */
    uint64_t      stored;       /* bytes of the elements as they are stored */
    uint32_t      crc;          /* of the elements: to be set before tn_npz_write_index() */
} tn_npz_member;

/* Places NAME.npy, whose nbytes are set, at byte *at and moves *at behind it.  If it is to be deflated, only
 * its headers are made: it has no place yet. */
tn_status tn_npz_place(tn_writer *w, const char *name, const tn_npy_array *array, tn_npz_member *m,
                       uint64_t *at, tn_error *err);

/* What NumPy cannot express of an entry, and its name where the member's is another (else NULL), as a note.
 * TN_ERR_LIMIT: it is too long, and metadata may not be dropped. */
tn_status tn_npz_set_note(tn_writer *w, const tn_out_entry *entry, const char *name, tn_npz_member *m,
                          tn_error *err);

/* The entry's bytes are the elements of the member. */
void tn_npz_set_offset(tn_out_entry *entry, const tn_npz_member *m, uint32_t file);

/* Places a deflated member, whose entry is written; after tn_npz_place(). */
void tn_npz_take_place(tn_npz_member *m, const tn_out_entry *entry);

/* Writes everything but the elements. */
tn_status tn_npz_write_index(tn_writer *w, tn_npz_member *members, size_t n, tn_error *err);

/* --- scipy_read.c --- */

/* Replaces a file's arrays by one tensor if they are a matrix of SciPy: *joined.
 * If `name` is NULL the tensor is named after the file. */
tn_status tn_scipy_join(tn_file *file, const char *name, bool *joined, tn_error *err);

/* --- scipy_derive.c --- */

/* How a part of a matrix in another format is made. */
typedef struct tn_scipy_derive {
    tn_derive derive;           /* one of these below: the first member */
    int64_t   shape[2];         /* of the matrix */
    uint64_t  rows, columns;    /* of a block; dia: columns of the data */
    bool      by_column;        /* csc: indices are rows */
} tn_scipy_derive;

extern const tn_derive tn_derive_blocks;            /* indices, from indices and indptr */
extern const tn_derive tn_derive_diagonal_places;   /* indices, from offsets */
extern const tn_derive tn_derive_diagonal_values;   /* values, from offsets and data */
extern const tn_derive tn_derive_flat;              /* values, from data of more dimensions in any order */

/* The columns [begin, end) that a diagonal has entries in; its data has `length` elements. */
typedef struct tn_diagonal {
    int64_t  offset;
    uint64_t begin, end;
} tn_diagonal;
tn_diagonal tn_scipy_diagonal(const int64_t shape[2], uint64_t length, int64_t offset);

/* --- scipy_write.c --- */

/* A sparse matrix. */
bool tn_scipy_keeps(const tn_tensor *tensor);

tn_status tn_scipy_plan(tn_writer *w, tn_error *err);
tn_status tn_scipy_finish(tn_writer *w, tn_error *err);

#endif
