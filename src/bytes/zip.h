/* bytes/zip.h - archives of files: one disk, zip64, no encryption. */
#ifndef TN_BYTES_ZIP_H
#define TN_BYTES_ZIP_H

#include "base/arena.h"
#include "base/cursor.h"
#include "base/text.h"
#include "base/vector.h"
#include "bytes/source.h"

enum { TN_ZIP_STORED = 0, TN_ZIP_DEFLATED = 8 };
enum { TN_ZIP_LOCAL_BYTES = 30, TN_ZIP_NAME_MAX = 65535 };

/* The extra fields of an entry take 16 bits: this is what zip64 leaves of them. */
enum { TN_ZIP_NOTE_MAX = 65535 - (4 + 3 * 8) - 4 };

typedef struct tn_zip_member {
    tn_text  name;
    uint64_t at;                /* of its entry in the directory */
    uint64_t local;             /* of its local header */
    uint64_t data;              /* of its bytes: after tn_zip_locate() */
    uint64_t size, decoded;     /* of those, stored and decoded; for writing: the same if it is stored */
    uint32_t crc;               /* of the decoded ones */
    unsigned method;
    bool     encrypted;
    tn_text  note;              /* Tenon's extra field in the directory, which others skip; or len 0 */
    bool     wide;              /* for writing: the sizes are written as zip64 */
} tn_zip_member;

typedef struct tn_zip_directory {
    tn_cur   entries;
    uint64_t at;                /* offset in the file; no member may overlap it */
    uint64_t count;             /* of entries, at most what fits */
} tn_zip_directory;

/* Finds the directory and copies it to the arena. */
tn_status tn_zip_open(const tn_source *source, tn_arena *arena, tn_zip_directory *d, tn_error *err);

/* The next entry; at most d->count times.  The name borrows from the directory. */
tn_status tn_zip_next(tn_zip_directory *d, tn_zip_member *m, tn_error *err);

/* Reads the local header: m->data, with room for its bytes before the directory. */
tn_status tn_zip_locate(const tn_source *source, const tn_zip_directory *d, tn_zip_member *m, tn_error *err);

/* Bytes of a member's local header as it is written. */
uint64_t tn_zip_local_size(size_t name, bool wide);

/* For writing: local header, entry of the directory, and its end.  Offsets and
 * counts are written as zip64 if they need it. */
void tn_zip_put_local(tn_buf *b, const tn_zip_member *m);
void tn_zip_put_entry(tn_buf *b, const tn_zip_member *m);
void tn_zip_put_end(tn_buf *b, uint64_t count, uint64_t at, uint64_t size);

#endif
