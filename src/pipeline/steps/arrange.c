/* pipeline/steps/arrange.c - elements in other places: some of them, another order of the dimensions, and
 * padding.
 *
 * A range of the result is cut into boxes: what is left of an index of the first
 * dimension, then whole indices, then the beginning of one more; the first and the
 * last are cut in the same way along the next dimension.  A box is copied at once
 * from memory with strides or, where there is none, from a box of the input. */
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "pipeline/box.h"
#include "pipeline/padding.h"
#include "reorder/layout.h"
#include "tensor/array.h"
#include "tensor/code.h"

#include <string.h>

/* Of a block: large enough that columns of a matrix come many at a time.  The same on every machine, for
 * plans number blocks. */
#define BLOCK_BYTES ((uint64_t)4 << 20)

/* Where elements come from and where they go. */
typedef struct places {
    const tn_reorder_kernels *kernels;
    uint32_t       rank;
    const int64_t *shape, *physical;    /* of the result, without and with padding */
    int64_t        stride[TN_MAX_RANK]; /* of the source, in elements */
    unsigned       bits;                /* of an element: 8 or more unless all is packed alike */
    const uint8_t *source;              /* element 0 */
    const tn_padding *padding;          /* or NULL */
} places;

static uint64_t grain_for(unsigned bits)
{
    return BLOCK_BYTES / (bits > 8 ? bits : 8) * 8;
}

static uint64_t product(const int64_t *extent, uint32_t from, uint32_t to)
{
    uint64_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= (uint64_t)extent[i];
    return n;
}

/* ---- boxes ---- */

/* Whole indices of dimension d, `rows` of them from `first` on, at one index of the dimensions before it. */
typedef struct box {
    uint32_t d;
    int64_t  first, rows;
    int64_t  from;              /* element of the source where index 0 of dimension d is */
    bool     inside;            /* not in the padding of a dimension before */
    int64_t  axis;              /* index along the padding's axis, if that is before d */
} area;

static uint32_t box_dims(const places *p, const area *b, tn_reorder_dim *dims)
{
    int64_t step = 1;
    for (uint32_t i = p->rank; i-- > b->d;) {
        int64_t value = p->shape[i], physical = p->physical[i];
        if (i == b->d) {
            value = value - b->first < b->rows ? value - b->first : b->rows;
            value = value < 0 || !b->inside ? 0 : value;
            physical = b->rows;
        }
        dims[i - b->d] = (tn_reorder_dim){ physical, value, step, p->stride[i] };
        step *= physical;
    }
    return p->rank - b->d;
}

static bool has_padding(uint32_t rank, const tn_reorder_dim *dims)
{
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i].dst_extent != dims[i].src_extent)
            return true;
    return false;
}

static const void *fill_at(const places *p, int64_t index)
{
    const tn_padding *pad = p->padding;
    if (!pad)
        return NULL;
    bool known = pad->fills && (pad->axis < 0 || index < p->shape[pad->axis]);
    return known ? (const void *)&pad->fills[pad->axis < 0 ? 0 : index] : pad->fill;
}

/* Where padding differs along a dimension of the box it is copied index by index of that. */
static void copy_box(const places *p, const area *b, uint8_t *to)
{
    tn_reorder_dim dims[TN_MAX_RANK + 1];
    uint32_t rank = box_dims(p, b, dims);
    const tn_padding *pad = p->padding;
    int64_t from = b->from + (rank ? b->first * p->stride[b->d] : 0);
    const uint8_t *src = p->source + tn_packed_byte((uint64_t)from, p->bits);
    bool any = rank && dims[0].src_extent;
    for (uint32_t i = 1; i < rank; i++)
        any &= dims[i].src_extent > 0;
    src = any || !rank ? src : p->source;
    if (!pad || !pad->fills || pad->axis < (int32_t)b->d || !has_padding(rank, dims)) {
        tn_reorder_block(p->kernels, p->bits, rank, dims, to, src, fill_at(p, b->axis), false);
        return;
    }
    tn_reorder_dim *axis = &dims[(uint32_t)pad->axis - b->d], whole = *axis;
    int64_t first = pad->axis == (int32_t)b->d ? b->first : 0;
    for (int64_t i = 0; i < whole.dst_extent; i++) {
        bool inside = i < whole.src_extent;
        axis->dst_extent = 1;
        axis->src_extent = inside;
        tn_reorder_block(p->kernels, p->bits, rank, dims, to + (size_t)(i * whole.dst_stride) * (p->bits / 8),
                         inside ? src + (size_t)(i * whole.src_stride) * (p->bits / 8) : src,
                         fill_at(p, first + i), false);
    }
}

