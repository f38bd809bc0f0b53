/* pipeline/view.h - a tensor whose data is made when it is asked for.
 *
 * A view is a step applied to an input view.  The first one is always `stored`: a
 * tensor of an open file.  Adding a step says what comes out (or why it cannot
 * be) and, but for sparse results, reads no data.  tn_view_prepare() makes the
 * passes over the data that must come first.  Then any thread asks for what it
 * wants:
 *
 *     ranges   elements [first, first + n) of the first part: tn_view_range()
 *     blocks   some bytes of every part of the result: tn_view_block()
 *
 * Results with several parts that are made together (codes with scales, sparse
 * entries) can be read by blocks only.  Where a step needs all parts of such a
 * result, or ranges of data that can only be read in order, tn_view_prepare() puts
 * all of it into spills. */
#ifndef TN_PIPELINE_VIEW_H
#define TN_PIPELINE_VIEW_H

#include "bytes/spill.h"
#include "pipeline/walk.h"
#include "quant/job.h"
#include "store/load.h"
#include "tensor/form.h"

#include <tenon/view.h>

enum { TN_VIEW_DEPTH = 16 };    /* steps of a view at most */

/* A copy of mapped bytes: of small neighbours, made at once before they are needed. */
typedef struct tn_ahead {
    const uint8_t *mapped;
    uint8_t       *bytes;
    size_t         n, room;
} tn_ahead;

/* The memory of one thread, reused from view to view.  Zero-initialise to begin. */
typedef struct tn_worker {
    struct { uint8_t *bytes; size_t size; } buffers[2 * TN_VIEW_DEPTH];
    tn_stream         stream;   /* of a stored part, open from one range to the next that follows it */
    const tn_view    *streamed; /* its view, or NULL */
    uint64_t          at;       /* the byte of the part that comes next... */
    const uint8_t    *window;   /* ...and some that were read ahead */
    size_t            left;
    uint64_t          until;    /* what is read in order ends with this element; 0: with each range */
    tn_hash           hash;     /* of a part in memory, between tn_stored_begin() and tn_stored_end() */
    tn_scaled_scratch quant;
    tn_scaled_result  quantized;
    tn_quantize_stats report;   /* of the last block, if a step quantized it */
    uint64_t          counted;  /* elements before this one are in the report of another block */
    tn_ahead          ahead;
} tn_worker;

void tn_worker_free(tn_worker *worker);

/* Copies n mapped bytes ahead, in place of those before. */
tn_status tn_worker_read_ahead(tn_worker *w, const tn_source *source, uint64_t offset, size_t n,
                               tn_error *err);

/* Bytes of a part in memory, or the worker's copy of them. */
static inline const uint8_t *tn_worker_near(const tn_worker *w, const uint8_t *bytes, uint64_t n)
{
    uint64_t at = (uintptr_t)bytes - (uintptr_t)w->ahead.mapped;
    return at < w->ahead.n && n <= w->ahead.n - at ? w->ahead.bytes + at : bytes;
}

/* Closes its stream, for whose window others may wait: after each item of a pool. */
void tn_worker_rest(tn_worker *worker);

/* `size` bytes that stay valid until the same view asks again: each has two, number 0 and 1. */
tn_status tn_worker_buffer(tn_worker *w, const tn_view *v, unsigned number, uint64_t size, uint8_t **bytes,
                           tn_error *err);

/* Some bytes of a part. */
typedef struct tn_part_bytes {
    const uint8_t *bytes;
    uint64_t       offset, size;
} tn_part_bytes;

/* What is the same for all views of a call.  Views of callers of the library have a tn_opened. */
typedef struct tn_view_place {
    const tn_file *file;
    const char    *beside;      /* for spills: see tn_spill_make() */
    tn_walk       *walk;        /* for progress and cancelling; or NULL */
    uint64_t       max_bytes;   /* that compressed or sparse data may become; 0: the file's */
    bool           unchecked;   /* checksums are compared only of parts that are loaded whole */
} tn_view_place;

/* How a view is prepared: by the calling thread, or by the threads of a pool. */
typedef struct tn_preparing {
    tn_pool    *pool;
    tn_worker **workers;        /* one per thread of the pool */
    bool        in_order;       /* ranges will be read from the first to the last, once, by one worker */
} tn_preparing;

/* How elements of a view can be read before all of them are in a spill. */
typedef enum tn_reach {
    TN_REACH_ANY,               /* any range, by any thread */
    TN_REACH_IN_ORDER           /* from the first to the last: some stored data is one compressed frame */
} tn_reach;

/* Stored bytes, in the order of their files.  Zero-initialise to begin; free(list) to end. */
typedef struct tn_needs {
    struct { uint32_t shard; uint64_t offset, size; } *list;
    size_t count, cap;
    size_t most;                /* ranges, after which TN_ERR_LIMIT says that there are more; 0: any number */
} tn_needs;

struct tn_strided;

