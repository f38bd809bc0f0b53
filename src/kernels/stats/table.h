/* kernels/stats/table.h - inner loops of statistics.
 *
 * A tally accumulates the numbers of one span.  How a tensor is divided into
 * spans is fixed, so results do not depend on threads.  Element i of a span is
 * added to lane i % TN_TALLY_LANES, so every level rounds alike.  The scalar level
 * is the definition. */
#ifndef TN_KERNELS_STATS_TABLE_H
#define TN_KERNELS_STATS_TABLE_H

#include <string.h>

#include <tenon/stats.h>

#include "kernels/level.h"

enum {
    TN_TALLY_LANES = 16,
    TN_TALLY_BLOCK = 4096       /* numbers that fit the L1 cache */
};

#define TN_TALLY_SCALE 0x1p-600

/* Zero-initialise and set smallest_normal to begin. */
typedef struct tn_tally {
    double   smallest_normal;   /* of the type, a power of two; 0: no subnormals */
    bool     begun;             /* a finite number was seen: pivot, min and max are set */
    double   pivot;             /* near the numbers, so that sums of distances from it stay precise */
    double   min, max;
    bool     huge;              /* squares would overflow: the sums are of numbers times TN_TALLY_SCALE */
    /* of x - pivot */
    double   sum[TN_TALLY_LANES], squares[TN_TALLY_LANES];
    uint64_t count, zeros, subnormals, nans, infinities;
    uint64_t bins[TN_STATS_BINS];   /* as in tn_statistics */
} tn_tally;

/* The bin of a finite number that is not 0. */
static inline unsigned tn_tally_bin(double magnitude)
{
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    int k = (int)(bits >> 52) - 1023 - TN_STATS_LOW;        /* a subnormal double: far below the first bin */
    if (k < 0)
        return 0;
    return k < TN_STATS_BINS ? (unsigned)k : TN_STATS_BINS - 1;
}

/* Adds n numbers, unaligned; all calls of a span but the last have a multiple
 * of TN_TALLY_LANES. */
typedef void (*tn_tally_fn)(tn_tally *tally, const void *numbers, size_t n);

/* Adds TN_TALLY_BLOCK numbers of another type as float32, to a tally that has
 * begun. */
typedef void (*tn_tally_block_fn)(tn_tally *tally, const void *numbers);

typedef struct tn_stats_kernels {
    tn_tally_fn f32, f64;
    tn_tally_block_fn bf16, f16;        /* NULL: convert to float32 and call f32 */
} tn_stats_kernels;

TN_KERNEL_TABLE(tn_stats_kernels);

/* Chooses the pivot unless there is one: 0 if the first numbers of the span have
 * both signs, as weights do, else the first finite number. */
void tn_tally_begin_f32(tn_tally *tally, const void *numbers, size_t n);

/* counts[byte]++ for each of n bytes. */
void tn_count_bytes(uint64_t counts[256], const uint8_t *bytes, size_t n);

/* The definition. */
void tn_tally_f32_scalar(tn_tally *tally, const void *numbers, size_t n);

#endif