/* Elements [first, first + n) of what dimensions d, d + 1 ... have at the index of `at`. */
static void copy_range(const places *p, area at, uint64_t first, uint64_t n, uint8_t *to)
{
    uint64_t inner = at.d < p->rank ? product(p->physical, at.d + 1, p->rank) : 1;
    while (n) {
        uint64_t index = first / inner, skip = first % inner, some = tn_min_u64(n, inner - skip);
        area b = at;
        if (skip == 0 && n >= inner) {          /* whole indices */
            some = n / inner * inner;
            b.first = (int64_t)index;
            b.rows = (int64_t)(n / inner);
            copy_box(p, &b, to);
        } else {
            b.inside = at.inside && (int64_t)index < p->shape[at.d];
            b.from = b.inside ? at.from + (int64_t)index * p->stride[at.d] : 0;
            if (p->padding && p->padding->axis == (int32_t)at.d)
                b.axis = (int64_t)index;
            b.d++;
            copy_range(p, b, skip, some, to);
        }
        first += some;
        n -= some;
        to += tn_packed_byte(some, p->bits);
    }
}

static void copy_elements(const places *p, uint64_t first, uint64_t n, uint8_t *to)
{
    const area all = { .d = 0, .rows = 1, .inside = true };
    if (p->rank)
        copy_range(p, all, first, n, to);
    else if (n)
        copy_box(p, &all, to);
}

/* ---- elements narrower than a byte ---- */

/* Whether boxes begin and end on a byte on both sides. */
static bool is_packed_alike(const places *p)
{
    bool alike = !p->padding || !p->padding->fills;
    for (uint32_t i = 0; i + 1 < p->rank && alike; i++)
        alike = (uint64_t)p->stride[i] * p->bits % 8 == 0;
    return alike && p->rank && p->stride[p->rank - 1] == 1 &&
           (uint64_t)p->physical[p->rank - 1] * p->bits % 8 == 0;
}

/* n elements of a row of the last dimension from an index on, one per byte. */
static void unpack_row(const places *p, const int64_t *index, uint64_t n, uint8_t *codes)
{
    const tn_padding *pad = p->padding;
    int64_t at = 0, left = 1, step = 0, along = 0, axis = 0;
    for (uint32_t i = 0; i < p->rank; i++) {
        at += index[i] * p->stride[i];
        left = i + 1 == p->rank ? p->shape[i] - index[i] : left;
        step = p->stride[i];
    }
    for (uint32_t i = 0; i + 1 < p->rank; i++)
        left = index[i] < p->shape[i] ? left : 0;
    if (pad && pad->axis >= 0) {
        axis = index[pad->axis];
        along = (uint32_t)pad->axis + 1 == p->rank;
    }
    for (uint64_t k = 0; k < n; k++)
        codes[k] = (int64_t)k < left
                       ? (uint8_t)tn_packed_get(p->source, (uint64_t)(at + (int64_t)k * step), p->bits)
                       : *(const uint8_t *)fill_at(p, axis + along * (int64_t)k);
}

/* The same of n elements from number `first` of the result on. */
static void unpack_range(const places *p, uint64_t first, uint64_t n, uint8_t *codes)
{
    int64_t index[TN_MAX_RANK];
    uint64_t rest = first;
    for (uint32_t i = p->rank; i-- > 0; rest /= (uint64_t)p->physical[i])
        index[i] = (int64_t)(rest % (uint64_t)p->physical[i]);
    for (uint64_t k = 0, row; k < n; k += row) {
        int64_t *last = p->rank ? &index[p->rank - 1] : NULL;
        row = last ? tn_min_u64(n - k, (uint64_t)(p->physical[p->rank - 1] - *last)) : 1;
        unpack_row(p, index, row, codes + k);
        if (last)
            *last += (int64_t)row;
        for (uint32_t i = p->rank; i-- > 1 && index[i] == p->physical[i];) {
            index[i] = 0;
            index[i - 1]++;
        }
    }
}

static void pack_bytes(uint8_t *out, const uint8_t *codes, size_t n, unsigned bits)
{
    memset(out, 0, (size_t)tn_packed_bytes(n, bits));
    for (size_t i = 0; i < n; i++)
        tn_packed_put(out, i, bits, codes[i]);
}

