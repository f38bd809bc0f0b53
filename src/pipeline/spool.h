/* pipeline/spool.h - the decoded bytes of a part as memory, however it is stored.
 *
 * What cannot be mapped as it is (compressed, in another byte order, in pieces)
 * is decoded into a room beside the output. */
#ifndef TN_PIPELINE_SPOOL_H
#define TN_PIPELINE_SPOOL_H

#include "store/stream.h"
#include "pipeline/room.h"

typedef struct tn_spooling {
    const tn_file   *in;
    const tn_tensor *tensor;
    const tn_part   *part;
    const char      *beside;    /* see tn_room_make() */
    /* now and then: a chance to cancel; may be NULL */
    tn_status      (*tick)(void *context, tn_error *err);
    void            *context;
    bool             output_failed;     /* set: the error is tick()'s, or of the file beside the output */
} tn_spooling;

/* Compares the bytes as they are stored with their checksum, if there is one. */
tn_status tn_spool_check(tn_spooling *s, tn_error *err);

/* Decodes the part, checking its checksum: all of it is in the room, dense, in host order. */
tn_status tn_spool_part(tn_spooling *s, tn_room *room, tn_error *err);

#endif
