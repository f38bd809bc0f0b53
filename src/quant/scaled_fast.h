/* quant/scaled_fast.h - the fast paths: consecutive whole tiles of common datatypes,
 * with the best kernels of this CPU.
 *
 * They give the same bits as tile.h, which handles the rest: infinities, NaN, scales
 * at the ends of their range, and with other roundings than to even those that are
 * not exact. */
#ifndef TN_QUANT_SCALED_FAST_H
#define TN_QUANT_SCALED_FAST_H

#include "kernels/scaled_encode/table.h"
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
    uint64_t     first;         /* encoding: the element of the first value, for stochastic rounding */
    const float *x;             /* encoding: input */
    bool         stream;        /* encoding: write codes past the caches; then call tn_stream_fence() */
    float       *y;             /* decoding: output */
    uint8_t     *data, *scale, *zero, *offset, *meta, *mask;
} tn_tiles;

/* Tiles side by side with several lines of values: tiles of several rows, or across rows.  Value i of each
 * line belongs to tile i / size.  Codes of a line begin on a byte; scales and zero points are whole bytes. */
typedef struct tn_tile_lines {
    size_t   lines;
    size_t   n;                 /* values of a line, at most TN_LINE_MOST */
    size_t   tiles, size;       /* the last tile may have fewer values of a line */
    bool     follow;            /* values and codes of a line begin where those of the one before it end */
    float    tensor_scale;
    uint8_t *scale, *zero;
    const float *(*values)(void *context, size_t line);
    uint8_t     *(*codes)(void *context, size_t line);
    uint64_t   (*first)(void *context, size_t line);    /* the element of its first value */
    void    *context;
} tn_tile_lines;

enum { TN_LINE_MOST = 8192, TN_LINE_TILES = TN_ENCODE_BLOCK / 2 };

/* False: tile.h must encode these tiles.  The parts may be partly written. */
typedef bool (*tn_tiles_encode_fn)(const tn_scaled_plan *plan, const tn_tiles *tiles);
typedef void (*tn_tiles_decode_fn)(const tn_scaled_plan *plan, const tn_tiles *tiles);

/* The fast path for the tiles of a plan, or NULL. */
tn_tiles_encode_fn tn_scaled_encoder(const tn_scaled_plan *plan);       /* scaled_encode.c */
/* Whether tiles of a plan can be encoded by lines, and doing it; kernels NULL: the best of this CPU. */
bool tn_scaled_has_lines(const tn_scaled_plan *plan);
bool tn_scaled_encode_lines(const tn_encode_kernels *kernels, const tn_scaled_plan *plan,
                            const tn_tile_lines *lines);
/* sparsity, codebooks, offsets and mse (scaled_search.c) */
tn_tiles_encode_fn tn_scaled_searcher(const tn_scaled_plan *plan);
tn_tiles_decode_fn tn_scaled_decoder(const tn_scaled_plan *plan);       /* scaled_decode.c */

/* Constants of exponent scales (scaled_encode.c). */
tn_exponent_rules tn_exponent_rules_of(const tn_scaled_plan *plan);

/* Writes the scales or zero points of at most TN_ENCODE_BLOCK / 2 tiles (scaled_encode.c). */
void tn_put_numbers(const tn_encode_kernels *kernels, uint8_t *part, unsigned bits, const uint32_t *codes,
                    size_t n);

/* tn_tile_range_of() with kernels (scaled_encode.c).  Without `ends`, which zero points need, `low` and
 * `high` are only such that their larger magnitude is the largest. */
tn_tile_range tn_scaled_range(const float *x, size_t n, bool ends);

#endif
