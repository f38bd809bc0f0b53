/* quant/scaled.h - values into codes with scales, tile by tile, and back.
 *
 * tile.c (with tile_number.c and tile_scale.c) is the definition: one tile at a
 * time, any datatype, any mode, scalar binary32 arithmetic with one rounding an
 * operation.  scaled_plan.c cuts tensors into tiles and packs codes,
 * scaled_run.c works through them; fast paths give the same bits. */
#ifndef TN_QUANT_SCALED_H
#define TN_QUANT_SCALED_H

#include "base/pool.h"
#include "quant/grammar/datatype.h"

#include <tenon/quantize.h>

/* ---- one tile ---- */

enum { TN_TILE_MAX = 1 << 16 };         /* values held at a time: what is larger is cut into pieces, see
                                         * tile.h */

/* Values of one tile and what they become.  Arrays belong to the caller. */
typedef struct tn_tile {
    const float *x;             /* `n` values in tile order; what pads it to its size is 0 */
    size_t       n;             /* of a sparse one: kept and left out together */
    const uint64_t *index;      /* of each in the tensor, for stochastic rounding and messages; UINT64_MAX:
                                 * padding */
    float        tensor_scale;  /* 1 where there is none */
    uint32_t     scale;         /* codes from here on: of the scale... */
    uint32_t     zero;          /* ...of the zero point, where there is one */
    uint8_t     *offset;        /* one per subtile, where there are */
    uint8_t     *meta;          /* one per tile or subtile: the mapping */
    uint8_t     *mask;          /* one per value: kept */
    float       *scratch;       /* as many values, for percentiles */
    uint32_t    *code;          /* one per value (sparse: one per slot, kept * n / of) */
} tn_tile;

/* Chooses scale, zero, offsets, mappings and mask, and encodes.  TN_ERR_LOSS: a NaN that has no code; *bad is
 * its place. */
tn_status tn_tile_encode(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t, size_t *bad);

/* The values of the codes: y has n. */
void tn_tile_decode(const tn_datatype *d, const tn_tile *t, float *y);

#endif
