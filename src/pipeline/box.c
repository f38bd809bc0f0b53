/* pipeline/box.c - some indices of each dimension of a view, read as one dense array.
 *
 * Where what lies between two indices is short, both are read as one range.  So a
 * range is worth its call, and little is read that nobody wants. */
#include "pipeline/box.h"
#include "base/checked.h"
#include "base/error.h"
#include "reorder/layout.h"
#include "tensor/array.h"
#include "tensor/code.h"

enum { GAP = 512 };                         /* elements between two indices that are read too */
#define MOST_BYTES ((uint64_t)1 << 20)      /* of a range that has such gaps */

typedef struct reading {
    const tn_view *view;
    const tn_box  *box;
    uint32_t       rank;
    uint64_t       pitch[TN_MAX_RANK];      /* elements from one index of the box to the next */
    uint64_t       span[TN_MAX_RANK + 1];   /* from the first to the last element of dimensions i ... */
    uint64_t       count[TN_MAX_RANK + 1];  /* and how many of them the box has */
    bool           joined[TN_MAX_RANK + 1]; /* their gaps are short */
    tn_worker     *worker;                  /* or NULL: only needs are asked for */
    tn_needs      *needs;
} reading;

static uint64_t begin(reading *r, const tn_view *v, const tn_box *box)
{
    int64_t stride[TN_MAX_RANK];
    uint64_t at = 0;
    r->view = v;
    r->box = box;
    r->rank = v->parts[0].array.rank;
    tn_dense_strides(r->rank, tn_view_shape(v), stride);
    r->span[r->rank] = r->count[r->rank] = 1;
    r->joined[r->rank] = true;
    for (uint32_t i = r->rank; i-- > 0;) {
        uint64_t extent = (uint64_t)box->extent[i], inner = r->span[i + 1];
        r->pitch[i] = (uint64_t)(box->step[i] * stride[i]);
        r->count[i] = r->count[i + 1] * extent;
        r->span[i] = extent ? (extent - 1) * r->pitch[i] + inner : 0;
        uint64_t gap = r->pitch[i] - inner;
        r->joined[i] = r->joined[i + 1] && (extent < 2 || gap <= GAP || gap <= r->count[i + 1]);
        at += (uint64_t)(box->start[i] * stride[i]);
    }
    return at;
}

/* Indices of dimension d, `rows` of them, from a range that has them all. */
static void gather(const reading *r, uint32_t d, int64_t rows, const uint8_t *from, uint64_t skip,
                   uint8_t *to)
{
    unsigned bits = r->view->bits;
    uint64_t n = r->count[d + (d < r->rank)] * (uint64_t)rows;
    tn_reorder_dim dims[TN_MAX_RANK + 1];
    for (uint32_t i = d; i < r->rank; i++) {
        int64_t extent = i == d ? rows : r->box->extent[i];
        dims[i - d] = (tn_reorder_dim){ extent, extent, (int64_t)r->count[i + 1], (int64_t)r->pitch[i] };
    }
    if (bits >= 8) {
        from += skip * (bits / 8);
        tn_reorder_block(tn_reorder_kernels_get(), bits, r->rank - d, dims, to, from, NULL, false);
        return;
    }
    for (uint64_t k = 0; k < n; k++) {
        uint64_t rest = k, at = skip;
        for (uint32_t i = d; i < r->rank; i++) {
            at += rest / r->count[i + 1] * r->pitch[i];
            rest %= r->count[i + 1];
        }
        to[k] = (uint8_t)tn_packed_get(from, at, bits);
    }
}

/* One range: `rows` indices of dimension d from element `at` on. */
static tn_status read_range(const reading *r, uint32_t d, uint64_t at, uint64_t rows, uint8_t *to,
                            tn_error *err)
{
    uint64_t n = d < r->rank ? (rows - 1) * r->pitch[d] + r->span[d + 1] : 1, first = at / 8 * 8;
    const uint8_t *bytes;
    if (!r->worker)
        return tn_view_needs(r->view, first, at - first + n, r->needs, err);
    tn_status status = tn_view_range(r->view, first, (size_t)(at - first + n), r->worker, &bytes, err);
    if (!status)
        gather(r, d, (int64_t)rows, bytes, at - first, to);
    return status;
}

static tn_status read_from(const reading *r, uint32_t d, uint64_t at, uint8_t *to, tn_error *err)
{
    uint64_t most = MOST_BYTES * 8 / r->view->bits, width = tn_box_bytes(r->view);
    if (d == r->rank || (r->joined[d] && r->span[d] <= most))
        return read_range(r, d, at, d < r->rank ? (uint64_t)r->box->extent[d] : 1, to, err);
    bool joined = r->joined[d] && r->span[d + 1] <= most;
    uint64_t extent = (uint64_t)r->box->extent[d];
    uint64_t some = joined ? (most - r->span[d + 1]) / r->pitch[d] + 1 : 1;
    for (uint64_t i = 0; i < extent; i += some) {
        uint64_t rows = tn_min_u64(some, extent - i);
        TN_TRY(joined ? read_range(r, d, at, rows, to, err) : read_from(r, d + 1, at, to, err));
        at += rows * r->pitch[d];
        to += r->worker ? rows * r->count[d + 1] * width : 0;
    }
    return TN_OK;
}

tn_status tn_view_box(const tn_view *v, const tn_box *box, tn_worker *w, uint8_t *out, tn_error *err)
{
    reading r = { .worker = w };
    uint64_t at = begin(&r, v, box);
    return r.count[0] ? read_from(&r, 0, at, out, err) : TN_OK;
}

tn_status tn_box_needs(const tn_view *v, const tn_box *box, tn_needs *needs, tn_error *err)
{
    reading r = { .needs = needs };
    uint8_t nothing[1];
    uint64_t at = begin(&r, v, box);
    return r.count[0] ? read_from(&r, 0, at, nothing, err) : TN_OK;
}
