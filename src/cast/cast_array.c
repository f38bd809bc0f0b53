/* cast/cast_array.c - tn_cast(): whole arrays, strided, in place and on several
 * threads. */
#include "cast/cast.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/pool.h"
#include "tensor/array.h"
#include "kernels/strided.h"

enum {
    BLOCK = 1024,               /* elements staged at a time; packed types need a multiple of 8 */
    CHUNK = 64 * BLOCK,         /* elements that a thread takes at a time */
    STREAM_BYTES = 4 << 20,     /* an output of this size does not stay in the cache */
    MAX_ELEMENT = 16
};

/* An array's strides without dimensions of one element, and with neighbouring
 * dimensions merged if possible: a dense array has at most one. */
typedef struct layout {
    uint32_t rank;
    int64_t  shape[TN_MAX_RANK], stride[TN_MAX_RANK];
    unsigned bits;
} layout;

typedef struct job {
    const tn_cast_plan *plan;
    layout         to, from;
    uint8_t       *dst;
    const uint8_t *src;
    uint64_t       count;
    uint32_t       rank;
    const int64_t *shape;
    bool           in_place;
} job;

/* --- layouts --------------------------------------------------------------- */

static layout layout_of(const tn_array *array)
{
    layout l = { .bits = tn_dtype_get(array->dtype)->bits };
    int64_t strides[TN_MAX_RANK];
    tn_array_strides(array, strides);
    for (uint32_t i = 0; i < array->rank; i++) {
        int64_t extent = array->shape[i], stride = strides[i], whole;
        if (extent == 1)
            continue;
        if (l.rank && !__builtin_mul_overflow(stride, extent, &whole) && l.stride[l.rank - 1] == whole) {
            l.shape[l.rank - 1] *= extent;
            l.stride[l.rank - 1] = stride;
        } else {
            l.shape[l.rank] = extent;
            l.stride[l.rank++] = stride;
        }
    }
    return l;
}

static bool is_dense(const layout *l)
{
    return l->rank == 0 || (l->rank == 1 && l->stride[0] == 1);
}

/* A place in a layout: coordinates, and how far the element is from the first. */
typedef struct place {
    int64_t at[TN_MAX_RANK];
    int64_t offset;
} place;

static place place_of(const layout *l, uint64_t index)
{
    place p = { .offset = 0 };
    for (uint32_t i = l->rank; i-- > 0; index /= (uint64_t)l->shape[i]) {
        p.at[i] = (int64_t)(index % (uint64_t)l->shape[i]);
        p.offset += p.at[i] * l->stride[i];
    }
    return p;
}

/* To the beginning of the next row; `run` elements of this one are done. */
static void advance(const layout *l, place *p, size_t run)
{
    uint32_t i = l->rank - 1;
    p->at[i] += (int64_t)run;
    p->offset += (int64_t)run * l->stride[i];
    while (p->at[i] == l->shape[i] && i > 0) {
        p->offset -= p->at[i] * l->stride[i];
        p->at[i] = 0;
        i--;
        p->at[i]++;
        p->offset += l->stride[i];
    }
}

/* The number of elements from a place to the end of its row, at most `most`. */
static size_t run_from(const layout *l, const place *p, size_t most)
{
    uint64_t left = (uint64_t)(l->shape[l->rank - 1] - p->at[l->rank - 1]);
    return left < most ? (size_t)left : most;
}

/* Copies elements [first, first + n) of a strided array to a dense block, or back. */
static void copy_strided(const layout *l, bool to_block, uint8_t *dst, const uint8_t *src, uint64_t first,
                         size_t n)
{
    size_t size = l->bits / 8u;
    int64_t stride = l->stride[l->rank - 1];
    place p = place_of(l, first);
    for (size_t done = 0, run; done < n; done += run) {
        int64_t at = p.offset * (int64_t)size;
        run = run_from(l, &p, n - done);
        if (to_block)
            tn_copy_strided(dst + done * size, 1, src + at, stride, run, size);
        else
            tn_copy_strided(dst + at, stride, src + done * size, 1, run, size);
        advance(l, &p, run);
    }
}

/* --- the work --------------------------------------------------------------- */

