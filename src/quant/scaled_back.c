/* quant/scaled_back.c - the values of a scaled tensor, in row-major order,
 * over several threads. */
#include "quant/rotate.h"
#include "quant/quantizer.h"
#include "quant/scaled_fast.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"
#include "tensor/array.h"

enum {
    ITEM = 1 << 16,             /* values a thread takes at a time */
    STREAM_BYTES = 4 << 20      /* an output of this size does not stay in the cache */
};

typedef struct job {
    const tn_scaled_work *work;
    tn_part_values parts;
    tn_cast_plan narrow;        /* from float32 */
    size_t       size;          /* bytes of an element */
    float      **values;        /* one per worker */
    uint8_t    **out;           /* one per result, where values are handed out */
} job;

static size_t item_values(const job *j, uint64_t item)
{
    uint64_t left = j->work->plan->count - item * ITEM;
    return left < ITEM ? (size_t)left : ITEM;
}

/* float32 that lies well is made where it goes. */
static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    const tn_scaled_work *w = j->work;
    uint64_t first = item * ITEM;
    size_t n = item_values(j, item);
    uint8_t *to = w->emit ? j->out[use.result] : (uint8_t *)w->dst + first * j->size;
    bool direct = j->narrow.route == TN_ROUTE_COPY && (uintptr_t)to % _Alignof(float) == 0;
    float *y = direct ? (float *)(void *)to : j->values[use.scratch];
    tn_part_values_read(&j->parts, first, n, y);
    if (tn_scaled_turns(w->plan))
        tn_rotate_blocks(&w->plan->o.rotation, true, y, n / w->plan->o.rotation.size);
    return direct ? TN_OK : tn_cast_block(&j->narrow, to, y, n, first, w->plan->rank, w->plan->shape, err);
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    const job *j = context;
    return j->work->emit
               ? j->work->emit(j->work->context, j->out[result], item_values(j, item) * j->size, err)
               : TN_OK;
}

static tn_status set_up(job *j, unsigned jobs, unsigned results, tn_error *err)
{
    j->values = calloc(jobs, sizeof *j->values);
    j->out = calloc(results, sizeof *j->out);
    bool good = j->values && j->out;
    for (unsigned i = 0; i < jobs && good; i++)
        good = (j->values[i] = malloc(ITEM * sizeof(float))) != NULL;
    for (unsigned i = 0; i < results && good && j->work->emit; i++)
        good = (j->out[i] = malloc(ITEM * j->size)) != NULL;
    return good ? TN_OK : tn_fail_nomem(err);
}

static void clear(job *j, unsigned jobs, unsigned results)
{
    for (unsigned i = 0; j->values && i < jobs; i++)
        free(j->values[i]);
    for (unsigned i = 0; j->out && i < results; i++)
        free(j->out[i]);
    free(j->values);
    free(j->out);
    free(j);
}

tn_status tn_quantizer_decode(const tn_scaled_work *w, tn_error *err)
{
    job *j = calloc(1, sizeof *j);      /* a cast plan: too large for a stack */
    if (!j)
        return tn_fail_nomem(err);
    unsigned jobs = tn_pool_jobs(w->pool), results = tn_pool_results(w->pool);
    uint64_t items = tn_div_up_u64(w->plan->count, ITEM);
    j->work = w;
    j->size = tn_dtype_get(w->dst_type)->bits / 8;
    tn_status status = tn_cast_plan_make(&j->narrow, w->dst_type, TN_FLOAT32, TN_HOST_ORDER, w->cast, err);
    bool past_the_cache = status == TN_OK && j->narrow.route == TN_ROUTE_COPY && !w->emit &&
                          (uintptr_t)w->dst % _Alignof(float) == 0 && !tn_scaled_turns(w->plan) &&
                          w->plan->count * sizeof(float) >= STREAM_BYTES;
    if (status == TN_OK)
        status = tn_part_values_open(&j->parts, w->plan, past_the_cache, err);
    if (status == TN_OK)
        status = set_up(j, jobs, results, err);
    if (status == TN_OK)
        status = tn_pool_run(w->pool, items, &(tn_ordered){ .work = work, .emit = emit, .context = j }, err);
    if (status == TN_OK && !items && w->emit)
        status = w->emit(w->context, NULL, 0, err);
    tn_part_values_close(&j->parts);
    clear(j, jobs, results);
    return status;
}
