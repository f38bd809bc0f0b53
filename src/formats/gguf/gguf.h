/* formats/gguf/gguf.h - GGUF, the files of llama.cpp: single files and splits.
 *
 * header.c reads the header piece by piece, values.c its metadata, read.c the tensors; split.c has the names
 * of a set, opens it and plans one.  put.c turns metadata into bytes, write.c plans and writes files,
 * rewrite.c writes a file again with other metadata.
 *
 *     "GGUF", u32 version, n tensors, n pairs      n has 8 bytes, in version 1 it has 4
 *     pairs       string key, u32 type, value
 *     tensors     string name, u32 rank, n dimension..., u32 type, u64 offset
 *     padding to the alignment; the data */
#ifndef TN_FORMATS_GGUF_H
#define TN_FORMATS_GGUF_H

#include "base/vector.h"
#include "store/file.h"
#include "store/meta_value.h"
#include "store/writer.h"
#include "tensor/block.h"

#define TN_GGUF_MAGIC     "GGUF"
#define TN_GGUF_SUFFIX    ".gguf"
#define TN_GGUF_ALIGNMENT "general.alignment"
#define TN_GGUF_PADDING   "tenon.padding"       /* see rewrite.c */
#define TN_GGUF_NO        "split.no"
#define TN_GGUF_COUNT     "split.count"
#define TN_GGUF_TENSORS   "split.tensors.count"
#define TN_GGUF_ORDER     "byte-order"          /* the option of the writer */

enum { TN_GGUF_MAGIC_BYTES = 4, TN_GGUF_VERSION = 3, TN_GGUF_USUAL_ALIGN = 32 };

/* How the numbers of a file are written. */
typedef struct tn_gguf_style {
    uint32_t version;
    bool     big;               /* big-endian */
    uint8_t  wide;              /* bytes of lengths, counts and dimensions */
} tn_gguf_style;

/* ---- types.c ---- */

/* The types of tensors that are plain numbers. */
typedef struct tn_gguf_type {
    uint32_t    number;
    tn_dtype    dtype;
    const char *name;
} tn_gguf_type;

/* NULL: no such type. */
const tn_gguf_type *tn_gguf_type_numbered(uint32_t number);
const tn_gguf_type *tn_gguf_type_of(tn_dtype dtype);

/* ---- header.c ---- */

/* The part of a file before the data, read piece by piece.  A failed one stays failed and yields zeros; `err`
 * has the first failure.  Zero-initialise to begin. */
typedef struct tn_gguf_in {
    const tn_source *source;
    uint64_t  size;             /* of the file */
    uint64_t  base;             /* where the window begins in the file */
    uint8_t  *window;
    size_t    pos, have;        /* in the window */
    tn_gguf_style style;
    tn_error *err;
    tn_status status;
} tn_gguf_in;

tn_status tn_gguf_begin(tn_gguf_in *in, const tn_source *source, tn_error *err);
void      tn_gguf_end(tn_gguf_in *in);

static inline uint64_t tn_gguf_at(const tn_gguf_in *in)   { return in->base + in->pos; }
static inline uint64_t tn_gguf_left(const tn_gguf_in *in) { return in->size - tn_gguf_at(in); }

__attribute__((format(printf, 4, 5)))
tn_status tn_gguf_fail(tn_gguf_in *in, tn_status status, uint64_t at, const char *format, ...);

/* A number of 1 to 8 bytes; a length, count or dimension. */
uint64_t tn_gguf_uint(tn_gguf_in *in, unsigned bytes);
uint64_t tn_gguf_wide(tn_gguf_in *in);

/* The same for a count of items that take at least `least` bytes each, and are there. */
uint64_t tn_gguf_count(tn_gguf_in *in, unsigned least, const char *what);

/* Goes on by n bytes, or to a byte that was read before. */
void tn_gguf_skip(tn_gguf_in *in, uint64_t n);
void tn_gguf_seek(tn_gguf_in *in, uint64_t at);

/* Copies the next n bytes, which are there. */
void tn_gguf_copy(tn_gguf_in *in, uint8_t *to, size_t n);

/* A name or a key in the arena: UTF-8 without NUL.  NULL: failed.  `what` names it in messages. */
const char *tn_gguf_name(tn_gguf_in *in, tn_arena *arena, const char *what);

/* What the header of one file says.  Zero-initialise to begin. */
typedef struct tn_gguf_header {
    tn_gguf_style style;
    uint64_t  tensors;          /* how many it lists */
    uint64_t  tensors_at;       /* where the list begins */
    uint64_t  alignment;
    tn_meta  *meta;
    size_t    nmeta, meta_cap;
    tn_names  names;            /* of the keys */
} tn_gguf_header;

