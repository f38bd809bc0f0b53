/* pipeline/arrange.c - the data of a tensor in another order, slab by slab. */
#include "pipeline/arrange.h"
#include "base/error.h"
#include "store/load.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "reorder/layout.h"

#include <stdlib.h>
#include <string.h>

/* About all slabs of all workers together (each has a few more buffers of that
 * size), and the bounds of one: large enough that columns of a matrix come many
 * at a time. */
#define ALL_SLABS ((uint64_t)256 << 20)
#define MAX_SLAB  ((uint64_t)8 << 20)
#define MIN_SLAB  ((uint64_t)1 << 20)

/* Buffers of one worker.  Elements narrower than a byte have one each here. */
typedef struct worker {
    uint8_t *gathered;          /* in the new order, without padding, of the old type */
    uint8_t *changed;           /* the same of the new type */
    uint8_t *packed[2];         /* both as the change wants them, where elements are narrower than a byte */
} worker;

typedef struct arranging {
    tn_arranging       *a;
    const tn_arrange   *how;
    const tn_reorder_kernels *kernels;
    tn_spill       decoded;
    const uint8_t *source;      /* element 0 */
    int64_t        stride[TN_MAX_RANK];     /* of the input, in the output's order */
    unsigned       from_bits;
    unsigned       swap;        /* unit of bytes to reverse, or 1 */
    uint32_t       cut;         /* slabs are runs of this dimension */
    int64_t        rows;        /* of it in a slab */
    uint64_t       per_outer;   /* slabs for each index of the dimensions before */
    uint64_t       items;
    uint64_t       slab_elements;
    worker        *workers;
    uint8_t      **results;
    uint64_t      *result_elements;
    bool          *result_packed; /* elements narrower than a byte: the result has them packed already */
    uint8_t       *out;         /* emit(): elements narrower than a byte, packed */
    unsigned       pending;     /* elements that wait in out[] for their byte to be full */
    uint64_t       emitted;     /* elements, padding included */
} arranging;

/* Where a slab lies. */
typedef struct slab {
    int64_t  index[TN_MAX_RANK];    /* of the dimensions before the cut, and the first row of that */
    int64_t  rows;                  /* with padding */
    int64_t  filled;                /* rows that have values: 0 .. rows */
    int64_t  from;                  /* element of the input */
    uint64_t first;                 /* number of the first value in the output without padding */
} slab;

static unsigned bytes_of(unsigned bits)
{
    return bits < 8 ? 1 : bits / 8;
}

static uint64_t product(const int64_t *extent, uint32_t from, uint32_t to)
{
    uint64_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= (uint64_t)extent[i];
    return n;
}

/* ---- geometry ---- */

/* The dimension to cut: the first whose inner part fits a slab. */
static void choose_cut(arranging *r, unsigned jobs)
{
    const tn_arrange *how = r->how;
    unsigned from = bytes_of(r->from_bits), to = bytes_of(how->to_bits), unit = from > to ? from : to;
    uint64_t budget = ALL_SLABS / (4 * jobs), inner = 1;
    budget = r->a->slab ? r->a->slab : budget > MAX_SLAB ? MAX_SLAB : budget < MIN_SLAB ? MIN_SLAB : budget;
    uint64_t room = budget > unit ? budget / unit : 1;
    r->cut = how->rank;
    while (r->cut > 1 && inner * (uint64_t)how->physical[r->cut - 1] <= room)
        inner *= (uint64_t)how->physical[--r->cut];
    if (how->rank == 0) {
        r->rows = 1;
        r->per_outer = r->items = 1;
        r->slab_elements = 1;
        return;
    }
    if (r->cut > 0)             /* dimensions from `cut` on fit whole: runs of the one before */
        r->cut--;
    int64_t extent = how->physical[r->cut];
    r->rows = room / inner < (uint64_t)extent ? (int64_t)(room / inner) : extent;
    r->per_outer = ((uint64_t)extent + (uint64_t)r->rows - 1) / (uint64_t)r->rows;
    r->items = product(how->physical, 0, r->cut) * r->per_outer;
    r->slab_elements = (uint64_t)r->rows * inner;
}

static slab slab_at(const arranging *r, uint64_t item)
{
    const tn_arrange *how = r->how;
    slab s = { .rows = 1, .filled = 1 };
    if (how->rank == 0)
        return s;
    int64_t first_row = (int64_t)(item % r->per_outer) * r->rows, left = how->physical[r->cut] - first_row;
    uint64_t outer = item / r->per_outer;
    bool outside = false;
    s.rows = left < r->rows ? left : r->rows;
    s.filled = how->shape[r->cut] - first_row;
    s.filled = s.filled < 0 ? 0 : s.filled > s.rows ? s.rows : s.filled;
    s.index[r->cut] = first_row;
    for (uint32_t i = r->cut; i-- > 0; outer /= (uint64_t)how->physical[i]) {
        s.index[i] = (int64_t)(outer % (uint64_t)how->physical[i]);
        outside |= s.index[i] >= how->shape[i];
    }
    s.filled = outside ? 0 : s.filled;
    for (uint32_t i = 0; i <= r->cut && s.filled; i++) {
        s.from += s.index[i] * r->stride[i];
        s.first = s.first * (uint64_t)how->shape[i] + (uint64_t)s.index[i];
    }
    s.first *= product(how->shape, r->cut + 1, how->rank);
    return s;
}

