/* reorder/layout_inner.c - moves rows, transposes and strided elements. */
#include <string.h>

#include "tensor/code.h"
#include "kernels/strided.h"
#include "reorder/layout_plan.h"

enum {
    STAGE     = 32 << 10,       /* bytes that stay in the L1 cache with the source */
    SHORT_ROW = 256,            /* bytes: shorter rows are assembled before they go past the cache */
    BLOCK     = 128             /* packed rows and columns transposed at a time */
};

void tn_reorder_fill(const tn_reorder_plan *p, int64_t at, int64_t n)
{
    if (p->size)
        p->kernels->fill(p->dst + at * (int64_t)p->size, p->fill, (size_t)n * p->size, p->stream);
    else
        for (int64_t i = 0; i < n; i++)
            tn_packed_put(p->dst, (uint64_t)(at + i), p->bits, tn_packed_get(p->fill, 0, p->bits));
}

/* --- strided elements ---------------------------------------------------------- */

static void move_packed(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    const tn_reorder_axis *d = &p->dims[p->rank - 1];
    for (int64_t i = 0; i < d->copy; i++)
        tn_packed_put(p->dst, (uint64_t)(dst + i * d->dst), p->bits,
                      tn_packed_get(p->src, (uint64_t)(src + i * d->src), p->bits));
}

void tn_inner_strided(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    const tn_reorder_axis *d = &p->dims[p->rank - 1];
    int64_t size = (int64_t)p->size;
    if (p->size)
        tn_copy_strided(p->dst + dst * size, d->dst, p->src + src * size, d->src, (size_t)d->copy, p->size);
    else
        move_packed(p, dst, src);
    for (int64_t i = d->copy; i < d->extent; i++)
        tn_reorder_fill(p, dst + i * d->dst, 1);
}

/* --- rows ------------------------------------------------------------------------ */

void tn_inner_row(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    const tn_reorder_axis *d = &p->dims[p->rank - 1];
    int64_t size = (int64_t)p->size;
    p->kernels->copy(p->dst + dst * size, p->src + src * size, (size_t)(d->copy * size), p->stream);
    if (d->copy < d->extent)
        tn_reorder_fill(p, dst + d->copy, d->extent - d->copy);
}

bool tn_rows_need_stage(const tn_reorder_plan *p)
{
    const tn_reorder_axis *row = &p->dims[p->rank - 1], *rows = p->rank > 1 ? row - 1 : row;
    return p->rank > 1 && p->stream && rows->dst == row->extent &&
           row->extent * (int64_t)p->size <= SHORT_ROW;
}

/* --- transposes ------------------------------------------------------------------ */

static tn_transpose_fn transpose_of(const tn_reorder_plan *p)
{
    return p->kernels->transpose[__builtin_ctz((unsigned)p->size)];
}

/* Fills the padding of two dimensions. */
static void fill_after(const tn_reorder_plan *p, int64_t dst)
{
    const tn_reorder_axis *columns = &p->dims[p->rank - 1], *rows = columns - 1;
    for (int64_t i = 0; i < rows->copy && columns->copy < columns->extent; i++)
        tn_reorder_fill(p, dst + i * rows->dst + columns->copy, columns->extent - columns->copy);
    for (int64_t i = rows->copy; i < rows->extent; i++)
        tn_reorder_fill(p, dst + i * rows->dst, columns->extent);
}

void tn_inner_transpose(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    const tn_reorder_axis *columns = &p->dims[p->rank - 1], *rows = columns - 1;
    int64_t size = (int64_t)p->size;
    transpose_of(p)(p->dst + dst * size, rows->dst * size, p->src + src * size, columns->src * size,
                    (size_t)rows->copy, (size_t)columns->copy, p->stream);
    fill_after(p, dst);
}

bool tn_transpose_needs_stage(const tn_reorder_plan *p)
{
    const tn_reorder_axis *columns = &p->dims[p->rank - 1], *rows = columns - 1;
    int64_t pitch = columns->extent * (int64_t)p->size;
    return p->stream && rows->dst == columns->extent && pitch <= STAGE / TN_LINE &&
           (columns->copy < columns->extent || pitch % TN_LINE);
}

