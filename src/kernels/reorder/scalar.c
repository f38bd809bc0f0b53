/* kernels/reorder/scalar.c - reorders: the definition. */
#include "kernels/reorder/table.h"

#include <string.h>

enum { TILE = 16 };             /* rows and columns moved together, while their lines are cached */

static inline void move_tile(uint8_t *restrict dst, ptrdiff_t dst_step, const uint8_t *restrict src,
                             ptrdiff_t src_step, size_t rows, size_t columns, size_t size)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            memcpy(dst + (ptrdiff_t)i * dst_step + j * size, src + (ptrdiff_t)j * src_step + i * size, size);
}

static inline void move(uint8_t *restrict dst, ptrdiff_t dst_step, const uint8_t *restrict src,
                        ptrdiff_t src_step, size_t rows, size_t columns, size_t size)
{
    for (size_t i = 0; i < rows; i += TILE)
        for (size_t j = 0; j < columns; j += TILE)
            move_tile(dst + (ptrdiff_t)i * dst_step + j * size, dst_step,
                      src + (ptrdiff_t)j * src_step + i * size, src_step, rows - i < TILE ? rows - i : TILE,
                      columns - j < TILE ? columns - j : TILE, size);
}

#define TRANSPOSE(size)                                                                            \
    static void transpose_##size(void *restrict dst, ptrdiff_t dst_step, const void *restrict src, \
                                 ptrdiff_t src_step, size_t rows, size_t columns, bool stream)     \
    {                                                                                              \
        (void)stream;                                                                              \
        move(dst, dst_step, src, src_step, rows, columns, size);                                   \
    }

TRANSPOSE(1)
TRANSPOSE(2)
TRANSPOSE(4)
TRANSPOSE(8)
TRANSPOSE(16)

void tn_exchange_scalar(uint8_t *low, uint8_t *high, const uint8_t *a, const uint8_t *b, size_t n,
                        unsigned shift)
{
    const unsigned mask = tn_low_bits(shift);
    for (size_t i = 0; i < n; i++) {
        unsigned first = a[i], second = b[i];
        low[i] = (uint8_t)((first & mask) | (second & mask) << shift);
        high[i] = (uint8_t)((first >> shift & mask) | (second & ~mask));
    }
}

static void copy(void *restrict dst, const void *restrict src, size_t n, bool stream)
{
    (void)stream;
    memcpy(dst, src, n);
}

static void fill(void *restrict dst, const uint8_t pattern[TN_LINE], size_t n, bool stream)
{
    (void)stream;
    for (size_t i = 0; i < n; i += TN_LINE)
        memcpy((uint8_t *)dst + i, pattern, n - i < TN_LINE ? n - i : TN_LINE);
}

void tn_reorder_kernels_init_scalar(tn_reorder_kernels *k)
{
    *k = (tn_reorder_kernels){
        .transpose = { transpose_1, transpose_2, transpose_4, transpose_8, transpose_16 },
        .exchange = tn_exchange_scalar, .copy = copy, .fill = fill,
    };
}
