/* bytes/source.h - where bytes come from: a mapped file, a file that is read,
 * memory.  Thread-safe after opening.
 *
 * A mapped file that is cut, or whose bytes cannot be read, gives zeros (see
 * bytes/guard.h).  Whoever takes a view asks tn_source_check() or
 * tn_source_check_range() when done with it, before anybody believes what came
 * of it. */
#ifndef TN_BYTES_SOURCE_H
#define TN_BYTES_SOURCE_H

#include "base/arena.h"
#include "bytes/identity.h"

#include <tenon/file.h>

typedef struct tn_source tn_source;

/* By name: its beginning says which kind of source it is, see bytes/source_kind.h; most are paths.  A
 * directory, FIFO, socket or device is TN_ERR_IO with a text that says so; opening never blocks. */
tn_status tn_source_open(const char *name, tn_io io, tn_source **source, tn_error *err);
tn_status tn_source_open_fd(int fd, tn_io io, tn_source **source, tn_error *err);   /* duplicates fd */
tn_status tn_source_open_memory(const void *data, size_t size, tn_source **source, tn_error *err);
void      tn_source_close(tn_source *source);       /* NULL is allowed */

/* The memory of a source is the beginning of a file that somebody else has
 * mapped under this guard: what happens to it concerns the source, too.  Both
 * stay until the source is closed. */
struct tn_guard;
void      tn_source_watch(tn_source *source, const struct tn_guard *guard, int fd);

uint64_t tn_source_size(const tn_source *source);

/* The descriptor, which stays until it is released; -1 for what is no file.  Files that
 * were opened by path take turns (see bytes/turns.h): one may have to be opened
 * again.  TN_ERR_IO: it cannot, or its name leads to another file now. */
tn_status tn_source_hold(const tn_source *source, int *fd, tn_error *err);
void      tn_source_release(const tn_source *source);

/* Which file it is, as it was when it was opened; NULL: it is no file. */
const tn_identity *tn_source_identity(const tn_source *source);

/* The bytes [offset, offset + n) in place, valid until the source is closed;
 * NULL when the source is not mapped or the range is outside. */
const uint8_t *tn_source_view(const tn_source *source, uint64_t offset, uint64_t n);

/* Whether all that was seen was in the file.  TN_ERR_TRUNCATED: it has been cut
 * since it was opened; TN_ERR_IO: some of what is mapped could not be read. */
tn_status tn_source_check(const tn_source *source, tn_error *err);

/* The same of the bytes [offset, offset + n) of a view, at hardly any cost. */
tn_status tn_source_check_range(const tn_source *source, uint64_t offset, uint64_t n, tn_error *err);

/* Copies the bytes into `buffer`, mapped or not.  TN_ERR_TRUNCATED: a range
 * outside the source, or a file that shrank meanwhile.  TN_ERR_IO: the
 * system's reason. */
tn_status tn_source_read(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err);

/* A copy of the bytes in the arena.  What is parsed is read this way or by
 * tn_source_read(), never in place: others may write to a mapped file, and a
 * parser that looks twice must see the same bytes. */
tn_status tn_source_copy(const tn_source *source, uint64_t offset, uint64_t n, tn_arena *arena,
                         const uint8_t **bytes, tn_error *err);

/* View if it can be had, else read into `buffer` (of n bytes). *bytes is where they are. */
tn_status tn_source_get(const tn_source *source, uint64_t offset, size_t n, void *buffer,
                        const uint8_t **bytes, tn_error *err);

/* An index is copied into memory, so it must not be of any size. */
#define TN_INDEX_MAX (UINT64_C(1) << 30)

/* TN_ERR_LIMIT: an index of `size` bytes at byte `at`, to be read or to be written, is too large. */
tn_status tn_index_check_size(uint64_t size, uint64_t at, tn_error *err);

#endif
