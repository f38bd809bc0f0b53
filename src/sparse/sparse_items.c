/* sparse/sparse_items.c - the items of a source: their keys, rows and indices.
 *
 * Indices were checked: they are not negative, so only the width of their type
 * matters.  They are read again from what may be a file that somebody writes to.
 * The result is then wrong, but places in memory are checked again. */
#include "tensor/code.h"
#include "sparse/sparse_plan.h"

INLINE uint64_t item_at(tn_item_run run, size_t i)
{
    return run.at + (run.places ? run.places[i] : i);
}

/* --- COO: rows of indices into numbers ------------------------------------------ */

/* The first `dims` indices of an item as one number. */
INLINE uint64_t fold(const tn_items *s, uint64_t item, uint32_t dims, unsigned bits)
{
    uint64_t number = 0;
    for (uint32_t d = 0; d < dims; d++)
        number = number * (uint64_t)s->shape[d] + tn_code_get(s->indices, item * s->rank + d, bits);
    return number;
}

INLINE void fold_all(const tn_items *s, tn_item_run run, uint32_t dims, unsigned bits, uint64_t *numbers)
{
    for (size_t i = 0; i < run.n; i++)
        numbers[i] = fold(s, item_at(run, i), dims, bits);
}

/* Matrices and their rows are common, so they have their own loops. */
static void fold_items(const tn_items *s, tn_item_run run, uint32_t dims, uint64_t *numbers)
{
    bool narrow = s->index_bits == 32;
    if (narrow && dims == 1)
        fold_all(s, run, 1, 32, numbers);
    else if (narrow && dims == 2)
        fold_all(s, run, 2, 32, numbers);
    else if (narrow)
        fold_all(s, run, dims, 32, numbers);
    else if (dims == 1)
        fold_all(s, run, 1, 64, numbers);
    else
        fold_all(s, run, dims, 64, numbers);
}

/* --- CSR: rows from pointers ------------------------------------------------------- */