/* Assembles rows of dst in the cache, with their padding, and streams them. */
static void move_staged(const tn_reorder_plan *p, int64_t dst, int64_t src, bool transpose)
{
    const tn_reorder_axis *row = &p->dims[p->rank - 1], *rows = row - 1;
    uint8_t stage[STAGE];
    size_t size = p->size, pitch = (size_t)row->extent * size, used = (size_t)row->copy * size;
    size_t most = STAGE / pitch;
    if (transpose)
        most = most / TN_LINE * TN_LINE;
    for (size_t i = 0; i < most && (int64_t)i < rows->copy && used < pitch; i++)
        p->kernels->fill(stage + i * pitch, p->fill, pitch, false);
    for (int64_t i = 0, n; i < rows->copy; i += n) {
        n = rows->copy - i < (int64_t)most ? rows->copy - i : (int64_t)most;
        const uint8_t *from = p->src + (src + i * rows->src) * (int64_t)size;
        if (transpose)
            transpose_of(p)(stage, (ptrdiff_t)pitch, from, row->src * (int64_t)size, (size_t)n,
                            (size_t)row->copy, false);
        for (int64_t k = 0; k < n && !transpose; k++)
            memcpy(stage + (size_t)k * pitch, from + k * rows->src * (int64_t)size, used);
        p->kernels->copy(p->dst + (dst + i * rows->dst) * (int64_t)size, stage, (size_t)n * pitch, true);
    }
    if (rows->copy < rows->extent)
        tn_reorder_fill(p, dst + rows->copy * rows->dst, (rows->extent - rows->copy) * row->extent);
}

void tn_inner_rows_staged(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    move_staged(p, dst, src, false);
}

void tn_inner_transpose_staged(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    move_staged(p, dst, src, true);
}

/* --- packed elements ---------------------------------------------------------------- */

/* Unpacks n elements from number `at` on, a byte each. */
static void unpack(uint8_t *restrict codes, const uint8_t *restrict data, uint64_t at, size_t n,
                   unsigned bits)
{
    size_t i = 0;
    if (bits == 4 && at % 2 == 0) {
        const uint8_t *pairs = data + at / 2;
        for (; i < n / 2; i++) {
            codes[2 * i] = pairs[i] & 15;
            codes[2 * i + 1] = pairs[i] >> 4;
        }
        i *= 2;
    }
    for (; i < n; i++)
        codes[i] = (uint8_t)tn_packed_get(data, at + i, bits);
}

