/* formats/safetensors/safetensors.h - single files and sharded sets.
 *
 * read.c reads a header and its entries, metadata.c reads and writes
 * `__metadata__`, write.c plans and writes files, shards.c reads and writes the
 * index of a set, set.c has the names of its files and the set that they replace. */
#ifndef TN_CONTAINER_SAFETENSORS_H
#define TN_CONTAINER_SAFETENSORS_H

#include "base/vector.h"
#include "bytes/json.h"
#include "store/file.h"
#include "store/set_index.h"
#include "store/writer.h"

#define TN_ST_HEADER_MAX   100000000u       /* as in every reader of the format */
#define TN_ST_SUFFIX       ".safetensors"
#define TN_ST_INDEX_SUFFIX ".safetensors.index.json"
#define TN_ST_METADATA     "__metadata__"
#define TN_ST_FILE_RECORD  "tenon"          /* metadata key: the record of the file */
#define TN_ST_RECORD       "tenon:"         /* metadata key: with NAME behind it, the record of tensor NAME */
#define TN_ST_FILLER_START "__tenon_filler_"    /* a number follows */
#define TN_ST_FILLER_END   "__"

/* --- metadata.c: reading --- */

typedef struct tn_st_pair {
    const char *key;
    tn_text     value;
    uint64_t    at;             /* byte of the file after the key */
    bool        claimed;        /* as a record: it is not metadata of the user */
} tn_st_pair;

/* The `__metadata__` of one file.  Zero-initialise to begin. */
typedef struct tn_st_metadata {
    tn_st_pair    *pairs;
    size_t         count, cap;
    tn_names       names;
    bool           has_records; /* some key begins with TN_ST_RECORD */
    bool           fillers;     /* of the file record: there are fillers, to be hidden */
    tn_text        order;       /* of the file record: the keys of the metadata in order, JSON, or len 0 */
    const tn_meta *file_meta;   /* of the file record: metadata that is not text */
    size_t         nfile_meta;
    tn_buf         scratch;
} tn_st_metadata;

/* Reads the object that `j` is at; `base` is the offset of j's text in the file. */
tn_status tn_st_metadata_read(tn_st_metadata *m, tn_file *file, tn_json *j, uint64_t base, tn_error *err);
void      tn_st_metadata_free(tn_st_metadata *m);

/* The record of the entry `name` as CBOR in the arena, or len 0 when it has none. */
tn_status tn_st_metadata_claim(tn_st_metadata *m, tn_arena *arena, const char *name, tn_text *record,
                               tn_error *err);

/* What all files of a set have together.  Zero-initialise to begin. */
typedef struct tn_st_merged {
    tn_set_merged meta;
    tn_text       order;        /* of the keys, JSON in the arena, or len 0 */
    size_t        fillers;      /* entries to be hidden: their nparts is 0 */
    bool          unordered;    /* the data is not in the order of the header: ranges must be checked */
} tn_st_merged;

/* Adds the metadata of one file, without the records that entries have claimed. */
tn_status tn_st_metadata_merge(const tn_st_metadata *m, tn_file *file, const char *from, tn_st_merged *all,
                               tn_error *err);

/* All files are read: puts the metadata into the order that the file record says. */
tn_status tn_st_metadata_sort(tn_st_merged *all, tn_file *file, tn_error *err);

/* --- metadata.c: writing --- */

/* Keys that would be read back as records. */
typedef struct tn_st_reserved {
    const tn_meta *meta;
    tn_names       names;       /* to be freed */
} tn_st_reserved;
tn_status tn_st_reserved_init(tn_st_reserved *r, const tn_meta *meta, size_t n, tn_error *err);
/* The item whose key means the record of entry `name`, or SIZE_MAX. */
size_t    tn_st_reserved_find(const tn_st_reserved *r, const char *name);
tn_status tn_st_fail_reserved(const char *key, tn_error *err);

/* Writes `"__metadata__":{...}`, or nothing if it would be empty. */
typedef struct tn_st_put {
    tn_buf *out;
    bool    open;
    tn_text record;             /* the last one... */
    size_t  at, size;           /* ...and its text: neighbours often have the same */
} tn_st_put;
/* items with key NULL are left out */
void tn_st_put_file(tn_st_put *p, const tn_meta *meta, size_t n, bool fillers);
void tn_st_put_record(tn_st_put *p, const char *name, tn_text record, const tn_meta *meta, size_t n);
void tn_st_put_end(tn_st_put *p);

/* --- read.c --- */

/* The header's JSON text, in the arena.  Its length and first byte are checked; the
 * shard's data_begin is set. */
tn_status tn_st_load_header(tn_file *file, uint32_t shard, tn_arena *arena, tn_text *json, tn_error *err);

/* Fillers are U8 arrays that align what follows them. */
typedef struct tn_st_filler { char text[64]; } tn_st_filler;
tn_st_filler tn_st_filler_name(size_t number);
bool tn_st_is_filler(const char *name);

#define TN_ST_FILLER "filler"    /* the option that asks for them */

/* Adds the tensors of one shard to `file` and its metadata to `all`; `index` may be NULL. */
tn_status tn_st_read_shard(tn_file *file, uint32_t shard, tn_set_index *index, tn_st_merged *all,
                           tn_error *err);

/* All shards are read: exact tiling, hiding of fillers, metadata. */
tn_status tn_st_finish_open(tn_file *file, tn_st_merged *all, tn_error *err);

/* --- shards.c --- */

tn_status tn_st_open_set(tn_file *file, tn_error *err);

/* One file of the output: entries [first, last), and its fillers by number. */
typedef struct tn_st_out_file {
    size_t   first, last;
    size_t   first_filler, fillers;
    uint32_t file;              /* of writer->files */
    uint64_t data_size;
    tn_text  header;            /* its length, and its text, padded */
} tn_st_out_file;

typedef struct tn_st_out {
    tn_st_out_file *files;
    size_t          nfiles, fillers;
    const tn_meta  *meta;       /* the file's; key NULL: dropped */
    size_t          nmeta;
    uint32_t        index_file; /* if there are several files */
    bool            replaces;   /* another set: the new names get an id */
    bool            fills;      /* fillers align every tensor */
} tn_st_out;

/* The offset of an array of `nbytes` that follows `at` bytes of data. */
uint64_t tn_st_place(const tn_writer *w, uint64_t at, uint64_t nbytes);

/* Chooses the files of the output and opens them. */
tn_status tn_st_cut(tn_writer *w, tn_st_out *out, tn_error *err);

/* Opens the file of the index; nothing when there is one file only. */
tn_status tn_st_plan_index(tn_writer *w, tn_st_out *out, tn_error *err);

/* Names all files and writes the index. */
tn_status tn_st_put_index(tn_writer *w, tn_st_out *out, tn_error *err);

/* --- set.c --- */

bool tn_st_is_index_path(const char *path);

/* The writer's path with another suffix, and the name of file i; NULL without memory. */
const char *tn_st_path_with(tn_writer *w, const char *suffix);
const char *tn_st_member_name(tn_writer *w, size_t i, const char *id);

/* Finds the files that the new ones replace, and marks them as obsolete. */
tn_status tn_st_plan_old(tn_writer *w, tn_st_out *out, tn_error *err);

void tn_st_look_beside(const struct tn_beside *beside);

/* --- write.c --- */

tn_status tn_st_plan(tn_writer *w, tn_error *err);
tn_status tn_st_finish(tn_writer *w, tn_error *err);
tn_status tn_st_rewrite(tn_file *file, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err);

#endif
