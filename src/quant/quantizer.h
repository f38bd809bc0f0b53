/* quant/quantizer.h - values into codes with scales, and back: the one interface
 * that all others use.
 *
 * A datatype on a tensor of some shape is a plan (scaled_plan.h).  The plan cuts
 * the tensor into bundles.  One row of functions says what the parts are, encodes a
 * bundle and decodes any range; threads, casts, rotations, reports and the order
 * of results are the same for all (run.c, scaled_back.c).  There are two rows:
 *
 *     affine   one scale for the tensor or for each index of a dimension
 *              (affine_quantizer.c)
 *     tiles    scales of tiles, and all that a number spec and a scale spec can
 *              say (tiles.c)
 *
 * Block types with a layout of their own are one row more. */
#ifndef TN_QUANT_QUANTIZER_H
#define TN_QUANT_QUANTIZER_H

#include "quant/affine.h"
#include "quant/job.h"

/* The values of a plan's parts: any range, by any number of threads. */
typedef struct tn_part_values {
    const tn_scaled_plan *plan;
    float           tensor_scale;
    const tn_affine_plan *affine;       /* or NULL... */
    void           *scales;     /* ...and a copy of what it needs: parts may lie anywhere */
    bool            stream;     /* they go past the caches */
} tn_part_values;

typedef struct tn_quantizer {
    const char *name;
    /* Whether a text is meant to be one of its datatypes, and which it is. */
    bool      (*is_text)(const char *text);
    tn_status (*parse)(const char *text, tn_datatype **datatype, tn_error *err);
    /* The parts of a tensor; *shapes is empty, the tensor's shape was checked. */
    tn_status (*shapes)(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *shapes,
                        tn_error *err);
    /* What it refuses of options. */
    tn_status (*check)(const tn_datatype *d, const tn_quantize_options *o, tn_error *err);
    /* The passes over all values that come before encoding, for example to find scales.  A tensor may
     * have no values.  May be NULL. */
    tn_status (*prepare)(tn_scaled_job *job, tn_error *err);
    /* Encodes bundle `bundle`, or piece `piece` of its tiles, into the fields of w->view.  Any thread.
     * TN_ERR_LOSS: a NaN that has no code. */
    tn_status (*encode)(const tn_scaled_job *job, tn_scaled_scratch *w, tn_scaled_result *result,
                        uint64_t bundle, uint64_t piece, tn_error *err);
    void      (*end)(tn_scaled_job *job);       /* frees job->state; may be NULL */
    /* The floating-point environment is the default one. */
    tn_status (*open)(tn_part_values *values, tn_error *err);
    void      (*read)(const tn_part_values *values, uint64_t first, size_t n, float *y);
    void      (*close)(tn_part_values *values);         /* may be NULL */
} tn_quantizer;

extern const tn_quantizer tn_affine_quantizer, tn_tile_quantizer;

/* The row whose datatype a text is meant to be (quantizer.c). */
const tn_quantizer *tn_quantizer_for(const char *text);

static inline const tn_quantizer *tn_quantizer_of(const tn_datatype *d)
{
    return d->quantizer;
}

static inline tn_status tn_quantizer_check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    return tn_quantizer_of(d)->check(d, o, err);
}

/* With work->src: codes, or what they stand for, or a report on them (run.c). */
tn_status tn_quantizer_encode(const tn_scaled_work *work, tn_error *err);

/* Values of the plan's parts in order, without work->src (scaled_back.c). */
tn_status tn_quantizer_decode(const tn_scaled_work *work, tn_error *err);

/* The plan and its parts live as long as the values; to be closed after a failure too. */
static inline tn_status tn_part_values_open(tn_part_values *v, const tn_scaled_plan *plan, bool stream,
                                            tn_error *err)
{
    *v = (tn_part_values){ .plan = plan, .stream = stream };
    return tn_quantizer_of(plan->d)->open(v, err);
}

static inline void tn_part_values_read(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    tn_quantizer_of(v->plan->d)->read(v, first, n, y);
}

static inline void tn_part_values_close(tn_part_values *v)
{
    if (v->plan && tn_quantizer_of(v->plan->d)->close)
        tn_quantizer_of(v->plan->d)->close(v);
}

#endif
