/* sparse/sparse_once.c - a large dense tensor into a sparse one, reading it once.
 *
 * Where an entry goes depends on how many come before it.  What stays of a
 * group of blocks is therefore picked into a buffer that the cache holds; once
 * the groups before it are counted its place is known, and whoever takes
 * the buffer next copies it there first.
 *
 * Memory for the result is taken by what a few blocks have.  Where that is not
 * enough the source is read again; so it is for blocks of many entries, whose
 * buffers would be no small part of the result. */
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "sparse/sparse_plan.h"

enum {
    GROUP   = 4,                /* blocks a thread takes at a time */
    SAMPLES = 32,               /* blocks that tell how many entries there will be */
    LARGE   = 4 << 20           /* bytes: of less, reading it again costs little */
};

/* A group that has been picked, and where it goes. */
typedef struct group {
    uint64_t  first, at;        /* its first block, and the place of the entries of that */
    uint64_t  blocks;
    uint8_t  *values;           /* of the blocks that are kept, one after another */
    uint32_t *places;           /* in their block or, if `direct`, indices */
} group;

typedef struct gathering {
    tn_sparse_conversion *r;
    bool          direct;       /* what the kernel makes are the indices */
    uint64_t      capacity, next;
    group        *results;
} gathering;

/* --- picking -------------------------------------------------------------------- */

/* What stays of a block, or more than may be kept, with its indices in CSR. */
static size_t pick_rows(const tn_sparse_conversion *r, uint64_t first, size_t n, uint8_t *values,
                        uint32_t *places)
{
    const tn_items *s = &r->items;
    uint64_t row = first / s->columns, column = first % s->columns;
    size_t k = 0;
    while (n && k <= TN_SPARSE_KEPT) {
        size_t few = n < TN_SPARSE_CHUNK ? n : TN_SPARSE_CHUNK;
        if (few > s->columns - column)
            few = (size_t)(s->columns - column);
        k += r->kernels->pick[r->sieve.kind](&r->sieve, s->values + first * s->width, few,
                                             values + k * s->width, places + k, (uint32_t)column,
                                             TN_SPARSE_CHUNK);
        first += few;
        n -= few;
        column += few;
        if (column == s->columns) {
            r->row_ends[row++] = (uint32_t)k;
            column = 0;
        }
    }
    return k;
}

/* The same with places in the block. */
static size_t pick_places(const tn_sparse_conversion *r, uint64_t first, size_t n, uint8_t *values,
                          uint32_t *places)
{
    const tn_items *s = &r->items;
    size_t k = 0;
    for (size_t i = 0; i < n && k <= TN_SPARSE_KEPT; i += TN_SPARSE_CHUNK) {
        size_t few = n - i < TN_SPARSE_CHUNK ? n - i : TN_SPARSE_CHUNK;
        k += r->kernels->pick[r->sieve.kind](&r->sieve, s->values + (first + i) * s->width, few,
                                             values + k * s->width, places + k, (uint32_t)i, TN_SPARSE_CHUNK);
    }
    if (r->row_ends && k <= TN_SPARSE_KEPT)
        tn_sparse_end_rows(r, first, n, places, k, 0);
    return k;
}

/* --- groups ------------------------------------------------------------------------ */

