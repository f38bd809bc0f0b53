/* quant/job.h - a tensor that is being encoded.
 *
 * job.c allocates the job, run.c runs it, and quantizers use the functions below. */
#ifndef TN_QUANT_JOB_H
#define TN_QUANT_JOB_H

#include "base/pool.h"
#include "quant/scaled_fast.h"

enum { TN_SCALED_MEASURE = 16384 };        /* values per item when measuring a tensor */

/* A tile that is too large for one piece: what is known about all its pieces. */
typedef struct tn_scaled_group {
    tn_tile_range range;
    double   squares, least;    /* squared errors of the current trial, of the best one */
    uint64_t best;              /* trial */
} tn_scaled_group;

/* Memory of one thread. */
typedef struct tn_scaled_scratch {
    void     *block;            /* holds all arrays below */
    size_t    size;             /* of the block, in bytes */
    void     *reader;           /* for work->read() */
    float    *x, *y;
    uint64_t *index;
    uint8_t  *elements;         /* gathered, before or after a cast */
    tn_tile   tile;
    tn_scaled_plan view;        /* the plan; fields without memory use the windows */
    uint8_t  *window[TN_SCALED_FIELDS];
    size_t    window_bytes[TN_SCALED_FIELDS];   /* of the current item */
    float    *last[2];          /* the lowest and highest value that each scale can represent */
    const uint8_t *src;         /* values, from element src_first */
    uint64_t  src_first;
    float    *rotated, *decoded;        /* values of a rotated item: before encoding, after decoding */
    uint8_t  *dst;              /* decoded values, from element dst_first; may be NULL */
    uint64_t  dst_first;
} tn_scaled_scratch;

/* The result of one item.  Results are used in the order of items. */
typedef struct tn_scaled_result {
    uint8_t         *bytes;     /* codes or decoded values */
    size_t           nbytes, cap;
    tn_quantize_stats report;
    tn_tile_range    range;     /* of all values of the item */
    tn_tile_range   *ranges;    /* per tile of the batch: of its piece */
    double          *squares;   /* per tile: squared errors of its piece */
} tn_scaled_result;

/* The work of a thread at a time: batches [first, end), or one piece of each tile of one batch. */
typedef struct tn_job_item {
    uint64_t first, end, piece;
} tn_job_item;

typedef struct tn_scaled_job {
    const tn_scaled_work *work;
    tn_scaled_plan plan;
    bool           rotates;     /* items are rotated first; their type is float32 then */
    tn_dtype       src_type, dst_type;          /* of the values of tiles */
    size_t         src_size, dst_size;          /* bytes per element of these */
    size_t         out_size;                    /* bytes per element of work->dst_type */
    tn_tiles_encode_fn encode;  /* fast paths; both may be NULL */
    tn_tiles_decode_fn decode;
    bool           has_lines;   /* tiles have several lines, and there is a fast path for them */
    bool           stores;      /* data holds numbers of another type: see tn_datatype_store_codes() */
    uint8_t        stored[256];
    uint8_t       *last[2];     /* arrays of the lowest code and of the highest one, for reports */
    bool           streams_codes;       /* codes are written past the caches: many, and nobody reads them */
    bool           windows;     /* an item has windows for all fields without memory */
    bool           by_items;    /* codes or values of an item go to its result */
    bool           wants_values;                /* decoded values are wanted */
    /* Largest sizes per item: values in the arrays of a scratch, rotated values, bytes of each field, bytes
     * of a result. */
    size_t         max_values, max_rotated, max_bytes[TN_SCALED_FIELDS], max_result;
    tn_scaled_scratch *scratches;
    tn_scaled_result *results;
    uint64_t       per_item;    /* batches, if a tile is one piece */
    void          *state;       /* of the quantizer */
    const struct tn_affine_plan *decoder;       /* affine datatypes: set when scales are known */
    /* Set while the quantizer searches.  Gets the result of each item, in order. */
    void         (*gather)(struct tn_scaled_job *j, const tn_job_item *item, const tn_scaled_result *result);
    /* The tile quantizer only: the current pass, called for each piece. */
    tn_status (*step)(const struct tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f,
                      const tn_scaled_place *at, uint64_t k, tn_error *err);
    uint64_t       trial;
    tn_tile_range  range;       /* of the tensor, if it has a scale of its own */
    uint32_t       tscale;      /* its code */
    float          tensor_scale;
    tn_scaled_group *groups;    /* one per tile, if tiles have several pieces */
    /* Last, because they are large and often not used: */
    tn_cast_plan   widen, narrow;               /* src_type to float32, float32 to dst_type */
    tn_cast_plan   cast_in, cast_out;           /* rotated items: from work->src_type, to work->dst_type */
} tn_scaled_job;

