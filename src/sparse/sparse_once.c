/* sparse/sparse_once.c - converts a large dense tensor to a sparse one, reading it once.
 *
 * The place of an entry depends on how many entries come before it.  So the
 * entries of a group of blocks are picked into a buffer that fits the cache.
 * Once the groups before it are counted its place is known, and the next user
 * of the buffer copies it there first.
 *
 * A sample of blocks tells how much memory the result needs.  If that turns out
 * too little, the source is read again.  So are blocks of many entries, whose
 * buffers would be a large part of the result. */
#include <stdlib.h>
#include <string.h>

#include "sparse/sparse_plan.h"

enum {
    GROUP   = 4,                /* blocks that a thread takes at a time */
    SAMPLES = 32,               /* blocks that are counted to estimate the number of entries */
    LARGE   = 4 << 20           /* bytes: reading fewer twice costs little */
};

/* A group that has been picked, and its place. */
typedef struct group {
    uint64_t  first, at;        /* its first block, and the number of that block's first entry */
    uint64_t  blocks;
    uint8_t  *values;           /* of the blocks of few entries, one after another */
    uint32_t *places;           /* in their block or, if `direct`, indices */
} group;

typedef struct collection {
    tn_sparse_conversion *r;
    bool          direct;       /* tn_sparse_is_direct() */
    uint64_t      capacity, next;
    group        *results;
} collection;

/* --- picking -------------------------------------------------------------------- */

/* Picks the items [at, at + n) as entries k, k + 1 ... of a group; `base` is added to their places. */
static size_t pick_more(const tn_sparse_conversion *r, uint64_t at, size_t n, const group *to, size_t k,
                        uint64_t base)
{
    return tn_sparse_pick(r, at, n, (tn_picked){ to->values + k * r->items.width, (uint8_t *)(to->places + k),
                                                 (uint32_t)base, TN_SPARSE_CHUNK });
}

/* Picks a block with its CSR indices.  Returns its number of entries, or more than TN_SPARSE_FEW. */
static size_t pick_rows(const tn_sparse_conversion *r, uint64_t first, size_t n, const group *to)
{
    uint64_t columns = r->items.columns, row = first / columns, column = first % columns;
    size_t k = 0;
    while (n && k <= TN_SPARSE_FEW) {
        size_t few = tn_sparse_chunk(n);
        if (few > columns - column)
            few = (size_t)(columns - column);
        k += pick_more(r, first, few, to, k, column);
        first += few;
        n -= few;
        column += few;
        if (column == columns) {
            r->row_ends[row++] = (uint32_t)k;
            column = 0;
        }
    }
    return k;
}

/* The same with places in the block. */
static size_t pick_places(const tn_sparse_conversion *r, uint64_t first, size_t n, const group *to)
{
    size_t k = 0;
    for (size_t i = 0; i < n && k <= TN_SPARSE_FEW; i += TN_SPARSE_CHUNK)
        k += pick_more(r, first + i, tn_sparse_chunk(n - i), to, k, i);
    if (r->row_ends && k <= TN_SPARSE_FEW)
        tn_sparse_end_rows(r, first, n, to->places, k, 0);
    return k;
}

/* --- groups ------------------------------------------------------------------------ */

