/* kernels/sparse/table.h - inner loops that select the entries of a sparse tensor.
 *
 * No allocation, no errors, no I/O.  Pointers may be unaligned; outputs do not
 * overlap inputs; any n, zero included.  No byte beyond n elements is read, and
 * none beyond the room for outputs is written. */
#ifndef TN_KERNELS_SPARSE_TABLE_H
#define TN_KERNELS_SPARSE_TABLE_H

#include "kernels/level.h"

/* How an element is stored and compared. */
typedef enum tn_filter_kind {
    TN_FILTER_1,                /* a number of 1, 2, 4 or 8 bytes */
    TN_FILTER_2,
    TN_FILTER_4,
    TN_FILTER_8,
    TN_FILTER_FNUZ,             /* one byte; 0x80 is NaN and is always kept */
    TN_FILTER_PAIR_4,           /* two numbers of 4 or 8 bytes: dropped if both are */
    TN_FILTER_PAIR_8,
    TN_FILTER_KINDS
} tn_filter_kind;

/* A number x is dropped if ((x + add) & mask) <= limit, unsigned, in its own
 * width.  add <= limit, so 0 is always dropped. */
typedef struct tn_filter {
    tn_filter_kind kind;
    uint64_t       add, mask, limit;
} tn_filter;

/* Counts the elements that are kept. */
typedef size_t (*tn_filter_count_fn)(const tn_filter *filter, const void *elements, size_t n);

/* Where kept elements go, one after another.  Either pointer may be NULL. */
typedef struct tn_picked {
    uint8_t *values;
    uint8_t *places;            /* uint32: base + the place of each element, modulo 2^32 */
    uint32_t base;
    size_t   room;              /* elements; no more than that are kept */
} tn_picked;

/* Copies the elements that are kept and returns their number. */
typedef size_t (*tn_filter_pick_fn)(const tn_filter *filter, const void *elements, size_t n, tn_picked to);

/* Whether each of n numbers is above the one before it. */
typedef bool (*tn_ascend_fn)(const void *numbers, size_t n);

/* The same of pairs, by their first numbers, then by their second ones; and whether all first ones are below
 * limits[0] and all second ones below limits[1], which are at most INT32_MAX. */
typedef bool (*tn_pairs_ascend_fn)(const void *pairs, size_t n, const uint32_t limits[2]);

typedef struct tn_sparse_kernels {
    tn_ascend_fn       ascend;          /* of uint32 */
    tn_pairs_ascend_fn pairs_ascend;
    tn_filter_count_fn count[TN_FILTER_KINDS];
    tn_filter_pick_fn  pick[TN_FILTER_KINDS];
} tn_sparse_kernels;

TN_KERNEL_TABLE(tn_sparse_kernels);

/* The scalar level, which the others use for the last numbers. */
bool tn_ascend_scalar(const void *numbers, size_t n);
bool tn_pairs_ascend_scalar(const void *pairs, size_t n, const uint32_t limits[2]);

#endif
