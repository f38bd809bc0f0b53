/* reorder/move.c - tn_move(): copies a box out of a padded tensor with tn_reorder().
 *
 * Each dimension of the result has `lead` elements of padding, then `inside`
 * elements of the source, then padding again.  tn_reorder() fills the padding
 * after the source's elements.  The padding before them takes one more call per
 * dimension, for the slab that the calls before have left. */
#include "reorder/layout.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "tensor/array.h"

/* One dimension of the result, and the elements of the source in it. */
typedef struct cut {
    int64_t count;              /* elements of the result */
    int64_t lead;               /* of padding before the first from the source */
    int64_t inside;             /* from the source: */
    int64_t first, step;        /* element `first` and every step-th after it */
} cut;

/* A box of elements of one side. */
typedef struct view {
    int64_t shape[TN_MAX_RANK], stride[TN_MAX_RANK];
    int64_t start;              /* elements from the first one of the array */
} view;

/* --- boxes ------------------------------------------------------------------- */

static int64_t item(const int64_t *list, uint32_t i, int64_t otherwise)
{
    return list ? list[i] : otherwise;
}

static int64_t div_up(int64_t n, int64_t by)
{
    return (int64_t)tn_div_up_u64((uint64_t)n, (uint64_t)by);
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The extent with its padding. */
static tn_status find_padded(const tn_move_options *o, uint32_t i, int64_t extent, int64_t *padded,
                             tn_error *err)
{
    int64_t before = item(o->before, i, 0), after = item(o->after, i, 0);
    if (extent < 0 || before < 0 || after < 0)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "dimension %" PRIu32 ": expected an extent and padding from 0 on but found "
                       "%" PRId64 " with %" PRId64 " before and %" PRId64 " after", i, extent, before, after);
    if (after > INT64_MAX - extent - before)    /* negative if the other two do not fit */
        return tn_fail(err, TN_ERR_LIMIT,
                       "dimension %" PRIu32 ": %" PRId64 " elements with %" PRId64 " before and %" PRId64
                       " after do not fit 63 bits", i, extent, before, after);
    *padded = extent + before + after;
    return TN_OK;
}

static tn_status find_cut(const tn_move_options *o, uint32_t i, int64_t extent, cut *c, tn_error *err)
{
    int64_t padded = 0, before = item(o->before, i, 0), offset = item(o->offset, i, 0),
            box = item(o->extent, i, 0);
    TN_TRY(find_padded(o, i, extent, &padded, err));
    *c = (cut){ .step = item(o->step, i, 1) };
    if (c->step < 1)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "dimension %" PRIu32 ": expected a step from 1 on but found %" PRId64, i, c->step);
    if (offset < 0 || box < 0 || box > padded - offset)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "dimension %" PRIu32 ": expected a box inside %" PRId64 " elements but found %" PRId64
                       " from %" PRId64 " on", i, padded, box, offset);
    c->count = div_up(box ? box : padded - offset, c->step);
    if (before > offset)
        c->lead = min_i64(div_up(before - offset, c->step), c->count);
    if (c->lead == c->count)
        return TN_OK;
    c->first = offset + c->lead * c->step - before;     /* fits: an element of the box */
    if (c->first < extent)
        c->inside = min_i64(div_up(extent - c->first, c->step), c->count - c->lead);
    return TN_OK;
}

static tn_status find_cuts(uint32_t rank, const int64_t *shape, const tn_move_options *o, cut *cuts,
                           tn_error *err)
{
    if (rank > TN_MAX_RANK || (rank && !shape))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a shape of at most %d dimensions but found %s of %" PRIu32, TN_MAX_RANK,
                       shape ? "one" : "none", rank);
    tn_status status = tn_order_check(o->order, rank, err);
    for (uint32_t i = 0; i < rank && !status; i++)
        status = find_cut(o, i, shape[i], &cuts[i], err);
    return status;
}

tn_status tn_move_shape(uint32_t rank, const int64_t *shape, const tn_move_options *options, int64_t *result,
                        tn_error *err)
{
    tn_move_options own = { 0 };
    cut cuts[TN_MAX_RANK];
    TN_GIVEN(result || !rank, "a place for the shape", err);
    TN_TRY(tn_take_options(TN_SIZED(tn_move_options, jobs), &own, options, err));
    tn_status status = find_cuts(rank, shape, &own, cuts, err);
    for (uint32_t i = 0; i < rank && !status; i++)
        result[i] = cuts[own.order ? own.order[i] : i].count;
    return status;
}

/* --- views ------------------------------------------------------------------- */

/* All elements of an array that is not empty.  After this no offset in bits can
 * overflow. */
static tn_status see_all(const tn_array *array, const char *which, view *v, tn_error *err)
{
    unsigned bits = tn_dtype_get(array->dtype)->bits;
    int64_t reach = bits;
    tn_array_strides(array, v->stride);
    for (uint32_t i = 0; i < array->rank; i++) {
        v->shape[i] = array->shape[i];
        if (bits < 8 && v->stride[i] < 0)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "elements of %u bits must have strides from 0 on, but found %" PRId64, bits,
                           v->stride[i]);
        if (!tn_add_reach(&reach, v->shape[i], v->stride[i], bits))
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "the %s has a stride of %" PRId64 " for %" PRId64 " elements, which leads "
                           "to bits beyond what 63 bits can count",
                           which, v->stride[i], v->shape[i]);
    }
    return TN_OK;
}

