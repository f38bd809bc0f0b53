/* bytes/source.h - where bytes come from: a mapped file, a file that is read, memory, or a URL.  Thread-safe
 * after opening.
 *
 * A mapped file that was truncated or cannot be read yields zeros (bytes/guard.h).  After using a view, call
 * tn_source_check() or tn_source_check_range() before you use the result. */
#ifndef TN_BYTES_SOURCE_H
#define TN_BYTES_SOURCE_H

#include "base/arena.h"
#include "base/text.h"
#include "bytes/identity.h"

#include <tenon/file.h>

typedef struct tn_source tn_source;

typedef struct tn_range { uint64_t offset, size; } tn_range;

/* Opens by name: a path, or a URL (bytes/source_kind.h).  TN_ERR_IO: a directory, FIFO, socket or device.
 * Never blocks. */
tn_status tn_source_open(const char *name, tn_io io, tn_source **source, tn_error *err);

/* The same for several, at once where that saves time; the error names the file.  All are opened or none. */
tn_status tn_source_open_all(const char *const *names, size_t n, tn_io io, tn_source **sources,
                             tn_error *err);

/* The same for the first of several URLs that exists; *which is its number, n if none does. */
tn_status tn_source_open_first(const char *const *names, size_t n, tn_source **source, size_t *which,
                               tn_error *err);
tn_status tn_source_open_fd(int fd, tn_io io, tn_source **source, tn_error *err);   /* duplicates fd */
tn_status tn_source_open_memory(const void *data, size_t size, tn_source **source, tn_error *err);
tn_status tn_source_open_calls(const tn_source_calls *calls, tn_source **source, tn_error *err);
void      tn_source_close(tn_source *source);       /* NULL is allowed */

/* Tells a source of memory that its bytes are the beginning of file `fd`, which the caller has mapped under
 * this guard.  Both are borrowed until the source is closed. */
struct tn_guard;
void      tn_source_watch(tn_source *source, const struct tn_guard *guard, int fd);

uint64_t tn_source_size(const tn_source *source);

/* Whether a name is a URL. */
bool tn_is_url(const char *name);

/* Whether a URL means a folder. */
bool tn_is_far_folder(const char *name);

/* How many characters of a name may be shown: a URL's query may hold a signature. */
size_t tn_source_shown(const char *name);

/* Whether reading is slow to begin, so that it should be announced. */
bool tn_source_is_far(const tn_source *source);

/* These ranges will be read, each once, about in this order.  A hint; nothing for sources that are near. */
void tn_source_expect(const tn_source *source, const tn_range *ranges, size_t n);

/* The descriptor, open until it is released; -1 if the source is not a file.  A file that was opened by path
 * may have to be reopened (bytes/fd_cache.h).  TN_ERR_IO: it cannot, or the path leads to another file
 * now. */
tn_status tn_source_hold(const tn_source *source, int *fd, tn_error *err);
void      tn_source_release(const tn_source *source);

/* The file as it was when it was opened; NULL: the source is not a file. */
const tn_identity *tn_source_identity(const tn_source *source);

/* What a server calls the version of an object, its ETag or its date; NULL: nothing, or not from a server. */
const char *tn_source_version(const tn_source *source);

/* A view of the bytes [offset, offset + n), valid until the source is closed; NULL if the source is not in
 * memory or the range is outside. */
const uint8_t *tn_source_view(const tn_source *source, uint64_t offset, uint64_t n);

/* Whether n bytes that are read once should be read and not viewed, though they are mapped: the kernel copies
 * many bytes into a buffer that stays in the cache faster than it maps their pages. */
bool tn_source_copies(const tn_source *source, uint64_t n);

/* TN_ERR_TRUNCATED: the file was truncated after it was opened.  TN_ERR_IO: a mapped page could not be
 * read. */
tn_status tn_source_check(const tn_source *source, tn_error *err);

/* The same for the bytes [offset, offset + n) of a view, at hardly any cost. */
tn_status tn_source_check_range(const tn_source *source, uint64_t offset, uint64_t n, tn_error *err);

/* Copies bytes to `buffer`, mapped or not.  TN_ERR_TRUNCATED: the range is outside the source, or the file
 * was truncated.  TN_ERR_IO: the system's reason. */
tn_status tn_source_read(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err);

/* A copy of the bytes in the arena.  Parsers use this or tn_source_read(), never a view: others may write to
 * a mapped file, and a parser that looks twice must see the same bytes. */
tn_status tn_source_copy(const tn_source *source, uint64_t offset, uint64_t n, tn_arena *arena,
                         const uint8_t **bytes, tn_error *err);

/* All of a small file as text in the arena; `what` it is, for messages.  TN_ERR_LIMIT: more than `most`
 * bytes. */
tn_status tn_source_load(const char *path, size_t most, const char *what, tn_arena *arena, tn_text *text,
                         tn_error *err);

/* The same, but *there tells whether the file exists: if it does not, that is not a failure. */
tn_status tn_source_load_if(const char *path, size_t most, const char *what, tn_arena *arena, tn_text *text,
                            bool *there, tn_error *err);

/* *bytes is a view if there is one, else the bytes are read into `buffer` of n bytes. */
tn_status tn_source_get(const tn_source *source, uint64_t offset, size_t n, void *buffer,
                        const uint8_t **bytes, tn_error *err);

/* The limit for an index, because it is copied into memory. */
#define TN_INDEX_MAX (UINT64_C(1) << 30)

/* TN_ERR_LIMIT: an index of `size` bytes at byte `at` is too large to be read or written. */
tn_status tn_index_check_size(uint64_t size, uint64_t at, tn_error *err);

#endif