static uint64_t values_of(const arranging *r, const slab *s)
{
    return r->how->rank ? (uint64_t)s->filled * product(r->how->shape, r->cut + 1, r->how->rank) : 1;
}

static uint64_t elements_of(const arranging *r, const slab *s)
{
    return r->how->rank ? (uint64_t)s->rows * product(r->how->physical, r->cut + 1, r->how->rank) : 1;
}

/* The dimensions of a slab as both sides have them: the destination dense,
 * with padding or without, the source as it lies or dense without padding. */
static uint32_t slab_dims(const arranging *r, const slab *s, bool padded, bool dense_source,
                          tn_reorder_dim *dims)
{
    const tn_arrange *how = r->how;
    int64_t dst_step = 1, src_step = 1;
    uint32_t n = how->rank - (how->rank ? r->cut : 0);
    for (uint32_t i = n; i-- > 0;) {
        uint32_t k = r->cut + i;
        int64_t value = i ? how->shape[k] : s->filled, physical = i ? how->physical[k] : s->rows;
        dims[i] = (tn_reorder_dim){ padded ? physical : value, value, dst_step,
                                    dense_source ? src_step : r->stride[k] };
        dst_step *= dims[i].dst_extent;
        src_step *= value;
    }
    return n;
}

/* ---- elements narrower than a byte ---- */

/* Codes of the input, one per byte, in the new order. */
static void gather_codes(const arranging *r, const slab *s, uint8_t *to)
{
    tn_reorder_dim dims[TN_MAX_RANK];
    int64_t index[TN_MAX_RANK] = { 0 };
    uint32_t n = slab_dims(r, s, false, false, dims);
    uint64_t at = (uint64_t)s->from, count = values_of(r, s);
    for (uint64_t i = 0; i < count; i++) {
        to[i] = (uint8_t)tn_packed_get(r->source, at, r->from_bits);
        for (uint32_t k = n; k-- > 0;) {
            at += (uint64_t)dims[k].src_stride;
            if (++index[k] < dims[k].src_extent)
                break;
            at -= (uint64_t)(dims[k].src_stride * dims[k].src_extent);
            index[k] = 0;
        }
    }
}

static void pack(uint8_t *to, size_t first, const uint8_t *codes, size_t n, unsigned bits)
{
    for (size_t i = 0; i < n; i++)
        tn_packed_put(to, first + i, bits, codes[i]);
}

static void unpack(uint8_t *codes, const uint8_t *from, size_t n, unsigned bits)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint8_t)tn_packed_get(from, i, bits);
}

/* ---- making a slab ---- */

/* Values in the new order, without padding. */
static void gather(const arranging *r, const slab *s, uint8_t *to)
{
    tn_reorder_dim dims[TN_MAX_RANK];
    uint64_t n = values_of(r, s);
    if (r->from_bits < 8) {
        gather_codes(r, s, to);
        return;
    }
    uint32_t rank = slab_dims(r, s, false, false, dims);
    tn_reorder_block(r->kernels, r->from_bits, rank, dims, to,
                     r->source + (size_t)s->from * (r->from_bits / 8), NULL, false);
    if (r->swap > 1)
        tn_swap_bytes(to, to, (size_t)n * (r->from_bits / 8), r->swap);
}

/* Gathered values become elements of the new type. */
static tn_status change(const arranging *r, const slab *s, worker *own, tn_error *err)
{
    const tn_change *c = r->how->change;
    size_t n = (size_t)values_of(r, s);
    const uint8_t *in = own->gathered;
    uint8_t *out = own->changed;
    if (c->from_bits < 8) {
        pack(own->packed[0], 0, in, n, c->from_bits);
        in = own->packed[0];
    }
    if (c->to_bits < 8)
        out = own->packed[1];
    tn_status status = c->apply(c->context, s->first, in, n, out, err);
    if (!status && c->to_bits < 8)
        unpack(own->changed, out, n, c->to_bits);
    return status;
}

/* What padding consists of at an index along the axis. */
static const void *fill_at(const tn_arrange *how, int64_t index)
{
    bool known = how->fills && (how->axis < 0 || index < how->shape[how->axis]);
    return known ? (const void *)&how->fills[how->axis < 0 ? 0 : index] : how->fill;
}

