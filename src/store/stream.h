/* store/stream.h - the decoded bytes of a part, window by window.
 *
 * A stream belongs to one thread at a time; many may read one file.  Windows
 * are views of the mapping where the bytes can be taken as they are. */
#ifndef TN_STORE_STREAM_H
#define TN_STORE_STREAM_H

#include "bytes/checksum.h"
#include "bytes/codec.h"
#include "bytes/spill.h"
#include "store/columns.h"
#include "store/file.h"

/* A window fits the second-level cache with its copy: what is done to it next
 * (checksum, swap, cast, write) finds it there.  A multiple of 3 * 8 bytes, so
 * that eight elements of any type are never cut. */
#define TN_WINDOW ((size_t)192 << 10)

#define TN_TO_THE_END UINT64_MAX

/* Elements that a thread takes of a raw part where results are joined in order:
 * whole windows of every type, and whole lanes of statistics. */
#define TN_SPAN ((uint64_t)8 * TN_WINDOW)

/* What becomes of elements on their way: a cast, say.  Any thread. */
typedef struct tn_change {
    /* `elements` of them from number `first` on, into `out`, which has room.
     * Both `in` and `out` begin on a byte with that element. */
    tn_status (*apply)(const void *context, uint64_t first, const uint8_t *in, size_t elements, uint8_t *out,
                       tn_error *err);
    const void *context;
    unsigned    from_bits, to_bits;     /* of an element */
} tn_change;

/* Elements that are made of several parts: values of codes with scales, say.  Any thread. */
typedef struct tn_range_decoder {
    /* `n` of them from number `first` on, into `out`, which begins on a byte with that element and has
     * room. */
    tn_status (*make)(const void *context, uint64_t first, size_t n, uint8_t *out, tn_error *err);
    const void *context;
    unsigned    bits;               /* of an element */
} tn_range_decoder;

struct tn_stream;
typedef tn_status (*tn_next_fn)(struct tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err);

/* Buffers of one worker, reused from part to part.  Zero-initialise to begin. */
typedef struct tn_stream {
    const tn_file *file;
    const tn_tensor *tensor;        /* for messages; may be NULL */
    const tn_part *part;
    tn_next_fn next;                /* the reader for parts that are stored like this one */
    unsigned  unit;                 /* of bytes to reverse, for host order; 1: none */
    uint64_t  stored, stored_end;   /* next byte in the file; where to stop */
    uint64_t  seen, nseen;          /* the last window that was a view, not yet checked */
    uint64_t  made, made_end;       /* decoded bytes so far, and in all; TN_TO_THE_END: as many as there
                                     * are */
    tn_hash   hash;                 /* over stored bytes, or over decoded ones in the order of the file, see
                                     * tn_codec */
    bool      hashed;               /* it went over them all before the first window */
    uint8_t  *in, *out;             /* windows, allocated on first need */

    /* Compressed. */
    tn_codec_state decoder;
    const uint8_t *pending;         /* stored bytes not yet decoded */
    size_t    npending;
    const tn_part *reserved;        /* the part whose window was taken, or NULL */
    uint64_t  window, held;         /* the largest one of its frames; bytes of it that must be given back */

    /* Elements that lie apart. */
    tn_spill  whole;                /* all of it, where it is compressed */
    struct { uint8_t *bytes; size_t cap; uint64_t from, size; } block;  /* bytes of the part that are at hand:
                                     * so many that those of a column are taken together */
    tn_columns *columns;            /* extents of their own */

    /* What becomes of the elements. */
    const tn_change *change;        /* or NULL */
    const tn_range_decoder *maker;  /* or NULL: then they are made, not read */
    uint64_t  element, elements;    /* number of the next one, and where to stop */
    const uint8_t *unchanged;       /* decoded bytes still to be changed */
    size_t    nunchanged;
    unsigned  swap;                 /* unit of bytes to reverse in windows, at last; 0: none */
    uint8_t  *changed, *swapped;
} tn_stream;

