/* sparse/sparse_block.c - counts and converts the blocks of a conversion.
 *
 * A block of a sparse result is what is kept of TN_SPARSE_BLOCK items of the
 * source.  A block of a dense result is that many elements. */
#include <string.h>

#include "tensor/code.h"
#include "sparse/sparse_plan.h"

enum {
    GROUP_BYTES  = 2 << 20,     /* of items or elements that a thread takes at a time: a huge page */
    NARROW_ROW   = 64,          /* columns: calling a kernel per row does not pay below this */
    STAGE_BYTES  = 32 << 10     /* of a dense result: they stay in the L1 cache from zeros to values */
};

/* --- all blocks on all threads ------------------------------------------------- */

typedef struct pass {
    const tn_sparse_conversion *r;
    void (*block)(const struct pass *p, uint64_t block);
    uint8_t *values, *indices;
} pass;

/* Blocks that a thread takes at a time. */
static uint64_t group_of(const tn_sparse_conversion *r)
{
    return GROUP_BYTES / (TN_SPARSE_BLOCK * r->items.width);
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const pass *p = context;
    uint64_t group = group_of(p->r), first = item * group, end = first + group;
    (void)use;
    (void)err;
    for (uint64_t block = first; block < end && block < p->r->blocks; block++)
        p->block(p, block);
    return TN_OK;
}

static tn_status for_blocks(pass p, tn_pool *pool, tn_error *err)
{
    const tn_ordered task = { .work = work, .context = &p };
    uint64_t group = group_of(p.r);
    return tn_pool_run(pool, (p.r->blocks + group - 1) / group, &task, err);
}

uint64_t tn_sparse_items(const tn_sparse_conversion *r, uint64_t block, size_t *n)
{
    uint64_t first = block * TN_SPARSE_BLOCK;
    uint64_t left = (r->to == TN_FORM_DENSE ? r->items.elements : r->items.count) - first;
    *n = (size_t)(left < TN_SPARSE_BLOCK ? left : TN_SPARSE_BLOCK);
    return first;
}

size_t tn_sparse_index_bytes(const tn_sparse_conversion *r)
{
    return (r->to == TN_FORM_CSR ? 1 : r->items.rank) * (r->index_bits / 8);
}

bool tn_sparse_is_direct(const tn_sparse_conversion *r)
{
    return r->items.form == TN_FORM_DENSE && r->to == TN_FORM_CSR && r->index_bits == 32 &&
           r->items.columns >= NARROW_ROW;
}

void tn_sparse_place(const tn_sparse_conversion *r, uint64_t block, uint64_t *first, uint64_t *n)
{
    size_t items;
    *first = tn_sparse_items(r, block, &items);
    *n = items;
    if (r->starts) {
        *first = r->starts[block];
        *n = r->starts[block + 1] - *first;
    }
}

/* --- picking ---------------------------------------------------------------------- */

static const uint8_t *value_at(const tn_sparse_conversion *r, uint64_t item)
{
    return r->items.values + item * r->items.width;
}

size_t tn_sparse_pick(const tn_sparse_conversion *r, uint64_t at, size_t n, tn_picked to)
{
    return r->kernels->pick[r->filter.kind](&r->filter, value_at(r, at), n, to);
}

size_t tn_sparse_pick_places(const tn_sparse_conversion *r, uint64_t at, size_t n, uint32_t *places)
{
    return tn_sparse_pick(r, at, n, (tn_picked){ .places = (uint8_t *)places, .room = TN_SPARSE_CHUNK });
}

/* Picks n <= TN_SPARSE_CHUNK items into buffers and copies as many as there is room for. */
__attribute__((noinline)) static size_t pick_buffered(const tn_sparse_conversion *r, uint64_t at, size_t n,
                                                      tn_picked to)
{
    uint8_t values[TN_SPARSE_CHUNK * 16];       /* of the widest type */
    uint8_t places[TN_SPARSE_CHUNK * sizeof(uint32_t)];
    tn_picked buffered = { .base = to.base, .room = TN_SPARSE_CHUNK };
    if (to.values)
        buffered.values = values;
    if (to.places)
        buffered.places = places;
    size_t kept = tn_sparse_pick(r, at, n, buffered);
    kept = kept < to.room ? kept : to.room;
    if (to.values)
        memcpy(to.values, values, kept * r->items.width);
    if (to.places)
        memcpy(to.places, places, kept * sizeof(uint32_t));
    return kept;
}

