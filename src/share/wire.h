/* share/wire.h - the packets that processes send to share tensors, encoded and decoded.  docs/sharing.md has
 * the table.
 *
 *     client: HELLO, and NEXT after each item
 *     server: FILE or TENSOR in answer to each, finally END          or: REFUSED */
#ifndef TN_SHARE_WIRE_H
#define TN_SHARE_WIRE_H

#include "base/arena.h"
#include "base/vector.h"

#include <tenon/buffer.h>

#define TN_WIRE_VERSION   1
#define TN_WIRE_MAX       65536u        /* bytes of a packet with its header */
#define TN_WIRE_MAX_NAME  1024u         /* bytes */
#define TN_WIRE_MAX_ITEMS 1024u         /* of one offer */

typedef enum tn_wire_kind {
    TN_WIRE_HELLO   = 1,
    TN_WIRE_FILE    = 2,
    TN_WIRE_TENSOR  = 3,
    TN_WIRE_END     = 4,
    TN_WIRE_REFUSED = 5,
    TN_WIRE_NEXT    = 6
} tn_wire_kind;

/* One packet.  Fields that its kind does not have are zero. */
typedef struct tn_wire {
    tn_wire_kind kind;
    /* HELLO: plain files are accepted.  FILE: it is a plain file, not a sealed zTensor image.  TENSOR: it is
     * in a plain file; not sent, the receiver sees it. */
    bool         in_place;
    const char  *name;          /* FILE */
    const char  *format;        /* FILE: the container's name */
    uint64_t     bytes;         /* FILE: size */
    uint64_t     offset;        /* TENSOR: of the buffer in the memory of the handle */
    uint8_t      opaque[64];    /* TENSOR of cuda_ipc */
    const tn_descriptor *tensor;    /* TENSOR: has a buffer_handle, whose number is not used */
    tn_descriptors *set;        /* decoded: owns `tensor` */
    uint64_t     items;         /* END: number of items sent */
    uint64_t     withheld;      /* END: plain files that the client did not ask for */
    const char  *why;           /* REFUSED */
} tn_wire;

/* How many descriptors come with a packet: 0 or 1. */
size_t tn_wire_descriptors(const tn_wire *packet);

/* Appends a packet.  TN_ERR_LIMIT: it would be too long. */
tn_status tn_wire_encode(const tn_wire *packet, tn_buf *out, tn_error *err);

/* Reads a packet that came with this many descriptors.  Strings are in the arena; tn_wire_free() frees the
 * rest.  Numbers are within the limits above; nothing else is checked.
 *
 * TN_ERR_TRUNCATED, TN_ERR_CORRUPT, TN_ERR_LIMIT.  TN_ERR_UNSUPPORTED: another version, or a handle that
 * cannot be sent. */
tn_status tn_wire_decode(const uint8_t *bytes, size_t n, size_t descriptors, tn_arena *arena, tn_wire *packet,
                         tn_error *err);
void      tn_wire_free(tn_wire *packet);

/* The dense tensor that a packet describes, in a buffer of `bytes` bytes at `data` (NULL: not mapped); shape
 * and strides are in the arena.  TN_ERR_CORRUPT: fields contradict each other or the buffer.
 * TN_ERR_UNSUPPORTED: not dense, or a type or byte order that cannot be used here. */
tn_status tn_wire_tensor(const tn_descriptor *d, const void *data, uint64_t bytes, tn_arena *arena,
                         tn_tensor *tensor, tn_error *err);

#endif
