/* store/file.h - the inside of tn_file, and how a format fills it. */
#ifndef TN_STORE_FILE_H
#define TN_STORE_FILE_H

#include "base/arena.h"
#include "base/text.h"
#include "bytes/source.h"
#include "store/format.h"
#include "store/names.h"
#include "store/record.h"
#include "store/stored.h"

#define TN_MAX_WARNINGS 100

typedef struct tn_shard {
    tn_source  *source;
    const char *path;           /* as a person would name it; "" for memory and descriptors */
    uint64_t    data_begin;     /* where its data section begins, for formats that have one */
    uint32_t    number;         /* in the file it was opened with: 0 and 1 name the others */
    bool        decoded;        /* no file, but data that the format decoded when it opened the file */
} tn_shard;

struct tn_file {
    const tn_format *format;
    const char      *asked_format;  /* by whoever opened it, or NULL */
    tn_io            io;
    uint64_t         max_bytes;     /* see tn_open_options */
    bool             strict, raw_codes;
    tn_arena         arena;
    tn_shard        *shards;
    size_t           nshards;
    tn_file        **members;       /* several files opened as one own the sources; else NULL */
    size_t           nmembers;

    tn_tensor *tensors;
    tn_part   *parts;           /* one per entry until the file is sealed */
    uint64_t  *at;              /* byte of each entry in the index, for messages */
    tn_text   *records;         /* Tenon's record of each entry (CBOR), or len 0; NULL: there are none */
    size_t     count, cap;
    tn_names   names;
    uint64_t   last_end;        /* where the data of the last entry ends... */
    uint32_t   last_shard;
    bool       disordered;      /* ...and whether any entry began before that */

    tn_kept_datatype datatype;
    const tn_meta *meta;
    size_t         nmeta;
    const char    *left_out;    /* information that a conversion would lose, or NULL */
    const tn_properties *properties;    /* of each tensor, or NULL */
    const char    *left_out_property;   /* the first of them that most containers cannot hold, or NULL */

    const struct tn_packed **packed;    /* what each tensor is a part of (store/packed.h); NULL: none is */
    const struct tn_listed *listed;     /* what the container lists, where several entries became one
                                         * tensor; or NULL */
    size_t           nlisted;

    const char *warnings[TN_MAX_WARNINGS + 1];  /* the last one counts the dropped ones */
    size_t      nwarnings, dropped_warnings;
};

/* One array as the container lists it.  Everything it points to lives in the file's arena. */
typedef struct tn_entry {
    const char    *name;
    uint64_t       at;          /* its byte in the index */
    tn_dtype       dtype;       /* TN_UNKNOWN: listed, but cannot be read */
    uint32_t       rank;
    const int64_t *shape;
    tn_stored      stored;      /* without `more` */
    tn_stored_more more;
    const tn_meta *meta;
    uint32_t       nmeta;
    tn_text        record;
    const char    *layout;      /* or NULL */
    const tn_padded *padded;    /* or NULL */
    /* A tensor of several parts: the entry's array is the first part. */
    tn_form        form;        /* dense with a scaling means scaled */
    const char    *form_text;   /* the name of an opaque layout; NULL: more.opaque */
    const tn_scaling *scaling;
    tn_dtype       value_dtype;
    const int64_t *value_shape; /* of value_rank dimensions; NULL: the entry's shape */
    uint32_t       value_rank;
    const tn_part *companions;  /* the other parts; the format has checked their places */
    uint32_t       ncompanions;
    bool           repeats;     /* nothing but name, `at` and offset differ from the entry before: a hint */
} tn_entry;

/* The entry's array becomes the `count` values of a sparse tensor, whose other parts are given. */
static inline void tn_entry_make_sparse(tn_entry *e, tn_form form, const int64_t *count,
                                        const tn_part *companions, uint32_t ncompanions)
{
    e->form = form;
    e->value_dtype = e->dtype;
    e->value_rank = e->rank;
    e->value_shape = e->shape;
    e->rank = 1;
    e->shape = count;
    e->companions = companions;
    e->ncompanions = ncompanions;
}

/* The entry's elements are in Fortran order.  It has elements, and their size was checked. */
tn_status tn_entry_make_fortran(tn_file *file, tn_entry *e, tn_error *err);

/* The properties of one of the file's tensors; NULL: it has none, or the tensor is a copy. */
static inline const tn_properties *tn_file_properties(const tn_file *file, const tn_tensor *tensor)
{
    bool own = tensor >= file->tensors && tensor < file->tensors + file->count;
    return own && file->properties ? &file->properties[tensor - file->tensors] : NULL;
}

/* Makes room for about n entries: a hint, bounded by the size of the index. */
tn_status tn_file_expect(tn_file *file, size_t n, tn_error *err);

/* Turns the failed check of something in the file, except TN_ERR_NOMEM, into TN_ERR_CORRUPT at byte `at`. */
tn_status tn_file_says(tn_status status, uint64_t at, tn_error *err);

