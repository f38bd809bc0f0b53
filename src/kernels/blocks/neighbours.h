/* kernels/blocks/neighbours.h - which points of a grid are near a vector of levels that is not in it. */
#ifndef TN_KERNELS_BLOCKS_NEIGHBOURS_H
#define TN_KERNELS_BLOCKS_NEIGHBOURS_H

#include "kernels/blocks/table.h"

/* A vector has its levels in bits, like a point: see table.h. */
typedef struct tn_neighbours {
    int32_t  *number;           /* of the point that a vector is; else -1 - the place of its list */
    uint16_t *list;             /* how many points follow, nearest first, and these; see TN_NEAR_PAD */
} tn_neighbours;

enum { TN_NEAR_PAD = 16 };      /* the last point of a list is repeated up to a multiple of so many */

/* Makes what encoders of this type need, once in a process.  False: no memory.  Thread-safe. */
bool tn_block_prepare(tn_block block);

/* Those of a type, after tn_block_prepare(). */
const tn_neighbours *tn_neighbours_of(tn_block block);

#endif
