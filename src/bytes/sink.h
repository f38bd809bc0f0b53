/* bytes/sink.h - where bytes go: a file that appears whole or not at all, an open descriptor, memory, or an
 * object of S3 (bytes/remote/upload.h).
 *
 * A file sink writes to an unnamed file (O_TMPFILE) in the target's folder.  If the file system has no
 * unnamed files, it writes to ".tenon-XXXXXX.tmp" and locks it; a later sink in the same folder removes
 * such files that are not locked.  Several threads may call tn_sink_write() at once for ranges that do not
 * overlap.  Ranges that are never written read as zero. */
#ifndef TN_BYTES_SINK_H
#define TN_BYTES_SINK_H

#include "base/error.h"
#include "base/vector.h"
#include "bytes/source.h"

typedef struct tn_sink tn_sink;

/* Nothing at `path` changes before tn_sink_publish().  The new file gets owner, group, mode, access list and
 * extended attributes of the file that it replaces, as far as the system allows (bytes/attributes.h).  A
 * symbolic link is followed and stays a link, unless it is not to be trusted (bytes/place.h).  The folder is
 * opened here: later changes of the path do not matter.
 *
 * TN_ERR_EXISTS: the file exists and `replace` is false.  TN_ERR_IO: `path` is not a regular file, or cannot
 * be written.  A URL is an object: its bytes are in an unnamed temporary file until then.
 * TN_ERR_UNSUPPORTED: a URL that cannot be written. */
tn_status tn_sink_open(const char *path, bool replace, tn_sink **sink, tn_error *err);

/* Is told which attributes of a replaced file were lost. */
typedef struct tn_listener {
    tn_note_fn  note;           /* or NULL */
    void       *context;
    const char *path;           /* of the file, as the caller knows it; borrowed until the sink is freed */
} tn_listener;
void tn_sink_listen(tn_sink *sink, tn_listener listener);

/* Lets publishing fail with TN_ERR_CHANGED, and replace nothing, unless the name still leads to the file
 * `read`, unchanged.  Publishing locks that file unless the caller has locked it (bytes/identity.h). */
void tn_sink_expect(tn_sink *sink, const tn_identity *read, bool locked);

/* Whether publishing would replace the file `read`: it has the name, or had it when it was found at `path`
 * (NULL: unknown). */
bool tn_sink_replaces(const tn_sink *sink, const tn_identity *read, const char *path);

/* Whether the file will be in the folder of `path`.  If `path` is a link, its target may be elsewhere. */
bool tn_sink_is_beside(const tn_sink *sink, const char *path);

/* Puts the bytes of a file sink that is still empty into the file `name` of `folder`, which is there
 * already and may be written by other processes too.  Publishing gives that file a second name, the final
 * one; it is no failure if the file has that name already.  Neither publishing nor abandoning takes the
 * first name away. TN_ERR_UNSUPPORTED: the file is on another file system than the output, or the output
 * is no file. */
tn_status tn_sink_share(tn_sink *sink, int folder, const char *name, tn_error *err);

/* At least so many bytes will be written. */
void      tn_sink_plan(tn_sink *sink, uint64_t size);

/* Creates such a file, with the access that the sink's own file has and the planned size. */
tn_status tn_sink_make_shared(tn_sink *sink, int folder, const char *name, tn_error *err);

/* --- an object that several processes make ---
 *
 * Its parts are planned.  Bytes of a part that belongs to a piece go to a temporary file of the process that
 * makes the piece, which sends them when it is made.  All other bytes go to the shared file, and are sent
 * when the object is published. */

#define TN_NO_PIECE UINT32_MAX

/* A part, which ends where the next begins. */
typedef struct tn_sink_part {
    uint64_t begin;
    uint32_t piece;             /* that it belongs to, or TN_NO_PIECE */
} tn_sink_part;

/* A store takes parts of at least 5 MiB, but for the last, and at most 10,000. */
#define TN_PART_LEAST ((uint64_t)5 << 20)

/* Whether the sink is an object. */
bool tn_sink_is_far(const tn_sink *sink);

/* An object that belongs to others, and gets its name before the first write.  It must not exist; that is
 * found out when its upload begins. */
tn_status tn_sink_new_object(tn_sink **sink, tn_error *err);
tn_status tn_sink_name_object(tn_sink *sink, const char *url, tn_error *err);

/* Sets the parts, of which the first begins at 0; the last, which belongs to no piece, is followed by others
 * of `rest` bytes each.  After tn_sink_share(). */
