/* tenon/file.h - an open tensor file: its tensors, its metadata, its bytes.
 *
 * Opening parses and checks the index and reads no data; a file that lies
 * about sizes is refused here.  One open file may be used by any number of
 * threads at once; only tn_close() must be alone.  Everything a file lends
 * (tensors, names, views) lives until tn_close().
 *
 * A file that others write to while it is open gives values that nobody can
 * foretell, but never overruns memory.  A mapped file that is cut, or whose disk
 * fails, would end the process with SIGBUS: while files are mapped a handler
 * makes zeros of what is missing, and every function that read some of it returns
 * TN_ERR_TRUNCATED or TN_ERR_IO.  Who reads views (part->data) asks
 * tn_file_intact() when done with them.
 *
 * The handler is installed when the first file is mapped and stays.  Every other
 * SIGBUS goes to the handler that was there before.  A program that installs
 * one of its own later must call the one it replaces; threads must not
 * block SIGBUS.  TN_IO_PREAD maps nothing and installs nothing. */
#ifndef TENON_FILE_H
#define TENON_FILE_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_file tn_file;

typedef enum tn_io {
    TN_IO_AUTO  = 0,            /* map; read where mapping is impossible */
    TN_IO_MMAP  = 1,            /* map or fail */
    TN_IO_PREAD = 2             /* never map: for network file systems, and for programs that keep SIGBUS to
                                 * themselves */
} tn_io;

typedef struct tn_open_options {
    size_t      size;           /* sizeof(tn_open_options); begins the struct so that it can grow */
    const char *format;         /* a name from tn_format_at(); NULL: by content, else by the suffix */
    tn_io       io;
    uint64_t    max_bytes;      /* what data of this file may be decoded into where the result is kept, in a
                                 * file or in memory; 0: 1 GiB, or 1000 times what is stored if that is
                                 * more */
    bool        raw_codes;      /* another tool's packed codes are the numbers that they look like: see
                                 * tn_file_convention() */
    bool        strict;         /* what is doubtful is an error, not a warning: a shard that has a tensor more
                                 * than its index names */
} tn_open_options;

/* Opens a file by path.  A folder is opened by the index of a set in it, else by model.safetensors, else by
 * the only tensor file.  `options` may be NULL.  *file is written on success
 * only and is closed by tn_close().
 *
 * TN_ERR_IO: cannot be opened or read, or is not a regular file.
 * TN_ERR_UNSUPPORTED: no container this build knows.  TN_ERR_TRUNCATED,
 * TN_ERR_CORRUPT, TN_ERR_LIMIT: the index is bad. */
TN_API tn_status tn_open(const char *path, const tn_open_options *options, tn_file **file, tn_error *err);

/* Opens a file by its descriptor, which is duplicated: the caller keeps and
 * closes its own.  A sharded set cannot be opened this way. */
TN_API tn_status tn_open_fd(int fd, const tn_open_options *options, tn_file **file, tn_error *err);

/* Opens a file that is in memory; its bytes must stay unchanged until tn_close(). */
TN_API tn_status tn_open_memory(const void *data, size_t size, const tn_open_options *options,
                                tn_file **file, tn_error *err);

/* Bytes that a function of the caller's reads: of an archive, a store, an object of another language. */
typedef struct tn_source_calls {
    size_t    size;             /* sizeof(tn_source_calls), set by the caller */
    uint64_t  bytes;            /* of the whole file */
    /* Reads exactly `n` bytes from `offset` on, which are inside the file.  Called by any thread, and by
     * several at a time.  A status that is not TN_OK ends what needed the bytes; the text may be left
     * empty. */
    tn_status (*read)(void *context, uint64_t offset, void *buffer, size_t n, tn_error *err);
    void     *context;
} tn_source_calls;

/* Opens a file that `calls` (copied) read; nothing is mapped, and no part has `data`.  Context and
 * functions stay valid until tn_close().  A sharded set cannot be opened this way.
 * TN_ERR_ARGUMENT: no function that reads, or a size that is 0; else as tn_open(). */
TN_API tn_status tn_open_callbacks(const tn_source_calls *calls, const tn_open_options *options,
                                   tn_file **file, tn_error *err);

/* Opens several files, of any formats, as one: their tensors in the order of
 * `paths`.  A file with `options` as for tn_open() each.  Equal metadata of the
 * files is there once; of two values of a key the first is there, and a
 * conversion is TN_ERR_LOSS unless metadata may be dropped.  tn_file_format() is
 * that of the first file.
 *
 * TN_ERR_ARGUMENT: no path, or two files have a tensor of the same name.  Others as
 * of tn_open(); the error has the file. */
TN_API tn_status tn_open_several(const char *const *paths, size_t n, const tn_open_options *options,
                                 tn_file **file, tn_error *err);

/* Closes a file and takes back everything it lent.  NULL is allowed. */
TN_API void tn_close(tn_file *file);

