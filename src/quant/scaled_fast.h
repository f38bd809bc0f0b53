/* quant/scaled_fast.h - the fast ways: whole tiles that lie one after
 * another in memory, of the commonest datatypes, with this machine's kernels.
 *
 * They give the bits of tile.h.  What they do not do is left to it: other
 * roundings, infinities, NaN, scales at the end of their range. */
#ifndef TN_QUANT_SCALED_FAST_H
#define TN_QUANT_SCALED_FAST_H

#include "quant/scaled_plan.h"

/* Tiles of a plan with inner == 1 and tile_rows == 1, side by side in one row,
 * or a piece of a large one.  Numbers of parts begin on a byte here; whole bytes
 * are written, of a last one that is not full the rest is 0.  Parts that the
 * datatype does not have are NULL. */
typedef struct tn_tiles {
    size_t       count;         /* tiles... */
    size_t       size;          /* ...of so many values each, kept and left out together */
    float        tensor_scale;
    const tn_tile_choice *choice;       /* encoding: of the group that this is a piece of, whose scale and
                                         * zero point are written by the caller; NULL: each tile has its
                                         * own */
    const float *x;             /* encoding: the values */
    float       *y;             /* decoding: where they go */
    uint8_t     *data, *scale, *zero, *offset, *meta, *mask;
} tn_tiles;

/* False: these tiles are to be encoded by the definition; what was written does not count. */
typedef bool (*tn_tiles_encode_fn)(const tn_scaled_plan *plan, const tn_tiles *tiles);
typedef void (*tn_tiles_decode_fn)(const tn_scaled_plan *plan, const tn_tiles *tiles);

/* The way for all tiles of a plan, or NULL: there is none but the definition. */
tn_tiles_encode_fn tn_scaled_encoder(const tn_scaled_plan *plan);       /* scaled_encode.c */
/* scaled_search.c: sparse ones, codebooks, offsets, mse */
tn_tiles_encode_fn tn_scaled_searcher(const tn_scaled_plan *plan);
tn_tiles_decode_fn tn_scaled_decoder(const tn_scaled_plan *plan);       /* scaled_decode.c */

/* tn_tile_range_of() with kernels (scaled_encode.c). */
tn_tile_range tn_scaled_range(const float *x, size_t n);

/* The values of elements [first, first + n) of the tensor, in row-major order,
 * from the parts of the plan: any datatype, any place (scaled_decode.c).  Any
 * thread; the floating-point environment is the default one. */
void tn_scaled_values(const tn_scaled_plan *plan, float tensor_scale, uint64_t first, size_t n, float *y);

/* The same for an output so large that it is better written past the caches; other threads may look when it
 * returns. */
void tn_scaled_stream(const tn_scaled_plan *plan, float tensor_scale, uint64_t first, size_t n, float *y);

#endif
