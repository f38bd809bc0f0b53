/* pipeline/items.h - what one thread makes at a time: the inside of run.c.
 *
 * items.c makes the bytes of items, run.c cuts pieces into items and joins their results in order. */
#ifndef TN_PIPELINE_ITEMS_H
#define TN_PIPELINE_ITEMS_H

#include "base/vector.h"
#include "pipeline/run.h"

typedef enum tn_way { TN_WAY_SMALL, TN_WAY_SPLIT, TN_WAY_WHOLE, TN_WAY_ORDERED, TN_WAY_ALONE } tn_way;

enum { TN_ITEM_TENSORS = 64 };          /* small ones of an item at most */

/* Entries of the writer that are made together, from one view. */
typedef struct tn_subject {
    uint32_t  first, count;     /* entries, of which some may have their data already */
    uint32_t  piece;
    tn_way    way;
    bool      direct;           /* whoever makes bytes writes them */
    bool      same_sum;         /* the checksum of the input is that of the output */
    uint64_t  block, nblocks;   /* unless it is small */
    tn_view  *view;             /* open, unless it is small */
    tn_view  *stored;           /* that it streams, or NULL */
    tn_arena  arena;
} tn_subject;

/* Bytes that are written with one call: of entries that are neighbours in a file. */
typedef struct tn_span_made {
    tn_buf   bytes;
    uint64_t at;
    uint32_t file;
} tn_span_made;

enum { TN_SPANS = 4 };          /* of an item: codes, scales ... may lie far apart */

/* What an item leaves for when it is its turn: one for each entry, in order. */
typedef struct tn_outcome {
    uint64_t  size;
    tn_digest digest;
} tn_outcome;

typedef struct tn_made {
    tn_buf            bytes;            /* of all entries, unless they are direct */
    tn_span_made      spans[TN_SPANS];  /* of direct ones that are not written yet */
    unsigned          oldest;           /* of the spans, if none is free */
    tn_outcome       *list;
    size_t            count, cap;
    tn_digest         in;               /* some blocks: of the input's stored bytes */
    uint64_t          nin;
    tn_quantize_stats stats[TN_ITEM_TENSORS];
} tn_made;

/* Of one thread. */
typedef struct tn_maker {
    tn_worker      worker;
    tn_pool       *pool;        /* of this thread alone */
    tn_view       *view;        /* of the last small tensor... */
    const tn_tensor_plan *plan; /* ...and its plan, or NULL */
    tn_arena       arena;       /* of the view */
    tn_buf         parts[TN_MAX_PARTS];         /* of several blocks... */
    tn_part_bytes  made[TN_MAX_PARTS];          /* ...or of one: all of a small tensor */
    tn_codec_state encoder;
    tn_buf         swapped;
} tn_maker;

typedef struct tn_engine {
    const tn_run *run;
    tn_writer    *out;
    tn_preparing  preparing;
    tn_subject   *subjects;
    size_t        count, cap;
    uint64_t      held;
    uint64_t      gap;          /* what is between neighbours of the output and shorter is padding; threads
                                 * must not ask the writer, which places entries meanwhile */
    tn_items      items;
    tn_maker     *scratch;      /* of each thread */
    tn_made *results;

    /* The subject whose items are being joined. */
    tn_digest     in, digests[TN_MAX_PARTS];
    uint64_t      nin, sizes[TN_MAX_PARTS];
    tn_spill      waiting[TN_MAX_PARTS];        /* parts after the first that are encoded after it */
    tn_quantize_stats stats;
} tn_engine;

static inline const tn_out_entry *tn_entry_at(const tn_engine *m, size_t i)
{
    return &m->out->entries[i];
}

static inline const tn_tensor *tn_source_of(const tn_engine *m, const tn_subject *s)
{
    return m->run->source[tn_entry_at(m, s->first)->tensor];
}

static inline const tn_tensor_plan *tn_plan_of(const tn_engine *m, const tn_subject *s)
{
    return m->run->plans[tn_entry_at(m, s->first)->tensor];
}

/* The next entry of a subject that is made, from number i on. */
static inline size_t tn_next_entry(const tn_engine *m, const tn_subject *s, size_t i)
{
    while (i < s->first + s->count && !tn_run_moves(tn_entry_at(m, i)))
        i++;
    return i;
}

static inline size_t tn_first_entry(const tn_engine *m, const tn_subject *s)
{
    return tn_next_entry(m, s, s->first);
}

static inline bool tn_has_entry(const tn_subject *s, size_t i)
{
    return i < (size_t)s->first + s->count;
}

/* Whether all small tensors of an item have places. */
static inline bool tn_run_is_direct(const tn_engine *m, const tn_item *item)
{
    bool direct = true;
    for (uint32_t k = 0; k < item->count; k++)
        direct &= m->subjects[item->subject + k].direct;
    return direct;
}

/* An error of the input: of the file that the part is in. */
tn_status tn_run_in_input(const tn_engine *m, const tn_subject *s, tn_status status, tn_error *err);

/* The view of what a subject is made of. */
tn_status tn_run_make_view(const tn_engine *m, const tn_subject *s, const tn_plan_place *place,
                           tn_arena *arena, tn_view **view, tn_error *err);

/* With all its checks and passes done, but for what is done while it is read: *stored, or NULL. */
tn_status tn_run_open_view(const tn_engine *m, const tn_subject *s, const tn_preparing *p, tn_arena *arena,
                           tn_view **view, tn_view **stored, tn_error *err);
void      tn_run_close_view(const tn_engine *m, const tn_subject *s, tn_view *view);

/* One block, and what there is to be told of the input meanwhile. */
tn_status tn_run_make_block(const tn_engine *m, const tn_subject *s, uint64_t block, tn_worker *w,
                            tn_part_bytes *out, tn_error *err);

/* What is known once all of an input is read. */
tn_status tn_run_check_sum(const tn_engine *m, const tn_subject *s, const tn_digest *found, tn_error *err);

/* Bytes that wait for their turn. */
tn_status tn_run_keep_block(const tn_engine *m, const tn_subject *s, const tn_part_bytes *out, tn_made *r,
                            tn_error *err);
tn_outcome *tn_run_add_outcome(tn_made *r, tn_error *err);

/* The work of a pool, of which the engine is the context. */
tn_status tn_run_work(void *context, uint64_t item, tn_pool_use use, tn_error *err);

void      tn_run_free_scratch(tn_maker *w);

#endif
