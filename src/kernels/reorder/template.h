/* kernels/reorder/template.h - reorders in vectors.
 *
 * Included once by each level's file, which first defines
 *
 *   LEVEL(name)
 *   VECTOR, vec            bytes of a vector, a multiple of 16 that divides 64; its type, of unsigned or
 *                          signed integers
 *   load(p), load_part(p, n)           load_part() reads only n < VECTOR bytes
 *   put(p, v, stream)      stores a vector; if stream, past the cache, and p is aligned
 *   put_part(p, v, n)      stores the first n < VECTOR bytes
 *   low(a, b, size), high(a, b, size)  interleave elements of the lower or upper halves of each 16 bytes
 *   turn(v)                transposes LANES vectors of LANES times 16 bytes
 *   ADD_INTERLEAVE(k)      add_interleave(k) of interleave.h, or nothing: then that of the level below stays
 *
 * A transpose goes tile by tile.  A tile is as wide as a line of dst, so every
 * line is stored whole and may go past the cache.  A few tiles side by side are
 * followed by those below them, along rows of src. */
#include <string.h>

#include "kernels/stream.h"

enum {
    LANES  = VECTOR / 16,
    PARTS  = TN_LINE / VECTOR,  /* vectors in a line */
    PAGE   = 4096,
    PAGES  = 1024,              /* of dst that are written in turn: half of the entries of an L2 TLB */
    STRIPS = 4,                 /* that are moved side by side */
    AHEAD  = 256,               /* bytes of a row to prefetch ahead */
    MANY   = 16                 /* vectors of a strip, so that a few more do not matter */
};

/* The address may be beyond the end of src. */
INLINE void fetch_from(uintptr_t p)
{
    __builtin_prefetch((const void *)p, 0, 2);
}

/* Transposes the elements of k vectors within each 16 bytes.  Each round interleaves the two halves, which
 * rotates the bits of an element's place by one. */
INLINE void turn_lanes(vec *v, unsigned size)
{
    const unsigned k = 16 / size;
    for (unsigned round = 1; round < k; round *= 2) {
        vec t[16];
        for (unsigned i = 0; i < k / 2; i++) {
            t[2 * i] = low(v[i], v[i + k / 2], size);
            t[2 * i + 1] = high(v[i], v[i + k / 2], size);
        }
        for (unsigned i = 0; i < k; i++)
            v[i] = t[i];
    }
}

typedef struct tile {
    uint8_t       *dst;
    const uint8_t *src;
    ptrdiff_t      dst_step, src_step;
    size_t         rows, columns;       /* of a tile at most VECTOR / size, TN_LINE / size */
} tile;

/* VECTOR / size columns from `first` on; out[i] is row i of dst. */
INLINE void turn_part(vec *out, const tile *t, size_t first, unsigned size, bool whole)
{
    const unsigned k = 16 / size;
    vec q[16][LANES];
    for (unsigned g = 0; g < LANES; g++) {
        vec v[16];
        for (unsigned i = 0; i < k; i++) {
            size_t j = first + g * k + i;
            if (!whole && j >= t->columns) {
                v[i] = (vec){ 0 };
                continue;
            }
            const uint8_t *p = t->src + (ptrdiff_t)j * t->src_step;
            v[i] = whole || t->rows * size == VECTOR ? load(p) : load_part(p, t->rows * size);
        }
        turn_lanes(v, size);
        for (unsigned i = 0; i < k; i++)
            q[i][g] = v[i];
    }
    for (unsigned i = 0; i < k; i++) {
        turn(q[i]);
        for (unsigned l = 0; l < LANES; l++)
            out[l * k + i] = q[i][l];
    }
}

INLINE void move_whole(const tile *t, unsigned size, bool stream)
{
    vec out[PARTS][VECTOR];
    for (unsigned part = 0; part < PARTS; part++)
        turn_part(out[part], t, part * VECTOR / size, size, true);
    for (unsigned i = 0; i < VECTOR / size; i++)
        for (unsigned part = 0; part < PARTS; part++)
            put(t->dst + (ptrdiff_t)i * t->dst_step + part * VECTOR, out[part][i], stream);
}

