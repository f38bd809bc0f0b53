/* spool.h - the decoded bytes of a part as memory, however it is stored.
 *
 * What cannot be mapped as it is (compressed, in another byte order, in pieces)
 * is decoded into an unnamed file beside the output: its pages can leave memory. */
#ifndef TN_SPOOL_H
#define TN_SPOOL_H

#include "bytes/sink.h"
#include "container/stream.h"

typedef struct tn_spooling {
    const tn_file   *in;
    const tn_tensor *tensor;
    const tn_part   *part;
    const char      *beside;    /* the output's path */
    tn_status      (*tick)(void *context, tn_error *err);   /* now and then: a chance to cancel; may be NULL */
    void            *context;
    bool             output_failed;     /* set: the error is tick()'s, or of the file beside the output */
} tn_spooling;

/* Zero-initialise to begin. */
typedef struct tn_spool {
    const uint8_t *bytes;       /* all of the part, dense, host order; NULL where it has none */
    tn_sink       *sink;
    tn_source     *source;
} tn_spool;

/* Compares the bytes as they are stored with their checksum, if there is one. */
tn_status tn_spool_check(tn_spooling *s, tn_error *err);

/* Decodes the part, checking its checksum. */
tn_status tn_spool_part(tn_spooling *s, tn_spool *spool, tn_error *err);

void tn_spool_free(tn_spool *spool);

#endif
