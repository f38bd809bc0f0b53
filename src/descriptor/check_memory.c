/* descriptor/check_memory.c - strides, offset, size and alignment. */
#include "descriptor/check.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/layout.h>

/* ---- dense or not ---- */

/* "a dense NCHW tensor of 224x224": the dimensions that stride i steps over. */
static tn_phrase dense_phrase(const tn_descriptor *d, uint32_t i)
{
    tn_phrase p;
    bool letters = d->layout && tn_layout_check(d->layout, d->rank, NULL) == TN_OK;
    size_t size = sizeof p.text, used;
    if (letters)
        used = (size_t)snprintf(p.text, size, "a dense %s tensor", d->layout);
    else
        used = (size_t)snprintf(p.text, size, "a dense tensor");
    const char *by = tn_descriptor_has_symbols(d) ? " x " : "x";
    for (uint32_t k = i + 1; k < d->rank && used < size; k++) {
        tn_wia_extent e = tn_physical_extent(d, k);
        used += (size_t)snprintf(p.text + used, size - used, "%s%s", k == i + 1 ? " of " : by,
                                 tn_extent_phrase(&e).text);
    }
    if (used >= size)
        memcpy(p.text + size - 4, "...", 4);
    return p;
}

/* The first dimension with padding, or with `perhaps` one whose symbol may leave padding; d->rank: none. */
static uint32_t padded_dimension(const tn_checker *c, bool perhaps)
{
    const tn_descriptor *d = c->d;
    uint32_t i = 0;
    for (; d->physical_shape && i < d->rank; i++) {
        tn_wia_range range = tn_extent_range(&c->symbols, &d->dimensions[i]);
        if (perhaps && (range.unbounded || range.low < d->physical_shape[i]))
            return i;
        if (!range.unbounded && range.high < d->physical_shape[i])
            return i;
    }
    return d->rank;
}

/* is_contiguous means row-major in the order of dimensions, without gaps. */
static void check_contiguous(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    uint32_t padded = padded_dimension(c, false);
    bool dense = padded_dimension(c, true) == d->rank;
    if (d->is_contiguous && padded < d->rank && !c->opened)
        tn_error_at(c, "properties.is_contiguous",
                    "expected false for a tensor with padding, %s of %s in %" PRId64 ", but found true",
                    tn_dimension_phrase(d, padded).text, tn_extent_phrase(&d->dimensions[padded]).text,
                    d->physical_shape[padded]);
    for (uint32_t i = 0; i < d->rank; i++) {
        const char *names[TN_MAX_RANK];
        if (tn_stride_is_dense(d, &c->symbols, i))
            continue;
        dense = false;
        tn_wia_product expected = tn_dense_stride(d, i, names);
        if (d->is_contiguous)
            tn_error_at(c, tn_item_path("memory.strides", i).text, "expected %s for %s but found %s",
                        tn_product_phrase(&expected).text, dense_phrase(d, i).text,
                        tn_product_phrase(&d->strides[i]).text);
    }
    if (d->has_properties && !d->is_contiguous && dense)
        tn_remark_at(c, "properties.is_contiguous", "expected true for strides of %s but found false",
                     dense_phrase(d, d->rank).text);
}

/* ---- elements that overlap ---- */

typedef struct direction {
    uint32_t dimension;
    tn_wide  step, steps;       /* elements; both above 0 */
} direction;

static int by_step(const void *a, const void *b)
{
    const direction *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->dimension > y->dimension) - (x->dimension < y->dimension);
}

/* The directions with several elements and a stride other than 0; false: a number is not known. */
static bool directions(const tn_checker *c, direction *all, uint32_t *n)
{
    const tn_descriptor *d = c->d;
    *n = 0;
    for (uint32_t i = 0; i < d->rank; i++) {
        tn_wia_extent e = tn_physical_extent(d, i);
        if (e.symbol || d->strides[i].nsymbols || e.value < 1)
            return false;
        tn_wide stride = d->strides[i].factor;
        if (e.value > 1 && stride != 0)
            all[(*n)++] = (direction){ .dimension = i, .step = stride < 0 ? -stride : stride,
                                       .steps = e.value - 1 };
    }
    return true;
}

/* Two indices have the same address: a broadcast if intended, an error in a buffer that is written to.
 * Strides that contradict is_contiguous are reported there. */
