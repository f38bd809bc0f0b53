/* store/writer.h - the inside of tn_writer, and the calls for formats and conversions. */
#ifndef TN_STORE_WRITER_H
#define TN_STORE_WRITER_H

#include "base/arena.h"
#include "base/pool.h"
#include "base/text.h"
#include "bytes/checksum.h"
#include "bytes/codec.h"
#include "bytes/sink.h"
#include "store/format.h"
#include "store/names.h"
#include "store/record.h"

#define TN_UNPLACED UINT64_MAX
#define TN_NOT_TIED UINT32_MAX

/* What few entries have. */
typedef struct tn_out_more {
    tn_text        record;      /* CBOR, or len 0 */
    const tn_meta *meta;        /* of the tensor; first part only */
    uint32_t       nmeta;
    const tn_properties *properties;    /* of the tensor, or NULL; first part only, borrowed */
    const tn_tensor *whole;     /* the declared tensor without metadata, tie and data, for formats that do not
                                 * name each part; first part only */
} tn_out_more;

/* One array as the container will list it.  There may be very many. */
typedef struct tn_out_entry {
    const char    *name;
    const int64_t *shape;
    tn_out_more   *more;        /* never NULL; only writer.c writes to it */
    const void    *data;        /* written by finish; NULL: streamed */
    tn_digest     *digest;      /* once done; NULL: it has no checksum */
    uint64_t       nbytes;      /* decoded */
    uint64_t       offset;      /* in its file, or TN_UNPLACED */
    uint64_t       size;        /* stored bytes, once done */
    tn_dtype       dtype;       /* of the carrier: the container has a name for it */
    uint32_t       rank;
    uint32_t       tensor, part;
    uint32_t       tied;        /* earlier entry with the same bytes, or TN_NOT_TIED */
    uint32_t       file;        /* index into writer->files */
    uint8_t        swap;        /* raw data: unit of bytes to reverse, set by plan(); 0: none */
    uint8_t        swap_block;  /* raw blocks: 1 + tn_block, whose numbers are to be reversed; 0: none */
    uint8_t        encoding;    /* tn_encoding */
    uint8_t        checksum;    /* tn_checksum */
    bool           done;
} tn_out_entry;

typedef struct tn_out_file {
    tn_sink    *sink;           /* NULL in a dry run */
    const char *path;           /* for a member of a set: its name, once it has one */
    const char *object;         /* URL of an object, or NULL */
    bool        member;         /* of the writer's set: see store/publish.h */
    void       *head;           /* of the format, freed with the writer; or NULL */
    uint8_t    *memory;         /* bytes that only the format uses, instead of a sink; or NULL */
    uint64_t    end;            /* first free byte; after finish(): the size */
} tn_out_file;

struct tn_writer {
    const tn_format  *format;
    tn_create_options options;  /* with `align` filled in */
    const char       *path;
    uint8_t           choices[TN_MAX_FORMAT_KEYS];  /* see tn_writer_choice() */
    const char       *texts[TN_MAX_FORMAT_KEYS];    /* see tn_writer_text() */
    bool              dry_run;
    bool              ocp_names;    /* see TN_OCP_NAMES */
    const tn_file    *reading;  /* the input, which may be replaced by the output; or NULL */
    int               fd;       /* written to instead of `path`, or -1 */
    tn_status         failed;   /* of the first call that failed: all later calls fail too */
    tn_arena          arena;

    tn_out_entry *entries;
    size_t        count, cap;
    uint32_t     *first_entry;  /* of each tensor */
    size_t        ntensors, tensor_cap;
    tn_names      names;
    tn_kept_datatype datatype;
    tn_meta      *meta;
    size_t        nmeta, meta_cap;

    tn_out_file  *files;
    size_t        nfiles, files_cap;
    struct tn_sink_set *set;    /* of the members, or NULL */
    const char   *like;         /* the file whose permissions the members get, or NULL */
    struct tn_obsolete *obsolete;       /* files to remove when the new ones are in place */
    size_t        nobsolete, obsolete_cap;
    size_t        old_shard;    /* the shard of `reading` that is likely to be obsolete next */
    bool          obsolete_head;    /* the first of them names the others */
    bool          left;         /* one of them could not be removed */
    void         *state;        /* the format's, in the arena */
    bool          planned;
    bool          appends;      /* places follow the order of entries, with padding between them */

    /* The part being streamed. */
    size_t   current;           /* entry, or SIZE_MAX */
    uint64_t written;           /* decoded bytes so far */
    tn_hash  hash;
    tn_codec_state encoder;
    tn_buf   whole;             /* small parts to be compressed, until complete */
    bool     gathers;           /* the writer is being finished: small neighbours are written together */
    tn_buf   gathered;          /* those that are not written yet, and where they go */
    uint32_t gathered_file;
    uint64_t gathered_at;
    struct tn_spill *late;      /* where stored bytes of entries without a place go meanwhile, or NULL */
    uint8_t *swapped;           /* raw data with its bytes reversed... */
    size_t   unswapped;         /* ...after so many bytes of an incomplete element */
};

/* Whether the bytes of an entry are in another order in the file. */
static inline bool tn_entry_is_swapped(const tn_out_entry *e) { return e->swap > 1 || e->swap_block; }

/* Reverses them in place: whole elements or blocks. */
void tn_entry_swap(const tn_out_entry *e, uint8_t *bytes, size_t n);

