/* bytes/source_kind.h - what is behind a source: one row of functions per kind.
 *
 * A new kind (files on a server, say) is a file that defines its row, and a line in the table of source.c. */
#ifndef TN_BYTES_SOURCE_KIND_H
#define TN_BYTES_SOURCE_KIND_H

#include "bytes/source.h"

typedef struct tn_source_kind {
    const char *scheme;         /* what the names of such sources begin with, as "http://" */
    /* Allocates a source that begins with struct tn_source, and fills in that. */
    tn_status (*open)(const char *name, tn_io io, tn_source **source, tn_error *err);
    /* A range inside the source, of one whose bytes are not in place.  Any thread. */
    tn_status (*read)(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err);
    void      (*close)(tn_source *source);
} tn_source_kind;

struct tn_source {
    const tn_source_kind  *kind;
    uint64_t               size;
    const uint8_t         *base;    /* all bytes in place, or NULL */
    const struct tn_guard *guard;   /* of bytes in place that are mapped, or NULL */
    bool                   is_watched;
    int                    watched; /* the file that is looked at to see whether it has shrunk */
};

extern const tn_source_kind tn_source_file;

/* Reads a mapped file without mapping more of it.  False: it cannot. */
bool tn_source_read_by_kernel(const tn_source *source, uint64_t offset, void *buffer, size_t n,
                              tn_status *status, tn_error *err);

#endif