/* Copies a group to its place, which was not known when it was picked. */
static void put_away(const gathering *g, group *p)
{
    const tn_sparse_conversion *r = g->r;
    size_t width = r->items.width, index_bytes = tn_sparse_index_bytes(r), k = 0, n;
    uint64_t at = p->at;
    for (uint64_t block = p->first; block < p->first + p->blocks; block++) {
        uint64_t count = r->starts[block + 1], first = tn_sparse_items(r, block, &n);
        uint8_t *indices = r->gathered[1] + at * index_bytes;
        bool kept = count <= TN_SPARSE_KEPT;
        if (kept && at + count <= g->capacity) {
            memcpy(r->gathered[0] + at * width, p->values + k * width, (size_t)count * width);
            tn_item_run run = { first, p->places + k, (size_t)count };
            if (g->direct)
                memcpy(indices, run.places, run.n * sizeof *run.places);
            else
                tn_items_indices(&r->items, run, r->to, r->index_bits, indices);
        }
        k += kept ? (size_t)count : 0;
        at += count;
    }
    p->blocks = 0;
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const gathering *g = context;
    const tn_sparse_conversion *r = g->r;
    group *p = &g->results[use.result];
    size_t n, k = 0;
    (void)err;
    put_away(g, p);
    p->first = item * GROUP;
    p->blocks = r->blocks - p->first < GROUP ? r->blocks - p->first : GROUP;
    for (uint64_t block = p->first; block < p->first + p->blocks; block++) {
        uint64_t first = tn_sparse_items(r, block, &n);
        uint8_t *values = p->values + k * r->items.width;
        size_t stay = g->direct ? pick_rows(r, first, n, values, p->places + k)
                                : pick_places(r, first, n, values, p->places + k);
        if (stay <= TN_SPARSE_KEPT) {
            r->starts[block + 1] = stay;
            k += stay;
        } else {
            tn_sparse_count_block(r, block);
        }
    }
    return TN_OK;
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    gathering *g = context;
    group *p = &g->results[result];
    (void)item;
    (void)err;
    p->at = g->next;
    for (uint64_t i = 0; i < p->blocks; i++)
        g->next += g->r->starts[p->first + i + 1];
    return TN_OK;
}

/* --- all of it ------------------------------------------------------------------------ */

/* Entries to take memory for; 0: so many that it does not pay. */
static uint64_t guess_entries(const tn_sparse_conversion *r)
{
    uint64_t samples = r->blocks / 16 < SAMPLES ? r->blocks / 16 + 1 : SAMPLES, step = r->blocks / samples,
             sum = 0;
    for (uint64_t i = 0; i < samples; i++) {
        tn_sparse_count_block(r, i * step);
        sum += r->starts[i * step + 1];
    }
    if (sum > samples * TN_SPARSE_KEPT)
        return 0;
    uint64_t guess = sum * step + sum * step / 2 + TN_SPARSE_BLOCK;
    return guess < r->items.count ? guess : r->items.count;
}

static bool make_room(gathering *g, unsigned results)
{
    tn_sparse_conversion *r = g->r;
    size_t room = GROUP * TN_SPARSE_KEPT + TN_SPARSE_CHUNK, width = r->items.width;
    bool whole = true;
    g->results = calloc(results, sizeof *g->results);
    for (unsigned i = 0; i < results && g->results; i++) {
        g->results[i].values = malloc(room * width);
        g->results[i].places = malloc(room * sizeof *g->results->places);
        whole = whole && g->results[i].values && g->results[i].places;
    }
    r->gathered[0] = tn_lines_alloc(g->capacity * width);
    r->gathered[1] = tn_lines_alloc(g->capacity * tn_sparse_index_bytes(r));
    return whole && g->results && r->gathered[0] && r->gathered[1];
}

static void forget(tn_sparse_conversion *r)
{
    free(r->gathered[0]);
    free(r->gathered[1]);
    r->gathered[0] = r->gathered[1] = NULL;
}

tn_status tn_sparse_gather(tn_sparse_conversion *r, tn_pool *pool, bool *done, tn_error *err)
{
    gathering g = { .r = r, .direct = tn_sparse_is_direct(r) };
    unsigned results = tn_pool_results(pool);
    uint64_t width = r->items.width + tn_sparse_index_bytes(r);
    tn_status status = TN_OK;
    *done = false;
    if (r->items.count * r->items.width < LARGE)
        return TN_OK;
    g.capacity = guess_entries(r);
    if (!g.capacity || g.capacity > r->limit / width)
        return TN_OK;
    if (make_room(&g, results)) {
        const tn_ordered task = { .work = work, .emit = emit, .context = &g };
        status = tn_pool_run(pool, (r->blocks + GROUP - 1) / GROUP, &task, err);
        for (unsigned i = 0; i < results; i++)
            put_away(&g, &g.results[i]);
        *done = true;
    }
    r->is_gathered = *done && g.next <= g.capacity;
    if (!r->is_gathered)
        forget(r);
    for (unsigned i = 0; g.results && i < results; i++) {
        free(g.results[i].values);
        free(g.results[i].places);
    }
    free(g.results);
    return status;
}
