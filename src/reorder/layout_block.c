/* reorder/layout_block.c - tn_reorder_block(): chooses the fastest loop for a block.
 *
 * A block is simplified first: dimensions of one element are dropped, dimensions
 * with the same order on both sides are merged, and elements are widened.  The
 * rest is rows, a transpose, or strided elements. */
#include <string.h>

#include "tensor/code.h"
#include "reorder/layout_plan.h"

enum { CHUNK = 64 };            /* elements */

/* --- simplifying --------------------------------------------------------- */

static uint64_t distance(int64_t stride)
{
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

/* Keeps the largest strides of dst first. */
static void insert(tn_reorder_plan *p, tn_reorder_axis d)
{
    uint32_t i = p->rank++;
    for (; i > 0 && distance(p->dims[i - 1].dst) < distance(d.dst); i--)
        p->dims[i] = p->dims[i - 1];
    p->dims[i] = d;
}

/* False: there is nothing to do. */
static bool take_dims(tn_reorder_plan *p, uint32_t rank, const tn_reorder_dim *dims)
{
    for (uint32_t i = 0; i < rank; i++) {
        tn_reorder_axis d = { .extent = dims[i].dst_extent, .copy = dims[i].src_extent,
                              .dst = dims[i].dst_stride, .src = dims[i].src_stride };
        if (d.extent == 0)
            return false;
        d.copy = d.copy > d.extent ? d.extent : d.copy;
        if (d.extent == 1 && d.copy == 1)
            continue;
        if (d.dst < 0 && d.copy == d.extent) {          /* from the other end */
            p->dst += (d.extent - 1) * d.dst * (int64_t)p->size;
            p->src += (d.extent - 1) * d.src * (int64_t)p->size;
            d.dst = -d.dst;
            d.src = -d.src;
        }
        insert(p, d);
    }
    return true;
}

static void join_dims(tn_reorder_plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->rank; i++) {
        tn_reorder_axis d = p->dims[i], *outer = n ? &p->dims[n - 1] : NULL;
        int64_t dst, src;
        if (outer && d.copy == d.extent && !__builtin_mul_overflow(d.dst, d.extent, &dst) &&
            dst == outer->dst && !__builtin_mul_overflow(d.src, d.extent, &src) && src == outer->src)
            *outer = (tn_reorder_axis){ outer->extent * d.extent, outer->copy * d.extent, d.dst, d.src };
        else
            p->dims[n++] = d;
    }
    p->rank = n;
}

static bool is_padded(const tn_reorder_plan *p)
{
    for (uint32_t i = 0; i < p->rank; i++)
        if (p->dims[i].copy < p->dims[i].extent)
            return true;
    return false;
}

/* The last dimension, if it is a row on both sides, without padding. */
static tn_reorder_axis *whole_row(tn_reorder_plan *p)
{
    tn_reorder_axis *last = p->rank ? &p->dims[p->rank - 1] : NULL;
    return last && last->dst == 1 && last->src == 1 && last->copy == last->extent ? last : NULL;
}

/* Strides of all dimensions but the last in another unit, if all are whole. */
static bool change_unit(tn_reorder_plan *p, int64_t multiply, int64_t divide)
{
    for (uint32_t i = 0; i + 1 < p->rank; i++)
        if (p->dims[i].dst % divide || p->dims[i].src % divide)
            return false;
    for (uint32_t i = 0; i + 1 < p->rank; i++) {
        p->dims[i].dst = p->dims[i].dst / divide * multiply;
        p->dims[i].src = p->dims[i].src / divide * multiply;
    }
    return true;
}

/* Turns packed elements that fill whole bytes into bytes. */
static void pack_to_bytes(tn_reorder_plan *p)
{
    tn_reorder_axis *row = whole_row(p);
    int64_t group = p->bits % 2 ? 8 : 4;        /* elements in whole bytes */
    if (p->bits == 4)
        group = 2;
    int64_t bytes = group * p->bits / 8;
    if (!row || row->extent % group || (is_padded(p) && 8 % p->bits) || !change_unit(p, bytes, group))
        return;
    row->extent = row->copy = row->extent / group * bytes;
    p->size = 1;
}

