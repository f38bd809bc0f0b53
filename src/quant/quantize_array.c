/* quant/quantize_array.c - quantization of whole arrays over several
 * threads. */
#include "quant/quantize.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/pool.h"
#include "tensor/array.h"

enum {
    CHUNK = 65536,              /* elements a thread takes at a time; a multiple of 8, so that packed types
                                 * are cut on a byte */
    STREAM_BYTES = 4 << 20,     /* an output of this size does not stay in the cache */
    TALLY_BYTES = 256 << 20     /* of all threads */
};

/* --- arguments ----------------------------------------------------------------- */

tn_status tn_dense_check(const tn_array *array, const void *data, const char *which, uint64_t *count,
                         tn_error *err)
{
    int64_t dense[TN_MAX_RANK];
    tn_status status = tn_array_check(array, which, count, err);
    if (status != TN_OK)
        return status;
    if (*count && !data)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "the %s has no data", which);
    tn_dense_strides(array->rank, array->shape, dense);
    for (uint32_t i = 0; array->stride && *count && i < array->rank; i++)
        if (array->shape[i] > 1 && array->stride[i] != dense[i])
            return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                           "expected a dense %s, with a stride of %" PRId64 " in dimension %" PRIu32
                           ", but found %" PRId64,
                           which, dense[i], i, array->stride[i]);
    return TN_OK;
}

/* --- codes and values ------------------------------------------------------------ */

typedef struct job {
    const tn_array *dst, *src;
    uint8_t        *dst_data;
    const uint8_t  *src_data;
    uint64_t        count;
    tn_quant_plan   plan;
    tn_status (*block)(const tn_quant_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                       uint32_t rank, const int64_t *shape, tn_error *err);
} job;

static size_t byte_of(tn_dtype dtype, uint64_t element)
{
    return (size_t)tn_packed_byte(element, tn_dtype_get(dtype)->bits);
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    uint64_t first = item * CHUNK;
    size_t n = j->count - first < CHUNK ? (size_t)(j->count - first) : CHUNK;
    (void)use;
    return j->block(&j->plan, j->dst_data + byte_of(j->dst->dtype, first),
                    j->src_data + byte_of(j->src->dtype, first), n, first, j->src->rank, j->src->shape, err);
}

static tn_status run(job *j, unsigned jobs, tn_error *err)
{
    return tn_pool_once(jobs, (j->count + CHUNK - 1) / CHUNK, &(tn_ordered){ .work = work, .context = j },
                        err);
}

static tn_status convert(job *j, bool dequantize, const float *scale, const int32_t *zero,
                         const tn_quantize_options *options, tn_error *err)
{
    const tn_quantize_options o = tn_quantize_options_take(options);
    tn_dtype codes = (dequantize ? j->src : j->dst)->dtype, values = (dequantize ? j->dst : j->src)->dtype;
    tn_scale_index index = { 0 };
    tn_status status = tn_dense_check(j->dst, j->dst_data, "destination", &j->count, err);
    if (status == TN_OK)
        status = tn_dense_check(j->src, j->src_data, "source", &j->count, err);
    if (status == TN_OK)
        status = tn_array_check_shapes(j->dst, j->src, err);
    if (status == TN_OK)
        status = tn_scale_index_for(j->src->rank, j->src->shape, o.axis, &index, err);
    if (status == TN_OK && !scale && index.count)
        status = tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected %" PRIu64 " scales but found none",
                         index.count);
    if (status == TN_OK)
        status = tn_quant_plan_make(&j->plan, codes, values, dequantize, index, scale, zero, options, err);
    if (status != TN_OK || j->count == 0)
        return status;
    j->plan.stream = j->plan.cast.args.stream = byte_of(j->dst->dtype, j->count) >= STREAM_BYTES;
    j->block = dequantize ? tn_dequantize_block : tn_quantize_block;
    return run(j, o.jobs, err);
}

tn_status tn_quantize(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                      const float *scale, const int32_t *zero, const tn_quantize_options *options,
                      tn_error *err)
{
    job j = { .dst = dst, .src = src, .dst_data = dst_data, .src_data = src_data };
    return convert(&j, false, scale, zero, options, err);
}