/* Picks items that were counted.  If the source is a file that somebody writes
 * to, more may be kept now than there is room for. */
static size_t pick_counted(const tn_sparse_conversion *r, uint64_t at, size_t n, tn_picked to)
{
    return n > to.room ? pick_buffered(r, at, n, to) : tn_sparse_pick(r, at, n, to);
}

/* --- counting ------------------------------------------------------------------- */

static size_t count_items(const tn_sparse_conversion *r, uint64_t first, size_t n)
{
    return r->kernels->count[r->filter.kind](&r->filter, value_at(r, first), n);
}

/* One call per row of a dense source. */
static uint64_t count_wide_rows(const tn_sparse_conversion *r, uint64_t first, size_t n)
{
    uint64_t columns = r->items.columns, row = first / columns, rest = columns - first % columns, total = 0;
    while (n) {
        size_t few = n < rest ? n : (size_t)rest;
        total += count_items(r, first, few);
        if (few == rest)
            r->row_ends[row++] = (uint32_t)total;
        first += few;
        n -= few;
        rest = columns;
    }
    return total;
}

void tn_sparse_end_rows(const tn_sparse_conversion *r, uint64_t at, size_t n, const uint32_t *places,
                        size_t kept, uint64_t before)
{
    uint64_t columns = r->items.columns, row = at / columns, end = (row + 1) * columns;
    for (size_t k = 0; end <= at + n; end += columns) {
        while (k < kept && at + places[k] < end)
            k++;
        r->row_ends[row++] = (uint32_t)(before + k);
    }
}

static uint64_t count_narrow_rows(const tn_sparse_conversion *r, uint64_t first, size_t n)
{
    uint32_t places[TN_SPARSE_CHUNK];
    uint64_t total = 0;
    for (size_t i = 0; i < n; i += TN_SPARSE_CHUNK) {
        size_t few = tn_sparse_chunk(n - i), kept = tn_sparse_pick_places(r, first + i, few, places);
        tn_sparse_end_rows(r, first + i, few, places, kept, total);
        total += kept;
    }
    return total;
}

void tn_sparse_count_block(const tn_sparse_conversion *r, uint64_t block)
{
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n), *count = &r->starts[block + 1];
    if (!r->row_ends)
        *count = count_items(r, first, n);
    else if (r->items.columns < NARROW_ROW)
        *count = count_narrow_rows(r, first, n);
    else
        *count = count_wide_rows(r, first, n);
}

static void count_block(const pass *p, uint64_t block)
{
    tn_sparse_count_block(p->r, block);
}

void tn_sparse_add_up(tn_sparse_conversion *r)
{
    r->starts[0] = 0;
    for (uint64_t i = 0; i < r->blocks; i++)
        r->starts[i + 1] += r->starts[i];
    r->count = r->starts[r->blocks];
}

tn_status tn_sparse_count(tn_sparse_conversion *r, tn_pool *pool, tn_error *err)
{
    return for_blocks((pass){ .r = r, .block = count_block }, pool, err);
}

/* The conversion as if all elements of the source were in memory around those of a block. */
static tn_sparse_conversion around(const tn_sparse_conversion *r, uint64_t first, const uint8_t *elements)
{
    tn_sparse_conversion own = *r;
    own.items.values = (const uint8_t *)((uintptr_t)elements - (uintptr_t)(first * r->items.width));
    return own;
}

typedef struct counting {
    const tn_sparse_conversion *r;
    const tn_sparse_reader     *reader;
} counting;