static void pack(uint8_t *restrict data, uint64_t at, const uint8_t *restrict codes, size_t n, unsigned bits)
{
    size_t i = 0;
    if (bits == 4 && at % 2 == 0) {
        uint8_t *pairs = data + at / 2;
        for (; i < n / 2; i++)
            pairs[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
        i *= 2;
    }
    for (; i < n; i++)
        tn_packed_put(data, at + i, bits, codes[i]);
}

void tn_inner_row_packed(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    const tn_reorder_axis *d = &p->dims[p->rank - 1];
    uint8_t codes[8 * BLOCK];
    for (int64_t i = 0, n; i < d->copy; i += n) {
        n = d->copy - i < (int64_t)sizeof codes ? d->copy - i : (int64_t)sizeof codes;
        unpack(codes, p->src, (uint64_t)(src + i), (size_t)n, p->bits);
        pack(p->dst, (uint64_t)(dst + i), codes, (size_t)n, p->bits);
    }
    if (d->copy < d->extent)
        tn_reorder_fill(p, dst + d->copy, d->extent - d->copy);
}

/* At most BLOCK rows and columns. */
static void transpose_codes(const tn_reorder_plan *p, int64_t dst, int64_t src, size_t rows, size_t columns)
{
    const tn_reorder_axis *across = &p->dims[p->rank - 1], *along = across - 1;
    uint8_t from[BLOCK * BLOCK], to[BLOCK * BLOCK];
    for (size_t j = 0; j < columns; j++)
        unpack(from + j * BLOCK, p->src, (uint64_t)(src + (int64_t)j * across->src), rows, p->bits);
    p->kernels->transpose[0](to, BLOCK, from, BLOCK, rows, columns, false);
    for (size_t i = 0; i < rows; i++)
        pack(p->dst, (uint64_t)(dst + (int64_t)i * along->dst), to + i * BLOCK, columns, p->bits);
}

/* Rows and columns of a transpose: from the first to before the end. */
typedef struct area {
    int64_t row, row_end, column, column_end;
} area;

/* Unpacks, transposes and packs. */
static void transpose_unpacked(const tn_reorder_plan *p, int64_t dst, int64_t src, area a)
{
    const tn_reorder_axis *columns = &p->dims[p->rank - 1], *rows = columns - 1;
    for (int64_t i = a.row; i < a.row_end; i += BLOCK)
        for (int64_t j = a.column; j < a.column_end; j += BLOCK) {
            int64_t height = a.row_end - i < BLOCK ? a.row_end - i : BLOCK;
            int64_t width = a.column_end - j < BLOCK ? a.column_end - j : BLOCK;
            transpose_codes(p, dst + i * rows->dst + j, src + i + j * columns->src, (size_t)height,
                            (size_t)width);
        }
}

/* Transposes each group of 8 / bits rows and columns by exchanging bits of whole bytes, which makes as many
 * matrices of bytes; then these.  `wide` and `lines` are bytes of src and dst. */
static void transpose_bytes(const tn_reorder_plan *p, int64_t dst, int64_t src, size_t wide, size_t lines)
{
    const tn_reorder_axis *columns = &p->dims[p->rank - 1], *rows = columns - 1;
    const unsigned group = 8 / p->bits;
    uint8_t stage[STAGE];
    for (size_t j = 0; j < lines; j++)
        for (unsigned shift = 4; shift >= p->bits; shift /= 2)
            for (unsigned q = 0, apart = shift / p->bits; q < group; q++) {
                if (q & apart)
                    continue;
                uint8_t *low = stage + (q * TN_LINE + j) * wide, *high = low + apart * TN_LINE * wide;
                const uint8_t *a = low, *b = high;
                if (shift == 4) {
                    a = p->src + (src + (int64_t)(j * group + q) * columns->src) / group;
                    b = p->src + (src + (int64_t)(j * group + q + apart) * columns->src) / group;
                }
                p->kernels->exchange(low, high, a, b, wide, shift);
            }
    for (unsigned q = 0; q < group; q++)
        p->kernels->transpose[0](p->dst + (dst + q * rows->dst) / group, rows->dst,
                                 stage + q * TN_LINE * wide, (ptrdiff_t)wide, wide, lines, p->stream);
}

/* Of a transpose whose rows and columns begin on bytes; the rest goes code by code. */
static void transpose_whole(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    const tn_reorder_axis *columns = &p->dims[p->rank - 1], *rows = columns - 1;
    const int64_t group = 8 / p->bits, most = STAGE / TN_LINE / group;
    const int64_t wide = rows->copy / group, lines = columns->copy / group;
    for (int64_t j = 0, next; j < lines; j = next) {
        next = j + TN_LINE - (int64_t)((uintptr_t)(p->dst + dst / group + j) % TN_LINE);
        next = next < lines ? next : lines;
        for (int64_t i = 0; i < wide; i += most)
            transpose_bytes(p, dst + (i * rows->dst + j) * group, src + (i + j * columns->src) * group,
                            (size_t)(wide - i < most ? wide - i : most), (size_t)(next - j));
    }
    transpose_unpacked(p, dst, src, (area){ 0, wide * group, lines * group, columns->copy });
    transpose_unpacked(p, dst, src, (area){ wide * group, rows->copy, 0, columns->copy });
}

void tn_inner_transpose_packed(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    const tn_reorder_axis *columns = &p->dims[p->rank - 1], *rows = columns - 1;
    const int64_t group = 8 / p->bits;
    if (8 % p->bits == 0 && (dst | src | rows->dst | columns->src) % group == 0)
        transpose_whole(p, dst, src);
    else
        transpose_unpacked(p, dst, src, (area){ 0, rows->copy, 0, columns->copy });
    fill_after(p, dst);
}
