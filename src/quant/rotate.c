/* quant/rotate.c - rotations: multiply each block along a dimension by an orthogonal
 * matrix, or undo it.
 *
 * Row k of Walsh's matrix is row place(k) of Hadamard's matrix H: x M = z H with
 * z[place(k)] = x[k].  H is symmetric, so x M^T takes the same steps with the
 * reordering last. */
#include "quant/rotate.h"

#include "base/checked.h"
#include "base/random.h"
#include "kernels/rotate/table.h"

#include <math.h>
#include <string.h>

enum { ITEM = 1 << 16 };        /* values per item */

typedef struct rotation_job {
    const tn_rotate_kernels *kernels;
    tn_rotate_step step;
    uint8_t  in[TN_ROTATE_MAX], out[TN_ROTATE_MAX];     /* orders of the permuted values */
    bool     walsh;
    uint64_t inner;
    uint64_t groups;            /* of columns, per block of rows */
    uint64_t units;             /* all groups */
    uint64_t per_item;          /* groups */
    float   *x;
} rotation_job;

/* ---- the matrix ---- */

/* The row of Hadamard's matrix with k sign changes: the Gray code of k with its bits reversed. */
static unsigned walsh_row(unsigned k, unsigned size)
{
    unsigned gray = k ^ k >> 1, row = 0;
    for (unsigned bit = 1; bit < size; bit *= 2) {
        row = row << 1 | (gray & 1);
        gray >>= 1;
    }
    return row;
}

static bool negated(const tn_rotation *r, unsigned row)
{
    return r->random && tn_random_at(r->seed, row) >> 63;
}

static float entry(unsigned size)
{
    return 1 / sqrtf((float)size);
}

void tn_rotate_matrix(const tn_rotation *r, float *m)
{
    float one = entry(r->size);
    for (unsigned row = 0; row < r->size; row++) {
        unsigned h = r->walsh ? walsh_row(row, r->size) : row;
        for (unsigned column = 0; column < r->size; column++) {
            bool minus = __builtin_parity(h & column) != negated(r, row);
            *m++ = minus ? -one : one;
        }
    }
}

/* ---- rotation ---- */

static void prepare(rotation_job *w, const tn_rotation *r, bool back)
{
    float one = entry(r->size);
    w->step.size = r->size;
    for (unsigned i = 0; i < TN_ROTATE_MAX; i++) {
        unsigned k = i % r->size, place = r->walsh ? walsh_row(k, r->size) : k, at = i - k + place;
        bool minus = negated(r, k);
        w->in[k] = (uint8_t)(back ? k : place);
        w->out[k] = (uint8_t)(back ? place : k);
        w->step.sign[at] = minus && !back ? UINT32_C(1) << 31 : 0;
        w->step.factor[at] = minus && back ? -one : one;
    }
}

/* Columns that do not fill a vector are padded with zeros in a buffer. */
static void rotate_narrow(const rotation_job *w, float *x, size_t columns)
{
    float buffer[TN_ROTATE_MAX][TN_ROTATE_LANES];
    memset(buffer, 0, sizeof buffer);
    for (size_t k = 0; k < w->step.size; k++)
        memcpy(buffer[k], x + k * w->inner, columns * sizeof *x);
    w->kernels->columns(buffer[0], TN_ROTATE_LANES, w->in, w->out, &w->step);
    for (size_t k = 0; k < w->step.size; k++)
        memcpy(x + k * w->inner, buffer[k], columns * sizeof *x);
}

static void rotate_group(const rotation_job *w, uint64_t unit)
{
    uint64_t first = unit % w->groups * TN_ROTATE_LANES;
    float *x = w->x + unit / w->groups * w->step.size * w->inner + first;
    if (w->inner - first < TN_ROTATE_LANES)
        rotate_narrow(w, x, (size_t)(w->inner - first));
    else
        w->kernels->columns(x, w->inner, w->in, w->out, &w->step);
}

static void rotate_in_order(const rotation_job *w, float *x, uint64_t blocks)
{
    if (w->walsh)
        w->kernels->permuted(x, (size_t)blocks, w->in, w->out, &w->step);
    else
        w->kernels->blocks(x, x, (size_t)blocks, &w->step);
}

static void rotate_units(const rotation_job *w, uint64_t first, uint64_t n)
{
    if (w->inner == 1)
        rotate_in_order(w, w->x + first * w->step.size, n);
    else
        for (uint64_t i = 0; i < n; i++)
            rotate_group(w, first + i);
}

static tn_status rotate_item(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const rotation_job *w = context;
    uint64_t first = item * w->per_item;
    (void)use;
    (void)err;
    rotate_units(w, first, tn_min_u64(w->units - first, w->per_item));
    return TN_OK;
}

/* All groups of x, which has the shape [blocks][size][inner]. */
static rotation_job job_for(const tn_rotation *r, bool back, uint64_t blocks, uint64_t inner, float *x)
{
    uint64_t width = inner == 1 ? 1 : TN_ROTATE_LANES;
    rotation_job w = { .kernels = tn_rotate_kernels_get(), .walsh = r->walsh, .inner = inner,
                       .groups = tn_div_up_u64(inner, width), .per_item = ITEM / (r->size * width), .x = x };
    w.units = blocks * w.groups;
    prepare(&w, r, back);
    return w;
}

void tn_rotate_blocks(const tn_rotation *r, bool back, uint64_t blocks, uint64_t inner, float *x)
{
    const rotation_job w = job_for(r, back, blocks, inner, x);
    rotate_units(&w, 0, w.units);
}

tn_status tn_rotate(const tn_rotation *r, bool back, uint64_t outer, uint64_t extent, uint64_t inner,
                    float *x, tn_pool *pool, tn_error *err)
{
    if (r->size == 0 || outer == 0 || extent == 0 || inner == 0)
        return TN_OK;
    if (extent % r->size)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a rotation of %u values needs a dimension that is a multiple of %u but found %llu",
                       r->size, r->size, (unsigned long long)extent);
    rotation_job w = job_for(r, back, outer * (extent / r->size), inner, x);
    tn_ordered task = { .work = rotate_item, .context = &w };
    return tn_pool_run(pool, tn_div_up_u64(w.units, w.per_item), &task, err);
}