static tn_status count_read(void *context, uint64_t block, tn_pool_use use, tn_error *err)
{
    const counting *c = context;
    const uint8_t *elements;
    size_t n;
    uint64_t first = tn_sparse_items(c->r, block, &n);
    TN_TRY(c->reader->read(c->reader->context, use.scratch, first, n, &elements, err));
    const tn_sparse_conversion own = around(c->r, first, elements);
    tn_sparse_count_block(&own, block);
    return TN_OK;
}

tn_status tn_sparse_count_read(tn_sparse_conversion *r, const tn_sparse_reader *reader, tn_error *err)
{
    counting c = { r, reader };
    return tn_pool_run(reader->pool, r->blocks, &(tn_ordered){ .work = count_read, .context = &c }, err);
}

/* --- row pointers ------------------------------------------------------------------ */

/* Sets the pointers of rows that end in a block of a dense source. */
static void point_rows(const pass *p, uint64_t block)
{
    const tn_sparse_conversion *r = p->r;
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n), end = (first + n) / r->items.columns;
    for (uint64_t row = first / r->items.columns; row < end; row++)
        tn_code_put(r->pointers, row + 1, r->index_bits, r->starts[block] + r->row_ends[row]);
}

static uint64_t row_of(const tn_sparse_conversion *r, uint64_t item)
{
    uint64_t row;
    tn_items_rows(&r->items, (tn_item_run){ item, NULL, 1 }, &row);
    /* indices are read again, and may have changed */
    return row < r->items.rows ? row : r->items.rows - 1;
}

/* Sets the pointers of the rows after that of the last item before this block,
 * up to that of its last item: the number of entries in the rows before. */
static void point_entries(const pass *p, uint64_t block)
{
    const tn_sparse_conversion *r = p->r;
    uint32_t places[TN_SPARSE_CHUNK];
    uint64_t rows[TN_SPARSE_CHUNK], at, entries;
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n), next = first ? row_of(r, first - 1) + 1 : 0;
    uint64_t last = block + 1 == r->blocks ? r->items.rows : row_of(r, first + n - 1);
    tn_sparse_place(r, block, &at, &entries);
    for (size_t i = 0; i < n; i += TN_SPARSE_CHUNK) {
        tn_item_run run = { first + i, NULL, tn_sparse_chunk(n - i) };
        if (r->filtered)
            run = (tn_item_run){ run.at, places, tn_sparse_pick_places(r, run.at, run.n, places) };
        tn_items_rows(&r->items, run, rows);
        for (size_t k = 0; k < run.n; k++, at++)
            for (; next <= rows[k] && next <= last; next++)
                tn_code_put(r->pointers, next, r->index_bits, at);
    }
    for (; next <= last; next++)
        tn_code_put(r->pointers, next, r->index_bits, at);
}

tn_status tn_sparse_point(tn_sparse_conversion *r, tn_pool *pool, tn_error *err)
{
    memset(r->pointers, 0, r->blocks ? r->index_bits / 8 : (size_t)(r->items.rows + 1) * (r->index_bits / 8));
    return for_blocks((pass){ .r = r, .block = r->row_ends ? point_rows : point_entries }, pool, err);
}

/* --- sparse blocks --------------------------------------------------------------- */

/* Dense to CSR, if the kernel stores indices of the result. */
static void convert_rows(const tn_sparse_conversion *r, uint64_t first, size_t n, tn_picked to)
{
    uint64_t columns = r->items.columns, column = first % columns;
    while (n && to.room) {
        size_t few = tn_sparse_chunk(n);
        few = few < columns - column ? few : (size_t)(columns - column);
        to.base = (uint32_t)column;
        size_t kept = pick_counted(r, first, few, to);
        if (to.values)
            to.values += kept * r->items.width;
        to.places += kept * sizeof(uint32_t);
        to.room -= kept;
        first += few;
        n -= few;
        column = column + few < columns ? column + few : 0;
    }
}

