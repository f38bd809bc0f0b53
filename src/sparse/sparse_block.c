/* sparse/sparse_block.c - counts and makes the blocks of a conversion.
 *
 * Of a sparse result a block is what stays of TN_SPARSE_BLOCK items of the
 * source; of a dense one it is that many elements. */
#include <string.h>

#include "tensor/code.h"
#include "sparse/sparse_plan.h"

enum {
    GROUP_BYTES  = 2 << 20,     /* of items or elements that a thread takes at a time: of a dense result, a
                                 * huge page */
    NARROW_ROW   = 64,          /* columns: it does not pay to call a kernel for a row of fewer */
    STAGE_BYTES  = 32 << 10     /* of a dense result, in the first-level cache from zeros to values */
};

/* --- all blocks on all threads ------------------------------------------------- */

typedef struct pass {
    const tn_sparse_conversion *r;
    void (*block)(const tn_sparse_conversion *r, uint64_t block, void *a, void *b);
    void *a, *b;
} pass;

/* Blocks that a thread takes at a time. */
static uint64_t group_of(const tn_sparse_conversion *r)
{
    return GROUP_BYTES / (TN_SPARSE_BLOCK * r->items.width);
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const pass *p = context;
    uint64_t group = group_of(p->r),
             end = (item + 1) * group < p->r->blocks ? (item + 1) * group : p->r->blocks;
    (void)use;
    (void)err;
    for (uint64_t block = item * group; block < end; block++)
        p->block(p->r, block, p->a, p->b);
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

/* --- counting ------------------------------------------------------------------- */

static const uint8_t *value_at(const tn_sparse_conversion *r, uint64_t item)
{
    return r->items.values + item * r->items.width;
}

static size_t count_items(const tn_sparse_conversion *r, uint64_t first, size_t n)
{
    return r->kernels->count[r->sieve.kind](&r->sieve, value_at(r, first), n);
}

/* The places of what stays of the items [at, at + n).  n <= TN_SPARSE_CHUNK. */
static size_t pick_chunk(const tn_sparse_conversion *r, uint64_t at, size_t n, uint32_t *places)
{
    return r->kernels->pick[r->sieve.kind](&r->sieve, value_at(r, at), n, NULL, places, 0, TN_SPARSE_CHUNK);
}

/* What stays of n <= TN_SPARSE_CHUNK items, picked elsewhere, for there is room for fewer. */
__attribute__((noinline)) static size_t pick_aside(const tn_sparse_conversion *r, uint64_t at, size_t n,
                                                   uint8_t *values, uint8_t *places, uint32_t base,
                                                   uint64_t room)
{
    uint8_t picked[TN_SPARSE_CHUNK * 16];       /* of the widest type */
    uint32_t picked_places[TN_SPARSE_CHUNK];
    size_t stay = r->kernels->pick[r->sieve.kind](&r->sieve, value_at(r, at), n, values ? picked : NULL,
                                                  places ? picked_places : NULL, base, TN_SPARSE_CHUNK);
    stay = stay < room ? stay : (size_t)room;
    if (values)
        memcpy(values, picked, stay * r->items.width);
    if (places)
        memcpy(places, picked_places, stay * sizeof *picked_places);
    return stay;
}

/* The same, of items that were counted: if the source is a file that somebody
 * writes to, more may stay now than there is room for. */
static size_t pick_counted(const tn_sparse_conversion *r, uint64_t at, size_t n, uint8_t *values,
                           uint8_t *places, uint32_t base, uint64_t room)
{
    return n > room ? pick_aside(r, at, n, values, places, base, room)
                    : r->kernels->pick[r->sieve.kind](&r->sieve, value_at(r, at), n, values, places, base,
                                                      (size_t)room);
}

/* Rows of a dense source, a call each. */
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
                        size_t stay, uint64_t before)
{
    uint64_t columns = r->items.columns, row = at / columns, end = (row + 1) * columns;
    for (size_t k = 0; end <= at + n; end += columns) {
        while (k < stay && at + places[k] < end)
            k++;
        r->row_ends[row++] = (uint32_t)(before + k);
    }
}

