/* descriptor/check_quantization.c - scales, zero points and code range against type and channels. */
#include "descriptor/check.h"
#include "base/error.h"
#include "bytes/json.h"
#include "descriptor/descriptor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_symmetric(tn_quant_scheme scheme)
{
    return scheme == TN_QUANT_PER_TENSOR_SYMMETRIC || scheme == TN_QUANT_PER_CHANNEL_SYMMETRIC;
}

/* "dtype.quantization.scheme", or "scheme" if there is only a quantization. */
static tn_phrase member_path(const tn_checker *c, const char *name, const char *end)
{
    tn_phrase p;
    snprintf(p.text, sizeof p.text, "%s%s%s", tn_has_no_shape(c->d) ? "" : "dtype.quantization.", name, end);
    return p;
}

/* "dtype.quantization.scale", or "dtype.quantization.scales" for several channels. */
static tn_phrase numbers_path(const tn_checker *c, const char *name)
{
    return member_path(c, name, tn_is_per_channel(c->d->quantization.scheme) ? "s" : "");
}

/* One of them: "dtype.quantization.scales[3]". */
static tn_phrase number_path(const tn_checker *c, const char *name, size_t i)
{
    tn_phrase path = numbers_path(c, name);
    return tn_is_per_channel(c->d->quantization.scheme) ? tn_item_path(path.text, i) : path;
}

/* A channel is an index of a dimension. */
static void check_axis(tn_checker *c)
{
    const tn_wia_quantization *q = &c->d->quantization;
    const tn_phrase axis = member_path(c, "channel_axis", "");
    const char *path = axis.text;
    const uint32_t rank = tn_has_no_shape(c->d) ? TN_MAX_RANK : c->d->rank;
    if (tn_is_per_channel(q->scheme) && !q->has_axis)
        tn_error_at(c, path, "expected the dimension of the channels but found none");
    else if (q->has_axis && (q->channel_axis < 0 || q->channel_axis >= rank))
        tn_error_at(c, path, "expected a dimension below %u but found %" PRId64, rank, q->channel_axis);
    else if (q->has_axis && !tn_is_per_channel(q->scheme))
        tn_remark_at(c, path, "expected none for one scale for all but found %" PRId64, q->channel_axis);
}

/* Without a shape the number of scales decides. */
static void check_count_alone(tn_checker *c, const char *path, size_t n)
{
    const tn_wia_quantization *q = &c->d->quantization;
    if (n == 0)
        tn_error_at(c, path, "expected a number for each channel but found none");
    else if (n != q->nscales)
        tn_error_at(c, path, "expected %zu numbers, as many as scales, but found %zu", q->nscales, n);
}

/* One for the tensor, or one per channel. */
static void check_count(tn_checker *c, const char *name, size_t n)
{
    const tn_wia_quantization *q = &c->d->quantization;
    const tn_phrase path = numbers_path(c, name);
    if (!tn_is_per_channel(q->scheme)) {
        if (n != 1)
            tn_error_at(c, path.text, "expected one number but found %zu", n);
        return;
    }
    if (tn_has_no_shape(c->d)) {
        check_count_alone(c, path.text, n);
        return;
    }
    if (!q->has_axis || q->channel_axis < 0 || q->channel_axis >= c->d->rank)
        return;                 /* reported there */
    uint32_t axis = (uint32_t)q->channel_axis;
    const tn_wia_extent *e = &c->d->dimensions[axis];
    tn_wia_range range = tn_extent_range(&c->symbols, e);
    if (!range.unbounded && (n < range.low || n > range.high))
        tn_error_at(c, path.text, "expected %s numbers for %s but found %zu", tn_extent_phrase(e).text,
                    tn_dimension_phrase(c->d, axis).text, n);
}