INLINE void move_part(const tile *t, unsigned size, bool stream)
{
    vec out[VECTOR];
    for (size_t first = 0; first < t->columns; first += VECTOR / size) {
        size_t n = (t->columns - first) * size;
        turn_part(out, t, first, size, false);
        for (size_t i = 0; i < VECTOR / size && i < t->rows; i++) {
            uint8_t *p = t->dst + (ptrdiff_t)i * t->dst_step + first * size;
            if (n < VECTOR)
                put_part(p, out[i], n);
            else
                put(p, out[i], stream);
        }
    }
}

/* The number of elements before the first multiple of `align`. */
INLINE size_t before(const void *p, ptrdiff_t step, size_t align, unsigned size)
{
    size_t n = -(uintptr_t)p & (align - 1);
    return (size_t)step % align || n % size ? 0 : n / size;
}

INLINE size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Rows of src that are parts of longer ones, and short: their next parts are read next. */
INLINE bool is_part(ptrdiff_t src_step, ptrdiff_t row)
{
    return row < PAGE && src_step >= 2 * row;
}

/* The distance to what is read later; the hardware does not prefetch so many rows at a time, and not beyond
 * pages.  After short rows the next strips are read. */
INLINE ptrdiff_t read_ahead(ptrdiff_t src_step, ptrdiff_t row, ptrdiff_t size)
{
    if (is_part(src_step, row))
        return row;
    return row < PAGE && src_step >= row ? STRIPS * (TN_LINE / size) * src_step : AHEAD;
}

INLINE void move_tile(const tile *t, unsigned size, bool stream, ptrdiff_t ahead)
{
    if (t->rows < VECTOR / size || t->columns < TN_LINE / size) {
        move_part(t, size, stream);
        return;
    }
    if ((uintptr_t)t->src % TN_LINE < VECTOR)           /* once per line */
        for (ptrdiff_t j = 0; j < TN_LINE / (ptrdiff_t)size; j++)
            fetch_from((uintptr_t)t->src + (uintptr_t)(ahead + j * t->src_step));
    move_whole(t, size, stream);
}

/* Moves strips, each a line of every row of dst, side by side from row i to end: at most STRIPS, so that what
 * is written at a time is near together.  Src is read aligned if there are many rows, so that the parts
 * before and after that cost little. */
INLINE void move_strips(tile t, size_t i, size_t end, unsigned size, bool stream, ptrdiff_t ahead)
{
    const size_t tall = VECTOR / size, wide = TN_LINE / size, columns = t.columns;
    uint8_t *dst = t.dst;
    const uint8_t *src = t.src;
    size_t next = end - i < MANY * tall ? i : i + before(src + i * size, t.src_step, VECTOR, size);
    for (next = next > i ? next : i + tall; i < end; i = next, next += tall) {
        t.rows = least(next, end) - i;
        for (size_t j = 0; j < columns; j += wide) {
            t.columns = least(wide, columns - j);
            t.dst = dst + (ptrdiff_t)i * t.dst_step + j * size;
            t.src = src + (ptrdiff_t)j * t.src_step + i * size;
            move_tile(&t, size, stream, ahead);
        }
    }
}