/* Turns a short row into one wider element. */
static void widen(tn_reorder_plan *p)
{
    tn_reorder_axis *row = whole_row(p);
    int64_t size = row && row->extent <= TN_MAX_ELEMENT ? row->extent * (int64_t)p->size : 0;
    if (size == 0 || size > TN_MAX_ELEMENT || (size & (size - 1)) || !change_unit(p, 1, row->extent))
        return;
    p->rank--;
    p->size = (size_t)size;
}

static void set_fill(tn_reorder_plan *p, const void *fill)
{
    size_t period = p->size ? p->size : p->bits;
    if (!fill)
        return;
    if (p->size)
        memcpy(p->fill, fill, period);
    else
        for (unsigned i = 0; i < 8; i++)
            tn_packed_put(p->fill, i, p->bits, *(const uint8_t *)fill);
    for (size_t i = period; i < TN_LINE; i++)
        p->fill[i] = p->fill[i - period];
}

/* --- choosing --------------------------------------------------------------------- */

/* Moves the dimension along which src is dense next to the last; false: there is none. */
static bool bring_source_row(tn_reorder_plan *p)
{
    for (uint32_t i = p->rank - 1; i-- > 0; ) {
        tn_reorder_axis d = p->dims[i];
        if (d.src != 1)
            continue;
        memmove(&p->dims[i], &p->dims[i + 1], (p->rank - 2 - i) * sizeof d);
        p->dims[p->rank - 2] = d;
        return true;
    }
    return false;
}

static void set_inner(tn_reorder_plan *p, tn_inner_fn inner, uint32_t rank)
{
    p->inner = inner;
    p->inner_rank = rank;
}

static void choose(tn_reorder_plan *p)
{
    const tn_reorder_axis *last = &p->dims[p->rank - 1];
    set_inner(p, tn_inner_strided, 1);
    if (last->dst != 1)
        return;
    bool rows = last->src == 1;
    if (!rows && !bring_source_row(p))
        return;
    if (rows)
        set_inner(p, p->size ? tn_inner_row : tn_inner_row_packed, 1);
    else
        set_inner(p, p->size ? tn_inner_transpose : tn_inner_transpose_packed, 2);
    if (p->size && tn_plan_interleave(p))
        set_inner(p, tn_inner_interleaved, 2);
    else if (p->size && rows && tn_rows_need_stage(p))
        set_inner(p, tn_inner_rows_staged, 2);
    else if (p->size && !rows && tn_transpose_needs_stage(p))
        set_inner(p, tn_inner_transpose_staged, 2);
}

/* --- running ---------------------------------------------------------------- */

/* All dimensions from `d` on. */
static void fill_box(const tn_reorder_plan *p, uint32_t d, int64_t at)
{
    if (d >= p->rank)
        tn_reorder_fill(p, at, 1);
    else if (d >= p->dense)
        tn_reorder_fill(p, at, p->dims[d].extent * p->dims[d].dst);
    else
        for (int64_t i = 0; i < p->dims[d].extent; i++)
            fill_box(p, d + 1, at + i * p->dims[d].dst);
}

static void walk(const tn_reorder_plan *p, uint32_t d, int64_t dst, int64_t src)
{
    const tn_reorder_axis *o = &p->dims[d];
    if (d + p->inner_rank == p->rank) {
        p->inner(p, dst, src);
        return;
    }
    for (int64_t i = 0; i < o->copy; i++)
        walk(p, d + 1, dst + i * o->dst, src + i * o->src);
    for (int64_t i = o->copy; i < o->extent; i++)
        fill_box(p, d + 1, dst + i * o->dst);
}

static void find_dense(tn_reorder_plan *p)
{
    int64_t next = 1;
    p->dense = p->rank;
    while (p->dense > 0 && p->dims[p->dense - 1].dst == next)
        next *= p->dims[--p->dense].extent;
}

/* --- chunks ----------------------------------------------------------------- */