typedef struct tn_step {
    const char    *name;
    uint32_t       most_parts;  /* of the result; 0: as many as the input has */
    /* Changes v->tensor and v->parts, which begin as those of the input. */
    tn_status (*describe)(tn_view *v, const void *options, tn_error *err);
    /* The passes that come first.  It prepares the input too; NULL: nothing else is to be done. */
    tn_status (*prepare)(tn_view *v, const tn_preparing *p, tn_error *err);
    /* One of these.  Elementwise: n elements of the input into as many. */
    tn_status (*apply)(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                       tn_error *err);
    /* Adds to w->report what apply() did to elements, or refuses it; may be NULL. */
    tn_status (*report)(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, const uint8_t *out,
                        tn_worker *w, tn_error *err);
    /* Elements [first, first + n) into `out`; `first` is a multiple of 8. */
    tn_status (*make)(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out, tn_error *err);
    /* Blocks of a result; *out has one item per part, empty where a part has none of the block. */
    uint64_t  (*blocks)(const tn_view *v);
    tn_status (*block)(const tn_view *v, uint64_t block, tn_worker *w, tn_part_bytes *out, tn_error *err);
    /* The first part as memory with strides, once it is prepared; may be NULL. */
    bool      (*strided)(const tn_view *v, struct tn_strided *strided);
    /* Adds the stored bytes that elements [first, first + n) of the first part are made of.  NULL: the same
     * elements of the input of an elementwise step, else all that the inputs have. */
    tn_status (*needs)(const tn_view *v, uint64_t first, uint64_t n, tn_needs *needs, tn_error *err);
    /* Whether a block depends on no other elements than those it is made of, and preparing reads none.  NULL:
     * so it is if there is nothing to prepare. */
    bool      (*is_local)(const tn_view *v);
    /* The elements of the input that a block of a prepared view is made of; with `blocks`. */
    void      (*span)(const tn_view *v, uint64_t block, uint64_t *first, uint64_t *n);
    /* Gets ready for another tensor of the same type and shape, for which it is prepared again unless what
     * was prepared serves that one too.  False, or NULL: the view must be made anew. */
    bool      (*renew)(tn_view *v);
    void      (*release)(tn_view *v);   /* gives back what preparing took; may be NULL */
    void      (*free)(tn_view *v);      /* of v->state; may be NULL */
} tn_step;

/* All of the first part, or of all parts, and what quantizing did to them. */
typedef struct tn_filled {
    tn_loaded         whole;    /* its tensor is set once all parts are there */
    tn_quantize_stats report;
} tn_filled;

struct tn_view {                /* small: a conversion has one for each of very many tensors */
    const tn_step *step;
    tn_view      **inputs;
    tn_view       *input;       /* the first, or NULL */
    const tn_view_place *place;
    tn_arena      *arena;       /* of all views of a tensor */
    tn_tensor      tensor;      /* what comes out... */
    tn_part       *parts;       /* ...its parts; one with data is complete, others are made */
    uint64_t       count;       /* elements of the first part, with padding */
    uint64_t       grain;       /* elements of the first part that are best made at a time; 0: a window */
    const uint8_t *memory;      /* all of the first part, once there is such a thing; or NULL */
    tn_filled     *filled;      /* where that is, if it was made or decoded; or NULL */
    void          *state;       /* of the step */
    uint32_t       ninputs;     /* 0: it is stored */
    unsigned       holders;     /* see tn_view_hold() */
    unsigned       bits;        /* of an element of the first part */
    uint16_t       unit;        /* elements of a stored part that belong together: a block; 0: none */
    uint8_t        depth;       /* steps before it */
    uint8_t        reach;       /* tn_reach */
    bool           is_moved;    /* elements have other indices than in the file */
    bool           reports;     /* so each element is to be made once, by blocks that follow one another */
    bool           has_wide_indices;    /* the second part has another type than in the file */
    bool           is_prepared;
    bool           is_streamed; /* a stored part that is read in order, between begin and end */
    bool           is_copied;   /* a stored part whose long ranges are copied, though they are mapped */
};

/* Makes v->filled, with empty spills. */
tn_status tn_view_new_filled(tn_view *v, tn_error *err);

/* The tensor as it is in the file.  The place lives as long as the view. */
tn_status tn_view_stored(const tn_view_place *place, const tn_tensor *tensor, tn_arena *arena, tn_view **view,
                         tn_error *err);

/* Part k of it as a dense tensor of its own. */
tn_status tn_view_stored_part(const tn_view_place *place, const tn_tensor *tensor, uint32_t k,
                              tn_arena *arena, tn_view **view, tn_error *err);

/* Makes *view the input of a step and becomes its result; *view is unchanged after a failure. */
tn_status tn_view_add_step(tn_view **view, const tn_step *step, const void *options, tn_error *err);

/* A step of several inputs, whose tensor begins as that of the first.  The view takes the inputs, but not
 * after a failure.  They and it have one place and one arena. */
tn_status tn_view_join_step(tn_view *const *inputs, uint32_t n, const tn_step *step, const void *options,
                            tn_view **view, tn_error *err);

/* Frees what the steps hold outside the arena, of all inputs too. */
void tn_view_free(tn_view *view);       /* NULL is allowed */

