/* tenon/writer.h - making a tensor file.
 *
 *     tn_create()            names the file and the options
 *     tn_writer_add_meta()   any number of times
 *     tn_writer_add()        every tensor, before any data
 *     tn_writer_write()      the bytes of parts whose data was not given
 *     tn_writer_finish()     only now does the file appear, whole
 *
 * The bytes go into an unnamed file in the target's folder; until finish
 * succeeds an existing file of that name stays as it was.  The new file has
 * owner, group, mode, access list and extended attributes of the one that it
 * replaces, where the system allows it; what it cannot have is told to
 * tn_create_options.note, and nobody gets access who had none.  Other names
 * (hard links) of the old file keep the old file.  A writer is used by
 * one thread at a time.  After an error every call fails: abandon it.
 *
 * Several files appear as one: all of them under names that nobody had, and
 * then the one that names the others (the index of a sharded set, the
 * descriptors of raw data).  Old files that it named are removed after that. */
#ifndef TENON_WRITER_H
#define TENON_WRITER_H

#include <tenon/file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_writer tn_writer;

/* An option that only one container has; tn_format_info lists them. */
typedef struct tn_format_option {
    const char *format;         /* "ztensor": the one that is written, or TN_ERR_ARGUMENT */
    const char *key, *value;    /* "byte-order", "big" */
} tn_format_option;

typedef struct tn_create_options {
    size_t      size;           /* sizeof(tn_create_options), set by the caller */
    const char *format;         /* NULL: by the path's suffix */
    bool        replace;        /* an existing file may be replaced */
    bool        drop_metadata;  /* metadata the container cannot hold may be lost */
    uint64_t    align;          /* of each part's data: a power of two; 0: the container's own */
    uint64_t    shard_size;     /* safetensors: at most this many data bytes a file; 0: one file */
    tn_encoding encoding;       /* of parts that do not say otherwise */
    int         level;          /* of compression; 0: the library's default */
    tn_checksum checksum;
    unsigned    jobs;           /* threads; 0: one per core */
    bool        drop_names;     /* names the container cannot hold may be lost */
    tn_note_fn  note;           /* may be NULL; told also of old files that could not be removed,
                                 * and of others beside the new ones that nobody needs */
    void       *note_context;
    const tn_format_option *format_options;     /* looked at by tn_create() only */
    size_t      nformat_options;
    bool        to_fd;          /* the file is written into `fd`... */
    int         fd;             /* ...an empty file, open for reading and writing, which stays the caller's;
                                 * the path only names it in messages */
} tn_create_options;

/* Begins a file.  `options` may be NULL.  The disk is not touched before the
 * first data: TN_ERR_EXISTS (there is a file and `replace` is false) and
 * TN_ERR_IO (the folder cannot be written, `path` is no regular file) come
 * then.  TN_ERR_ARGUMENT: no container by that name or suffix, or an option it
 * cannot honour. */
TN_API tn_status tn_create(const char *path, const tn_create_options *options, tn_writer **writer,
                           tn_error *err);

/* Adds one piece of file metadata, copied.  A key given twice is an error when
 * data begins. */
TN_API tn_status tn_writer_add_meta(tn_writer *writer, const tn_meta *meta, tn_error *err);

/* Declares a tensor; tensors are numbered 0, 1 ... as they are added.  The
 * description is copied.  A part whose `data` is not NULL is written by
 * tn_writer_finish(): until then those bytes must stay valid and unchanged.
 * A role that is NULL is
 * that of the first part of its form ("data").  Each part's `stored` is ignored, for the options
 * say how it is stored.  A part
 * with `padded` is stored with padding up to these extents, and its bytes are given with it.  A
 * tensor that says it is `tied` to an earlier one gets no data: it has that
 * one's, shared where the container can, else written again.
 *
 * TN_ERR_ARGUMENT: a name twice or not UTF-8; a form whose parts do not fit
 * it; data already begun.  TN_ERR_LOSS,
 * TN_ERR_UNSUPPORTED: what the container cannot hold (some of it is seen only
 * when data begins). */
TN_API tn_status tn_writer_add(tn_writer *writer, const tn_tensor *tensor, tn_error *err);

/* Adds a dense tensor that is in memory: the short way of tn_writer_add().  `data` has
 * the elements in row-major order and host byte order, and must stay valid and unchanged until
 * tn_writer_finish(); name and shape are copied.  NULL: the data comes by
 * tn_writer_write().  A scalar has rank 0 and needs no shape. */
TN_API tn_status tn_writer_add_array(tn_writer *writer, const char *name, tn_dtype dtype, uint32_t rank,
                                     const int64_t *shape, const void *data, tn_error *err);

/* Appends the next `n` bytes (host byte order, dense, any cutting) of one
 * part.  A part must be complete before another is begun. */
TN_API tn_status tn_writer_write(tn_writer *writer, size_t tensor, size_t part, const void *data, size_t n,
                                 tn_error *err);

/* Writes what is left and makes the file appear under its name, on disk for
 * good (fsync).  Frees the writer whether it succeeds or fails; on failure the
 * file that stood there is untouched and nothing is left behind.  (One failure
 * comes too late for that and says so: the folder cannot be made durable.) */
TN_API tn_status tn_writer_finish(tn_writer *writer, tn_error *err);

/* Gives up: frees the writer, leaves no trace.  NULL is allowed. */
TN_API void tn_writer_abandon(tn_writer *writer);

/* For a program that ends at once, while other threads may be writing: temporary files are removed.  What is
 * getting its name gets it first; nothing else does any more: calls that publish a file do not return. */
TN_API void tn_abandon_files(void);

#ifdef __cplusplus
}
#endif
#endif
