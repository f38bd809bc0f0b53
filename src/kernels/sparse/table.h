/* kernels/sparse/table.h - inner loops that select the entries of a sparse tensor.
 *
 * No allocation, no errors, no I/O.  Pointers may be unaligned; outputs do not
 * overlap inputs; any n, zero included; no byte beyond n elements is read, none
 * beyond what is described is written.  Every variant gives the same bits. */
#ifndef TN_KERNELS_SPARSE_TABLE_H
#define TN_KERNELS_SPARSE_TABLE_H

#include "kernels/level.h"

/* How an element is stored and compared. */
typedef enum tn_sieve_kind {
    TN_SIEVE_1,                 /* a number of so many bytes */
    TN_SIEVE_2,
    TN_SIEVE_4,
    TN_SIEVE_8,
    TN_SIEVE_FNUZ,              /* one byte, of which 0x80 is NaN: that always stays */
    TN_SIEVE_PAIR_4,            /* two numbers of so many bytes: left out where both are */
    TN_SIEVE_PAIR_8,
    TN_SIEVE_KINDS
} tn_sieve_kind;

/* A number x is left out where ((x + add) & mask) <= limit, unsigned, in its
 * own width: 0 always is, add <= limit. */
typedef struct tn_sieve {
    tn_sieve_kind kind;
    uint64_t      add, mask, limit;
} tn_sieve;

/* Counts the elements that are kept. */
typedef size_t (*tn_sieve_count_fn)(const tn_sieve *sieve, const void *elements, size_t n);

/* Those of n elements that stay, one after another: `values` themselves and, as
 * uint32, `places`: base + the place of each, modulo 2^32.  Either may be NULL.
 * There is room for `room` of each, and no more than that stay.  Returns how many do. */
typedef size_t (*tn_sieve_pick_fn)(const tn_sieve *sieve, const void *elements, size_t n, void *values,
                                   void *places, uint32_t base, size_t room);

typedef struct tn_sparse_kernels {
    tn_sieve_count_fn count[TN_SIEVE_KINDS];
    tn_sieve_pick_fn  pick[TN_SIEVE_KINDS];
} tn_sparse_kernels;

TN_KERNEL_TABLE(tn_sparse_kernels);

#endif