INLINE void transpose(void *dst, ptrdiff_t dst_step, const void *src, ptrdiff_t src_step, size_t rows,
                      size_t columns, bool stream, unsigned size)
{
    const size_t wide = TN_LINE / size;
    size_t step = dst_step < 0 ? -(size_t)dst_step : (size_t)dst_step;
    size_t most = step < PAGE ? PAGES * (PAGE / (step | 1)) : PAGES;
    size_t head = before(dst, dst_step, TN_LINE, size);
    const ptrdiff_t row = (ptrdiff_t)(rows * size), ahead = read_ahead(src_step, row, size);
    const size_t side = wide * (is_part(src_step, row) ? 1 : STRIPS);
    stream = stream && ((uintptr_t)dst + head * size) % TN_LINE == 0 && step % TN_LINE == 0;
    for (size_t i = 0; i < rows; i += most)
        for (size_t j = 0, next; j < columns; j = next) {
            next = least(j < head ? head : j + side, columns);
            tile t = { .dst = (uint8_t *)dst + j * size,
                       .src = (const uint8_t *)src + (ptrdiff_t)j * src_step,
                       .dst_step = dst_step, .src_step = src_step, .columns = next - j };
            if (stream && j >= head)
                move_strips(t, i, least(i + most, rows), size, true, ahead);
            else
                move_strips(t, i, least(i + most, rows), size, false, ahead);
        }
    if (stream)
        tn_stream_fence();
}

#define TRANSPOSE(size)                                                                            \
    static void transpose_##size(void *restrict dst, ptrdiff_t dst_step, const void *restrict src, \
                                 ptrdiff_t src_step, size_t rows, size_t columns, bool stream)     \
    {                                                                                              \
        transpose(dst, dst_step, src, src_step, rows, columns, stream, size);                      \
    }

TRANSPOSE(1)
TRANSPOSE(2)
TRANSPOSE(4)
TRANSPOSE(8)
TRANSPOSE(16)

static void exchange(uint8_t *low_to, uint8_t *high_to, const uint8_t *a, const uint8_t *b, size_t n,
                     unsigned shift)
{
    uint8_t bits[VECTOR];
    memset(bits, tn_low_bits(shift), sizeof bits);
    const vec mask = load(bits);
    size_t i = 0;
    for (; n - i >= VECTOR; i += VECTOR) {
        vec first = load(a + i), second = load(b + i);
        fetch_from((uintptr_t)a + n + i);
        fetch_from((uintptr_t)b + n + i);
        put(low_to + i, (first & mask) | (second & mask) << shift, false);
        put(high_to + i, (first >> shift & mask) | (second & ~mask), false);
    }
    tn_exchange_scalar(low_to + i, high_to + i, a + i, b + i, n - i, shift);
}

static void copy(void *restrict dst, const void *restrict src, size_t n, bool stream)
{
    uint8_t *d = dst;
    const uint8_t *s = src;
    size_t head = -(uintptr_t)dst & (TN_LINE - 1), i = head;
    if (!stream || n < 4 * TN_LINE) {
        memcpy(dst, src, n);
        return;
    }
    memcpy(dst, src, head);
    for (; n - i >= TN_LINE; i += TN_LINE)
        for (unsigned part = 0; part < PARTS; part++)
            put(d + i + part * VECTOR, load(s + i + part * VECTOR), true);
    memcpy(d + i, s + i, n - i);
    tn_stream_fence();
}

static void fill(void *restrict dst, const uint8_t pattern[TN_LINE], size_t n, bool stream)
{
    uint8_t twice[2 * TN_LINE], *d = dst;
    size_t i = least(-(uintptr_t)dst & (TN_LINE - 1), n), turned = i;
    memcpy(twice, pattern, TN_LINE);
    memcpy(twice + TN_LINE, pattern, TN_LINE);
    memcpy(d, twice, i);
    for (; n - i >= TN_LINE; i += TN_LINE)
        for (unsigned part = 0; part < PARTS; part++)
            put(d + i + part * VECTOR, load(twice + turned + part * VECTOR), stream);
    memcpy(d + i, twice + turned, n - i);
    if (stream)
        tn_stream_fence();
}

void LEVEL(tn_reorder_kernels_init)(tn_reorder_kernels *k)
{
    *k = (tn_reorder_kernels){
        .transpose = { transpose_1, transpose_2, transpose_4, transpose_8, transpose_16 },
        .interleave = k->interleave, .interleave_width = k->interleave_width, .exchange = exchange,
        .copy = copy, .fill = fill,
    };
    ADD_INTERLEAVE(k);
}