/* The checksum of a part that this build can compute, else NONE. */
tn_checksum tn_part_checksum(const tn_part *part);

/* TN_OK when the part's bytes can be decoded; TN_ERR_UNSUPPORTED with the
 * reason otherwise.  The tensor is for the message; it may be NULL. */
tn_status tn_part_readable(const tn_tensor *tensor, const tn_part *part, tn_error *err);

/* A part that a stream is to be opened of. */
typedef struct tn_stream_wish {
    tn_stream     *stream;
    const tn_file *file;
    const tn_tensor *tensor;        /* for messages; may be NULL */
    const tn_part *part;
} tn_stream_wish;

/* Takes the windows that streams of all these parts need (bytes/windows.h), at
 * once: whoever will have several open at a time does so before it opens the first,
 * and has none open then.  All or none; tn_stream_close() gives back. */
tn_status tn_stream_reserve(const tn_stream_wish *wishes, size_t n, tn_error *err);

/* Begins bytes [from, from + n) of the decoded part, computing `kind` over the
 * stored bytes it takes, or over those that its checksum is of.  Only parts that
 * split may begin elsewhere than at 0 or end before their end, and of those
 * whose elements lie apart, or whose checksum is of more, only without a checksum.
 * Columns that are stored apart are held against their own checksums at the end:
 * TN_ERR_CHECKSUM.  May wait for a window, unless that was reserved. */
tn_status tn_stream_open(tn_stream *s, const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                         uint64_t from, uint64_t n, tn_checksum kind, tn_error *err);

/* Begins the bytes that the checksum of a part is of, whatever they mean: as they are stored, or decoded
 * where they are deflated, but in the order of the file. */
tn_status tn_stream_open_stored(tn_stream *s, const tn_file *file, const tn_tensor *tensor,
                                const tn_part *part, tn_checksum kind, tn_error *err);

/* Begins elements [first, first + n) that `maker` makes; the bits that fill the last byte are 0. */
void tn_stream_open_decoder(tn_stream *s, const tn_range_decoder *maker, uint64_t first, uint64_t n);

/* From here on windows hold what `change` makes of the elements. */
void tn_stream_change(tn_stream *s, const tn_change *change);

/* From here on windows are in the other byte order: each `unit` bytes of them in reverse; 0: none. */
void tn_stream_swap(tn_stream *s, unsigned unit);

/* The next window, at most TN_WINDOW bytes, host byte order unless swapped, valid until the
 * next call; *n is 0 at the end.  TN_ERR_TRUNCATED, TN_ERR_IO: the file was cut
 * or could not be read, perhaps within the window before. */
tn_status tn_stream_next(tn_stream *s, const uint8_t **bytes, size_t *n, tn_error *err);

/* All windows that follow, to one place. */
tn_status tn_stream_read(tn_stream *s, uint8_t *to, tn_error *err);

/* After the last window: the checksum. */
tn_status tn_stream_digest(tn_stream *s, tn_digest *digest, tn_error *err);

/* Gives the window back that the stream has, and the memory for it if that is large.  Every piece of work
 * that a pool hands out ends so, for better or worse: others may be waiting.  The stream can be opened
 * again. */
void tn_stream_close(tn_stream *s);

void tn_stream_free(tn_stream *s);

/* TN_ERR_CHECKSUM when `found` is not what the part's checksum text says, if it has one. */
tn_status tn_part_compare_digest(const tn_tensor *tensor, const tn_part *part, const tn_digest *found,
                                 tn_error *err);

/* After the last window of a part whose checksum was computed: the same. */
tn_status tn_stream_check(tn_stream *s, const tn_tensor *tensor, const tn_part *part, tn_error *err);

/* The same of a part that has one; the message begins with `who`. */
tn_status tn_digest_check(const tn_part *part, const tn_digest *found, const char *who, tn_error *err);

#endif