uint64_t tn_items_row(const tn_items *s, uint64_t item)
{
    uint64_t low = 0, high = s->rows - 1;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (tn_code_get(s->indptr, middle, s->index_bits) <= item)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* numbers[i] is the row, or with `keys` the key. */
INLINE void walk_rows(const tn_items *s, tn_item_run run, bool keys, unsigned bits, uint64_t *numbers)
{
    if (!run.n)
        return;
    uint64_t row = tn_items_row(s, item_at(run, 0)), end = tn_code_get(s->indptr, row + 1, bits);
    for (size_t i = 0; i < run.n; i++) {
        uint64_t item = item_at(run, i);
        while (item >= end && row + 1 < s->rows)
            end = tn_code_get(s->indptr, ++row + 1, bits);
        numbers[i] = keys ? row * s->columns + tn_code_get(s->indices, item, bits) : row;
    }
}

static void walk_items(const tn_items *s, tn_item_run run, bool keys, uint64_t *numbers)
{
    if (s->index_bits == 32)
        walk_rows(s, run, keys, 32, numbers);
    else
        walk_rows(s, run, keys, 64, numbers);
}

/* --- keys and rows --------------------------------------------------------------------- */

void tn_items_keys(const tn_items *s, tn_item_run run, uint64_t *keys)
{
    if (s->keys)
        for (size_t i = 0; i < run.n; i++)
            keys[i] = s->keys[item_at(run, i)];
    else if (s->form == TN_FORM_DENSE)
        for (size_t i = 0; i < run.n; i++)
            keys[i] = item_at(run, i);
    else if (s->form == TN_FORM_COO)
        fold_items(s, run, s->rank, keys);
    else
        walk_items(s, run, true, keys);
}

void tn_items_rows(const tn_items *s, tn_item_run run, uint64_t *rows)
{
    if (s->keys) {
        uint64_t row = 0, end = 0;          /* keys below `end` are of the row before it */
        for (size_t i = 0; i < run.n; i++) {
            uint64_t key = s->keys[item_at(run, i)];
            if (key >= end) {
                row = key / s->columns;
                end = (row + 1) * s->columns;
            }
            rows[i] = row;
        }
    } else if (s->form == TN_FORM_COO) {
        fold_items(s, run, s->rank - 1, rows);
    } else {
        walk_items(s, run, false, rows);
    }
}

static uint64_t key_of(const tn_items *s, uint64_t item)
{
    return s->keys ? s->keys[item] : fold(s, item, s->rank, s->index_bits);
}

uint64_t tn_items_find(const tn_items *s, uint64_t key, uint64_t low, uint64_t high)
{
    if (s->form == TN_FORM_DENSE)
        return key < high ? key : high;
    if (key >= s->elements)
        return high;
    bool rows = s->form == TN_FORM_CSR && !s->keys;
    if (rows) {                             /* within a row, columns replace keys */
        uint64_t begin = tn_code_get(s->indptr, key / s->columns, s->index_bits);
        uint64_t end = tn_code_get(s->indptr, key / s->columns + 1, s->index_bits);
        high = end < high ? end : high;
        if (begin >= low)
            low = begin < high ? begin : high;
        key %= s->columns;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if ((rows ? tn_code_get(s->indices, middle, s->index_bits) : key_of(s, middle)) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- indices ------------------------------------------------------------------------------- */

/* The indices that a sparse source has per item. */
INLINE uint32_t indices_per_item(const tn_items *s)
{
    return s->form == TN_FORM_COO ? s->rank : 1;
}

/* The last `take` indices of each item. */
INLINE void copy_indices(const tn_items *s, tn_item_run run, uint32_t take, unsigned from_bits,
                         unsigned to_bits, void *to)
{
    uint32_t step = indices_per_item(s), skip = step - take;
    for (size_t i = 0; i < run.n; i++)
        for (uint32_t d = 0; d < take; d++)
            tn_code_put(to, i * take + d, to_bits,
                        tn_code_get(s->indices, item_at(run, i) * step + skip + d, from_bits));
}

static void take_indices(const tn_items *s, tn_item_run run, uint32_t take, unsigned bits, void *to)
{
    bool from_narrow = s->index_bits == 32, to_narrow = bits == 32;
    size_t item_bytes = take * (bits / 8);
    if (s->index_bits == bits && indices_per_item(s) == take && !run.places)
        memcpy(to, s->indices + run.at * item_bytes, run.n * item_bytes);
    else if (from_narrow && to_narrow && take == 1)
        copy_indices(s, run, 1, 32, 32, to);
    else if (from_narrow && to_narrow)
        copy_indices(s, run, take, 32, 32, to);
    else if (from_narrow)
        copy_indices(s, run, take, 32, 64, to);
    else if (to_narrow)
        copy_indices(s, run, take, 64, 32, to);
    else
        copy_indices(s, run, take, 64, 64, to);
}

/* Converts keys to indices; divides only where a row of the tensor begins. */
INLINE void unfold(const tn_items *s, const uint64_t *keys, size_t n, unsigned bits, uint8_t *to)
{
    uint64_t index[TN_MAX_RANK], begin = 0, end = 0;
    uint32_t last = s->rank - 1;
    for (size_t i = 0; i < n; i++) {
        if (keys[i] >= end) {
            uint64_t row = keys[i] / s->columns;
            begin = row * s->columns;
            end = begin + s->columns;
            for (uint32_t d = last; d-- > 0; row /= (uint64_t)s->shape[d])
                index[d] = row % (uint64_t)s->shape[d];
        }
        for (uint32_t d = 0; d < last; d++)
            tn_code_put(to, i * s->rank + d, bits, index[d]);
        tn_code_put(to, i * s->rank + last, bits, keys[i] - begin);
    }
}

/* Converts keys to indices along the last dimension. */
INLINE void columns_of(const tn_items *s, const uint64_t *keys, size_t n, unsigned bits, uint8_t *to)
{
    uint64_t begin = 0, end = 0;
    for (size_t i = 0; i < n; i++) {
        if (keys[i] >= end) {
            begin = keys[i] / s->columns * s->columns;
            end = begin + s->columns;
        }
        tn_code_put(to, i, bits, keys[i] - begin);
    }
}

static void indices_of_keys(const tn_items *s, const uint64_t *keys, size_t n, tn_form to, unsigned bits,
                            uint8_t *indices)
{
    if (to == TN_FORM_CSR)
        bits == 32 ? columns_of(s, keys, n, 32, indices) : columns_of(s, keys, n, 64, indices);
    else if (s->rank)
        bits == 32 ? unfold(s, keys, n, 32, indices) : unfold(s, keys, n, 64, indices);
}

void tn_items_indices(const tn_items *s, tn_item_run run, tn_form to, unsigned bits, void *indices)
{
    uint32_t wanted = to == TN_FORM_CSR ? 1 : s->rank;
    if (!s->keys && (s->form == TN_FORM_COO || (s->form == TN_FORM_CSR && to == TN_FORM_CSR))) {
        take_indices(s, run, wanted, bits, indices);
        return;
    }
    uint64_t keys[TN_SPARSE_CHUNK];
    uint8_t *out = indices;
    for (size_t i = 0; i < run.n; i += TN_SPARSE_CHUNK) {
        tn_item_run some = { run.at + i, NULL, tn_sparse_chunk(run.n - i) };
        if (run.places)
            some = (tn_item_run){ run.at, run.places + i, some.n };
        tn_items_keys(s, some, keys);
        indices_of_keys(s, keys, some.n, to, bits, out + i * wanted * (bits / 8));
    }
}
