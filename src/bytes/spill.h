/* bytes/spill.h - bytes that may not fit in memory: a few are on the heap, many in an unnamed file. */
#ifndef TN_BYTES_SPILL_H
#define TN_BYTES_SPILL_H

#include "bytes/sink.h"
#include "bytes/source.h"

#define TN_SPILL_IN_MEMORY ((uint64_t)8 << 20)      /* more than this is a file */

/* Zero-initialise to begin. */
typedef struct tn_spill {
    uint64_t   size, filled;
    uint8_t   *bytes;           /* on the heap or mapped; NULL: in a file that is not mapped */
    tn_sink   *sink;            /* of the unnamed file, or NULL */
    tn_source *source;          /* after the last tn_spill_append(): all bytes */
} tn_spill;

/* `size` bytes of zeros in memory, to be filled in any order; the kernel can write pages of a file out.  The
 * file is in the folder of the path `beside`; NULL: in $TMPDIR, else /var/tmp or /tmp.  Fails if the disk is
 * full; the error names the file `beside`. */
tn_status tn_spill_make(tn_spill *spill, const char *beside, uint64_t size, tn_error *err);

/* Bytes that are written once, in order, and then read.  A file is not mapped. */
tn_status tn_spill_begin(tn_spill *spill, uint64_t size, tn_error *err);

/* The same in a file that is open, empty and stays the caller's. */
tn_status tn_spill_begin_in(tn_spill *spill, int fd, uint64_t size, tn_error *err);

/* At most `size` bytes in all; after the last of them there is a source. */
tn_status tn_spill_append(tn_spill *spill, const void *bytes, size_t n, tn_error *err);

/* There are fewer bytes than was said. */
tn_status tn_spill_end(tn_spill *spill, tn_error *err);

void tn_spill_free(tn_spill *spill);

#endif