/* At most BLOCK elements, if a side is strided or the cast is in place. */
static tn_status cast_staged(const job *j, uint64_t first, size_t n, tn_error *err)
{
    uint8_t in[BLOCK * MAX_ELEMENT], out[BLOCK * MAX_ELEMENT];
    const uint8_t *src = in;
    uint8_t *dst = out;
    bool to_dense = is_dense(&j->to);
    if (!is_dense(&j->from))
        copy_strided(&j->from, true, in, j->src, first, n);
    else if (j->in_place)
        memcpy(in, j->src + tn_dense_offset(first, j->from.bits), tn_dense_bytes(n, j->from.bits));
    else
        src = j->src + tn_dense_offset(first, j->from.bits);
    if (to_dense)
        dst = j->dst + tn_dense_offset(first, j->to.bits);
    TN_TRY(tn_cast_block(j->plan, dst, src, n, first, j->rank, j->shape, err));
    if (!to_dense)
        copy_strided(&j->to, false, j->dst, out, first, n);
    return TN_OK;
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const job *j = context;
    uint64_t first = item * CHUNK;
    size_t n = j->count - first < CHUNK ? (size_t)(j->count - first) : CHUNK;
    (void)use;
    if (is_dense(&j->to) && is_dense(&j->from) && !j->in_place)
        return tn_cast_block(j->plan, j->dst + tn_dense_offset(first, j->to.bits),
                             j->src + tn_dense_offset(first, j->from.bits), n, first, j->rank, j->shape, err);
    for (size_t i = 0; i < n; i += BLOCK)
        TN_TRY(cast_staged(j, first + i, n - i < BLOCK ? n - i : BLOCK, err));
    return TN_OK;
}

static tn_status run(job *j, unsigned jobs, tn_error *err)
{
    if (j->in_place && j->to.bits != j->from.bits)
        jobs = 1;               /* a narrower output overwrites input that another thread still needs */
    return tn_pool_once(jobs, (j->count + CHUNK - 1) / CHUNK, &(tn_ordered){ .work = work, .context = j },
                        err);
}

/* --- arguments --------------------------------------------------------------- */

static tn_status check_layouts(const job *j, tn_error *err)
{
    const layout *both[] = { &j->to, &j->from };
    for (unsigned k = 0; k < 2; k++)
        if (both[k]->bits < 8 && !is_dense(both[k]))
            return tn_fail(err, TN_ERR_ARGUMENT, "elements of %u bits must be dense", both[k]->bits);
    for (uint32_t i = 0; i < j->to.rank; i++)
        TN_TRY(tn_array_check_stride(j->to.shape[i], j->to.stride[i], err));
    if (j->in_place && (!is_dense(&j->to) || !is_dense(&j->from) || j->to.bits > j->from.bits))
        return tn_fail(err, TN_ERR_ARGUMENT, "a cast in place needs dense arrays and an element no wider "
                       "than the source's %u bits but found %u", j->from.bits, j->to.bits);
    return TN_OK;
}

tn_status tn_cast(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                  tn_byte_order order, const tn_cast_options *options, tn_error *err)
{
    TN_GIVEN(dst, "a destination array", err);
    TN_GIVEN(src, "a source array", err);
    tn_cast_options own = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_cast_options, jobs), &own, options, err));
    tn_cast_plan plan;
    uint64_t count;
    TN_TRY(tn_cast_plan_make(&plan, dst->dtype, src->dtype, order, options, err));
    TN_TRY(tn_array_check(dst, "destination", &count, err));
    TN_TRY(tn_array_check(src, "source", &count, err));
    TN_TRY(tn_array_check_shapes(dst, src, err));
    if (count == 0)
        return TN_OK;
    TN_TRY(tn_array_check_data(dst_data, src_data, err));
    job j = {
        .plan = &plan, .to = layout_of(dst), .from = layout_of(src), .dst = dst_data, .src = src_data,
        .count = count, .rank = src->rank, .shape = src->shape, .in_place = dst_data == src_data,
    };
    TN_TRY(check_layouts(&j, err));
    plan.args.stream = tn_dense_offset(count, j.to.bits) >= STREAM_BYTES && is_dense(&j.to) && !j.in_place &&
                       !plan.prefers_ordinary;
    return run(&j, own.jobs, err);
}
