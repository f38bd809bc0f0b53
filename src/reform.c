/* reform.c - a tensor of a file in another form. */
#include "reform.h"
#include "base/error.h"
#include "spool.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 3 };             /* of dense, coo and csr at most */

struct tn_reformed {
    tn_tensor     source;       /* the tensor, whose parts all have their data */
    tn_part       parts[PARTS];
    tn_spool      spools[PARTS];
    bool          spooled;
    tn_reforming *reforming;
};

/* ---- the input ---- */

/* A few bytes that are decoded into very many would fill the disk. */
static tn_status check_spool(const tn_reform_task *task, const tn_part *p, tn_error *err)
{
    uint64_t stored = tn_part_stored(task->tensor, p).size, most = task->options.limit;
    if (!most && __builtin_mul_overflow(stored, 1000, &most))
        most = UINT64_MAX;
    if (!task->options.limit && most < UINT64_C(1) << 30)
        most = UINT64_C(1) << 30;
    if (p->nbytes <= most)
        return TN_OK;
    return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET, "tensor %s: part %s is decoded into %llu bytes, more than the %llu allowed (--max-bytes)",
                   tn_quote_z(task->tensor->name).text, tn_quote_z(p->role).text, (unsigned long long)p->nbytes, (unsigned long long)most);
}

static tn_status load_part(const tn_reform_task *task, tn_reformed *r, uint32_t k, bool *output_failed, tn_error *err)
{
    tn_part *p = &r->parts[k];
    tn_spooling s = { .in = task->in, .tensor = task->tensor, .part = &task->tensor->parts[k], .beside = task->beside,
                      .tick = task->tick, .context = task->context };
    tn_status status = tn_part_readable(task->tensor, s.part, err);
    if (status)
        return status;
    if (p->data || !p->nbytes) {
        p->data = p->data ? p->data : "";
        status = tn_spool_check(&s, err);
        *output_failed = s.output_failed;
        return status;
    }
    status = check_spool(task, s.part, err);
    if (status)
        return status;
    status = tn_spool_part(&s, &r->spools[k], err);
    r->spooled = true;
    *output_failed = s.output_failed;
    p->data = r->spools[k].bytes;
    return status;
}

tn_status tn_reformed_new(const tn_reform_task *task, tn_pool *pool, tn_reformed **reformed, bool *output_failed, tn_error *err)
{
    const tn_tensor *t = task->tensor;
    tn_reformed *r = calloc(1, sizeof *r);
    tn_status status = r ? TN_OK : tn_fail_nomem(err);
    tn_error why;
    if (status)
        return status;
    r->source = *t;
    r->source.parts = r->parts;
    for (uint32_t k = 0; k < t->nparts && k < PARTS && !status; k++) {
        r->parts[k] = t->parts[k];
        status = load_part(task, r, k, output_failed, err);
    }
    if (!status && tn_reform_begin(&r->source, task->form, &task->options, pool, &r->reforming, &why)) {
        status = why.status;
        tn_fail(err, status, why.offset, "tensor %s: %s", tn_quote_z(t->name).text, why.text);
    }
    if (status)
        tn_reformed_free(r);
    else
        *reformed = r;
    return status;
}

void tn_reformed_free(tn_reformed *r)
{
    if (!r)
        return;
    tn_reform_end(r->reforming);
    for (unsigned k = 0; k < PARTS; k++)
        tn_spool_free(&r->spools[k]);
    free(r);
}

const tn_tensor *tn_reformed_result(const tn_reformed *r)
{
    return tn_reform_result(r->reforming);
}

bool tn_reformed_is_large(const tn_reformed *r)
{
    return r->spooled || tn_reform_is_sorted_copy(r->reforming);
}

/* ---- the output ---- */

typedef struct writing {
    const tn_reformed *r;
    tn_reform_output  *o;
    size_t    width;            /* bytes of the part for each entry as the reforming makes it... */
    size_t    out_width;        /* ...and as it goes out */
    uint8_t **made, **changed;  /* one a slot each */
    size_t   *sizes;
} writing;

static tn_status work(void *context, uint64_t item, tn_seat seat, tn_error *err)
{
    writing *w = context;
    const tn_change *c = w->o->change;
    uint8_t *to = w->made[seat.slot];
    uint64_t first, n;
    tn_reform_place(w->r->reforming, item, &first, &n);
    tn_reform_make(w->r->reforming, item, w->o->part == 0 ? to : NULL, w->o->part == 0 ? NULL : to);
    w->sizes[seat.slot] = (size_t)n * w->out_width;
    return c && n ? c->apply(c->context, first, to, (size_t)n, w->changed[seat.slot], err) : TN_OK;
}

static tn_status emit(void *context, uint64_t item, unsigned slot, tn_error *err)
{
    writing *w = context;
    (void)item;
    tn_status status = w->o->emit(w->o->context, w->o->change ? w->changed[slot] : w->made[slot], w->sizes[slot], err);
    w->o->output_failed = status != TN_OK;
    return status;
}

static tn_status make_buffers(writing *w, unsigned slots, tn_error *err)
{
    w->made = calloc(slots, sizeof *w->made);
    w->changed = calloc(slots, sizeof *w->changed);
    w->sizes = calloc(slots, sizeof *w->sizes);
    bool good = w->made && w->changed && w->sizes;
    for (unsigned i = 0; i < slots && good; i++) {
        w->made[i] = malloc((size_t)TN_REFORM_BLOCK * w->width + 1);
        w->changed[i] = w->o->change ? malloc((size_t)TN_REFORM_BLOCK * w->out_width + 1) : NULL;
        good = w->made[i] && (w->changed[i] || !w->o->change);
    }
    return good ? TN_OK : tn_fail_nomem(err);
}

static void free_buffers(writing *w, unsigned slots)
{
    for (unsigned i = 0; i < slots; i++) {
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
static tn_status write_bytes(tn_reform_output *o, const uint8_t *bytes, uint64_t nbytes, tn_error *err)
{
    tn_status status = nbytes ? TN_OK : o->emit(o->context, bytes, 0, err);
    for (uint64_t at = 0; at < nbytes && !status; at += TN_WINDOW)
        status = o->emit(o->context, bytes + at, (size_t)(nbytes - at < TN_WINDOW ? nbytes - at : TN_WINDOW), err);
    o->output_failed = status != TN_OK;
    return status;
}

tn_status tn_reformed_write(const tn_reformed *r, tn_reform_output *o, tn_error *err)
{
    const tn_tensor *t = tn_reformed_result(r);
    const tn_part *p = &t->parts[o->part];
    if (o->part == 2 || !p->nbytes)
        return write_bytes(o, o->part == 2 ? tn_reform_indptr(r->reforming) : (const uint8_t *)"", p->nbytes, err);
    unsigned slots = tn_pool_slots(o->pool), bytes = tn_dtype_get(p->array.dtype)->bits / 8;
    writing w = { .r = r, .o = o, .width = (size_t)bytes * (p->array.rank == 2 && o->part == 1 ? (size_t)p->array.shape[1] : 1) };
    w.out_width = o->change ? o->change->to_bits / 8 : w.width;
    tn_status status = make_buffers(&w, slots, err);
    if (!status)
        status = tn_pool_run(o->pool, tn_reform_blocks(r->reforming), &(tn_ordered){ work, emit, &w }, err);
    free_buffers(&w, slots);
    return status;
}
