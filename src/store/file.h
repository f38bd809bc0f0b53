/* store/file.h - the inside of tn_file, and how a format fills it. */
#ifndef TN_STORE_FILE_H
#define TN_STORE_FILE_H

#include "base/arena.h"
#include "base/text.h"
#include "bytes/source.h"
#include "store/format.h"
#include "store/names.h"
#include "store/properties.h"
#include "store/record.h"
#include "store/stored.h"

#define TN_MAX_WARNINGS 100

typedef struct tn_shard {
    tn_source  *source;
    const char *path;           /* as a person would name it; "" for memory and descriptors */
    uint64_t    data_begin;     /* where its data section begins, for formats that have one */
    bool        decoded;        /* no file: what the format has decoded when it was opened */
} tn_shard;

struct tn_file {
    const tn_format *format;
    tn_io            io;
    uint64_t         max_bytes;     /* see tn_open_options */
    tn_arena         arena;
    tn_shard        *shards;
    size_t           nshards;

    tn_tensor *tensors;
    tn_part   *parts;           /* one an entry until the file is sealed */
    uint64_t  *at;              /* where each entry stands in the index, for messages */
    tn_text   *records;         /* Tenon's own record of an entry (CBOR), or len 0; NULL while there is
                                 * none */
    size_t     count, cap;
    tn_names   names;
    uint64_t   last_end;        /* of the data of the entries so far... */
    uint32_t   last_shard;
    bool       disordered;      /* ...unless one lay before another's end */

    tn_kept_datatype datatype;
    const tn_meta *meta;
    size_t         nmeta;
    const char    *left_out;    /* what the file says and no tensor of it can, for those who convert it; or
                                 * NULL */
    const tn_properties *properties;    /* of each tensor, or NULL: of none */
    const char    *left_out_property;   /* the first of them that most containers cannot hold, or NULL */

    const char *warnings[TN_MAX_WARNINGS + 1];  /* the last: how many more there are */
    size_t      nwarnings, unsaid;
};

/* One array as the container lists it.  Everything it points to lives in the file's arena. */
typedef struct tn_entry {
    const char    *name;
    uint64_t       at;          /* byte of the index where it stands */
    tn_dtype       dtype;       /* TN_UNKNOWN: listed, not read */
    uint32_t       rank;
    const int64_t *shape;
    tn_stored      stored;      /* `more` is not set here... */
    tn_stored_more more;        /* ...but here, if anything of it is */
    const tn_meta *meta;
    uint32_t       nmeta;
    tn_text        record;
    const char    *layout;      /* or NULL */
    const tn_padded *padded;    /* or NULL */
    /* A tensor of several parts: the entry's array is the first of them. */
    tn_form        form;        /* dense with a scaling is scaled */
    const char    *form_text;   /* opaque: the layout's name; NULL: more.opaque is it */
    const tn_scaling *scaling;
    tn_dtype       value_dtype;
    const int64_t *value_shape; /* of value_rank dimensions; NULL: the entry's own */
    uint32_t       value_rank;
    const tn_part *companions;  /* the other parts, whose places the format has checked */
    uint32_t       ncompanions;
} tn_entry;

/* What the file says of the use of one of its tensors; NULL: nothing, or the tensor is a copy. */
static inline const tn_properties *tn_file_properties(const tn_file *file, const tn_tensor *tensor)
{
    bool own = tensor >= file->tensors && tensor < file->tensors + file->count;
    return own && file->properties ? &file->properties[tensor - file->tensors] : NULL;
}

/* Makes room for about n entries: a hint, bounded by the size of the index. */
tn_status tn_file_expect(tn_file *file, size_t n, tn_error *err);

/* Of a check of what a file says: whatever the status, the file is corrupt, at this byte.  TN_ERR_NOMEM
 * stays. */
tn_status tn_file_says(tn_status status, uint64_t at, tn_error *err);

/* Appends an entry: checks rank, sizes (raw: stored.size against shape, type,
 * strides and pitch) and that the data lies inside its shard; of companions only
 * what has a pitch or columns. */
tn_status tn_file_add(tn_file *file, const tn_entry *entry, tn_error *err);

/* Notes what is wrong with a file that can be read all the same; strings from
 * it go through tn_quote() first. */
__attribute__((format(printf, 3, 4)))
void tn_file_warn(tn_file *file, uint64_t at, const char *format, ...);

/* The elements of a part in place, if they are raw, in host order and mapped; else NULL. */
const void *tn_file_view(const tn_file *file, const tn_part *part);

/* A NUL-free, NUL-terminated arena copy of a name or other text from the
 * index; NULL with `err` filled otherwise.  `what` says what it is. */
const char *tn_file_text(tn_file *file, tn_text text, const char *what, uint64_t at, tn_error *err);

/* A name for the only tensor of a file: that of the file without its suffix, or
 * "tensor" where it has none that is UTF-8; NULL without memory. */
const char *tn_file_stem(tn_file *file, const char *suffix);

/* All of the first shard, which is an index and nothing else: `what`, of at
 * most `most` bytes.  In the arena. */
tn_status tn_file_load(tn_file *file, size_t most, const char *what, tn_text *text, tn_error *err);

/* An arena copy of file metadata; the strings it points to must be in the arena already. */
tn_status tn_file_set_meta(tn_file *file, const tn_meta *meta, size_t n, tn_error *err);

/* Opens one more source for a sharded set, beside `file`'s first. */
tn_status tn_file_add_shard(tn_file *file, const char *path, uint32_t *shard, tn_error *err);

/* Makes arrays that stand in the text of the first shard, and that the format has read from
 * there, a shard of their own; `data` is in the arena.  After all other shards. */
tn_status tn_file_add_decoded(tn_file *file, const void *data, size_t size, uint32_t *shard, tn_error *err);

/* An arena copy of how a companion is stored; `more` may be NULL.  NULL without memory. */
const tn_stored *tn_file_keep_stored(tn_file *file, const tn_stored *stored, const tn_stored_more *more);

/* Where in its file an entry's bytes are: of several parts in one piece, those of all. */
static inline tn_range tn_entry_range(const tn_stored *first)
{
    return first->more && first->more->sum.size ? first->more->sum
                                                : (tn_range){ first->offset, first->size };
}

/* The end of work on a file that ended with `status`: if the file was cut meanwhile (see tn_file_intact()),
 * that is the status to tell, whatever else went wrong.  To be asked before results are given to anybody. */
tn_status tn_file_settle(const tn_file *file, tn_status status, tn_error *err);

/* The same with the file's name before the text. */
tn_status tn_file_settle_named(const tn_file *file, tn_status status, tn_error *err);

/* The same of those files that the tensor's parts lie in; `file` may be NULL. */
tn_status tn_tensor_settle(const tn_file *file, const tn_tensor *tensor, tn_status status, tn_error *err);

/* How data ranges may lie to each other. */
typedef enum tn_tiling {
    TN_TILING_SHARED,           /* ranges are identical or apart: identical ones are tied */
    TN_TILING_EXACT             /* [begin, end) of each shard is covered exactly once */
} tn_tiling;
tn_status tn_file_check_ranges(tn_file *file, tn_tiling tiling, const uint64_t *begin, const uint64_t *end,
                               tn_error *err);

#endif