static tn_status copy_packed(const tn_view *v, const places *p, uint64_t first, size_t n, tn_worker *w,
                             uint8_t *out, tn_error *err)
{
    uint8_t *codes;
    uint64_t row = p->rank ? (uint64_t)p->physical[p->rank - 1] : 1;
    memset(out, 0, (size_t)tn_packed_bytes(n, p->bits));
    if (is_packed_alike(p) && first % row == 0 && n % row == 0) {
        copy_elements(p, first, n, out);
        return TN_OK;
    }
    TN_TRY(tn_worker_buffer(w, v, 1, n, &codes, err));
    unpack_range(p, first, n, codes);
    pack_bytes(out, codes, n, p->bits);
    return TN_OK;
}

/* ---- some indices, in another order ---- */

typedef struct arranging {
    tn_arrangement how;
    tn_strided     source;      /* once it is prepared; its strides are those of the result */
    bool           is_strided;  /* else boxes of the input are read */
    /* scales, zero points: elements of so many bytes; NULL: all go along */
    struct { const uint8_t *from; uint8_t *to; size_t width; } chosen[3];
    uint64_t       nchosen;
    int64_t        first, step; /* of them */
} arranging;

/* Again when they are known: a quantizer before this step finds them when it is prepared. */
static void choose_scales(const arranging *own)
{
    for (uint32_t k = 1; k < 3 && own->chosen[k].to; k++)
        for (uint64_t i = 0; i < own->nchosen; i++) {
            int64_t from = own->first + (int64_t)i * own->step;
            size_t width = own->chosen[k].width;
            memcpy(own->chosen[k].to + i * width, own->chosen[k].from + (size_t)from * width, width);
        }
}

/* Scales go along; those of a dimension of which some indices are left are chosen alike. */
static tn_status arrange_scales(tn_view *v, const tn_arrangement *a, tn_error *err)
{
    arranging *own = v->state;
    int32_t axis = v->tensor.scaling->axis, to = -1;
    tn_scaling *scaling = tn_arena_copy(v->arena, v->tensor.scaling, sizeof *scaling);
    int64_t *extent = tn_arena_zalloc(v->arena, 1, sizeof *extent);
    if (!scaling || !extent)
        return tn_fail_nomem(err);
    *extent = 1;
    for (uint32_t i = 0; i < a->rank && axis >= 0; i++)
        to = a->from[i] == (uint32_t)axis ? (int32_t)i : to;
    if (to >= 0)
        *extent = a->extent[to];
    scaling->axis = to;
    v->tensor.scaling = scaling;
    if (axis < 0 || (to >= 0 && *extent == v->input->tensor.shape[axis]))
        return TN_OK;
    for (uint32_t k = 1; k < v->tensor.nparts && k < 3; k++) {
        size_t width = tn_dtype_get(v->parts[k].array.dtype)->bits / 8;
        uint8_t *some = tn_arena_alloc(v->arena, ((size_t)*extent + 1) * width);
        const void *found;
        TN_NEED(some, err);
        TN_TRY(tn_view_read_part(v->input, k, &found, err));
        own->chosen[k].from = found;
        own->chosen[k].to = some;
        own->chosen[k].width = width;
        v->parts[k].array.rank = to >= 0 ? v->parts[k].array.rank : 0;
        v->parts[k].array.shape = extent;
        v->parts[k].nbytes = (uint64_t)*extent * width;
        v->parts[k].data = some;
    }
    own->nchosen = (uint64_t)*extent;
    own->first = a->start[axis];
    own->step = a->step[axis];
    choose_scales(own);
    return TN_OK;
}

/* The letters of the dimensions that are left. */
static const char *arrange_layout(tn_view *v, const tn_arrangement *a)
{
    char letters[TN_MAX_RANK + 1] = "";
    for (uint32_t i = 0; i < a->rank; i++)
        letters[i] = v->tensor.layout[a->from[i]];
    return a->rank ? tn_arena_text(v->arena, letters, a->rank) : NULL;
}

tn_status tn_view_check_places(const tn_view *v, tn_error *err)
{
    if (tn_form_is_sparse(v->tensor.form))
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, tn_form_name(TN_FORM_DENSE),
                         "a sparse tensor has no scales, no order of its elements and no padding");
    if (tn_form_has_datatype(&v->tensor))
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "its codes have no other form, layout, shape or padding: cast it to a float type "
                       "as well");
    if (v->tensor.form != TN_FORM_DENSE && !tn_form_is_scaled(v->tensor.form))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "expected a dense, sparse or scaled tensor but found form %s",
                       tn_quote_z(tn_tensor_form_name(&v->tensor)).text);
    return TN_OK;
}