/* Appends an entry.  Checks rank, sizes (raw: stored.size against shape, type, strides and pitch) and that
 * the data is inside its shard.  Of companions only those with a pitch or derived ones are checked. */
tn_status tn_file_add(tn_file *file, const tn_entry *entry, tn_error *err);

/* Keeps a warning about a file that can still be read.  Strings from the file go through tn_quote(). */
__attribute__((format(printf, 3, 4)))
void tn_file_warn(tn_file *file, uint64_t at, const char *format, ...);

/* The same for a whole text, and what tells how many were dropped: after the last one. */
void tn_file_keep_warning(tn_file *file, const char *text);
tn_status tn_file_end_warnings(tn_file *file, tn_error *err);

/* The elements of a part in place, if they are raw, in host order and mapped; else NULL. */
const void *tn_file_view(const tn_file *file, const tn_part *part);

/* A copy in the arena of a name or other text from the index; NULL with `err` filled if it has a NUL or
 * memory runs out.  `what` names it in the message. */
const char *tn_file_text(tn_file *file, tn_text text, const char *what, uint64_t at, tn_error *err);

/* A name for the only tensor of a file: the file's name without its suffix, or "tensor" if that is empty or
 * not UTF-8; NULL without memory. */
const char *tn_file_stem(tn_file *file, const char *suffix);

/* Reads the first shard, which is only an index of at most `most` bytes; `what` names it in messages. */
tn_status tn_file_load(tn_file *file, size_t most, const char *what, tn_text *text, tn_error *err);

/* An arena copy of file metadata; the strings it points to must be in the arena already. */
tn_status tn_file_set_meta(tn_file *file, const tn_meta *meta, size_t n, tn_error *err);

/* Opens one more shard of the set. */
tn_status tn_file_add_shard(tn_file *file, const char *path, uint32_t *shard, tn_error *err);

/* Opens several more, whose paths are in the arena; at once where that saves time. */
tn_status tn_file_add_shards(tn_file *file, const char *const *paths, size_t n, tn_error *err);

/* Adds data in the arena that the format decoded from the first shard; after all other shards. */
tn_status tn_file_add_decoded(tn_file *file, const void *data, size_t size, uint32_t *shard, tn_error *err);

/* An arena copy of how a companion is stored; `more` may be NULL.  NULL without memory. */
const tn_stored *tn_file_keep_stored(tn_file *file, const tn_stored *stored, const tn_stored_more *more);

/* Applies file->records: types, shapes, metadata, ties, and entries that are parts of one tensor. */
tn_status tn_file_assemble(tn_file *file, tn_error *err);

/* Builds the name table anew from file->tensors; a name twice is TN_ERR_CORRUPT. */
tn_status tn_file_index_names(tn_file *file, tn_error *err);

/* The bytes of an entry in its file: of all parts if they are stored in one piece. */
static inline tn_range tn_entry_range(const tn_stored *first)
{
    return first->more && first->more->sum.size ? first->more->sum
                                                : (tn_range){ first->offset, first->size };
}

/* The final status of work on a file: if the file was truncated meanwhile (see tn_file_intact()), that is
 * the status, whatever else went wrong.  Call it before results are reported. */
tn_status tn_file_settle(const tn_file *file, tn_status status, tn_error *err);

/* The same, and notes the file in `err`. */
tn_status tn_file_settle_named(const tn_file *file, tn_status status, tn_error *err);

/* The same for the files of the tensor's parts; `file` may be NULL. */
tn_status tn_tensor_settle(const tn_file *file, const tn_tensor *tensor, tn_status status, tn_error *err);

/* The path for messages about the file; "" for several files. */
const char *tn_file_path(const tn_file *file);

/* Keys are not compared. */
bool tn_meta_same_value(const tn_meta *a, const tn_meta *b);

/* If the error has a tensor but no file: notes which of several files has the tensor. */
tn_status tn_file_name_member(const tn_file *file, tn_status status, tn_error *err);

/* Notes for each file of those opened as one what a conversion to format `to` leaves behind (`not_carried` of
 * its format); `note` may be NULL. */
void tn_file_note_left(const tn_file *file, const tn_format *to, tn_note_fn note, void *context);

/* How the data of entries covers the file. */
typedef enum tn_tiling {
    TN_TILING_SHARED,           /* ranges are identical or disjoint; identical ones are tied */
    TN_TILING_EXACT,            /* [begin, end) of each shard is covered exactly once */
    TN_TILING_VIEWS             /* ranges may overlap in any way, but all tensors together take at most
                                 * TN_GROWTH_MAX times the bytes of the files, else TN_ERR_LIMIT; tensors with
                                 * equal range, order, type, shape and strides are tied */
} tn_tiling;

/* The most bytes that one stored byte may stand for: what deflate can do. */
enum { TN_GROWTH_MAX = 1032 };

tn_status tn_file_check_ranges(tn_file *file, tn_tiling tiling, const uint64_t *begin, const uint64_t *end,
                               tn_error *err);

#endif