/* Reads up to the list of tensors; values live in the arena. */
tn_status tn_gguf_read_header(tn_gguf_in *in, tn_gguf_header *h, tn_arena *arena);
void      tn_gguf_header_free(tn_gguf_header *h);

/* The value of a key, or NULL; of an integer, or false. */
const tn_meta *tn_gguf_find(const tn_gguf_header *h, const char *key);
bool           tn_gguf_integer(const tn_meta *meta, int64_t *value);

/* TN_ERR_CORRUPT: the metadata has an alignment that is no u32, or no power of two. */
tn_status tn_gguf_alignment(const tn_meta *meta, uint64_t *alignment, tn_error *err);

/* ---- values.c ---- */

/* Reads a value of this type into `meta`, whose key is set; `scratch` is reused. */
tn_status tn_gguf_read_value(tn_gguf_in *in, uint32_t type, tn_buf *scratch, tn_arena *arena, tn_meta *meta);

/* ---- read.c ---- */

/* Adds the tensors of a shard to the file: its header was read, and `in` is behind it. */
tn_status tn_gguf_read_tensors(tn_gguf_in *in, const tn_gguf_header *h, tn_file *file, uint32_t shard);

/* Goes from the beginning of the list of tensors to its end. */
tn_status tn_gguf_skip_tensors(tn_gguf_in *in, const tn_gguf_header *h);

/* ---- split.c ---- */

/* What a file says about its set. */
typedef struct tn_gguf_split {
    int64_t no, count, tensors; /* count 1: it is no split */
} tn_gguf_split;
tn_status tn_gguf_split_of(const tn_gguf_header *h, tn_gguf_split *split, tn_error *err);

bool tn_gguf_is_split_key(const char *key);

/* PREFIX-00002-of-00003.gguf: whether a name is of a set, and what it says. */
typedef struct tn_gguf_name_parts {
    size_t   prefix;            /* bytes before the first '-' that is not of PREFIX */
    uint32_t number, count;
} tn_gguf_name_parts;
bool tn_gguf_split_name(const char *path, tn_gguf_name_parts *parts);

/* Whether it is the name of a file of a set that is opened by another one. */
bool tn_gguf_is_later_file(const char *name);

/* Opens the other files of the set, whose first file was read, and adds their tensors and metadata. */
tn_status tn_gguf_open_rest(tn_file *file, const tn_gguf_header *first, const tn_gguf_split *split,
                            tn_error *err);

/* ---- put.c ---- */

typedef struct tn_gguf_out {
    tn_buf       *b;
    tn_gguf_style style;
} tn_gguf_out;

void tn_gguf_put_uint(const tn_gguf_out *o, uint64_t value, unsigned bytes);
void tn_gguf_put_wide(const tn_gguf_out *o, uint64_t value);
void tn_gguf_put_string(const tn_gguf_out *o, tn_text text);

/* The magic, the version and the counts. */
void tn_gguf_put_start(const tn_gguf_out *o, uint64_t tensors, uint64_t pairs);

/* One metadata value, and one that is a number.  TN_ERR_LOSS: GGUF cannot hold it; nothing is put. */
tn_status tn_gguf_put_pair(const tn_gguf_out *o, const tn_meta *meta, tn_error *err);
void      tn_gguf_put_number(const tn_gguf_out *o, const char *key, tn_meta_type type, uint64_t value);

/* ---- write.c ---- */

/* One file of the output, with entries [first, last). */
typedef struct tn_gguf_file {
    size_t   first, last;
    uint32_t file;              /* of writer->files */
    uint64_t data_size;         /* with padding */
    tn_text  header;            /* without padding */
} tn_gguf_file;

typedef struct tn_gguf_plan {
    tn_gguf_style style;
    uint64_t      align;
    bool          puts_align;   /* the metadata does not say it */
    bool          drops_split;  /* the metadata tells of a set */
    tn_gguf_file *files;
    size_t        nfiles;
    tn_buf        pairs;        /* the metadata as bytes */
    uint64_t      npairs;
} tn_gguf_plan;

tn_status tn_gguf_plan_files(tn_writer *w, tn_error *err);
tn_status tn_gguf_finish(tn_writer *w, tn_error *err);

/* ---- rewrite.c ---- */

tn_status tn_gguf_rewrite(tn_file *file, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err);

/* ---- split.c: writing ---- */

/* Chooses the files of the output; opens them; names those of a set. */
tn_status tn_gguf_cut(tn_writer *w, tn_gguf_plan *plan, tn_error *err);
tn_status tn_gguf_open_files(tn_writer *w, tn_gguf_plan *plan, tn_error *err);
tn_status tn_gguf_name_files(tn_writer *w, tn_error *err);

#endif