static bool has_padding(uint32_t rank, const tn_reorder_dim *dims)
{
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i].dst_extent != dims[i].src_extent)
            return true;
    return false;
}

/* Values without padding (at `from`, or still in the input) become the slab.
 * Where padding differs along a dimension of the slab, index by index of that. */
static void pad(const arranging *r, const slab *s, const uint8_t *from, uint8_t *to)
{
    const tn_arrange *how = r->how;
    tn_reorder_dim dims[TN_MAX_RANK];
    unsigned bits = how->to_bits < 8 ? 8 : how->to_bits;
    uint32_t rank = slab_dims(r, s, true, from != NULL, dims);
    const uint8_t *src = from ? from : r->source + (s->filled ? (size_t)s->from * (bits / 8) : 0);
    if (!how->fills || how->axis < (int32_t)r->cut || !has_padding(rank, dims)) {
        int64_t index = how->axis < 0 ? 0 : s->index[how->axis];
        tn_reorder_block(r->kernels, bits, rank, dims, to, src, fill_at(how, index), false);
        return;
    }
    tn_reorder_dim *axis = &dims[(uint32_t)how->axis - r->cut], whole = *axis;
    int64_t first = how->axis == (int32_t)r->cut ? s->index[r->cut] : 0;
    for (int64_t i = 0; i < whole.dst_extent; i++) {
        bool inside = i < whole.src_extent;
        axis->dst_extent = 1;
        axis->src_extent = inside;
        tn_reorder_block(r->kernels, bits, rank, dims, to + (size_t)(i * whole.dst_stride) * (bits / 8),
                         inside ? src + (size_t)(i * whole.src_stride) * (bits / 8) : src,
                         fill_at(how, first + i), false);
    }
}

/* Elements narrower than a byte that begin on one on both sides, and end on one, are moved as they are. */
static bool move_packed(const arranging *r, const slab *s, uint64_t item, uint8_t *to)
{
    const tn_arrange *how = r->how;
    tn_reorder_dim dims[TN_MAX_RANK];
    uint64_t n = elements_of(r, s);
    bool regular = r->per_outer == r->items || how->physical[r->cut] % r->rows == 0;
    bool aligned = (uint64_t)s->from * r->from_bits % 8 == 0 &&
                   (r->items == 1 || (regular && r->slab_elements % 8 == 0));
    if (how->change || how->fills || r->from_bits >= 8 || !aligned || (n % 8 && item + 1 < r->items))
        return false;
    uint32_t rank = slab_dims(r, s, true, false, dims);
    to[(n * how->to_bits - 1) / 8] = 0;         /* the bits that fill the last byte */
    tn_reorder_block(r->kernels, how->to_bits, rank, dims, to,
                     r->source + (s->filled ? (size_t)s->from * r->from_bits / 8 : 0), how->fill, false);
    return true;
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    arranging *r = context;
    worker *own = &r->workers[use.scratch];
    uint8_t *to = r->results[use.result];
    slab s = slab_at(r, item);
    r->result_elements[use.result] = elements_of(r, &s);
    r->result_packed[use.result] = move_packed(r, &s, item, to);
    if (r->result_packed[use.result])
        return TN_OK;
    if (!r->how->change && r->swap == 1 && r->from_bits >= 8) {
        pad(r, &s, NULL, to);
        return TN_OK;
    }
    if (s.filled)
        gather(r, &s, own->gathered);
    tn_status status = r->how->change && s.filled ? change(r, &s, own, err) : TN_OK;
    if (!status)
        pad(r, &s, r->how->change ? own->changed : own->gathered, to);
    return status;
}

/* ---- emitting ---- */

static tn_status emit_bytes(arranging *r, const uint8_t *bytes, size_t n, tn_error *err)
{
    uint64_t done = r->a->part->nbytes, all = product(r->how->physical, 0, r->how->rank);
    if (r->emitted < all)
        done = (uint64_t)((double)done * ((double)r->emitted / (double)all));
    return r->a->emit(r->a->context, bytes, n, done, err);
}

/* Bits go out when their byte is full, or all are there. */
static tn_status emit_codes(arranging *r, const uint8_t *codes, size_t n, bool last, tn_error *err)
{
    unsigned bits = r->how->to_bits;
    size_t elements = r->pending + n, whole = last ? elements : elements / 8 * 8,
           bytes = (whole * bits + 7) / 8;
    memset(r->out + (r->pending * bits + 7) / 8, 0, (elements * bits + 7) / 8 - (r->pending * bits + 7) / 8);
    pack(r->out, r->pending, codes, n, bits);
    tn_status status = emit_bytes(r, r->out, bytes, err);
    r->pending = (unsigned)(elements - whole);
    memmove(r->out, r->out + bytes, (r->pending * bits + 7) / 8);
    return status;
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    arranging *r = context;
    size_t n = (size_t)r->result_elements[result];
    r->emitted += n;
    if (r->result_packed[result])       /* then nothing is pending: it begins on a byte */
        return emit_bytes(r, r->results[result], (n * r->how->to_bits + 7) / 8, err);
    if (r->how->to_bits < 8)
        return emit_codes(r, r->results[result], n, item + 1 == r->items, err);
    return emit_bytes(r, r->results[result], n * (r->how->to_bits / 8), err);
}

