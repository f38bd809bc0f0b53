/* kernels/reorder/table.h - inner loops of reorders.
 *
 * No allocation, no errors, no I/O.  dst and src may be unaligned and do not
 * overlap; any extents, zero included; nothing outside the described elements
 * is read or written.  Every variant moves the same bytes to the same places. */
#ifndef TN_KERNELS_REORDER_TABLE_H
#define TN_KERNELS_REORDER_TABLE_H

#include "kernels/level.h"
#include "kernels/stream.h"

enum {
    TN_TRANSPOSE_SIZES = 5,     /* elements of 1, 2, 4, 8 and 16 bytes */
    TN_INTERLEAVE_MOST = 8,     /* vectors in a step */
    TN_INTERLEAVE_NONE = 0x80   /* in tn_interleave.from: not of this vector */
};

/* dst[i][j] = src[j][i] for i < rows, j < columns.  Steps are bytes from row to
 * row and may be negative.  `stream`: whole lines of dst go past the cache. */
typedef void (*tn_transpose_fn)(void *restrict dst, ptrdiff_t dst_step, const void *restrict src,
                                ptrdiff_t src_step, size_t rows, size_t columns, bool stream);

/* Each step turns `in` vectors into `out` vectors.  Byte b of output o is byte
 * from[o][i][b] of input i, for the one i where that is not TN_INTERLEAVE_NONE.
 * If there is no such i it is fill[o][b]; else fill[o][b] is 0. */
typedef struct tn_interleave {
    unsigned  in, out;
    ptrdiff_t in_gap, out_gap;          /* bytes from one vector to the next */
    ptrdiff_t in_step, out_step;        /* bytes from one step to the next */
    uint8_t   from[TN_INTERLEAVE_MOST][TN_INTERLEAVE_MOST][TN_LINE];
    uint8_t   fill[TN_INTERLEAVE_MOST][TN_LINE];
} tn_interleave;

typedef struct tn_reorder_kernels {
    tn_transpose_fn transpose[TN_TRANSPOSE_SIZES];
    /* NULL if a level has none.  `stream`: dst, its gap and its step are multiples of TN_LINE. */
    void (*interleave)(void *restrict dst, const void *restrict src, size_t steps, const tn_interleave *w,
                       bool stream);
    unsigned interleave_width;  /* bytes of its vectors */
    bool     interleave_ordinary;       /* ordinary stores are faster than streaming ones */
    /* Of each 2 * shift bits, low[i] has the low ones of a[i] below the low ones of b[i], high[i] the high
     * ones of a[i] below the high ones of b[i]; shift is 1, 2 or 4.  low may be a, and high b.  What follows
     * a and b is read next. */
    void (*exchange)(uint8_t *low, uint8_t *high, const uint8_t *a, const uint8_t *b, size_t n,
                     unsigned shift);
    /* Copies n bytes. */
    void (*copy)(void *restrict dst, const void *restrict src, size_t n, bool stream);
    /* dst[i] = pattern[i % TN_LINE]. */
    void (*fill)(void *restrict dst, const uint8_t pattern[TN_LINE], size_t n, bool stream);
} tn_reorder_kernels;

TN_KERNEL_TABLE(tn_reorder_kernels);

/* The low `shift` of each 2 * shift bits. */
static inline uint8_t tn_low_bits(unsigned shift)
{
    return (uint8_t)(255 / ((1u << shift) + 1));
}

/* The scalar level, which the others use for the last bytes. */
void tn_exchange_scalar(uint8_t *low, uint8_t *high, const uint8_t *a, const uint8_t *b, size_t n,
                        unsigned shift);

/* Of T_init(): what was measured to be faster on this family (choose.c). */
void tn_reorder_kernels_choose(tn_reorder_kernels *k, unsigned cpu);

#endif