static void check_scales(tn_checker *c)
{
    const tn_wia_quantization *q = &c->d->quantization;
    check_count(c, "scale", q->nscales);
    for (size_t i = 0; i < q->nscales; i++)
        if (!isfinite(q->scales[i]) || q->scales[i] <= 0)
            tn_error_at(c, number_path(c, "scale", i).text,
                        "expected a finite number above 0 but found %.17g", q->scales[i]);
}

/* Zero points are codes of the type; in symmetric schemes they are 0. */
static void check_zero_points(tn_checker *c)
{
    const tn_wia_quantization *q = &c->d->quantization;
    tn_wide low, high;
    bool known = tn_integer_codes(c->type, &low, &high);
    if (!q->zero_points) {
        if (!is_symmetric(q->scheme))
            tn_remark_at(c, numbers_path(c, "zero_point").text,
                         "expected zero points for an asymmetric scheme but found none: they are taken as 0");
        return;
    }
    check_count(c, "zero_point", q->nzero_points);
    for (size_t i = 0; i < q->nzero_points; i++) {
        int64_t zero = q->zero_points[i];
        tn_phrase path = number_path(c, "zero_point", i);
        if (is_symmetric(q->scheme) && zero != 0)
            tn_error_at(c, path.text, "expected 0 for a symmetric scheme but found %" PRId64, zero);
        else if (known && (zero < low || zero > high))
            tn_error_at(c, path.text, "expected %s, but found %" PRId64, tn_codes_phrase(c->type).text, zero);
    }
}

/* The range is two codes of the type, the lowest first. */
static void check_range(tn_checker *c)
{
    const tn_wia_quantization *q = &c->d->quantization;
    tn_wide low, high;
    bool known = tn_integer_codes(c->type, &low, &high);
    const tn_phrase path = member_path(c, "range", "");
    for (size_t i = 0; i < 2 && known; i++)
        if (q->range[i] < low || q->range[i] > high)
            tn_error_at(c, tn_item_path(path.text, i).text, "expected %s, but found %" PRId64,
                        tn_codes_phrase(c->type).text, q->range[i]);
    if (q->range[0] >= q->range[1])
        tn_error_at(c, path.text, "expected the lower code first but found %" PRId64 " and %" PRId64,
                    q->range[0], q->range[1]);
}

/* The name of a scheme beyond the four. */
static tn_text other_scheme_name(const tn_descriptor *d, const tn_wia_extra *other, tn_arena *arena)
{
    tn_text key, name = { 0 };
    tn_json j;
    tn_json_init(&j, other->json, strlen(other->json), arena);
    if (tn_has_no_shape(d))
        return tn_json_string(&j);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (tn_text_is(key, "scheme"))
            name = tn_json_string(&j);
        else
            tn_json_skip(&j);
    }
    return name;
}

/* Kept unchanged; refused in strict mode. */
static void check_other_scheme(tn_checker *c)
{
    tn_arena arena = { 0 };
    const tn_wia_extra *other = tn_other_scheme(c->d);
    tn_text name = other ? other_scheme_name(c->d, other, &arena) : (tn_text){ 0 };
    if (other)
        tn_error_at(c, member_path(c, "scheme", "").text, "expected per_tensor_symmetric, "
                    "per_tensor_asymmetric, per_channel_symmetric or per_channel_asymmetric but found %s",
                    tn_quote(name.ptr ? name.ptr : "", name.len).text);
    tn_arena_free(&arena);
}

void tn_check_quantization(tn_checker *c)
{
    const tn_wia_quantization *q = &c->d->quantization;
    tn_wide low, high;
    if (c->options.strict)
        check_other_scheme(c);
    if (q->scheme == TN_QUANT_NONE)
        return;
    if (c->type && !tn_integer_codes(c->type, &low, &high))
        tn_error_at(c, "dtype.base_type", "expected an integer type for quantization but found %s",
                    tn_type_label(c->type));
    check_axis(c);
    check_scales(c);
    check_zero_points(c);
    if (q->has_range)
        check_range(c);
}