static uint64_t count_narrow_rows(const tn_sparse_conversion *r, uint64_t first, size_t n)
{
    uint32_t places[TN_SPARSE_CHUNK];
    uint64_t total = 0;
    for (size_t i = 0; i < n; i += TN_SPARSE_CHUNK) {
        size_t few = n - i < TN_SPARSE_CHUNK ? n - i : TN_SPARSE_CHUNK;
        size_t stay = pick_chunk(r, first + i, few, places);
        tn_sparse_end_rows(r, first + i, few, places, stay, total);
        total += stay;
    }
    return total;
}

void tn_sparse_count_block(const tn_sparse_conversion *r, uint64_t block)
{
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n);
    r->starts[block + 1] = !r->row_ends                    ? count_items(r, first, n)
                           : r->items.columns < NARROW_ROW ? count_narrow_rows(r, first, n)
                                                           : count_wide_rows(r, first, n);
}

static void count_block(const tn_sparse_conversion *r, uint64_t block, void *unused, void *unused_too)
{
    (void)unused;
    (void)unused_too;
    tn_sparse_count_block(r, block);
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

/* --- row pointers ------------------------------------------------------------------ */

/* Those of the rows that end in a block of a dense source. */
static void point_rows(const tn_sparse_conversion *r, uint64_t block, void *unused, void *unused_too)
{
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n), end = (first + n) / r->items.columns;
    (void)unused;
    (void)unused_too;
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

/* Those of rows after the one of the last item before this block, up to that of
 * its last item: as many entries as there are in the rows before. */
static void point_entries(const tn_sparse_conversion *r, uint64_t block, void *unused, void *unused_too)
{
    uint32_t places[TN_SPARSE_CHUNK];
    uint64_t rows[TN_SPARSE_CHUNK], at, entries;
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n), next = first ? row_of(r, first - 1) + 1 : 0;
    uint64_t last = block + 1 == r->blocks ? r->items.rows : row_of(r, first + n - 1);
    (void)unused;
    (void)unused_too;
    tn_sparse_place(r, block, &at, &entries);
    for (size_t i = 0; i < n; i += TN_SPARSE_CHUNK) {
        size_t few = n - i < TN_SPARSE_CHUNK ? n - i : TN_SPARSE_CHUNK;
        size_t stay = r->sifted ? pick_chunk(r, first + i, few, places) : few;
        tn_items_rows(&r->items, (tn_item_run){ first + i, r->sifted ? places : NULL, stay }, rows);
        for (size_t k = 0; k < stay; k++, at++)
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

/* Dense to CSR, whose indices are what the kernel makes. */
static void make_rows(const tn_sparse_conversion *r, uint64_t first, size_t n, uint64_t room, uint8_t *values,
                      uint8_t *indices)
{
    uint64_t columns = r->items.columns, column = first % columns;
    while (n && room) {
        size_t few = n < TN_SPARSE_CHUNK ? n : TN_SPARSE_CHUNK;
        few = few < columns - column ? few : (size_t)(columns - column);
        size_t stay = pick_counted(r, first, few, values, indices, (uint32_t)column, room);
        if (values)
            values += stay * r->items.width;
        indices += stay * sizeof(uint32_t);
        room -= stay;
        first += few;
        n -= few;
        column = column + few < columns ? column + few : 0;
    }
}

static void make_sifted(const tn_sparse_conversion *r, uint64_t first, size_t n, uint64_t room,
                        uint8_t *values, uint8_t *indices)
{
    uint32_t places[TN_SPARSE_CHUNK];
    size_t index_bytes = tn_sparse_index_bytes(r);
    for (size_t i = 0; i < n && room; i += TN_SPARSE_CHUNK) {
        size_t few = n - i < TN_SPARSE_CHUNK ? n - i : TN_SPARSE_CHUNK;
        size_t stay = pick_counted(r, first + i, few, values, indices ? (uint8_t *)places : NULL, 0, room);
        if (values)
            values += stay * r->items.width;
        if (indices) {
            tn_item_run run = { first + i, places, stay };
            tn_items_indices(&r->items, run, r->to, r->index_bits, indices);
            indices += stay * index_bytes;
        }
        room -= stay;
    }
}

static void make_sparse(const tn_sparse_conversion *r, uint64_t block, uint8_t *values, uint8_t *indices)
{
    size_t n;
    uint64_t first = tn_sparse_items(r, block, &n), at, entries;
    tn_sparse_place(r, block, &at, &entries);
    if (r->sifted && indices && tn_sparse_is_direct(r)) {
        make_rows(r, first, n, entries, values, indices);
    } else if (r->sifted) {
        make_sifted(r, first, n, entries, values, indices);
    } else {
        if (values)
            memcpy(values, value_at(r, first), n * r->items.width);
        if (indices)
            tn_items_indices(&r->items, (tn_item_run){ first, NULL, n }, r->to, r->index_bits, indices);
    }
}

/* --- dense blocks ------------------------------------------------------------------- */

/* Elements of a dense result, and which. */
typedef struct stretch {
    uint8_t *to;
    uint64_t first, n;
} stretch;

/* to[keys[i] - first] = from[places[i]], or from[i].  Keys come from indices that may have changed since they
 * were checked. */
static inline void scatter_width(stretch s, const uint64_t *keys, const uint8_t *from, const uint32_t *places,
                                 size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t place = keys[i] - s.first;
        if (place < s.n)
            memcpy(s.to + place * width, from + (places ? places[i] : i) * width, width);
    }
}

static void scatter(stretch s, const uint64_t *keys, const uint8_t *from, const uint32_t *places, size_t n,
                    size_t width)
{
    switch (width) {            /* a loop each: the width is a constant inside */
    case 1:  scatter_width(s, keys, from, places, n, 1); break;
    case 2:  scatter_width(s, keys, from, places, n, 2); break;
    case 4:  scatter_width(s, keys, from, places, n, 4); break;
    case 8:  scatter_width(s, keys, from, places, n, 8); break;
    default: scatter_width(s, keys, from, places, n, 16); break;
    }
}

/* Puts the items [at, end) where they belong. */
static void scatter_items(const tn_sparse_conversion *r, stretch s, uint64_t at, uint64_t end)
{
    uint32_t places[TN_SPARSE_CHUNK];
    uint64_t keys[TN_SPARSE_CHUNK];
    while (at < end) {
        size_t few = (size_t)(end - at < TN_SPARSE_CHUNK ? end - at : TN_SPARSE_CHUNK);
        size_t stay = r->sifted ? pick_chunk(r, at, few, places) : few;
        const uint32_t *which = r->sifted ? places : NULL;
        tn_items_keys(&r->items, (tn_item_run){ at, which, stay }, keys);
        scatter(s, keys, value_at(r, at), which, stay, r->items.width);
        at += few;
    }
}

static void make_dense(const tn_sparse_conversion *r, uint64_t block, uint8_t *to)
{
    size_t n, width = r->items.width, most = STAGE_BYTES / width;
    uint64_t first = tn_sparse_items(r, block, &n), at = tn_items_find(&r->items, first, 0, r->items.count);
    uint64_t last = tn_items_find(&r->items, first + n, at, r->items.count);
    if (r->zeroed) {
        scatter_items(r, (stretch){ to, first, n }, at, last);
        return;
    }
    for (size_t i = 0; i < n; i += most) {
        size_t few = n - i < most ? n - i : most;
        uint64_t end = tn_items_find(&r->items, first + i + few, at, last);
        memset(to + i * width, 0, few * width);
        scatter_items(r, (stretch){ to + i * width, first + i, few }, at, end);
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
        make_sparse(r, block, values, indices);
    else if (values && r->items.form == TN_FORM_DENSE && !r->sifted)
        copy_dense(r, block, values);
    else if (values)
        make_dense(r, block, values);
}

/* A block at its place in the whole parts. */
static void make_in_place(const tn_sparse_conversion *r, uint64_t block, void *values, void *indices)
{
    uint64_t first, n;
    size_t index_bytes = tn_sparse_index_bytes(r);
    tn_sparse_place(r, block, &first, &n);
    if (r->is_gathered && n <= TN_SPARSE_KEPT)
        return;
    tn_sparse_make(r, block, (uint8_t *)values + first * r->items.width,
                   indices ? (uint8_t *)indices + first * index_bytes : NULL);
}

tn_status tn_sparse_make_all(const tn_sparse_conversion *r, void *values, void *indices, tn_pool *pool,
                             tn_error *err)
{
    return for_blocks((pass){ .r = r, .block = make_in_place, .a = values, .b = indices }, pool, err);
}