/* Copies a group to its place, which was not known when it was picked. */
static void copy_group(const collection *c, group *p)
{
    const tn_sparse_conversion *r = c->r;
    size_t width = r->items.width, index_bytes = tn_sparse_index_bytes(r), k = 0, n;
    uint64_t at = p->at;
    for (uint64_t block = p->first; block < p->first + p->blocks; block++) {
        uint64_t count = r->starts[block + 1], first = tn_sparse_items(r, block, &n);
        bool picked = count <= TN_SPARSE_FEW;
        if (picked && at + count <= c->capacity) {
            uint8_t *indices = r->converted[1] + at * index_bytes;
            tn_item_run run = { first, p->places + k, (size_t)count };
            memcpy(r->converted[0] + at * width, p->values + k * width, run.n * width);
            if (c->direct)
                memcpy(indices, run.places, run.n * sizeof *run.places);
            else
                tn_items_indices(&r->items, run, r->to, r->index_bits, indices);
        }
        k += picked ? (size_t)count : 0;
        at += count;
    }
    p->blocks = 0;
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const collection *c = context;
    const tn_sparse_conversion *r = c->r;
    group *p = &c->results[use.result], rest = *p;
    size_t n;
    (void)err;
    copy_group(c, p);
    p->first = item * GROUP;
    p->blocks = r->blocks - p->first < GROUP ? r->blocks - p->first : GROUP;
    for (uint64_t block = p->first; block < p->first + p->blocks; block++) {
        uint64_t first = tn_sparse_items(r, block, &n);
        size_t kept = c->direct ? pick_rows(r, first, n, &rest) : pick_places(r, first, n, &rest);
        if (kept <= TN_SPARSE_FEW) {
            r->starts[block + 1] = kept;
            rest.values += kept * r->items.width;
            rest.places += kept;
        } else {
            tn_sparse_count_block(r, block);
        }
    }
    return TN_OK;
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    collection *c = context;
    group *p = &c->results[result];
    (void)item;
    (void)err;
    p->at = c->next;
    for (uint64_t i = 0; i < p->blocks; i++)
        c->next += c->r->starts[p->first + i + 1];
    return TN_OK;
}

/* --- the whole source ----------------------------------------------------------------- */

/* Entries to allocate memory for; 0 if there are so many that one pass does not pay. */
static uint64_t estimate_entries(const tn_sparse_conversion *r)
{
    uint64_t samples = r->blocks / 16 < SAMPLES ? r->blocks / 16 + 1 : SAMPLES;
    uint64_t step = r->blocks / samples, sum = 0;
    for (uint64_t i = 0; i < samples; i++) {
        tn_sparse_count_block(r, i * step);
        sum += r->starts[i * step + 1];
    }
    if (sum > samples * TN_SPARSE_FEW)
        return 0;
    uint64_t estimate = sum * step + sum * step / 2 + TN_SPARSE_BLOCK;
    return estimate < r->items.count ? estimate : r->items.count;
}

static bool allocate(collection *c, unsigned results)
{
    tn_sparse_conversion *r = c->r;
    size_t room = GROUP * TN_SPARSE_FEW + TN_SPARSE_CHUNK, width = r->items.width;
    bool whole = true;
    c->results = calloc(results, sizeof *c->results);
    for (unsigned i = 0; i < results && c->results; i++) {
        c->results[i].values = malloc(room * width);
        c->results[i].places = malloc(room * sizeof *c->results->places);
        whole = whole && c->results[i].values && c->results[i].places;
    }
    r->converted[0] = tn_lines_alloc(c->capacity * width);
    r->converted[1] = tn_lines_alloc(c->capacity * tn_sparse_index_bytes(r));
    return whole && c->results && r->converted[0] && r->converted[1];
}

tn_status tn_sparse_collect(tn_sparse_conversion *r, tn_pool *pool, bool *done, tn_error *err)
{
    collection c = { .r = r, .direct = tn_sparse_is_direct(r) };
    unsigned results = tn_pool_results(pool);
    tn_status status = TN_OK;
    *done = false;
    if (r->items.count * r->items.width < LARGE)
        return TN_OK;
    c.capacity = estimate_entries(r);
    if (!c.capacity || c.capacity > r->limit / (r->items.width + tn_sparse_index_bytes(r)))
        return TN_OK;
    if (allocate(&c, results)) {
        const tn_ordered task = { .work = work, .emit = emit, .context = &c };
        status = tn_pool_run(pool, (r->blocks + GROUP - 1) / GROUP, &task, err);
        for (unsigned i = 0; i < results; i++)
            copy_group(&c, &c.results[i]);
        *done = true;
    }
    r->collected = *done && c.next <= c.capacity;
    for (unsigned i = 0; i < 2 && !r->collected; i++) {
        free(r->converted[i]);
        r->converted[i] = NULL;
    }
    for (unsigned i = 0; c.results && i < results; i++) {
        free(c.results[i].values);
        free(c.results[i].places);
    }
    free(c.results);
    return status;
}
