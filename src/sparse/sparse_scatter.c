/* sparse/sparse_scatter.c - puts the entries of a sparse tensor into a block of a dense one.
 *
 * The block has zeros.  Indices may have changed since they were checked: every place is compared with the
 * block's size. */
#include <string.h>

#include "kernels/level.h"
#include "tensor/code.h"
#include "sparse/sparse_plan.h"

INLINE void put(tn_sparse_target t, uint64_t key, const uint8_t *value, size_t width)
{
    uint64_t place = key - t.first;
    if (place < t.n)
        memcpy(t.to + place * width, value, width);
}

/* --- entries as they are stored ------------------------------------------------- */

INLINE void scatter_rows(const tn_items *s, tn_sparse_target t, uint64_t at, uint64_t end, unsigned bits,
                         size_t width)
{
    for (uint64_t row = tn_items_row(s, at); at < end; row++) {
        uint64_t next = row + 1 < s->rows ? tn_code_get(s->indptr, row + 1, bits) : end;
        next = next < end ? next : end;
        for (const uint64_t base = row * s->columns; at < next; at++)
            put(t, base + tn_code_get(s->indices, at, bits), s->values + at * width, width);
    }
}

INLINE void scatter_pairs(const tn_items *s, tn_sparse_target t, uint64_t at, uint64_t end, unsigned bits,
                          size_t width)
{
    const uint64_t columns = s->columns;
    for (; at < end; at++)
        put(t, tn_code_get(s->indices, 2 * at, bits) * columns + tn_code_get(s->indices, 2 * at + 1, bits),
            s->values + at * width, width);
}

INLINE void scatter_stored(const tn_items *s, tn_sparse_target t, uint64_t at, uint64_t end, unsigned bits,
                           size_t width)
{
    if (s->form == TN_FORM_CSR)
        scatter_rows(s, t, at, end, bits, width);
    else
        scatter_pairs(s, t, at, end, bits, width);
}

INLINE void scatter_indexed(const tn_items *s, tn_sparse_target t, uint64_t at, uint64_t end, unsigned bits)
{
    switch (s->width) {         /* one loop per constant width */
    case 1:  scatter_stored(s, t, at, end, bits, 1); break;
    case 2:  scatter_stored(s, t, at, end, bits, 2); break;
    case 4:  scatter_stored(s, t, at, end, bits, 4); break;
    case 8:  scatter_stored(s, t, at, end, bits, 8); break;
    default: scatter_stored(s, t, at, end, bits, 16); break;
    }
}

/* --- entries by their keys ------------------------------------------------------ */

/* to[keys[i] - first] = from[places[i]], or from[i]. */
INLINE void scatter_width(tn_sparse_target t, const uint64_t *keys, const uint8_t *from,
                          const uint32_t *places, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++)
        put(t, keys[i], from + (places ? places[i] : i) * width, width);
}

static void scatter_keys(tn_sparse_target t, const uint64_t *keys, const uint8_t *from, tn_item_run run,
                         size_t width)
{
    switch (width) {
    case 1:  scatter_width(t, keys, from, run.places, run.n, 1); break;
    case 2:  scatter_width(t, keys, from, run.places, run.n, 2); break;
    case 4:  scatter_width(t, keys, from, run.places, run.n, 4); break;
    case 8:  scatter_width(t, keys, from, run.places, run.n, 8); break;
    default: scatter_width(t, keys, from, run.places, run.n, 16); break;
    }
}

/* Of sorted copies, filtered entries and other ranks. */
static void scatter_runs(const tn_sparse_conversion *r, tn_sparse_target t, uint64_t at, uint64_t end)
{
    const tn_items *s = &r->items;
    uint32_t places[TN_SPARSE_CHUNK];
    uint64_t keys[TN_SPARSE_CHUNK];
    for (; at < end; at += TN_SPARSE_CHUNK) {
        tn_item_run run = { at, NULL, tn_sparse_chunk(end - at) };
        if (r->filtered)
            run = (tn_item_run){ at, places, tn_sparse_pick_places(r, at, run.n, places) };
        tn_items_keys(s, run, keys);
        scatter_keys(t, keys, s->values + at * s->width, run, s->width);
    }
}

void tn_sparse_scatter(const tn_sparse_conversion *r, tn_sparse_target t, uint64_t at, uint64_t end)
{
    const tn_items *s = &r->items;
    bool stored = s->form == TN_FORM_CSR || (s->form == TN_FORM_COO && s->rank == 2);
    if (at == end)
        return;
    if (r->filtered || s->keys || !stored)
        scatter_runs(r, t, at, end);
    else if (s->index_bits == 32)
        scatter_indexed(s, t, at, end, 32);
    else
        scatter_indexed(s, t, at, end, 64);
}