static void convert_filtered(const tn_sparse_conversion *r, uint64_t first, size_t n, uint64_t room,
                             uint8_t *values, uint8_t *indices)
{
    uint32_t places[TN_SPARSE_CHUNK];
    tn_picked to = { .values = values, .places = indices ? (uint8_t *)places : NULL, .room = (size_t)room };
    for (size_t i = 0; i < n && to.room; i += TN_SPARSE_CHUNK) {
        size_t kept = pick_counted(r, first + i, tn_sparse_chunk(n - i), to);
        if (to.values)
            to.values += kept * r->items.width;
        if (indices) {
            tn_item_run run = { first + i, places, kept };
            tn_items_indices(&r->items, run, r->to, r->index_bits, indices);
            indices += kept * tn_sparse_index_bytes(r);
        }
        to.room -= kept;
    }
}

static void convert_to_sparse(const tn_sparse_conversion *r, uint64_t block, uint8_t *values,
                              uint8_t *indices)
{
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n), at, entries;
    tn_sparse_place(r, block, &at, &entries);
    if (r->filtered && indices && tn_sparse_is_direct(r)) {
        convert_rows(r, first, n, (tn_picked){ values, indices, 0, (size_t)entries });
    } else if (r->filtered) {
        convert_filtered(r, first, n, entries, values, indices);
    } else {
        if (values)
            memcpy(values, value_at(r, first), n * r->items.width);
        if (indices)
            tn_items_indices(&r->items, (tn_item_run){ first, NULL, n }, r->to, r->index_bits, indices);
    }
}

/* --- dense blocks ------------------------------------------------------------------- */

static void convert_to_dense(const tn_sparse_conversion *r, uint64_t block, uint8_t *to)
{
    size_t n, width = r->items.width, most = STAGE_BYTES / width;
    uint64_t first = tn_sparse_items(r, block, &n), at = tn_items_find(&r->items, first, 0, r->items.count);
    uint64_t last = tn_items_find(&r->items, first + n, at,
                                  r->items.count - at < n ? r->items.count : at + n);   /* each key once */
    if (r->zeroed) {
        tn_sparse_scatter(r, (tn_sparse_target){ to, first, n }, at, last);
        return;
    }
    for (size_t i = 0; i < n; i += most) {
        size_t few = n - i < most ? n - i : most;
        uint64_t end = tn_items_find(&r->items, first + i + few, at, last);
        memset(to + i * width, 0, few * width);
        tn_sparse_scatter(r, (tn_sparse_target){ to + i * width, first + i, few }, at, end);
        at = end;
    }
}

static void copy_dense(const tn_sparse_conversion *r, uint64_t block, uint8_t *to)
{
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n);
    memcpy(to, value_at(r, first), n * r->items.width);
}

/* --- blocks ---------------------------------------------------------------------------- */

void tn_sparse_make(const tn_sparse_conversion *r, uint64_t block, void *values, void *indices)
{
    if (r->to != TN_FORM_DENSE)
        convert_to_sparse(r, block, values, indices);
    else if (values && r->items.form == TN_FORM_DENSE && !r->filtered)
        copy_dense(r, block, values);
    else if (values)
        convert_to_dense(r, block, values);
}

void tn_sparse_make_of(const tn_sparse_conversion *r, uint64_t block, const uint8_t *elements, void *values,
                       void *indices)
{
    size_t n;
    const tn_sparse_conversion own = around(r, tn_sparse_items(r, block, &n), elements);
    tn_sparse_make(&own, block, values, indices);
}

/* Converts a block at its place in the whole parts. */
static void convert_in_place(const pass *p, uint64_t block)
{
    const tn_sparse_conversion *r = p->r;
    uint64_t first, n;
    tn_sparse_place(r, block, &first, &n);
    if (r->collected && n <= TN_SPARSE_FEW)
        return;
    tn_sparse_make(r, block, p->values + first * r->items.width,
                   p->indices ? p->indices + first * tn_sparse_index_bytes(r) : NULL);
}

tn_status tn_sparse_convert_all(const tn_sparse_conversion *r, void *values, void *indices, tn_pool *pool,
                                tn_error *err)
{
    pass p = { .r = r, .block = convert_in_place, .values = values, .indices = indices };
    return for_blocks(p, pool, err);
}
