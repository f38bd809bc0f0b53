/* quant/repack.h - block types and datatypes that have the same codes and scales in other places.
 *
 * Codes of the one become codes of the other by moving bits: no value is computed, and each stands for the
 * same value as before. */
#ifndef TN_QUANT_REPACK_H
#define TN_QUANT_REPACK_H

#include "quant/scaled_plan.h"
#include "tensor/block.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tn_repacking {
    tn_block    block;
    const char *datatype;       /* whose codes and scales are parts: "e2m1fnuz|e8m0_t32" */
    uint16_t    data, scale, zero;      /* bytes of each part for one block; 0: there is no such part */
} tn_repacking;

/* The pair of a block type; NULL: it has none. */
const tn_repacking *tn_repacking_of_block(const tn_block_info *block);

/* The pair that a block type and another datatype are, by their texts; NULL: they are none. */
const tn_repacking *tn_repacking_find(const tn_block_info *block, const char *datatype);

typedef struct tn_repacked_parts {
    uint8_t *data, *scale, *zero;       /* numbers of two bytes are in the host's order */
} tn_repacked_parts;

/* Blocks into parts, and back.  They return how many blocks were moved: less than n before one whose scale
 * means something else, or nothing, in the other type. */
size_t tn_repack_split(const tn_repacking *r, const uint8_t *blocks, size_t n, tn_repacked_parts to);
size_t tn_repack_join(const tn_repacking *r, tn_repacked_parts from, size_t n, uint8_t *blocks);

/* ---- codes whose scales are not yet those of blocks ---- */

/* The pair that a block type and a datatype are whose codes have the same meaning: its scales may be of more
 * values than a block has, of another type, or have a scale of the tensor besides, and unsigned codes may
 * have zero points that are all the middle code.  NULL: they are none. */
const tn_repacking *tn_repacking_like(const tn_block_info *block, const tn_datatype *from);

/* Joins n blocks from number `first` on.  Returns how many: less than n before one that the block type cannot
 * hold exactly; *why says what of it. */
size_t tn_repack_gather(const tn_repacking *r, const tn_scaled_plan *from, uint64_t first, size_t n,
                        uint8_t *blocks, const char **why);

#endif