/* The first entry of a tensor, or the end of all: those of tensor i are before the first of tensor i + 1. */
static inline size_t tn_writer_first(const tn_writer *w, size_t tensor)
{
    return tensor < w->ntensors ? w->first_entry[tensor] : w->count;
}

/* For formats, like store/publish.h. */
tn_out_file *tn_writer_next_file(tn_writer *w);     /* zeroed, not yet counted; NULL: no memory */
/* Opens its sink unless it is a dry run. */
tn_status tn_writer_add_file(tn_writer *w, const char *path, uint32_t *file, tn_error *err);
/* Whether the format can hold data of this codec, if it compresses. */
static inline bool tn_format_takes(const tn_format *format, const tn_codec *codec)
{
    return format->archive_codec ? codec->id == format->archive_codec : !codec->sums_decoded;
}

/* Zeroed memory that is never published. */
tn_status tn_writer_add_memory(tn_writer *w, uint64_t size, uint32_t *file, tn_error *err);
tn_status tn_writer_put(tn_writer *w, uint32_t file, uint64_t offset, const void *data, size_t n,
                        tn_error *err);

/* Whether another thread is writing to the file. */
static inline bool tn_writer_is_busy(const tn_writer *w, uint32_t file)
{
    return w->files[file].sink && tn_sink_is_busy(w->files[file].sink);
}

/* For formats that keep the file's metadata with the first tensor.  TN_ERR_LOSS: there is none. */
tn_status tn_writer_check_file_meta(const tn_writer *w, const char *format, tn_error *err);

/* The value of one of the format's own options, by its number in tn_format_key.values; 0: the first, or the
 * format has no such option. */
unsigned tn_writer_choice(const tn_writer *w, const char *key);

/* The same for an option that takes any text; NULL: it is not given. */
const char *tn_writer_text(const tn_writer *w, const char *key);

/* An option of formats that name each part: the scales of a scaled tensor are called NAME_scale, and that of
 * the tensor beside them NAME_scale_2, as other software expects; else NAME.ROLE. */
#define TN_OCP_NAMES "ocp-names"
#define TN_OCP_NAMES_KEY { TN_OCP_NAMES, "no|yes", "scales are called NAME_scale, as other software expects" }

/* Checks the format's own options and keeps their values. */
tn_status tn_writer_take_format_options(tn_writer *w, tn_error *err);

/* TN_ERR_ARGUMENT: a NULL among the options of formats. */
tn_status tn_check_format_options(const tn_create_options *options, tn_error *err);

/* For conversions: tn_create(); a dry run does not touch the disk. */
tn_status tn_writer_new(const char *path, const tn_create_options *options, bool dry_run, tn_writer **w,
                        tn_error *err);

/* A failed writer stays failed: the state of its files is not known. */
tn_status tn_writer_is_good(const tn_writer *w, tn_error *err);

/* The end of a public call: after a failure every later call fails too. */
tn_status tn_writer_settle(tn_writer *w, tn_status status, tn_error *err);

/* tn_writer_add() with an encoding and a checksum per part. */
typedef struct tn_stored_as {
    tn_encoding encoding;
    tn_checksum checksum;
} tn_stored_as;
tn_status tn_writer_add_as(tn_writer *w, const tn_tensor *tensor, const tn_stored_as *how, tn_error *err);

/* Makes room for so many tensors and entries, before the first is added. */
tn_status tn_writer_expect(tn_writer *w, size_t tensors, size_t entries, tn_error *err);

/* Adds a tensor that differs from number `like` in nothing but its name; tn_writer_repeats(): that one can be
 * repeated, for nothing that is kept of it depends on its name. */
bool      tn_writer_repeats(const tn_writer *w, size_t like);
tn_status tn_writer_add_like(tn_writer *w, size_t like, const char *name, tn_error *err);

/* Properties of the tensor that was added last, if the format keeps them. */
tn_status tn_writer_set_properties(tn_writer *w, const tn_properties *properties, tn_error *err);

/* No more tensors: lets the format plan.  The first write calls it too. */
tn_status tn_writer_plan(tn_writer *w, tn_error *err);

/* Gives the next entry in order an offset for `size` stored bytes. */
tn_status tn_writer_place(tn_writer *w, size_t entry, uint64_t size, tn_error *err);

/* Reserves disk space for all entries that have an offset, so that a full disk is noticed now. */
tn_status tn_writer_reserve(tn_writer *w, tn_error *err);

/* Whether the stored bytes of an entry wait outside of its file. */
static inline bool tn_writer_is_late(const tn_writer *w, const tn_out_entry *e)
{
    return w->late && e->offset == TN_UNPLACED;
}

/* All bytes of the entry are in the file. */
void tn_writer_commit(tn_writer *w, size_t entry, const tn_digest *digest);

/* Entries [first, end) are written anew, at the places that they have: making them has failed. */
void tn_writer_begin_again(tn_writer *w, size_t first, size_t end);

/* Bytes of all files together; after tn_writer_seal(). */
uint64_t tn_writer_total(const tn_writer *w);

/* tn_writer_finish() without publishing; a dry run takes all data as raw. */
tn_status tn_writer_seal(tn_writer *w, tn_error *err);

/* Publishes a sealed writer's files and frees it. */
tn_status tn_writer_publish(tn_writer *w, tn_error *err);

#endif