static tn_status describe_arrange(tn_view *v, const void *options, tn_error *err)
{
    const tn_arrangement *a = options;
    arranging *own = v->state = tn_arena_zalloc(v->arena, 1, sizeof *own);
    int64_t *shape = tn_arena_copy(v->arena, a->extent, (a->rank + 1) * sizeof *shape);
    if (!own || !shape)
        return tn_fail_nomem(err);
    TN_TRY(tn_view_check_places(v, err));
    TN_TRY(tn_view_take_padding(v, err));
    own->how = *a;
    v->is_moved |= a->rank != v->tensor.rank;
    for (uint32_t i = 0; i < a->rank; i++)
        v->is_moved |= a->from[i] != i || a->start[a->from[i]] || a->step[a->from[i]] != 1;
    if (v->tensor.scaling)
        TN_TRY(arrange_scales(v, a, err));
    if (v->tensor.layout && v->is_moved)
        v->tensor.layout = arrange_layout(v, a);
    v->tensor.rank = v->parts[0].array.rank = a->rank;
    v->tensor.shape = v->parts[0].array.shape = shape;
    v->grain = grain_for(v->bits);
    return tn_view_resize(v, a->rank, shape, err);
}

static tn_status describe_reorder(tn_view *v, const void *options, tn_error *err)
{
    const uint32_t *order = options;
    tn_arrangement a = { .rank = v->tensor.rank };
    for (uint32_t i = 0; i < a.rank; i++) {
        a.from[i] = order[i];
        a.extent[i] = tn_view_shape(v->input)[order[i]];
        a.step[i] = 1;
    }
    return describe_arrange(v, &a, err);
}

/* Where element 0 is; false: not at the beginning of a byte. */
static bool move_base(const tn_arrangement *a, uint32_t rank, unsigned bits, tn_strided *s)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < rank; i++)
        at += a->start[i] * s->stride[i];
    s->base += bits < 8 ? at * bits / 8 : at * (bits / 8);
    return bits >= 8 || at * bits % 8 == 0;
}

/* Memory with strides or, once what is before can be read at random, its ranges. */
static tn_status prepare_arrange(tn_view *v, const tn_preparing *p, tn_error *err)
{
    arranging *own = v->state;
    const tn_arrangement *a = &own->how;
    tn_strided input = { 0 };
    TN_TRY(tn_view_prepare(v->input, p, err));
    choose_scales(own);
    own->is_strided = v->count && tn_view_strided(v->input, &input) &&
                      move_base(a, v->input->parts[0].array.rank, v->bits, &input);
    own->source = input;
    for (uint32_t i = 0; i < a->rank; i++)
        own->source.stride[i] = input.stride[a->from[i]] * a->step[a->from[i]];
    if (own->is_strided || !v->count || (tn_view_has_ranges(v->input) && !v->input->reports))
        return TN_OK;
    return tn_view_fill(v->input, p, err);
}

static bool strided_arrange(const tn_view *v, tn_strided *strided)
{
    const arranging *own = v->state;
    *strided = own->source;
    return own->is_strided;
}

static places places_of(const tn_view *v, const tn_strided *source)
{
    places p = { .kernels = tn_reorder_kernels_get(), .rank = v->parts[0].array.rank,
                 .shape = v->parts[0].array.shape, .physical = tn_view_shape(v), .bits = v->bits,
                 .source = source->base };
    memcpy(p.stride, source->stride, sizeof p.stride);
    return p;
}

/* What of the input a box of the result is: dimensions before d at `index`, `rows` indices of d from
 * index[d] on, all of the others. */
static void find_box(const tn_view *v, const int64_t *index, uint32_t d, int64_t rows, tn_box *box)
{
    const arranging *own = v->state;
    const tn_arrangement *a = &own->how;
    for (uint32_t i = 0; i < v->input->parts[0].array.rank; i++) {
        box->start[i] = a->start[i];
        box->step[i] = a->step[i];
        box->extent[i] = 1;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t k = a->from[i];
        box->extent[k] = i < d ? 1 : a->extent[i];
        if (i == d)
            box->extent[k] = rows;
        box->start[k] += i <= d ? index[i] * a->step[k] : 0;
    }
}

/* Some elements that are one box of the result: where it begins, and how many elements it has. */
typedef struct arranged_box {
    int64_t  index[TN_MAX_RANK];
    uint32_t d;
    uint64_t rows, count;
} arranged_box;

