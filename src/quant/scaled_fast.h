/* quant/scaled_fast.h - the fast paths: consecutive whole tiles of common datatypes,
 * with the best kernels of this CPU.
 *
 * They give the same bits as tile.h, which handles the rest: other roundings,
 * infinities, NaN, scales at the ends of their range. */
#ifndef TN_QUANT_SCALED_FAST_H
#define TN_QUANT_SCALED_FAST_H

#include "quant/scaled_plan.h"

/* Consecutive tiles of one row, or a piece of a group.  inner and tile_rows are 1.
 * The numbers of each part begin on a byte.  Encoding writes whole bytes; unused bits
 * of the last one are 0.  Parts that the datatype does not have are NULL. */
typedef struct tn_tiles {
    size_t       count;         /* of tiles */
    size_t       size;          /* values per tile, kept and dropped */
    float        tensor_scale;
    const tn_tile_choice *choice;       /* encoding a piece: the scale and zero point of its group, which
                                         * the caller writes; NULL: choose them per tile */
    const float *x;             /* encoding: input */
    float       *y;             /* decoding: output */
    uint8_t     *data, *scale, *zero, *offset, *meta, *mask;
} tn_tiles;

/* False: tile.h must encode these tiles.  The parts may be partly written. */
typedef bool (*tn_tiles_encode_fn)(const tn_scaled_plan *plan, const tn_tiles *tiles);
typedef void (*tn_tiles_decode_fn)(const tn_scaled_plan *plan, const tn_tiles *tiles);

/* The fast path for the tiles of a plan, or NULL. */
tn_tiles_encode_fn tn_scaled_encoder(const tn_scaled_plan *plan);       /* scaled_encode.c */
/* sparsity, codebooks, offsets and mse (scaled_search.c) */
tn_tiles_encode_fn tn_scaled_searcher(const tn_scaled_plan *plan);
tn_tiles_decode_fn tn_scaled_decoder(const tn_scaled_plan *plan);       /* scaled_decode.c */

/* tn_tile_range_of() with kernels (scaled_encode.c). */
tn_tile_range tn_scaled_range(const float *x, size_t n);

/* Decodes elements [first, first + n) of the tensor, in row-major order, of any
 * datatype (scaled_decode.c).  Thread-safe.  The floating-point environment must be
 * the default one. */
void tn_scaled_values(const tn_scaled_plan *plan, float tensor_scale, uint64_t first, size_t n, float *y);

/* The same, written past the caches.  Other threads see the values when it returns. */
void tn_scaled_stream(const tn_scaled_plan *plan, float tensor_scale, uint64_t first, size_t n, float *y);

#endif
