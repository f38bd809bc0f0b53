/* quant/scaled.h - encode and decode one tile.
 *
 * tile.c, tile_number.c and tile_scale.c are the definition: any datatype, any
 * option, scalar binary32 arithmetic with one rounding per operation.  The fast paths
 * give the same bits. */
#ifndef TN_QUANT_SCALED_H
#define TN_QUANT_SCALED_H

#include "base/pool.h"
#include "quant/grammar/datatype.h"

#include <tenon/quantize.h>

enum { TN_TILE_MAX = 1 << 16 };         /* most values of a piece; larger tiles have several, see tile.h */

/* The values of one tile and their codes.  The caller owns the arrays. */
typedef struct tn_tile {
    const float *x;             /* n values, row by row; padding is 0 */
    size_t       n;             /* sparse tiles: kept and dropped values */
    const uint64_t *index;      /* of each value in the tensor, for stochastic rounding and messages;
                                 * UINT64_MAX: padding */
    float        tensor_scale;  /* 1 if there is none */
    uint32_t     scale;         /* code */
    uint32_t     zero;          /* code of the zero point */
    uint8_t     *offset;        /* one per subtile */
    uint8_t     *meta;          /* mapping, one per tile or subtile */
    uint8_t     *mask;          /* one per value; 1: kept */
    float       *scratch;       /* n values, for percentiles */
    uint32_t    *code;          /* one per value; sparse: one per slot, keep * n / of */
} tn_tile;

/* Chooses scale, zero point, offsets, mappings and mask, and encodes.  TN_ERR_LOSS: a NaN has no code; *bad
 * is its index in x. */
tn_status tn_tile_encode(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t, size_t *bad);

/* Decodes n values into y. */
void tn_tile_decode(const tn_datatype *d, const tn_tile *t, float *y);

#endif
