/* store/ranges.h - ranges of files: sorted by offset, and whether they overlap. */
#ifndef TN_STORE_RANGES_H
#define TN_STORE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_piece {
    uint64_t begin, end;
    size_t   number;            /* of the entry stored there */
    uint32_t shard;
} tn_piece;

/* Sorts items that begin with a tn_piece: by shard, begin, end and number. */
void tn_sort_by_place(void *items, size_t n, size_t item_size);

/* Whether `next`, which follows `before` (or NULL) in sorted order, begins before that ends. */
static inline bool tn_overlaps(const tn_piece *before, const tn_piece *next)
{
    return before && before->shard == next->shard && next->begin < before->end;
}

#endif