static void check_overlap(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    direction all[TN_MAX_RANK];
    uint32_t n;
    for (uint32_t i = 0; i < d->rank; i++) {
        tn_wia_extent e = tn_physical_extent(d, i);
        tn_wia_range range = tn_extent_range(&c->symbols, &e);
        if (d->strides[i].factor == 0 && (range.unbounded || range.high > 1))
            tn_remark_at(c, tn_item_path("memory.strides", i).text,
                         "elements of %s overlap: stride 0, extent %s",
                         tn_dimension_phrase(d, i).text, tn_extent_phrase(&e).text);
    }
    if (!directions(c, all, &n))
        return;
    qsort(all, n, sizeof *all, by_step);
    tn_wide span = 1;           /* elements between the ends of all smaller steps */
    for (uint32_t i = 0; i < n; i++) {
        if (all[i].step < span)
            tn_remark_at(c, tn_item_path("memory.strides", all[i].dimension).text, "elements may overlap: "
                         "stride %s, but dimensions of smaller stride span %s elements",
                         tn_wide_phrase(all[i].step).text, tn_wide_phrase(span).text);
        span += tn_wide_mul(all[i].step, all[i].steps);
    }
}

/* ---- offset, size ---- */

/* The offset is a whole number of elements; sub-byte elements begin on any byte. */
static void check_offset(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    unsigned width = c->type ? c->type->bits / 8u : 0;
    if (width > 1 && d->offset_bytes % width != 0)
        tn_error_at(c, "memory.offset_bytes", "expected a multiple of %u, the size of %s, but found %" PRIu64,
                    width, tn_type_label(c->type), d->offset_bytes);
    if (tn_is_power_of_two(d->alignment) && d->offset_bytes % d->alignment != 0)
        tn_error_at(c, "memory.offset_bytes",
                    "expected a multiple of the alignment %" PRIu64 " but found %" PRIu64, d->alignment,
                    d->offset_bytes);
}

/* At least 64 bytes, 256 recommended. */
static void check_alignment(tn_checker *c)
{
    uint64_t alignment = c->d->alignment;
    if (alignment == 0)
        return;                 /* not given */
    if (!tn_is_power_of_two(alignment))
        tn_error_at(c, "memory.alignment", "expected a power of two but found %" PRIu64, alignment);
    else if (alignment < 64)
        tn_error_at(c, "memory.alignment", "expected at least 64 but found %" PRIu64, alignment);
    else if (alignment < 256)
        tn_remark_at(c, "memory.alignment", "expected the recommended 256 but found %" PRIu64, alignment);
}

/* A dense buffer that is longer than its elements and the alignment need. */
static void check_slack(tn_checker *c, tn_wide needed)
{
    const tn_descriptor *d = c->d;
    uint64_t unit = tn_is_power_of_two(d->alignment) ? d->alignment : 1;
    tn_wide rounded = (needed + unit - 1) / unit * unit;
    if (d->offset_bytes == 0 && !d->strides && c->symbols.count == 0 && d->total_bytes > rounded)
        tn_remark_at(c, "memory.total_bytes", "expected %s, where the last element ends, but found %" PRIu64,
                     tn_wide_phrase(needed).text, d->total_bytes);
}

/* "at least 96" */
static tn_phrase least_phrase(tn_wide bytes)
{
    tn_phrase p, number = tn_wide_phrase(bytes);
    if (bytes > (tn_wide)1 << 64)
        return (tn_phrase){ "more than 2^64 bytes" };
    snprintf(p.text, sizeof p.text, "at least %.40s", number.text);
    return p;
}

/* Every element is inside [0, total_bytes), even for the largest shape that the constraints allow. */
static void check_inside(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    if (!c->type)
        return;
    tn_wia_range span = tn_descriptor_span(d, &c->symbols, c->type->bits);
    if (span.unbounded) {
        if (d->has_total && tn_symbol_is_endless(&c->symbols, span.unbounded))
            tn_error_at(c, "memory.total_bytes", "expected none, for %s has no maximum, but found %" PRIu64,
                        tn_symbol_phrase(span.unbounded).text, d->total_bytes);
        return;
    }
    tn_wide needed = (span.high + 7) / 8;
    if (span.low < 0)
        tn_error_at(c, "memory.strides",
                    "expected every element at byte 0 or after it but the first is at byte %s",
                    tn_wide_phrase((span.low - 7) / 8).text);
    if (d->has_total && needed > d->total_bytes)
        tn_error_at(c, "memory.total_bytes", "expected %s, where the last element ends, but found %" PRIu64,
                    least_phrase(needed).text, d->total_bytes);
    else if (needed > UINT64_MAX)
        tn_error_at(c, "shape.dimensions", "expected a tensor of less than 2^64 bytes but found one of more");
    else if (d->has_total)
        check_slack(c, needed);
}

void tn_check_memory(tn_checker *c)
{
    check_contiguous(c);
    if (c->d->strides && !c->d->is_contiguous)
        check_overlap(c);
    check_offset(c);
    check_alignment(c);
    check_inside(c);
}
