/* reorder/layout.c - tn_reorder(): whole arrays on several threads. */
#include "reorder/layout.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/pool.h"
#include "tensor/array.h"

enum {
    STREAM_BYTES   = 4 << 20,   /* an output of this size does not stay in the cache */
    PIECE_BYTES    = 1 << 20,   /* another thread does not pay for less */
    PIECES_PER_JOB = 4,         /* so that threads end at about the same time */
    CUT            = 64         /* elements: pieces of a dimension begin at multiples of it */
};

typedef struct job {
    const tn_reorder_kernels *kernels;
    unsigned       bits;
    uint32_t       rank;
    tn_reorder_dim dims[TN_MAX_RANK];
    uint8_t       *dst;
    const uint8_t *src;
    const void    *fill;
    bool           stream;
    uint32_t       cut;         /* the dimension of which each item takes `step` elements */
    int64_t        step;
} job;

/* --- arguments --------------------------------------------------------------- */

tn_status tn_reorder_check(const tn_array *dst, const tn_array *src, tn_error *err)
{
    uint64_t count;
    TN_TRY(tn_array_check(dst, "destination", &count, err));
    TN_TRY(tn_array_check(src, "source", &count, err));
    if (dst->dtype != src->dtype)
        return tn_fail(err, TN_ERR_ARGUMENT, "the destination is of %s but the source of %s",
                       tn_dtype_get(dst->dtype)->name, tn_dtype_get(src->dtype)->name);
    return tn_array_check_ranks(dst, src, err);
}

tn_status tn_order_check(const uint32_t *order, uint32_t rank, tn_error *err)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; order && i < rank; i++) {
        if (order[i] >= rank)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "order[%" PRIu32 "]: expected a dimension below %" PRIu32 " but found %" PRIu32, i,
                           rank, order[i]);
        if (seen >> order[i] & 1)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "order[%" PRIu32 "]: dimension %" PRIu32 " for the second time", i, order[i]);
        seen |= (uint64_t)1 << order[i];
    }
    return TN_OK;
}

bool tn_add_reach(int64_t *reach, int64_t extent, int64_t stride, unsigned bits)
{
    int64_t distance;
    return stride != INT64_MIN &&
           !__builtin_mul_overflow(extent - 1, stride < 0 ? -stride : stride, &distance) &&
           !__builtin_mul_overflow(distance, (int64_t)bits, &distance) &&
           !__builtin_add_overflow(*reach, distance, reach);
}

static tn_status check_strides(const job *j, tn_error *err)
{
    int64_t dst = j->bits, src = j->bits;
    for (uint32_t i = 0; i < j->rank; i++) {
        const tn_reorder_dim *d = &j->dims[i];
        int64_t used = d->src_extent < d->dst_extent ? d->src_extent : d->dst_extent;
        TN_TRY(tn_array_check_stride(d->dst_extent, d->dst_stride, err));
        if (j->bits < 8 && (d->dst_stride < 0 || d->src_stride < 0))
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "elements of %u bits must have strides from 0 on, but found %" PRId64, j->bits,
                           d->dst_stride < 0 ? d->dst_stride : d->src_stride);
        if (!tn_add_reach(&dst, d->dst_extent, d->dst_stride, j->bits) ||
            (used && !tn_add_reach(&src, used, d->src_stride, j->bits)))
            return tn_fail(err, TN_ERR_ARGUMENT, "strides of %" PRId64 " and %" PRId64
                           " lead to bits beyond what 63 bits can count", d->dst_stride, d->src_stride);
    }
    return TN_OK;
}

/* --- pieces ----------------------------------------------------------------- */

/* Packed elements: two pieces must not have a byte in common, and each begins on a byte on both sides. */
static bool may_cut(const job *j, uint32_t cut, int64_t step)
{
    int64_t inside = 1, stride = j->dims[cut].dst_stride;
    if (j->bits >= 8)
        return true;
    for (uint32_t i = 0; i < j->rank; i++) {
        if (j->dims[i].dst_stride > stride && j->dims[i].dst_extent > 1)
            return false;
        inside += i == cut ? 0 : (j->dims[i].dst_extent - 1) * j->dims[i].dst_stride;
    }
    return inside <= stride && stride % 8 * (step % 8) % 8 == 0 &&
           j->dims[cut].src_stride % 8 * (step % 8) % 8 == 0;
}