/* What an open file tells; of no file (NULL): "", 0 or NULL. */
TN_API const char *tn_file_format(const tn_file *file);     /* The name of its format: "ztensor". */
TN_API uint64_t    tn_file_size(const tn_file *file);       /* Its bytes, all shards together. */
TN_API size_t      tn_file_shards(const tn_file *file);     /* How many files it consists of. */

/* The path of one of its files as opened; "": in memory, or out of range. */
TN_API const char *tn_file_shard_name(const tn_file *file, size_t shard);

TN_API size_t           tn_file_count(const tn_file *file);             /* The number of tensors. */

/* Tensor i in the order of the index; NULL when i is out of range. */
TN_API const tn_tensor *tn_file_tensor(const tn_file *file, size_t i);

/* Finds the tensor of this name in constant time, or NULL. */
TN_API const tn_tensor *tn_file_find(const tn_file *file, const char *name);

/* Which of some names match patterns; chosen[i] says it of names[i].  This is what `only` means in every
 * options struct.
 *
 * A pattern is a glob (* any text, ? one character, [...] one of these), or "re:" and an extended regular
 * expression of POSIX, which may match anywhere in a name.  Chosen is what matches a pattern, but none that
 * begins with "!"; if all of them do, the rest is chosen.  Without patterns everything is.
 * TN_ERR_ARGUMENT: a pattern matches nothing, or is no expression; it has at most 255 bytes, no
 * back-references, and counts in braces that multiply to at most 1000.  TN_ERR_LIMIT: a name of more than
 * 1024 bytes, for an expression. */
TN_API tn_status tn_choose(const char *const *names, size_t count, const char *const *patterns,
                           size_t npatterns, bool *chosen, tn_error *err);

/* The file's own metadata, in the order of the file. */
TN_API const tn_meta *tn_file_meta(const tn_file *file, size_t *count);

/* The convention of another tool that one of the file's tensors is stored in: "NVFP4 (ModelOpt)".  It is
 * recognised by names, types and shapes, and by the config.json beside the
 * file.  NULL: it is stored as it is.
 *
 * A scaled tensor stands for all entries of the file that make it, and has values like any other; a
 * conversion into the same container that does not change it copies the entries.  A dense one is an entry
 * with codes, or with what belongs to them, that this version does not decode.  It can be read and copied;
 * tn_convert() does not change it, and neither is it read as another type, unless it is asked for
 * (raw_codes). */
TN_API const char *tn_file_convention(const tn_file *file, const tn_tensor *tensor);

/* What is wrong with the file although it can be read: one line each, "byte 20:
 * ...", seen when it was opened.  NULL when i is out of range.  Of very many
 * the last one says how many more there are. */
TN_API const char *tn_file_warning(const tn_file *file, size_t i);

/* Whether everything that was seen of the file so far was there: to be asked
 * after the last look at a view, before what came of it is used.  One or two
 * system calls a file of a set; once it has failed for a cut within what was
 * seen, it stays failed.
 *
 * TN_ERR_TRUNCATED: the file is shorter than it was when it was opened, or has
 * been while it was read.  TN_ERR_IO: some of it could not be read. */
TN_API tn_status tn_file_intact(const tn_file *file, tn_error *err);

/* How a part is stored, in short. */
typedef struct tn_stored_info {
    size_t        size;         /* sizeof(tn_stored_info), set by the caller */
    uint64_t      offset;       /* of the first stored byte in its file */
    uint64_t      bytes;        /* stored ones, after compression; not those of others between them */
    const char   *type;         /* the element type as the file spells it */
    const char   *encoding_name;    /* "raw", "zstd" ...; "text": it stands as digits in a text, and in
                                     * memory in host order; else as the file spells it */
    const char   *checksum_text;    /* as the file spells it, or NULL */
    const char   *opaque;       /* a layout of the container's own that this build lists but does not read, or
                                 * NULL */
    const int64_t *stride;      /* how the elements lie, in elements from the first one; NULL: row-major */
    tn_encoding   encoding;
    tn_checksum   checksum;     /* of the part, or of all parts of the tensor together */
    tn_byte_order order;
    uint32_t      shard;        /* which file of a sharded set; 0 otherwise; tn_file_shards() or more: in
                                 * none, but in a text */
    uint32_t      extents;      /* runs of bytes; 1 for most, several for a matrix whose columns are stored
                                 * apart: then offset and shard mean nothing; 0: in memory only */
    bool          dense;        /* the (decoded) elements of an extent follow each other in row-major order */
} tn_stored_info;

/* Tells how a part is stored in `info`, whose `size` the caller has set: TN_ERR_ARGUMENT otherwise.  What it
 * points to lives as long
 * as the file is open.  Without a tensor (NULL) the checksum is that of the part alone. */
TN_API tn_status tn_part_stored(const tn_tensor *tensor, const tn_part *part, tn_stored_info *info);

/* Reads a part whole into `buffer`: dense, host byte order.  `size` must be
 * part->nbytes exactly (TN_ERR_ARGUMENT otherwise).  Checksums are not
 * checked: see tn_verify().
 *
 * TN_ERR_UNSUPPORTED: unknown type or encoding.  TN_ERR_CORRUPT: compressed
 * data that does not decode to nbytes.  TN_ERR_TRUNCATED, TN_ERR_IO: the file
 * has been cut, or cannot be read. */