tn_status tn_sink_cut(tn_sink *sink, const tn_sink_part *parts, size_t n, uint64_t rest, tn_error *err);

/* The upload, which all processes must join: TN_SINK_UPLOAD bytes at most, with a NUL.  Joining another
 * upload than that which was begun here ends the latter. */
enum { TN_SINK_UPLOAD = 1024 };
tn_status tn_sink_begin_upload(tn_sink *sink, char id[TN_SINK_UPLOAD], tn_error *err);
void      tn_sink_join_upload(tn_sink *sink, const char *id);
bool      tn_sink_has_upload(const tn_sink *sink);

/* How many parts belong to a piece. */
size_t tn_sink_count_parts(const tn_sink *sink, uint32_t piece);

/* Sends the parts of a piece, which is made: appends their ETags, each with its NUL. */
tn_status tn_sink_send(tn_sink *sink, uint32_t piece, tn_buf *etags, tn_error *err);

/* Takes these ETags of parts that were sent by any process.  false: they cannot be.  The parts can no longer
 * be written to. */
bool tn_sink_was_sent(tn_sink *sink, uint32_t piece, const char *const *etags, size_t n);

/* Bytes that the shared file must have at least, if [begin, end) was written. */
uint64_t tn_sink_least(const tn_sink *sink, uint64_t begin, uint64_t end);

/* An earlier process that published was about to give the object this ETag: if it has it, it is published. */
void tn_sink_expect_etag(tn_sink *sink, const char *etag);

/* Is told the ETag that the object is about to have, right before it appears, if that is known.  An error
 * ends publishing. */
typedef tn_status (*tn_sink_coming_fn)(void *context, const char *etag, tn_error *err);
void tn_sink_announce(tn_sink *sink, tn_sink_coming_fn coming, void *context);

/* Writes what was written to disk; until then a crash of the machine may lose it. */
tn_status tn_sink_sync(tn_sink *sink, tn_error *err);

/* Checks what tn_sink_expect() asked for.  To be called for all of several sinks before the first of them is
 * published. */
tn_status tn_sink_check(const tn_sink *sink, tn_error *err);

/* An open file that needs no name, such as a memfd: publishing only sets its size.  The descriptor is
 * duplicated.  Abandoning the sink leaves the written bytes in the file. */
tn_status tn_sink_open_fd(int fd, tn_sink **sink, tn_error *err);

/* Memory: publishing moves the bytes to *out, which the caller frees. */
tn_status tn_sink_open_memory(tn_buf *out, tn_sink **sink, tn_error *err);

tn_status tn_sink_write(tn_sink *sink, uint64_t offset, const void *data, size_t n, tn_error *err);

/* Whether a thread is writing: another one would wait, because a file takes one at a time. */
bool tn_sink_is_busy(const tn_sink *sink);

/* Starts writing completed pieces of 16 MiB of this range to disk, so that publishing waits less. */
void tn_sink_begin_sync(tn_sink *sink, uint64_t offset, size_t n);

/* Reserves space for the file, so that a full disk is noticed before the work and blocks are contiguous.  Not
 * an error if the file system cannot reserve. */
tn_status tn_sink_reserve(tn_sink *sink, uint64_t size, tn_error *err);

/* Copies a range of a source: shares blocks if the file system and both offsets allow it, else calls
 * copy_file_range(), else reads and writes.  *shared grows by the bytes shared. */
tn_status tn_sink_copy_range(tn_sink *sink, uint64_t offset, const tn_source *source, uint64_t from,
                             uint64_t n, uint64_t *shared, tn_error *err);

/* The unnamed file; -1 for memory.  Not for members of a set, nor for files of several processes. */
int tn_sink_fd(const tn_sink *sink);

/* Opens what was written.  Not for memory. */
tn_status tn_sink_read_back(tn_sink *sink, tn_source **source, tn_error *err);

/* The same for any sink.  The descriptor stays open until it is released. */
tn_status tn_sink_hold(tn_sink *sink, int *fd, tn_error *err);
void      tn_sink_release(tn_sink *sink);

/* Truncates or extends the file to `size`, syncs it and gives it its name.  Frees the sink in any case.  A
 * failure leaves everything as it was, with one exception: if the folder cannot be synced, the new file has
 * its name already, and the error says so. */
tn_status tn_sink_publish(tn_sink *sink, uint64_t size, tn_error *err);

/* Frees the sink and leaves no trace.  NULL is allowed. */
void tn_sink_abandon(tn_sink *sink);

#endif
