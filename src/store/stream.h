/* store/stream.h - the decoded bytes of a part, window by window.
 *
 * A stream belongs to one thread at a time; many may read one file.  A window of few bytes is a view
 * of the mapped file if they need no change. */
#ifndef TN_STORE_STREAM_H
#define TN_STORE_STREAM_H

#include "bytes/checksum.h"
#include "bytes/codec.h"
#include "bytes/spill.h"
#include "store/file.h"

/* A window and its copy fit the second-level cache, where the next steps (checksum, swap, cast, write) find
 * them.  A multiple of 3 * 8 bytes, so that it holds whole groups of eight elements of any type. */
#define TN_WINDOW ((size_t)192 << 10)

#define TN_TO_THE_END UINT64_MAX

/* Elements of a raw part per item: whole windows of every type, and whole lanes of statistics. */
#define TN_SPAN ((uint64_t)8 * TN_WINDOW)

struct tn_stream;
typedef tn_status (*tn_next_fn)(struct tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err);

/* Buffers of one worker, reused from part to part.  Zero-initialise to begin. */
typedef struct tn_stream {
    const tn_file *file;
    const tn_tensor *tensor;        /* for messages; may be NULL */
    const tn_part *part;
    tn_next_fn next;                /* reads parts that are stored like this one */
    unsigned  unit;                 /* of bytes to reverse for host order; 1: none */
    uint64_t  stored, stored_end;   /* next byte in the file; where to stop */
    uint64_t  seen, nseen;          /* the last window that was a view, not yet checked */
    uint64_t  made, made_end;       /* decoded bytes so far, and in all; TN_TO_THE_END: not known */
    tn_hash   hash;                 /* of stored bytes, or of decoded ones in file order, see tn_codec */
    bool      hashed;               /* the hash was computed before the first window */
    uint8_t  *in, *out;             /* windows, allocated on first use */

    /* Compressed. */
    tn_codec_state decoder;
    const uint8_t *pending;         /* stored bytes not yet decoded */
    size_t    npending;
    const tn_part *reserved;        /* the part whose zstd window is reserved, or NULL */
    uint64_t  window, held;         /* the largest window of its frames; bytes of it to give back */

    /* Strided. */
    tn_spill  whole;                /* the decoded part, if it is compressed */
    struct { uint8_t *bytes; size_t cap; uint64_t from, size; } block;  /* dense bytes of several windows, so
                                     * that a column is read at once */

    const tn_derive *derive;        /* how it is made of other parts, or NULL... */
    void      *derived;             /* ...and the state of that */
} tn_stream;

/* The kind of a part's checksum, or NONE if this build cannot compute it. */
tn_checksum tn_part_checksum(const tn_part *part);

/* TN_ERR_UNSUPPORTED: the part cannot be decoded.  The tensor is for the message; it may be NULL. */
tn_status tn_part_readable(const tn_tensor *tensor, const tn_part *part, tn_error *err);

/* A stream that will be opened, and its part. */
typedef struct tn_stream_wish {
    tn_stream     *stream;
    const tn_file *file;
    const tn_tensor *tensor;        /* for messages; may be NULL */
    const tn_part *part;
} tn_stream_wish;

/* Takes the windows that all these streams need (bytes/windows.h) at once, or none.  Code that will have
 * several streams open calls it before it opens the first one.  tn_stream_close() gives them back. */
tn_status tn_stream_reserve(const tn_stream_wish *wishes, size_t n, tn_error *err);

/* Begins bytes [from, from + n) of the decoded part, and computes the checksum `kind` of its stored bytes, or
 * of those that its checksum covers.  Only a part that splits may be read in part; if it is strided or its
 * checksum covers more than the part, only without a checksum.  Parts that it is derived from are checked
 * against their checksums at the end: TN_ERR_CHECKSUM.  May wait for a window that was not reserved. */
tn_status tn_stream_open(tn_stream *s, const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                         uint64_t from, uint64_t n, tn_checksum kind, tn_error *err);

/* Begins the bytes that the checksum covers, in file order: as stored, or decoded if they are deflated. */
tn_status tn_stream_open_stored(tn_stream *s, const tn_file *file, const tn_tensor *tensor,
                                const tn_part *part, tn_checksum kind, tn_error *err);

/* The next window of at most TN_WINDOW bytes, in host order, valid until the next call. *n is
 * 0 at the end. TN_ERR_TRUNCATED, TN_ERR_IO: the file was truncated or is unreadable, perhaps since the last
 * window. */
tn_status tn_stream_next(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err);

/* Copies all windows that follow. */
tn_status tn_stream_read(tn_stream *s, uint8_t *to, tn_error *err);

/* After the last window: the checksum. */
tn_status tn_stream_digest(tn_stream *s, tn_digest *digest, tn_error *err);

/* Gives back the stream's window, and its memory if that is large.  Every item of a pool ends with it, also
 * after a failure: others may be waiting.  The stream can be opened again. */
void tn_stream_close(tn_stream *s);

void tn_stream_free(tn_stream *s);

/* TN_ERR_CHECKSUM: `found` differs from the part's checksum.  TN_OK if it has none. */
tn_status tn_part_compare_digest(const tn_tensor *tensor, const tn_part *part, const tn_digest *found,
                                 tn_error *err);

/* The same for the checksum that the stream computed, after the last window. */
tn_status tn_stream_check(tn_stream *s, const tn_tensor *tensor, const tn_part *part, tn_error *err);

/* The same for a part that has a checksum; the message begins with `who`. */
tn_status tn_digest_check(const tn_part *part, const tn_digest *found, const char *who, tn_error *err);

#endif