/* The shape of the first part changed: sets count, bits and the part's bytes. */
tn_status tn_view_resize(tn_view *v, uint32_t rank, const int64_t *shape, tn_error *err);

/* Padding becomes part of the tensor.  It is refused where the elements have scales and the padding none. */
tn_status tn_view_take_padding(tn_view *v, tn_error *err);
tn_status tn_view_check_padding(const tn_view *v, tn_error *err);

/* Takes the steps after `before` away again. */
void tn_view_drop_steps(tn_view **view, tn_view *before);

/* A step with a prepare() of its own may read its inputs more than once: they are not prepared in order. */
tn_status tn_view_prepare(tn_view *v, const tn_preparing *p, tn_error *err);

/* For views of stored parts and of their values, in a pool: a thread holds the view while it reads it.  The
 * first one prepares it in order, the last one gives back what that took.  Only one at a time may hold a view
 * that is not TN_REACH_ANY.  The worker will read up to element `until`. */
tn_status tn_view_hold(tn_view *v, tn_worker *w, uint64_t until, tn_error *err);
void      tn_view_leave(tn_view *v, tn_worker *w);

/* The stream that the worker will open to read the view, for tn_stream_reserve().  False: it needs none. */
bool tn_view_wish(const tn_view *v, tn_worker *w, tn_stream_wish *wish);

/* Elements that are best read at a time, and the bits that are stored of each if a step is elementwise. */
size_t   tn_view_window(const tn_view *v);
unsigned tn_view_bits_read(const tn_view *v);

/* Makes a prepared view one of another tensor of the same type and shape, without making it anew; the stored
 * tensor is to be prepared then, and the view after it.  False: it cannot be done. */
bool tn_view_rebind(tn_view *v, const tn_tensor *tensor);

/* What quantizing did to blocks that were made while the view was prepared. */
tn_quantize_stats tn_view_report(const tn_view *v);

/* Puts all of the first part of a prepared view into a spill, if it is not in memory. */
tn_status tn_view_fill(tn_view *v, const tn_preparing *p, tn_error *err);

/* Puts all its parts into memory or spills; *whole is the tensor that they make, until the view is freed. */
tn_status tn_view_complete(tn_view *v, const tn_preparing *p, const tn_tensor **whole, tn_error *err);

/* The first part of a prepared view as memory with strides, in elements; each `swap` bytes are in reverse
 * order, 1: none are.  False: there is no such memory. */
typedef struct tn_strided {
    const uint8_t *base;
    int64_t        stride[TN_MAX_RANK];
    unsigned       swap;
} tn_strided;
bool tn_view_strided(const tn_view *v, tn_strided *strided);

/* The shape of the first part, with padding. */
static inline const int64_t *tn_view_shape(const tn_view *v)
{
    return tn_padded_shape(&v->parts[0]);
}

/* Whether ranges can be read; else there are blocks only. */
bool tn_view_has_ranges(const tn_view *v);

/* Whether blocks give all parts: the step before the elementwise ones makes them. */
bool tn_view_makes_parts(const tn_view *v);

/* Elements [first, first + n) of the first part, `first` a multiple of 8: valid until the worker reads this
 * view again, or another one of the same depth.  Data that can only be read in order is decoded from where
 * the worker has stopped, or from the beginning. */
tn_status tn_view_range(const tn_view *v, uint64_t first, size_t n, tn_worker *w, const uint8_t **bytes,
                       tn_error *err);

/* Adds the stored bytes that these elements are made of, neighbours as one; what was read before, while the
 * view was prepared, counts too. */
tn_status tn_view_needs(const tn_view *v, uint64_t first, uint64_t n, tn_needs *needs, tn_error *err);

/* The same for blocks of a prepared view. */
tn_status tn_view_block_needs(const tn_view *v, uint64_t block, uint64_t n, tn_needs *needs, tn_error *err);

/* Whether any block can be made alone: nothing but what the block needs is read. */
bool tn_view_is_local(const tn_view *v);
bool tn_step_is_local(const tn_view *v);        /* for steps that need a place in memory at most */

/* Adds some of them: for steps. */
tn_status tn_needs_add(tn_needs *needs, uint32_t shard, uint64_t offset, uint64_t size, tn_error *err);
tn_status tn_needs_add_part(tn_needs *needs, const tn_part *part, tn_error *err);

/* All of the first part of a prepared view; all of a stored part, as elements of a type. */
tn_status tn_view_copy(const tn_view *v, tn_worker *w, uint8_t *to, tn_error *err);
tn_status tn_copy_part(const tn_view_place *place, const tn_tensor *tensor, uint32_t k, tn_dtype to,
                       void *elements, tn_error *err);

uint64_t  tn_view_blocks(const tn_view *v);
uint64_t  tn_view_block_elements(const tn_view *v);     /* of a view that has ranges: of each but the last */
tn_status tn_view_block(const tn_view *v, uint64_t block, tn_worker *w, tn_part_bytes *out, tn_error *err);

/* The second part of a coo tensor gets indices of another type. */
tn_status tn_view_widen_indices(tn_view *v, tn_dtype to, tn_error *err);

#endif
