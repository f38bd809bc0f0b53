/* descriptor/check_quantization.c - scales, zero points and the range of
 * codes, against the type and the channels. */
#include "descriptor/check.h"
#include "descriptor/descriptor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static bool is_symmetric(tn_quant_scheme scheme)
{
    return scheme == TN_QUANT_PER_TENSOR_SYMMETRIC || scheme == TN_QUANT_PER_CHANNEL_SYMMETRIC;
}

/* "dtype.quantization.scale", or "dtype.quantization.scales[3]" of several channels. */
static tn_phrase number_path(const tn_quantization *q, const char *name, size_t i)
{
    tn_phrase one, many;
    snprintf(one.text, sizeof one.text, "dtype.quantization.%s", name);
    snprintf(many.text, sizeof many.text, "dtype.quantization.%ss", name);
    return tn_is_per_channel(q->scheme) ? tn_item_path(many.text, i) : one;
}

/* A channel is an index of a dimension. */
static void check_axis(tn_checker *c)
{
    const tn_quantization *q = &c->d->quantization;
    static const char path[] = "dtype.quantization.channel_axis";
    if (tn_is_per_channel(q->scheme) && !q->has_axis)
        tn_find_wrong(c, path, "expected the dimension of the channels but found none");
    else if (q->has_axis && (q->channel_axis < 0 || q->channel_axis >= c->d->rank))
        tn_find_wrong(c, path, "expected a dimension below %u but found %" PRId64, c->d->rank, q->channel_axis);
    else if (q->has_axis && !tn_is_per_channel(q->scheme))
        tn_find_remark(c, path, "expected none for one scale for all but found %" PRId64, q->channel_axis);
}

/* One for all, or one a channel. */
static void check_count(tn_checker *c, const char *name, size_t n)
{
    const tn_quantization *q = &c->d->quantization;
    tn_phrase path;
    snprintf(path.text, sizeof path.text, "dtype.quantization.%s%s", name, tn_is_per_channel(q->scheme) ? "s" : "");
    if (!tn_is_per_channel(q->scheme)) {
        if (n != 1)
            tn_find_wrong(c, path.text, "expected one number but found %zu", n);
        return;
    }
    if (!q->has_axis || q->channel_axis < 0 || q->channel_axis >= c->d->rank)
        return;                 /* reported there */
    uint32_t axis = (uint32_t)q->channel_axis;
    const tn_extent *e = &c->d->dimensions[axis];
    tn_range range = tn_extent_range(&c->symbols, e);
    if (!range.unbounded && (n < range.low || n > range.high))
        tn_find_wrong(c, path.text, "expected %s numbers for %s but found %zu", tn_extent_phrase(e).text,
                      tn_dimension_phrase(c->d, axis).text, n);
}

static void check_scales(tn_checker *c)
{
    const tn_quantization *q = &c->d->quantization;
    check_count(c, "scale", q->nscales);
    for (size_t i = 0; i < q->nscales; i++)
        if (!isfinite(q->scales[i]) || q->scales[i] <= 0)
            tn_find_wrong(c, number_path(q, "scale", i).text, "expected a finite number above 0 but found %.17g", q->scales[i]);
}

/* Zero points are codes of the type; symmetric schemes have none but 0. */
static void check_zero_points(tn_checker *c)
{
    const tn_quantization *q = &c->d->quantization;
    tn_wide low, high;
    bool known = tn_integer_codes(c->type, &low, &high);
    if (!q->zero_points) {
        if (!is_symmetric(q->scheme))
            tn_find_remark(c, tn_is_per_channel(q->scheme) ? "dtype.quantization.zero_points" : "dtype.quantization.zero_point",
                           "expected zero points for an asymmetric scheme but found none: they are taken as 0");
        return;
    }
    check_count(c, "zero_point", q->nzero_points);
    for (size_t i = 0; i < q->nzero_points; i++) {
        int64_t zero = q->zero_points[i];
        tn_phrase path = number_path(q, "zero_point", i);
        if (is_symmetric(q->scheme) && zero != 0)
            tn_find_wrong(c, path.text, "expected 0 for a symmetric scheme but found %" PRId64, zero);
        else if (known && (zero < low || zero > high))
            tn_find_wrong(c, path.text, "expected a code of %s, %s to %s, but found %" PRId64, c->type->name,
                          tn_wide_phrase(low).text, tn_wide_phrase(high).text, zero);
    }
}

/* The range names codes of the type, the lowest first. */
static void check_range(tn_checker *c)
{
    const tn_quantization *q = &c->d->quantization;
    tn_wide low, high;
    bool known = tn_integer_codes(c->type, &low, &high);
    for (size_t i = 0; i < 2 && known; i++)
        if (q->range[i] < low || q->range[i] > high)
            tn_find_wrong(c, tn_item_path("dtype.quantization.range", i).text,
                          "expected a code of %s, %s to %s, but found %" PRId64, c->type->name, tn_wide_phrase(low).text,
                          tn_wide_phrase(high).text, q->range[i]);
    if (q->range[0] >= q->range[1])
        tn_find_wrong(c, "dtype.quantization.range", "expected the lower code first but found %" PRId64 " and %" PRId64,
                      q->range[0], q->range[1]);
}

void tn_check_quantization(tn_checker *c)
{
    const tn_quantization *q = &c->d->quantization;
    tn_wide low, high;
    if (q->scheme == TN_QUANT_NONE)
        return;
    if (c->type && !tn_integer_codes(c->type, &low, &high))
        tn_find_wrong(c, "dtype.base_type", "expected an integer type for quantization but found %s",
                      c->type->wia ? c->type->wia : c->type->name);
    check_axis(c);
    check_scales(c);
    check_zero_points(c);
    if (q->has_range)
        check_range(c);
}
