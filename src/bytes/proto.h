/* bytes/proto.h - protobuf's wire format: a cursor over the fields of a message, and a writer.
 *
 * A message is a sequence of fields: a tag (the field's number and its wire type) and a value.  Nothing is
 * loaded: the cursor reads tags and small values through one window, and a value with a length is passed over
 * unless somebody asks for its bytes.  So a model of many gigabytes is walked in the time that its tags take.
 *
 * The window holds copies.  Bytes that are looked at a second time may have been read a second time: whoever
 * goes through a message twice must not rely on what it saw the first time.
 *
 * Like the other readers of bytes/, a failed one stays failed. */
#ifndef TN_BYTES_PROTO_H
#define TN_BYTES_PROTO_H

#include "base/vector.h"
#include "bytes/source.h"

typedef enum tn_wire {
    TN_WIRE_VARINT = 0, TN_WIRE_FIXED64 = 1, TN_WIRE_LENGTH = 2, TN_WIRE_FIXED32 = 5
} tn_wire;

/* A field that a message is known to have. */
typedef struct tn_proto_rule {
    const char *name;           /* NULL: no field has this number */
    uint8_t     wires;          /* the wire types that it may have: bits 1 << tn_wire */
    bool        once;           /* it comes at most once */
} tn_proto_rule;

enum {
    TN_PROTO_VARINT = 1 << TN_WIRE_VARINT,
    TN_PROTO_LENGTH = 1 << TN_WIRE_LENGTH,
    TN_PROTO_VARINTS = TN_PROTO_VARINT | TN_PROTO_LENGTH,       /* repeated, packed or not */
    TN_PROTO_FIXED32S = 1 << TN_WIRE_FIXED32 | TN_PROTO_LENGTH,
    TN_PROTO_FIXED64S = 1 << TN_WIRE_FIXED64 | TN_PROTO_LENGTH
};

/* The known fields of a kind of message, by number; others are passed over. */
typedef struct tn_proto_kind {
    const char          *name;  /* "TensorProto" */
    const tn_proto_rule *rules;
    uint32_t             count; /* at most 64 */
} tn_proto_kind;

#define TN_PROTO_KIND(name, rules) { name, rules, sizeof(rules) / sizeof(rules)[0] }

enum { TN_PROTO_WINDOW = 32 << 10, TN_PROTO_GLANCE = 4 << 10 };

/* What all cursors of a file share. */
typedef struct tn_proto_input {
    const tn_source *source;
    tn_error  *err;             /* never NULL; filled by what fails */
    tn_status  status;          /* of the first failure */
    uint64_t   at;              /* of the window in the source */
    size_t     have;            /* bytes in the window */
    uint8_t    window[TN_PROTO_WINDOW];
} tn_proto_input;

/* A message, and how far it is read: pos <= end <= size of the source, always. */
typedef struct tn_proto {
    tn_proto_input      *in;
    const tn_proto_kind *kind;
    uint64_t             pos, end;
    uint64_t             seen;  /* fields that were there: bits 1 << number */
    bool                 is_inner;      /* it is part of another message */
} tn_proto;

typedef struct tn_proto_field {
    uint32_t number;
    tn_wire  wire;
    uint64_t at;                /* of the tag */
    uint64_t value_at;          /* after the tag */
    uint64_t value;             /* of a number: its bits; with a length: that */
    uint64_t begin;             /* of the bytes after a length */
} tn_proto_field;

/* The whole source as one message. */
tn_proto tn_proto_open(tn_proto_input *in, const tn_proto_kind *kind);

/* The value of a field with a length as a message. */
tn_proto tn_proto_enter(const tn_proto *p, const tn_proto_field *field, const tn_proto_kind *kind);

/* Takes the next field; false at the end of the message, and after a failure.
 * TN_ERR_TRUNCATED: the source ends inside a field.  TN_ERR_CORRUPT: it does not fit the message, has a
 * wrong wire type, or comes twice.  TN_ERR_UNSUPPORTED: groups. */
bool tn_proto_next(tn_proto *p, tn_proto_field *field);

/* The next number of packed ones, whose bytes the cursor was entered for; false: there are no more, or it
 * failed. */
bool tn_proto_packed(tn_proto *p, tn_wire wire, uint64_t *value);

/* A copy of a value with a length: UTF-8 text without NUL, in the arena.  NULL: it has failed.  `what` names
 * it in messages. */
const char *tn_proto_text(const tn_proto *p, const tn_proto_field *field, const char *what, tn_arena *arena);

/* Whether a value with a length is this text. */
bool tn_proto_is(const tn_proto *p, const tn_proto_field *field, const char *text);

/* Fails with an error at a byte, unless it has failed already; returns the status. */
__attribute__((format(printf, 4, 5)))
tn_status tn_proto_reject(tn_proto_input *in, tn_status status, uint64_t at, const char *format, ...);

/* Writing. */
enum { TN_PROTO_VARINT_MAX = 10 };
unsigned tn_proto_varint_size(uint64_t value);
void tn_proto_put_varint(tn_buf *b, uint64_t value);
void tn_proto_put_tag(tn_buf *b, uint32_t number, tn_wire wire);
void tn_proto_put_text(tn_buf *b, uint32_t number, const char *text);   /* tag, length and bytes */

#endif