/* Free the job after a failure too. */
tn_status tn_scaled_job_new(const tn_scaled_work *work, tn_scaled_job **job, tn_error *err);
void      tn_scaled_job_free(tn_scaled_job *job);       /* NULL is allowed */

/* Forgets all values, so that it can be prepared for others of the same shape and place.  False: it
 * cannot. */
bool      tn_job_restart(tn_scaled_job *job);

/* Allocate memory for this job.  Scratch and result begin as zeros and may be reused by other jobs. */
tn_status tn_scratch_fit(const tn_scaled_job *job, tn_scaled_scratch *scratch, tn_error *err);
void      tn_scratch_free(tn_scaled_scratch *scratch);
tn_status tn_result_fit(const tn_scaled_job *job, tn_scaled_result *result, tn_error *err);
void      tn_result_free(tn_scaled_result *result);

/* ---- items (run.c) ---- */

/* Runs the passes that precede all items, with the threads of work->pool. */
tn_status tn_job_prepare(tn_scaled_job *job, tn_error *err);

uint64_t tn_job_items(const tn_scaled_job *job);

/* Encodes one item.  With work->by_items, `result` has the data or the decoded values afterwards.
 * scratch->view has the other fields, of scratch->window_bytes each.  Thread-safe. */
tn_status tn_job_run_item(const tn_scaled_job *job, uint64_t item, tn_scaled_scratch *scratch,
                          tn_scaled_result *result, tn_error *err);

/* ---- for quantizers (run.c) ---- */

/* Allocates j->scratches and j->results for the threads of the pool, once. */
tn_status tn_job_workers(tn_scaled_job *j, tn_error *err);

/* Runs all items once. */
tn_status tn_job_round(tn_scaled_job *j, tn_error *err);

tn_job_item tn_job_item_of(const tn_scaled_job *j, uint64_t item);

/* The elements of an item; none if it has no windows. */
tn_scaled_row tn_job_elements(const tn_scaled_job *j, const tn_job_item *item);

/* Reads elements [first, first + n) and rotates them if needed.  w->src and w->dst are set. */
tn_status tn_job_open_values(const tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f,
                             uint64_t first, uint64_t n, tn_error *err);

/* Casts n elements, `stride` apart, to x.  Never fails: float32 has all values. */
void         tn_job_load(const tn_scaled_job *j, tn_scaled_scratch *w, float *x, uint64_t first,
                         uint64_t stride, size_t n);
/* n consecutive elements as float32: in place if possible, else in w->x. */
const float *tn_job_floats(const tn_scaled_job *j, tn_scaled_scratch *w, uint64_t first, size_t n);
/* Casts n values to elements of w->dst, `stride` apart.  Never fails. */
void         tn_job_store(const tn_scaled_job *j, tn_scaled_scratch *w, const float *y, uint64_t first,
                          uint64_t stride, size_t n);

/* Flat plans with tiles of one piece: a batch as consecutive elements. */
typedef struct tn_job_block {
    uint64_t     first;         /* element */
    size_t       n;
    const float *x;
    uint8_t     *codes;         /* output */
} tn_job_block;

tn_job_block tn_job_block_of(const tn_scaled_job *j, tn_scaled_scratch *w, uint64_t batch);

/* Decodes an encoded block for w->dst and the report, if either is wanted. */
void tn_job_decode_block(const tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f,
                         const tn_job_block *b);

#endif