/* The largest box that begins at element `first` and has at most n. */
static arranged_box next_box(const tn_view *v, uint64_t first, uint64_t n)
{
    const int64_t *shape = v->parts[0].array.shape;
    uint32_t rank = v->parts[0].array.rank;
    arranged_box b = { .d = rank, .rows = 1, .count = 1 };
    uint64_t rest = first;
    for (uint32_t i = rank; i-- > 0; rest /= (uint64_t)shape[i])
        b.index[i] = (int64_t)(rest % (uint64_t)shape[i]);
    uint64_t inner = 1;
    while (b.d > 0) {           /* one dimension more, while the box begins where an index of it does */
        uint32_t i = b.d - 1;
        uint64_t left = (uint64_t)(shape[i] - b.index[i]), rows = tn_min_u64(left, n / inner);
        if (!rows)
            break;
        b.d = i;
        b.rows = rows;
        b.count = rows * inner;
        if (b.index[i] || rows < (uint64_t)shape[i])
            break;
        inner *= (uint64_t)shape[i];
    }
    return b;
}

/* A box of the input, whose dimensions are in another order, to where its elements go. */
static void put_box(const tn_view *v, const arranged_box *b, const tn_box *box, const uint8_t *from,
                    uint8_t *to)
{
    const arranging *own = v->state;
    tn_reorder_dim dims[TN_MAX_RANK + 1];
    int64_t stride[TN_MAX_RANK], step = 1;
    uint32_t rank = own->how.rank - b->d;
    tn_dense_strides(v->input->parts[0].array.rank, box->extent, stride);
    for (uint32_t i = own->how.rank; i-- > b->d;) {
        uint32_t k = own->how.from[i];
        dims[i - b->d] = (tn_reorder_dim){ box->extent[k], box->extent[k], step, stride[k] };
        step *= box->extent[k];
    }
    tn_reorder_block(tn_reorder_kernels_get(), v->bits < 8 ? 8 : v->bits, rank, dims, to, from, NULL, false);
}

static tn_status make_boxes(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out,
                            tn_error *err)
{
    uint64_t width = tn_box_bytes(v);
    uint8_t *buffer, *to = out;
    TN_TRY(tn_worker_buffer(w, v, 1, 2 * n * width, &buffer, err));
    if (v->bits < 8)
        to = buffer + n;        /* a byte each, before they are packed */
    for (uint64_t done = 0; done < n;) {
        const arranged_box b = next_box(v, first + done, n - done);
        tn_box box;
        find_box(v, b.index, b.d, (int64_t)b.rows, &box);
        TN_TRY(tn_view_box(v->input, &box, w, buffer, err));
        put_box(v, &b, &box, buffer, to + done * width);
        done += b.count;
    }
    if (v->bits < 8)
        pack_bytes(out, to, n, v->bits);
    return TN_OK;
}

static tn_status make_arrange(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out,
                              tn_error *err)
{
    const arranging *own = v->state;
    const places p = places_of(v, &own->source);
    if (!own->is_strided)
        return make_boxes(v, first, n, w, out, err);
    if (v->bits < 8)
        return copy_packed(v, &p, first, n, w, out, err);
    copy_elements(&p, first, n, out);
    if (own->source.swap > 1)
        tn_swap_bytes(out, out, n * (v->bits / 8), own->source.swap);
    return TN_OK;
}

static tn_status needs_arrange(const tn_view *v, uint64_t first, uint64_t n, tn_needs *needs, tn_error *err)
{
    for (uint64_t done = 0; done < n;) {
        const arranged_box b = next_box(v, first + done, n - done);
        tn_box box;
        find_box(v, b.index, b.d, (int64_t)b.rows, &box);
        TN_TRY(tn_box_needs(v->input, &box, needs, err));
        done += b.count;
    }
    return TN_OK;
}

uint32_t tn_reorder_source(const tn_view *v, uint32_t i)
{
    const arranging *own = v->state;
    return own->how.from[i];
}

const tn_step tn_step_reorder = {
    .name = "reorder", .describe = describe_reorder, .prepare = prepare_arrange, .make = make_arrange,
    .strided = strided_arrange, .needs = needs_arrange, .is_local = tn_step_is_local,
};

const tn_step tn_step_slice = {
    .name = "slice", .describe = describe_arrange, .prepare = prepare_arrange, .make = make_arrange,
    .strided = strided_arrange, .needs = needs_arrange, .is_local = tn_step_is_local,
};

/* ---- padding ---- */

