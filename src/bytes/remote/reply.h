/* bytes/remote/reply.h - what a server says of its reply: headers, and a few elements of XML.
 *
 * Nothing here believes a server: numbers that do not fit are left out, texts that do not fit are dropped. */
#ifndef TN_BYTES_REMOTE_REPLY_H
#define TN_BYTES_REMOTE_REPLY_H

#include "base/text.h"

/* The largest object that is believed. */
#define TN_REMOTE_SIZE_MAX (UINT64_C(1) << 59)

typedef struct tn_reply {
    int      status;            /* of HTTP; 0: none came */
    bool     has_range;         /* Content-Range: bytes [first, last] of `total` */
    bool     has_total;         /* also of "bytes * / total" */
    bool     has_length;
    bool     has_wait;
    bool     is_encoded;        /* Content-Encoding other than identity */
    uint64_t first, last, total;
    uint64_t length;            /* of the body */
    unsigned wait;              /* Retry-After, in seconds */
    char     etag[256];         /* with its quotes; "": none, or too long */
    char     modified[64];      /* Last-Modified, as it is */
    char     region[64];        /* x-amz-bucket-region */
    char     code[64];          /* <Code> of an error in XML, or "" */
} tn_reply;

/* A text without the spaces around it. */
tn_text tn_remote_trim(tn_text t);

/* One line of the header, with or without its end.  A status line begins a new reply. */
void tn_reply_line(tn_reply *reply, const char *line, size_t n);

/* Whether the ETag proves that bytes are the same: it is there and not weak. */
bool tn_reply_is_strong(const tn_reply *reply);

/* The text of the next element TAG in *xml, which becomes what follows it; false: there is none.  Elements
 * are searched, not parsed: attributes, comments and nesting mean nothing. */
bool tn_xml_next(tn_text *xml, const char *tag, tn_text *value);

/* The same for the first one, without &amp; and the like, into `to` of `cap` bytes.  false: none, or it does
 * not fit. */
bool tn_xml_text(tn_text xml, const char *tag, char *to, size_t cap);

#endif
