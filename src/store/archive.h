/* store/archive.h - the members of a zip archive, as all formats that are one need them: located, none
 * overlapping another, and how their bytes become those of a part. */
#ifndef TN_STORE_ARCHIVE_H
#define TN_STORE_ARCHIVE_H

#include "bytes/codec.h"
#include "bytes/zip.h"
#include "store/file.h"

/* Zero-initialise to begin. */
typedef struct tn_archive {
    const tn_source *source;
    tn_zip_member   *members;   /* in the order of the directory, located */
    size_t           count;
} tn_archive;

/* Reads the directory and the header of every member.  TN_ERR_CORRUPT: members overlap, or the directory is
 * longer than they take.  Names borrow from the arena.  Free it in any case. */
tn_status tn_archive_open(tn_archive *a, const tn_source *source, tn_arena *arena, tn_error *err);
void      tn_archive_free(tn_archive *a);

/* TN_ERR_UNSUPPORTED: encrypted, or neither stored nor deflated.  The text begins with "it". */
tn_status tn_member_check_method(const tn_zip_member *m, tn_error *err);

/* TN_ERR_CORRUPT: sizes that no stored or deflated bytes can have. */
tn_status tn_member_check_sizes(const tn_zip_member *m, tn_error *err);

/* `why`, with the member in front and its place if it has none. */
tn_status tn_member_fail(const tn_zip_member *m, const tn_error *why, tn_error *err);

/* How the bytes of a member are stored: a tn_encoding. */
static inline uint8_t tn_member_encoding(const tn_zip_member *m)
{
    return m->method == TN_ZIP_DEFLATED ? TN_ENCODING_DEFLATE : TN_ENCODING_RAW;
}

/* Sets a crc32 as the checksum. */
tn_status tn_stored_set_crc32(tn_stored *stored, uint32_t crc, tn_arena *arena, tn_error *err);

/* Reads the first decoded bytes of members, one after the other.  Zero-initialise to begin. */
typedef struct tn_member_reader {
    const tn_source *source;
    const tn_zip_member *member;
    tn_codec_state   decoder;
    size_t           have;      /* decoded bytes so far */
    uint64_t         taken;     /* stored bytes that were decoded for them */
} tn_member_reader;

tn_status tn_member_begin(tn_member_reader *r, const tn_source *source, const tn_zip_member *m,
                          tn_error *err);

/* Reads on until `to` has the first n bytes, or all of a shorter member: r->have. */
tn_status tn_member_read(tn_member_reader *r, uint8_t *to, size_t n, tn_error *err);
void      tn_member_end(tn_member_reader *r);

#endif
