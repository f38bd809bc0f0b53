/* pipeline/walk.c - going through the data of chosen tensors. */
#include "pipeline/walk.h"
#include "base/error.h"
#include "base/vector.h"
#include "tensor/code.h"

#include <stdlib.h>
#include <string.h>

void tn_walk_end(tn_walk *w)
{
    tn_pool_free(w->pool);
    free(w->tensors);
    w->pool = NULL;
    w->tensors = NULL;
}

/* ---- choosing ---- */

tn_status tn_walk_choose(tn_walk *w, const tn_file *file, const char *const *patterns, size_t n,
                         tn_error *err)
{
    size_t count = tn_file_count(file);
    tn_chooser c;
    tn_status status = tn_chooser_begin(&c, patterns, n, err);
    w->tensors = malloc((count + 1) * sizeof *w->tensors);
    if (!status && !w->tensors)
        status = tn_fail_nomem(err);
    for (size_t i = 0; i < count && !status; i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        bool chosen = false;
        status = tn_chooser_ask(&c, t->name, &chosen, err);
        if (chosen)
            w->tensors[w->count++] = t;
    }
    if (!status)
        status = tn_chooser_check(&c, &(tn_name_list){ .file = file, .count = count }, err);
    tn_chooser_end(&c);
    if (!status && n && !w->count)
        status = tn_fail(err, TN_ERR_ARGUMENT, "every tensor is excluded");
    return status;
}

/* ---- progress ---- */

static tn_status tell(tn_walk *w, uint64_t total, tn_error *err)
{
    if (w->progress && w->progress(w->context, w->done, total))
        return tn_fail(err, TN_ERR_CANCELLED, "cancelled");
    return TN_OK;
}

tn_status tn_walk_advance(tn_walk *w, uint64_t bytes, tn_error *err)
{
    w->done += bytes;
    return tell(w, w->total, err);
}

/* While the total is not known, nothing of something is done. */
tn_status tn_walk_check(tn_walk *w, tn_error *err)
{
    if (!w)
        return TN_OK;
    return tell(w, w->total ? w->total : 1, err);
}

/* ---- items ---- */

static tn_status push(tn_items *items, tn_item item, tn_error *err)
{
    TN_NEED(TN_GROW(items->list, items->count, items->cap), err);
    items->list[items->count++] = item;
    return TN_OK;
}

tn_status tn_items_cut(tn_items *items, tn_item whole, uint64_t span, unsigned bits, tn_error *err)
{
    tn_item item = whole;
    tn_status status;
    item.count = 1;
    item.from = 0;
    do {
        uint64_t left = whole.n - item.from;
        item.last = !span || left <= span;
        item.n = item.last ? left : span;
        item.bytes = tn_packed_bytes(item.n, bits);
        status = push(items, item, err);
        item.from += item.n;
    } while (!item.last && !status);
    return status;
}

tn_status tn_items_pack(tn_items *items, tn_item whole, uint32_t most, uint64_t most_n, tn_error *err)
{
    tn_item *last = items->count ? &items->list[items->count - 1] : NULL;
    bool fits = last && last->from == 0 && last->last && last->count < most && last->n <= most_n &&
                whole.n <= most_n - last->n;
    if (fits) {
        last->count++;
        last->n += whole.n;
        last->bytes += whole.bytes;
        return TN_OK;
    }
    whole.count = 1;
    whole.last = true;
    return push(items, whole, err);
}

/* ---- running ---- */

typedef struct run {
    tn_walk            *walk;
    const tn_items     *items;
    const tn_walk_task *task;
    uint8_t            *scratch, *results;
} run;

static tn_status work(void *context, uint64_t number, tn_pool_use use, tn_error *err)
{
    const run *r = context;
    const tn_walk_task *t = r->task;
    return t->work(t->context, &r->items->list[number], r->scratch + use.scratch * t->scratch_size,
                   r->results + use.result * t->result_size, err);
}

static tn_status join(void *context, uint64_t number, unsigned result, tn_error *err)
{
    const run *r = context;
    const tn_walk_task *t = r->task;
    tn_item *item = &r->items->list[number];
    tn_status status = TN_OK;
    if (t->join)
        status = t->join(t->context, item, r->results + result * t->result_size, err);
    return status ? status : tn_walk_advance(r->walk, item->bytes, err);
}

tn_status tn_walk_start(tn_walk *w, tn_error *err)
{
    return w->pool ? TN_OK : tn_pool_new(w->jobs, &w->pool, err);
}

static void free_each(uint8_t *list, unsigned n, size_t size, void (*end)(void *))
{
    for (unsigned i = 0; list && end && i < n; i++)
        end(list + i * size);
    free(list);
}

tn_status tn_walk_run(tn_walk *w, const tn_items *items, const tn_walk_task *task, tn_error *err)
{
    run r = { .walk = w, .items = items, .task = task };
    TN_TRY(tn_walk_start(w, err));
    unsigned jobs = tn_pool_jobs(w->pool), results = tn_pool_results(w->pool);
    r.scratch = calloc(jobs, task->scratch_size + 1);
    r.results = calloc(results, task->result_size + 1);
    tn_status status = r.scratch && r.results
                           ? tn_pool_run(w->pool, items->count, &(tn_ordered){ work, join, &r }, err)
                           : tn_fail_nomem(err);
    free_each(r.scratch, jobs, task->scratch_size, task->free_scratch);
    free_each(r.results, results, task->result_size, task->free_result);
    return status;
}
