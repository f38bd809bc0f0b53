/* bytes/sink.h - where bytes go: a file that appears whole or not at all, an open
 * descriptor, or memory.
 *
 * A file sink writes into an unnamed file (O_TMPFILE) in the target's folder;
 * where the file system has none, into ".tenon-XXXXXX.tmp", which it holds
 * locked: a later sink in the same folder removes such files that nobody
 * holds.  tn_sink_write() may be called by several threads at once for
 * ranges that do not overlap; ranges never written read as zero. */
#ifndef TN_BYTES_SINK_H
#define TN_BYTES_SINK_H

#include "base/error.h"
#include "base/vector.h"
#include "bytes/source.h"

typedef struct tn_sink tn_sink;

/* Nothing at `path` changes before tn_sink_publish().  The new file gets owner,
 * group, mode, access list and extended attributes of the one it replaces, as
 * far as the system allows (bytes/attributes.h); a symbolic link is followed, and stays one, unless it
 * is not to be trusted (bytes/place.h).  The folder is found once: whatever
 * becomes of the path later, the new file appears in that folder.
 * TN_ERR_EXISTS: there is one and `replace` is false.  TN_ERR_IO: `path` is a
 * directory or another thing that is no regular file, or cannot be written. */
tn_status tn_sink_open(const char *path, bool replace, tn_sink **sink, tn_error *err);

/* Who hears what could not be kept of a file that was replaced. */
typedef struct tn_listener {
    tn_note_fn  note;           /* NULL: nobody */
    void       *context;
    const char *path;           /* as the caller knows the file; kept until the sink is gone */
} tn_listener;
void tn_sink_listen(tn_sink *sink, tn_listener listener);

/* The file that is to be replaced was read, as `read` says: publishing fails
 * with TN_ERR_CHANGED and replaces nothing unless the name still leads to that
 * file, unchanged.  Publishing locks it meanwhile, unless the caller has it
 * locked (bytes/identity.h). */
void tn_sink_expect(tn_sink *sink, const tn_identity *read, bool locked);

/* Whether publishing would replace that file, which was found at `path`: it has
 * the name, or has lost it to another since.  NULL: nobody knows where it was. */
bool tn_sink_replaces(const tn_sink *sink, const tn_identity *read, const char *path);

/* Whether the file will lie in the folder of `path`: a link at the end of that may lead elsewhere. */
bool tn_sink_is_beside(const tn_sink *sink, const char *path);

/* Whether a sink with an expectation could be published now: for several that
 * are to be published together, to be asked before the first is. */
tn_status tn_sink_check(const tn_sink *sink, tn_error *err);

/* An open file without a name to be had, a memfd: publish gives it its size, and
 * that is all.  The descriptor is duplicated: the caller keeps its own, and with
 * it what a sink that is abandoned has written. */
tn_status tn_sink_open_fd(int fd, tn_sink **sink, tn_error *err);

/* Memory: publish leaves the bytes in *out, which the caller frees. */
tn_status tn_sink_open_memory(tn_buf *out, tn_sink **sink, tn_error *err);

tn_status tn_sink_write(tn_sink *sink, uint64_t offset, const void *data, size_t n, tn_error *err);

/* Lets the disk begin with what was written: for each of the pieces of 16 MiB
 * that a write which is done reached the end of.  Publishing waits less. */
void tn_sink_begin_sync(tn_sink *sink, uint64_t offset, size_t n);

/* Tells how large the file will be, so that a full disk is seen before the
 * work and blocks lie together.  Not an error where the file system cannot. */
tn_status tn_sink_reserve(tn_sink *sink, uint64_t size, tn_error *err);

/* Copies a range of a file-backed source without passing user space: shares
 * blocks where the file system can and both offsets allow it, else
 * copy_file_range, else read and write.  *shared grows by the bytes shared. */
tn_status tn_sink_copy_range(tn_sink *sink, uint64_t offset, const tn_source *source, uint64_t from,
                             uint64_t n, uint64_t *shared, tn_error *err);

/* The unnamed file, for reading back what was written; -1 for memory.  Not of a member of a set. */
int tn_sink_fd(const tn_sink *sink);

/* The same of any sink: it stays until it is released. */
tn_status tn_sink_hold(tn_sink *sink, int *fd, tn_error *err);
void      tn_sink_release(tn_sink *sink);

/* Cuts or extends to exactly `size`, makes it durable, and gives it its name.
 * Frees the sink whether it succeeds or fails.  A failure leaves all as it
 * was, but for one: when the folder cannot be synced the new file has its name
 * already, and the error's text says so. */
tn_status tn_sink_publish(tn_sink *sink, uint64_t size, tn_error *err);

/* Frees the sink and leaves no trace.  NULL is allowed. */
void tn_sink_abandon(tn_sink *sink);

#endif
