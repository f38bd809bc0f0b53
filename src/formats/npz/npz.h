/* formats/npz/npz.h - what the files of this folder share.
 *
 *     members      a local header, then NAME.npy as it is or deflated
 *     directory    an entry for each member, and where all of that is
 *
 * zip.c knows the archive, read.c and write.c the arrays in it.  Those of
 * scipy.sparse.save_npz() make one matrix:
 *
 *     format    'csr' or 'coo', as bytes
 *     shape     int64
 *     data      the values
 *     csr       indices and indptr
 *     coo       row and col; of other ranks than two coords, a row for each dimension
 *
 * scipy_read.c puts them together, scipy_write.c takes a tensor apart. */
#ifndef TN_CONTAINER_NPZ_H
#define TN_CONTAINER_NPZ_H

#include "base/cursor.h"
#include "base/vector.h"
#include "formats/npy/npy.h"

#define TN_NPZ_SUFFIX ".npz"

/* --- zip.c --- */

enum { TN_ZIP_STORED = 0, TN_ZIP_DEFLATED = 8 };
enum { TN_ZIP_LOCAL_BYTES = 30, TN_ZIP_NAME_MAX = 65535 };

typedef struct tn_zip_member {
    tn_text  name;
    uint64_t at;                /* of its entry in the directory */
    uint64_t local;             /* of its local header */
    uint64_t data;              /* of its bytes: after tn_zip_locate() */
    uint64_t size, decoded;     /* of those, stored and decoded */
    uint32_t crc;               /* of the decoded ones */
    unsigned method;
    bool     encrypted;
    bool     wide;              /* for writing: the sizes stand as zip64 says */
} tn_zip_member;

typedef struct tn_zip_directory {
    tn_cur   entries;
    uint64_t at;                /* in the file: no member may reach into it */
    uint64_t count;             /* of entries: so many could be there */
} tn_zip_directory;

/* Finds the directory and its size; its bytes are in the arena unless they are mapped. */
tn_status tn_zip_open(const tn_source *source, tn_arena *arena, tn_zip_directory *d, tn_error *err);

/* The next entry; at most d->count times.  The name borrows from the directory. */
tn_status tn_zip_next(tn_zip_directory *d, tn_zip_member *m, tn_error *err);

/* Reads the local header: m->data, with room for its bytes before the directory. */
tn_status tn_zip_locate(const tn_source *source, const tn_zip_directory *d, tn_zip_member *m, tn_error *err);

/* Bytes of a member's local header as it is written. */
uint64_t tn_zip_local_size(size_t name, bool wide);

/* For writing: local header, entry of the directory, and its end.  All members
 * are stored.  Places and counts that need it are written as zip64 says. */
void tn_zip_put_local(tn_buf *b, const tn_zip_member *m);
void tn_zip_put_entry(tn_buf *b, const tn_zip_member *m);
void tn_zip_put_end(tn_buf *b, uint64_t count, uint64_t at, uint64_t size);

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
tn_status tn_npz_place(tn_writer *w, const char *name, const tn_npy_array *array, uint64_t nbytes, tn_npz_member *m, uint64_t *at,
                       tn_error *err);

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
