/* bytes/scratch.h - bytes that are written once, in order, and then read in any
 * order: few of them in memory, many in an unnamed file, which is in $TMPDIR or
 * else in /var/tmp or /tmp and is gone with the scratch. */
#ifndef TN_BYTES_SCRATCH_H
#define TN_BYTES_SCRATCH_H

#include "bytes/source.h"

#include <stdbool.h>

#define TN_SCRATCH_IN_MEMORY ((uint64_t)8 << 20)    /* more than this is a file */

/* Zero-initialise to begin. */
typedef struct tn_scratch {
    uint64_t   size, done;
    uint8_t   *memory;
    bool       has_file;
    int        fd;
    tn_source *source;          /* of all bytes, once they are there; a file is read, not mapped: it takes no
                                 * memory */
} tn_scratch;

/* Begins one of `size` bytes.  A scratch that was in use is emptied. */
tn_status tn_scratch_begin(tn_scratch *s, uint64_t size, tn_error *err);

/* At most `size` bytes in all; with the last of them there is a source. */
tn_status tn_scratch_append(tn_scratch *s, const void *bytes, size_t n, tn_error *err);

void tn_scratch_free(tn_scratch *s);

#endif
