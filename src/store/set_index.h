/* store/set_index.h - sharded sets of Hugging Face models: NAME.SUFFIX.index.json names the file of each
 * tensor, and has metadata of its own. */
#ifndef TN_STORE_SET_INDEX_H
#define TN_STORE_SET_INDEX_H

#include "store/file.h"

/* Zero-initialise to begin. */
typedef struct tn_set_listed {
    const char *name;
    uint64_t    at;
    uint32_t    shard;
    bool        found;
} tn_set_listed;

typedef struct tn_set_index {
    tn_set_listed *tensors;
    size_t       count, cap;
    tn_names     names;
    const char **files;         /* names of shards 1, 2 ... (shard 0 is the index) */
    const char **paths;         /* the same with their folder, in the file's arena */
    size_t       nfiles, files_cap, paths_cap;
    tn_names     file_names;
    tn_text      metadata;      /* JSON object, or len 0 */
    uint64_t     metadata_at;
} tn_set_index;

/* How certain the text is of being such an index, 0 to 100. */
int tn_set_probe(const uint8_t *head, size_t n);

/* Reads the index, which is file->shards[0] and has at most so many bytes, and opens all its files. */
tn_status tn_set_open(tn_set_index *x, tn_file *file, size_t most, tn_error *err);
void      tn_set_free(tn_set_index *x);

/* The index lists this tensor in this shard, or in none: a warning unless the file is opened strictly. */
tn_status tn_set_claim(tn_set_index *x, tn_file *file, const char *name, uint32_t shard, uint64_t at,
                       tn_error *err);

/* All files are read.  TN_ERR_CORRUPT: a tensor of the index is in none of them. */
tn_status tn_set_check_found(const tn_set_index *x, tn_error *err);

/* The metadata of all files of a set.  Zero-initialise to begin. */
typedef struct tn_set_merged {
    tn_meta     *items;
    const char **from;          /* the file each came from */
    size_t       count, cap, from_cap;
    tn_names     names;
} tn_set_merged;

/* Adds one item.  A key with another value is an error that names both files. */
tn_status tn_set_merge(tn_set_merged *all, const tn_meta *meta, const char *from, uint64_t at, tn_error *err);
void      tn_set_merged_free(tn_set_merged *all);

/* Adds the metadata of the index; its total_size only if it is kept. */
tn_status tn_set_merge_index(const tn_set_index *x, tn_file *file, bool keeps_size, tn_set_merged *all,
                             tn_error *err);

#endif
