/* pipeline/reform.c - a tensor of a file in another form. */
#include "pipeline/reform.h"
#include "base/error.h"
#include "base/kept.h"
#include "store/load.h"

#include <stdlib.h>
#include <string.h>

struct tn_form_conversion {
    tn_loaded     source;       /* the tensor, whose parts all have their data */
    tn_sparse_conversion *reforming;    /* of dense, coo and csr; else NULL: its values are made dense */
    tn_tensor     dense;
    tn_part       data;
    uint64_t      count;        /* of the values */
};

/* ---- the input ---- */

static tn_status begin_values(tn_form_conversion *r, uint64_t limit, tn_error *err)
{
    const tn_tensor *t = &r->source.tensor;
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    uint64_t stored = 0;
    if (!type || type->bits < 8)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "its elements are narrower than a byte");
    for (uint32_t k = 0; k < t->nparts; k++)
        stored += t->parts[k].nbytes;
    r->data = (tn_part){ .role = tn_form_get(TN_FORM_DENSE)->roles[0],
                         .array = { t->dtype, t->rank, t->shape, NULL } };
    r->dense = (tn_tensor){ .name = t->name, .form = TN_FORM_DENSE, .dtype = t->dtype, .rank = t->rank,
                            .shape = t->shape, .parts = &r->data, .nparts = 1, .layout = t->layout };
    if (tn_shape_count(t->rank, t->shape, &r->count) || tn_array_nbytes(&r->data.array, &r->data.nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "dense it would take 2^63 bytes or more");
    limit = tn_kept_limit(limit, stored);
    if (r->data.nbytes > limit)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_MAX_BYTES, NULL,
                         "dense it would take %llu bytes, more than the %llu allowed",
                         (unsigned long long)r->data.nbytes, (unsigned long long)limit);
    return TN_OK;
}

static tn_status begin(tn_form_conversion *r, const tn_form_task *task, tn_pool *pool, tn_error *err)
{
    tn_status status = tn_form_get(task->tensor->form)->values
                           ? begin_values(r, task->options.limit, err)
                           : tn_sparse_begin(&r->source.tensor, task->form, &task->options, pool,
                                             &r->reforming, err);
    return tn_in_tensor(status, task->tensor->name, err);
}

tn_status tn_form_conversion_new(const tn_form_task *task, tn_pool *pool, tn_form_conversion **reformed,
                                 tn_error *err)
{
    tn_loading loading = { .in = task->in, .tensor = task->tensor, .beside = task->beside,
                           .limit = task->options.limit,
                           .tick = task->tick, .context = task->context };
    tn_form_conversion *r = calloc(1, sizeof *r);
    if (!r)
        return tn_fail_nomem(err);
    tn_status status = tn_load(&loading, &r->source, err);
    if (!status)
        status = begin(r, task, pool, err);
    if (status)
        tn_form_conversion_free(r);
    else
        *reformed = r;
    return status;
}

void tn_form_conversion_free(tn_form_conversion *r)
{
    if (!r)
        return;
    tn_sparse_end(r->reforming);
    tn_loaded_free(&r->source);
    free(r);
}

const tn_tensor *tn_form_conversion_result(const tn_form_conversion *r)
{
    return r->reforming ? tn_sparse_result(r->reforming) : &r->dense;
}

bool tn_form_conversion_is_large(const tn_form_conversion *r)
{
    return r->source.decoded || (r->reforming && tn_sparse_is_sorted_copy(r->reforming));
}

/* ---- the output ---- */

typedef struct writing {
    const tn_form_conversion *r;
    tn_form_output  *o;
    size_t    width;            /* bytes of the part for each entry as the reforming makes it... */
    size_t    out_width;        /* ...and as it goes out */
    uint8_t **made, **changed;  /* one per result each */
    size_t   *sizes;
} writing;