TN_API tn_status tn_part_read(const tn_file *file, const tn_part *part, void *buffer, size_t size,
                              tn_error *err);

/* Reads rows [first, first + count) along the first dimension.  The same
 * rules; the rows' bytes must be `size` exactly and, for types narrower than a
 * byte, must begin and end on whole bytes (TN_ERR_ARGUMENT). */
TN_API tn_status tn_part_read_rows(const tn_file *file, const tn_part *part, uint64_t first, uint64_t count,
                                   void *buffer, size_t size, tn_error *err);

/* Whether the decoded parts of these tensors may be kept all at once.  A few stored
 * bytes can be decoded into very many, so whoever allocates for tn_part_read(),
 * which itself writes as much as it is given room for, may want to ask first;
 * tn_convert(), tn_offer_file() and all others that keep what they decode do.
 * What does not grow when it is decoded is not counted, and stored bytes that several
 * of them share are stored once.  All are of one file.  max_bytes: see tn_open_options.
 *
 * TN_ERR_LIMIT: no; the text ends in "(max_bytes)", which can be raised. */
TN_API tn_status tn_check_decoded(const tn_tensor *const *tensors, size_t count, uint64_t max_bytes,
                                  tn_error *err);

/* Progress of a long operation: bytes done of the bytes to do.  Called from
 * one thread at a time.  Returning non-zero stops with TN_ERR_CANCELLED. */
typedef int (*tn_progress_fn)(void *context, uint64_t done, uint64_t total);

/* What a user should know although nothing failed, one line: that a file which
 * was replaced had an owner, a mode or attributes that the new one could not
 * be given.  `path` is the file as the caller named it.  Called once per file,
 * when it has its name. */
typedef void (*tn_note_fn)(void *context, const char *path, const char *text);

typedef enum tn_verdict {
    TN_VERDICT_OK          = 0, /* the checksum was computed and agrees */
    TN_VERDICT_NONE        = 1, /* the part has no checksum; what could be decoded was */
    TN_VERDICT_NOT_CHECKED = 2, /* a checksum this build cannot compute */
    TN_VERDICT_UNREADABLE  = 3, /* a type, encoding or layout this build cannot read; its checksum, if it
                                 * has one, agrees */
    TN_VERDICT_BAD         = 4  /* wrong: the error says how */
} tn_verdict;

/* Called once per part, in the order of the index, from one thread at a time.
 * `why` has the reason for NOT_CHECKED, UNREADABLE and BAD; for OK and NONE its
 * status is TN_OK and its text what is odd all the same (entries of a sparse tensor
 * that are not in order), else "". */
typedef void (*tn_verify_fn)(void *context, const tn_tensor *tensor, const tn_part *part,
                             tn_verdict verdict, const tn_error *why);

/* Something beside a file that concerns it.  doubtful: other programs may take it for this file. */
typedef void (*tn_beside_fn)(void *context, const char *text, bool doubtful);

typedef struct tn_verify_options {
    size_t         size;        /* sizeof(tn_verify_options), set by the caller */
    unsigned       jobs;        /* threads; 0: one per core */
    tn_progress_fn progress;    /* may be NULL */
    void          *context;     /* for all callbacks */
    tn_beside_fn   beside;      /* may be NULL; told, before any part is checked, of what lies
                                 * beside the file: files of another set of the same name,
                                 * members that no set names */
    struct tn_together *together;       /* not NULL: with other processes, see <tenon/work.h> */
} tn_verify_options;

/* Computes every checksum and decodes every compressed part, on all cores, and
 * goes through the indices of sparse tensors.
 * Bad parts are reported, not returned: TN_OK means every part got a verdict.
 * TN_ERR_TRUNCATED (the file was cut), TN_ERR_IO, TN_ERR_NOMEM,
 * TN_ERR_CANCELLED: stopped early. */
TN_API tn_status tn_verify(const tn_file *file, const tn_verify_options *options, tn_verify_fn report,
                           tn_error *err);

/* An option that only one container has, for writing it. */
typedef struct tn_format_key {
    const char *name;           /* "byte-order" */
    const char *values;         /* "little|big": the first holds where none is given; "": any text, such as a
                                 * path */
    const char *title;          /* one line for a person */
} tn_format_key;

/* What containers this build has, in the order of probing. */
typedef struct tn_format_info {
    const char *name;           /* "safetensors", for --to and --from */
    const char *suffix;         /* ".safetensors" */
    const char *index_suffix;   /* of the file that names the shards: ".safetensors.index.json"; or NULL */
    const char *title;          /* one line for a person */
    bool        reads, writes;
    bool        probes;         /* recognised by content; else --from is needed */
    bool        compresses, checksums, shards;
    const tn_format_key *keys;  /* its own options, up to one whose name is NULL; NULL: it has none */
} tn_format_info;

/* Format i of this build; NULL when i is out of range. */
TN_API const tn_format_info *tn_format_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