/* ---- the input ---- */

/* Nothing to write as yet: a chance to cancel. */
static tn_status tick(void *context, tn_error *err)
{
    const tn_arranging *a = context;
    return a->emit(a->context, NULL, 0, 0, err);
}

static tn_loading loading_of(tn_arranging *a)
{
    return (tn_loading){ .in = a->in, .tensor = a->tensor, .beside = a->beside, .tick = tick, .context = a };
}

static tn_status find_source(arranging *r, tn_error *err)
{
    const tn_part *p = r->a->part;
    const tn_stored *s = tn_stored_of(p);
    const int64_t *stored_stride = tn_stored_more_of(p)->stride;
    const tn_dtype_info *type = tn_dtype_get(p->array.dtype);
    int64_t dense[TN_MAX_RANK];
    bool raw = s->encoding == TN_ENCODING_RAW;
    r->from_bits = type->bits;
    r->swap = 1;
    r->source = raw ? tn_source_view(r->a->in->shards[s->shard].source, s->offset, s->size) : NULL;
    bool mapped = r->source || p->nbytes == 0;
    tn_loading loading = loading_of(r->a);
    tn_status status = mapped ? tn_load_check(&loading, p, err) : tn_load_part(&loading, p, &r->decoded, err);
    r->source = mapped ? r->source : r->decoded.bytes;
    if (mapped && raw && s->order != TN_HOST_ORDER)
        r->swap = type->swap_bytes;
    const int64_t *stride = mapped && stored_stride ? stored_stride : dense;
    tn_dense_strides(p->array.rank, p->array.shape, dense);
    for (uint32_t i = 0; i < r->how->rank; i++)
        r->stride[i] = stride[r->how->order[i]];
    return status;
}

/* ---- all ---- */

static tn_status make_buffers(arranging *r, tn_error *err)
{
    unsigned jobs = tn_pool_jobs(r->a->pool), results = tn_pool_results(r->a->pool);
    size_t from = (size_t)r->slab_elements * bytes_of(r->from_bits),
           to = (size_t)r->slab_elements * bytes_of(r->how->to_bits);
    r->workers = calloc(jobs, sizeof *r->workers);
    r->results = calloc(results, sizeof *r->results);
    r->result_elements = calloc(results, sizeof *r->result_elements);
    r->result_packed = calloc(results, sizeof *r->result_packed);
    r->out = malloc((size_t)r->slab_elements + 16);
    bool good = r->workers && r->results && r->result_elements && r->result_packed && r->out;
    for (unsigned i = 0; i < jobs && good; i++) {
        worker *own = &r->workers[i];
        own->gathered = malloc(from + 1);
        own->changed = malloc(to + 1);
        own->packed[0] = malloc((size_t)r->slab_elements + 1);
        own->packed[1] = malloc((size_t)r->slab_elements + 1);
        good = own->gathered && own->changed && own->packed[0] && own->packed[1];
    }
    for (unsigned i = 0; i < results && good; i++)
        good = (r->results[i] = malloc(to + 1)) != NULL;
    return good ? TN_OK : tn_fail_nomem(err);
}

static void free_all(arranging *r)
{
    for (unsigned i = 0; r->workers && i < tn_pool_jobs(r->a->pool); i++) {
        free(r->workers[i].gathered);
        free(r->workers[i].changed);
        free(r->workers[i].packed[0]);
        free(r->workers[i].packed[1]);
    }
    for (unsigned i = 0; r->results && i < tn_pool_results(r->a->pool); i++)
        free(r->results[i]);
    free(r->workers);
    free(r->results);
    free(r->result_elements);
    free(r->result_packed);
    free(r->out);
    tn_spill_free(&r->decoded);
}

tn_status tn_arrange_run(tn_arranging *a, tn_error *err)
{
    arranging r = { .a = a, .how = a->how, .kernels = tn_reorder_kernels_get() };
    if (product(a->how->physical, 0, a->how->rank) == 0) {
        tn_loading loading = loading_of(a);
        return tn_load_check(&loading, a->part, err);
    }
    tn_status status = find_source(&r, err);
    if (!status) {
        choose_cut(&r, tn_pool_jobs(a->pool));
        status = make_buffers(&r, err);
    }
    if (!status)
        status = tn_pool_run(a->pool, r.items, &(tn_ordered){ work, emit, &r }, err);
    free_all(&r);
    return status;
}