/* Makes a block of the part: n entries from the first one on. */
static tn_status make_block(const writing *w, uint64_t item, uint8_t *to, uint64_t *first, uint64_t *n,
                            tn_error *err)
{
    const tn_form_conversion *r = w->r;
    if (r->reforming) {
        tn_sparse_place(r->reforming, item, first, n);
        tn_sparse_make(r->reforming, item, w->o->part == 0 ? to : NULL, w->o->part == 0 ? NULL : to);
        return TN_OK;
    }
    *first = item * TN_SPARSE_BLOCK;
    *n = r->count - *first < TN_SPARSE_BLOCK ? r->count - *first : TN_SPARSE_BLOCK;
    const tn_tensor *t = &r->source.tensor;
    return tn_form_get(t->form)->values(t, *first, (size_t)*n, to, err);
}

static uint64_t count_blocks(const tn_form_conversion *r)
{
    if (r->reforming)
        return tn_sparse_blocks(r->reforming);
    return r->count / TN_SPARSE_BLOCK + (r->count % TN_SPARSE_BLOCK != 0);
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    writing *w = context;
    const tn_change *c = w->o->change;
    uint8_t *to = w->made[use.result];
    uint64_t first, n;
    tn_status status = make_block(w, item, to, &first, &n, err);
    if (status)
        return status;
    w->sizes[use.result] = (size_t)n * w->out_width;
    return c && n ? c->apply(c->context, first, to, (size_t)n, w->changed[use.result], err) : TN_OK;
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    writing *w = context;
    (void)item;
    return w->o->emit(w->o->context, w->o->change ? w->changed[result] : w->made[result], w->sizes[result],
                      err);
}

static tn_status make_buffers(writing *w, unsigned results, tn_error *err)
{
    w->made = calloc(results, sizeof *w->made);
    w->changed = calloc(results, sizeof *w->changed);
    w->sizes = calloc(results, sizeof *w->sizes);
    bool good = w->made && w->changed && w->sizes;
    for (unsigned i = 0; i < results && good; i++) {
        w->made[i] = malloc((size_t)TN_SPARSE_BLOCK * w->width + 1);
        w->changed[i] = w->o->change ? malloc((size_t)TN_SPARSE_BLOCK * w->out_width + 1) : NULL;
        good = w->made[i] && (w->changed[i] || !w->o->change);
    }
    return good ? TN_OK : tn_fail_nomem(err);
}

static void free_buffers(writing *w, unsigned results)
{
    for (unsigned i = 0; i < results; i++) {
        if (w->made)
            free(w->made[i]);
        if (w->changed)
            free(w->changed[i]);
    }
    free(w->made);
    free(w->changed);
    free(w->sizes);
}

/* What is in memory already, in pieces so that progress is seen; nothing at all in one. */
static tn_status write_bytes(tn_form_output *o, const uint8_t *bytes, uint64_t nbytes, tn_error *err)
{
    tn_status status = nbytes ? TN_OK : o->emit(o->context, bytes, 0, err);
    for (uint64_t at = 0; at < nbytes && !status; at += TN_WINDOW)
        status =
            o->emit(o->context, bytes + at, (size_t)(nbytes - at < TN_WINDOW ? nbytes - at : TN_WINDOW), err);
    return status;
}

tn_status tn_form_conversion_write(const tn_form_conversion *r, tn_form_output *o, tn_error *err)
{
    const tn_tensor *t = tn_form_conversion_result(r);
    const tn_part *p = &t->parts[o->part];
    if (o->part == 2 || !p->nbytes)
        return write_bytes(o, o->part == 2 ? tn_sparse_indptr(r->reforming) : (const uint8_t *)"", p->nbytes,
                           err);
    unsigned results = tn_pool_results(o->pool), bytes = tn_dtype_get(p->array.dtype)->bits / 8;
    writing w = { .r = r,
                  .o = o,
                  .width =
                      (size_t)bytes * (p->array.rank == 2 && o->part == 1 ? (size_t)p->array.shape[1] : 1) };
    w.out_width = o->change ? o->change->to_bits / 8 : w.width;
    tn_status status = make_buffers(&w, results, err);
    if (!status)
        status = tn_pool_run(o->pool, count_blocks(r), &(tn_ordered){ work, emit, &w }, err);
    free_buffers(&w, results);
    return status;
}
