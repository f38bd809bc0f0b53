/* quant/job.h - a tensor that is being encoded: what job.c sets up and run.c
 * works with, and what the rows of quantizer.h need of both. */
#ifndef TN_QUANT_JOB_H
#define TN_QUANT_JOB_H

#include "base/pool.h"
#include "quant/scaled_fast.h"

enum { TN_SCALED_LOOK = 16384 };        /* values a thread looks at for the scale of the tensor */

/* A group of values that is too large to be held. */
typedef struct tn_scaled_group {
    tn_tile_range range;
    double   squares, least;    /* errors of the choice that is being tried, of the best one */
    uint64_t best;
} tn_scaled_group;

/* What one thread works with. */
typedef struct tn_scaled_scratch {
    void     *block;            /* all of the arrays... */
    size_t    size;             /* ...so many bytes */
    void     *reader;           /* for work->read() */
    float    *x, *y;
    uint64_t *index;
    uint8_t  *elements;         /* on their way to or from float32 */
    tn_tile   tile;
    tn_scaled_plan view;        /* the plan with windows for what it has no memory for */
    uint8_t  *window[TN_SCALED_FIELDS];
    size_t    window_bytes[TN_SCALED_FIELDS];   /* of this item */
    float    *last[2];          /* what the last numbers on both sides would be */
    const uint8_t *src;         /* where values come from... */
    uint64_t  src_first;        /* ...from this element on */
    float    *turned, *made;    /* values of an item, rotated, and what they become */
    uint8_t  *dst;              /* where values go, or NULL... */
    uint64_t  dst_first;        /* ...from this element on */
} tn_scaled_scratch;

/* What one item hands on, in order. */
typedef struct tn_scaled_result {
    uint8_t         *bytes;     /* codes or values that are handed out */
    size_t           nbytes, cap;
    tn_quantize_stats report;
    tn_tile_range    range;     /* of some of the tensor */
    tn_tile_range   *ranges;    /* of each tile's piece */
    double          *squares;
} tn_scaled_result;

/* Bundles [first, end), or one piece of the tiles of one bundle. */
typedef struct tn_job_item {
    uint64_t first, end, piece;
} tn_job_item;

/* A tensor that is being encoded. */
typedef struct tn_scaled_job {
    const tn_scaled_work *work;
    tn_scaled_plan plan;
    bool           turns;       /* items are rotated: tiles see nothing but float32 */
    tn_dtype       src_type, dst_type;          /* that tiles see */
    /* bytes of an element: of those, and of what is given */
    size_t         src_size, dst_size, given_size;
    tn_cast_plan   widen, narrow;               /* from and to float32 */
    tn_cast_plan   take, give;                  /* the same, where items are rotated */
    tn_tiles_encode_fn encode;  /* the fast ways, or NULL both */
    tn_tiles_decode_fn decode;
    bool           stores;      /* codes are handed on as... */
    uint8_t        stored[256]; /* ...the codes of the numbers that they are in another type */
    uint8_t       *last[2];     /* nothing but codes of the last numbers on both sides, for reports */
    bool           windows;     /* what is missing of the parts is there while an item is worked on */
    bool           gives, gives_values;         /* items give codes or values in order; values */
    /* at most, of an item: values in the arrays of a worker, rotated values, bytes of each field and of what
     * is given */
    size_t         most_values, most_turned, most_bytes[TN_SCALED_FIELDS], most_given;
    tn_scaled_scratch *scratches;
    tn_scaled_result *results;
    uint64_t       per_item;    /* bundles, where tiles are whole */
    void          *state;       /* of the row */
    const struct tn_affine_plan *decoder;       /* of affine datatypes, once scales are known */
    /* Set while the row searches: takes the result of an item, in order. */
    void         (*gather)(struct tn_scaled_job *j, const tn_job_item *item, const tn_scaled_result *result);
    /* What the row of tiles does to each piece. */
    tn_status (*step)(const struct tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f,
                      const tn_scaled_place *at, uint64_t k, tn_error *err);
    uint64_t       trial;
    tn_tile_range  range;       /* of the tensor, where it has a scale beside those of tiles: */
    uint32_t       tscale;
    float          tensor_scale;
    tn_scaled_group *groups;    /* one per tile, where tiles are not whole */
} tn_scaled_job;

/* To be freed after a failure too. */
tn_status tn_scaled_job_new(const tn_scaled_work *work, tn_scaled_job **job, tn_error *err);
void      tn_scaled_job_free(tn_scaled_job *job);       /* NULL is allowed */

/* Memory of one worker, for this job; both begin as zeros and may be used for many jobs. */
tn_status tn_scratch_fit(const tn_scaled_job *job, tn_scaled_scratch *scratch, tn_error *err);
void      tn_scratch_free(tn_scaled_scratch *scratch);
tn_status tn_result_fit(const tn_scaled_job *job, tn_scaled_result *result, tn_error *err);
void      tn_result_free(tn_scaled_result *result);

/* ---- items (run.c) ---- */

/* The searches that come before any item, with the threads of work->pool. */
tn_status tn_job_prepare(tn_scaled_job *job, tn_error *err);

uint64_t tn_job_items(const tn_scaled_job *job);

/* Works on one item.  With work->by_items the first field, or the values, are in `result` afterwards and
 * the other fields in scratch->view, scratch->window_bytes of them.  Any thread. */
tn_status tn_job_run_item(const tn_scaled_job *job, uint64_t item, tn_scaled_scratch *scratch,
                          tn_scaled_result *result, tn_error *err);

/* ---- for rows (run.c) ---- */

/* Memory for the threads of the pool, if there is none yet: j->scratches and j->results. */
tn_status tn_job_workers(tn_scaled_job *j, tn_error *err);

/* One round over all items: each bundle is encoded. */
tn_status tn_job_round(tn_scaled_job *j, tn_error *err);

tn_job_item tn_job_item_of(const tn_scaled_job *j, uint64_t item);

/* The elements of an item of a flat plan, and its first and last tile. */
tn_scaled_row tn_job_elements(const tn_scaled_job *j, const tn_job_item *item, tn_scaled_place *first,
                              tn_scaled_place *last);

/* Makes elements [first, first + n) the values that w reads, rotated if that is asked for. */
tn_status tn_job_open_values(const tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f,
                             uint64_t first, uint64_t n, tn_error *err);

/* Elements of the tensor, `stride` apart, as float32: into x; where they are, or into w->x; and back from
 * y.  They refuse nothing: float32 and all types of whole bytes have NaN. */
void         tn_job_load(const tn_scaled_job *j, tn_scaled_scratch *w, float *x, uint64_t first,
                         uint64_t stride, size_t n);
const float *tn_job_floats(const tn_scaled_job *j, tn_scaled_scratch *w, uint64_t first, size_t n);
void         tn_job_store(const tn_scaled_job *j, tn_scaled_scratch *w, const float *y, uint64_t first,
                          uint64_t stride, size_t n);

/* A bundle of a flat plan whose tiles are whole: elements that follow one another. */
typedef struct tn_job_block {
    uint64_t     first;         /* element */
    size_t       n;
    const float *x;
    uint8_t     *codes;         /* where their codes go */
} tn_job_block;

tn_job_block tn_job_block_of(const tn_scaled_job *j, tn_scaled_scratch *w, uint64_t bundle);

/* What its codes stand for, if somebody wants to know: the values and the report. */
void tn_job_give(const tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f, const tn_job_block *b);

#endif