static tn_status check_byte(const tn_array *array, const char *which, int64_t at, tn_error *err)
{
    int64_t bits = tn_dtype_get(array->dtype)->bits;
    if (at % 8 * bits % 8)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "place %" PRId64 " of the %s, in elements of %" PRId64 " bits, "
                       "does not begin on a byte", at, which, bits);
    return TN_OK;
}

/* The elements that are copied; *taken is false if a dimension has none. */
static tn_status see_source(const tn_array *src, const cut *cuts, view *v, bool *taken, tn_error *err)
{
    tn_status status = TN_OK;
    *taken = true;
    for (uint32_t i = 0; i < src->rank; i++)
        *taken = *taken && cuts[i].inside > 0;
    if (*taken)
        status = see_all(src, "source", v, err);
    for (uint32_t i = 0; i < src->rank && *taken && !status; i++) {
        v->start += cuts[i].first * v->stride[i];
        v->shape[i] = cuts[i].inside;
        if (cuts[i].inside > 1)
            v->stride[i] *= cuts[i].step;
    }
    return status ? status : check_byte(src, "source", v->start, err);
}

/* The destination has the result's shape, and each of its slabs begins on a byte. */
static tn_status see_destination(const tn_array *dst, const uint32_t *order, const cut *cuts, view *v,
                                 tn_error *err)
{
    int64_t start = 0;
    for (uint32_t i = 0; i < dst->rank; i++) {
        int64_t count = cuts[order[i]].count;
        if (dst->shape[i] != count)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "dimension %" PRIu32 ": expected %" PRId64 " elements in the destination "
                           "but found %" PRId64, i, count, dst->shape[i]);
        TN_TRY(tn_array_check_stride(count, item(dst->stride, i, 1), err));
    }
    for (uint32_t i = 0; i < dst->rank; i++)
        if (dst->shape[i] == 0)
            return TN_OK;
    TN_TRY(see_all(dst, "destination", v, err));
    for (uint32_t i = 0; i < dst->rank && cuts[order[i]].lead < v->shape[i]; i++) {
        start += cuts[order[i]].lead * v->stride[i];
        TN_TRY(check_byte(dst, "destination", start, err));
    }
    return TN_OK;
}

/* --- the call ---------------------------------------------------------------- */

typedef struct moving {
    tn_dtype           dtype;
    uint32_t           rank;
    cut                cuts[TN_MAX_RANK];
    uint32_t           order[TN_MAX_RANK];
    view               dst, src;
    uint8_t           *to;
    const uint8_t     *from;    /* NULL: nothing is copied */
    tn_reorder_options options;
} moving;

static tn_status reorder(const moving *m, const view *dst, const uint8_t *from, tn_error *err)
{
    static const int64_t none[TN_MAX_RANK] = { 0 };
    const tn_array to = { m->dtype, m->rank, dst->shape, dst->stride };
    const tn_array source = { m->dtype, m->rank, from ? m->src.shape : none, m->src.stride };
    int64_t bits = tn_dtype_get(m->dtype)->bits;
    return tn_reorder(&to, m->to + dst->start * bits / 8, &source, from, &m->options, err);
}

/* Writes every element once: slabs of padding, then the rest. */
static tn_status run(const moving *m, tn_error *err)
{
    view rest = m->dst;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < m->rank && !status; i++) {
        int64_t lead = m->cuts[m->order[i]].lead;
        if (lead == 0)
            continue;
        view slab = rest;
        slab.shape[i] = lead;
        status = reorder(m, &slab, NULL, err);
        rest.shape[i] -= lead;
        if (rest.shape[i] == 0)         /* no address after the last element */
            return status;
        rest.start += lead * rest.stride[i];
    }
    return status ? status : reorder(m, &rest, m->from, err);
}

tn_status tn_move(const tn_array *dst, void *dst_data, const tn_array *src, const void *src_data,
                  const tn_move_options *options, tn_error *err)
{
    tn_move_options own = { 0 };
    uint64_t count = 0;
    bool taken = false;
    TN_TRY(tn_take_options(TN_SIZED(tn_move_options, jobs), &own, options, err));
    TN_TRY(tn_reorder_check(dst, src, err));
    moving m = { .dtype = dst->dtype, .rank = dst->rank, .to = dst_data };
    m.options = (tn_reorder_options){ sizeof m.options, own.order, own.fill, own.jobs };
    TN_TRY(find_cuts(src->rank, src->shape, &own, m.cuts, err));
    for (uint32_t i = 0; i < m.rank; i++)
        m.order[i] = own.order ? own.order[i] : i;
    TN_TRY(see_destination(dst, m.order, m.cuts, &m.dst, err));
    TN_TRY(see_source(src, m.cuts, &m.src, &taken, err));
    tn_shape_count(dst->rank, dst->shape, &count);
    if (count == 0)
        return TN_OK;
    TN_TRY(tn_array_check_data(dst_data, taken ? src_data : dst_data, err));
    if (taken)
        m.from = (const uint8_t *)src_data + m.src.start * tn_dtype_get(src->dtype)->bits / 8;
    return run(&m, err);
}