typedef struct padded {
    const int64_t *shape, *physical;    /* without and with padding, whatever a later step takes it for */
    tn_padding padding;
    tn_padded  record;
    tn_strided source;
    bool       is_strided;      /* copied from there; else from ranges of the input */
} padded;

static tn_status describe_pad(tn_view *v, const void *options, tn_error *err)
{
    const tn_pad_rule *rule = options;
    const int32_t *zero = NULL;
    const float *scale;
    uint32_t rank = v->tensor.rank;
    padded *p = v->state = tn_arena_zalloc(v->arena, 1, sizeof *p);
    int64_t *physical = tn_arena_copy(v->arena, v->parts[0].array.shape, rank * sizeof *physical);
    if (!p || !physical)
        return tn_fail_nomem(err);
    p->shape = v->parts[0].array.shape;
    p->physical = physical;
    TN_TRY(v->tensor.scaling ? tn_view_scales(v->input, &scale, &zero, err) : TN_OK);
    TN_TRY(tn_choose_padding(&v->tensor, rule, zero, physical, &p->padding, err));
    if (rank && memcmp(physical, v->parts[0].array.shape, rank * sizeof *physical) != 0) {
        p->record = (tn_padded){ physical, rule ? rule->value : 0 };
        v->parts[0].padded = &p->record;
    }
    v->grain = v->grain ? v->grain : grain_for(v->bits);
    return tn_view_resize(v, rank, physical, err);
}

static tn_status prepare_pad(tn_view *v, const tn_preparing *p, tn_error *err)
{
    padded *own = v->state;
    TN_TRY(tn_view_prepare(v->input, p, err));
    own->is_strided = v->bits >= 8 && tn_view_strided(v->input, &own->source) && own->source.swap == 1;
    if (own->is_strided || tn_view_has_ranges(v->input))
        return TN_OK;
    return tn_view_fill(v->input, p, err);
}

static places places_of_pad(const tn_view *v, const padded *own)
{
    places p = places_of(v, &own->source);
    p.shape = own->shape;
    p.physical = own->physical;
    p.padding = &own->padding;
    return p;
}

/* How many elements without padding come before number `first` of those with it. */
static uint64_t values_before(const places *p, uint64_t first)
{
    uint64_t values = 0, outer = product(p->physical, 0, p->rank), inner = product(p->shape, 0, p->rank);
    for (uint32_t i = 0; i < p->rank && outer; i++) {
        outer /= (uint64_t)p->physical[i];
        inner = p->shape[i] ? inner / (uint64_t)p->shape[i] : 0;
        uint64_t index = first / outer;
        first %= outer;
        if (index >= (uint64_t)p->shape[i])
            return values + (uint64_t)p->shape[i] * inner;
        values += index * inner;
    }
    return values + (p->rank ? 0 : first);
}

/* The values of the range, one after another, as if they were all of the source. */
static tn_status read_values(const tn_view *v, places *p, uint64_t first, size_t n, tn_worker *w,
                             tn_error *err)
{
    uint64_t begin = values_before(p, first), end = values_before(p, first + n), from = begin / 8 * 8;
    const uint8_t *bytes = (const uint8_t *)"";
    tn_status status = TN_OK;
    tn_dense_strides(p->rank, p->shape, p->stride);
    w->counted = begin;         /* by the block before */
    if (end > from)
        status = tn_view_range(v->input, from, (size_t)(end - from), w, &bytes, err);
    p->source = (const uint8_t *)((uintptr_t)bytes - (uintptr_t)tn_packed_byte(from, p->bits));
    return status;
}

static tn_status make_pad(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out,
                          tn_error *err)
{
    const padded *own = v->state;
    places p = places_of_pad(v, own);
    TN_TRY(own->is_strided ? TN_OK : read_values(v, &p, first, n, w, err));
    if (v->bits < 8)
        return copy_packed(v, &p, first, n, w, out, err);
    copy_elements(&p, first, n, out);
    return TN_OK;
}

static tn_status needs_pad(const tn_view *v, uint64_t first, uint64_t n, tn_needs *needs, tn_error *err)
{
    const padded *own = v->state;
    const places p = places_of_pad(v, own);
    uint64_t begin = values_before(&p, first), end = values_before(&p, first + n);
    return end > begin ? tn_view_needs(v->input, begin, end - begin, needs, err) : TN_OK;
}

const tn_step tn_step_pad = {
    .name = "pad", .describe = describe_pad, .prepare = prepare_pad, .make = make_pad, .needs = needs_pad,
    .is_local = tn_step_is_local,
};