/* Of the first n dimensions, the one with the smallest stride of src. */
static uint32_t closest_in_source(const tn_reorder_plan *p, uint32_t n)
{
    uint32_t best = n - 1;
    for (uint32_t i = n - 1; i-- > 0; )
        if (distance(p->dims[i].src) < distance(p->dims[best].src))
            best = i;
    return best;
}

/* If each step of an outer dimension uses only a part of a cache line, two dimensions are cut into chunks and
 * the outer ones walked for each chunk, so that lines are used up while they are cached. */
static bool needs_chunks(const tn_reorder_plan *p, uint32_t *a, uint32_t *b)
{
    const tn_reorder_axis *last = &p->dims[p->rank - 1], *before = p->rank > 1 ? last - 1 : last;
    int64_t line = p->size ? TN_LINE / (int64_t)p->size : TN_LINE * 8 / p->bits;
    if (p->rank < 2 || p->inner == tn_inner_interleaved || p->inner == tn_inner_transpose_staged)
        return false;           /* these take whole rows of dst */
    *a = p->rank - 1;
    *b = p->rank - 2;
    if (last->dst == 1 && last->src != 1 && before->src == 1)
        return p->rank > 2 && ((last->extent < line && before->dst > last->extent) ||
                               (before->copy < line && last->src > before->copy));
    if (last->dst == 1 && last->src == 1) {
        *a = p->rank - 2;
        *b = closest_in_source(p, p->rank - 1);
        return *a != *b && last->extent < line;
    }
    *b = closest_in_source(p, p->rank);
    return *a != *b;
}

static tn_reorder_axis chunk_of(const tn_reorder_axis *d, int64_t first)
{
    int64_t extent = d->extent - first < CHUNK ? d->extent - first : CHUNK, copy = d->copy - first;
    copy = copy < 0 ? 0 : copy;
    return (tn_reorder_axis){ extent, copy < extent ? copy : extent, d->dst, d->src };
}

static void walk_chunks(tn_reorder_plan *p, uint32_t a, uint32_t b)
{
    tn_reorder_axis outer = p->dims[a], inner = p->dims[b];
    for (int64_t i = 0; i < outer.extent; i += CHUNK)
        for (int64_t j = 0; j < inner.extent; j += CHUNK) {
            int64_t dst = i * outer.dst + j * inner.dst;
            p->dims[a] = chunk_of(&outer, i);
            p->dims[b] = chunk_of(&inner, j);
            find_dense(p);
            if (p->dims[a].copy && p->dims[b].copy)
                walk(p, 0, dst, i * outer.src + j * inner.src);
            else
                fill_box(p, 0, dst);
        }
}

static bool has_source(const tn_reorder_plan *p)
{
    for (uint32_t i = 0; i < p->rank; i++)
        if (p->dims[i].copy == 0)
            return false;
    return true;
}

static void run(tn_reorder_plan *p)
{
    uint32_t a, b;
    bool sourced = has_source(p);
    if (sourced)
        choose(p);
    find_dense(p);
    if (!sourced)
        fill_box(p, 0, 0);
    else if (needs_chunks(p, &a, &b))
        walk_chunks(p, a, b);
    else
        walk(p, 0, 0, 0);
}

void tn_reorder_block(const tn_reorder_kernels *kernels, unsigned bits, uint32_t rank,
                      const tn_reorder_dim *dims, void *dst, const void *src, const void *fill, bool stream)
{
    tn_reorder_plan p;
    p.interleave.in = 0;             /* the rest is large and seldom used */
    p.kernels = kernels;
    p.dst = dst;
    p.src = src;
    p.bits = bits;
    p.size = bits / 8;
    p.rank = 0;
    p.stream = stream;
    memset(p.fill, 0, sizeof p.fill);
    set_fill(&p, fill);
    if (!take_dims(&p, rank, dims))
        return;
    join_dims(&p);
    if (p.size == 0)
        pack_to_bytes(&p);
    if (p.size)
        widen(&p);
    if (p.rank == 0)
        p.dims[p.rank++] = (tn_reorder_axis){ 1, 1, 1, 1 };
    run(&p);
}