/* Cuts the outermost dimension that is long enough, else the longest. */
static uint64_t cut_pieces(job *j, uint64_t wanted)
{
    int64_t longest = 1;
    j->cut = 0;
    j->step = INT64_MAX;
    for (uint32_t i = 0; i < j->rank && longest < (int64_t)wanted; i++)
        if (j->dims[i].dst_extent > longest) {
            longest = j->dims[i].dst_extent;
            j->cut = i;
        }
    if (wanted < 2 || longest < 2)
        return 1;
    int64_t step = longest / (int64_t)wanted;
    if (step >= CUT)
        step -= step % CUT;
    step = step > 0 ? step : 1;
    if (!may_cut(j, j->cut, step))
        return 1;
    j->step = step;
    return (uint64_t)((longest - 1) / step + 1);
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    tn_reorder_dim dims[TN_MAX_RANK], *d = &dims[j->cut];
    int64_t dst = 0, src = 0;
    (void)use;
    (void)err;
    memcpy(dims, j->dims, j->rank * sizeof *dims);
    if (item || j->step < INT64_MAX) {
        int64_t first = (int64_t)item * j->step;
        dst = first * d->dst_stride;
        src = first < d->src_extent ? first * d->src_stride : 0;
        d->dst_extent = d->dst_extent - first < j->step ? d->dst_extent - first : j->step;
        d->src_extent = d->src_extent > first ? d->src_extent - first : 0;
    }
    bool packed = j->bits < 8;
    int64_t unit = packed ? 8 : 1;
    int64_t bytes = packed ? j->bits : j->bits / 8;
    tn_reorder_block(j->kernels, j->bits, j->rank, dims, j->dst + dst / unit * bytes,
                     j->src + src / unit * bytes, j->fill, j->stream);
    return TN_OK;
}

static tn_status run(job *j, unsigned jobs, uint64_t nbytes, tn_error *err)
{
    jobs = tn_jobs_for(jobs, nbytes / PIECE_BYTES);
    uint64_t items = cut_pieces(j, jobs > 1 ? (uint64_t)jobs * PIECES_PER_JOB : 1);
    return tn_pool_once(jobs, items, &(tn_ordered){ .work = work, .context = j }, err);
}

/* --- the call ---------------------------------------------------------------- */

tn_status tn_reorder(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                     const tn_reorder_options *options, tn_error *err)
{
    tn_reorder_options own = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_reorder_options, jobs), &own, options, err));
    TN_TRY(tn_reorder_check(dst, src, err));
    TN_TRY(tn_order_check(own.order, dst->rank, err));
    job j = { .kernels = tn_reorder_kernels_get(), .bits = tn_dtype_get(dst->dtype)->bits, .rank = dst->rank,
              .dst = dst_data, .src = src_data, .fill = own.fill };
    uint64_t count = 0, available = 0, nbytes = 0;
    int64_t dst_stride[TN_MAX_RANK], src_stride[TN_MAX_RANK];
    tn_shape_count(dst->rank, dst->shape, &count);
    tn_shape_count(src->rank, src->shape, &available);
    tn_array_nbytes(dst, &nbytes);
    if (count == 0)
        return TN_OK;
    tn_array_strides(dst, dst_stride);
    tn_array_strides(src, src_stride);
    for (uint32_t i = 0; i < j.rank; i++) {
        uint32_t from = own.order ? own.order[i] : i;
        j.dims[i] = (tn_reorder_dim){ dst->shape[i], src->shape[from], dst_stride[i],
                                      available ? src_stride[from] : 0 };
    }
    TN_TRY(check_strides(&j, err));
    TN_TRY(tn_array_check_data(dst_data, available ? src_data : dst_data, err));
    if (!src_data)
        j.src = dst_data;       /* nothing is read, but addresses are computed */
    j.stream = nbytes >= STREAM_BYTES;
    return run(&j, own.jobs, nbytes, err);
}
