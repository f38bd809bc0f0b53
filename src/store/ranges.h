/* store/ranges.h - pieces of files: in order of place, and whether they overlap. */
#ifndef TN_STORE_RANGES_H
#define TN_STORE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_piece {
    uint64_t begin, end;
    size_t   number;            /* of whatever it is that lies there */
    uint32_t shard;
} tn_piece;

/* Sorts items, each of which begins with a tn_piece: by shard, by where they
 * begin, shorter ones first, then by number. */
void tn_sort_by_place(void *items, size_t n, size_t item_size);

/* `next` comes after `before` (or NULL) in order of place, and begins before that ends. */
static inline bool tn_overlaps(const tn_piece *before, const tn_piece *next)
{
    return before && before->shard == next->shard && next->begin < before->end;
}

#endif
