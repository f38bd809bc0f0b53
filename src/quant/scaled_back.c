/* quant/scaled_back.c - decode a tensor with several threads. */
#include "quant/rotate.h"
#include "quant/quantizer.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"
#include "tensor/array.h"

enum {
    ITEM = 1 << 16,             /* values per item */
    STREAM_BYTES = 4 << 20      /* outputs of this size are written past the caches */
};

typedef struct job {
    const tn_scaled_work *work;
    tn_part_values parts;
    tn_cast_plan narrow;        /* from float32 */
    size_t       size;          /* bytes of an element */
    float       *values;        /* ITEM per worker */
} job;

/* Decodes directly into an aligned float32 output, else into a buffer. */
static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    const tn_scaled_work *w = j->work;
    uint64_t first = item * ITEM;
    size_t n = (size_t)tn_min_u64(w->plan->count - first, ITEM);
    uint8_t *to = (uint8_t *)w->dst + first * j->size;
    bool direct = j->narrow.route == TN_ROUTE_COPY && (uintptr_t)to % _Alignof(float) == 0;
    float *y = direct ? (float *)(void *)to : j->values + (size_t)use.scratch * ITEM;
    tn_part_values_read(&j->parts, first, n, y);
    if (tn_scaled_rotates(w->plan))
        tn_rotate_blocks(&w->plan->o.rotation, true, n / w->plan->o.rotation.size, 1, y);
    return direct ? TN_OK : tn_cast_block(&j->narrow, to, y, n, first, w->plan->rank, w->plan->shape, err);
}

tn_status tn_quantizer_decode(const tn_scaled_work *w, tn_error *err)
{
    job *j = calloc(1, sizeof *j);      /* too large for a stack */
    TN_NEED(j, err);
    const tn_ordered task = { .work = work, .context = j };
    *j = (job){ .work = w, .size = tn_dtype_get(w->dst_type)->bits / 8,
                .values = malloc(tn_pool_jobs(w->pool) * sizeof *j->values * ITEM) };
    tn_status status = j->values ? TN_OK : tn_fail_nomem(err);
    if (status == TN_OK)
        status = tn_cast_plan_make(&j->narrow, w->dst_type, TN_FLOAT32, TN_HOST_ORDER, w->cast, err);
    bool stream = status == TN_OK && j->narrow.route == TN_ROUTE_COPY &&
                  (uintptr_t)w->dst % _Alignof(float) == 0 && !tn_scaled_rotates(w->plan) &&
                  w->plan->count * sizeof(float) >= STREAM_BYTES;
    if (status == TN_OK)
        status = tn_part_values_open(&j->parts, w->plan, stream, err);
    if (status == TN_OK)
        status = tn_pool_run(w->pool, tn_div_up_u64(w->plan->count, ITEM), &task, err);
    tn_part_values_close(&j->parts);
    free(j->values);
    free(j);
    return status;
}
