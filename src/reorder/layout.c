/* reorder/layout.c - tn_reorder(): whole arrays over several threads. */
#include "reorder/layout.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/pool.h"
#include "tensor/array.h"

enum {
    STREAM_BYTES   = 4 << 20,   /* an output of this size does not stay in the cache */
    PIECE_BYTES    = 1 << 20,   /* less is not worth another thread */
    PIECES_A_JOB   = 4,         /* so that threads end at about the same time */
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
    tn_status status = tn_array_check(dst, "destination", &count, err);
    if (status == TN_OK)
        status = tn_array_check(src, "source", &count, err);
    if (status != TN_OK)
        return status;
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

/* That of a dense array where none are given. */
static int64_t stride_of(const tn_array *array, uint32_t i)
{
    int64_t stride = 1;
    if (array->stride)
        return array->stride[i];
    for (uint32_t k = i + 1; k < array->rank; k++)
        stride *= array->shape[k];
    return stride;
}

/* Adds the bits from the first to the last of `extent` elements to *span; false: they do not fit. */
static bool add_span(int64_t *span, int64_t extent, int64_t stride, unsigned bits)
{
    int64_t reach;
    return stride != INT64_MIN &&
           !__builtin_mul_overflow(extent - 1, stride < 0 ? -stride : stride, &reach) &&
           !__builtin_mul_overflow(reach, (int64_t)bits, &reach) &&
           !__builtin_add_overflow(*span, reach, span);
}

static tn_status check_strides(const job *j, tn_error *err)
{
    int64_t dst = j->bits, src = j->bits;
    for (uint32_t i = 0; i < j->rank; i++) {
        const tn_reorder_dim *d = &j->dims[i];
        int64_t used = d->src_extent < d->dst_extent ? d->src_extent : d->dst_extent;
        if (d->dst_stride == 0 && d->dst_extent > 1)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "the destination has a stride of 0: %" PRId64 " elements in one place",
                           d->dst_extent);
        if (j->bits < 8 && (d->dst_stride < 0 || d->src_stride < 0))
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "elements of %u bits must have strides from 0 on, but found %" PRId64, j->bits,
                           d->dst_stride < 0 ? d->dst_stride : d->src_stride);
        if (!add_span(&dst, d->dst_extent, d->dst_stride, j->bits) ||
            (used && !add_span(&src, used, d->src_stride, j->bits)))
            return tn_fail(err, TN_ERR_ARGUMENT, "strides of %" PRId64 " and %" PRId64
                           " lead to bits beyond what 63 bits can count", d->dst_stride, d->src_stride);
    }
    return TN_OK;
}

/* --- pieces ----------------------------------------------------------------- */

/* Packed elements of two pieces must not share a byte, and a piece begins on one on both sides. */
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

/* Cuts the outermost dimension that is long enough, or else the longest. */
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
    uint64_t most = nbytes / PIECE_BYTES;
    if (jobs == 0)
        jobs = tn_core_count();
    if (jobs > most)
        jobs = most ? (unsigned)most : 1;
    uint64_t items = cut_pieces(j, jobs > 1 ? (uint64_t)jobs * PIECES_A_JOB : 1);
    return tn_pool_once(jobs, items, &(tn_ordered){ .work = work, .context = j }, err);
}

/* --- the call ---------------------------------------------------------------- */

tn_status tn_reorder(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                     const tn_reorder_options *options, tn_error *err)
{
    tn_reorder_options own = { 0 };
    tn_take_options(&own, sizeof own, options);
    tn_status status = tn_reorder_check(dst, src, err);
    if (status == TN_OK)
        status = tn_order_check(own.order, dst->rank, err);
    if (status != TN_OK)
        return status;
    job j = { .kernels = tn_reorder_kernels_get(), .bits = tn_dtype_get(dst->dtype)->bits, .rank = dst->rank,
              .dst = dst_data, .src = src_data, .fill = own.fill };
    uint64_t count = 0, available = 0, nbytes = 0;
    tn_shape_count(dst->rank, dst->shape, &count);
    tn_shape_count(src->rank, src->shape, &available);
    tn_array_nbytes(dst, &nbytes);
    if (count == 0)
        return TN_OK;
    for (uint32_t i = 0; i < j.rank; i++) {
        uint32_t from = own.order ? own.order[i] : i;
        j.dims[i] = (tn_reorder_dim){ dst->shape[i], src->shape[from], stride_of(dst, i),
                                      available ? stride_of(src, from) : 0 };
    }
    status = check_strides(&j, err);
    if (status != TN_OK)
        return status;
    if (!dst_data || (!src_data && available))
        return tn_fail(err, TN_ERR_ARGUMENT, "the %s has no data", dst_data ? "source" : "destination");
    if (!src_data)
        j.src = dst_data;       /* nothing is read, but places are computed */
    j.stream = nbytes >= STREAM_BYTES;
    return run(&j, own.jobs, nbytes, err);
}
