/* pipeline/room.h - memory to be filled in any order: little of it from the heap, much
 * of it in an unnamed file, whose pages can leave memory. */
#ifndef TN_PIPELINE_ROOM_H
#define TN_PIPELINE_ROOM_H

#include "bytes/sink.h"

/* Zero-initialise to begin. */
typedef struct tn_room {
    uint8_t *bytes;             /* all 0 at first */
    uint64_t size;
    tn_sink *sink;              /* of the unnamed file, or NULL */
} tn_room;

/* `beside`: a path, in whose folder the file is; NULL: in $TMPDIR, else /var/tmp
 * or /tmp.  A full disk is seen here. */
tn_status tn_room_make(tn_room *room, const char *beside, uint64_t size, tn_error *err);
void      tn_room_free(tn_room *room);

#endif