tn_status tn_dequantize(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                        const float *scale, const int32_t *zero, const tn_quantize_options *options,
                        tn_error *err)
{
    job j = { .dst = dst, .src = src, .dst_data = dst_data, .src_data = src_data };
    return convert(&j, true, scale, zero, options, err);
}

/* --- scales ----------------------------------------------------------------------- */

typedef struct search {
    const uint8_t   *data;
    tn_dtype         from;
    uint64_t         count;
    tn_range_tally **tallies;           /* one a worker; the first becomes the sum */
    unsigned         jobs;
    tn_pool         *pool;
} search;

static tn_status look(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const search *s = context;
    uint64_t first = item * CHUNK;
    size_t n = s->count - first < CHUNK ? (size_t)(s->count - first) : CHUNK;
    (void)err;
    tn_range_tally_add(s->tallies[use.scratch], s->data + byte_of(s->from, first), first, n);
    return TN_OK;
}

/* All values once; then whether to do it again. */
static tn_status look_at_all(search *s, bool *again, tn_error *err)
{
    uint64_t items = (s->count + CHUNK - 1) / CHUNK;
    tn_status status = tn_pool_run(s->pool, items, &(tn_ordered){ .work = look, .context = s }, err);
    if (status != TN_OK)
        return status;
    for (unsigned i = 1; i < s->jobs; i++)
        tn_range_tally_join(s->tallies[0], s->tallies[i]);
    *again = tn_range_tally_more(s->tallies[0]);
    for (unsigned i = 1; i < s->jobs && *again; i++)
        tn_range_tally_again(s->tallies[i], s->tallies[0]);
    return TN_OK;
}

/* As many threads as there is work for and as memory allows. */
static unsigned threads_for(const search *s, unsigned jobs, size_t bytes)
{
    uint64_t items = (s->count + CHUNK - 1) / CHUNK, fit = bytes ? TALLY_BYTES / bytes : UINT64_MAX;
    uint64_t most = items < fit ? items : fit;
    if (jobs == 0)
        jobs = tn_core_count();
    return most < 1 ? 1 : jobs < most ? jobs : (unsigned)most;
}

static tn_status begin(search *s, tn_dtype codes, tn_scale_index index, const tn_quantize_options *o,
                       tn_error *err)
{
    tn_range_tally *one;
    tn_status status = tn_range_tally_new(codes, s->from, index, o, &one, err);
    if (status != TN_OK)
        return status;
    s->jobs = threads_for(s, o->jobs, tn_range_tally_bytes(one));
    s->tallies = calloc(s->jobs, sizeof *s->tallies);
    if (!s->tallies) {
        tn_range_tally_free(one);
        return tn_fail_nomem(err);
    }
    s->tallies[0] = one;
    for (unsigned i = 1; i < s->jobs && status == TN_OK; i++)
        status = tn_range_tally_new(codes, s->from, index, o, &s->tallies[i], err);
    return status ? status : tn_pool_new(s->jobs, &s->pool, err);
}

tn_status tn_choose_scales(tn_dtype codes, const tn_array *src, const void *src_data,
                           const tn_quantize_options *options, float *scale, int32_t *zero, tn_error *err)
{
    const tn_quantize_options o = tn_quantize_options_take(options);
    search s = { .data = src_data, .from = src->dtype };
    tn_scale_index index = { 0 };
    bool again = true;
    tn_status status = tn_dense_check(src, src_data, "source", &s.count, err);
    if (status == TN_OK)
        status = tn_scale_index_for(src->rank, src->shape, o.axis, &index, err);
    if (status == TN_OK && !zero && !o.symmetric)
        status = tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                         "asymmetric codes need a place for %" PRIu64 " zeros", index.count);
    if (status == TN_OK)
        status = begin(&s, codes, index, &o, err);
    while (status == TN_OK && again)
        status = look_at_all(&s, &again, err);
    if (status == TN_OK)
        tn_range_tally_scales(s.tallies[0], scale, zero);
    tn_pool_free(s.pool);
    for (unsigned i = 0; s.tallies && i < s.jobs; i++)
        tn_range_tally_free(s.tallies[i]);
    free(s.tallies);
    return status;
}
