/* formats/npz/npz.h - what the files of this folder share.
 *
 *     members      a local header, then NAME.npy as it is or deflated
 *     directory    an entry for each member, and where all of that is
 *
 * bytes/zip.h knows the archive, read.c and write.c the arrays in it.  Those of
 * scipy.sparse.save_npz() make one matrix:
 *
 *     format    'csr' or 'coo', as bytes
 *     shape     int64
 *     data      the values
 *     csr       indices and indptr
 *     coo       row and col; of other ranks than two coords, a row for each dimension
 *
 * scipy_read.c puts them together, scipy_write.c takes a tensor apart. */
#ifndef TN_FORMATS_NPZ_H
#define TN_FORMATS_NPZ_H

#include "bytes/zip.h"
#include "formats/npy/npy.h"

#define TN_NPZ_SUFFIX ".npz"

/* --- read.c, write.c --- */

tn_status tn_npz_open(tn_file *file, tn_error *err);
tn_status tn_npz_plan(tn_writer *w, tn_error *err);
tn_status tn_npz_finish(tn_writer *w, tn_error *err);

/* Lists the members as plain arrays.  *name: what one of them says that all together are called, or NULL. */
tn_status tn_npz_list(tn_file *file, const char **name, tn_error *err);

/* One member to be. */
typedef struct tn_npz_member {
    tn_zip_member zip;          /* but for its crc */
    tn_text       header;       /* of the array in it */
    uint64_t      data, nbytes; /* its elements: where they are in the file, and how many bytes */
    uint32_t      crc;          /* of those: before tn_npz_end() */
} tn_npz_member;

/* Places NAME.npy from byte *at on, which moves behind it. */
tn_status tn_npz_place(tn_writer *w, const char *name, const tn_npy_array *array, uint64_t nbytes,
                       tn_npz_member *m, uint64_t *at, tn_error *err);

/* The entry's bytes are the elements of the member. */
void tn_npz_give_place(tn_out_entry *entry, const tn_npz_member *m, uint32_t file);

/* Writes everything but the elements. */
tn_status tn_npz_end(tn_writer *w, tn_npz_member *members, size_t n, tn_error *err);

/* --- scipy_read.c --- */

/* Makes one tensor of a file's arrays if they are a csr or coo matrix of SciPy's: *joined.
 * Without a name it is called after the file. */
tn_status tn_scipy_join(tn_file *file, const char *name, bool *joined, tn_error *err);

tn_status tn_scipy_open(tn_file *file, tn_error *err);

/* --- scipy_write.c --- */

tn_status tn_scipy_plan(tn_writer *w, tn_error *err);
tn_status tn_scipy_finish(tn_writer *w, tn_error *err);

#endif
