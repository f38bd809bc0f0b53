/* pipeline/walk.c - going through the data of chosen tensors. */
#include "pipeline/walk.h"
#include "base/error.h"
#include "base/vector.h"
#include "pipeline/together.h"
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
    bool follows = last && last->from == 0 && last->last && last->part == whole.part &&
                   last->subject + last->count == whole.subject;
    bool fits = follows && last->count < most && last->n <= most_n && whole.n <= most_n - last->n;
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
    size_t              first;  /* of the items that are worked on now... */
    tn_buf             *text;   /* ...whose results are saved there */
    size_t             *pieces; /* together: the first item of each, and behind the last */
    size_t              npieces;
} run;

static tn_status work(void *context, uint64_t number, tn_pool_use use, tn_error *err)
{
    const run *r = context;
    const tn_walk_task *t = r->task;
    return t->work(t->context, &r->items->list[r->first + number], r->scratch + use.scratch * t->scratch_size,
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

static tn_status start(run *r, tn_error *err)
{
    if (r->scratch)
        return TN_OK;
    TN_TRY(tn_walk_start(r->walk, err));
    r->scratch = calloc(tn_pool_jobs(r->walk->pool), r->task->scratch_size + 1);
    r->results = calloc(tn_pool_results(r->walk->pool), r->task->result_size + 1);
    return r->scratch && r->results ? TN_OK : tn_fail_nomem(err);
}

static void end(run *r)
{
    if (r->scratch)
        free_each(r->scratch, tn_pool_jobs(r->walk->pool), r->task->scratch_size, r->task->free_scratch);
    if (r->results)
        free_each(r->results, tn_pool_results(r->walk->pool), r->task->result_size, r->task->free_result);
    free(r->pieces);
}

/* ---- running with other processes ---- */

static tn_status save(void *context, uint64_t number, unsigned result, tn_error *err)
{
    const run *r = context;
    const tn_item *item = &r->items->list[r->first + number];
    tn_buf_puts(r->text, number ? ",\n" : "\n");
    TN_TRY(r->task->save(r->task->context, item, r->results + result * r->task->result_size, r->text, err));
    return tn_walk_advance(r->walk, item->bytes, err);
}

static tn_status make_piece(void *context, size_t piece, tn_buf *text, tn_error *err)
{
    run *r = context;
    TN_TRY(start(r, err));
    r->first = r->pieces[piece];
    r->text = text;
    tn_buf_putc(text, '[');
    TN_TRY(tn_pool_run(r->walk->pool, r->pieces[piece + 1] - r->first, &(tn_ordered){ work, save, r }, err));
    tn_buf_putc(text, ']');
    return TN_OK;
}

static tn_status take_piece(void *context, size_t piece, tn_json *text, tn_error *err)
{
    run *r = context;
    const tn_walk_task *t = r->task;
    size_t at = r->pieces[piece];
    TN_TRY(start(r, err));
    tn_json_array(text);
    while (tn_json_item(text)) {
        if (at == r->pieces[piece + 1]) {
            tn_json_reject(text, TN_ERR_CORRUPT, "expected fewer results");
            return TN_OK;
        }
        tn_item *item = &r->items->list[at++];
        t->load(t->context, item, text, r->results);
        if (text->status)
            return TN_OK;
        TN_TRY(t->join ? t->join(t->context, item, r->results, err) : TN_OK);
    }
    if (!text->status && at < r->pieces[piece + 1])
        tn_json_reject(text, TN_ERR_CORRUPT, "expected more results");
    return TN_OK;
}

static uint64_t cost_of(const void *context, size_t piece)
{
    const run *r = context;
    uint64_t bytes = 0;
    for (size_t i = r->pieces[piece]; i < r->pieces[piece + 1]; i++)
        bytes += r->items->list[i].bytes;
    return bytes;
}

/* Runs of consecutive items. */
static tn_status cut_pieces(run *r, uint64_t size, tn_error *err)
{
    uint64_t bytes = 0;
    r->pieces = calloc(r->items->count + 1, sizeof *r->pieces);
    TN_NEED(r->pieces, err);
    for (size_t i = 0; i < r->items->count; i++) {
        if (i && bytes >= size) {
            r->pieces[++r->npieces] = i;
            bytes = 0;
        }
        bytes += r->items->list[i].bytes;
    }
    if (r->items->count)
        r->pieces[++r->npieces] = r->items->count;
    return TN_OK;
}

static tn_status run_together(run *r, tn_error *err)
{
    TN_TRY(cut_pieces(r, tn_together_piece(r->walk->together), err));
    const tn_together_task task = { .count = r->npieces, .cost = cost_of, .make = make_piece,
                                    .take = take_piece, .context = r };
    return tn_together_run(r->walk->together, &task, r->walk, err);
}

static tn_status run_alone(run *r, tn_error *err)
{
    TN_TRY(start(r, err));
    return tn_pool_run(r->walk->pool, r->items->count, &(tn_ordered){ work, join, r }, err);
}

tn_status tn_walk_run(tn_walk *w, const tn_items *items, const tn_walk_task *task, tn_error *err)
{
    run r = { .walk = w, .items = items, .task = task };
    tn_status status = w->together ? run_together(&r, err) : run_alone(&r, err);
    end(&r);
    return status;
}
