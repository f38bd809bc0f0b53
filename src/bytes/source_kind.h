/* bytes/source_kind.h - the functions of a source: one row per kind.
 *
 * A new kind is a file that defines its row, and a line in the table of source.c. */
#ifndef TN_BYTES_SOURCE_KIND_H
#define TN_BYTES_SOURCE_KIND_H

#include "bytes/source.h"

typedef struct tn_source_kind {
    const char *scheme;         /* prefix of the names, such as "http://" */
    /* Allocates a struct that begins with struct tn_source, and fills in that. */
    tn_status (*open)(const char *name, tn_io io, tn_source **source, tn_error *err);
    /* Instead of `open`, for sources that are far: begins to open one, which `settle` ends.  Before that it
     * may only be closed.  *missing (unless NULL): there is no such object; then that is not a failure, and
     * the source is only good to be closed. */
    tn_status (*start)(const char *name, tn_source **source, tn_error *err);
    tn_status (*settle)(tn_source *source, bool *missing, tn_error *err);
    /* Ranges that will be read; NULL: the source has no use for hints. */
    void      (*expect)(const tn_source *source, const tn_range *ranges, size_t n);
    /* What the server calls this version; NULL: sources of this kind have none. */
    const char *(*version)(const tn_source *source);
    /* Reads a range inside the source.  Called by any thread, if `base` is NULL. */
    tn_status (*read)(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err);
    void      (*close)(tn_source *source);
} tn_source_kind;

struct tn_source {
    const tn_source_kind  *kind;
    uint64_t               size;
    const uint8_t         *base;    /* all bytes in memory, or NULL */
    const struct tn_guard *guard;   /* of the mapping, or NULL */
    bool                   copies;  /* see tn_source_copies() */
    bool                   is_watched;
    int                    watched; /* descriptor that shows whether the file was truncated */
};

extern const tn_source_kind tn_source_file;
extern const tn_source_kind tn_source_http, tn_source_https, tn_source_s3, tn_source_hub;

/* Reads a mapped file with pread(), which maps no pages.  false: it cannot be read this way. */
bool tn_source_read_by_kernel(const tn_source *source, uint64_t offset, void *buffer, size_t n,
                              tn_status *status, tn_error *err);

#endif
