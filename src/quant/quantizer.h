/* quant/quantizer.h - quantize and dequantize tensors: the interface for the rest of
 * the library.
 *
 * A plan (scaled_plan.h) applies a datatype to a tensor of a given shape and divides
 * it into batches.  A quantizer is a table of functions: it defines the parts,
 * encodes a batch and decodes any range of elements.  Threads, casts, rotations,
 * reports and the order of results are common to all quantizers (run.c,
 * scaled_back.c).  There are five:
 *
 *     affine   one scale per tensor, or per index of a dimension (affine_quantizer.c)
 *     blocks   block types of GGUF, whose scales are among the codes (block_quantizer.c)
 *     lookup   4-bit tables of bitsandbytes (lookup_quantizer.c)
 *     variants other arithmetic of NUMBER|SCALE (variant_quantizer.c)
 *     tiles    scales of tiles: all datatypes NUMBER|SCALE (tiles.c) */
#ifndef TN_QUANT_QUANTIZER_H
#define TN_QUANT_QUANTIZER_H

#include "quant/affine.h"
#include "quant/job.h"

#include <math.h>

/* Decodes the parts of a plan.  Several threads may read different ranges. */
typedef struct tn_part_values {
    const tn_scaled_plan *plan;
    float           tensor_scale;
    const tn_affine_plan *affine;       /* affine datatypes only */
    void           *scales;     /* its scales and zero points, aligned; parts may not be */
    bool            stream;     /* write values past the caches */
} tn_part_values;

typedef struct tn_quantizer {
    const char *name;
    /* Whether a text looks like one of its datatypes. */
    bool      (*is_text)(const char *text);
    tn_status (*parse)(const char *text, tn_datatype **datatype, tn_error *err);
    /* Adds the parts of a tensor to *shapes, which is empty.  The shape of the tensor is valid. */
    tn_status (*shapes)(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *shapes,
                        tn_error *err);
    tn_status (*check)(const tn_datatype *d, const tn_quantize_options *o, tn_error *err);
    /* Runs the passes over all values that precede encoding, for example to find scales.  The tensor may
     * be empty.  May be NULL. */
    tn_status (*prepare)(tn_scaled_job *job, tn_error *err);
    /* Encodes one batch, or one piece of each of its tiles, into the fields of w->view.  Thread-safe.
     * TN_ERR_LOSS: a NaN has no code. */
    tn_status (*encode)(const tn_scaled_job *job, tn_scaled_scratch *w, tn_scaled_result *result,
                        uint64_t batch, uint64_t piece, tn_error *err);
    void      (*end)(tn_scaled_job *job);       /* frees job->state; may be NULL */
    /* Decoding.  The floating-point environment is the default one. */
    tn_status (*open)(tn_part_values *values, tn_error *err);
    void      (*read)(const tn_part_values *values, uint64_t first, size_t n, float *y);
    void      (*close)(tn_part_values *values);         /* may be NULL */
    /* The values as bfloat16, rounded to nearest even; false: read() must make them.  May be NULL. */
    bool      (*read_bf16)(const tn_part_values *values, uint64_t first, size_t n, uint8_t *y);
    /* Whether all scales are such that no value but 0 and NaN becomes 0 or infinite so.  May be NULL. */
    bool      (*keeps_bf16)(const tn_part_values *values);
} tn_quantizer;

extern const tn_quantizer tn_affine_quantizer, tn_block_quantizer, tn_lookup_quantizer;
extern const tn_quantizer tn_variant_quantizer, tn_tile_quantizer;

/* Whether the part `index` has the tile of each column: indexed:NUMBER|SCALE. */
bool tn_is_indexed(const tn_datatype *d);

/* The quantizer whose datatype a text looks like (quantizer.c). */
const tn_quantizer *tn_quantizer_for(const char *text);

static inline tn_status tn_quantizer_check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    return d->quantizer->check(d, o, err);
}

/* Whether the options have the importance data that the datatype needs, and it fits the shape
 * (block_quantizer.c). */
tn_status tn_check_importance(const tn_datatype *d, const tn_quantize_options *o, uint32_t rank,
                              const int64_t *shape, tn_error *err);

/* check() and prepare() of datatypes that are read only (variant_quantizer.c). */
tn_status tn_check_plain_options(const tn_datatype *d, const tn_quantize_options *o, tn_error *err);
tn_status tn_refuse_encoding(tn_scaled_job *job, tn_error *err);

/* Encodes work->src into the parts, decodes the codes into work->dst, adds to the report (run.c). */
tn_status tn_quantizer_encode(const tn_scaled_work *work, tn_error *err);

/* Decodes the parts of the plan into work->dst (scaled_back.c). */
tn_status tn_quantizer_decode(const tn_scaled_work *work, tn_error *err);

/* The plan and its parts must outlive the values.  Close them after a failure too. */
static inline tn_status tn_part_values_open(tn_part_values *v, const tn_scaled_plan *plan, bool stream,
                                            tn_error *err)
{
    *v = (tn_part_values){ .plan = plan, .stream = stream };
    return plan->d->quantizer->open(v, err);
}

static inline void tn_part_values_read(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    v->plan->d->quantizer->read(v, first, n, y);
}

static inline bool tn_part_values_read_bf16(const tn_part_values *v, uint64_t first, size_t n, uint8_t *y)
{
    const tn_quantizer *q = v->plan->d->quantizer;
    return q->read_bf16 && q->read_bf16(v, first, n, y);
}

static inline bool tn_part_values_keep_bf16(const tn_part_values *v)
{
    const tn_quantizer *q = v->plan ? v->plan->d->quantizer : NULL;
    return q && q->keeps_bf16 && q->keeps_bf16(v);
}

/* Numbers that are neither so small nor so large that a product with a code leaves the range of bfloat16. */
static inline bool tn_are_moderate(const float *numbers, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all &= numbers[i] == 0 || (fabsf(numbers[i]) >= 0x1p-60f && fabsf(numbers[i]) <= 0x1p60f);
    return all;
}

static inline void tn_part_values_close(tn_part_values *v)
{
    if (v->plan && v->plan->d->quantizer->close)
        v->plan->d->quantizer->close(v);
}

#endif
